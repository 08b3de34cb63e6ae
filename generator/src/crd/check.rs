//! What kube's container keys say about fields, held against the schema: a path that leads nowhere makes an
//! empty column, or an autoscaler that does nothing.

use rbuilder_schema::{Breach, Schema, SchemaType, check_structural, dropped_object_meta};
use rbuilder_syntax::{PrintColumn, Scale, Span};

use super::Version;
use crate::schemas::Schemas;

pub(super) fn check(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    for (position, column) in version.resource.print_columns.iter().enumerate() {
        check_column(version, column, schemas);
        if version.resource.print_columns[..position]
            .iter()
            .any(|other| other.name == column.name)
        {
            let message = format!("two columns are called `{}`", column.name);
            warn(
                version,
                column.span,
                message,
                "kubectl prints both: give them different names",
                schemas,
            );
        }
    }
    if let Some(scale) = &version.resource.scale {
        check_scale(version, scale, schemas);
    }
    for path in &version.resource.selectable {
        check_selectable(version, path, schemas);
    }
}

/// What every item's schema has passed can still break where items meet.
pub(super) fn check_structure(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    for Breach { path, message, help } in check_structural(&version.schema) {
        let message = format!("the API server would refuse `{path}`: {message}");
        error(
            version,
            version.place.span,
            message,
            &help.unwrap_or_default(),
            schemas,
        );
    }
}

/// Labels and annotations of a pod template are lost without a word from anyone.
pub(super) fn check_metadata(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    for (name, field) in &version.schema.properties {
        if let Some(below) = dropped_object_meta(field) {
            let message = format!("the API server drops the labels and annotations in `.{name}{below}`");
            let help = "write `embedded_object_meta` on the field or type, in `#[kube(…)]` or `#[crd(…)]`";
            return warn(version, version.place.span, message, help, schemas);
        }
    }
}

/// Where a path leads.
enum Found<'s> {
    Schema(&'s Schema),
    /// Into content that the schema says nothing about.
    Open,
    /// Nowhere: the segment that is missing.
    Missing(String),
}

fn check_column(version: &Version<'_>, column: &PrintColumn, schemas: &mut Schemas<'_>) {
    match find(&version.schema, &column.json_path) {
        Found::Missing(segment) => {
            let message = format!(
                "the column `{}` will be empty: there is no field `{segment}`",
                column.name
            );
            warn(
                version,
                column.span,
                message,
                "write the path with names as on the wire",
                schemas,
            );
        }
        Found::Schema(schema) if !suits(schema, column) => {
            let message = format!(
                "the column `{}` has the type `{}`, but the field does not",
                column.name, column.column_type
            );
            warn(
                version,
                column.span,
                message,
                "the API server leaves such a column empty",
                schemas,
            );
        }
        _ => {}
    }
}

/// Whether values of the field can be shown in the column.
fn suits(schema: &Schema, column: &PrintColumn) -> bool {
    match (column.column_type.as_str(), schema.schema_type) {
        ("integer", Some(found)) => found == SchemaType::Integer,
        ("number", Some(found)) => matches!(found, SchemaType::Integer | SchemaType::Number),
        ("boolean", Some(found)) => found == SchemaType::Boolean,
        ("date", Some(found)) => {
            found == SchemaType::String && matches!(schema.format.as_deref(), Some("date" | "date-time"))
        }
        // Everything can be shown as text.
        _ => true,
    }
}

