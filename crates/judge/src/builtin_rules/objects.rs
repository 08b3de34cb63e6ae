//! Rules about several fields of other kinds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rbuilder_kubernetes::names;
use serde_json::{Value, json};

use super::kinds::{CLAIM_SPEC, JOB_SPEC};
use super::pods::order;
use super::rows::{check_config_key, check_rows, is_zero, push_all};
use super::schedule::explain_schedule;
use super::{RBAC, field_path, items, text_of};
use crate::error::FieldError;
use crate::go;
use crate::path::Path;

/// Finalizers of Kubernetes itself, which have no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Groups whose objects may have any finalizer that is a qualified name.
const WITHOUT_FINALIZER_RULE: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

/// The server wants a domain in the names of finalizers, which it only advises for custom resources.
pub(super) fn check_finalizers(group: &str, kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    if WITHOUT_FINALIZER_RULE.contains(&group) || (group, kind) == ("", "Event") {
        return;
    }
    for (index, finalizer) in items(&object["metadata"], "finalizers") {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let path = field_path("metadata.finalizers").index(index);
            errors.push(FieldError::invalid(&path, finalizer, detail));
        }
    }
}

pub(super) fn check_deployment(deployment: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&deployment["spec"], field_path("spec"));
    let (deadline, ready) = (&spec["progressDeadlineSeconds"], &spec["minReadySeconds"]);
    if deadline
        .as_i64()
        .is_some_and(|deadline| deadline <= ready.as_i64().unwrap_or(0))
    {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(
            &path.child("progressDeadlineSeconds"),
            deadline,
            detail,
        ));
    }
    let (strategy, path) = (&spec["strategy"], path.child("strategy"));
    let update = &strategy["rollingUpdate"];
    match text_of(strategy, "type") {
        "Recreate" if !update.is_null() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&path.child("rollingUpdate"), detail));
        }
        "" | "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (&update["maxUnavailable"], &update["maxSurge"]);
            let is_given_zero = |value: &Value| !value.is_null() && is_zero(value);
            if is_given_zero(unavailable) && is_given_zero(surge) {
                let path = path.child("rollingUpdate").child("maxUnavailable");
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&path, unavailable, detail));
            }
        }
        other => {
            let shown = format!(r#"{{"Type":{},"RollingUpdate":null}}"#, go::quote(other));
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"";
            errors.push(FieldError::not_supported_text(&path, &shown, detail));
        }
    }
}

pub(super) fn check_daemon_set(set: &Value, errors: &mut Vec<FieldError>) {
    let (strategy, path) = (&set["spec"]["updateStrategy"], field_path("spec.updateStrategy"));
    match text_of(strategy, "type") {
        "" | "OnDelete" => {}
        "RollingUpdate" => {
            let update = &strategy["rollingUpdate"];
            let (unavailable, surge) = (&update["maxUnavailable"], &update["maxSurge"]);
            let path = path.child("rollingUpdate");
            match (is_zero(unavailable), is_zero(surge)) {
                _ if update.is_null() => {}
                (true, true) => {
                    let detail = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(&path.child("maxUnavailable"), detail));
                }
                (false, false) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(&path.child("maxSurge"), surge, detail));
                }
                _ => {}
            }
        }
        other => {
            let shown = format!(r#"{{"Type":{},"RollingUpdate":null}}"#, go::quote(other));
            let detail = "supported values: \"RollingUpdate\", \"OnDelete\"";
            errors.push(FieldError::not_supported_text(&path, &shown, detail));
        }
    }
}

