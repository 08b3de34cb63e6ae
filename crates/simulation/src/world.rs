//! Object names, and comparable snapshots of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rbuilder_testing::fake::{ApiServer, Request, StoredObject};
use serde_json::{Map, Value, json};

use crate::addresses::{Addresses, list_addresses, replace_addresses};
use crate::external::Systems;

/// Excluded from snapshots, since these only record that something happened.
const RECORDS: [&str; 3] = ["events", "events.events.k8s.io", "leases.coordination.k8s.io"];

const VOLATILE: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Prefix of dummy namespaces, created only to make UIDs and resource versions depend on the seed.
pub(crate) const SEED: &str = "seed-";

/// Annotation of namespaces that exist from the start. These are part of the cluster and excluded
/// from snapshots.
pub(crate) const GIVEN: &str = "simulation.rbuilder/given";

/// Set by the Deployment controller to number rollouts.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";

pub(crate) const UID: &str = "00000000-0000-4000-8000-";

/// Identifies an object by kind, namespace and name, e.g. `deployments.apps default/sample`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name of the kind.
    pub plural: String,
    /// Any version in which the object is served.
    pub version: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.resource())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if !matches!(self.version.as_str(), "" | "v1") {
            write!(f, " ({})", self.version)?;
        }
        Ok(())
    }
}

impl ObjectName {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (text, version) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
            Some((text, version)) => (text, version),
            None => (text, "v1"),
        };
        let (resource, name) = text.split_once(' ')?;
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let [group, plural, version, namespace, name] =
            [group, plural, version, namespace, name].map(str::to_owned);
        Some(Self {
            group,
            plural,
            version,
            namespace,
            name,
        })
    }

    pub(crate) fn of(stored: &StoredObject) -> Self {
        let api_version = stored.object["apiVersion"].as_str().unwrap_or_default();
        let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self {
            group: stored.group.clone(),
            plural: stored.resource.clone(),
            version: version.to_owned(),
            namespace: stored.metadata("namespace").to_owned(),
            name: stored.metadata("name").to_owned(),
        }
    }

    pub(crate) fn of_request(request: &Request) -> Self {
        let name = request.name.clone().unwrap_or_else(|| {
            let name = &request.body["metadata"]["name"];
            name.as_str().unwrap_or_default().to_owned()
        });
        Self {
            group: request.group.clone(),
            plural: request.resource.clone(),
            version: request.version.clone(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name,
        }
    }

    /// E.g. `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        resource_of(&self.group, &self.plural)
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    pub(crate) fn collection(&self) -> String {
        let Self {
            group,
            plural,
            version,
            namespace,
            ..
        } = self;
        let start = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.as_str() {
            "" => format!("{start}/{plural}"),
            namespace => format!("{start}/namespaces/{namespace}/{plural}"),
        }
    }
}

pub(crate) fn resource_of(group: &str, plural: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

pub(crate) fn is_record(name: &ObjectName) -> bool {
    RECORDS.contains(&name.resource().as_str())
}

/// Deployments keep old ReplicaSets for rollbacks. Snapshots exclude these, because their number
/// depends on the history.
fn is_old_replica_set(stored: &StoredObject) -> bool {
    let object = stored.value();
    stored.group == "apps"
        && stored.resource == "replicasets"
        && object["spec"]["replicas"] == 0
        && object["metadata"]["annotations"][REVISION].is_string()
}

pub(crate) fn find(server: &ApiServer, name: &ObjectName) -> Option<Arc<Value>> {
    let objects = server.objects();
    let found = objects.into_iter().find(|stored| {
        stored.group == name.group
            && stored.resource == name.plural
            && stored.metadata("namespace") == name.namespace
            && stored.metadata("name") == name.name
    });
    Some(found?.object)
}

pub(crate) fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}

/// Returns whether an object has an owner that isn't being deleted.
///
/// Without owner references, returns whether any custom resource exists that isn't being deleted.
pub(crate) fn owner_lives(server: &ApiServer, object: &Value) -> bool {
    let uids: Vec<&str> = owner_uids(object).collect();
    server.objects().iter().any(|stored| {
        let is_owner = match uids.is_empty() {
            true => stored.is_custom,
            false => uids.contains(&stored.metadata("uid")),
        };
        is_owner && stored.metadata("deletionTimestamp").is_empty()
    })
}

