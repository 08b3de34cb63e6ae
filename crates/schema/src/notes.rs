//! Facts about the program for messages about a schema. None of this is in the manifest, so
//! comparisons of schemas ignore it.

use std::sync::Arc;

use crate::Descriptor;

/// The descriptor of a field. It isn't part of the manifest, so comparisons ignore it.
#[derive(Clone, Debug, Default)]
pub struct DescriptorSlot(pub Option<Arc<Descriptor>>);

impl PartialEq for DescriptorSlot {
    fn eq(&self, _: &DescriptorSlot) -> bool {
        true
    }
}

/// The format of map keys that the program can parse, or `None` if it accepts any string. A
/// manifest can't express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyForm(pub Option<&'static str>);

impl PartialEq for KeyForm {
    fn eq(&self, _: &KeyForm) -> bool {
        true
    }
}

/// Whether the program rejects fields not defined in the schema. The API server prunes them either
/// way, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed(pub bool);

impl PartialEq for Closed {
    fn eq(&self, _: &Closed) -> bool {
        true
    }
}

/// Whether serde, but not the API server, fills in a value for an absent field. A manifest can't
/// express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LacksDefault(pub bool);

impl PartialEq for LacksDefault {
    fn eq(&self, _: &LacksDefault) -> bool {
        true
    }
}

/// Whether a marker allows metadata to be dropped, so that there's no need for a warning. A
/// manifest can't express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropsObjectMeta(pub bool);

impl PartialEq for DropsObjectMeta {
    fn eq(&self, _: &DropsObjectMeta) -> bool {
        true
    }
}

/// Whether the errors in a schema have already been reported. Not part of the manifest, so
/// comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsReported(pub bool);

impl PartialEq for IsReported {
    fn eq(&self, _: &IsReported) -> bool {
        true
    }
}
