//! Webhooks in a ClusterServiceVersion.

use rbuilder_generator::MANAGER_NAMESPACE;
use rbuilder_kubernetes::crd::{self, Crd};
use serde_json::{Value, json};

use super::Deployed;
use rbuilder_project::labels::{NAME_LABEL, NAMESPACE_LABEL};

const SAME: &[&str] = &[
    "admissionReviewVersions",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "reinvocationPolicy",
    "rules",
    "sideEffects",
    "timeoutSeconds",
];
/// Fields without a counterpart in a ClusterServiceVersion.
const LOST: &[&str] = &["namespaceSelector", "matchConditions"];

pub(super) fn define_webhooks(deployed: &Deployed, warnings: &mut Vec<(String, String)>) -> Vec<Value> {
    let mut definitions = Vec::new();
    for object in &deployed.objects {
        let kind = match object["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => "MutatingAdmissionWebhook",
            Some("ValidatingWebhookConfiguration") => "ValidatingAdmissionWebhook",
            Some(crd::KIND) if Crd::of(object).has_webhook() => {
                definitions.push(define_conversion(deployed, Crd::of(object)));
                continue;
            }
            _ => continue,
        };
        for webhook in object["webhooks"].as_array().into_iter().flatten() {
            for field in LOST.iter().filter(|field| is_lost(webhook, field)) {
                warnings.push((
                    format!("`{field}` of webhook `{}` is not part of the bundle: the Operator Lifecycle Manager has no such field", webhook["name"].as_str().unwrap_or_default()),
                    "check it in the handler instead".to_owned(),
                ));
            }
            let mut definition = define(deployed, &webhook["clientConfig"]["service"]);
            definition["type"] = json!(kind);
            definition["generateName"] = webhook["name"].clone();
            for field in SAME {
                if let Some(value) = webhook.get(*field) {
                    definition[*field] = value.clone();
                }
            }
            if excludes_own_namespace(webhook) && webhook.get("objectSelector").is_none() {
                definition["objectSelector"] = exclude_manager(&deployed.manager);
            }
            definitions.push(definition);
        }
    }
    definitions
}

fn is_lost(webhook: &Value, field: &str) -> bool {
    // The lifecycle manager itself restricts webhooks to the watched namespaces.
    let is_restriction = |condition: &Value| {
        let expression = condition["expression"].as_str().unwrap_or_default();
        condition["name"] == MANAGER_NAMESPACE && !expression.starts_with('!')
    };
    match &webhook[field] {
        Value::Null => false,
        Value::Array(conditions) => !conditions.iter().all(is_restriction),
        _ => true,
    }
}

fn excludes_own_namespace(webhook: &Value) -> bool {
    let own = &webhook["clientConfig"]["service"]["namespace"];
    let expressions = webhook["namespaceSelector"]["matchExpressions"].as_array();
    expressions.into_iter().flatten().any(|expression| {
        let values = expression["values"].as_array();
        expression["key"] == NAMESPACE_LABEL
            && expression["operator"] == "NotIn"
            && values.is_some_and(|values| values.contains(own))
    })
}

/// Object selector that excludes the manager's own pod. Stands in for a namespace selector, which
/// the lifecycle manager lacks.
fn exclude_manager(manager: &Value) -> Value {
    // A webhook that is called for the pod that serves it would keep this pod from starting.
    let labels = &manager["spec"]["template"]["metadata"]["labels"];
    json!({
        "matchExpressions": [
            { "key": NAME_LABEL, "operator": "NotIn", "values": [labels[NAME_LABEL]] },
        ],
    })
}

fn define_conversion(deployed: &Deployed, crd: Crd<'_>) -> Value {
    let webhook = &crd.conversion()["webhook"];
    let mut definition = define(deployed, &webhook["clientConfig"]["service"]);
    definition["type"] = json!("ConversionWebhook");
    definition["generateName"] = json!(format!("c{}.kb.io", crd.plural()));
    definition["admissionReviewVersions"] = webhook["conversionReviewVersions"].clone();
    definition["sideEffects"] = json!("None");
    definition["conversionCRDs"] = json!([crd.name()]);
    definition
}

/// Fields that follow from the Service of a webhook.
fn define(deployed: &Deployed, service: &Value) -> Value {
    let is_it =
        |object: &&Value| object["kind"] == "Service" && object["metadata"]["name"] == service["name"];
    let found = deployed.objects.iter().find(is_it);
    let port = found.map_or(Value::Null, |found| found["spec"]["ports"][0].clone());
    json!({
        "deploymentName": deployed.manager["metadata"]["name"],
        "containerPort": service.get("port").or(port.get("port")).cloned().unwrap_or(json!(443)),
        "targetPort": port.get("targetPort").cloned().unwrap_or(json!(9443)),
        "webhookPath": service["path"],
    })
}

pub(super) fn service_names(objects: &[Value]) -> Vec<Value> {
    let of_object = |object: &Value| -> Vec<Value> {
        let webhooks = object["webhooks"].as_array().into_iter().flatten();
        let mut names: Vec<Value> = webhooks
            .map(|webhook| webhook["clientConfig"]["service"]["name"].clone())
            .collect();
        names.push(Crd::of(object).conversion()["webhook"]["clientConfig"]["service"]["name"].clone());
        names
    };
    objects
        .iter()
        .flat_map(of_object)
        .filter(|name| !name.is_null())
        .collect()
}
