//! How an object in a set refers to its owner.
//!
//! | owner | claim on the object |
//! |---|---|
//! | cluster-scoped, or in the namespace of the object | an owner reference with `controller`, so the garbage collector deletes the object |
//! | cannot be in an owner reference, or must not because the object is kept | the annotation `rbuilder.dev/apply-set-owner` |
//!
//! Both contain the owner's UID, so a recreated owner doesn't inherit objects from its predecessor.
//! Neither does a copy of the owner that includes its annotations.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, Kind, Object, describe_object};

/// Annotation on objects that must never be deleted.
pub(super) const KEEP: &str = "rbuilder.dev/keep";
/// Annotation that identifies the owner of an object without an owner reference.
const OWNER: &str = "rbuilder.dev/apply-set-owner";
/// Prefix of the annotation with the record of a set, followed by the controller's name.
const RECORD: &str = "rbuilder.dev/apply-set.";
/// Maximum length of an annotation name after the `/`.
const MAX_NAME: usize = 63;

pub(super) struct SetOwner {
    pub(super) uid: String,
    pub(super) described: String,
    pub(super) record_annotation: String,
    namespace: Option<String>,
    reference: OwnerReference,
    mark: String,
}

impl SetOwner {
    pub(super) fn new<O: AnyObject>(owner: &O, kind: &Kind<O>, controller: &str) -> Result<Self, Error> {
        let described = describe_object(owner);
        let reference = owner
            .controller_owner_ref(&kind.dynamic)
            .ok_or_else(|| OwnershipError::NoUid(described.clone()))?;
        let namespace = owner.namespace().filter(|_| kind.namespaced);
        let kind = kind.group_kind();
        let place = namespace.as_deref().unwrap_or_default();
        Ok(Self {
            uid: reference.uid.clone(),
            record_annotation: record_annotation(controller)?,
            mark: format!("{kind}/{place}/{}/{}", reference.name, reference.uid),
            described,
            namespace,
            reference: OwnerReference {
                block_owner_deletion: Some(true),
                ..reference
            },
        })
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(super) fn can_own(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace() == namespace
    }

    pub(super) fn claim(&self, meta: &mut ObjectMeta, kept: bool) {
        if self.can_own(meta.namespace.as_deref()) && !kept {
            let references = meta.owner_references.get_or_insert_default();
            // Replace an existing reference, which may not have `controller` set.
            references.retain(|reference| reference.uid != self.uid);
            references.push(self.reference.clone());
            return;
        }
        let annotations = meta.annotations.get_or_insert_default();
        annotations.insert(OWNER.to_owned(), self.mark.clone());
        if kept {
            annotations.insert(KEEP.to_owned(), "true".to_owned());
        }
    }

    pub(super) fn owns(&self, found: &ObjectMeta) -> bool {
        match controller_of(found) {
            Some(controller) => controller.uid == self.uid,
            None => mark_of(found) == Some(&*self.mark),
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
        let group = |reference: &OwnerReference| {
            let group = reference.api_version.split_once('/');
            group.map_or(String::new(), |(group, _)| group.to_owned())
        };
        let ours = &self.reference;
        // Compare groups rather than whole API versions: the reference may contain any version of
        // the kind.
        let is_namesake =
            controller.name == ours.name && controller.kind == ours.kind && group(controller) == group(ours);
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

/// Parses the owner from the annotation. Returns `None` if its kind is not `K`.
pub(super) fn find_owner<K: Object>(found: &ObjectMeta) -> Option<ObjectRef<K>> {
    let parts: Vec<&str> = mark_of(found)?.split('/').collect();
    let &[kind, namespace, name, uid] = &*parts else {
        return None;
    };
    if kind != Kind::<K>::of_type().group_kind() {
        return None;
    }
    let mut owner = ObjectRef::new(name);
    owner.namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    owner.extra.uid = Some(uid.to_owned());
    Some(owner)
}

pub(super) fn is_kept(found: &ObjectMeta) -> bool {
    let keep = found.annotations.as_ref().and_then(|all| all.get(KEEP));
    keep.is_some_and(|keep| keep == "true")
}

fn controller_of(found: &ObjectMeta) -> Option<&OwnerReference> {
    let mut references = found.owner_references.iter().flatten();
    references.find(|reference| reference.controller == Some(true))
}

fn mark_of(found: &ObjectMeta) -> Option<&str> {
    found.annotations.as_ref()?.get(OWNER).map(String::as_str)
}

fn record_annotation(controller: &str) -> Result<String, Error> {
    let annotation = format!("{RECORD}{controller}");
    let name = annotation.rsplit('/').next().unwrap_or_default();
    let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if controller.chars().all(is_valid)
        && controller.ends_with(|last: char| last.is_ascii_alphanumeric())
        && name.len() <= MAX_NAME
    {
        return Ok(annotation);
    }
    Err(Error::terminal(format!(
        "the name `{controller}` of the controller cannot be part of the annotation `{annotation}`; set one of at most {} \
         letters, digits, `-`, `_` and `.` with `.named(…)`",
        MAX_NAME - (name.len() - controller.len())
    )))
}
