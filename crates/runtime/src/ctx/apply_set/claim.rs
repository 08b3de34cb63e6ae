//! How an object in a set refers to its owner.
//!
//! | owner | claim on the object |
//! |---|---|
//! | cluster-scoped, or in the namespace of the object | an owner reference with `controller`, so the garbage collector deletes the object |
//! | cannot be in an owner reference, or must not because the object is kept or contains others | the annotation `rbuilder.dev/apply-set-owner` |
//!
//! An administrator can add the annotation `rbuilder.dev/keep` to an object with an owner reference,
//! which is then replaced by the annotation with the owner, until the first one is removed again.
//!
//! Both contain the owner's UID. A copy of the owner that includes its annotations inherits nothing.
//! A recreated owner only takes over objects with the annotation: the garbage collector deletes those
//! with an owner reference to its predecessor.
//!
//! Every object also has a label with the same name as the annotation that contains the record. It
//! is only used to find the objects of a lost record. Its value is the owner's UID and a hash of the
//! object's identity, so a copy of the object under another name is not taken for a member.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, ListParams};
use kube::core::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use rbuilder_kubernetes::gvk;

use super::record::Entry;
use crate::ctx::Ctx;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, Kind, Watchable, describe_object};
use crate::shards::hash;

/// Annotation on objects that must never be deleted.
pub(super) const KEEP: &str = "rbuilder.dev/keep";
/// Annotation that identifies the owner of an object without an owner reference.
pub(super) const OWNER: &str = "rbuilder.dev/apply-set-owner";
/// Prefix of the annotation with the record of a set, followed by the controller's name. The labels
/// of the set's objects have the same name.
const RECORD: &str = "rbuilder.dev/apply-set.";
/// Maximum length of an annotation name after the `/`.
const MAX_NAME: usize = 63;

pub(super) struct SetOwner {
    pub(super) uid: String,
    pub(super) described: String,
    /// Name of the controller whose set this is.
    pub(super) controller: String,
    /// Name of the annotation that contains the record, and of the label of the objects.
    pub(super) record: String,
    /// The same for former names of the controller.
    pub(super) former_records: Vec<String>,
    /// The owner in the form of an object of a set.
    pub(super) entry: Entry,
    resource: ApiResource,
    reference: OwnerReference,
    /// Value of the annotation that identifies the owner.
    pub(super) mark: String,
}

/// The owner in an annotation like `Memo.example.com/shop/notes/<uid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark<'a> {
    /// Kind, namespace and name.
    names: [&'a str; 3],
    uid: &'a str,
}

impl<'a> Mark<'a> {
    /// Ignores further parts, which a later version of this library may add.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('/');
        Some(Self {
            names: [parts.next()?, parts.next()?, parts.next()?],
            uid: parts.next()?,
        })
    }
}

/// How an object refers to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    /// The garbage collector deletes the object with its owner.
    Reference,
    /// `delete_set` deletes the object.
    Mark,
    /// Nobody deletes the object.
    Kept,
}

impl SetOwner {
    pub(super) fn new<O: AnyObject>(
        owner: &O,
        kind: &Kind<O>,
        controller: &str,
        former_controllers: &[String],
    ) -> Result<Self, Error> {
        let described = describe_object(owner);
        let reference = owner
            .controller_owner_ref(&kind.dynamic)
            .ok_or_else(|| OwnershipError::NoUid(described.clone()))?;
        let entry = Entry::of(kind, owner.meta());
        let former = former_controllers.iter().map(|name| record_name(name));
        Ok(Self {
            uid: reference.uid.clone(),
            controller: controller.to_owned(),
            record: record_name(controller)?,
            former_records: former.collect::<Result<_, _>>()?,
            mark: format!(
                "{}/{}/{}/{}",
                kind.group_kind(),
                entry.namespace,
                entry.name,
                reference.uid
            ),
            described,
            resource: entry.resource(),
            entry,
            reference: OwnerReference {
                block_owner_deletion: Some(true),
                ..reference
            },
        })
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.entry.namespace()
    }

