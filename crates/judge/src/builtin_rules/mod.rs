//! Rules for built-in kinds that kube-apiserver implements in code. Covers the rules that operators
//! break most often: bounds, names and enumerations of single fields (`kinds`, `rows`), and what
//! several fields must be together. Objects have their defaults.
//!
//! Follows `pkg/apis/*/validation` of Kubernetes. What the server says about wrong objects is recorded
//! in `crates/judge/tests/builtin.jsonl`.

mod kinds;
mod objects;
mod pods;
mod rows;
mod schedule;
mod services;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use rbuilder_kubernetes::quantity;
use rbuilder_kubernetes::selector::selects;
use serde_json::{Map, Value, json};

use crate::error::FieldError;
use crate::path::Path;
use crate::services::drop_fields_of_former_type;

const IMMUTABLE: &str = "field is immutable";

/// `default` is empty if the field has none.
struct Immutable {
    group: &'static str,
    kinds: &'static [&'static str],
    path: &'static str,
    default: &'static str,
}

const fn immutable(
    group: &'static str,
    kinds: &'static [&'static str],
    path: &'static str,
    default: &'static str,
) -> Immutable {
    Immutable {
        group,
        kinds,
        path,
        default,
    }
}

const WORKLOADS: &[&str] = &["Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"];
const RBAC: &str = "rbac.authorization.k8s.io";

/// In the server's order of reporting.
const IMMUTABLE_FIELDS: &[Immutable] = &[
    immutable("apps", WORKLOADS, "spec.selector", ""),
    immutable("apps", &["StatefulSet"], "spec.volumeClaimTemplates", ""),
    immutable("apps", &["StatefulSet"], "spec.serviceName", ""),
    immutable(
        "apps",
        &["StatefulSet"],
        "spec.podManagementPolicy",
        "OrderedReady",
    ),
    immutable("batch", &["Job"], "spec.selector", ""),
    immutable("batch", &["Job"], "spec.template", ""),
    immutable("batch", &["Job"], "spec.completionMode", "NonIndexed"),
    immutable("batch", &["Job"], "spec.podFailurePolicy", ""),
    immutable("batch", &["Job"], "spec.backoffLimitPerIndex", ""),
    immutable("batch", &["Job"], "spec.managedBy", ""),
    immutable("batch", &["Job"], "spec.successPolicy", ""),
    immutable("", &["Secret"], "type", "Opaque"),
];

/// Returns the violations of a new object or, given an `old` one, of an update.
pub(crate) fn find_violations(
    group: &str,
    kind: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let is_service = (group, kind) == ("", "Service");
    let prepared = old.filter(|_| is_service).map(|old| prepare_service(object, old));
    let object = prepared.as_ref().unwrap_or(object);
    let mut errors = check_object(group, kind, object);
    if let Some(old) = old {
        // Tests may start with incomplete objects, so tolerate preexisting violations on update.
        if !errors.is_empty() {
            let known = check_object(group, kind, old);
            errors.retain(|error| !known.contains(error));
        }
        errors.extend(check_update(group, kind, object, old));
    }
    errors
}

/// Returns the Service as the server validates it on an update.
fn prepare_service(new: &Value, old: &Value) -> Value {
    let mut new = new.clone();
    if let (Some(spec), Some(old)) = (new["spec"].as_object_mut(), old["spec"].as_object()) {
        drop_fields_of_former_type(old, spec);
    }
    new
}

