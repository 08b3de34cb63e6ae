//! The form in which a cache stores an object.

use std::sync::{Arc, OnceLock};

use kube::core::ObjectMeta;

use super::packed::{PackedMeta, Packer, Words};
use crate::object::{Key, Watchable};

/// An object in a cache.
pub(super) struct Stored<K> {
    pub(super) form: Form<K>,
    /// Size of the object as received, in bytes of JSON. An own write inherits the size of the
    /// previous version.
    pub(super) bytes: u32,
    /// Number of the last list that contained it, if the object last came from a list.
    pub(super) list: u32,
}

/// The stored form of an object. Cheap to copy; the [`Unpacker`] of the cache turns copies into
/// objects.
pub(super) enum Form<K> {
    /// The object itself, shared with its readers.
    Whole(Arc<K>),
    /// The metadata of an object that has nothing else. Each reader gets a newly built object.
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

/// Builds objects from their stored form, without taking a lock.
///
/// Objects of the metadata API consist of type and metadata only, because the API server sends
/// nothing else. A single object without its metadata, the shell, therefore serves as the template
/// for all objects of the cache.
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
    /// Returns the form in which to store an object.
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

    /// Returns the words and the shell for packed objects.
    pub(super) fn packed(&self) -> Option<(&Words, &K)> {
        self.packed.get().map(|(words, shell)| (&**words, shell))
    }
}

/// Returns a copy of the shell with this metadata.
pub(super) fn fill<K: Watchable>(shell: &K, meta: ObjectMeta) -> Arc<K> {
    let mut object = shell.clone();
    *object.meta_mut() = meta;
    Arc::new(object)
}
