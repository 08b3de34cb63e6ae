//! Checks each printer column by itself, against the other columns of a version, and against the
//! schema.
//!
//! The checks follow the API server's conversion of table cells. With a path to a missing field or
//! a mismatched type, the column stays empty. An unparsable path also drops all columns after it.
//!
//! `custom_resource/column.rs` parses a column's arguments, and `json_path.rs` parses its path.
//! `crates/generator/src/crd/check.rs` calls the checks that need the schema.
//!
//! # Adding a check
//!
//! Add a case to `crates/generator/tests/container_keys.rs`, the message to
//! `crates/generator/tests/cases/{error_schema,warning_columns}/` and a row to
//! `crates/generator/tests/mutations/tables/key.tsv` (`versions.tsv` if versions differ), which
//! `cargo xtask mutations` sends to kube-apiserver. If the check needs no schema, the derive
//! reports it too: add a case to `derive/tests/ui/`. Every message has a code: see
//! `crates/generator/src/codes/mod.rs`.

use std::sync::LazyLock;

use rbuilder_diagnostic::suggest;
use rbuilder_reader::Span;
use rbuilder_schema::{PathEnd, Schema, SchemaType, find_near_field, is_open, member};

use crate::{Diagnostic, PrintColumn, Step, parse_json_path};

const COLUMN_TYPES: &[&str] = &["integer", "number", "string", "boolean", "date"];
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

/// `at` returns the span of an argument of `printcolumn(…)` by name.
pub(crate) fn check_printer_column(column: &PrintColumn, at: impl Fn(&str) -> Span) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if column.name.is_empty() {
        let help = "set the heading of the column, as in `name = \"Size\"`";
        found.push(Diagnostic::error(at("name"), "a printer column requires a name").help(help));
    }
    if !COLUMN_TYPES.contains(&column.column_type.as_str()) {
        let message = format!("unknown printer column type `{}`", column.column_type);
        let help = suggest::describe_candidates(&column.column_type, COLUMN_TYPES.iter().copied());
        found.push(Diagnostic::error(at("type_"), message).help(help));
    }
    if let Some(format) = &column.format
        && !COLUMN_FORMATS.contains(&format.as_str())
    {
        let message = format!("unknown printer column format `{format}`");
        let help = suggest::describe_candidates(format, COLUMN_FORMATS.iter().copied());
        found.push(Diagnostic::error(at("format"), message).help(help));
    }
    if let Err(reason) = parse_json_path(&column.json_path) {
        let path = &column.json_path;
        let place = at("json_path");
        found.push(if path.starts_with('.') {
            let help = "write a path such as `.status.conditions[?(@.type==\"Ready\")].status`: the API server drops this column and those after it";
            Diagnostic::error(place, format!("`{path}` is not a valid JSON path: {reason}")).help(help)
        } else {
            // The user may have written the path for `kubectl get -o jsonpath`, e.g.
            // `{.spec.size}`.
            let bare = path.trim_start_matches('$').trim_start_matches(['{', '.']);
            Diagnostic::error(place, format!("`{path}` is not a valid JSON path"))
                .help(format!("write `.{}`", bare.trim_end_matches('}')))
        });
    }
    found
}

/// Checks the columns of a version against each other and against the schema. Individual columns
/// were checked when they were parsed.
pub fn check_printer_columns(columns: &[PrintColumn], schema: &Schema) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        found.extend(check_against_schema(column, schema));
        if columns[..position].iter().any(|other| other.name == column.name) {
            let message = format!("duplicate printer column name `{}`", column.name);
            let help = "rename one of them: kubectl prints both";
            found.push(Diagnostic::warning(column.span, message).help(help));
        }
    }
    found
}

fn check_against_schema(column: &PrintColumn, schema: &Schema) -> Option<Diagnostic> {
    let steps = parse_json_path(&column.json_path).ok()?;
    let (problem, help) = match follow_steps(schema, &steps) {
        PathEnd::Missing { name, .. } if name.is_empty() => (
            "will be empty: missing name after a dot".to_owned(),
            "use the JSON names of the fields".to_owned(),
        ),
        PathEnd::Missing { name, near } => (
            format!("will be empty: unknown field `{name}`"),
            match near {
                Some(near) => format!("did you mean `{near}`?"),
                None if column.json_path.contains("['") => {
                    "use the JSON names of the fields; write a dot inside a name as `\\.`, also in brackets"
                        .to_owned()
                }
                None => "use the JSON names of the fields".to_owned(),
            },
        ),
        PathEnd::Schema(schema) => {
            let (problem, help) = check_type(schema, column)?;
            (problem, help.to_owned())
        }
        PathEnd::Open => return None,
    };
    let message = format!("printer column `{}` {problem}", column.name);
    Some(Diagnostic::warning(column.span, message).help(help))
}

