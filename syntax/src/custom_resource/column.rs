//! `printcolumn(…)`, in either of kube's spellings.

use serde::Deserialize;

use super::{from_json, named, optional, required};
use crate::args::{Arg, ArgValue};
use crate::{PrintColumn, Session, parse_json_path, suggest};

/// `printcolumn` in kube's JSON form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonColumn {
    name: String,
    #[serde(rename = "type")]
    column_type: String,
    json_path: String,
    description: Option<String>,
    format: Option<String>,
    priority: Option<i32>,
}

/// The types a column may have.
const COLUMN_TYPES: &[&str] = &["integer", "number", "string", "boolean", "date"];
/// The formats a column may have.
const COLUMN_FORMATS: &[&str] = &[
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "date",
    "date-time",
    "password",
];

pub(super) fn print_column(arg: &Arg, session: &mut Session) -> Option<PrintColumn> {
    let json: JsonColumn = match &arg.value {
        ArgValue::Literal(_) => from_json(arg, session)?,
        _ => {
            let names = ["name", "type_", "json_path", "description", "format", "priority"];
            let args = named(arg, &names, session)?;
            JsonColumn {
                name: required(arg, args, "name", session)?,
                column_type: required(arg, args, "type_", session)?,
                json_path: required(arg, args, "json_path", session)?,
                description: optional(args, "description", session),
                format: optional(args, "format", session),
                priority: priority(args, session),
            }
        }
    };
    let JsonColumn {
        name,
        column_type,
        json_path,
        description,
        format,
        priority,
    } = json;
    let column = PrintColumn {
        span: arg.span,
        name,
        column_type,
        json_path,
        description,
        format,
        priority,
    };
    check_column(&column, arg, session);
    Some(column)
}

fn check_column(column: &PrintColumn, arg: &Arg, session: &mut Session) {
    let args = match &arg.value {
        ArgValue::List(args) => args.as_slice(),
        _ => &[],
    };
    let at = |name: &str| {
        args.iter()
            .find(|arg| arg.name == name)
            .map_or_else(|| arg.value_span(), Arg::value_span)
    };
    if column.name.is_empty() {
        let help = "write what stands above the column, as in `name = \"Size\"`";
        session.error_help(at("name"), "a column has a name", help);
    }
    if !COLUMN_TYPES.contains(&column.column_type.as_str()) {
        let message = format!("`{}` is not the type of a column", column.column_type);
        session.error_help(
            at("type_"),
            message,
            suggest::help(&column.column_type, COLUMN_TYPES.iter().copied()),
        );
    }
    if let Some(format) = &column.format
        && !COLUMN_FORMATS.contains(&format.as_str())
    {
        let message = format!("`{format}` is not the format of a column");
        session.error_help(
            at("format"),
            message,
            suggest::help(format, COLUMN_FORMATS.iter().copied()),
        );
    }
    if let Err(reason) = parse_json_path(&column.json_path) {
        let path = &column.json_path;
        if path.starts_with('.') {
            let help = "the API server would leave out this column and those after it: write a path as in `.status.conditions[?(@.type==\"Ready\")].status`";
            session.error_help(
                at("json_path"),
                format!("`{path}` is not a JSON path: {reason}"),
                help,
            );
        } else {
            let bare = path.trim_start_matches('$').trim_start_matches(['{', '.']);
            session.error_help(
                at("json_path"),
                format!("`{path}` is not a JSON path"),
                format!("write `.{}`", bare.trim_end_matches('}')),
            );
        }
    }
}

fn priority(args: &[Arg], session: &mut Session) -> Option<i32> {
    let arg = args.iter().find(|arg| arg.name == "priority")?;
    let priority = match arg.literal().map(|literal| &literal.value) {
        Some(serde_json::Value::Number(number)) => {
            number.as_i64().and_then(|number| i32::try_from(number).ok())
        }
        Some(serde_json::Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    if priority.is_none() {
        session.error_help(
            arg.value_span(),
            "`priority` wants a whole number",
            "write `priority = 1`",
        );
    }
    priority
}
