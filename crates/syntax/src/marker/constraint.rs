//! `validation(…)`: OpenAPI constraints. (`validation = "…"` is kube's syntax for a CEL rule.)
//!
//! The table of schema keys defines these constraints as [arguments](Key::arguments).

use std::sync::Arc;

use rbuilder_schema::{Access, Form, Key, Markers, SchemaType};
use serde_json::Value;

use super::{ANYWHERE, Marker, Reading, cel, raw};
use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::table::{Row, read_args};
use crate::{Session, suggest};

pub(super) const MARKERS: &[Marker] = &[Marker {
    name: "validation",
    form: "validation(minimum = 1, pattern = \"…\", …) or validation = \"CEL\"",
    doc: "Constraints on the value; a string is a CEL rule.",
    places: ANYWHERE,
    repeatable: true,
    read: |arg, reading, session| match &arg.value {
        ArgValue::List(args) => read(args, reading, session),
        _ => reading.markers.cel.extend(cel::read_cel_rule(arg, session)),
    },
}];

impl Row<Reading> for Key {
    #[allow(clippy::misnamed_getters)] // `name` is the name in manifests
    fn name(&self) -> &'static str {
        self.argument
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn read(&self, arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) {
        let markers = &mut reading.markers;
        match self.form {
            Form::Count(count) => set(count, arg.count(session), markers),
            Form::Number(number) => set(number, arg.number(session), markers),
            Form::Text(text) => set(text, arg.text(session).map(Arc::from), markers),
            Form::Type(schema_type) => set(schema_type, read_type(arg, session), markers),
            Form::Flag(flag) if arg.boolean(session) == Some(true) => {
                *flag.get_mut(markers.stated_mut()) = true;
            }
            Form::Values(values) => {
                if let Some(read) = read_values(self.argument, arg, session) {
                    *values.get_mut(markers.stated_mut()) = read;
                }
            }
            Form::Part(_) | Form::Parts(_) => raw::read_alternatives(self.name, arg, markers, session),
            _ => {}
        }
    }
}

fn set<T>(field: Access<Option<T>>, value: Option<T>, markers: &mut Markers) {
    if value.is_some() {
        *field.get_mut(markers.stated_mut()) = value;
    }
}

fn read_values(name: &str, arg: &Arg<'_>, session: &mut Session) -> Option<Vec<Value>> {
    let (message, help) = match arg.any(session)? {
        Value::Array(values) if values.is_empty() => (
            format!("`{name}` must not be empty"),
            "list the allowed values".to_owned(),
        ),
        Value::Array(values) => return Some(values),
        _ => {
            let help = format!("write `{name} = [\"A\", \"B\"]`");
            (format!("expected a list for `{name}`"), help)
        }
    };
    session.error_help(arg.value_span(), message, help);
    None
}

fn read(args: &[Arg<'_>], reading: &mut Reading, session: &mut Session) {
    read_args(args, reading, Key::of_argument, read_foreign, session);
}

fn read_foreign(arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) {
    let markers = &mut reading.markers;
    match arg.name {
        // From schemars' `length`, if the kind of value is unknown.
        "min_size" => markers.min_size = arg.count(session),
        "max_size" => markers.max_size = arg.count(session),
        // From schemars' `extend`, which uses OpenAPI's names.
        key @ ("allOf" | "anyOf" | "oneOf") => raw::read_alternatives(key, arg, markers, session),
        name => {
            let help = match name {
                "unique_items" => {
                    "write `list_type = \"set\"`: the API server rejects `unique_items`".to_owned()
                }
                name => suggest::describe_candidates(name, Key::arguments().map(|key| key.argument)),
            };
            session.error_help(arg.span, format!("unknown validation `{name}`"), help);
            reading.is_incomplete = true;
        }
    }
}

const TYPES: &[(&str, SchemaType)] = &[
    ("array", SchemaType::Array),
    ("boolean", SchemaType::Boolean),
    ("integer", SchemaType::Integer),
    ("number", SchemaType::Number),
    ("object", SchemaType::Object),
    ("string", SchemaType::String),
];

fn read_type(arg: &Arg, session: &mut Session) -> Option<SchemaType> {
    let text = arg.text(session)?;
    let known = TYPES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, schema_type)| *schema_type);
    if known.is_none() {
        let help = suggest::describe_candidates(&text, TYPES.iter().map(|(name, _)| *name));
        session.error_help(arg.value_span(), format!("unknown type `{text}`"), help);
    }
    known
}