pub(super) fn check_stateful_set(set: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&set["spec"], field_path("spec"));
    let policy = text_of(spec, "podManagementPolicy");
    if !matches!(policy, "" | "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(
            &path.child("podManagementPolicy"),
            &policy.into(),
            detail,
        ));
    }
    let (strategy, update) = (&spec["updateStrategy"], &spec["updateStrategy"]["rollingUpdate"]);
    let field = path.child("updateStrategy");
    match text_of(strategy, "type") {
        "" => {}
        "OnDelete" => {
            if !update.is_null() {
                let part = |name: &str| go::json(&update[name]);
                let shown = format!(
                    r#"{{"Partition":{},"MaxUnavailable":{}}}"#,
                    part("partition"),
                    part("maxUnavailable")
                );
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(FieldError::invalid_text(
                    &field.child("rollingUpdate"),
                    &shown,
                    detail,
                ));
            }
        }
        "RollingUpdate" => {
            let unavailable = &update["maxUnavailable"];
            if !unavailable.is_null() && is_zero(unavailable) {
                let path = field.child("rollingUpdate").child("maxUnavailable");
                errors.push(FieldError::invalid(&path, unavailable, "cannot be 0"));
            }
        }
        other => {
            let shown = format!(r#"{{"Type":{},"RollingUpdate":null}}"#, go::quote(other));
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid_text(&field, &shown, detail));
        }
    }
    for (index, claim) in items(spec, "volumeClaimTemplates") {
        let path = path.child("volumeClaimTemplates").index(index).child("spec");
        check_claim_spec(&claim["spec"], &path, errors);
    }
}

pub(super) fn check_job_spec(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    check_rows(JOB_SPEC, spec, path, errors);
    let is_indexed = spec["completionMode"] == "Indexed";
    let parallelism = &spec["parallelism"];
    if is_indexed
        && parallelism
            .as_i64()
            .is_some_and(|parallelism| parallelism > 100_000)
    {
        let detail = "must be less than or equal to 100000 when completion mode is Indexed";
        errors.push(FieldError::invalid(
            &path.child("parallelism"),
            parallelism,
            detail,
        ));
    }
    for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if !spec[name].is_null() && !is_indexed {
            let detail = "requires indexed completion mode";
            errors.push(FieldError::invalid(&path.child(name), &spec[name], detail));
        }
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
}

pub(super) fn check_cron_job(job: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&job["spec"], field_path("spec"));
    let schedule = text_of(spec, "schedule");
    if let Some(reason) = explain_schedule(schedule).filter(|_| !schedule.is_empty()) {
        errors.push(FieldError::invalid(
            &path.child("schedule"),
            &schedule.into(),
            &reason,
        ));
    }
    let zone = spec["timeZone"].as_str();
    let detail = match zone {
        Some("") => "timeZone must be nil or non-empty string",
        Some(zone) if zone.eq_ignore_ascii_case("local") => {
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        }
        _ => "",
    };
    if let Some(zone) = zone.filter(|_| !detail.is_empty()) {
        errors.push(FieldError::invalid(&path.child("timeZone"), &zone.into(), detail));
    }
    // Jobs are named after their CronJob, with a suffix of 11 characters.
    let name = text_of(&job["metadata"], "name");
    if name.len() > 52 {
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid(
            &field_path("metadata.name"),
            &name.into(),
            detail,
        ));
    }
    let template = path.child("jobTemplate").child("spec");
    check_job_spec(&spec["jobTemplate"]["spec"], &template, errors);
}

pub(super) fn check_autoscaler(autoscaler: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&autoscaler["spec"], field_path("spec"));
    let (least, most) = (spec["minReplicas"].as_i64().unwrap_or(1), &spec["maxReplicas"]);
    let field = path.child("maxReplicas");
    let found = most.as_i64().unwrap_or(0);
    if found < least {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&field, &found.into(), detail));
    }
    match found {
        0 => errors.push(FieldError::required(&field, "")),
        ..0 => errors.push(FieldError::invalid(
            &field,
            most,
            "must be greater than or equal to 1",
        )),
        _ => {}
    }
}

