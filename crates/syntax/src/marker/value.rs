//! `default` and `example`, with values as Rust literals.

use super::{ANYWHERE, Marker};
use crate::args::ReadArg as _;

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "default",
        form: "default = 1, default = [\"a\"], default = { \"k\": -1 }",
        doc: "Default value, which the API server sets if the field is absent.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.default = arg.any(session),
    },
    Marker {
        name: "example",
        form: "example = \"…\"",
        doc: "Example value, for documentation.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if let Some(value) = arg.any(session) {
                reading.markers.stated_mut().example = Some(value);
            }
        },
    },
];
