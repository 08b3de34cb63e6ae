//! Compares what rules grant with the answers of kube-apiserver to SubjectAccessReviews.
//!
//! `cargo xtask kubernetes` records the answers.

// The table is read from disk.
#![allow(clippy::disallowed_methods)]

use rbuilder_kubernetes::rbac::{Permission, Rule, Target, is_granted};
use serde_json::Value;

fn target_of(review: &Value) -> Target {
    let text = |name: &str| review[name].as_str().unwrap_or_default().to_owned();
    if let Some(path) = review["path"].as_str() {
        return Target::Url(path.to_owned());
    }
    let resource = match review["subresource"].as_str() {
        Some(subresource) => format!("{}/{subresource}", text("resource")),
        None => text("resource"),
    };
    Target::Resource {
        group: text("group"),
        resource,
        name: review["name"].as_str().map(str::to_owned),
    }
}

#[test]
fn rules_grant_what_the_server_says() {
    let table = include_str!("grants.jsonl");
    assert!(table.lines().count() > 40);
    for line in table.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let rule = Rule::read(&case["rule"]);
        let wanted = Permission {
            namespace: None,
            target: target_of(&case["review"]),
            verb: case["review"]["verb"].as_str().unwrap().to_owned(),
        };
        let allowed = case["allowed"].as_bool().unwrap();
        assert_eq!(rule.grants(&wanted.verb, &wanted.target), allowed, "{line}");
        // A rule grants what one of its permissions grants.
        let permissions = rule.permissions(None).into_iter().collect();
        assert_eq!(is_granted(&wanted, &permissions), allowed, "{line}");
    }
}
