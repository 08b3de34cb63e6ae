//! The ClusterServiceVersion, which the Operator Lifecycle Manager installs and shows to users.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_generator::{BuiltinKind, CsvKind, CsvMarkers, CsvResource, Minor, find_kubernetes_kind};
use rbuilder_kubernetes::crd::{Crd, Version, is_crd};
use rbuilder_kubernetes::gvk;
use serde_json::{Value, json};

use super::base::{filled, items};
use super::descriptors::{describe_fields, split_humps};
use super::permissions::list_permissions;
use super::webhooks::define_webhooks;
use super::{BUILDER, BundleOptions, Deployed, Descriptions, LAYOUT, SKIP_RANGE};

pub(super) fn make_csv(
    deployed: &Deployed,
    descriptions: &Descriptions<'_>,
    options: &BundleOptions,
    icon: &str,
    warnings: &mut Vec<(String, String)>,
) -> Value {
    let display_name = split_humps(&options.name);
    let owned = owned_crds(deployed, descriptions);
    descriptions.base.warn_of_unknown(&owned, warnings);
    let examples = examples(deployed, &owned);
    let deployments: Vec<Value> = deployed.deployments().map(install_deployment).collect();
    let mut install = json!({ "deployments": deployments });
    for (key, is_cluster_wide) in [("clusterPermissions", true), ("permissions", false)] {
        let permissions = list_permissions(deployed, is_cluster_wide, warnings);
        if !permissions.is_empty() {
            install[key] = json!(permissions);
        }
    }
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": options.csv_name(&options.version),
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": format!("{:#}", json!(examples)),
                "capabilities": "Basic Install",
                "containerImage": manager_image(deployed),
                BUILDER: concat!("rbuilder-v", env!("CARGO_PKG_VERSION")),
                LAYOUT: "rust.rbuilder.dev/v1",
            },
        },
        "spec": {
            "customresourcedefinitions": { "owned": owned },
            "description": format!("{display_name} manages {} objects.", list_kinds(&owned)),
            "displayName": display_name,
            "icon": [{ "base64data": icon, "mediatype": "image/svg+xml" }],
            "install": { "strategy": "deployment", "spec": install },
            "installModes": install_modes(deployed, options),
            "keywords": [options.name],
            "maturity": "alpha",
            // The oldest version that the library supports, although the CRDs alone would work with
            // older ones.
            "minKubeVersion": format!("{}.0", Minor::EARLIEST),
            "provider": { "name": options.provider },
            "relatedImages": related_images(deployed),
            "version": options.version,
        },
    });
    descriptions.base.describe(&mut csv, options, converts(deployed));
    let required = required_crds(descriptions);
    if !required.is_empty() {
        csv["spec"]["customresourcedefinitions"]["required"] = json!(required);
    }
    let webhooks = define_webhooks(deployed, warnings);
    if !webhooks.is_empty() {
        csv["spec"]["webhookdefinitions"] = json!(webhooks);
    }
    if let Some(name) = &options.replaced {
        csv["spec"]["replaces"] = json!(name);
    }
    if !options.skips.is_empty() {
        csv["spec"]["skips"] = json!(options.skipped_names());
    }
    if let Some(range) = &options.skip_range {
        csv["metadata"]["annotations"][SKIP_RANGE] = json!(range);
    }
    csv
}

fn install_deployment(deployment: &Value) -> Value {
    json!({
        "name": deployment["metadata"]["name"],
        "label": deployment["metadata"]["labels"],
        "spec": deployment["spec"],
    })
}

fn crds(deployed: &Deployed) -> impl Iterator<Item = &Value> {
    deployed.objects.iter().filter(|object| is_crd(object))
}

/// One entry per served version of each kind, in the order specified in the source.
fn owned_crds(deployed: &Deployed, descriptions: &Descriptions<'_>) -> Vec<Value> {
    let managed = managed_kinds(deployed);
    let mut owned = Vec::new();
    for crd in crds(deployed).map(Crd::of) {
        for version in crd.served() {
            let is_of_version = |markers: &&CsvMarkers| {
                (crd.group(), crd.kind(), version.name)
                    == (&*markers.group, &*markers.kind, &*markers.version)
            };
            let markers = descriptions.markers.iter().find(is_of_version);
            let base = descriptions.base.owned(crd.name(), version.name);
            let order = markers.and_then(|markers| markers.of_kind.order);
            owned.push((
                order.unwrap_or(u64::MAX),
                owned_crd(crd, version, &managed, (base, markers)),
            ));
        }
    }
    owned.sort_by_key(|(order, _)| *order);
    owned.into_iter().map(|(_, entry)| entry).collect()
}

