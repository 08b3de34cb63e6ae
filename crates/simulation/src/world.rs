//! Object names, and comparable snapshots of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use rbuilder_kubernetes::gvk;
use rbuilder_testing::fake::{ApiServer, Request, StoredObject};
use serde_json::{Map, Value, json};

use crate::addresses::{Addresses, list_addresses, replace_addresses};
use crate::declaration::USER;
use crate::external::{Systems, is_external};
use crate::names::{is_pattern, matches, patterns_of};
use crate::tolerance::{Tolerance, without_indices};

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

/// Annotation of objects that the library never deletes.
const KEEP: &str = "rbuilder.dev/keep";

/// Set by the Deployment controller to number rollouts.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";

/// Label of the Pods of a Job, which remains when the Job is gone.
pub(crate) const JOB_NAME: &str = "job-name";

/// What the identifiers of the fake server and of external systems have in common, after 13 other
/// characters and before 12.
pub(crate) const UID: &str = "-4000-8000-";

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
        let (_, version) = gvk::split(api_version);
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

/// Whether a Pod has failed because its kubelet evicted it. Nothing starts it again.
pub(crate) fn is_evicted(object: &Value) -> bool {
    object["kind"] == "Pod" && object["status"]["reason"] == "Evicted"
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

/// The Pod of a Job says no more than the Job, unless the Job is gone.
fn is_pod_of_job(stored: &StoredObject, objects: &[StoredObject]) -> bool {
    let is_job = |uid: &str| {
        let mut jobs = objects.iter().filter(|other| other.resource == "jobs");
        jobs.any(|job| job.metadata("uid") == uid)
    };
    let labels = &stored.value()["metadata"]["labels"];
    stored.resource == "pods" && labels[JOB_NAME].is_string() && owner_uids(stored.value()).any(is_job)
}

pub(crate) fn find(server: &ApiServer, name: &ObjectName) -> Option<Arc<Value>> {
    find_among(&server.objects(), name)
}

pub(crate) fn find_among(objects: &[StoredObject], name: &ObjectName) -> Option<Arc<Value>> {
    let found = objects.iter().find(|stored| {
        stored.group == name.group
            && stored.resource == name.plural
            && stored.metadata("namespace") == name.namespace
            && stored.metadata("name") == name.name
    });
    Some(Arc::clone(&found?.object))
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
pub(crate) struct Snapshot {
    pub(crate) objects: BTreeMap<String, Value>,
    /// What the user wrote into the declared objects, by name. Never compared: the server may keep
    /// remains of it, such as an empty list after the last item has been removed.
    pub(crate) declared: BTreeMap<String, Value>,
    /// Names of objects whose kind the operator keeps on purpose, see
    /// [`Simulation::keeps`](crate::Simulation::keeps).
    kept: BTreeSet<String>,
}

impl Snapshot {
    pub(crate) fn take(server: &ApiServer, systems: &Systems, tolerance: &Tolerance) -> Self {
        let stored = server.objects();
        let addresses = addresses_of(&stored);
        let mut state = Self::of_objects(&stored, &addresses, tolerance);
        for (name, mut value) in systems.objects() {
            normalize_values(&mut value, None);
            replace_addresses(&mut value, &addresses);
            tolerance.strip(resource_of_name(&name), &mut value);
            state.insert(name, value, &|resource| tolerance.keeps(resource));
        }
        state
    }

    pub(crate) fn of_cluster(server: &ApiServer, tolerance: &Tolerance) -> Self {
        let stored = server.objects();
        Self::of_objects(&stored, &addresses_of(&stored), tolerance)
    }

    fn of_objects(objects: &[StoredObject], addresses: &Addresses, tolerance: &Tolerance) -> Self {
        let mut state = Self::default();
        let mut generated: Vec<(String, Value)> = Vec::new();
        let keeps = |resource: &str| tolerance.keeps(resource);
        for stored in objects {
            let name = ObjectName::of(stored);
            let is_seed = name.plural == "namespaces" && name.name.starts_with(SEED);
            let is_given = stored.value()["metadata"]["annotations"][GIVEN].is_string();
            let is_of_job = is_pod_of_job(stored, objects);
            if is_seed || is_given || is_record(&name) || is_old_replica_set(stored) || is_of_job {
                continue;
            }
            let mut value = normalize(&stored.object);
            replace_generations(&mut value, &generations_of(stored, objects));
            replace_addresses(&mut value, addresses);
            tolerance.strip(&name.resource(), &mut value);
            if let Some(declared) = take_declared(&stored.object, &mut value) {
                state.declared.insert(name.to_string(), declared);
            }
            match stored.object["metadata"]["generateName"].as_str() {
                None => state.insert(name.to_string(), value, &keeps),
                Some(prefix) => generated.push((name.to_string().replace(&name.name, prefix), value)),
            }
        }
        state.insert_numbered(generated, &keeps);
        state
    }

    /// Adds the objects of another state.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.objects.extend(other.objects.clone());
        self.declared.extend(other.declared.clone());
        self.kept.extend(other.kept.clone());
    }

    fn insert(&mut self, name: String, value: Value, keeps: &impl Fn(&str) -> bool) {
        if keeps(resource_of_name(&name)) {
            self.kept.insert(name.clone());
        }
        self.objects.insert(name, value);
    }

    /// Inserts objects whose names differ between runs. They are numbered in the order of their
    /// contents, and evicted Pods come last.
    fn insert_numbered(&mut self, mut unnamed: Vec<(String, Value)>, keeps: &impl Fn(&str) -> bool) {
        unnamed.sort_by_cached_key(|(start, value)| (start.clone(), is_evicted(value), value.to_string()));
        for (start, value) in unnamed {
            self.insert(number_name(&self.objects, &start), value, keeps);
        }
    }

    /// Replaces names that match one of the patterns by the pattern and a number.
    fn without_names(&self, patterns: &[&String]) -> Self {
        let mut state = Self {
            objects: BTreeMap::new(),
            ..self.clone()
        };
        let mut unnamed = Vec::new();
        for (name, value) in &self.objects {
            match patterns.iter().find(|pattern| matches(pattern, name)) {
                None => drop(state.objects.insert(name.clone(), value.clone())),
                Some(pattern) => unnamed.push(((*pattern).clone(), renamed(name, value))),
            }
        }
        let keeps = |resource: &str| self.kept.iter().any(|name| resource_of_name(name) == resource);
        state.insert_numbered(unnamed, &keeps);
        state
    }

    /// Returns whether there are objects that the operator keeps on purpose.
    pub(crate) fn has_kept(&self) -> bool {
        self.objects.keys().any(|name| self.is_kept(name))
    }

    fn is_kept(&self, name: &str) -> bool {
        self.kept.contains(name) || self.objects[name]["metadata"]["annotations"][KEEP] == "true"
    }

    /// Returns whether an object is among the kept ones under another name.
    fn keeps_equal(&self, name: &str, value: &Value, mask: &Mask) -> bool {
        let value = renamed(name, value);
        let resource = resource_of_name(name);
        let others = self
            .kept
            .iter()
            .filter(|other| resource_of_name(other) == resource);
        others.into_iter().any(|other| {
            let mut differences = Vec::new();
            let other = renamed(other, &self.objects[other]);
            compare_values(name, "", &value, &other, mask, &mut differences);
            differences.is_empty()
        })
    }
}

/// Resource or external system in the name of an object, e.g. `pods` in `pods default/a`.
fn resource_of_name(name: &str) -> &str {
    let end = name.find([' ', ':']).unwrap_or(name.len());
    &name[..end]
}

/// Replaces an object's own name in all of its values.
fn renamed(name: &str, value: &Value) -> Value {
    let own = name.split(" (").next().unwrap_or(name);
    let own = own.rsplit(['/', ' ']).next().unwrap_or(own);
    let mut value = value.clone();
    replace_text(&mut value, own, "<name>");
    value
}

pub(crate) fn replace_text(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| replace_text(value, from, to)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_text(item, from, to)),
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        _ => {}
    }
}

