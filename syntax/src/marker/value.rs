//! `default` and `example`: values, as Rust literals.

use super::{ANYWHERE, Marker};
use crate::args::ReadArg as _;

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "default",
        form: "default = 1, default = [\"a\"], default = { \"k\": -1 }",
        doc: "The value that the API server fills in when the field is absent.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.default = arg.any(session),
    },
    Marker {
        name: "example",
        form: "example = \"…\"",
        doc: "A sample value, for readers.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.example = arg.any(session),
    },
];
