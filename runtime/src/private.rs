//! What `derive(CrdSchema)` calls. Not for use by hand: it changes with the derive.

use std::borrow::Cow;
use std::marker::PhantomData;

use rbuilder_catalogue::KUBERNETES;
use rbuilder_schema::Slot;
use schemars::{JsonSchema, SchemaGenerator};

pub use rbuilder_schema::private::{is_option, json_schema};
/// The crate whose trait the derive implements: the user's program need not depend on it.
pub use schemars;

/// The schema of a type that a container mentions.
///
/// # Panics
/// When its `JsonSchema` has no structural form.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    rbuilder_schema::private::slot_with::<T>(&|path| KUBERNETES.schema(path))
}

/// Stands for `k8s_openapi::ByteString`, which has no `JsonSchema`.
pub struct Bytes;

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "io.k8s.ByteString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "byte" })
    }
}

/// A type as written, and the same type with [`Bytes`] in the place of what is called `ByteString` in it.
///
/// `(&Probe::<T, S>::new()).slot()` is the schema of `T` when it has one: somebody's own `ByteString` may. When it has
/// none, it is that of `S`: method resolution comes to [`Substituted`] last.
pub struct Probe<T: ?Sized, S: ?Sized>(PhantomData<T>, PhantomData<S>);

impl<T: ?Sized, S: ?Sized> Probe<T, S> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Probe(PhantomData, PhantomData)
    }
}

/// The first choice.
pub trait AsWritten {
    fn slot(&self) -> Slot;
}

impl<T: JsonSchema + ?Sized, S: ?Sized> AsWritten for Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<T>()
    }
}

/// The second choice.
pub trait Substituted {
    fn slot(&self) -> Slot;
}

impl<T: ?Sized, S: JsonSchema + ?Sized> Substituted for &Probe<T, S> {
    fn slot(&self) -> Slot {
        slot::<S>()
    }
}