/// Keys of an owned CRD that are derived from the CRD, or merged with derived values.
const OWNED_KEYS: &[&str] = &[
    "kind",
    "name",
    "resources",
    "specDescriptors",
    "statusDescriptors",
    "version",
];

/// The entry for a version of a kind, merged with its entry in the base. `managed` contains the
/// built-in kinds that the manager may create.
fn owned_crd(
    crd: Crd<'_>,
    version: Version<'_>,
    managed: &[Value],
    (base, markers): (&Value, Option<&CsvMarkers>),
) -> Value {
    let (kind, schema) = (crd.kind(), version.schema());
    let of_kind = markers.map(|markers| &markers.of_kind);
    let description = schema["description"].as_str().filter(|text| !text.is_empty());
    let description = description.map_or_else(|| format!("{kind} of group {}", crd.group()), str::to_owned);
    let mut entry = json!({
        "name": crd.name(),
        "version": version.name,
        "kind": kind,
        "displayName": split_humps(kind),
        "description": description,
    });
    for (key, value) in filled(base, OWNED_KEYS) {
        entry[key] = value.clone();
    }
    for (key, text) in [
        (
            "displayName",
            of_kind.and_then(|of_kind| of_kind.display_name.as_ref()),
        ),
        (
            "description",
            of_kind.and_then(|of_kind| of_kind.description.as_ref()),
        ),
    ] {
        if let Some(text) = text {
            entry[key] = json!(text);
        }
    }
    let own = json!({ "kind": kind, "name": crd.name(), "version": version.name });
    let mut resources = resources(of_kind, base, managed);
    resources.extend((!resources.contains(&own)).then_some(own));
    entry["resources"] = json!(resources);
    for (key, part, marked) in [
        ("specDescriptors", "spec", markers.map(|markers| &markers.spec)),
        (
            "statusDescriptors",
            "status",
            markers.map(|markers| &markers.status),
        ),
    ] {
        let marked = marked.map_or(&[][..], Vec::as_slice);
        let descriptors = describe_fields(schema, part, &base[key], marked);
        if !descriptors.is_empty() {
            entry[key] = json!(descriptors);
        }
    }
    entry
}

/// Kinds of objects created by the operator for a kind, as listed in the source or the base.
fn resources(of_kind: Option<&CsvKind>, base: &Value, managed: &[Value]) -> Vec<Value> {
    let entry = |resource: &CsvResource| json!({ "kind": resource.kind, "name": resource.name, "version": resource.version });
    let marked = of_kind.map_or(&[][..], |of_kind| &of_kind.resources);
    let mut named: Vec<Value> = match marked.is_empty() {
        true => items(&base["resources"]).cloned().collect(),
        false => marked.iter().map(entry).collect(),
    };
    // If neither lists any, assume all kinds that the manager may create.
    if named.is_empty() {
        return managed.to_vec();
    }
    // Always include events. Otherwise, validators mistake the permission to create them for use of
    // a removed API.
    let has_events = named.iter().any(|named| named["kind"] == "Event");
    let events = managed
        .iter()
        .filter(|managed| managed["kind"] == "Event" && !has_events);
    named.extend(events.cloned());
    named
}

fn required_crds(descriptions: &Descriptions<'_>) -> Vec<Value> {
    let of_kinds = descriptions.markers.iter().map(|markers| &markers.of_kind);
    let marked = of_kinds.flat_map(|of_kind| &of_kind.required).map(|required| {
        json!({
            "name": required.name,
            "version": required.version,
            "kind": required.kind,
            "displayName": required.display_name.clone().unwrap_or_else(|| split_humps(&required.kind)),
            "description": required.description,
        })
    });
    let mut found = BTreeMap::new();
    for required in marked.chain(descriptions.base.required().cloned()) {
        let text = |key: &str| required[key].as_str().unwrap_or_default().to_owned();
        // If several kinds require the same CRD, the first description wins.
        found.entry((text("name"), text("version"))).or_insert(required);
    }
    found.into_values().collect()
}

