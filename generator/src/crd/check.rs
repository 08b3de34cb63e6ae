//! What kube's container keys say about fields, held against the schema: a path that leads nowhere makes an
//! empty column, or an autoscaler that does nothing.

use std::sync::LazyLock;

use rbuilder_schema::{Breach, Schema, SchemaType, check_structural, dropped_object_meta};
use rbuilder_syntax::{PrintColumn, Scale, Span, Step, parse_json_path};

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

/// Checks what versions must have in common. Where all have one schema, the API server takes it for that of the whole
/// kind, and then refuses selectable fields that are not those of the whole kind too.
pub(super) fn check_versions(versions: &[Version<'_>], schemas: &mut Schemas<'_>) {
    let Some((first, rest)) = versions.split_first() else {
        return;
    };
    let Some(other) = rest
        .iter()
        .find(|version| version.resource.selectable != first.resource.selectable)
    else {
        return;
    };
    if rest.iter().all(|version| version.schema == first.schema) {
        let message = format!(
            "the versions `{}` and `{}` of `{}` have one schema and different selectable fields",
            first.resource.version, other.resource.version, other.resource.kind
        );
        let help = "write the same `selectable` in every version: the API server refuses the definition";
        error(other, other.place.span, message, help, schemas);
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
    // A path that cannot be read has been reported at its marker.
    let Ok(steps) = parse_json_path(&column.json_path) else {
        return;
    };
    let (problem, help) = match find_column(&version.schema, &steps) {
        Found::Missing(segment) if segment.is_empty() => (
            "will be empty: a dot is not followed by a name".to_owned(),
            "write the path with names as on the wire",
        ),
        Found::Missing(segment) => (
            format!("will be empty: there is no field `{segment}`"),
            match column.json_path.contains("['") {
                true => {
                    "write the path with names as on the wire; a dot inside a name is written `\\.`, in brackets too"
                }
                false => "write the path with names as on the wire",
            },
        ),
        Found::Schema(schema) => match unsuited(schema, column) {
            Some(problem) => problem,
            None => return,
        },
        Found::Open => return,
    };
    let message = format!("the column `{}` {problem}", column.name);
    warn(version, column.span, message, help, schemas);
}

/// Why values of the field cannot be shown in the column, and what to do; as the API server converts the cells of a
/// table.
fn unsuited(schema: &Schema, column: &PrintColumn) -> Option<(String, &'static str)> {
    let found = schema.schema_type?;
    let is_shown = match column.column_type.as_str() {
        "integer" => matches!(found, SchemaType::Integer | SchemaType::Number),
        "number" => matches!(found, SchemaType::Integer | SchemaType::Number),
        "boolean" => found == SchemaType::Boolean,
        "date" => found == SchemaType::String,
        // Everything can be shown as text.
        _ => true,
    };
    if !is_shown {
        let problem = format!("has the type `{}`, but the field does not", column.column_type);
        return Some((problem, "the API server leaves such a column empty"));
    }
    match column.column_type.as_str() {
        "integer" if found == SchemaType::Number => Some((
            "has the type `integer`, but the field is a number".into(),
            "the API server cuts off what stands after the decimal point; write `type_ = \"number\"`",
        )),
        "date" if schema.format.as_deref() != Some("date-time") => Some((
            "has the type `date`, but the field is not a `date-time`".into(),
            "the API server shows `<invalid>` for what is not a time as in `2006-01-02T15:04:05Z`; write `type_ = \"string\"`",
        )),
        _ => None,
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
        let problem = match find_by_dots(&version.schema, path) {
            // CRDs are published with such paths, and all but their scale subresource works.
            Found::Missing(segment) => {
                let message = format!("`{key}` leads nowhere: there is no field `{segment}`");
                let help = "an autoscaler would find nothing there: write the path with names as on the wire";
                warn(version, scale.span, message, help, schemas);
                continue;
            }
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
    let is_reported =
        !path.starts_with('.') || path.contains(['[', ']']) || path[1..].split('.').any(str::is_empty);
    if is_reported || path == ".metadata" || path.starts_with(".metadata.") {
        return;
    }
    let reason = match find_by_dots(&version.schema, path) {
        Found::Missing(segment) => format!("there is no field `{segment}`"),
        Found::Open => "the schema says nothing about it".to_owned(),
        Found::Schema(schema)
            if !matches!(
                schema.schema_type,
                Some(SchemaType::String | SchemaType::Integer | SchemaType::Boolean)
            ) =>
        {
            "it is not a string, an integer or a boolean".to_owned()
        }
        Found::Schema(_) => return,
    };
    error(
        version,
        version.place.span,
        format!("`{path}` is not a valid selectable field: {reason}"),
        "write the path of such a field, with names as on the wire",
        schemas,
    );
}

fn warn(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    schemas.report().warning(version.at(span), message, help);
}

fn error(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    schemas.report().error(version.at(span), message, help);
}

/// Follows the path of a printer column.
fn find_column<'s>(root: &'s Schema, steps: &[Step]) -> Found<'s> {
    let mut schema = root;
    let mut is_root = true;
    for step in steps {
        let next = match step {
            Step::Any => return Found::Open,
            Step::Field(name) if is_root && name == "metadata" => Some(object_meta()),
            Step::Field(name) => member(schema, name),
            Step::Elements => schema.items.as_deref(),
        };
        is_root = false;
        schema = match next {
            Some(next) => next,
            None if is_open(schema) => return Found::Open,
            None => {
                return Found::Missing(match step {
                    Step::Field(name) => name.clone(),
                    _ => "[…]".to_owned(),
                });
            }
        };
    }
    Found::Schema(schema)
}

/// Follows a path of names with dots between, which is all that the scale subresource and field selectors know.
fn find_by_dots<'s>(root: &'s Schema, path: &str) -> Found<'s> {
    let mut schema = root;
    for name in path[1..].split('.') {
        schema = match member(schema, name) {
            Some(next) => next,
            None if is_open(schema) => return Found::Open,
            None => return Found::Missing(name.to_owned()),
        };
    }
    Found::Schema(schema)
}

fn member<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema
        .properties
        .get(name)
        .map(AsRef::as_ref)
        .or(schema.additional_properties.as_deref())
}

fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
        || schema.embedded_resource
        || schema.schema_type == Some(SchemaType::Object)
            && schema.properties.is_empty()
            && schema.additional_properties.is_none()
}

/// The metadata of every object, which the API server fills and a CRD's schema does not describe.
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
