//! `printcolumn(…)`, in either of kube's spellings.

use serde::Deserialize;

use super::{from_json, named, optional, required};
use crate::args::{Arg, ArgValue};
use crate::printer_column::check_printer_column;
use crate::{PrintColumn, Session};

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
    let args = match &arg.value {
        ArgValue::List(args) => args.as_slice(),
        _ => &[],
    };
    let at = |name: &str| {
        let part = args.iter().find(|part| part.name == name);
        part.unwrap_or(arg).value_span()
    };
    for diagnostic in check_printer_column(&column, at) {
        session.report(diagnostic);
    }
    Some(column)
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