/// The manager of what an object without managers had before an apply: defaults of the server.
const SERVER: &str = "before-first-apply";

/// Moves what the user wrote and the server added out of a declared object. Fields that another
/// manager owns stay.
/// Returns `None` if the user didn't apply the object.
fn take_declared(object: &Value, value: &mut Value) -> Option<Value> {
    let managers = object["metadata"]["managedFields"].as_array()?;
    let managers = managers.iter().filter(|manager| manager["subresource"].is_null());
    let is_user = |manager: &&Value| manager["manager"] == USER && manager["operation"] == "Apply";
    managers.clone().find(is_user)?;
    let others: Vec<&Value> = managers
        .filter(|manager| manager["manager"] != USER && manager["manager"] != SERVER)
        .map(|manager| &manager["fieldsV1"])
        .collect();
    let mut declared = Map::new();
    let fields = value.as_object_mut()?;
    let is_written = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let names: Vec<String> = fields.keys().filter(|name| is_written(name)).cloned().collect();
    for name in names {
        let Some(written) = fields.remove(&name) else {
            continue;
        };
        if let Some(left) = owned_part(&written, &owned_fields(&others, &name)) {
            fields.insert(name.clone(), left);
        }
        declared.insert(name, written);
    }
    Some(declared.into())
}

fn owned_fields<'f>(owners: &[&'f Value], name: &str) -> Vec<&'f Value> {
    let key = format!("f:{name}");
    owners.iter().filter_map(|fields| fields.get(&key)).collect()
}

