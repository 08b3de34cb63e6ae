//! What we want to know about the program when we write messages about a schema. None of this is in
//! the manifest, so it's ignored when schemas are compared.

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

/// What the keys of a map have to look like for the program to parse them, or `None` if it accepts
/// any string. A manifest can't express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyForm(pub Option<&'static str>);

impl PartialEq for KeyForm {
    fn eq(&self, _: &KeyForm) -> bool {
        true
    }
}

/// Whether the program rejects fields that the schema doesn't define. The API server prunes them
/// either way, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed(pub bool);

impl PartialEq for Closed {
    fn eq(&self, _: &Closed) -> bool {
        true
    }
}

/// Whether serde fills in a value for an absent field and the API server doesn't. A manifest can't
/// express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LacksDefault(pub bool);

impl PartialEq for LacksDefault {
    fn eq(&self, _: &LacksDefault) -> bool {
        true
    }
}

/// Whether a marker says that metadata may be dropped, so that we don't warn about it. A manifest
/// can't express this, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropsObjectMeta(pub bool);

impl PartialEq for DropsObjectMeta {
    fn eq(&self, _: &DropsObjectMeta) -> bool {
        true
    }
}

/// Whether the errors in a schema have been reported already. This isn't part of the manifest, so
/// comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsReported(pub bool);

impl PartialEq for IsReported {
    fn eq(&self, _: &IsReported) -> bool {
        true
    }
}
