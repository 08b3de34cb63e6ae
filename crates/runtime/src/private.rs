//! Used by code that `derive(CrdSchema)` generates. Not part of the public API; may change together
//! with the derive macro.

use std::borrow::Cow;
use std::marker::PhantomData;

use rbuilder_catalogue::KUBERNETES;
use rbuilder_schema::Slot;
use schemars::{JsonSchema, SchemaGenerator};

pub use rbuilder_schema::private::{
    Held, Serialized, Site, Unserialized, is_option, json_schema, json_schema_with_defaults,
};
/// Re-exported so that users don't need a dependency on it.
pub use schemars;

/// Returns the schema of a type used in a container.
///
/// # Panics
///
/// Panics if the `JsonSchema` implementation doesn't return a structural schema.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    rbuilder_schema::private::slot_with::<T>(&|path| KUBERNETES.schema(path))
}

/// Returns the schema from a user-provided function.
///
/// # Panics
///
/// Panics if the schema isn't structural.
pub fn slot_of(function: impl FnOnce(&mut SchemaGenerator) -> schemars::Schema) -> Slot {
    rbuilder_schema::private::slot_of(function, &|path| KUBERNETES.schema(path))
}

/// Replacement for `k8s_openapi::ByteString`, which doesn't implement `JsonSchema`.
pub struct Bytes;

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "io.k8s.ByteString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "byte" })
    }
}

/// Finds the schema of `T`. `S` is the same type, but with all types named `ByteString` replaced by
/// [`Bytes`].
///
/// `(&Probe::<T, S>::new()).slot()` returns the schema of `T` if there is one, since `ByteString`
/// might be the user's own type. Otherwise, it returns the schema of `S`. This works because
/// [`Substituted`] is the last candidate in method resolution.
pub struct Probe<T: ?Sized, S: ?Sized>(PhantomData<T>, PhantomData<S>);

impl<T: ?Sized, S: ?Sized> Probe<T, S> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Probe(PhantomData, PhantomData)
    }
}

/// Takes precedence in method resolution.
pub trait AsWritten {
    fn slot(&self) -> Slot;
}

impl<T: JsonSchema + ?Sized, S: ?Sized> AsWritten for Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<T>()
    }
}

/// Used if [`AsWritten`] doesn't apply.
pub trait Substituted {
    fn slot(&self) -> Slot;
}

impl<T: ?Sized, S: JsonSchema + ?Sized> Substituted for &Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<S>()
    }
}