    /// Returns the names of the annotations that may contain records of this set.
    pub(super) fn records(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.record).chain(&self.former_records)
    }

    pub(super) fn bond_to(&self, entry: &Entry, is_kept: bool) -> Bond {
        match is_kept {
            true => Bond::Kept,
            // The garbage collector would delete everything in it, no matter who created that.
            false if entry.is_container() => Bond::Mark,
            false if self.namespace().is_none() || self.namespace() == entry.namespace() => Bond::Reference,
            false => Bond::Mark,
        }
    }

    pub(super) fn claim(&self, meta: &mut ObjectMeta, entry: &Entry, bond: Bond) {
        let labels = meta.labels.get_or_insert_default();
        labels.insert(self.record.clone(), label_of(&self.uid, entry));
        // Replace an existing reference, which may not have `controller` set.
        self.remove_reference(meta);
        if bond == Bond::Reference {
            let references = meta.owner_references.get_or_insert_default();
            references.push(self.reference.clone());
            return;
        }
        let annotations = meta.annotations.get_or_insert_default();
        annotations.insert(OWNER.to_owned(), self.mark.clone());
        if bond == Bond::Kept {
            annotations.insert(KEEP.to_owned(), "true".to_owned());
        }
    }

    /// Replaces the owner reference in the metadata to apply by the annotation if the existing object
    /// must be kept.
    pub(super) fn adapt_claim(&self, wanted: &mut ObjectMeta, found: &ObjectMeta) {
        if is_kept(found) && self.reference_index(wanted).is_some() {
            self.remove_reference(wanted);
            let annotations = wanted.annotations.get_or_insert_default();
            annotations.insert(OWNER.to_owned(), self.mark.clone());
        }
    }

    fn remove_reference(&self, meta: &mut ObjectMeta) {
        if let Some(references) = &mut meta.owner_references {
            references.retain(|reference| reference.uid != self.uid);
        }
        meta.owner_references.take_if(|references| references.is_empty());
    }

    /// Reads the owner's metadata from the API server. Returns `None` if it was deleted or replaced.
    pub(super) async fn read(&self, ctx: &Ctx<()>) -> Result<Option<ObjectMeta>, Error> {
        // List by name instead of using a get, see `adoption`.
        let named = ListParams::default().fields(&format!("metadata.name={}", self.entry.name));
        let api = self.entry.api(ctx.client(), &self.resource);
        let found = api.list_metadata(&named).await?;
        let mut found = found.items.into_iter().map(|found| found.metadata);
        Ok(found.find(|found| found.uid.as_ref() == Some(&self.uid)))
    }

    /// Returns `true` if the object is marked by a namesake of the owner. Names are unique, so the
    /// namesake is gone if this owner exists.
    pub(super) fn succeeds_owner_of(&self, found: &ObjectMeta) -> bool {
        let ours = Mark::parse(&self.mark);
        controller_of(found).is_none()
            && mark_of(found).is_some_and(|mark| {
                let found = Mark::parse(mark);
                found
                    .zip(ours)
                    .is_some_and(|(found, ours)| found.names == ours.names)
            })
    }

    pub(super) fn owns(&self, found: &ObjectMeta) -> bool {
        match controller_of(found) {
            Some(controller) => controller.uid == self.uid,
            None => {
                let mark = mark_of(found).and_then(Mark::parse);
                mark.is_some() && mark == Mark::parse(&self.mark)
            }
        }
    }

    pub(super) fn reference_index(&self, found: &ObjectMeta) -> Option<usize> {
        let mut references = found.owner_references.iter().flatten();
        references.position(|reference| reference.uid == self.uid)
    }

    pub(super) fn refuse(&self, object: String, found: &ObjectMeta) -> OwnershipError {
        let Some(controller) = controller_of(found) else {
            return match mark_of(found) {
                Some(mark) => OwnershipError::AlreadyOwned {
                    object,
                    owner: mark.to_owned(),
                },
                None => OwnershipError::NotOwned {
                    object,
                    owner: self.described.clone(),
                },
            };
        };
        let ours = &self.reference;
        // Compare groups rather than whole API versions: the reference may contain any version of
        // the kind.
        let is_namesake = controller.name == ours.name
            && controller.kind == ours.kind
            && gvk::group_of(&controller.api_version) == gvk::group_of(&ours.api_version);
        match is_namesake {
            true => OwnershipError::OwnedByNamesake {
                object,
                owner: self.described.clone(),
                uid: controller.uid.clone(),
            },
            false => OwnershipError::AlreadyOwned {
                object,
                owner: format!("{} {}", controller.kind, controller.name),
            },
        }
    }
}

/// Returns the label of an object.
pub(super) fn label_of(owner_uid: &str, entry: &Entry) -> String {
    format!("{owner_uid}.{:016x}", hash(&entry.identity().join("/")))
}

/// Parses the owner's UID from the label of an object. Returns `None` for a copy of another object.
/// Ignores what a later version of this library may add after another `.`.
pub(super) fn owner_uid_in<'a>(label: &'a str, entry: &Entry) -> Option<&'a str> {
    let mut parts = label.split('.');
    let (uid, hash) = (parts.next()?, parts.next()?);
    (label_of(uid, entry) == format!("{uid}.{hash}")).then_some(uid)
}

