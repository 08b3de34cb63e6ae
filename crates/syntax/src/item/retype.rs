//! Finds markers that change the JSON type of a value from what serde expects.

use rbuilder_reader::Span;
use rbuilder_schema::{Markers, SchemaType};

use crate::Session;
use crate::marker::{self, Kind};

/// If false, the kind of the field doesn't matter.
pub(super) fn may_retype(markers: &Markers) -> bool {
    markers.int_or_string
        || markers.stated().schema_type.is_some()
        || markers.items.is_some()
        || markers.values.is_some()
}

/// Reports a marker that changes the type of a Rust primitive, list or map: serde would reject what
/// the schema accepts.
pub(super) fn check_retyped(kind: &Kind, read: &marker::FieldMarkers, at: Span, session: &mut Session) {
    let is_stated = read.schema_type.is_some() || read.markers.schemaless || read.markers.schema.is_some();
    if !is_stated && let Some(kind) = retyped(kind, &read.markers) {
        let message = format!(
            "a marker changes the type of the value, but serde expects {}",
            kind.noun()
        );
        let help = "change the type of the field, or deserialize it with `#[serde(with = \"…\")]`";
        session.error_help(at, message, help);
    }
}

fn retyped<'k>(kind: &'k Kind, markers: &Markers) -> Option<&'k Kind> {
    let is_other = |own: SchemaType| {
        let written = markers.stated().schema_type;
        markers.int_or_string || written.is_some_and(|written| written != own)
    };
    match kind {
        Kind::Text => is_other(SchemaType::String).then_some(kind),
        Kind::Integer => is_other(SchemaType::Integer).then_some(kind),
        // A float accepts integers, too.
        Kind::Number if markers.stated().schema_type == Some(SchemaType::Integer) => None,
        Kind::Number => is_other(SchemaType::Number).then_some(kind),
        Kind::Boolean => is_other(SchemaType::Boolean).then_some(kind),
        Kind::List(item) => retyped(item, markers.items.as_deref()?),
        Kind::Map(value) => retyped(value, markers.values.as_deref()?),
        Kind::Object | Kind::Unknown => None,
    }
}
