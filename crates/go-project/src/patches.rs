//! Applies the patches of kustomizations, since clusters get the patched CRDs and Deployment.
//!
//! Changes made by kubebuilder's own patches are left out, because components of our scaffold make
//! the same changes: the metrics proxy, certificates and their mounts, ports, conversions, and the
//! annotations for cert-manager's CA injector.

use std::collections::BTreeSet;

use rbuilder_kubernetes::crd::{Crd, is_crd};
use rbuilder_yaml::parse_documents;
use serde_json::{Value, json};

use super::{GoProject, Manifests};
use crate::overlay::{self, Kustomization, Matches, apply_patch, follow_kustomizations};
use crate::project::{Resource, Webhooks};

const DEPLOYMENT: &str = "Deployment";
/// Maximum number of patches. Projects have one or two per CRD.
const MOST_PATCHES: usize = 400;
const DEFAULT: &str = "config/default";
/// Prefix of cert-manager annotations, which components of our scaffold set.
const CERTIFICATES: &str = "cert-manager.io/";
/// The patch with which Prometheus verifies the metrics certificate. Replaced by a component of our
/// scaffold.
const MONITOR_PATCH: &str = "/monitor_tls_patch.yaml";

/// A patch or another part of a kustomization that was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfollowed {
    /// Name in the report, e.g. "patch config/default/patch.yaml".
    pub what: String,
    /// Why it was not applied.
    pub reason: String,
}

struct Patch {
    patch: overlay::Patch,
    documents: Vec<Value>,
}

impl GoProject {
    /// Applies the patches of `config/default` and `config/crd` to CRDs and Deployments. Other
    /// patches are reported.
    pub(crate) fn apply_patches(&mut self) {
        let before = self.manifests.clone();
        let read = |path: &str| documents_at(&before, path);
        let roots = self.kustomization_roots();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let mut reached = follow_kustomizations(&roots, &read);
        // Patches of a directory apply before those of the including directory.
        reached.reverse();
        let files = self.manifests.iter_mut().flat_map(|file| {
            let path = &file.path;
            file.documents.iter_mut().map(move |value| (path.as_str(), value))
        });
        let mut objects: Vec<Object<'_>> = files
            .filter(|(_, value)| is_crd(value) || value["kind"] == DEPLOYMENT)
            .map(|(path, value)| Object {
                path,
                value,
                before: None,
            })
            .collect();
        let mut unfollowed = Vec::new();
        let mut count = 0;
        for list in &reached {
            let Some(kustomization) = &list.kustomization else {
                continue;
            };
            let folder = kustomization.folder();
            let scope: BTreeSet<String> = follow_kustomizations(&[folder], &read)
                .into_iter()
                .map(|file| file.path)
                .collect();
            let mut own: Vec<&mut Object<'_>> = objects
                .iter_mut()
                .filter(|object| scope.contains(object.path))
                .collect();
            for patch in read_patches(kustomization, &read, &mut unfollowed) {
                count += 1;
                if count <= MOST_PATCHES {
                    patch.apply(&mut own, &mut unfollowed);
                }
            }
            // Labels in the default kustomization may be part of the selector, so they are reported
            // separately.
            if folder != DEFAULT {
                add_metadata(kustomization, &mut own);
            }
        }
        if count > MOST_PATCHES {
            unfollowed.push(Unfollowed {
                what: format!("{} patches", count - MOST_PATCHES),
                reason: format!(
                    "only the first {MOST_PATCHES} are followed: make the same changes in this project"
                ),
            });
        }
        let converts = |crd: &Value| Crd::of(crd).has_webhook();
        let mut converted = Vec::new();
        for object in &mut objects {
            let Some(before) = object.before.take() else {
                continue;
            };
            if converts(object.value) && !converts(&before) {
                converted.push(object.value.clone());
            }
            match is_crd(&before) {
                true => restore_scaffolded_of_definition(object.value, &before),
                false => remove_scaffolded_of_deployment(object.value, &before),
            }
        }
        unfollowed.extend(converted.iter().filter_map(|crd| self.record_conversion(crd)));
        unfollowed.dedup();
        self.unfollowed = unfollowed;
    }

