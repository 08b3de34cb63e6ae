//! Markers that override the Rust type: unknown fields, embedded objects, or another type.

use rbuilder_reader::TypeRef;

use super::{ANYWHERE, FIELD, Marker, Place};
use crate::args::ReadArg as _;

const OF_ONE_TYPE: &[Place] = &[Place::Type, Place::Field, Place::Newtype];

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "embedded_resource",
        form: "embedded_resource",
        doc: "The value is a Kubernetes object with `apiVersion`, `kind` and `metadata`.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.embedded_resource = arg.flag(session),
    },
    Marker {
        name: "embedded_object_meta",
        form: "embedded_object_meta, embedded_object_meta = false",
        doc: "Generates schemas for the `metadata` of embedded objects, so that labels, annotations and names are not pruned; with \
              `false`, they are pruned without a warning.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.embedded_object_meta = arg.boolean(session),
    },
    Marker {
        name: "preserve_unknown_fields",
        form: "preserve_unknown_fields",
        doc: "Unknown fields are preserved instead of pruned; on a list, those of its items.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.preserve_unknown_fields = arg.flag(session),
    },
    Marker {
        name: "int_or_string",
        form: "int_or_string",
        doc: "The value is an integer or a string.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.int_or_string = arg.flag(session),
    },
    Marker {
        name: "schemaless",
        form: "schemaless",
        doc: "Ignores the Rust type; the schema consists of markers and the description.",
        places: FIELD,
        repeatable: false,
        read: |arg, reading, session| reading.markers.schemaless = arg.flag(session),
    },
    Marker {
        name: "schema_type",
        form: "schema_type = \"path::Type\"",
        doc: "Uses the schema of this type, which has the same serialized form.",
        places: OF_ONE_TYPE,
        repeatable: false,
        read: |arg, reading, session| {
            let Some(text) = arg.text(session) else { return };
            match TypeRef::parse(&text, arg.value_span()) {
                Some(ty) => reading.schema_type = Some((ty, text)),
                None => {
                    let help = "write a path, as in `schema_type = \"String\"`";
                    session.error_help(arg.value_span(), format!("expected a type, found `{text}`"), help);
                }
            }
        },
    },
];
