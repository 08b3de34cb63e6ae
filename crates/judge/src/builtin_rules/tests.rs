//! Compares the rules with what kube-apiserver says, as recorded by `cargo xtask builtin`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::find_violations;
use crate::builtin_defaults::set_defaults;

#[derive(Deserialize)]
struct Recorded {
    object: Value,
    #[serde(default)]
    causes: BTreeSet<String>,
}

/// Number of recorded errors that have no rule. Lower it with each new rule.
const WITHOUT_RULE: usize = 111;

fn check(recorded: &Recorded) -> (BTreeSet<String>, &BTreeSet<String>) {
    let mut object = recorded.object.clone();
    object["metadata"]["namespace"] = "default".into();
    let (group, _) = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .unwrap_or(("", ""));
    let (group, kind) = (
        group.to_owned(),
        object["kind"].as_str().expect("a kind").to_owned(),
    );
    set_defaults(&group, &kind, &mut object);
    let found = find_violations(&group, &kind, &object, None);
    (found.iter().map(ToString::to_string).collect(), &recorded.causes)
}

#[test]
fn objects_are_refused_with_the_words_of_the_server() {
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for line in include_str!("../../tests/builtin.jsonl").lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a line");
        let (found, expected) = check(&recorded);
        for error in found.difference(expected) {
            wrong.push(format!(
                "{}\n  here:   {error}\n  server: {expected:?}",
                recorded.object
            ));
        }
        missing.extend(expected.difference(&found).cloned());
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(missing.len(), WITHOUT_RULE, "\n{}", missing.join("\n"));
}