/// Returns a merge patch for some simple field in the spec or data that has a field manager, if
/// there is one. `written` are the bodies with which the object was created or replaced.
pub(crate) fn foreign_change(object: &Value, written: &[&Value]) -> Option<Value> {
    let managers = object["metadata"]["managedFields"].as_array()?;
    managers
        .iter()
        .filter(|manager| manager["subresource"].is_null())
        .find_map(|manager| {
            // The server's defaults belong to whoever created the object, but no operator has to
            // restore what it never wrote. With an apply, they belong to nobody.
            let written = if manager["operation"] == "Apply" {
                &[]
            } else {
                written
            };
            changed_field(&manager["fieldsV1"], object, written, true)
        })
}

/// Fields that are not in any of `written` are skipped, unless that's empty.
fn changed_field(fields: &Value, value: &Value, written: &[&Value], is_root: bool) -> Option<Value> {
    fields.as_object()?.iter().find_map(|(name, inner)| {
        let name = name.strip_prefix("f:")?;
        if is_root && matches!(name, "metadata" | "status" | "apiVersion" | "kind") {
            return None;
        }
        let below: Vec<&Value> = written.iter().filter_map(|body| body.get(name)).collect();
        if below.is_empty() && !written.is_empty() {
            return None;
        }
        let value = value.get(name)?;
        let changed = match value {
            Value::Bool(value) => json!(!value),
            Value::Number(number) => json!(number.as_i64()? + 1),
            // Strings in a spec mostly follow a format. Only modify free text, e.g. the data of a
            // ConfigMap.
            Value::String(text) if !is_root => json!(format!("{text}x")),
            Value::Object(_) => changed_field(inner, value, &below, false)?,
            _ => return None,
        };
        Some(json!({ name: changed }))
    })
}

/// Snapshot of the cluster: objects by name, minus anything that differs between runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<String, Value>);

impl Snapshot {
    pub(crate) fn take(server: &ApiServer, systems: &Systems) -> Self {
        let stored = server.objects();
        let addresses = addresses_of(&stored);
        let mut state = Self::of_objects(&stored, &addresses);
        state
            .0
            .extend(systems.objects().into_iter().map(|(name, mut value)| {
                normalize_values(&mut value, None);
                replace_addresses(&mut value, &addresses);
                (name, value)
            }));
        state
    }

    pub(crate) fn of_cluster(server: &ApiServer) -> Self {
        let stored = server.objects();
        Self::of_objects(&stored, &addresses_of(&stored))
    }

    fn of_objects(stored: &[StoredObject], addresses: &Addresses) -> Self {
        let mut objects: BTreeMap<String, Value> = BTreeMap::new();
        let mut generated: Vec<(String, Value)> = Vec::new();
        for stored in stored {
            let name = ObjectName::of(stored);
            let is_seed = name.plural == "namespaces" && name.name.starts_with(SEED);
            let is_given = stored.value()["metadata"]["annotations"][GIVEN].is_string();
            if is_seed || is_given || is_record(&name) || is_old_replica_set(stored) {
                continue;
            }
            let mut value = normalize(&stored.object);
            replace_addresses(&mut value, addresses);
            match stored.object["metadata"]["generateName"].as_str() {
                None => drop(objects.insert(name.to_string(), value)),
                Some(prefix) => generated.push((name.to_string().replace(&name.name, prefix), value)),
            }
        }
        // Generated names are random, so sort by content for reproducibility.
        generated.sort_by_cached_key(|(start, value)| (start.clone(), value.to_string()));
        for (start, value) in generated {
            objects.insert(number_name(&objects, &start), value);
        }
        Self(objects)
    }
}

fn addresses_of(stored: &[StoredObject]) -> Addresses {
    list_addresses(stored.iter().map(|stored| &*stored.object))
}

