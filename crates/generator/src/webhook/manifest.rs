//! Prints webhook configurations in the format of controller-gen.

use rbuilder_syntax::{LabelSelector, WebhookKind};
use serde_json::{Map, Value, json};

use super::Entry;
use crate::{OutputFile, yaml};

/// Prints the configurations. The entries must be sorted by kind, configuration and name.
/// `service` is called where a marker names no other.
pub(super) fn print_file(entries: &[Entry<'_>], service: &str) -> OutputFile {
    let documents =
        entries.chunk_by(|a, b| (a.webhook.kind, a.configuration) == (b.webhook.kind, b.configuration));
    let text: String = documents
        .map(|webhooks| format!("---\n{}", yaml::to_string(&configuration(webhooks, service))))
        .collect();
    OutputFile {
        path: "webhook/manifests.yaml".into(),
        text,
    }
}

/// The name of match conditions on the manager's namespace. The first string in the expression,
/// `'system'`, is a placeholder for the namespace.
pub const MANAGER_NAMESPACE: &str = "manager-namespace";
/// Kustomizations select configurations with such a condition by this annotation.
const ANNOTATION: &str = "rbuilder.dev/manager-namespace";

fn configuration(entries: &[Entry<'_>], service: &str) -> Value {
    let first = &entries[0];
    let mut metadata = json!({ "name": first.configuration });
    if names_manager_namespace(entries) {
        metadata["annotations"] = json!({ ANNOTATION: "matchConditions" });
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": match first.webhook.kind {
            WebhookKind::Mutating => "MutatingWebhookConfiguration",
            WebhookKind::Validating => "ValidatingWebhookConfiguration",
        },
        "metadata": metadata,
        "webhooks": entries.iter().map(|entry| webhook(entry, service)).collect::<Vec<_>>(),
    })
}

/// Returns true if the namespace has to be replaced, e.g. by a Kustomization.
fn names_manager_namespace(entries: &[Entry<'_>]) -> bool {
    let conditions = entries.iter().flat_map(|entry| &entry.webhook.match_conditions);
    let mut named = conditions
        .filter(|condition| condition.name == MANAGER_NAMESPACE)
        .peekable();
    // Every such condition needs a placeholder: kustomize fails without one.
    named.peek().is_some() && named.all(|condition| condition.expression.contains('\''))
}

fn webhook(entry: &Entry<'_>, service: &str) -> Value {
    let marker = entry.webhook;
    let mut value = json!({
        "admissionReviewVersions": marker.admission_review_versions,
        "clientConfig": client(entry, service),
        "failurePolicy": marker.failure_policy,
        "name": entry.name,
        "rules": [rule(entry)],
        "sideEffects": marker.side_effects,
    });
    for (key, word) in [
        ("matchPolicy", marker.match_policy),
        ("reinvocationPolicy", marker.reinvocation_policy),
    ] {
        if let Some(word) = word {
            value[key] = word.into();
        }
    }
    if let Some(seconds) = marker.timeout_seconds {
        value["timeoutSeconds"] = seconds.into();
    }
    for (key, labels) in [
        ("namespaceSelector", &marker.namespace_selector),
        ("objectSelector", &marker.object_selector),
    ] {
        if let Some(labels) = labels {
            value[key] = selector(labels);
        }
    }
    if !marker.match_conditions.is_empty() {
        value["matchConditions"] = marker
            .match_conditions
            .iter()
            .map(|condition| json!({ "expression": condition.expression, "name": condition.name }))
            .collect();
    }
    value
}

fn client(entry: &Entry<'_>, service: &str) -> Value {
    let marker = entry.webhook;
    let Some(path) = &entry.path else {
        return json!({ "url": marker.url });
    };
    let mut service = json!({
        "name": marker.service_name.as_deref().unwrap_or(service),
        "namespace": marker.service_namespace.as_deref().unwrap_or("system"),
        "path": path,
    });
    if let Some(port) = marker.service_port {
        service["port"] = port.into();
    }
    json!({ "service": service })
}

fn rule(entry: &Entry<'_>) -> Value {
    let mut rule = json!({
        "apiGroups": entry.groups,
        "apiVersions": entry.versions,
        "operations": entry.webhook.operations,
        "resources": entry.resources,
    });
    if let Some(scope) = entry.webhook.scope {
        rule["scope"] = scope.into();
    }
    rule
}

fn selector(labels: &LabelSelector) -> Value {
    let mut value = Map::new();
    if !labels.match_labels.is_empty() {
        value.insert("matchLabels".into(), json!(labels.match_labels));
    }
    if !labels.match_expressions.is_empty() {
        let expressions = labels.match_expressions.iter().map(|requirement| {
            let mut value = json!({ "key": requirement.key, "operator": requirement.operator });
            if !requirement.values.is_empty() {
                value["values"] = json!(requirement.values);
            }
            value
        });
        value.insert("matchExpressions".into(), expressions.collect());
    }
    Value::Object(value)
}
