//! Runs random rules on random values: the evaluation never panics, and always terminates.

use proptest::prelude::*;
use rbuilder_cel::{Budget, RuleSet};
use rbuilder_schema::{Cel, Schema};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({ "type": "object", "properties": {
        "n": { "type": "integer" },
        "ratio": { "type": "number" },
        "text": { "type": "string" },
        "blob": { "type": "string", "format": "byte" },
        "when": { "type": "string", "format": "date-time" },
        "wait": { "type": "string", "format": "duration" },
        "port": { "x-kubernetes-int-or-string": true },
        "list": { "type": "array", "items": { "type": "integer" } },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        "map": { "type": "object", "additionalProperties": { "type": "string", "nullable": true } },
    }})
}

/// A value that matches the schema, or one that does not.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-zäß%.,:/0-9-]{0,12}",
        Just("2024-02-29T23:59:59.5Z".to_owned()),
        Just("1h30m".to_owned()),
        Just("aGk=".to_owned()),
        Just("1.5Gi".to_owned()),
    ];
    let any = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let any = any.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c_]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let names = [
        "n", "ratio", "text", "blob", "when", "wait", "port", "list", "set", "map",
    ];
    prop::collection::btree_map(prop::sample::select(names.to_vec()), any, 0..10).prop_map(|fields| {
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    })
}

/// An expression. `dyn` makes most combinations pass the checker.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "-1",
        "0",
        "9223372036854775807",
        "2u",
        "1.5",
        "'a'",
        "''",
        "'héllo'",
        "b'\\xff'",
        "true",
        "null",
        "[]",
        "[1, 2]",
        "{'a': 1}",
        "self",
        "self.n",
        "self.ratio",
        "self.text",
        "self.blob",
        "self.when",
        "self.wait",
        "self.port",
        "self.list",
        "self.set",
        "self.map",
        "oldSelf.n",
        "oldSelf.list",
        "duration('1h')",
        "timestamp('9999-12-31T23:59:59Z')",
        "optional.none()",
        "optional.of(1)",
        "type(1)",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in",
        ]);
        let method = prop::sample::select(vec![
            "size",
            "lowerAscii",
            "trim",
            "isSorted",
            "sum",
            "max",
            "min",
            "sort",
            "reverse",
            "distinct",
            "flatten",
            "first",
            "last",
            "getHours",
            "getFullYear",
            "getDayOfYear",
            "hasValue",
            "value",
            "join",
            "sign",
            "asInteger",
            "asApproximateFloat",
            "major",
            "getHost",
            "getQuery",
            "family",
            "masked",
            "prefixLength",
            "unwrapOpt",
        ]);
        let with_argument = prop::sample::select(vec![
            "indexOf",
            "lastIndexOf",
            "split",
            "contains",
            "startsWith",
            "matches",
            "find",
            "findAll",
            "charAt",
            "substring",
            "format",
            "orValue",
            "join",
            "add",
            "sub",
            "isLessThan",
            "compareTo",
            "containsIP",
            "containsCIDR",
            "validate",
        ]);
        let function = prop::sample::select(vec![
            "int",
            "uint",
            "double",
            "string",
            "bool",
            "bytes",
            "duration",
            "timestamp",
            "type",
            "dyn",
            "size",
            "quantity",
            "isQuantity",
            "ip",
            "isIP",
            "cidr",
            "isCIDR",
            "url",
            "isURL",
            "semver",
            "isSemver",
            "lists.range",
            "optional.of",
            "optional.ofNonZeroValue",
            "strings.quote",
            "format.named",
            "ip.isCanonical",
            "-",
            "!",
        ]);
        let macros = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter", "sortBy"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("(dyn({left}) {operator} dyn({right}))")),
            (inner.clone(), method).prop_map(|(target, method)| format!("dyn({target}).{method}()")),
            (inner.clone(), with_argument, inner.clone())
                .prop_map(|(target, method, arg)| format!("dyn({target}).{method}(dyn({arg}))")),
            (function, inner.clone()).prop_map(|(function, arg)| format!("{function}(dyn({arg}))")),
            (inner.clone(), macros, inner.clone())
                .prop_map(|(range, name, body)| format!("dyn({range}).{name}(x, dyn({body}))")),
            (inner.clone(), inner.clone()).prop_map(|(target, index)| format!("dyn({target})[dyn({index})]")),
            (inner.clone(), inner.clone())
                .prop_map(|(target, index)| format!("dyn({target})[?dyn({index})]")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(test, yes, no)| format!("(dyn({test}) ? dyn({yes}) : dyn({no}))")),
            (inner.clone(), inner).prop_map(|(format, arg)| format!("dyn({format}).format([dyn({arg})])")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_rules_do_not_panic(text in expression(), own in value(), old in value()) {
        let schema: Schema = serde_json::from_value(schema()).expect("a schema");
        let rule = Cel { rule: format!("dyn({text}) == true"), ..Cel::default() };
        let rules = RuleSet::compile(&[rule], &schema, false);
        let mut budget = Budget::per_object();
        let found = rules.evaluate(&own, Some(&old), &schema, &mut budget);
        prop_assert!(found.len() <= 1);
        prop_assert!(budget.is_exceeded() || budget.remaining() <= 10_000_000);
    }
}
