//! `schema = { … }`: the schema itself, where neither the Rust type nor other markers can say it.

use rbuilder_schema::{SCHEMA_KEYS, Schema, SchemaError, check_structural};

use super::{Marker, Place, Reading};
use crate::args::Arg;
use crate::{Session, suggest};

pub(super) const MARKERS: &[Marker] = &[Marker {
    name: "schema",
    form: "schema = { \"type\": \"string\", … }",
    doc: "The schema, as in a manifest: the Rust type is not looked at.",
    places: &[Place::Type, Place::Field, Place::Newtype],
    repeatable: false,
    read,
}];

fn read(arg: &Arg, reading: &mut Reading, session: &mut Session) {
    let Some(value) = arg.any(session) else { return };
    let schema = match Schema::from_literal(&value) {
        Ok(schema) => schema,
        Err(SchemaError::UnknownKey(key, path)) => {
            let help = suggest::help(&key, SCHEMA_KEYS.iter().copied());
            let message = format!("unknown key `{key}` of a schema{}", place(&path));
            return session.error_help(arg.value_span(), message, help);
        }
        Err(SchemaError::Malformed(reason, path)) => {
            let help = "write it as in a manifest: `schema = { \"type\": \"string\", \"maxLength\": 5 }`";
            let message = format!("this is no schema{}: {reason}", place(&path));
            return session.error_help(arg.value_span(), message, help);
        }
    };
    for breach in check_structural(&schema) {
        let message = format!(
            "the API server refuses this schema{}: {}",
            place(&breach.path),
            breach.message
        );
        session.error_help(arg.value_span(), message, breach.help.unwrap_or_default());
    }
    reading.markers.schema = Some(schema.into());
}

fn place(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" at `{path}`")
    }
}
