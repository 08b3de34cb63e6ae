//! What `derive(CrdSchema)` calls. Not for use by hand: it changes with the derive.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::LazyLock;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::Slot;
use schemars::{JsonSchema, SchemaGenerator};

pub use rbuilder_schema::private::{is_option, json_schema};
/// The crate whose trait the derive implements: the user's program need not depend on it.
pub use schemars;

/// Kubernetes' own types, as the k8s-openapi in this program has them.
pub(crate) static KUBERNETES: LazyLock<Catalogue<'static>> =
    LazyLock::new(|| Catalogue::new(MINOR.unwrap_or_default()));

/// The schema of a type that a container mentions.
///
/// # Panics
/// When its `JsonSchema` has no structural form.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    rbuilder_schema::private::slot_with::<T>(&|path| KUBERNETES.schema(path))
}

// The minor whose feature of k8s-openapi is on; for one that the catalogue does not have, the next to it.
k8s_openapi::k8s_if_le_1_33! { const MINOR: Option<Minor> = Minor::new(33); }
k8s_openapi::k8s_if_1_34! { const MINOR: Option<Minor> = Minor::new(34); }
k8s_openapi::k8s_if_1_35! { const MINOR: Option<Minor> = Minor::new(35); }
k8s_openapi::k8s_if_1_36! { const MINOR: Option<Minor> = Minor::new(36); }
k8s_openapi::k8s_if_ge_1_37! { const MINOR: Option<Minor> = Minor::new(37); }

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
