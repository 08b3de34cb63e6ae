//! Additional information about the program in a schema, for messages. It is not part of manifests,
//! so comparisons ignore it.

use std::sync::Arc;

use crate::Descriptor;

/// A field's descriptor. It is not part of the manifest, so comparisons ignore it.
#[derive(Clone, Debug, Default)]
pub struct DescriptorSlot(pub Option<Arc<Descriptor>>);

impl PartialEq for DescriptorSlot {
    fn eq(&self, _: &DescriptorSlot) -> bool {
        true
    }
}

/// The form in which the program parses a map's keys. `None` if it accepts any string. A manifest
/// cannot express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyForm(pub Option<&'static str>);

impl PartialEq for KeyForm {
    fn eq(&self, _: &KeyForm) -> bool {
        true
    }
}

/// Whether the program rejects fields that the schema does not define. The API server prunes them
/// either way, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed(pub bool);

impl PartialEq for Closed {
    fn eq(&self, _: &Closed) -> bool {
        true
    }
}

/// Whether serde fills in a value for an absent field that the API server does not. A manifest
/// cannot express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LacksDefault(pub bool);

impl PartialEq for LacksDefault {
    fn eq(&self, _: &LacksDefault) -> bool {
        true
    }
}

/// Whether a marker allows metadata to be dropped, which is a warning otherwise. A manifest cannot
/// express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropsObjectMeta(pub bool);

impl PartialEq for DropsObjectMeta {
    fn eq(&self, _: &DropsObjectMeta) -> bool {
        true
    }
}

/// Whether the errors in a schema have been reported. It is not part of the manifest, so
/// comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsReported(pub bool);

impl PartialEq for IsReported {
    fn eq(&self, _: &IsReported) -> bool {
        true
    }
}
