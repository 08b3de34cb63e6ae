//! A case for each rule: two states, the level, the affected parties, and the object that shows it.

#![allow(clippy::disallowed_methods)] // the last test reads the guide

mod cases;

use std::collections::BTreeSet;

use rbuilder_compatibility::{Change, Effect, Level, RULES, compare};
use serde_json::Value;

use cases::{Case, Shown, cases};

fn run(case: &Case) -> Vec<Change> {
    let objects = |value: &Value| match value {
        Value::Null => Vec::new(),
        value => vec![value.clone()],
    };
    compare(&objects(&case.old), &objects(&case.new))
        .unwrap_or_else(|reason| panic!("{}: {reason}", case.name))
}

fn shown(change: &Change) -> Shown {
    match change.witness.as_ref().map(|witness| &witness.effect) {
        None => Shown::Nothing,
        Some(Effect::Refused(_)) => Shown::Refused,
        Some(Effect::ReadsDifferently { .. }) => Shown::ReadsDifferently,
    }
}

#[test]
fn each_case_is_classified() {
    let mut failures = Vec::new();
    for case in cases() {
        let changes = run(&case);
        let found: Vec<&Change> = changes
            .iter()
            .filter(|change| change.rule.name == case.rule)
            .collect();
        let [change] = found[..] else {
            failures.push(format!(
                "{}: expected one change `{}`, found {changes:#?}",
                case.name, case.rule
            ));
            continue;
        };
        let parties: BTreeSet<&str> = change.affects.iter().map(|party| party.as_str()).collect();
        let found = (change.level.as_str(), parties, shown(change));
        let expected = (
            case.level.as_str(),
            case.affects.iter().copied().collect(),
            case.shown,
        );
        if found != expected {
            failures.push(format!(
                "{}:\n  expected {expected:?}\n  found    {found:?}\n  {change:?}",
                case.name
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Of several changes, each is shown by an object that breaks because of it.
#[test]
fn changes_are_judged_alone() {
    let check = |old: Value, new: Value, expected: &[(&str, Level, &str)]| {
        let crd = |schema: &Value| cases::crd(&cases::object(schema));
        let changes = compare(&[crd(&old)], &[crd(&new)]).expect("comparable");
        let found: Vec<(&str, Level, String)> = changes
            .iter()
            .map(|change| {
                let effect = change.witness.as_ref().map(|witness| &witness.effect);
                let said = match effect {
                    Some(Effect::Refused(messages)) => messages.join("; "),
                    _ => String::new(),
                };
                (change.rule.name, change.level, said)
            })
            .collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for ((name, level, said), (rule, expected, part)) in found.iter().zip(expected) {
            let is_said = said.contains(part) && (!part.is_empty() || said.is_empty());
            assert!((name, level) == (rule, expected) && is_said, "{found:#?}");
        }
    };
    let spec = |a: Value| serde_json::json!({ "type": "object", "properties": { "a": a } });
    check(
        spec(serde_json::json!({ "type": "string" })),
        spec(serde_json::json!({ "type": "string", "minLength": 1, "maxLength": 256 })),
        &[
            ("minimum-added", Level::Breaking, "at least 1 chars"),
            ("maximum-added", Level::Breaking, "more than 256"),
        ],
    );
    check(
        spec(serde_json::json!({ "type": "string", "maxLength": 63, "enum": ["aa", "b1"] })),
        spec(
            serde_json::json!({ "type": "string", "maxLength": 60, "enum": ["aa", "b1"], "pattern": "^[a-z]+$" }),
        ),
        &[
            ("pattern-added", Level::Breaking, "should match '^[a-z]+$'"),
            ("maximum-lowered", Level::Compatible, ""),
        ],
    );
    check(
        spec(serde_json::json!({ "type": "integer", "maximum": 600, "exclusiveMaximum": true })),
        spec(serde_json::json!({ "type": "integer", "maximum": 599 })),
        &[],
    );
    check(
        spec(serde_json::json!({ "type": "string", "enum": ["a"] })),
        spec(serde_json::json!({ "type": "string", "enum": ["b"] })),
        &[
            ("enum-value-removed", Level::Breaking, "supported values: \"b\""),
            ("enum-value-added", Level::Risky, ""),
        ],
    );
}

/// The API server fills in the names that a CRD leaves out.
#[test]
fn default_names_are_no_change() {
    let named = cases::crd(&cases::object(&serde_json::json!({ "type": "object" })));
    let mut unnamed = named.clone();
    let names = unnamed["spec"]["names"].as_object_mut().expect("names");
    names.retain(|key, _| key != "singular" && key != "listKind");
    for (old, new) in [(&named, &unnamed), (&unnamed, &named)] {
        assert_eq!(
            compare(std::slice::from_ref(old), std::slice::from_ref(new)),
            Ok(Vec::new())
        );
    }
}

/// Objects with a status are stored without it first, which needs a valid `spec`.
#[test]
fn objects_with_status_have_valid_spec() {
    let schema = |required: &[&str]| {
        let status = serde_json::json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": required });
        let spec = serde_json::json!({
            "type": "object", "properties": { "name": { "type": "string" } },
            "x-kubernetes-validations": [{ "rule": "has(self.name) && self.name == 'x'" }],
        });
        let mut crd = cases::crd(&serde_json::json!({
            "type": "object", "properties": { "spec": spec, "status": status }, "required": ["spec"],
        }));
        crd["spec"]["versions"][0]["subresources"] = serde_json::json!({ "status": {} });
        crd
    };
    let changes = compare(&[schema(&[])], &[schema(&["a"])]).expect("comparable");
    let [change] = &changes[..] else {
        panic!("{changes:#?}")
    };
    let witness = change.witness.as_ref().expect("an object");
    assert_eq!(
        witness.object["spec"],
        serde_json::json!({ "name": "x" }),
        "{change:#?}"
    );
}

/// The rules of the whole object see the status, which is only written through the subresource.
#[test]
fn rules_of_the_object_are_tried_with_its_status() {
    let schema = |rules: Value| {
        let integers = |name: &str| serde_json::json!({ "type": "object", "properties": { name: { "type": "integer" } } });
        let mut crd = cases::crd(&serde_json::json!({
            "type": "object", "properties": { "spec": integers("a"), "status": integers("n") },
            "x-kubernetes-validations": rules,
        }));
        crd["spec"]["versions"][0]["subresources"] = serde_json::json!({ "status": {} });
        crd
    };
    let has_both = "!has(self.status) || !has(self.status.n) || !has(self.spec) || !has(self.spec.a)";
    for (rule, level, party) in [
        (
            "!has(self.status) || !has(self.status.n) || self.status.n <= 5".to_owned(),
            Level::Breaking,
            "the operator",
        ),
        (
            format!("{has_both} || self.status.n <= self.spec.a"),
            Level::Breaking,
            "the operator",
        ),
        (
            format!("{has_both} || self.status.n <= oldSelf.status.n + 1"),
            Level::Breaking,
            "the operator",
        ),
        (
            "has(self.status) || !has(self.spec)".to_owned(),
            Level::Breaking,
            "clients that write",
        ),
        (
            "!has(self.status) || size(self.metadata.name) > 0".to_owned(),
            Level::Risky,
            "clients that write",
        ),
    ] {
        let new = schema(serde_json::json!([{ "rule": rule, "message": "related" }]));
        let changes = compare(&[schema(serde_json::json!([]))], &[new]).expect("comparable");
        let [change] = &changes[..] else {
            panic!("{changes:#?}")
        };
        let parties: Vec<&str> = change.affects.iter().map(|party| party.as_str()).collect();
        assert!(
            change.level == level && parties.contains(&party),
            "{rule}: {change:#?}"
        );
    }
}

/// A value that a new default fills in isn't one of the old values.
#[test]
fn rules_about_new_defaults_are_searched() {
    let field = |x: Value| serde_json::json!({ "type": "object", "properties": { "x": x } });
    let old = field(serde_json::json!({ "type": "string", "enum": ["a"] }));
    let with_rule = |x: Value| {
        let mut new = field(x);
        new["x-kubernetes-validations"] = serde_json::json!([{ "rule": "!has(self.x) || self.x != 'b'" }]);
        let crd = |schema: &Value| cases::crd(&cases::object(schema));
        let changes = compare(&[crd(&old)], &[crd(&new)]).expect("comparable");
        let rule = changes.iter().find(|change| change.rule.name == "rule-added");
        rule.expect("the rule is new").level
    };
    let plain = serde_json::json!({ "type": "string", "enum": ["a", "b"] });
    assert_eq!(with_rule(plain.clone()), Level::Compatible);
    let mut filled = plain;
    filled["default"] = "b".into();
    assert_eq!(with_rule(filled), Level::Risky);
}

/// The new default violates the old rule, but the new rule allows it.
#[test]
fn default_counts_only_objects_that_the_new_rules_refuse_too() {
    let schema = |a: Value, rule: &str| {
        cases::crd(&cases::object(&serde_json::json!({
            "type": "object", "properties": { "a": a, "b": { "type": "integer" } },
            "x-kubernetes-validations": [{ "rule": rule }],
        })))
    };
    let old = schema(
        serde_json::json!({ "type": "integer" }),
        "!has(self.a) || has(self.b)",
    );
    let new = schema(
        serde_json::json!({ "type": "integer", "default": 1 }),
        "!has(self.a) || self.a == 1 || has(self.b)",
    );
    let changes = compare(&[old], &[new]).expect("comparable");
    let default = changes.iter().find(|change| change.rule.name == "default-added");
    let default = default.expect("a change of the default");
    assert_eq!(default.level, Level::Risky, "{default:#?}");
    assert_eq!(shown(default), Shown::ReadsDifferently, "{default:#?}");
}

#[test]
fn no_case_has_other_changes_that_break() {
    for case in cases() {
        for change in run(&case) {
            let is_expected = change.rule.name == case.rule || case.also.contains(&change.rule.name);
            assert!(
                is_expected || change.level == Level::Compatible,
                "{}: {change:?}",
                case.name
            );
        }
    }
}

#[test]
fn each_rule_has_a_case() {
    let mut tested: BTreeSet<&str> = cases().iter().map(|case| case.rule).collect();
    // This rule concerns a single state, and is tested in `losses.rs`.
    tested.insert("conversion-loses-field");
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(rules.len(), RULES.len(), "names of rules are unique");
    assert_eq!(tested, rules);
}

#[test]
fn field_that_was_lost_before_is_no_change() {
    let versions = cases();
    let lost = versions.iter().find(|case| case.rule == "conversion-missing");
    let before = &lost.expect("a case").new;
    let mut after = before.clone();
    for version in after["spec"]["versions"].as_array_mut().expect("versions") {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["c"] =
            serde_json::json!({ "type": "string" });
    }
    let changes = compare(std::slice::from_ref(before), &[after]).expect("comparable");
    let rules: Vec<&str> = changes.iter().map(|change| change.rule.name).collect();
    assert_eq!(rules, ["field-added", "field-added"]);
}

#[test]
fn equal_manifests_have_no_changes() {
    for case in cases() {
        for state in [&case.old, &case.new] {
            let same = [state.clone()];
            assert_eq!(compare(&same, &same), Ok(Vec::new()), "{}", case.name);
        }
    }
}

/// Returns the table of rules in docs/compatibility.md.
fn table() -> String {
    let mut table = "| rule | level | without an example | reason |\n|---|---|---|---|\n".to_owned();
    for rule in RULES {
        let unproven = match rule.unproven == rule.level {
            true => "",
            false => rule.unproven.as_str(),
        };
        let (name, level, reason) = (rule.name, rule.level.as_str(), rule.reason);
        table.push_str(&format!("| `{name}` | {level} | {unproven} | {reason} |\n"));
    }
    table
}

#[test]
fn guide_lists_all_rules() {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
    let page = std::fs::read_to_string(PAGE).expect("the page of the guide");
    let start = page.find("| rule | level |").expect("a table of rules");
    let end = start + page[start..].find("\n\n").expect("the end of the table") + 1;
    if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
        std::fs::write(PAGE, format!("{}{}{}", &page[..start], table(), &page[end..])).expect("a file");
        return;
    }
    let advice = "SNAPSHOTS=overwrite cargo test -p rbuilder-compatibility writes the table";
    assert_eq!(&page[start..end], table(), "{advice}");
}
