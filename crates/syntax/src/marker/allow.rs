//! `allow(…)`: suppressed warnings.

use super::{Marker, Place};
use crate::allow::read_allow;

pub(super) const MARKERS: &[Marker] = &[Marker {
    name: "allow",
    form: "allow(RB0306, reason = \"…\")",
    doc: "Leaves out warnings and notes with these codes, here and within. The reason is optional.",
    places: &[Place::Type, Place::Field, Place::Newtype, Place::Variant],
    repeatable: true,
    read: |arg, reading, session| read_allow(arg, reading.scope, session),
}];
