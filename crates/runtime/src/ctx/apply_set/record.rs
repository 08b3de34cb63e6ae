//! The record of a set, stored as an annotation on the owner.

use std::fmt;

use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::claim::SetOwner;
use crate::error::Error;
use crate::hash::{HashMap, HashSet};

/// In bytes. Kubernetes limits all annotations of an object together to 256 KiB.
const MAX_BYTES: usize = 240 << 10;
const UID_BYTES: usize = 36;

/// Objects of a set, in the order in which they're applied. UIDs are added once they're known.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    objects: Vec<(Entry, Option<String>)>,
    positions: HashMap<Entry, usize>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.objects == other.objects
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
    pub(super) fn namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }

    fn identity(&self) -> [&str; 4] {
        [&self.group, &self.kind, &self.namespace, &self.name]
    }

    /// Parses an entry like `deployments.v1.apps/Deployment/shop/web/<uid>`. The UID is empty until
    /// the object's first apply.
    fn parse(text: &str) -> Option<(Self, Option<String>)> {
        let parts: Vec<&str> = text.split('/').collect();
        let &[resource, kind, namespace, name, uid] = &*parts else {
            return None;
        };
        let (plural, api) = resource.split_once('.')?;
        let (version, group) = api.split_once('.').unwrap_or((api, ""));
        let owned = str::to_owned;
        let entry = Self {
            group: owned(group),
            version: owned(version),
            kind: owned(kind),
            plural: owned(plural),
            namespace: owned(namespace),
            name: owned(name),
        };
        Some((entry, Some(owned(uid)).filter(|uid| !uid.is_empty())))
    }

    fn print(&self, uid: Option<&str>) -> String {
        let group = match &*self.group {
            "" => String::new(),
            group => format!(".{group}"),
        };
        format!(
            "{}.{}{group}/{}/{}/{}/{}",
            self.plural,
            self.version,
            self.kind,
            self.namespace,
            self.name,
            uid.unwrap_or_default()
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
struct Annotation {
    /// UID of the owner. A copy of the owner has the same annotations, but must not own the set.
    owner: String,
    objects: Vec<String>,
}

impl Record {
    fn new(objects: Vec<(Entry, Option<String>)>) -> Self {
        let entries = objects.iter().enumerate();
        Self {
            positions: entries.map(|(at, (entry, _))| (entry.clone(), at)).collect(),
            objects,
        }
    }

    /// Reads the record from an owner. Empty if there's no annotation, or if the annotation was
    /// copied from another owner.
    pub(super) fn read(meta: &ObjectMeta, owner: &SetOwner) -> Result<Self, Error> {
        let annotations = meta.annotations.as_ref();
        let Some(text) = annotations.and_then(|all| all.get(&owner.record_annotation)) else {
            return Ok(Self::default());
        };
        let unreadable = |why: String| {
            Error::terminal(format!(
                "cannot read the annotation `{}` of {}: {why}; restore it, or remove it and delete by hand what the \
                 set no longer contains",
                owner.record_annotation, owner.described
            ))
        };
        let annotation: Annotation =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if annotation.owner != owner.uid {
            return Ok(Self::default());
        }
        let objects = annotation.objects.iter().map(|object| {
            let parsed = Entry::parse(object);
            parsed.ok_or_else(|| unreadable(format!("`{object}` is not an object")))
        });
        Ok(Self::new(objects.collect::<Result<_, _>>()?))
    }

    /// Returns the annotation's value, or `None` to remove the annotation. Fails if the record is
    /// too large.
    pub(super) fn to_annotation(&self, owner: &SetOwner) -> Result<Option<String>, Error> {
        if self.objects.is_empty() {
            return Ok(None);
        }
        let objects = self.objects.iter();
        let text = serde_json::to_string(&Annotation {
            owner: owner.uid.clone(),
            objects: objects.map(|(entry, uid)| entry.print(uid.as_deref())).collect(),
        })?;
        // Reserve space for unknown UIDs, or we might apply objects whose UIDs don't fit.
        let without_uid = self.objects.iter().filter(|(_, uid)| uid.is_none()).count();
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
        Ok(Some(text))
    }

    /// Adds the `wanted` objects that are missing. Returns `None` if there are none.
    ///
    /// In the result, unwanted objects come first, followed by the others in the order of `wanted`.
    pub(super) fn with_missing(&self, wanted: &[Entry]) -> Option<Self> {
        if wanted.iter().all(|entry| self.positions.contains_key(entry)) {
            return None;
        }
        let in_set: HashSet<&Entry> = wanted.iter().collect();
        let others = self.objects.iter().filter(|(entry, _)| !in_set.contains(entry));
        let others: Vec<_> = others.cloned().collect();
        let wanted = wanted.iter().map(|entry| {
            let recorded = self.positions.get(entry);
            (entry.clone(), recorded.and_then(|at| self.objects[*at].1.clone()))
        });
        Some(Self::new(others.into_iter().chain(wanted).collect()))
    }

    pub(super) fn set_uid(&mut self, entry: &Entry, uid: Option<String>) {
        if let Some(&at) = self.positions.get(entry) {
            // The API version may have changed as well.
            self.objects[at] = (entry.clone(), uid);
        }
    }

    /// Returns objects that are not wanted, in the order in which to delete them (i.e. reversed).
    pub(super) fn not_in(&self, wanted: &HashSet<&Entry>) -> Vec<(Entry, Option<String>)> {
        let others = self.objects.iter().rev();
        others
            .filter(|(entry, _)| !wanted.contains(entry))
            .cloned()
            .collect()
    }

    pub(super) fn remove(&mut self, gone: &HashSet<Entry>) {
        if !gone.is_empty() {
            let mut left = std::mem::take(&mut self.objects);
            left.retain(|(entry, _)| !gone.contains(entry));
            *self = Self::new(left);
        }
    }
}