fn check_object(group: &str, kind: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    objects::check_finalizers(group, kind, object, &mut errors);
    rows::check_rows(kinds::rows_of(group, kind), object, &Path::root(), &mut errors);
    if group == "apps" && WORKLOADS.contains(&kind) {
        errors.extend(check_selector(kind, object));
    }
    match (group, kind) {
        ("", "Service") => services::check_service(object, &mut errors),
        ("", "ConfigMap") => objects::check_config_map(object, &mut errors),
        ("", "Secret") => objects::check_secret(object, &mut errors),
        ("", "PersistentVolumeClaim") => {
            objects::check_claim_spec(&object["spec"], &field_path("spec"), &mut errors);
        }
        ("", "ReplicationController") => {
            let selector = objects::selector_of_controller(object);
            errors.extend(check_template_labels(&selector, object));
        }
        ("", "Event") => objects::check_event(object, &mut errors),
        ("apps", "Deployment") => objects::check_deployment(object, &mut errors),
        ("apps", "DaemonSet") => objects::check_daemon_set(object, &mut errors),
        ("apps", "StatefulSet") => objects::check_stateful_set(object, &mut errors),
        ("batch", "Job") => objects::check_job_spec(&object["spec"], &field_path("spec"), &mut errors),
        ("batch", "CronJob") => objects::check_cron_job(object, &mut errors),
        ("autoscaling", "HorizontalPodAutoscaler") => objects::check_autoscaler(object, &mut errors),
        ("policy", "PodDisruptionBudget") => objects::check_budget(object, &mut errors),
        ("networking.k8s.io", "Ingress") => services::check_ingress(object, &mut errors),
        ("networking.k8s.io", "NetworkPolicy") => objects::check_network_policy(object, &mut errors),
        ("scheduling.k8s.io", "PriorityClass") => objects::check_priority_class(object, &mut errors),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            objects::check_webhooks(object, &mut errors);
        }
        ("discovery.k8s.io", "EndpointSlice") => objects::check_unique_names(object, "ports", &mut errors),
        (RBAC, "Role" | "ClusterRole") => objects::check_role(kind, object, &mut errors),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => objects::check_binding(kind, object, &mut errors),
        _ => {}
    }
    let mut places = POD_SPECS.iter();
    if let Some(place) = places.find(|place| place.group == group && place.kinds.contains(&kind)) {
        check_pod_spec(place, kind, object, &mut errors);
    }
    errors
}

/// The items of a list with their positions.
fn items<'a>(value: &'a Value, list: &str) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    value[list].as_array().into_iter().flatten().enumerate()
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn check_update(group: &str, kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if (group, kind) == ("batch", "Job") {
        errors.extend(check_completions(object, old));
    }
    let fields = IMMUTABLE_FIELDS.iter();
    for field in fields.filter(|field| field.group == group && field.kinds.contains(&kind)) {
        errors.extend(check_unchanged(field, object, old));
    }
    match (group, kind) {
        ("", "ConfigMap") => errors.extend(check_immutable_data(&["data", "binaryData"], object, old)),
        ("", "Secret") => errors.extend(check_immutable_data(&["data"], object, old)),
        ("", "PersistentVolumeClaim") => errors.extend(check_claim(object, old)),
        ("", "Pod") => errors.extend(check_pod(object, old)),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => errors.extend(check_role_ref(object, old)),
        _ => {}
    }
    errors
}

/// Location of the Pod spec, and the restart policies that the server accepts there.
struct PodSpec {
    group: &'static str,
    kinds: &'static [&'static str],
    path: &'static str,
    policies: &'static [&'static str],
}

const POD_SPECS: &[PodSpec] = &[
    PodSpec {
        group: "",
        kinds: &["Pod"],
        path: "spec",
        policies: &["Always", "OnFailure", "Never"],
    },
    PodSpec {
        group: "",
        kinds: &["ReplicationController"],
        path: "spec.template.spec",
        policies: &["Always"],
    },
    PodSpec {
        group: "apps",
        kinds: WORKLOADS,
        path: "spec.template.spec",
        policies: &["Always"],
    },
    PodSpec {
        group: "batch",
        kinds: &["Job"],
        path: "spec.template.spec",
        policies: &["OnFailure", "Never"],
    },
    PodSpec {
        group: "batch",
        kinds: &["CronJob"],
        path: "spec.jobTemplate.spec.template.spec",
        policies: &["OnFailure", "Never"],
    },
];

