//! Verdicts and costs compared with those of kube-apiserver's own code, recorded for some 260 rules.

use rbuilder_schema::Schema;

use super::recorded::recorded_rules;
use super::rules::{Scope, Walk};
use super::types::Decl;

#[test]
fn verdicts_and_costs_are_those_of_the_api_server() {
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
            // The expression is not understood, which is no more than a warning.
            (None, None) => {
                counts[1] += 1;
                !walk.found.iter().any(|found| found.is_error())
            }
            (Some(_), ours) => {
                counts[2] += 1;
                // A warning may be what we know of it: older servers reject some names of fields.
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
    /// Any string in a rule is checked or reported, without a panic.
    #[test]
    fn no_text_is_too_odd(words in proptest::collection::vec(word(), 0..40)) {
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