    /// If a patch gives a CRD a conversion webhook, its storage version becomes the hub, which
    /// kubebuilder 3 doesn't record in PROJECT. Returns a row for the report if the kind isn't in
    /// PROJECT at all.
    fn record_conversion(&mut self, crd: &Value) -> Option<Unfollowed> {
        let crd = Crd::of(crd);
        let (group, kind) = (crd.group(), crd.kind());
        let stored = crd.storage().filter(|_| crd.versions().count() > 1)?.name;
        let resources = &mut self.project.known.resources;
        let is_kind = |resource: &Resource| resource.kind == kind && resource.qualified_group() == group;
        let has_hub = |resource: &Resource| {
            let webhooks = resource.webhooks.as_ref();
            is_kind(resource) && webhooks.is_some_and(|webhooks| webhooks.conversion)
        };
        if resources.iter().any(has_hub) {
            return None;
        }
        let Some(first) = resources.iter().position(is_kind) else {
            return Some(Unfollowed {
                what: format!("conversion of `{kind}`"),
                reason: "a patch of the CRD has a webhook, and PROJECT does not have the kind: add it with `rbuilder create webhook --conversion`".to_owned(),
            });
        };
        let is_hub = |resource: &Resource| is_kind(resource) && resource.version == stored;
        let hub = resources.iter().position(is_hub).unwrap_or_else(|| {
            resources.push(Resource {
                version: stored.to_owned(),
                controller: false,
                controllers: Vec::new(),
                webhooks: None,
                ..resources[first].clone()
            });
            resources.len() - 1
        });
        let webhooks = resources[hub].webhooks.get_or_insert_with(|| Webhooks {
            webhook_version: "v1".to_owned(),
            ..Webhooks::default()
        });
        webhooks.conversion = true;
        None
    }
}

struct Object<'a> {
    path: &'a str,
    value: &'a mut Value,
    before: Option<Value>,
}

fn documents_at(manifests: &[Manifests], path: &str) -> Vec<Value> {
    let file = manifests.iter().find(|file| file.path == path);
    file.map(|file| file.documents.clone()).unwrap_or_default()
}

fn read_patches(
    kustomization: &Kustomization,
    read: &dyn Fn(&str) -> Vec<Value>,
    unfollowed: &mut Vec<Unfollowed>,
) -> Vec<Patch> {
    let mut found = Vec::new();
    for patch in kustomization.patches() {
        let documents = match &patch.text {
            Some(text) => parse_documents(text).unwrap_or_default(),
            None => read(&patch.path),
        };
        match documents.is_empty() {
            true => unfollowed.push(Unfollowed {
                what: format!("patch {}", patch.path),
                reason: "it was not read: make the same change in this project".to_owned(),
            }),
            false => found.push(Patch { patch, documents }),
        }
    }
    found
}

impl Patch {
    fn apply(&self, objects: &mut [&mut Object<'_>], unfollowed: &mut Vec<Unfollowed>) {
        for document in &self.documents {
            let is_of_monitor = self.patch.path.ends_with(MONITOR_PATCH);
            if document["$patch"] == "delete" || is_of_certificates(document) || is_of_monitor {
                continue;
            }
            // An inner kustomization may have moved the object to another namespace.
            let selector = self.patch.selector(document).in_any_namespace();
            let (mut problem, mut count) = (None, 0);
            let is_selected = |object: &Value| selector.matches(object) == Matches::Yes;
            for object in objects.iter_mut().filter(|object| is_selected(object.value)) {
                count += 1;
                problem = apply_to(object, document).err().or(problem);
            }
            let (kind, name) = (
                selector.kind().unwrap_or_default(),
                selector.name().unwrap_or_default(),
            );
            let of = format!("{kind} {name}").trim().to_owned();
            let reason = match (count, problem) {
                (_, Some(problem)) => format!("it cannot be applied to {of}, because {problem}"),
                (0, None) if of.is_empty() => "it changes what a selector chooses".to_owned(),
                (0, None) => format!("it changes {of}"),
                (_, None) => continue,
            };
            unfollowed.push(Unfollowed {
                what: format!("patch {}", self.patch.path),
                reason: format!("{reason}: make the same change in this project"),
            });
        }
    }
}

fn is_of_certificates(patch: &Value) -> bool {
    if let Some(operations) = patch.as_array() {
        let is_annotation = |operation: &Value| {
            let path = operation["path"].as_str().unwrap_or_default();
            path.starts_with("/metadata/annotations/cert-manager.io~1")
        };
        return !operations.is_empty() && operations.iter().all(is_annotation);
    }
    let is_naming = |key: &String| ["apiVersion", "kind", "metadata"].contains(&key.as_str());
    let annotations = patch["metadata"]["annotations"].as_object();
    patch.as_object().is_some_and(|patch| patch.keys().all(is_naming))
        && annotations.is_some_and(|found| found.keys().all(|key| key.starts_with(CERTIFICATES)))
}

fn apply_to(object: &mut Object<'_>, patch: &Value) -> Result<(), String> {
    let before = object.value.clone();
    apply_patch(object.value, patch)?;
    object.before.get_or_insert(before);
    Ok(())
}

fn restore_scaffolded_of_definition(patched: &mut Value, before: &Value) {
    if let Some(spec) = patched.get_mut("spec").and_then(Value::as_object_mut) {
        // The converting webhook is recorded in PROJECT instead.
        spec.remove("conversion");
        if let Some(conversion) = before["spec"].get("conversion") {
            spec.insert("conversion".to_owned(), conversion.clone());
        }
    }
    let annotations = patched.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        let old = &before["metadata"]["annotations"];
        annotations.retain(|key, _| !key.starts_with(CERTIFICATES) || old.get(key).is_some());
    }
}