/// Returns the reason why the column cannot show the values of the field, and help. Follows the API
/// server's conversion of table cells.
fn check_type(schema: &Schema, column: &PrintColumn) -> Option<(String, &'static str)> {
    let found = schema.schema_type?;
    let is_shown = match column.column_type.as_str() {
        "integer" => matches!(found, SchemaType::Integer | SchemaType::Number),
        "number" => matches!(found, SchemaType::Integer | SchemaType::Number),
        "boolean" => found == SchemaType::Boolean,
        "date" => found == SchemaType::String,
        // The API server displays any value as a string.
        _ => true,
    };
    if !is_shown {
        let problem = format!("has type `{}`, but the field does not", column.column_type);
        return Some((
            problem,
            "use the type of the field: the API server leaves such a column empty",
        ));
    }
    match column.column_type.as_str() {
        "integer" if found == SchemaType::Number => Some((
            "has type `integer`, but the field is a number".into(),
            "write `type_ = \"number\"`: the API server truncates the fraction",
        )),
        "date" if schema.format.as_deref() != Some("date-time") => Some((
            "has type `date`, but the field is not a `date-time`".into(),
            "write `type_ = \"string\"`: the API server shows `<invalid>` for values that are not RFC 3339 times",
        )),
        _ => None,
    }
}

fn follow_steps<'s>(root: &'s Schema, steps: &[Step]) -> PathEnd<'s> {
    let mut schema = root;
    let mut is_root = true;
    for step in steps {
        let next = match step {
            Step::Any => return PathEnd::Open,
            Step::Field(name) if is_root && name == "metadata" => Some(object_meta()),
            Step::Field(name) => member(schema, name),
            Step::Elements => schema.items.as_deref(),
        };
        is_root = false;
        schema = match next {
            Some(next) => next,
            None if is_open(schema) => return PathEnd::Open,
            None => {
                return match step {
                    Step::Field(name) => PathEnd::Missing {
                        near: find_near_field(schema, name),
                        name: name.clone(),
                    },
                    _ => PathEnd::Missing {
                        name: "[…]".to_owned(),
                        near: None,
                    },
                };
            }
        };
    }
    PathEnd::Schema(schema)
}

/// A schema for `metadata`, whose contents the schema of a CRD does not describe.
fn object_meta() -> &'static Schema {
    static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
        let text = |format: Option<&str>| Schema {
            schema_type: Some(SchemaType::String),
            format: format.map(Into::into),
            ..Schema::default()
        };
        let integer = || Schema {
            schema_type: Some(SchemaType::Integer),
            ..Schema::default()
        };
        let list = |item: Schema| Schema {
            schema_type: Some(SchemaType::Array),
            items: Some(item.into()),
            ..Schema::default()
        };
        let open = || Schema {
            schema_type: Some(SchemaType::Object),
            ..Schema::default()
        };
        let map = || Schema {
            additional_properties: Some(text(None).into()),
            ..open()
        };
        let fields = [
            ("annotations", map()),
            ("creationTimestamp", text(Some("date-time"))),
            ("deletionGracePeriodSeconds", integer()),
            ("deletionTimestamp", text(Some("date-time"))),
            ("finalizers", list(text(None))),
            ("generateName", text(None)),
            ("generation", integer()),
            ("labels", map()),
            ("managedFields", list(open())),
            ("name", text(None)),
            ("namespace", text(None)),
            ("ownerReferences", list(open())),
            ("resourceVersion", text(None)),
            ("selfLink", text(None)),
            ("uid", text(None)),
        ];
        Schema {
            schema_type: Some(SchemaType::Object),
            properties: fields
                .into_iter()
                .map(|(name, field)| (name.into(), field.into()))
                .collect(),
            ..Schema::default()
        }
    });
    &OBJECT_META
}