/// Returns the controllers whose sets contain an object according to its labels.
pub(super) fn records_in_labels(meta: &ObjectMeta) -> impl Iterator<Item = (&String, &String)> {
    let labels = meta.labels.iter().flatten();
    labels.filter(|(name, _)| name.starts_with(RECORD))
}

/// Returns the controllers with records on an owner, and the names of these annotations.
pub(super) fn controllers_with_records(meta: &ObjectMeta) -> impl Iterator<Item = (&str, &String)> {
    let names = meta.annotations.iter().flat_map(|annotations| annotations.keys());
    names.filter_map(|name| Some((name.strip_prefix(RECORD)?, name)))
}

/// Parses the owner from the annotation. Returns `None` if its kind is not `kind`.
pub(super) fn find_owner<K: Watchable>(found: &ObjectMeta, kind: &Kind<K>) -> Option<ObjectRef<K>> {
    let Mark {
        names: [marked, namespace, name],
        uid,
    } = Mark::parse(mark_of(found)?)?;
    if marked != kind.group_kind() {
        return None;
    }
    let mut owner = ObjectRef::new_with(name, kind.dynamic.clone());
    owner.namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    owner.extra.uid = Some(uid.to_owned());
    Some(owner)
}

pub(super) fn is_kept(found: &ObjectMeta) -> bool {
    let keep = found.annotations.as_ref().and_then(|all| all.get(KEEP));
    keep.is_some_and(|keep| keep == "true")
}

/// Returns `true` if the object has neither a controller nor the annotation of an owner.
pub(super) fn is_unclaimed(found: &ObjectMeta) -> bool {
    controller_of(found).is_none() && mark_of(found).is_none()
}

fn controller_of(found: &ObjectMeta) -> Option<&OwnerReference> {
    let mut references = found.owner_references.iter().flatten();
    references.find(|reference| reference.controller == Some(true))
}

fn mark_of(found: &ObjectMeta) -> Option<&str> {
    found.annotations.as_ref()?.get(OWNER).map(String::as_str)
}

fn record_name(controller: &str) -> Result<String, Error> {
    let annotation = format!("{RECORD}{controller}");
    let (_, prefix) = RECORD.split_once('/').unwrap_or_default();
    let longest = MAX_NAME - prefix.len();
    let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if controller.chars().all(is_valid)
        && controller.ends_with(|last: char| last.is_ascii_alphanumeric())
        && controller.len() <= longest
    {
        return Ok(annotation);
    }
    Err(Error::terminal(format!(
        "the name `{controller}` of the controller cannot be part of the annotation `{annotation}`; set one of at most {longest} \
         letters, digits, `-`, `_` and `.` with `.named(…)`"
    )))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn config_map(namespace: &str, name: &str, uid: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some(namespace.to_owned());
        map.metadata.name = Some(name.to_owned());
        map.metadata.uid = Some(uid.to_owned());
        map
    }

    fn marked(mark: &str) -> ObjectMeta {
        ObjectMeta {
            annotations: Some([(OWNER.to_owned(), mark.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn mark_with_unknown_parts_is_read() {
        let kind = Kind::of_type();
        let owner = SetOwner::new(&config_map("shop", "notes", "1"), &kind, "memo", &[]).unwrap();
        let check = |mark: &str, owns: bool, succeeds: bool| {
            let found = marked(mark);
            assert_eq!(owner.owns(&found), owns, "{mark}");
            assert_eq!(owner.succeeds_owner_of(&found), succeeds, "{mark}");
        };
        check("ConfigMap/shop/notes/1", true, true);
        check("ConfigMap/shop/notes/1/later", true, true);
        check("ConfigMap/shop/notes/2/later", false, true);
        check("ConfigMap/shop/other/2", false, false);
        check("ConfigMap/yard/notes/2", false, false);
        check("Secret/shop/notes/2", false, false);
        check("damaged", false, false);
        let found = find_owner(&marked("ConfigMap/shop/notes/1/later"), &kind).unwrap();
        assert_eq!((&*found.name, found.extra.uid.as_deref()), ("notes", Some("1")));
    }

    #[test]
    fn label_belongs_to_one_object() {
        let kind = Kind::<ConfigMap>::of_type();
        let entry = |name: &str| Entry::of(&kind, &config_map("shop", name, "1").metadata);
        let label = label_of("6f1c2d34-0000-4000-8000-123456789abc", &entry("a"));
        assert!(label.len() <= MAX_NAME, "{label}");
        let uid = owner_uid_in(&label, &entry("a"));
        assert_eq!(uid, Some("6f1c2d34-0000-4000-8000-123456789abc"));
        assert_eq!(owner_uid_in(&format!("{label}.later"), &entry("a")), uid);
        assert_eq!(owner_uid_in(&label, &entry("b")), None);
        assert_eq!(owner_uid_in("damaged", &entry("a")), None);
    }
}
