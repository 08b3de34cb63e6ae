//! Rules for `metadata`, on creation and on update.

use rbuilder_kubernetes::names;
use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::go;
use crate::path::Path;

/// Size limit in bytes, for all annotations of an object together.
const MOST_ANNOTATIONS: usize = 256 << 10;

#[derive(Clone, Copy)]
pub(crate) struct Metadata<'a>(Option<&'a Map<String, Value>>);

/// The rule for object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Names of custom resources, and of most built-in kinds.
    Subdomain,
    /// Names without dots, e.g. of Namespaces.
    Label,
    /// Any name that is a valid path segment of a URL, e.g. of Roles.
    PathSegment,
}

impl NameRule {
    /// Returns kube-apiserver's rule for a built-in kind. The core group is the empty string.
    pub(crate) fn of_builtin(group: &str, kind: &str) -> NameRule {
        match (group, kind) {
            ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameRule::Label,
            // The names of the last two have another form, which has no rule here.
            ("", "Event")
            | ("policy", "PodDisruptionBudget")
            | ("rbac.authorization.k8s.io", _)
            | ("certificates.k8s.io", "CertificateSigningRequest")
            | ("apiregistration.k8s.io", "APIService")
            | ("networking.k8s.io", "IPAddress") => NameRule::PathSegment,
            _ => NameRule::Subdomain,
        }
    }

    fn check(self, name: &str, is_prefix: bool) -> Vec<String> {
        match self {
            // A prefix may end with a hyphen, as the server appends a suffix.
            NameRule::Subdomain if is_prefix => match name.strip_suffix('-') {
                Some(bare) => names::check_subdomain(&format!("{bare}a")),
                None => names::check_subdomain(name),
            },
            NameRule::Subdomain => names::check_subdomain(name),
            NameRule::Label if is_prefix => match name.strip_suffix('-') {
                Some(bare) => names::check_label(&format!("{bare}a")),
                None => names::check_label(name),
            },
            NameRule::Label => names::check_label(name),
            NameRule::PathSegment if is_prefix => names::check_path_prefix(name),
            NameRule::PathSegment => names::check_path_segment(name),
        }
    }
}

impl<'a> Metadata<'a> {
    pub(crate) fn of(object: &'a Value) -> Metadata<'a> {
        Metadata(object.get("metadata").and_then(Value::as_object))
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }

    pub(crate) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn texts(self, name: &str) -> Vec<&'a str> {
        let items = self.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn entries(self, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let entries = self.get(name).and_then(Value::as_object);
        let entries = entries.into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    pub(crate) fn generation(self) -> i64 {
        self.get("generation").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn finalizers(self) -> Vec<&'a str> {
        self.texts("finalizers")
    }
}

pub(crate) fn check_new(
    metadata: Metadata<'_>,
    is_namespaced: bool,
    rule: NameRule,
    path: &Path,
) -> Vec<FieldError> {
    let (name, prefix) = (metadata.text("name"), metadata.text("generateName"));
    let mut errors = Vec::new();
    if !prefix.is_empty() {
        push_all(
            &mut errors,
            &path.child("generateName"),
            prefix,
            rule.check(prefix, true),
        );
    }
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), detail));
    } else {
        push_all(&mut errors, &path.child("name"), name, rule.check(name, false));
    }
    let (namespace, field) = (metadata.text("namespace"), path.child("namespace"));
    match (is_namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&field, "")),
        (true, false) => push_all(&mut errors, &field, namespace, names::check_label(namespace)),
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(&field, "not allowed on this type")),
    }
    check_generation(metadata, path, &mut errors);
    check_contents(metadata, path, &mut errors);
    check_finalizers(&metadata.finalizers(), &path.child("finalizers"), &mut errors);
    check_managers(metadata, &path.child("managedFields"), &mut errors);
    errors
}

