//! Our verdicts and prices against those of kube-apiserver's own code, recorded for some 250 rules.

use rbuilder_schema::Schema;
use serde::Deserialize;

use super::rules::examine_all;

/// One rule as kube-apiserver's code judges it.
#[derive(Deserialize)]
struct Recorded {
    schema: usize,
    path: String,
    rule: String,
    error: Option<String>,
    cost: Option<u64>,
    times: Option<u64>,
}

#[test]
fn verdicts_and_costs_are_those_of_the_api_server() {
    let schemas: Vec<Schema> = include_str!("../tests/schemas.json")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a schema"))
        .collect();
    let recorded: Vec<Recorded> = include_str!("../tests/recorded.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let ours: Vec<_> = schemas.iter().map(examine_all).collect();
    let mut differences = Vec::new();
    for record in &recorded {
        let Some((_, _, examined, times)) = ours[record.schema]
            .iter()
            .find(|(path, rule, ..)| *path == record.path && *rule == record.rule)
        else {
            differences.push(format!("{} {}: not examined", record.path, record.rule));
            continue;
        };
        let refused = examined.diagnostics.iter().find(|found| found.is_error());
        let agree = match (&record.error, refused) {
            (None, None) => {
                examined.cost.is_none() || (examined.cost == record.cost && Some(*times) == record.times)
            }
            (Some(_), found) => found.is_some() || !examined.diagnostics.is_empty(),
            (None, Some(_)) => false,
        };
        if !agree {
            differences.push(format!(
                "{} {}\n    server: {:?} {:?} times {:?}\n    ours:   {:?} {:?} times {times}",
                record.path, record.rule, record.error, record.cost, record.times, refused, examined.cost,
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}

proptest::proptest! {
    /// Whatever stands in a rule, it is read or complained about.
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
