//! `optional`, `required`, `nullable` and `immutable`: whether a field must be present, and whether
//! it can change.

use super::{ANYWHERE, FIELD, Marker, Reading, TYPE};
use crate::Session;
use crate::args::{Arg, ReadArg as _};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "optional",
        form: "optional",
        doc: "The field is optional, regardless of its type.",
        places: FIELD,
        repeatable: false,
        read: |arg, reading, session| presence(arg, true, reading, session),
    },
    Marker {
        name: "required",
        form: "required",
        doc: "The field is required, regardless of its type.",
        places: FIELD,
        repeatable: false,
        read: |arg, reading, session| presence(arg, false, reading, session),
    },
    Marker {
        name: "serde_defaults",
        form: "serde_defaults = false",
        doc: "True to write all of serde's defaults to the schema, false to write none [default: those of functions, `#[serde(default = \"…\")]`].",
        places: TYPE,
        repeatable: false,
        read: |arg, reading, session| reading.serde_defaults = arg.boolean(session),
    },
    Marker {
        name: "nullable",
        form: "nullable",
        doc: "Allows `null` as a value.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.nullable = arg.flag(session),
    },
    Marker {
        name: "immutable",
        form: "immutable",
        doc: "The value cannot be changed or removed once it is set.",
        places: FIELD,
        repeatable: false,
        read: |arg, reading, session| {
            reading.markers.immutable = arg.flag(session);
            reading.markers.origin = arg.origin();
        },
    },
];

fn presence(arg: &Arg, optional: bool, reading: &mut Reading, session: &mut Session) {
    if arg.flag(session) && reading.markers.optional.replace(optional).is_some() {
        session.error(arg.span, "`optional` and `required` are mutually exclusive");
    }
}
