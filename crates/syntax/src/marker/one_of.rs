//! `exactly_one_of(…)` and similar markers: how many of the given fields must be set.

use rbuilder_schema::OneOf;

use super::{Marker, Reading, TYPE};
use crate::Session;
use crate::args::{Arg, ArgValue, ReadArg as _};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "exactly_one_of",
        form: "exactly_one_of(a, b)",
        doc: "Exactly one of these fields must be set.",
        places: TYPE,
        repeatable: true,
        read: |arg, reading, session| read(arg, OneOf::Exactly, reading, session),
    },
    Marker {
        name: "at_most_one_of",
        form: "at_most_one_of(a, b)",
        doc: "At most one of these fields may be set.",
        places: TYPE,
        repeatable: true,
        read: |arg, reading, session| read(arg, OneOf::AtMost, reading, session),
    },
    Marker {
        name: "at_least_one_of",
        form: "at_least_one_of(a, b)",
        doc: "At least one of these fields must be set.",
        places: TYPE,
        repeatable: true,
        read: |arg, reading, session| read(arg, OneOf::AtLeast, reading, session),
    },
];

fn read(arg: &Arg, make: fn(Vec<String>) -> OneOf, reading: &mut Reading, session: &mut Session) {
    let had = session.diagnostics.error_count();
    let Some(args) = arg.list(session) else { return };
    let mut names: Vec<String> = Vec::with_capacity(args.len());
    for field in args {
        if !matches!(field.value, ArgValue::Flag) {
            let help = format!("write the Rust names of the fields: `{}(a, b)`", arg.name);
            session.error_help(
                field.span,
                format!("expected field names in `{}`", arg.name),
                help,
            );
        } else if names.iter().any(|name| name == field.name) {
            session.error(field.span, format!("duplicate field `{}`", field.name));
        } else {
            names.push(field.name.to_owned());
            reading.one_of_fields.push((field.name.to_owned(), field.span));
        }
    }
    if args.len() < 2 {
        session.error_help(
            arg.span,
            format!("`{}` requires at least two fields", arg.name),
            "list them: `(a, b)`",
        );
    }
    // Skip a rule with errors, which the schema would report again.
    if session.diagnostics.error_count() == had {
        reading.markers.origin = arg.origin();
        reading.markers.one_of.push(make(names));
    }
}