fn check_pod_spec(place: &PodSpec, kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let path = field_path(place.path);
    // Its template is a pointer in Go, which has a rule of its own.
    if kind == "ReplicationController" && object["spec"]["template"].is_null() {
        return;
    }
    let spec = object.pointer(&pointer(place.path)).unwrap_or(&Value::Null);
    if let Some(template) = path.to_string().strip_suffix(".spec") {
        check_template_metadata(template, object, errors);
    }
    let claims = items(&object["spec"], "volumeClaimTemplates");
    let claims: BTreeSet<&str> = claims
        .map(|(_, claim)| text_of(&claim["metadata"], "name"))
        .collect();
    pods::check_pod(spec, &path, &claims, errors);
    let policy = match text_of(spec, "restartPolicy") {
        "" => "Always",
        policy => policy,
    };
    let field = path.child("restartPolicy");
    let refuse = |known: &[&str]| {
        let known: Vec<Value> = known.iter().map(|known| (*known).into()).collect();
        FieldError::not_supported(&field, &policy.into(), &known)
    };
    let all = ["Always", "OnFailure", "Never"];
    if !all.contains(&policy) {
        errors.push(refuse(&all));
    }
    if !place.policies.contains(&policy) {
        match place.group {
            "batch" if policy == "Always" => {
                errors.push(FieldError::required(
                    &field,
                    "valid values: \"OnFailure\", \"Never\"",
                ));
            }
            // For Pods, that would be the error above.
            "" if kind == "Pod" => {}
            _ => errors.push(refuse(place.policies)),
        }
    }
    if place.group == "apps" && !spec["activeDeadlineSeconds"].is_null() {
        // Not a typo: the server says "ReplicaSet" for Deployments.
        let kind = match kind {
            "Deployment" => "ReplicaSet",
            kind => kind,
        };
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            &path.child("activeDeadlineSeconds"),
            &detail,
        ));
    }
}

/// The server leaves out `metadata` in the paths of a template's labels and annotations.
fn check_template_metadata(template: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let metadata = object.pointer(&pointer(&format!("{template}.metadata")));
    let metadata = metadata.unwrap_or(&Value::Null);
    let rows = [
        ("labels", rows::Rule::Labels),
        ("annotations", rows::Rule::Annotations),
    ];
    rows::check_rows(&rows, metadata, &field_path(template), errors);
}

fn field_path(path: &str) -> Path {
    path.split('.').fold(Path::root(), |path, name| path.child(name))
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn check_selector(kind: &str, object: &Value) -> Option<FieldError> {
    let selector = &object["spec"]["selector"];
    let field = field_path("spec.selector");
    let has_any = |name: &str| match &selector[name] {
        Value::Object(labels) => !labels.is_empty(),
        Value::Array(expressions) => !expressions.is_empty(),
        _ => false,
    };
    if selector.is_object() && !has_any("matchLabels") && !has_any("matchExpressions") {
        // Not a typo: the server says "deployment" for ReplicaSets.
        let kind = match kind {
            "ReplicaSet" => "deployment".to_owned(),
            kind => kind.to_lowercase(),
        };
        let detail = format!("empty selector is invalid for {kind}");
        return Some(FieldError::invalid(&field, &json!({}), &detail));
    }
    if !rows::is_selector(selector) {
        return match kind {
            "DaemonSet" => None,
            "StatefulSet" => Some(FieldError::invalid(&field, selector, "")),
            _ => Some(FieldError::invalid(&field, selector, "invalid label selector")),
        };
    }
    check_template_labels(selector, object)
}

fn check_template_labels(selector: &Value, object: &Value) -> Option<FieldError> {
    let template = object["spec"].get("template")?;
    let labels = &template["metadata"]["labels"];
    (!selects(selector, labels)).then(|| {
        FieldError::invalid(
            &field_path("spec.template.metadata.labels"),
            labels,
            "`selector` does not match template `labels`",
        )
    })
}

/// Removes empty strings, lists and objects, which the server mostly treats as absent.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), without_empty(value)));
            let fields: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() {
                Value::Null
            } else {
                fields.into()
            }
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.iter().map(without_empty).collect(),
        Value::String(text) if text.is_empty() => Value::Null,
        value => value.clone(),
    }
}

fn check_unchanged(field: &Immutable, object: &Value, old: &Value) -> Option<FieldError> {
    let pointer = pointer(field.path);
    let value = |object: &Value| match object.pointer(&pointer).map(without_empty) {
        None | Some(Value::Null) if !field.default.is_empty() => field.default.into(),
        value => value.unwrap_or_default(),
    };
    let (new, old) = (value(object), value(old));
    // The server requires a selector, but a test's initial objects may lack it.
    let is_kept = new == old || (old.is_null() && field.path == "spec.selector");
    (!is_kept).then(|| FieldError::invalid(&field_path(field.path), &new, IMMUTABLE))
}

