//! How a cache stores an object.

use std::sync::{Arc, OnceLock};

use kube::core::ObjectMeta;

use super::packed::{PackedMeta, Packer, Words};
use crate::object::{Key, Watchable};

pub(super) struct Stored<K> {
    pub(super) form: Form<K>,
    /// Number of bytes of JSON received. The size of our own writes is unknown, so they inherit the
    /// size of the version that they replace.
    pub(super) bytes: u32,
    /// Number of the list that the object came from, if any.
    pub(super) list: u32,
}

/// Cheap to clone. An [`Unpacker`] turns it into an object.
pub(super) enum Form<K> {
    /// The object itself, shared with readers.
    Whole(Arc<K>),
    /// Nothing but metadata. Every read builds a new object.
    Packed(PackedMeta),
}

impl<K> Clone for Form<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Whole(object) => Self::Whole(Arc::clone(object)),
            Self::Packed(meta) => Self::Packed(meta.clone()),
        }
    }
}

impl<K: Watchable> Form<K> {
    pub(super) fn resource_version<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Whole(object) => object.meta().resource_version.as_deref(),
            Self::Packed(meta) => meta.view().resource_version(name),
        }
    }

    pub(super) fn has_uid(&self, name: &str, uid: &str) -> bool {
        match self {
            Self::Whole(object) => object.meta().uid.as_deref() == Some(uid),
            Self::Packed(meta) => meta.view().has_uid(name, uid),
        }
    }
}

/// Turns stored forms into objects without taking any locks.
///
/// Objects from the metadata API consist of their type and metadata, so all packed objects of a
/// cache are the same apart from the metadata. We store one of them with empty metadata as a
/// template, called the shell.
pub(super) struct Unpacker<K> {
    /// Set when the first object is packed.
    packed: OnceLock<(Arc<Words>, K)>,
}

impl<K> Default for Unpacker<K> {
    fn default() -> Self {
        Self {
            packed: OnceLock::new(),
        }
    }
}

impl<K: Watchable> Unpacker<K> {
    pub(super) fn pack(&self, object: &Arc<K>, packer: &mut Packer) -> Form<K> {
        if !K::metadata_api() {
            return Form::Whole(Arc::clone(object));
        }
        self.packed.get_or_init(|| {
            let mut shell = (**object).clone();
            *shell.meta_mut() = ObjectMeta::default();
            (Arc::clone(packer.words()), shell)
        });
        Form::Packed(PackedMeta::pack(object.meta(), packer))
    }

    pub(super) fn open(&self, key: &Key, form: &Form<K>) -> Option<Arc<K>> {
        match form {
            Form::Whole(object) => Some(Arc::clone(object)),
            Form::Packed(meta) => {
                let (words, shell) = self.packed()?;
                let meta = meta.view().unpack(key.namespace.as_deref(), &key.name, words);
                Some(fill(shell, meta))
            }
        }
    }

    pub(super) fn packed(&self) -> Option<(&Words, &K)> {
        self.packed.get().map(|(words, shell)| (&**words, shell))
    }
}

pub(super) fn fill<K: Watchable>(shell: &K, meta: ObjectMeta) -> Arc<K> {
    let mut object = shell.clone();
    *object.meta_mut() = meta;
    Arc::new(object)
}