fn check_scale(version: &Version<'_>, scale: &Scale, schemas: &mut Schemas<'_>) {
    let paths = [
        (
            Some(&scale.spec_replicas_path),
            "spec_replicas_path",
            SchemaType::Integer,
        ),
        (
            Some(&scale.status_replicas_path),
            "status_replicas_path",
            SchemaType::Integer,
        ),
        (
            scale.label_selector_path.as_ref(),
            "label_selector_path",
            SchemaType::String,
        ),
    ];
    for (path, key, expected) in paths {
        // What is elsewhere has been complained about.
        let Some(path) = path.filter(|path| path.starts_with(".spec.") || path.starts_with(".status."))
        else {
            continue;
        };
        let problem = match find(&version.schema, path) {
            Found::Missing(segment) => format!("`{key}` leads nowhere: there is no field `{segment}`"),
            Found::Schema(schema) if schema.schema_type.is_some_and(|found| found != expected) => {
                let expected = if expected == SchemaType::Integer {
                    "an integer"
                } else {
                    "a string"
                };
                format!("`{key}` leads to a field that is not {expected}")
            }
            _ => continue,
        };
        let help = "an autoscaler would find nothing there: write the path with names as on the wire";
        error(version, scale.span, problem, help, schemas);
    }
    if version.resource.status.is_none() {
        let help =
            "add `status = \"…\"`: the replica count that the scale subresource reports is in the status";
        error(
            version,
            scale.span,
            "a kind without a status cannot be scaled".into(),
            help,
            schemas,
        );
    }
}

fn check_selectable(version: &Version<'_>, path: &str, schemas: &mut Schemas<'_>) {
    let problem = match find(&version.schema, path) {
        Found::Missing(segment) => format!("`{path}` cannot be selected by: there is no field `{segment}`"),
        Found::Schema(schema)
            if !matches!(
                schema.schema_type,
                Some(SchemaType::String | SchemaType::Integer | SchemaType::Boolean)
            ) =>
        {
            format!("`{path}` cannot be selected by: it is not a string, an integer or a boolean")
        }
        _ => return,
    };
    error(
        version,
        version.place.span,
        problem,
        "write the path with names as on the wire",
        schemas,
    );
}

fn warn(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    let package = schemas.package();
    schemas.report().warning(package, version.at(span), message, help);
}

fn error(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    let package = schemas.package();
    schemas.report().error(package, version.at(span), message, help);
}

/// Follows a JSON path as printer columns use it: names and, in lists, an index or a filter.
fn find<'s>(root: &'s Schema, path: &str) -> Found<'s> {
    let mut schema = root;
    for segment in segments(path) {
        let next = match &segment {
            Segment::Name(name) if name == "*" => return Found::Open,
            Segment::Name(name) => schema
                .properties
                .get(name.as_str())
                .map(AsRef::as_ref)
                .or(schema.additional_properties.as_deref()),
            Segment::Bracket => schema
                .items
                .as_deref()
                .or(schema.additional_properties.as_deref()),
        };
        schema = match next {
            Some(next) => next,
            None if is_open(schema) => return Found::Open,
            None => match segment {
                Segment::Name(name) => return Found::Missing(name),
                Segment::Bracket => return Found::Missing("[…]".into()),
            },
        };
        // The API server fills `metadata`, which a CRD's schema does not describe.
        if root
            .properties
            .get("metadata")
            .is_some_and(|metadata| std::ptr::eq(schema, &raw const **metadata))
        {
            return Found::Open;
        }
    }
    Found::Schema(schema)
}

fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
        || schema.embedded_resource
        || schema.schema_type == Some(SchemaType::Object) && schema.properties.is_empty()
}

enum Segment {
    Name(String),
    Bracket,
}

fn segments(path: &str) -> Vec<Segment> {
    let mut found = Vec::new();
    let mut name = String::new();
    let mut rest = path.chars();
    let finish = |name: &mut String, found: &mut Vec<Segment>| {
        if !name.is_empty() {
            found.push(Segment::Name(std::mem::take(name)));
        }
    };
    while let Some(c) = rest.next() {
        match c {
            '.' => finish(&mut name, &mut found),
            '\\' => name.extend(rest.next()),
            '[' => {
                finish(&mut name, &mut found);
                let inside: String = rest.by_ref().take_while(|c| *c != ']').collect();
                match inside
                    .strip_prefix('\'')
                    .and_then(|inside| inside.strip_suffix('\''))
                {
                    Some(quoted) => found.push(Segment::Name(quoted.to_owned())),
                    None => found.push(Segment::Bracket),
                }
            }
            c => name.push(c),
        }
    }
    finish(&mut name, &mut found);
    found
}