fn managed_kinds(deployed: &Deployed) -> Vec<Value> {
    let roles = deployed.objects.iter().filter(|object| is_manager_role(object));
    let mut found = BTreeSet::new();
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        let has = |key: &str, value: &str| {
            rule[key]
                .as_array()
                .is_some_and(|items| items.iter().any(|item| item == value))
        };
        if !has("verbs", "create") && !has("verbs", "*") {
            continue;
        }
        let kinds = BuiltinKind::all()
            .filter(|kind| has("apiGroups", kind.group()) && has("resources", kind.plural()));
        found.extend(kinds.filter_map(|kind| Some((kind.kind(), preferred_version(&kind)?))));
    }
    let entry = |(kind, version): (&str, &str)| json!({ "kind": kind, "name": "", "version": version });
    found.into_iter().map(entry).collect()
}

fn preferred_version(kind: &BuiltinKind) -> Option<&'static str> {
    let find = |version: &str| find_kubernetes_kind(None, kind.group(), version, kind.kind());
    ["v1", "v2"]
        .into_iter()
        .find(|version| find(version).is_some_and(|found| found.is_preferred))
}

fn is_manager_role(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    ["Role", "ClusterRole"].iter().any(|kind| object["kind"] == *kind) && name.ends_with("-manager-role")
}

fn examples<'a>(deployed: &'a Deployed, owned: &[Value]) -> Vec<&'a Value> {
    let is_owned = |sample: &&Value| {
        let api_version = sample["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = gvk::split(api_version);
        owned.iter().any(|owned| {
            let name = owned["name"].as_str().unwrap_or_default();
            owned["kind"] == sample["kind"]
                && owned["version"] == version
                && name.split_once('.').is_some_and(|(_, known)| known == group)
        })
    };
    deployed.samples.iter().filter(is_owned).collect()
}

fn converts(deployed: &Deployed) -> bool {
    crds(deployed).any(|crd| Crd::of(crd).has_webhook())
}

fn install_modes(deployed: &Deployed, options: &BundleOptions) -> Value {
    let converts = converts(deployed);
    // With a conversion webhook, there can only be one installation per cluster.
    let few = options.is_ours && !converts;
    let modes = [
        ("OwnNamespace", few),
        ("SingleNamespace", few),
        ("MultiNamespace", few),
        ("AllNamespaces", !options.is_namespaced || converts),
    ];
    modes
        .into_iter()
        .map(|(mode, supported)| json!({ "type": mode, "supported": supported }))
        .collect()
}

fn containers(deployed: &Deployed) -> impl Iterator<Item = &Value> {
    let pod = &deployed.manager["spec"]["template"]["spec"];
    pod["containers"].as_array().into_iter().flatten()
}

fn manager_image(deployed: &Deployed) -> Value {
    let manager = containers(deployed).find(|container| container["name"] == "manager");
    manager
        .or_else(|| containers(deployed).next())
        .map_or(Value::Null, |container| container["image"].clone())
}

/// All images that an installation pulls, for mirroring the catalog.
fn related_images(deployed: &Deployed) -> Vec<Value> {
    let mut images = Vec::new();
    let pods = deployed
        .deployments()
        .map(|deployment| &deployment["spec"]["template"]["spec"]);
    let containers = pods.flat_map(|pod| items(&pod["containers"]));
    for container in containers {
        images.push(json!({ "name": container["name"], "image": container["image"] }));
        for variable in container["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().unwrap_or_default();
            if let Some(name) = name.strip_prefix("RELATED_IMAGE_") {
                let name = name.to_lowercase().replace('_', "-");
                images.push(json!({ "name": name, "image": variable["value"] }));
            }
        }
    }
    images
}

fn list_kinds(owned: &[Value]) -> String {
    let kinds: BTreeSet<&str> = owned.iter().filter_map(|owned| owned["kind"].as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    match kinds.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => kinds.concat(),
    }
}