pub(super) fn check_budget(budget: &Value, errors: &mut Vec<FieldError>) {
    let spec = &budget["spec"];
    if spec["minAvailable"].is_null() || spec["maxUnavailable"].is_null() {
        return;
    }
    let shown = format!(
        r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
        go::json(&spec["minAvailable"]),
        go::json(&spec["selector"]),
        go::json(&spec["maxUnavailable"]),
        go::json(&spec["unhealthyPodEvictionPolicy"])
    );
    let detail = "minAvailable and maxUnavailable cannot be both set";
    errors.push(FieldError::invalid_text(&field_path("spec"), &shown, detail));
}

pub(super) fn check_network_policy(policy: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&policy["spec"], field_path("spec"));
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(spec, list) {
            let path = path.child(list).index(index);
            for (index, peer) in items(rule, peers) {
                let path = path.child(peers).index(index);
                let has_selector = !peer["podSelector"].is_null() || !peer["namespaceSelector"].is_null();
                match (peer["ipBlock"].is_null(), has_selector) {
                    (true, false) => errors.push(FieldError::required(&path, "must specify a peer")),
                    (false, true) => {
                        let detail = "may not specify both ipBlock and another peer";
                        errors.push(FieldError::forbidden(&path, detail));
                    }
                    _ => {}
                }
            }
            for (index, port) in items(rule, "ports") {
                check_end_port(port, &path.child("ports").index(index).child("endPort"), errors);
            }
        }
    }
    let types = &spec["policyTypes"];
    if items(spec, "policyTypes").count() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&path.child("policyTypes"), types, detail));
    }
}

fn check_end_port(port: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let end = &port["endPort"];
    let Some(last) = end.as_i64() else { return };
    let detail = match &port["port"] {
        Value::Null => "may not be specified when `port` is not specified",
        Value::String(_) => "may not be specified when `port` is non-numeric",
        first if first.as_i64().is_some_and(|first| last < first) => {
            "must be greater than or equal to `port`"
        }
        _ => return,
    };
    errors.push(FieldError::invalid(path, end, detail));
}

pub(super) fn check_config_map(config: &Value, errors: &mut Vec<FieldError>) {
    check_keys(config, &["data", "binaryData"], errors);
    check_size(config, &["data"], &["binaryData"], &Path::root().key(""), errors);
}

/// Checks the keys of ConfigMaps and Secrets.
fn check_keys(object: &Value, lists: &[&str], errors: &mut Vec<FieldError>) {
    for list in lists {
        for key in object[*list]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
        {
            let path = Path::root().child(list).key(key);
            push_all(Some(key), check_config_key, &path, errors);
            if *list == "data" && object["binaryData"].get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&path, &(**key).into(), detail));
            }
        }
    }
}

/// Limit for the values of a ConfigMap or Secret in total (`core.MaxSecretSize`).
const MOST_DATA: u64 = 1 << 20;

/// Checks the size of a ConfigMap or Secret. Fields in `encoded` are in base64. The server names the
/// Secret's field, and none of a ConfigMap's.
pub(super) fn check_size(
    object: &Value,
    plain: &[&str],
    encoded: &[&str],
    at: &Path,
    errors: &mut Vec<FieldError>,
) {
    let texts = |field: &&str| {
        let values = object[*field].as_object().into_iter().flatten();
        let texts = values.filter_map(|(_, value)| value.as_str());
        texts.collect::<Vec<_>>()
    };
    let plain = plain.iter().flat_map(texts).map(str::len);
    let encoded = encoded
        .iter()
        .flat_map(texts)
        .map(|text| text.trim_end_matches('=').len() * 3 / 4);
    if plain.chain(encoded).sum::<usize>() as u64 > MOST_DATA {
        errors.push(FieldError::too_long(at, MOST_DATA));
    }
}

/// Keys that Secrets of a type must have. Of the last type, either key is enough.
const SECRET_KEYS: [(&str, &[&str]); 5] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    (BASIC_AUTH, &["username", "password"]),
];

