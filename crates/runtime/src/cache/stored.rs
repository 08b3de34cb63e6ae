//! How a cache stores an object.

use std::sync::{Arc, OnceLock};

use kube::core::ObjectMeta;

use super::packed::{PackedMeta, Packer, Words};
use crate::object::{Key, Watchable};

/// An object in a cache, with some bookkeeping.
pub(super) struct Stored<K> {
    pub(super) form: Form<K>,
    /// Size in bytes of JSON, as received. We do not know the size of an own write, so it gets the
    /// size of the version that it replaces.
    pub(super) bytes: u32,
    /// If the object came from a list, the number of that list.
    pub(super) list: u32,
}

/// Stored form of an object. Cloning it is cheap, and the [`Unpacker`] turns clones into objects.
pub(super) enum Form<K> {
    /// The object itself, which is shared with readers.
    Whole(Arc<K>),
    /// The metadata of an object that consists of nothing else. Every reader gets a new object.
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
    /// Returns the resource version of the object.
    pub(super) fn resource_version<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Whole(object) => object.meta().resource_version.as_deref(),
            Self::Packed(meta) => meta.view().resource_version(name),
        }
    }

    /// Returns `true` if the object has the given UID.
    pub(super) fn has_uid(&self, name: &str, uid: &str) -> bool {
        match self {
            Self::Whole(object) => object.meta().uid.as_deref() == Some(uid),
            Self::Packed(meta) => meta.view().has_uid(name, uid),
        }
    }
}

/// Turns stored forms into objects. This does not take any locks.
///
/// The metadata API returns objects with a type and metadata, and nothing else. So all packed
/// objects of a cache are the same apart from their metadata, and we only need to store one of them
/// without metadata. It is called the shell.
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
    /// Converts an object to the form in which it is stored.
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

    /// Returns the object for a stored form.
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

    /// Returns the words and the shell, which are needed for packed objects.
    pub(super) fn packed(&self) -> Option<(&Words, &K)> {
        self.packed.get().map(|(words, shell)| (&**words, shell))
    }
}

/// Clones the shell and sets its metadata.
pub(super) fn fill<K: Watchable>(shell: &K, meta: ObjectMeta) -> Arc<K> {
    let mut object = shell.clone();
    *object.meta_mut() = meta;
    Arc::new(object)
}
