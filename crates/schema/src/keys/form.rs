//! Typed access to the fields of a schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Number, Value};

use crate::{Cel, ExternalDocs, ListType, MapType, Schema, SchemaType};

/// Gives access to one field of [`Schema`].
pub struct Access<T: 'static> {
    pub(super) get: fn(&Schema) -> &T,
    pub(super) get_mut: fn(&mut Schema) -> &mut T,
}

impl<T> Clone for Access<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Access<T> {}

impl<T> Access<T> {
    /// Returns the field.
    pub fn get<'s>(&self, schema: &'s Schema) -> &'s T {
        (self.get)(schema)
    }

    /// Returns a mutable reference to the field.
    pub fn get_mut<'s>(&self, schema: &'s mut Schema) -> &'s mut T {
        (self.get_mut)(schema)
    }
}

/// The type of a key's value, with access to the field. The field of an absent key has its default
/// value.
#[derive(Clone, Copy)]
pub enum Form {
    /// A size, e.g. `maxItems`.
    Count(Access<Option<u64>>),
    /// A number, e.g. `minimum`.
    Number(Access<Option<Number>>),
    /// Either `true` or absent.
    Flag(Access<bool>),
    /// A string.
    Text(Access<Option<Arc<str>>>),
    /// Any JSON value.
    Value(Access<Option<Value>>),
    /// A list of JSON values of any type.
    Values(Access<Vec<Value>>),
    /// A schema.
    Part(Access<Option<Arc<Schema>>>),
    /// A list of schemas.
    Parts(Access<Vec<Schema>>),
    /// Fields with their schemas.
    Fields(Access<BTreeMap<Arc<str>, Arc<Schema>>>),
    /// The names of fields.
    Names(Access<BTreeSet<Arc<str>>>),
    /// The type.
    Type(Access<Option<SchemaType>>),
    /// A link to further documentation.
    Docs(Access<Option<Box<ExternalDocs>>>),
    /// How server-side apply merges a list.
    ListType(Access<Option<ListType>>),
    /// The fields that identify a list item.
    ListKeys(Access<Vec<String>>),
    /// How server-side apply merges an object.
    MapType(Access<Option<MapType>>),
    /// CEL rules.
    Rules(Access<Vec<Cel>>),
}

impl Form {
    /// Returns whether the value contains schemas.
    pub fn has_schemas(&self) -> bool {
        matches!(self, Form::Part(_) | Form::Parts(_) | Form::Fields(_))
    }

    pub(super) fn slot(&self) -> &dyn Slot {
        match self {
            Form::Count(access) => access,
            Form::Number(access) => access,
            Form::Flag(access) => access,
            Form::Text(access) => access,
            Form::Value(access) => access,
            Form::Values(access) => access,
            Form::Part(access) => access,
            Form::Parts(access) => access,
            Form::Fields(access) => access,
            Form::Names(access) => access,
            Form::Type(access) => access,
            Form::Docs(access) => access,
            Form::ListType(access) => access,
            Form::ListKeys(access) => access,
            Form::MapType(access) => access,
            Form::Rules(access) => access,
        }
    }
}

/// Operations on a field that don't depend on its type.
pub(super) trait Slot {
    fn is_set(&self, schema: &Schema) -> bool;
    fn is_same(&self, left: &Schema, right: &Schema) -> bool;
    fn copy(&self, from: &Schema, to: &mut Schema);
    fn clear(&self, schema: &mut Schema);
}

impl<T: Clone + Default + PartialEq> Slot for Access<T> {
    fn is_set(&self, schema: &Schema) -> bool {
        *self.get(schema) != T::default()
    }

    fn is_same(&self, left: &Schema, right: &Schema) -> bool {
        self.get(left) == self.get(right)
    }

    fn copy(&self, from: &Schema, to: &mut Schema) {
        self.get_mut(to).clone_from(self.get(from));
    }

    fn clear(&self, schema: &mut Schema) {
        *self.get_mut(schema) = T::default();
    }
}
