//! Compares results and costs with those recorded from kube-apiserver's own code, for about 260
//! rules.

use rbuilder_schema::Schema;

use super::recorded::recorded_rules;
use super::rules::{Scope, Walk};
use super::types::Decl;

#[test]
fn verdicts_and_costs_match_the_api_server() {
    let mut differences = Vec::new();
    let mut counts = [0; 3];
    for (recorded, schema) in recorded_rules() {
        let schema: Schema = serde_json::from_value(schema).expect("a schema");
        let mut walk = Walk::default();
        walk.visit(&schema, Decl::of(&schema, true), &Scope::root());
        let ours = walk.costs.first().map(|cost| (cost.once, cost.times));
        let agree = match (&recorded.error, ours) {
            (None, Some((once, times))) => {
                counts[0] += 1;
                (Some(once), Some(times)) == (recorded.cost, recorded.times)
            }
            // Unsupported expressions may cause a warning, but not an error.
            (None, None) => {
                counts[1] += 1;
                !walk.found.iter().any(|found| found.is_error())
            }
            (Some(_), ours) => {
                counts[2] += 1;
                // Some names are only rejected by older servers, so a warning suffices.
                let warns = walk.found.iter().any(|found| !found.is_error());
                warns || ours.is_none() && !walk.found.is_empty()
            }
        };
        if !agree {
            let found: Vec<_> = walk.found.iter().map(|found| &found.message).collect();
            differences.push(format!("{recorded:?}\n    ours: {ours:?} {found:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(
        counts[0] > 200 && counts[1] < 10 && counts[2] > 40,
        "priced, not understood, refused: {counts:?}"
    );
}

proptest::proptest! {
    /// Rules are user input, so the checker must not panic on any text.
    #[test]
    fn arbitrary_text_does_not_panic(words in proptest::collection::vec(word(), 0..40)) {
        let text: String = words.concat();
        let schema = r#"{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": ""}]}"#;
        let mut schema: Schema = serde_json::from_str(schema).expect("a schema");
        schema.validations[0].rule = text.clone();
        schema.validations[0].field_path = Some(text.clone());
        schema.validations[0].message_expression = Some(text);
        super::check_rules(&schema);
    }
}

fn word() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    const WORDS: &str = "self oldSelf .a .?a [ ] [? ( ) { } , : ? ! - + * / % && || == != < <= in has( size( .all(x, \
                         .map(x, .filter(x, .exists(i,x, .optMap(v, .sortBy(x, .orValue( 'a' \"b\" r'\\ ''' b'\\x41' \
                         1 2u 0x1F 1e9 9223372036854775808 99999999999999999999 true null `x` x i // \\ é \u{0} dyn(";
    prop_oneof![
        8 => proptest::sample::select(WORDS.split(' ').map(str::to_owned).collect::<Vec<_>>()),
        1 => ".{0,3}",
    ]
}

/// Checks a rule on an object with an integer `i` and a list of strings `l`.
fn check_errors(rule: &str, expected: &[&str]) {
    let schema = r#"{"type": "object", "properties": {"i": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}, "x-kubernetes-validations": [{"rule": ""}]}"#;
    let mut schema: Schema = serde_json::from_str(schema).expect("a schema");
    schema.validations[0].rule = rule.to_owned();
    let mut walk = Walk::default();
    walk.visit(&schema, Decl::of(&schema, true), &Scope::root());
    let errors = walk.found.into_iter().filter(|found| found.is_error());
    let errors: Vec<String> = errors.map(|found| found.message).collect();
    assert_eq!(errors, expected, "{rule}");
}

#[test]
fn reports_rules_that_do_not_compile() {
    check_errors(
        "'%z'.format([self.i]) == '1'",
        &["unrecognized formatting clause `%z`"],
    );
    check_errors("'%d%%'.format([self.i]) == '1%'", &[]);
    check_errors(
        "jsonpatch.escapeKey('a') == 'a'",
        &["unknown variable `jsonpatch`", "unknown function `escapeKey`"],
    );
    check_errors("self.l.shuffle().size() == 1", &["unknown function `shuffle`"]);
    check_errors("sign(quantity('1')) == 1", &[]);
    check_errors("[[1], [2]].flatten() == [1, 2]", &[]);
    check_errors(
        "[1, [2]].flatten(1).size() == 2",
        &["list items must have the same type, found int and list(int)"],
    );
    check_errors("self.`i` == 1", &[]);
    check_errors(
        "self.`i`(1)",
        &["syntax error at `(`: expected an operator or the end"],
    );
    check_errors(
        "`self`.i == 1",
        &["syntax error at ``self``: expected an expression"],
    );
    check_errors(
        "google.protobuf.Timestamp{seconds: 1} < timestamp('2030-01-01T00:00:00Z')",
        &[],
    );
    check_errors("google.protobuf.Duration{seconds: 1} == duration('1s')", &[]);
    check_errors(
        "Cup{size: 1} == Cup{}",
        &["`Cup{…}` creates a message, and Kubernetes declares no message types"; 2],
    );
}

#[test]
fn warns_of_names_in_backquotes() {
    let schema = r#"{"type": "object", "properties": {"i": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.`i` == 1"}]}"#;
    let schema: Schema = serde_json::from_str(schema).expect("a schema");
    let found = super::check_rules(&schema);
    let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(messages, ["older API servers accept no names in backquotes"]);
    assert!(!found[0].is_error());
}

#[test]
fn rejects_sign_as_method_and_flatten_of_strings() {
    for rule in ["quantity('1').sign() == 1", "self.l.flatten() == self.l"] {
        let schema = r#"{"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": ""}]}"#;
        let mut schema: Schema = serde_json::from_str(schema).expect("a schema");
        schema.validations[0].rule = rule.to_owned();
        assert!(
            super::check_rules(&schema).iter().any(|found| found.is_error()),
            "{rule}"
        );
    }
}
