//! `validation(…)`: OpenAPI constraints. `validation = "…"` is kube's syntax for a CEL rule.

use rbuilder_schema::{SchemaType, Validation};
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

/// The values to which a constraint applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Integers and floating-point numbers.
    Number,
    /// Strings.
    Text,
    /// Lists.
    List,
    /// Structs and maps.
    Object,
    /// Any value.
    Any,
}

/// A key of `validation(…)`.
pub struct Constraint {
    /// The name of the constraint.
    pub name: &'static str,
    /// The description, in one line.
    pub doc: &'static str,
    /// The values to which it applies.
    pub subject: Subject,
    read: fn(&Arg, &mut Validation, &mut Session),
}

const fn row(
    name: &'static str,
    subject: Subject,
    doc: &'static str,
    read: fn(&Arg, &mut Validation, &mut Session),
) -> Constraint {
    Constraint {
        name,
        doc,
        subject,
        read,
    }
}

/// The keys of `validation(…)`.
pub const CONSTRAINTS: &[Constraint] = &[
    row(
        "minimum",
        Subject::Number,
        "Minimum value.",
        |arg, to, session| {
            to.minimum = arg.number(session);
        },
    ),
    row(
        "maximum",
        Subject::Number,
        "Maximum value.",
        |arg, to, session| {
            to.maximum = arg.number(session);
        },
    ),
    row(
        "exclusive_minimum",
        Subject::Number,
        "Excludes `minimum` itself.",
        |arg, to, session| {
            to.exclusive_minimum = arg.boolean(session).unwrap_or_default();
        },
    ),
    row(
        "exclusive_maximum",
        Subject::Number,
        "Excludes `maximum` itself.",
        |arg, to, session| {
            to.exclusive_maximum = arg.boolean(session).unwrap_or_default();
        },
    ),
    row(
        "multiple_of",
        Subject::Number,
        "The value must be a multiple of this number.",
        |arg, to, session| {
            to.multiple_of = arg.number(session);
        },
    ),
    row(
        "min_length",
        Subject::Text,
        "Minimum length in characters.",
        |arg, to, session| {
            to.min_length = arg.count(session);
        },
    ),
    row(
        "max_length",
        Subject::Text,
        "Maximum length in characters.",
        |arg, to, session| {
            to.max_length = arg.count(session);
        },
    ),
    row(
        "pattern",
        Subject::Text,
        "Regular expression (RE2) that the string must match.",
        |arg, to, session| {
            to.pattern = arg.text(session);
        },
    ),
    row(
        "min_items",
        Subject::List,
        "Minimum number of items.",
        |arg, to, session| to.min_items = arg.count(session),
    ),
    row(
        "max_items",
        Subject::List,
        "Maximum number of items.",
        |arg, to, session| to.max_items = arg.count(session),
    ),
    row(
        "min_properties",
        Subject::Object,
        "Minimum number of properties.",
        |arg, to, session| {
            to.min_properties = arg.count(session);
        },
    ),
    row(
        "max_properties",
        Subject::Object,
        "Maximum number of properties.",
        |arg, to, session| {
            to.max_properties = arg.count(session);
        },
    ),
    row(
        "enum",
        Subject::Any,
        "Allowed values.",
        |arg, to, session| match arg.any(session) {
            Some(Value::Array(values)) if values.is_empty() => {
                session.error_help(
                    arg.value_span(),
                    "`enum` must not be empty",
                    "list the allowed values",
                );
            }
            Some(Value::Array(values)) => to.enumeration = values,
            Some(_) => session.error_help(
                arg.value_span(),
                "expected a list for `enum`",
                "write `enum = [\"A\", \"B\"]`",
            ),
            None => {}
        },
    ),
    row(
        "all_of",
        Subject::Any,
        "Schemas that must all hold, as in a manifest: `[{ \"required\": [\"a\"] }]`.",
        |arg, to, session| raw::read_alternatives("allOf", arg, to, session),
    ),
    row(
        "any_of",
        Subject::Any,
        "Schemas of which at least one must hold.",
        |arg, to, session| raw::read_alternatives("anyOf", arg, to, session),
    ),
    row(
        "one_of",
        Subject::Any,
        "Schemas of which exactly one must hold.",
        |arg, to, session| raw::read_alternatives("oneOf", arg, to, session),
    ),
    row(
        "not",
        Subject::Any,
        "Schema that must not hold.",
        |arg, to, session| raw::read_alternatives("not", arg, to, session),
    ),
    row(
        "format",
        Subject::Any,
        "Format that the API server validates, such as `date-time`.",
        |arg, to, session| {
            to.format = arg.text(session);
        },
    ),
    row(
        "type",
        Subject::Any,
        "Type, instead of that of the Rust type.",
        |arg, to, session| {
            to.schema_type = schema_type(arg, session);
        },
    ),
];

impl Row<Reading> for Constraint {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn read(&self, arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) {
        (self.read)(arg, &mut reading.markers.validation, session);
    }
}

/// Reads the arguments of `validation(…)`.
fn read(args: &[Arg<'_>], reading: &mut Reading, session: &mut Session) {
    let find = |name: &str| CONSTRAINTS.iter().find(|constraint| constraint.name == name);
    read_args(args, reading, find, read_foreign, session);
}

/// Reads constraints without a row. They only result from translating other tools' attributes.
fn read_foreign(arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) {
    let validation = &mut reading.markers.validation;
    match arg.name {
        // schemars' `length`, if the kind of value is unknown.
        "min_size" => validation.min_size = arg.count(session),
        "max_size" => validation.max_size = arg.count(session),
        // schemars' `extend`, with OpenAPI's names.
        key @ ("allOf" | "anyOf" | "oneOf") => raw::read_alternatives(key, arg, validation, session),
        name => {
            let help = match name {
                "unique_items" => {
                    "write `list_type = \"set\"`: the API server rejects `unique_items`".to_owned()
                }
                name => {
                    suggest::describe_candidates(name, CONSTRAINTS.iter().map(|constraint| constraint.name))
                }
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

fn schema_type(arg: &Arg, session: &mut Session) -> Option<SchemaType> {
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