const BASIC_AUTH: &str = "kubernetes.io/basic-auth";

pub(super) fn check_secret(secret: &Value, errors: &mut Vec<FieldError>) {
    check_keys(secret, &["data"], errors);
    check_size(secret, &[], &["data"], &Path::root().child("data"), errors);
    let kind = text_of(secret, "type");
    let data = &secret["data"];
    let keys = SECRET_KEYS.iter().find(|(known, _)| *known == kind);
    let (_, keys) = keys.copied().unwrap_or_default();
    let is_missing = |key: &&&str| match kind {
        "kubernetes.io/ssh-auth" => text_of(data, key).is_empty(),
        _ => data.get(**key).is_none(),
    };
    let missing: Vec<&&str> = keys.iter().filter(is_missing).collect();
    if kind != BASIC_AUTH || missing.len() == keys.len() {
        let fields = missing.iter().map(|key| Path::root().child("data").key(key));
        errors.extend(fields.map(|field| FieldError::required(&field, "")));
    }
    for key in keys.iter().filter(|key| key.starts_with(".docker")) {
        let text = STANDARD.decode(text_of(data, key)).unwrap_or_default();
        let Some(first) = text.iter().copied().find(|byte| !byte.is_ascii_whitespace()) else {
            continue;
        };
        // Go's other messages about JSON aren't reproduced.
        let is_start = |byte: u8| b"{[\"tfn-".contains(&byte) || byte.is_ascii_digit();
        if !is_start(first) && first.is_ascii_graphic() {
            let field = Path::root().child("data").key(key);
            let detail = format!(
                "invalid character '{}' looking for beginning of value",
                char::from(first)
            );
            let shown = "<secret contents redacted>".into();
            errors.push(FieldError::invalid(&field, &shown, &detail));
        }
    }
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token"
        && text_of(&secret["metadata"]["annotations"], account).is_empty()
    {
        let field = field_path("metadata.annotations").key(account);
        errors.push(FieldError::required(&field, ""));
    }
}

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

pub(super) fn check_claim_spec(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    check_rows(CLAIM_SPEC, spec, path, errors);
    let modes: Vec<&str> = items(spec, "accessModes")
        .filter_map(|(_, mode)| mode.as_str())
        .collect();
    let field = path.child("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&field, "at least 1 access mode is required"));
    }
    let known = ACCESS_MODES.map(Value::from);
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&field, &(*mode).into(), &known));
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&field, detail));
    }
    let field = path.child("resources").key("storage");
    match &spec["resources"]["requests"]["storage"] {
        Value::Null => errors.push(FieldError::required(&field, "")),
        size if order(size, &"0".into()).is_some_and(Ordering::is_le) => {
            errors.push(FieldError::invalid(&field, size, "must be greater than zero"));
        }
        _ => {}
    }
}

pub(super) fn check_role(kind: &str, role: &Value, errors: &mut Vec<FieldError>) {
    for (index, rule) in items(role, "rules") {
        let path = Path::root().child("rules").index(index);
        let has = |name: &str| items(rule, name).next().is_some();
        if !has("verbs") {
            errors.push(FieldError::required(&path.child("verbs"), ""));
        }
        if has("nonResourceURLs") {
            let is_mixed = has("apiGroups") || has("resources") || has("resourceNames");
            let wrong = [
                (
                    kind == "Role",
                    "namespaced rules cannot apply to non-resource URLs",
                ),
                (
                    is_mixed,
                    "rules cannot apply to both regular resources and non-resource URLs",
                ),
            ];
            let path = path.child("nonResourceURLs");
            let urls = &rule["nonResourceURLs"];
            let wrong = wrong.into_iter().filter(|(is_wrong, _)| *is_wrong);
            errors.extend(wrong.map(|(_, detail)| FieldError::invalid(&path, urls, detail)));
            continue;
        }
        let needed = [("apiGroups", "api group"), ("resources", "resource")];
        for (name, what) in needed.into_iter().filter(|(name, _)| !has(name)) {
            let detail = format!("resource rules must supply at least one {what}");
            errors.push(FieldError::required(&path.child(name), &detail));
        }
    }
}