/// Sidecar that protects metrics in older projects.
const PROXY: &str = "kube-rbac-proxy";
/// Flags that the scaffold sets itself, or whose default fits the scaffold.
const SCAFFOLDED_FLAGS: [&str; 8] = [
    "enable-leader-election",
    "health-probe-bind-address",
    "leader-elect",
    "metrics-addr",
    "metrics-bind-address",
    "metrics-cert-path",
    "metrics-secure",
    "webhook-cert-path",
];
const SCAFFOLDED_PORTS: [u64; 3] = [8080, 8443, 9443];
/// Prefix of certificate paths.
const CERTIFICATE_PATHS: &str = "/tmp/k8s-";
/// Component config of kubebuilder 3. Its ConfigMap is reported separately.
const COMPONENT_CONFIG: &str = "controller_manager_config.yaml";

fn remove_scaffolded_of_deployment(patched: &mut Value, before: &Value) {
    let before = &before["spec"]["template"]["spec"];
    let Some(pod) = patched.pointer_mut("/spec/template/spec") else {
        return;
    };
    if let Some(containers) = pod.get_mut("containers").and_then(Value::as_array_mut) {
        let old = |name: &Value| {
            let mut old = before["containers"].as_array().into_iter().flatten();
            old.find(|old| old["name"] == *name)
        };
        containers.retain(|container| container["name"] != PROXY || old(&container["name"]).is_some());
        for container in containers {
            let old = old(&container["name"]).cloned().unwrap_or_default();
            remove_new_items(container, "args", &old, &|argument| {
                let flag = argument.as_str().unwrap_or_default().trim_start_matches('-');
                SCAFFOLDED_FLAGS.contains(&flag.split('=').next().unwrap_or_default())
            });
            remove_new_items(container, "ports", &old, &|port| {
                let number = port["containerPort"].as_u64();
                number.is_some_and(|number| SCAFFOLDED_PORTS.contains(&number))
            });
            remove_new_items(container, "volumeMounts", &old, &|mount| {
                let path = mount["mountPath"].as_str().unwrap_or_default();
                path.starts_with(CERTIFICATE_PATHS) || mount["subPath"] == COMPONENT_CONFIG
            });
        }
    }
    // Without their mounts, some of the new volumes are unused.
    let mounted: BTreeSet<String> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|key| pod[key].as_array().into_iter().flatten())
        .flat_map(|container| container["volumeMounts"].as_array().into_iter().flatten())
        .filter_map(|mount| mount["name"].as_str().map(str::to_owned))
        .collect();
    remove_new_items(pod, "volumes", before, &|volume| {
        volume["name"].as_str().is_none_or(|name| !mounted.contains(name))
    });
}

/// Removes new items accepted by `is_scaffolded`, and the list itself if it was added and is now
/// empty.
fn remove_new_items(value: &mut Value, key: &str, before: &Value, is_scaffolded: &dyn Fn(&Value) -> bool) {
    let Some(items) = value.get_mut(key).and_then(Value::as_array_mut) else {
        return;
    };
    let was_there = |item: &Value| before[key].as_array().is_some_and(|before| before.contains(item));
    items.retain(|item| was_there(item) || !is_scaffolded(item));
    if items.is_empty()
        && before[key].is_null()
        && let Some(map) = value.as_object_mut()
    {
        map.remove(key);
    }
}

fn add_metadata(kustomization: &Kustomization, objects: &mut [&mut Object<'_>]) {
    let labels = kustomization.labels().map(|(labels, _)| ("labels", labels));
    let annotations = kustomization.annotations().map(|values| ("annotations", values));
    for (key, values) in labels.chain(annotations) {
        for object in objects.iter_mut().filter(|object| is_crd(object.value)) {
            let metadata = object.value.get_mut("metadata").and_then(Value::as_object_mut);
            let entry = metadata.map(|metadata| metadata.entry(key).or_insert_with(|| json!({})));
            if let Some(entry) = entry.and_then(Value::as_object_mut) {
                entry.extend(values.clone());
            }
        }
    }
}
