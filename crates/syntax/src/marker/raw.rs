//! `schema = { … }`: a literal schema, for everything that neither the Rust type nor other markers
//! can express.

use rbuilder_re2::Pattern;
use rbuilder_schema::{
    FORMATS, IsReported, Key, Markers, Schema, SchemaError, SchemaType, check_literal, check_structural,
};
use serde_json::{Value, json};

use super::{Marker, Place, Reading};
use crate::args::{Arg, ReadArg as _};
use crate::{Diagnostic, Session, suggest};

pub(super) const MARKERS: &[Marker] = &[Marker {
    name: "schema",
    form: "schema = { \"type\": \"string\", … }",
    doc: "Schema as in a manifest; ignores the Rust type.",
    places: &[Place::Type, Place::Field, Place::Newtype, Place::Value],
    repeatable: false,
    read,
}];

fn read(arg: &Arg, reading: &mut Reading, session: &mut Session) {
    let Some(value) = arg.any(session) else { return };
    let Some(mut schema) = schema_of(&value, arg, session) else {
        return;
    };
    let at = arg.value_span();
    let broken = check_structural(&schema);
    schema.is_reported = IsReported(!broken.is_empty());
    for diagnostic in broken {
        let place = place(&diagnostic.place);
        let about = |message| format!("invalid schema{place}: {message}");
        session.report(diagnostic.map_message(about).at(at));
    }
    for diagnostic in check_literal(&schema) {
        let place = place(&diagnostic.place);
        session.report(diagnostic.map_message(|message| message + &place).at(at));
    }
    check_patterns(&schema, arg, session);
    reading.markers.schema = Some(schema.into());
}

/// Reads the keys of `root_schema`. The result isn't complete yet, so it can't be checked for being
/// structural.
pub(crate) fn read_root_schema(arg: &Arg, session: &mut Session) -> Option<Schema> {
    let value = arg.any(session)?;
    let mut schema = schema_of(&value, arg, session)?;
    check_patterns(&schema, arg, session);
    let at = arg.value_span();
    let keys = value.as_object().into_iter().flat_map(|keys| keys.keys());
    for key in keys.filter(|key| !Key::named(key).is_some_and(Key::is_in_root_schema)) {
        let help = suggest::describe_candidates(key, Key::names(Key::is_in_root_schema));
        session.error_help(at, format!("`root_schema` cannot have `{key}`"), help);
    }
    if let Some(other) = schema.schema_type.filter(|is| *is != SchemaType::Object) {
        let message = format!(
            "`root_schema` must be of type `object`, found `{}`",
            other.as_str()
        );
        session.error_help(at, message, "remove `type`");
    }
    // Remove the reported keys, or the checks of the complete schema would report them again.
    schema.schema_type = None;
    schema.nullable = false;
    schema.default = None;
    schema.additional_properties = None;
    Some(schema)
}

fn schema_of(value: &Value, arg: &Arg, session: &mut Session) -> Option<Schema> {
    match Schema::from_literal(value) {
        Ok(schema) => {
            for key in empty_alternatives(value) {
                report_empty(key, arg, session);
            }
            Some(schema)
        }
        Err(SchemaError::UnknownKey(key, path)) => {
            let help = suggest::describe_candidates(&key, Key::names(|_| true));
            let message = format!("unknown key `{key}` of a schema{}", place(&path));
            session.error_help(arg.value_span(), message, help);
            None
        }
        Err(SchemaError::Malformed(reason, path)) => {
            let help =
                "write the schema as in a manifest: `schema = { \"type\": \"string\", \"maxLength\": 5 }`";
            let message = format!("invalid schema{}: {reason}", place(&path));
            session.error_help(arg.value_span(), message, help);
            None
        }
    }
}

fn empty_alternatives(schema: &Value) -> Vec<&str> {
    let Value::Object(keys) = schema else {
        return match schema {
            Value::Array(items) => items.iter().flat_map(empty_alternatives).collect(),
            _ => Vec::new(),
        };
    };
    // The parsed schema doesn't distinguish an empty list from none, so dropping it would go
    // unnoticed.
    let is_value = |key: &str| ["default", "enum", "example"].contains(&key);
    keys.iter()
        .filter(|(key, _)| !is_value(key))
        .flat_map(|(key, value)| {
            let is_empty = ["allOf", "anyOf", "oneOf"].contains(&key.as_str()) && *value == json!([]);
            let inner = empty_alternatives(value);
            is_empty.then_some(key.as_str()).into_iter().chain(inner)
        })
        .collect()
}

fn report_empty(key: &str, arg: &Arg, session: &mut Session) {
    let message = format!("`{key}` must not be empty");
    let help = "remove it, or write a schema: `[{ \"required\": [\"name\"] }]`";
    session.error_help(arg.value_span(), message, help);
}

/// Parses `validation(one_of = [{ "required": ["a"] }, …])`. `key` is the name of the list in a
/// manifest.
pub(super) fn read_alternatives(key: &str, arg: &Arg, markers: &mut Markers, session: &mut Session) {
    let Some(value) = arg.any(session) else { return };
    if value.as_array().is_some_and(Vec::is_empty) {
        return report_empty(arg.name, arg, session);
    }
    let Some(new) = schema_of(&json!({ key: value }), arg, session) else {
        return;
    };
    check_patterns(&new, arg, session);
    let known = markers.stated_mut();
    known.all_of.extend(new.all_of);
    known.any_of.extend(new.any_of);
    known.one_of.extend(new.one_of);
    known.not = new.not.or(known.not.take());
}

fn check_patterns(schema: &Schema, arg: &Arg, session: &mut Session) {
    if let Some(text) = &schema.pattern
        && let Err(reason) = Pattern::parse(text)
    {
        let help = "use RE2 syntax, as in Go: https://github.com/google/re2/wiki/Syntax";
        let message = format!("invalid pattern: {reason}");
        session.error_help(arg.value_span(), message, help);
    }
    if let Some(format) = &schema.format
        && !FORMATS.contains(&&**format)
    {
        let message = format!("unknown format `{format}`");
        let help = "remove it: it has no effect";
        session.report(Diagnostic::warning(arg.value_span(), message).help(help));
    }
    let shared = schema
        .properties
        .values()
        .chain(&schema.items)
        .chain(&schema.additional_properties);
    let parts = schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of);
    for part in shared.chain(&schema.not).map(AsRef::as_ref).chain(parts) {
        check_patterns(part, arg, session);
    }
}

fn place(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" at `{path}`")
    }
}