/// The part of a value that is owned according to `fieldsV1`. Lists are not divided.
fn owned_part(value: &Value, owners: &[&Value]) -> Option<Value> {
    if owners.is_empty() {
        return None;
    }
    let is_leaf = |fields: &&Value| fields.as_object().is_none_or(Map::is_empty);
    let Some(fields) = value.as_object().filter(|_| !owners.iter().any(is_leaf)) else {
        return Some(value.clone());
    };
    let owned = fields.iter().filter_map(|(name, value)| {
        let value = owned_part(value, &owned_fields(owners, name))?;
        Some((name.clone(), value))
    });
    Some(Value::Object(owned.collect()))
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
    remove_revision_of_set(&mut value);
    normalize_values(&mut value, generation);
    value
}

/// The revision of a StatefulSet says no more than its template, parts of which may not be compared.
fn remove_revision_of_set(value: &mut Value) {
    if value["kind"] == "StatefulSet"
        && let Some(status) = value["status"].as_object_mut()
    {
        status.remove("updateRevision");
    }
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
            while let Some(uid) = text.find(UID).and_then(|middle| uid_at(text, middle)) {
                text.replace_range(uid, "<uid>");
            }
        }
        _ => {}
    }
}

/// Generations of an object and of its owners.
fn generations_of(stored: &StoredObject, objects: &[StoredObject]) -> Vec<i64> {
    let owners = owner_uids(stored.value()).filter_map(|uid| {
        let mut objects = objects.iter();
        objects.find(|owner| owner.metadata("uid") == uid)
    });
    let all = std::iter::once(stored).chain(owners);
    all.filter_map(|object| object.value()["metadata"]["generation"].as_i64())
        .collect()
}

/// Replaces generations in annotations and labels. Operators note there for which generation of the
/// owner an object was made. The number depends on the history.
fn replace_generations(value: &mut Value, generations: &[i64]) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::Object(notes) if matches!(name.as_str(), "annotations" | "labels") => {
                        for (name, note) in notes.iter_mut() {
                            let number = note.as_str().and_then(|text| text.parse().ok());
                            let is_named = name.to_lowercase().ends_with("generation");
                            if is_named && number.is_some_and(|number| generations.contains(&number)) {
                                *note = "<current>".into();
                            }
                        }
                    }
                    value => replace_generations(value, generations),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace_generations(item, generations)),
        _ => {}
    }
}

/// Returns where the identifier is whose middle starts at the given position.
fn uid_at(text: &str, middle: usize) -> Option<Range<usize>> {
    let uid = middle.checked_sub(13)?..(middle + UID.len() + 12).min(text.len());
    text.get(uid.clone()).map(|_| uid)
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Difference {
    Missing(String),
    Extra(String),
    /// Object, path, expected value and actual value.
    Field(String, String, Value, Value),
}

impl Difference {
    /// Object and field, without list indices.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Missing(name) | Self::Extra(name) => name.clone(),
            Self::Field(name, path, ..) => format!("{name} {}", without_indices(path)),
        }
    }

    fn is_of(&self, field: &str) -> bool {
        matches!(self, Self::Field(_, path, ..) if path == field)
    }

    /// Name of an object in the cluster that should not exist.
    pub(crate) fn extra(&self) -> Option<&str> {
        match self {
            Self::Extra(name) if !is_external(name) => Some(name),
            _ => None,
        }
    }
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

/// What to ignore in comparisons: fields as `<object> <path>`, objects, and patterns of names such
/// as `pods default/a-*`.
pub(crate) type Mask = BTreeSet<String>;

pub(crate) fn compare(expected: &Snapshot, found: &Snapshot, mask: &Mask) -> Vec<Difference> {
    let patterns: Vec<&String> = mask.iter().filter(|entry| is_pattern(entry)).collect();
    if patterns.is_empty() {
        return compare_named(expected, found, mask);
    }
    compare_named(
        &expected.without_names(&patterns),
        &found.without_names(&patterns),
        mask,
    )
}

fn compare_named(expected: &Snapshot, found: &Snapshot, mask: &Mask) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (name, value) in &expected.objects {
        let first = differences.len();
        match found.objects.get(name) {
            None => differences.push(Difference::Missing(name.clone())),
            Some(other) => compare_values(name, "", value, other, mask, &mut differences),
        }
        let differs = differences.len() > first;
        if differs && name.starts_with("pods ") {
            // The phase says what happened to a Pod, and its conditions follow.
            differences[first..].sort_by_key(|difference| !difference.is_of(".status.phase"));
        }
        if differs && expected.kept.contains(name) && found.keeps_equal(name, value, mask) {
            differences.truncate(first);
        }
    }
    let extra = found
        .objects
        .keys()
        .filter(|name| !expected.objects.contains_key(*name));
    let extra = extra.filter(|name| !found.is_kept(name));
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