pub(crate) fn check_changed(new: Metadata<'_>, old: Metadata<'_>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some() {
        check_no_new_finalizers(&new.finalizers(), &old.finalizers(), path, &mut errors);
    }
    if new.text("resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(
            &path.child("resourceVersion"),
            &"".into(),
            detail,
        ));
    }
    check_generation(new, path, &mut errors);
    if new.generation() < old.generation() {
        let (field, value) = (path.child("generation"), new.generation().into());
        errors.push(FieldError::invalid(&field, &value, "must not be decremented"));
    }
    for name in ["name", "namespace", "uid"] {
        if new.text(name) != old.text(name) {
            errors.push(immutable(path, name, &new.text(name).into()));
        }
    }
    for name in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (new, old) = (new.get(name), old.get(name));
        if new != old {
            errors.push(immutable(path, name, new.unwrap_or(&Value::Null)));
        }
    }
    check_contents(new, path, &mut errors);
    check_managers(new, &path.child("managedFields"), &mut errors);
    errors
}

/// Returns warnings about finalizers added by an update.
pub(crate) fn find_odd_finalizers(new: Metadata<'_>, old: Option<Metadata<'_>>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let old = old.map(Metadata::finalizers).unwrap_or_default();
    let mut added: Vec<&str> = new.finalizers();
    added.retain(|name| !old.contains(name));
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for name in added {
        let mut warn =
            |text: &str| warnings.push(format!("metadata.finalizers: {}: {text}", go::quote(name)));
        names::check_qualified_name(name)
            .iter()
            .for_each(|reason| warn(reason));
        if name.contains('/') || STANDARD.contains(&name) {
            continue;
        }
        let how = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        warn(&format!(
            "prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    warnings
}

fn push_all(errors: &mut Vec<FieldError>, field: &Path, value: &str, reasons: Vec<String>) {
    let value = Value::from(value);
    errors.extend(
        reasons
            .iter()
            .map(|reason| FieldError::invalid(field, &value, reason)),
    );
}

fn immutable(path: &Path, name: &str, value: &Value) -> FieldError {
    FieldError::invalid(&path.child(name), value, "field is immutable")
}

fn check_generation(metadata: Metadata<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let generation = metadata.generation();
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &path.child("generation"),
            &generation.into(),
            detail,
        ));
    }
}

fn check_contents(metadata: Metadata<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let field = path.child("labels");
    for (key, value) in metadata.entries("labels") {
        push_all(errors, &field, key, names::check_qualified_name(key));
        push_all(errors, &field, value, names::check_label_value(value));
    }
    let field = path.child("annotations");
    let mut size = 0;
    for (key, value) in metadata.entries("annotations") {
        size += key.len() + value.len();
        push_all(
            errors,
            &field,
            key,
            names::check_qualified_name(&key.to_lowercase()),
        );
    }
    if size > MOST_ANNOTATIONS {
        errors.push(FieldError::too_long(&field, MOST_ANNOTATIONS as u64));
    }
    check_owners(metadata, &path.child("ownerReferences"), errors);
}

fn check_owners(metadata: Metadata<'_>, field: &Path, errors: &mut Vec<FieldError>) {
    let Some(owners) = metadata.get("ownerReferences").and_then(Value::as_array) else {
        return;
    };
    let mut first: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        check_owner(owner, &field.index(index), errors);
        if owner["controller"] != true {
            continue;
        }
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        let name = format!("{}/{}", text("kind"), text("name"));
        match &first {
            None => first = Some(name),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. \
                     Found \"true\" in references for {first} and {name}"
                );
                let owners: Vec<String> = owners.iter().map(owner_json).collect();
                let shown = format!("[{}]", owners.join(","));
                errors.push(FieldError::invalid_text(field, &shown, &detail));
            }
        }
    }
}