pub(super) fn check_binding(kind: &str, binding: &Value, errors: &mut Vec<FieldError>) {
    let known: &[Value] = match kind {
        "RoleBinding" => &["Role".into(), "ClusterRole".into()],
        _ => &["ClusterRole".into()],
    };
    let role = &binding["roleRef"];
    let found = text_of(role, "kind").into();
    if !known.contains(&found) {
        errors.push(FieldError::not_supported(
            &field_path("roleRef.kind"),
            &found,
            known,
        ));
    }
    if text_of(role, "name").is_empty() {
        errors.push(FieldError::required(&field_path("roleRef.name"), ""));
    }
    for (index, subject) in items(binding, "subjects") {
        let path = Path::root().child("subjects").index(index);
        let (name, group) = (text_of(subject, "name"), text_of(subject, "apiGroup"));
        let wanted = match text_of(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    push_all(Some(name), names::check_subdomain, &path.child("name"), errors);
                }
                if kind == "ClusterRoleBinding" && text_of(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(&path.child("namespace"), ""));
                }
                ""
            }
            "User" | "Group" => RBAC,
            other => {
                let known = ["ServiceAccount", "User", "Group"].map(Value::from);
                errors.push(FieldError::not_supported(
                    &path.child("kind"),
                    &other.into(),
                    &known,
                ));
                continue;
            }
        };
        if group != wanted && !(group.is_empty() && wanted == RBAC) {
            let known = [wanted.into()];
            errors.push(FieldError::not_supported(
                &path.child("apiGroup"),
                &group.into(),
                &known,
            ));
        }
    }
}

/// Checks that an Event is in the namespace of its object.
pub(super) fn check_event(event: &Value, errors: &mut Vec<FieldError>) {
    let namespace = text_of(&event["metadata"], "namespace");
    let found = text_of(&event["involvedObject"], "namespace");
    if !found.is_empty() && !namespace.is_empty() && found != namespace {
        let path = field_path("involvedObject.namespace");
        errors.push(FieldError::invalid(
            &path,
            &found.into(),
            "does not match event.namespace",
        ));
    }
}

pub(super) fn check_priority_class(class: &Value, errors: &mut Vec<FieldError>) {
    const MOST: i64 = 1_000_000_000;
    let is_system = text_of(&class["metadata"], "name").starts_with("system-");
    if !is_system && class["value"].as_i64().is_some_and(|value| value > MOST) {
        let detail = format!("maximum allowed value of a user defined priority is {MOST}");
        errors.push(FieldError::forbidden(&Path::root().child("value"), &detail));
    }
}

pub(super) fn check_webhooks(configuration: &Value, errors: &mut Vec<FieldError>) {
    for (index, webhook) in items(configuration, "webhooks") {
        let path = Path::root().child("webhooks").index(index);
        let name = text_of(webhook, "name");
        if !name.is_empty() && name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&path.child("name"), &name.into(), detail));
        }
        let config = &webhook["clientConfig"];
        if config["url"].is_null() == config["service"].is_null() {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(&path.child("clientConfig"), detail));
        }
    }
}

/// Checks that names are unique in a list.
pub(super) fn check_unique_names(object: &Value, list: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items(object, list) {
        let name = text_of(item, "name");
        if !seen.insert(name) {
            let path = Path::root().child(list).index(index).child("name");
            errors.push(FieldError::duplicate(&path, Some(&name.into())));
        }
    }
}

/// The labels that a ReplicationController selects by, in the form of other selectors.
pub(super) fn selector_of_controller(object: &Value) -> Value {
    let labels: BTreeMap<&str, &Value> = object["spec"]["selector"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    json!({ "matchLabels": labels })
}
