//! A rule that is said to follow from another one is satisfied by every value that satisfies the other
//! one. Random rules are evaluated for all values of a small schema.

use proptest::prelude::*;
use rbuilder_cel::{Budget, Facts, RuleSet, follows_from};
use rbuilder_schema::{Cel, Schema};
use serde_json::{Value, json};

fn schema() -> Schema {
    let text = json!({ "type": "string" });
    let item = json!({ "type": "object", "properties": { "kind": text, "name": text } });
    let schema = json!({ "type": "object", "required": ["t"], "properties": {
        "a": { "type": "boolean" },
        "b": { "type": "object", "properties": { "c": text } },
        "t": { "type": "string", "enum": ["x", "y"] },
        "u": text,
        "list": { "type": "array", "items": item },
        "names": { "type": "array", "items": text },
    }});
    serde_json::from_value(schema).expect("a schema")
}

/// What the schema says of its values.
struct OfSchema;

impl Facts for OfSchema {
    fn is_absent(&self, _: &[&str]) -> bool {
        false
    }

    fn is_present(&self, path: &[&str]) -> bool {
        path == ["t"]
    }

    fn is_excluded(&self, path: &[&str], value: &Value) -> bool {
        path == ["t"] && value != "x" && value != "y"
    }
}

fn values() -> Vec<Value> {
    let fields = [
        ("a", vec![Value::Null, json!(true), json!(false)]),
        ("b", vec![Value::Null, json!({}), json!({ "c": "x" })]),
        ("t", vec![json!("x"), json!("y")]),
        ("u", vec![Value::Null, json!("x"), json!("z@x")]),
        (
            "list",
            vec![
                Value::Null,
                json!([]),
                json!([{ "kind": "x" }]),
                json!([{ "kind": "y", "name": "x" }, {}]),
            ],
        ),
        (
            "names",
            vec![
                Value::Null,
                json!([]),
                json!(["x"]),
                json!(["y", "x"]),
                json!(["z"]),
            ],
        ),
    ];
    let mut all = vec![json!({})];
    for (name, choices) in fields {
        let with = |value: &Value, choice: &Value| {
            let mut value = value.clone();
            if !choice.is_null() {
                value[name] = choice.clone();
            }
            value
        };
        all = all
            .iter()
            .flat_map(|value| choices.iter().map(move |choice| with(value, choice)))
            .collect();
    }
    all
}

fn rule() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "has(self.a)",
        "self.a",
        "has(self.b)",
        "has(self.b.c)",
        "self.b.c == 'x'",
        "self.t == 'x'",
        "self.t in ['y', 'z']",
        "self.t != 'z'",
        "has(self.u)",
        "self.u in ['x', 'y']",
        "self.u == self.t",
        "self.u.split('@')[0] == 'z'",
        "self.u.split('@')[0] in ['x', 'z']",
        "self.u.split('@')[1] == 'x'",
        "has(self.list)",
        "self.list.all(i, i.kind == 'x')",
        "self.list.all(j, has(j.kind) && j.kind in ['x', 'y'])",
        "self.list.exists(i, has(i.name))",
        "self.list.exists(i, i.name == 'x')",
        "self.list.all(i, has(i.name) || has(i.kind))",
        "self.names.all(n, n == 'x')",
        "self.names.all(n, n in ['x', 'y'])",
        "self.names.exists(n, n == 'x')",
        "!self.names.exists(n, n == 'y')",
        "self.names.size() > 0",
        "self.?u.hasValue()",
        "self.?b.c.hasValue()",
        "has(self.?b.c)",
        "self.?a.orValue(false)",
        "self.b.?c.orValue('x') == 'x'",
        "self.?names.orValue([]).all(n, n == 'x')",
        "self.?list.orValue([]).exists(i, has(i.name))",
        "true",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} && {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} || {right})")),
            inner.clone().prop_map(|operand| format!("!({operand})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(test, yes, no)| format!("({test} ? {yes} : {no})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn rules_that_follow_hold(former in prop::collection::vec(rule(), 1..3), rule in rule()) {
        if follows_from(&rule, former.iter().map(String::as_str), &OfSchema) {
            let schema = schema();
            let compile = |text: &str| {
                let rule = Cel { rule: text.to_owned(), ..Cel::default() };
                RuleSet::compile(&[rule], &schema, false)
            };
            let formers: Vec<RuleSet> = former.iter().map(|text| compile(text)).collect();
            let compiled = compile(&rule);
            let holds = |rules: &RuleSet, value: &Value| {
                rules.evaluate(value, None, &schema, &mut Budget::per_object()).is_empty()
            };
            for value in values() {
                let is_refuted = formers.iter().all(|former| holds(former, &value)) && !holds(&compiled, &value);
                prop_assert!(!is_refuted, "{} violates {rule}, but not {former:?}", value);
            }
        }
    }
}