/// Parses e.g. `apps/v1`, failing with the message of `schema.ParseGroupVersion`.
pub(crate) fn parse_group_version(text: &str) -> Result<(&str, &str), String> {
    match text.split('/').collect::<Vec<_>>()[..] {
        [version] => Ok(("", version)),
        [group, version] => Ok((group, version)),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

fn check_owner(owner: &Value, field: &Path, errors: &mut Vec<FieldError>) {
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let parsed = parse_group_version(version);
    if version.is_empty() {
        errors.push(FieldError::required(
            &field.child("apiVersion"),
            "must not be empty",
        ));
    } else if !parsed.as_ref().is_ok_and(|(_, version)| !version.is_empty()) {
        let detail = "must be <group>/<version> or <version>";
        errors.push(FieldError::invalid(
            &field.child("apiVersion"),
            &version.into(),
            detail,
        ));
    }
    for name in ["kind", "name", "uid"] {
        if text(name).is_empty() {
            errors.push(FieldError::required(&field.child(name), "must not be empty"));
        }
    }
    if version == "v1" && text("kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid_text(field, &owner_json(owner), detail));
    }
}

// Go marshals fields in struct order.
fn owner_json(owner: &Value) -> String {
    let names = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let fields = names.into_iter().filter_map(|name| {
        let value = owner.get(name)?;
        Some(format!("{}:{}", go::json(&name.into()), go::json(value)))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn check_finalizers(finalizers: &[&str], field: &Path, errors: &mut Vec<FieldError>) {
    for name in finalizers {
        push_all(errors, field, name, names::check_qualified_name(name));
    }
    if ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| finalizers.contains(name))
    {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(field, &finalizers.to_vec().into(), detail));
    }
}

fn check_no_new_finalizers(new: &[&str], old: &[&str], path: &Path, errors: &mut Vec<FieldError>) {
    let mut added: Vec<&str> = new.iter().copied().filter(|name| !old.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    if added.is_empty() {
        return;
    }
    let added: Vec<String> = added.into_iter().map(go::quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    errors.push(FieldError::forbidden(&path.child("finalizers"), &detail));
}

fn check_managers(metadata: Metadata<'_>, field: &Path, errors: &mut Vec<FieldError>) {
    let entries = metadata.get("managedFields").and_then(Value::as_array);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let field = field.index(index);
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        match text("operation") {
            "Apply" | "Update" => {}
            "" => errors.push(FieldError::required(
                &field.child("operation"),
                "must not be empty",
            )),
            other => errors.push(FieldError::not_supported(
                &field.child("operation"),
                &other.into(),
                &["Apply".into(), "Update".into()],
            )),
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(
                &field.child("fieldsType"),
                &text("fieldsType").into(),
                detail,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether kube-apiserver refuses the names `My_App` and `my.app` of new objects.
    type Refused = [bool; 2];
    const SUBDOMAIN: Refused = [true, false];
    const LABEL: Refused = [true, true];
    const ANY: Refused = [false, false];

    #[rustfmt::skip]
    const RECORDED: &[(&str, &str, Refused)] = &[
        ("", "ConfigMap Endpoints LimitRange Node PersistentVolumeClaim PersistentVolume Pod PodTemplate ReplicationController ResourceQuota Secret ServiceAccount", SUBDOMAIN),
        ("", "Event", ANY),
        ("", "Namespace Service", LABEL),
        ("apps", "ControllerRevision DaemonSet Deployment ReplicaSet", SUBDOMAIN),
        ("apps", "StatefulSet", LABEL),
        ("events.k8s.io", "Event", SUBDOMAIN),
        ("autoscaling", "HorizontalPodAutoscaler", SUBDOMAIN),
        ("batch", "CronJob Job", SUBDOMAIN),
        ("certificates.k8s.io", "CertificateSigningRequest", ANY),
        ("certificates.k8s.io", "ClusterTrustBundle PodCertificateRequest", SUBDOMAIN),
        ("networking.k8s.io", "IngressClass Ingress NetworkPolicy ServiceCIDR", SUBDOMAIN),
        ("policy", "PodDisruptionBudget", ANY),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding ClusterRole RoleBinding Role", ANY),
        ("storage.k8s.io", "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass", SUBDOMAIN),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration", SUBDOMAIN),
        ("scheduling.k8s.io", "PriorityClass", SUBDOMAIN),
        ("coordination.k8s.io", "Lease", SUBDOMAIN),
        ("node.k8s.io", "RuntimeClass", SUBDOMAIN),
        ("discovery.k8s.io", "EndpointSlice", SUBDOMAIN),
        ("resource.k8s.io", "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice", SUBDOMAIN),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration", SUBDOMAIN),
        ("storagemigration.k8s.io", "StorageVersionMigration", SUBDOMAIN),
    ];

    #[test]
    fn names_of_builtin_kinds_are_refused_as_by_the_server() {
        for (group, kinds, expected) in RECORDED {
            for kind in kinds.split(' ') {
                let rule = NameRule::of_builtin(group, kind);
                let refused = ["My_App", "my.app"].map(|name| !rule.check(name, false).is_empty());
                assert_eq!(refused, *expected, "{group} {kind}");
            }
        }
    }
}
