//! The record of a set, stored as an annotation on the owner.

use std::fmt;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::{GroupVersionKind, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::claim::SetOwner;
use crate::error::Error;
use crate::hash::{HashMap, HashSet};
use crate::object::{Kind, Watchable};

/// In bytes. Kubernetes limits all annotations of an object together to 256 KiB.
const MAX_BYTES: usize = 240 << 10;
const UID_BYTES: usize = 36;

/// Objects of a set, in the order in which they're applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    objects: Vec<Recorded>,
    positions: HashMap<Entry, usize>,
    /// Generation of the owner that the controller has seen. Only kept up to date if the owner has
    /// sets of several controllers.
    pub(super) generation: Option<i64>,
    /// Whether namespaces and CRDs that leave the set are deleted.
    pub(super) deletes_containers: bool,
    /// Keys that another version of this library wrote.
    unknown: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorded {
    pub(super) entry: Entry,
    /// `None` until the object is applied for the first time.
    pub(super) uid: Option<String>,
    /// The set doesn't contain the object any more, but it isn't deleted yet. The set of another
    /// controller may take it over.
    pub(super) is_leaving: bool,
    /// What another version of this library wrote after the UID, beginning with `/`.
    unknown: String,
}

impl Recorded {
    pub(super) fn new(entry: Entry, uid: Option<String>) -> Self {
        Self {
            entry,
            uid,
            is_leaving: false,
            unknown: String::new(),
        }
    }

    /// Parses an object like `deployments.v1.apps/Deployment/shop/web/<uid>`. The UID is empty until
    /// the object's first apply.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '/');
        let (resource, kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let rest = parts.next()?;
        let (uid, unknown) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (plural, api) = resource.split_once('.')?;
        let (version, group) = api.split_once('.').unwrap_or((api, ""));
        let owned = str::to_owned;
        let entry = Entry {
            group: owned(group),
            version: owned(version),
            kind: owned(kind),
            plural: owned(plural),
            namespace: owned(namespace),
            name: owned(name),
        };
        Some(Self {
            unknown: owned(unknown),
            ..Self::new(entry, Some(owned(uid)).filter(|uid| !uid.is_empty()))
        })
    }

    fn print(&self) -> String {
        let uid = self.uid.as_deref().unwrap_or_default();
        format!("{}/{uid}{}", self.entry.print(), self.unknown)
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.objects == other.objects
            && self.generation == other.generation
            && self.deletes_containers == other.deletes_containers
    }
}

/// Identifies an object of a set. Entries are equal if they only differ in the API version.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    /// Empty for cluster-scoped objects.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Entry {
    /// `meta` must have a namespace if and only if `kind` is namespaced.
    pub(super) fn of<K: Watchable>(kind: &Kind<K>, meta: &ObjectMeta) -> Self {
        let namespace = meta.namespace.clone().filter(|_| kind.namespaced);
        Self {
            group: K::group(&kind.dynamic).into_owned(),
            version: K::version(&kind.dynamic).into_owned(),
            kind: kind.name(),
            plural: K::plural(&kind.dynamic).into_owned(),
            namespace: namespace.unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// An object of a resource that was discovered.
    pub(super) fn of_resource(resource: &ApiResource, meta: &ObjectMeta) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    pub(super) fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    pub(super) fn api(&self, client: Client, resource: &ApiResource) -> Api<DynamicObject> {
        match self.namespace() {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }

    pub(super) fn identity(&self) -> [&str; 4] {
        [&self.group, &self.kind, &self.namespace, &self.name]
    }

    fn print(&self) -> String {
        let group = match &*self.group {
            "" => String::new(),
            group => format!(".{group}"),
        };
        format!(
            "{}.{}{group}/{}/{}/{}",
            self.plural, self.version, self.kind, self.namespace, self.name,
        )
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Entry {}

impl std::hash::Hash for Entry {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotation {
    /// UID of the owner. A copy of the owner has the same annotations, but must not own the set.
    owner: String,
    objects: Vec<String>,
    /// Positions in `objects`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leaving: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deletes_containers: bool,
    /// A later version of this library may add keys, which must survive a rollback.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl Record {
    /// Reads a record from an annotation of an owner. Returns `None` if there's no annotation, or if
    /// it was copied from another owner.
    pub(super) fn read(meta: &ObjectMeta, owner: &SetOwner, name: &str) -> Result<Option<Self>, Error> {
        let annotations = meta.annotations.as_ref();
        let Some(text) = annotations.and_then(|all| all.get(name)) else {
            return Ok(None);
        };
        let unreadable = |why: String| {
            Error::terminal(format!(
                "cannot read the annotation `{name}` of {}: {why}; restore it, or remove it, and the objects of the set \
                 will be looked up by their labels",
                owner.described
            ))
        };
        let annotation: Annotation =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if annotation.owner != owner.uid {
            return Ok(None);
        }
        let objects = annotation.objects.iter().map(|object| {
            let parsed = Recorded::parse(object);
            parsed.ok_or_else(|| unreadable(format!("`{object}` is not an object")))
        });
        let mut record = Self {
            generation: annotation.generation,
            deletes_containers: annotation.deletes_containers,
            unknown: annotation.unknown,
            ..Self::default()
        };
        record.set_objects(objects.collect::<Result<_, _>>()?);
        for at in annotation.leaving {
            if let Some(object) = record.objects.get_mut(at) {
                object.is_leaving = true;
            }
        }
        Ok(Some(record))
    }

    fn set_objects(&mut self, objects: Vec<Recorded>) {
        let entries = objects.iter().enumerate();
        self.positions = entries.map(|(at, object)| (object.entry.clone(), at)).collect();
        self.objects = objects;
    }

    pub(super) fn get(&self, entry: &Entry) -> Option<&Recorded> {
        self.positions.get(entry).map(|at| &self.objects[*at])
    }

    pub(super) fn objects(&self) -> &[Recorded] {
        &self.objects
    }

    /// Returns the annotation's value. Fails if the record is too large.
    pub(super) fn to_annotation(&self, owner: &SetOwner) -> Result<String, Error> {
        let objects = self.objects.iter();
        let leaving = self.objects.iter().enumerate();
        let text = serde_json::to_string(&Annotation {
            owner: owner.uid.clone(),
            objects: objects.map(Recorded::print).collect(),
            leaving: leaving
                .filter(|(_, object)| object.is_leaving)
                .map(|(at, _)| at)
                .collect(),
            generation: self.generation,
            deletes_containers: self.deletes_containers,
            unknown: self.unknown.clone(),
        })?;
        // Reserve space for unknown UIDs, or we might apply objects whose UIDs don't fit.
        let without_uid = self.objects.iter().filter(|object| object.uid.is_none()).count();
        let bytes = text.len() + without_uid * UID_BYTES;
        if bytes > MAX_BYTES {
            let message = format!(
                "the set of {} is too large: the record of its {} objects has {bytes} bytes, and an annotation has room \
                 for {MAX_BYTES}",
                owner.described,
                self.objects.len(),
            );
            return Err(Error::terminal(message));
        }
        Ok(text)
    }

    /// Adds objects that the record lacks, before all others.
    pub(super) fn add(&mut self, found: impl IntoIterator<Item = Recorded>) {
        let missing = found
            .into_iter()
            .filter(|object| self.get(&object.entry).is_none());
        let objects: Vec<_> = missing.chain(self.objects.iter().cloned()).collect();
        self.set_objects(objects);
    }

    /// Adds the `wanted` objects that are missing. If there are any, unwanted objects come first,
    /// followed by the others in the order of `wanted`.
    pub(super) fn add_wanted(&mut self, wanted: &[Entry]) {
        if wanted.iter().all(|entry| self.positions.contains_key(entry)) {
            return;
        }
        let in_set: HashSet<&Entry> = wanted.iter().collect();
        let others = self
            .objects
            .iter()
            .filter(|object| !in_set.contains(&object.entry));
        let wanted = wanted.iter().map(|entry| match self.get(entry) {
            Some(recorded) => recorded.clone(),
            None => Recorded::new(entry.clone(), None),
        });
        let objects: Vec<_> = others.cloned().chain(wanted).collect();
        self.set_objects(objects);
    }

    /// Marks the objects for which `is_leaving` returns `true`, and no others.
    pub(super) fn mark_leaving(&mut self, is_leaving: impl Fn(&Entry) -> bool) {
        for object in &mut self.objects {
            object.is_leaving = is_leaving(&object.entry);
        }
    }

    pub(super) fn set_uid(&mut self, entry: &Entry, uid: Option<String>) {
        if let Some(&at) = self.positions.get(entry) {
            let object = &mut self.objects[at];
            // The API version may have changed as well.
            object.entry = entry.clone();
            object.uid = uid;
        }
    }

    /// Returns objects that are not wanted, in the order in which to delete them, i.e. reversed.
    /// Namespaces and CRDs come last: the order of objects that were found by their labels is not
    /// reliable.
    pub(super) fn not_in(&self, wanted: &HashSet<&Entry>) -> Vec<Recorded> {
        let others = self.objects.iter().rev();
        let mut others: Vec<_> = others
            .filter(|object| !wanted.contains(&object.entry))
            .cloned()
            .collect();
        others.sort_by_key(|object| object.entry.is_container());
        others
    }

    pub(super) fn remove(&mut self, gone: &HashSet<Entry>) {
        if !gone.is_empty() {
            let mut left = std::mem::take(&mut self.objects);
            left.retain(|object| !gone.contains(&object.entry));
            self.set_objects(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::object::Kind;

    fn owner() -> SetOwner {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("owner".to_owned());
        map.metadata.namespace = Some("shop".to_owned());
        map.metadata.uid = Some("1".to_owned());
        SetOwner::new(&map, &Kind::of_type(), "one", &[]).unwrap()
    }

    fn read(text: &str) -> Record {
        let mut meta = ObjectMeta::default();
        let annotations = [("rbuilder.dev/apply-set.one".to_owned(), text.to_owned())];
        meta.annotations = Some(annotations.into());
        let record = Record::read(&meta, &owner(), "rbuilder.dev/apply-set.one").unwrap();
        record.unwrap()
    }

    /// The annotation as the first version of this library wrote it.
    const FIRST_VERSION: &str = r#"{"owner":"1","objects":["configmaps.v1/ConfigMap/shop/a/2","deployments.v1.apps/Deployment/shop/b/"]}"#;

    #[test]
    fn record_of_the_first_version_is_read_and_written() {
        let record = read(FIRST_VERSION);
        let found = record
            .objects
            .iter()
            .map(|object| (object.entry.to_string(), object.uid.as_deref()));
        let expected = [
            ("ConfigMap shop/a".to_owned(), Some("2")),
            ("Deployment shop/b".to_owned(), None),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(record.to_annotation(&owner()).unwrap(), FIRST_VERSION);
    }

    #[test]
    fn first_version_can_read_what_this_one_writes() {
        #[derive(Deserialize)]
        struct FirstVersion {
            owner: String,
            objects: Vec<String>,
        }
        let mut record = read(FIRST_VERSION);
        record.generation = Some(7);
        record.deletes_containers = true;
        record.mark_leaving(|entry| entry.name == "a");
        let text = record.to_annotation(&owner()).unwrap();
        let FirstVersion { owner, objects } = serde_json::from_str(&text).unwrap();
        assert_eq!(owner, "1");
        for object in objects {
            let parts: Vec<&str> = object.split('/').collect();
            assert_eq!(parts.len(), 5, "{object}");
        }
        let again = read(&text);
        assert_eq!(again, record);
        assert!(again.objects[0].is_leaving && !again.objects[1].is_leaving);
    }

    #[test]
    fn unknown_parts_of_a_record_are_kept() {
        let later = r#"{"owner":"1","objects":["configmaps.v1/ConfigMap/shop/a/2/x/y"],"generation":3,"later":{"a":[1]}}"#;
        let mut record = read(later);
        assert_eq!(record.objects[0].uid.as_deref(), Some("2"));
        assert_eq!(record.to_annotation(&owner()).unwrap(), later);
        let entry = record.objects[0].entry.clone();
        record.add_wanted(std::slice::from_ref(&entry));
        record.set_uid(&entry, Some("3".to_owned()));
        let text = record.to_annotation(&owner()).unwrap();
        assert_eq!(text, later.replace("/2/", "/3/"));
    }
}
