//! The form in which a cache keeps an object.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::ObjectMeta;

use super::packed::{PackedMeta, Words};
use crate::object::Watchable;

/// An object in a cache.
pub(super) struct Stored<K> {
    form: Form<K>,
    /// Size of the object as received, in JSON; an own write has that of the version before.
    pub(super) bytes: u32,
    /// Number of the list that had it, if a list was the last to have it.
    pub(super) list: u32,
}

enum Form<K> {
    /// The object, shared with its readers.
    Whole(Arc<K>),
    /// The metadata of an object that has nothing else; each reader gets a new object.
    Packed(PackedMeta),
}

/// Stores the objects of one cache, and makes objects of what is stored.
///
/// A type of the metadata API consists of type and metadata, because the API server sends no more for it. So one such
/// object without its metadata, the shell, serves all objects of the cache.
pub(super) struct Packing<K> {
    words: Words,
    /// `None` until the first object is packed.
    shell: Option<K>,
}

impl<K> Default for Packing<K> {
    fn default() -> Self {
        Self {
            words: Words::default(),
            shell: None,
        }
    }
}

impl<K: Watchable> Packing<K> {
    /// Returns the object as it is stored. `bytes` is its size as received, `list` the number of the list that has it.
    pub(super) fn store(&mut self, object: &Arc<K>, bytes: u32, list: u32) -> Stored<K> {
        let form = if K::metadata_api() {
            self.shell.get_or_insert_with(|| {
                let mut shell = (**object).clone();
                *shell.meta_mut() = ObjectMeta::default();
                shell
            });
            Form::Packed(PackedMeta::pack(object.meta(), &mut self.words))
        } else {
            Form::Whole(Arc::clone(object))
        };
        Stored { form, bytes, list }
    }

    /// Returns the stored object with this key.
    pub(super) fn open(&self, namespace: Option<&str>, name: &str, stored: &Stored<K>) -> Option<Arc<K>> {
        match &stored.form {
            Form::Whole(object) => Some(Arc::clone(object)),
            Form::Packed(meta) => {
                let mut object = self.shell.clone()?;
                *object.meta_mut() = meta.unpack(namespace, name, &self.words);
                Some(Arc::new(object))
            }
        }
    }

    /// Returns the resource version of the stored object with this name.
    pub(super) fn resource_version<'a>(&'a self, name: &'a str, stored: &'a Stored<K>) -> Option<&'a str> {
        match &stored.form {
            Form::Whole(object) => object.meta().resource_version.as_deref(),
            Form::Packed(meta) => meta.resource_version(name, &self.words),
        }
    }

    /// Returns the labels of the stored object with this name; none if the field is absent.
    pub(super) fn labels<'a>(&self, name: &str, stored: &'a Stored<K>) -> Cow<'a, BTreeMap<String, String>> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        match &stored.form {
            Form::Whole(object) => Cow::Borrowed(object.meta().labels.as_ref().unwrap_or(&NONE)),
            Form::Packed(meta) => Cow::Owned(meta.labels(name, &self.words)),
        }
    }
}
