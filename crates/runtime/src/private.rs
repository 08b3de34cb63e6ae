//! Items called by the code that `derive(CrdSchema)` generates. Not public API: they change with the derive.

use std::borrow::Cow;
use std::marker::PhantomData;

use rbuilder_catalogue::KUBERNETES;
use rbuilder_schema::Slot;
use schemars::{JsonSchema, SchemaGenerator};

pub use rbuilder_schema::private::{
    Held, Serialized, Site, Unserialized, is_option, json_schema, json_schema_with_defaults,
};
/// Re-exported so that the user's crate does not have to depend on it.
pub use schemars;

/// Returns the schema of a type used in a container.
///
/// # Panics
/// Panics if the `JsonSchema` of the type is not structural.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    rbuilder_schema::private::slot_with::<T>(&|path| KUBERNETES.schema(path))
}

/// Returns the schema that a user-supplied function returns.
///
/// # Panics
/// Panics if that schema is not structural.
pub fn slot_of(function: impl FnOnce(&mut SchemaGenerator) -> schemars::Schema) -> Slot {
    rbuilder_schema::private::slot_of(function, &|path| KUBERNETES.schema(path))
}

/// Replaces `k8s_openapi::ByteString`, which does not implement `JsonSchema`.
pub struct Bytes;

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "io.k8s.ByteString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "byte" })
    }
}

/// A type `T`, and the same type `S` with [`Bytes`] in place of every type named `ByteString`.
///
/// `(&Probe::<T, S>::new()).slot()` returns the schema of `T` if it has one, as a user-defined
/// `ByteString` may. Otherwise it returns the schema of `S`, because method resolution tries
/// [`Substituted`] last.
pub struct Probe<T: ?Sized, S: ?Sized>(PhantomData<T>, PhantomData<S>);

impl<T: ?Sized, S: ?Sized> Probe<T, S> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Probe(PhantomData, PhantomData)
    }
}

/// Preferred by method resolution.
pub trait AsWritten {
    fn slot(&self) -> Slot;
}

impl<T: JsonSchema + ?Sized, S: ?Sized> AsWritten for Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<T>()
    }
}

/// Used by method resolution when [`AsWritten`] does not apply.
pub trait Substituted {
    fn slot(&self) -> Slot;
}

impl<T: ?Sized, S: JsonSchema + ?Sized> Substituted for &Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<S>()
    }
}
