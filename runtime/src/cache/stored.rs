//! The form in which a cache keeps an object.

use std::sync::{Arc, OnceLock};

use kube::core::ObjectMeta;

use super::packed::{PackedMeta, Packer, Words};
use crate::object::{Key, Watchable};

/// An object in a cache.
pub(super) struct Stored<K> {
    pub(super) form: Form<K>,
    /// Size of the object as received, in JSON; an own write has that of the version before.
    pub(super) bytes: u32,
    /// Number of the list that had it, if a list was the last to have it.
    pub(super) list: u32,
}

/// What is kept of an object. Copying it is cheap; an object is made of the copy by the [`Unpacker`] of its cache.
pub(super) enum Form<K> {
    /// The object, shared with its readers.
    Whole(Arc<K>),
    /// The metadata of an object that has nothing else; each reader gets a new object.
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
    /// Returns the resource version of the object with this name.
    pub(super) fn resource_version<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Whole(object) => object.meta().resource_version.as_deref(),
            Self::Packed(meta) => meta.view().resource_version(name),
        }
    }

    /// Returns `true` if the object with this name has this UID.
    pub(super) fn has_uid(&self, name: &str, uid: &str) -> bool {
        match self {
            Self::Whole(object) => object.meta().uid.as_deref() == Some(uid),
            Self::Packed(meta) => meta.view().has_uid(name, uid),
        }
    }
}

/// Makes objects of what a cache keeps. It needs no lock.
///
/// A type of the metadata API consists of type and metadata, because the API server sends no more for it. So one such
/// object without its metadata, the shell, serves all objects of the cache.
pub(super) struct Unpacker<K> {
    /// `None` until the first object is packed.
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
    /// Returns what is kept of an object.
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

    /// Returns the object with this key.
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

    /// Returns the words and the shell of packed objects.
    pub(super) fn packed(&self) -> Option<(&Words, &K)> {
        self.packed.get().map(|(words, shell)| (&**words, shell))
    }
}

/// Returns an object with this metadata.
pub(super) fn fill<K: Watchable>(shell: &K, meta: ObjectMeta) -> Arc<K> {
    let mut object = shell.clone();
    *object.meta_mut() = meta;
    Arc::new(object)
}