/// Adds whatever differs between two undisturbed runs to the mask.
pub(crate) fn extend_mask(mask: &mut Mask, one: &Snapshot, other: &Snapshot) {
    let patterns = patterns_of(&compare(one, other, mask));
    mask.extend(patterns);
    let differences = compare(one, other, mask);
    mask.extend(differences.into_iter().map(|difference| match difference {
        Difference::Missing(name) | Difference::Extra(name) => name,
        Difference::Field(name, path, ..) => format!("{name} {path}"),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state<const N: usize>(objects: [(&str, Value); N]) -> Snapshot {
        let objects = objects.map(|(name, value)| (name.to_owned(), value));
        Snapshot {
            objects: BTreeMap::from(objects),
            ..Snapshot::default()
        }
    }

    #[test]
    fn names_that_differ_between_runs_become_patterns() {
        let child = |hour: &str| json!({ "metadata": { "labels": { "job": format!("a-{hour}") } } });
        let one = state([("jobs.batch x/a-00", child("00")), ("pods x/b", json!({}))]);
        let other = state([("jobs.batch x/a-13", child("13")), ("pods x/b", json!({}))]);
        let mut mask = Mask::new();
        extend_mask(&mut mask, &one, &other);
        assert_eq!(mask, Mask::from(["jobs.batch x/a-*".to_owned()]));
        let later = state([("jobs.batch x/a-07", child("07")), ("pods x/b", json!({}))]);
        assert_eq!(compare(&one, &later, &mask), []);
        let none = state([("pods x/b", json!({}))]);
        let missing = Difference::Missing("jobs.batch x/a-*<1>".to_owned());
        assert_eq!(compare(&one, &none, &mask), [missing]);
    }

    #[test]
    fn kept_objects_may_have_predecessors_and_other_names() {
        let keeping = |objects: [(&str, Value); 2]| {
            let mut state = state(objects);
            state.kept = state.objects.keys().cloned().collect();
            state
        };
        let job = |name: &str, size: i32| json!({ "metadata": { "name": name }, "spec": { "size": size } });
        let mut fresh = state([("jobs.batch x/a-1", job("a-1", 2))]);
        fresh.kept = fresh.objects.keys().cloned().collect();
        let changed = keeping([
            ("jobs.batch x/a-1", job("a-1", 1)),
            ("jobs.batch x/a-2", job("a-2", 2)),
        ]);
        assert_eq!(compare(&fresh, &changed, &Mask::new()), []);
        let old = keeping([
            ("jobs.batch x/a-1", job("a-1", 1)),
            ("jobs.batch x/a-2", job("a-2", 3)),
        ]);
        assert_eq!(compare(&fresh, &old, &Mask::new()).len(), 1);
    }

    #[test]
    fn generations_in_annotations_are_those_of_the_owner() {
        let note = |text: &str| {
            let notes = json!({ "annotations": { "example.com/spec-generation": text } });
            json!({ "metadata": notes, "spec": { "template": { "metadata": notes }, "generation": text } })
        };
        for (text, expected) in [("3", "<current>"), ("2", "2")] {
            let mut value = note(text);
            replace_generations(&mut value, &[1, 3]);
            let mut wanted = note(expected);
            wanted["spec"]["generation"] = text.into();
            assert_eq!(value, wanted);
        }
    }

    #[test]
    fn only_foreign_fields_of_a_declared_object_are_compared() {
        let object = json!({
            "metadata": { "managedFields": [
                { "manager": USER, "operation": "Apply", "fieldsV1": { "f:spec": { "f:size": {} } } },
                { "manager": "operator", "operation": "Update", "fieldsV1": { "f:spec": { "f:paused": {} } } },
                { "manager": SERVER, "operation": "Update", "fieldsV1": { "f:spec": { "f:finalizers": {} } } },
            ] },
            "spec": { "size": 1, "names": [], "paused": true, "finalizers": ["kubernetes"] },
            "status": { "phase": "Running" },
        });
        let mut value = object.clone();
        let declared = take_declared(&object, &mut value).unwrap();
        assert_eq!(declared, json!({ "spec": object["spec"] }));
        assert_eq!(value["spec"], json!({ "paused": true }));
        assert_eq!(value["status"], object["status"]);
        let mut child = json!({ "metadata": {}, "spec": {} });
        assert_eq!(take_declared(&child.clone(), &mut child), None);
    }
}
