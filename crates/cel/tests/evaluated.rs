//! Compares the results of evaluating rules with kube-apiserver's, as recorded by `cargo xtask cel`
//! (see xtask/src/cel/evaluation.rs for the format).

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_cel::{Budget, RuleSet, Violation, ViolationKind};
use rbuilder_schema::{Cel, Reason, Schema};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Cases {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    schema: Value,
    value: Value,
    old: Option<Value>,
}

/// Results of the API server that the evaluator does not support, by prefix, with the reason.
const UNKNOWN_HERE: &[(&str, &str)] = &[
    (
        "!internal error",
        "the API server panics, and its text is that of Go",
    ),
    ("!invalid qualifier type", "the text names a type of Go"),
];

#[test]
fn rules_evaluate_as_in_the_api_server() {
    let cases: Cases = serde_json::from_str(include_str!("evaluated/cases.json")).expect("cases");
    let groups: BTreeMap<&str, &Group> = cases.groups.iter().map(|group| (&*group.name, group)).collect();
    let mut group = &cases.groups[0];
    let (mut count, mut unsupported) = (0, 0);
    let mut wrong = Vec::new();
    for line in include_str!("evaluated/recorded.jsonl").lines() {
        let line: Value = serde_json::from_str(line).expect("a line");
        if let Some(name) = line["group"].as_str() {
            group = groups[name];
            continue;
        }
        count += 1;
        let (source, says) = (&line[0], &line[1]);
        let found = evaluate(group, source, says);
        let text = says.as_str().unwrap_or_default();
        let is_listed = UNKNOWN_HERE.iter().any(|(start, _)| text.starts_with(start));
        match found {
            found if found == *says => {}
            found if found == UNKNOWN && is_listed => unsupported += 1,
            found => wrong.push(format!(
                "{}: {source}\n  server: {says}\n  here:   {found}",
                group.name
            )),
        }
    }
    assert!(count > 3000, "{count} cases");
    assert!(
        unsupported * 50 < count,
        "{unsupported} of {count} cases are not supported"
    );
    let shown: Vec<String> = wrong.iter().take(400).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}

#[derive(Deserialize)]
struct Published {
    of: String,
    rule: Value,
    schema: Value,
    /// A new value, the verdict, and the old value if it's an update.
    writes: Vec<Vec<Value>>,
}

/// The rules are from published CRDs (see xtask/src/cel/published.rs).
#[test]
fn published_rules_evaluate_as_in_the_api_server() {
    let (mut rules, mut refusing, mut wrong) = (BTreeSet::new(), 0, Vec::new());
    for line in include_str!("published.jsonl").lines() {
        let line: Published = serde_json::from_str(line).expect("a line");
        let mut group = Group {
            name: line.of,
            schema: line.schema,
            value: Value::Null,
            old: None,
        };
        let mut is_refusing = false;
        for write in &line.writes {
            (group.value, group.old) = (write[0].clone(), write.get(2).cloned());
            let says = &write[1];
            let found = evaluate(&group, &line.rule, says);
            if found != *says {
                let Group { name, value, old, .. } = &group;
                wrong.push(format!(
                    "{name}: {}\n  old: {old:?}\n  new: {value}\n  server: {says}\n  here:   {found}",
                    line.rule
                ));
            }
            is_refusing |= *says != json!(true) && !says.is_null();
        }
        refusing += usize::from(is_refusing);
        rules.insert(line.rule.to_string());
    }
    let count = wrong.len();
    wrong.truncate(40);
    assert!(count == 0, "{count} writes differ:\n{}", wrong.join("\n"));
    let rules = rules.len();
    assert!(
        rules >= 600 && refusing * 2 > rules,
        "{refusing} of {rules} rules refuse a write"
    );
}

const UNKNOWN: &str = "unsupported";

/// Evaluates a case. The result has the form of the record.
fn evaluate(group: &Group, source: &Value, says: &Value) -> Value {
    let is_print = says.is_string() && source.is_string();
    let rule = match source {
        Value::String(expression) if is_print => {
            let text = format!("'%s'.format([{expression}])");
            json!({ "rule": format!("{text} == 'never'"), "messageExpression": text })
        }
        Value::String(expression) => json!({ "rule": expression }),
        rule => rule.clone(),
    };
    let schema: Schema = serde_json::from_value(group.schema.clone()).expect("a schema");
    let rule: Cel = serde_json::from_value(rule).expect("a rule");
    let rules = RuleSet::compile(std::slice::from_ref(&rule), &schema, false);
    let mut budget = Budget::per_object();
    let found = rules.evaluate(&group.value, group.old.as_ref(), &schema, &mut budget);
    match (found.first(), source) {
        (Some(violation), _) if violation.detail.starts_with("rule compile error") => json!("rejected"),
        (Some(violation), _) if violation.kind == ViolationKind::Unsupported => json!(UNKNOWN),
        (None, Value::Object(_)) => Value::Null,
        (Some(violation), Value::Object(_)) => {
            let field = violation.field.as_ref().map(|field| format!(".{field}"));
            json!({ "field": field.unwrap_or_default(), "message": message(violation, &schema, &group.value) })
        }
        (None, _) => json!(true),
        (Some(violation), _) if violation.kind == ViolationKind::Errors => {
            let rule = rule.rule.trim();
            let text = violation
                .detail
                .strip_suffix(&format!(" evaluating rule: {rule}"))
                .or_else(|| violation.detail.strip_suffix(&format!(" for rule: {rule}")));
            json!(format!("!{}", text.unwrap_or(&violation.detail)))
        }
        (Some(violation), _) if is_print && !violation.detail.starts_with("failed rule: ") => {
            // For scalars, the value is shown before the message.
            match group.value.is_object() || group.value.is_array() {
                true => json!(violation.detail),
                false => json!(format!("{}: {}", group.value, violation.detail)),
            }
        }
        (Some(_), _) if is_print => json!(""),
        (Some(_), _) => json!(false),
    }
}

/// Formats an error like the API server.
fn message(violation: &Violation, schema: &Schema, value: &Value) -> String {
    let kind = serde_json::to_value(schema.schema_type).expect("a type");
    let shown = match violation.kind {
        ViolationKind::Fails if value.is_object() || value.is_array() => None,
        ViolationKind::Fails => Some(value.to_string()),
        _ => Some(kind.to_string()),
    };
    let detail = &violation.detail;
    match (violation.reason, shown) {
        (Reason::FieldValueForbidden, _) => format!("Forbidden: {detail}"),
        (Reason::FieldValueRequired, _) => format!("Required value: {detail}"),
        (Reason::FieldValueDuplicate, Some(shown)) => format!("Duplicate value: {shown}"),
        (Reason::FieldValueDuplicate, None) => "Duplicate value".to_owned(),
        (Reason::FieldValueInvalid, Some(shown)) => format!("Invalid value: {shown}: {detail}"),
        (Reason::FieldValueInvalid, None) => format!("Invalid value: {detail}"),
    }
}
