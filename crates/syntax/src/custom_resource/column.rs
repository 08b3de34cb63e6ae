//! `printcolumn(…)`, in both notations that kube accepts.

use serde::Deserialize;

use super::keys::from_json;
use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::printer_column::check_printer_column;
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};
use crate::{PrintColumn, Session};

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

#[derive(Default)]
struct Parts {
    name: Option<String>,
    column_type: Option<String>,
    json_path: Option<String>,
    description: Option<String>,
    format: Option<String>,
    priority: Option<i32>,
}

const ARGS: &[ArgRow<Parts>] = &[
    ArgRow::once(
        "name",
        "Heading of the column. Required.",
        |arg, parts, session| {
            parts.name = arg.text(session);
        },
    ),
    ArgRow::once(
        "type_",
        "Type of the values: `string`, `integer`, `number`, `boolean` or `date`. Required.",
        |arg, parts, session| {
            parts.column_type = arg.text(session);
        },
    ),
    ArgRow::once(
        "json_path",
        "JSON path of the value in the object, such as `.spec.size`. Required.",
        |arg, parts, session| {
            parts.json_path = arg.text(session);
        },
    ),
    ArgRow::once(
        "description",
        "Description of the column.",
        |arg, parts, session| {
            parts.description = arg.text(session);
        },
    ),
    ArgRow::once(
        "format",
        "OpenAPI format of the values, such as `int32`.",
        |arg, parts, session| {
            parts.format = arg.text(session);
        },
    ),
    ArgRow::once(
        "priority",
        "Above 0, the column is shown with `--output wide` only [default: 0].",
        |arg, parts, session| {
            parts.priority = priority(arg, session);
        },
    ),
];

pub(crate) fn describe_column_args() -> Vec<ArgDoc> {
    describe_rows(ARGS)
}

pub(super) fn read_print_columns(arg: &Arg, session: &mut Session) -> Vec<PrintColumn> {
    let text = arg.literal().and_then(|literal| literal.value.as_str());
    // kube inserts the text into a list, so it may contain several objects separated by commas.
    let several = text.and_then(|text| serde_json::from_str::<Vec<JsonColumn>>(&format!("[{text}]")).ok());
    match several {
        Some(several) => {
            let columns = several.into_iter();
            columns
                .filter_map(|column| checked(column, arg, session))
                .collect()
        }
        None => read_print_column(arg, session).into_iter().collect(),
    }
}

fn read_print_column(arg: &Arg, session: &mut Session) -> Option<PrintColumn> {
    let json: JsonColumn = match &arg.value {
        ArgValue::Literal(_) => from_json(arg, session)?,
        _ => {
            let draft = Draft::of_list(arg, ARGS, session)?;
            draft.require(arg, &[("name", "…"), ("type_", "…"), ("json_path", "…")], session);
            JsonColumn {
                name: draft.value.name?,
                column_type: draft.value.column_type?,
                json_path: draft.value.json_path?,
                description: draft.value.description,
                format: draft.value.format,
                priority: draft.value.priority,
            }
        }
    };
    checked(json, arg, session)
}

fn checked(json: JsonColumn, arg: &Arg, session: &mut Session) -> Option<PrintColumn> {
    let column = PrintColumn {
        span: arg.span,
        name: json.name,
        column_type: json.column_type,
        json_path: json.json_path,
        description: json.description,
        format: json.format,
        priority: json.priority,
    };
    let args = match &arg.value {
        ArgValue::List(args) => args.as_slice(),
        _ => &[],
    };
    let at = |name: &str| {
        let part = args.iter().find(|part| part.name == name);
        part.unwrap_or(arg).value_span()
    };
    let found = check_printer_column(&column, at);
    let is_sound = found.is_empty();
    found
        .into_iter()
        .for_each(|diagnostic| session.report(diagnostic));
    is_sound.then_some(column)
}

fn priority(arg: &Arg, session: &mut Session) -> Option<i32> {
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
            "expected an integer for `priority`",
            "write `priority = 1`",
        );
    }
    priority
}