fn number_name(known: &BTreeMap<String, Value>, start: &str) -> String {
    (1..)
        .map(|number| format!("{start}<{number}>"))
        .find(|name| !known.contains_key(name))
        .unwrap_or_default()
}

fn normalize(object: &Value) -> Value {
    let generation = object["metadata"]["generation"].as_i64();
    let mut value = object.clone();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.retain(|name, _| !VOLATILE.contains(&name.as_str()));
        remove_revision(metadata);
        if metadata.contains_key("generateName") {
            metadata.remove("name");
        }
        if metadata.contains_key("deletionTimestamp") {
            metadata.insert("deletionTimestamp".to_owned(), "<time>".into());
            metadata.remove("deletionGracePeriodSeconds");
        }
    }
    normalize_values(&mut value, generation);
    value
}

fn remove_revision(metadata: &mut Map<String, Value>) {
    // The revision depends on the number of preceding rollouts.
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return;
    };
    if annotations.remove(REVISION).is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn normalize_values(value: &mut Value, generation: Option<i64>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if name == "observedGeneration" && value.is_number() {
                    let is_current = value.as_i64() == generation;
                    *value = if is_current { "<current>" } else { "<outdated>" }.into();
                }
                normalize_values(value, generation);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| normalize_values(item, generation)),
        Value::String(text) => {
            if text.parse::<Timestamp>().is_ok() {
                *text = "<time>".to_owned();
            }
            // IDs may also be embedded in longer strings.
            while let Some(start) = text.find(UID) {
                let end = (start + UID.len() + 12).min(text.len());
                if !text.is_char_boundary(end) {
                    break;
                }
                text.replace_range(start..end, "<uid>");
            }
        }
        _ => {}
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Difference {
    Missing(String),
    Extra(String),
    /// Object, path, expected value and actual value.
    Field(String, String, Value, Value),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Extra(name) => write!(f, "{name} should not exist"),
            Self::Field(name, path, expected, found) => {
                let show = |value: &Value| match value {
                    Value::Null => "nothing".to_owned(),
                    value => shorten(&value.to_string()),
                };
                write!(
                    f,
                    "{name}: {path} is {}, expected {}",
                    show(found),
                    show(expected)
                )
            }
        }
    }
}

fn shorten(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Fields to ignore in comparisons, as `<object> <path>`.
pub(crate) type Mask = BTreeSet<String>;

pub(crate) fn compare(expected: &Snapshot, found: &Snapshot, mask: &Mask) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (name, value) in &expected.0 {
        match found.0.get(name) {
            None => differences.push(Difference::Missing(name.clone())),
            Some(other) => compare_values(name, "", value, other, mask, &mut differences),
        }
    }
    let extra = found.0.keys().filter(|name| !expected.0.contains_key(*name));
    differences.extend(extra.map(|name| Difference::Extra(name.clone())));
    differences.retain(|difference| match difference {
        Difference::Missing(name) | Difference::Extra(name) => !mask.contains(name),
        Difference::Field(..) => true,
    });
    differences
}

fn compare_values(
    name: &str,
    path: &str,
    expected: &Value,
    found: &Value,
    mask: &Mask,
    differences: &mut Vec<Difference>,
) {
    if expected == found || mask.contains(&format!("{name} {path}")) {
        return;
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for field in names {
                let get = |fields: &Map<String, Value>| fields.get(field).cloned().unwrap_or_default();
                let path = format!("{path}.{field}");
                compare_values(name, &path, &get(expected), &get(found), mask, differences);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                let path = format!("{path}[{index}]");
                compare_values(name, &path, expected, found, mask, differences);
            }
        }
        _ => differences.push(Difference::Field(
            name.to_owned(),
            path.to_owned(),
            expected.clone(),
            found.clone(),
        )),
    }
}

pub(crate) fn mask_of(differences: &[Difference]) -> Mask {
    let texts = differences.iter().map(|difference| match difference {
        Difference::Missing(name) | Difference::Extra(name) => name.clone(),
        Difference::Field(name, path, ..) => format!("{name} {path}"),
    });
    texts.collect()
}