/// The server's message prints an internal Go struct, hence the Go names as keys.
fn check_role_ref(object: &Value, old: &Value) -> Option<FieldError> {
    let role = |binding: &Value| {
        let role = &binding["roleRef"];
        let group = role["apiGroup"].as_str().filter(|group| !group.is_empty());
        json!({ "APIGroup": group.unwrap_or(RBAC), "Kind": role["kind"], "Name": role["name"] })
    };
    let new = role(object);
    (new != role(old)).then(|| FieldError::invalid(&field_path("roleRef"), &new, IMMUTABLE))
}

fn check_completions(object: &Value, old: &Value) -> Option<FieldError> {
    let (new, old) = (&object["spec"], &old["spec"]);
    let is_changed = new["completions"] != old["completions"];
    let path = field_path("spec.completions");
    (is_changed && new["completionMode"] != "Indexed")
        .then(|| FieldError::invalid(&path, &new["completions"], IMMUTABLE))
}

fn check_immutable_data(names: &[&str], object: &Value, old: &Value) -> Vec<FieldError> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let detail = "field is immutable when `immutable` is set";
    let unlocked = (object["immutable"] != true).then_some("immutable");
    let changed = names.iter().copied().filter(|name| object[*name] != old[*name]);
    let names = unlocked.into_iter().chain(changed);
    names
        .map(|name| FieldError::forbidden(&Path::root().child(name), detail))
        .collect()
}

/// A bound claim is immutable except for its size and its volume attributes class.
fn check_claim(object: &Value, old: &Value) -> Vec<FieldError> {
    let (new_spec, old_spec) = (&object["spec"], &old["spec"]);
    let is_bound = object["status"]["phase"] == "Bound";
    let fixed_part = |spec: &Value| {
        let mut spec = spec.clone();
        let fields = spec.as_object_mut().into_iter().flatten();
        for (name, value) in fields {
            let is_free = match name.as_str() {
                "volumeName" | "storageClassName" => old_spec[name].is_null(),
                "volumeAttributesClassName" => is_bound,
                "volumeMode" => *value == "Filesystem",
                "resources" if is_bound => {
                    value["requests"]["storage"].take();
                    false
                }
                _ => false,
            };
            if is_free {
                value.take();
            }
        }
        without_empty(&spec)
    };
    let mut errors = Vec::new();
    if fixed_part(new_spec) != fixed_part(old_spec) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        errors.push(FieldError::forbidden(&field_path("spec"), detail));
    }
    let size = |value: &Value| value["storage"].as_str().unwrap_or("0").to_owned();
    let new_size = size(&new_spec["resources"]["requests"]);
    let is_at_most = |other: &str| quantity::compare(&new_size, other).map(Ordering::is_le);
    let old_size = size(&old_spec["resources"]["requests"]);
    // After a failed expansion, the size may be reduced again, as long as it stays above the actual
    // capacity.
    let shrinks = quantity::compare(&new_size, &old_size) == Some(Ordering::Less);
    if shrinks && is_at_most(&size(&old["status"]["capacity"])) == Some(true) {
        let field = field_path("spec.resources.requests.storage");
        errors.push(FieldError::forbidden(
            &field,
            "field can not be less than status.capacity",
        ));
    }
    errors
}

fn check_pod(object: &Value, old: &Value) -> Option<FieldError> {
    let fixed_part = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for containers in ["containers", "initContainers"] {
            for container in spec[containers].as_array_mut().into_iter().flatten() {
                container["image"].take();
            }
        }
        if let Some(fields) = spec.as_object_mut() {
            // The scheduler sets the node through a subresource.
            let free = [
                "activeDeadlineSeconds",
                "nodeName",
                "schedulingGates",
                "tolerations",
            ];
            fields.retain(|name, _| !free.contains(&name.as_str()));
        }
        without_empty(&spec)
    };
    // Pods with scheduling gates have more mutable fields.
    let gates = old["spec"]["schedulingGates"].as_array();
    let has_gates = gates.is_some_and(|gates| !gates.is_empty());
    let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                  `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                  existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                  previously negative)";
    (!has_gates && fixed_part(object) != fixed_part(old))
        .then(|| FieldError::forbidden(&field_path("spec"), detail))
}
