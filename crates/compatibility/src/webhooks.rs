//! Compares webhook configurations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::change::Change;
use crate::place::{Place, list, text};

/// Scalar keys, with the API server's default and the rule for changes.
const KEYS: &[(&str, &str, &str)] = &[
    ("failurePolicy", "Fail", "failure-policy-changed"),
    ("matchPolicy", "Equivalent", "match-policy-changed"),
    ("reinvocationPolicy", "Never", "reinvocation-policy-changed"),
];

pub(crate) fn compare_webhooks(old: Option<&Value>, new: Option<&Value>, place: &Place) -> Vec<Change> {
    let none = Value::Null;
    let (before, after) = (
        list(&old.unwrap_or(&none)["webhooks"]),
        list(&new.unwrap_or(&none)["webhooks"]),
    );
    let is_new = |webhook: &Value| !before.iter().any(|before| before["name"] == webhook["name"]);
    let mut changes = Vec::new();
    for webhook in after.iter().filter(|webhook| is_new(webhook)) {
        let message = format!(
            "new, with failure policy {}",
            value_of(webhook, "failurePolicy", "Fail")
        );
        changes.push(place.change("webhook-added", &field(webhook, ""), message));
    }
    for webhook in &before {
        match after.iter().find(|after| after["name"] == webhook["name"]) {
            None => changes.push(place.change("webhook-removed", &field(webhook, ""), "removed".to_owned())),
            Some(after) => compare(webhook, after, place, &mut changes),
        }
    }
    changes
}

fn field(webhook: &Value, key: &str) -> String {
    let name = text(&webhook["name"]);
    match key {
        "" => format!("webhooks[{name}]"),
        key => format!("webhooks[{name}].{key}"),
    }
}

fn value_of(webhook: &Value, key: &str, default: &str) -> String {
    webhook[key].as_str().unwrap_or(default).to_owned()
}

fn compare(before: &Value, after: &Value, place: &Place, changes: &mut Vec<Change>) {
    let mut add = |rule: &str, key: &str, message: String| {
        changes.push(place.change(rule, &field(before, key), message));
    };
    for (key, default, rule) in KEYS {
        let (old, new) = (value_of(before, key, default), value_of(after, key, default));
        if old != new {
            add(rule, key, format!("{new} instead of {old}"));
        }
    }
    compare_side_effects(before, after, &mut add);
    let (old, new) = (target(before), target(after));
    if old != new {
        add(
            "webhook-target-changed",
            "clientConfig",
            format!("{new} instead of {old}"),
        );
    }
    let (old, new) = (calls(before), calls(after));
    for call in new
        .iter()
        .filter(|call| !old.iter().any(|other| covers(other, call)))
    {
        add(
            "webhook-rules-widened",
            "rules",
            format!("is called for {}", describe(call)),
        );
    }
    for call in old
        .iter()
        .filter(|call| !new.iter().any(|other| covers(other, call)))
    {
        add(
            "webhook-rules-narrowed",
            "rules",
            format!("is not called for {}", describe(call)),
        );
    }
    for key in ["namespaceSelector", "objectSelector"] {
        // An absent selector is equivalent to an empty one, which selects everything.
        let selector = |webhook: &Value| match &webhook[key] {
            Value::Null => json!({}),
            selector => selector.clone(),
        };
        if selector(before) != selector(after) {
            add(
                "webhook-selector-changed",
                key,
                format!("{} instead of {}", selector(after), selector(before)),
            );
        }
    }
    let conditions = |webhook: &Value| -> BTreeSet<String> {
        // Compare only the expressions, since names of conditions have no effect.
        list(&webhook["matchConditions"])
            .into_iter()
            .map(|condition| text(&condition["expression"]))
            .collect()
    };
    let (old, new) = (conditions(before), conditions(after));
    for condition in new.difference(&old) {
        add(
            "match-conditions-changed",
            "matchConditions",
            format!("is only called if `{condition}`"),
        );
    }
    for condition in old.difference(&new) {
        add(
            "match-conditions-changed",
            "matchConditions",
            format!("is also called if not `{condition}`"),
        );
    }
    // The API server defaults to 10 seconds.
    let seconds = |webhook: &Value| webhook["timeoutSeconds"].as_i64().unwrap_or(10);
    if seconds(before) != seconds(after) {
        let message = format!("{} instead of {}", seconds(after), seconds(before));
        add("webhook-timeout-changed", "timeoutSeconds", message);
    }
    let versions = |webhook: &Value| {
        list(&webhook["admissionReviewVersions"])
            .into_iter()
            .map(text)
            .collect::<BTreeSet<_>>()
    };
    for version in versions(before).difference(&versions(after)) {
        add(
            "review-version-removed",
            "admissionReviewVersions",
            format!("without `{version}`"),
        );
    }
}

fn compare_side_effects(before: &Value, after: &Value, add: &mut dyn FnMut(&str, &str, String)) {
    let key = "sideEffects";
    let (old, new) = (value_of(before, key, "Unknown"), value_of(after, key, "Unknown"));
    if old == new {
        return;
    }
    let rule = match new.as_str() {
        // Only these values are valid in `v1`.
        "None" | "NoneOnDryRun" => "side-effects-changed",
        _ => "side-effects-refused",
    };
    add(rule, key, format!("{new} instead of {old}"));
}

/// The URL that the API server calls, without the CA bundle, which tools inject.
fn target(webhook: &Value) -> String {
    let config = &webhook["clientConfig"];
    if let Some(url) = config["url"].as_str() {
        return format!("`{url}`");
    }
    let service = &config["service"];
    let port = service["port"].as_u64().unwrap_or(443);
    let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
    let path = text(&service["path"]);
    format!(
        "`https://{name}.{namespace}:{port}/{}`",
        path.trim_start_matches('/')
    )
}

/// Group, version, resource, operation and scope.
type Call = [String; 5];

const RESOURCE: usize = 2;

fn calls(webhook: &Value) -> BTreeSet<Call> {
    let mut calls = BTreeSet::new();
    for rule in list(&webhook["rules"]) {
        let texts = |key: &str| -> Vec<String> { list(&rule[key]).into_iter().map(text).collect() };
        let scope = rule["scope"].as_str().unwrap_or("*").to_owned();
        for group in texts("apiGroups") {
            for version in texts("apiVersions") {
                for resource in texts("resources") {
                    for operation in texts("operations") {
                        calls.insert([
                            group.clone(),
                            version.clone(),
                            resource.clone(),
                            operation,
                            scope.clone(),
                        ]);
                    }
                }
            }
        }
    }
    calls
}

fn covers(own: &Call, other: &Call) -> bool {
    let [own_resource, other_resource] = [&own[RESOURCE], &other[RESOURCE]];
    let mut parts = own.iter().zip(other).enumerate();
    intercepts_resource(own_resource, other_resource)
        && parts.all(|(at, (own, other))| at == RESOURCE || own == "*" || own == other)
}

/// Unlike in roles, `*` doesn't include subresources; `*/*` does. See `RuleWithOperations` in
/// k8s.io/api/admissionregistration/v1.
fn intercepts_resource(own: &str, other: &str) -> bool {
    let (own, own_part) = own.split_once('/').unwrap_or((own, ""));
    let (other, other_part) = other.split_once('/').unwrap_or((other, ""));
    (own == "*" || own == other) && (own_part == "*" || own_part == other_part)
}

fn describe([group, version, resource, operation, scope]: &Call) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let scope = match scope.as_str() {
        "*" => String::new(),
        scope => format!(", scope {scope}"),
    };
    format!("{operation} of `{resource}` in `{group}/{version}`{scope}")
}
