//! Checks the paths in kube's container attributes against the schema. A wrong path would otherwise
//! go unnoticed: the autoscaler is a no-op, or the API server rejects the selectable field.

use rbuilder_reader::Span;
use rbuilder_schema::{
    PathEnd, SchemaType, check_root, check_structural, dropped_object_meta, find_field, is_dropped_meta,
};
use rbuilder_syntax::{Scale, SelectableField, check_printer_columns};

use super::Version;
use crate::schemas::Schemas;

pub(super) fn check_version(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    for diagnostic in check_printer_columns(&version.resource.print_columns, &version.schema) {
        schemas
            .report()
            .add(diagnostic.map_place(|span| version.at(span)));
    }
    if let Some(scale) = &version.resource.scale {
        check_scale(version, scale, schemas);
    }
    for field in &version.resource.selectable_fields {
        check_selectable(version, field, schemas);
    }
}

/// Checks that selectable fields and schemas either both differ between the versions, or neither
/// does.
///
/// If all versions have the same schema, the API server stores it once for the entire CRD, and
/// likewise for selectable fields. It then rejects top-level selectable fields without a top-level
/// schema, and vice versa (kubernetes/kubernetes#140689).
pub(super) fn check_versions(versions: &[Version<'_>], schemas: &mut Schemas<'_>) {
    let Some((first, rest)) = versions.split_first() else {
        return;
    };
    let with_other_schema = rest.iter().find(|version| version.schema != first.schema);
    let with_other_fields = rest.iter().find(|version| paths_of(version).ne(paths_of(first)));
    let (other, differ, help) = match (with_other_schema, with_other_fields) {
        (None, Some(other)) => (
            other,
            "the same schema but different selectable fields",
            "use the same `selectable` in every version: the API server rejects the definition otherwise",
        ),
        (Some(other), None) if paths_of(first).next().is_some() => (
            other,
            "different schemas but the same selectable fields",
            "use another order of `selectable` in one version, or a further field: the API server rejects the definition \
             otherwise, because of kubernetes/kubernetes#140689",
        ),
        _ => return,
    };
    let message = format!(
        "versions `{}` and `{}` of `{}` have {differ}",
        first.resource.version, other.resource.version, other.resource.kind
    );
    let fields = &other.resource.selectable_fields;
    let span = fields.first().map_or(other.place.span, |field| field.span);
    error(other, span, message, help, schemas);
}

fn paths_of<'a>(version: &Version<'a>) -> impl Iterator<Item = &'a str> {
    let fields = version.resource.selectable_fields.iter();
    fields.map(|field| field.json_path.as_str())
}

pub(super) fn check_structure(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    // Schemas that are valid individually can still break a rule in combination, so check the
    // version as a whole.
    let about_root = check_root(&version.schema, version.resource.object_parts());
    for diagnostic in check_structural(&version.schema).into_iter().chain(about_root) {
        let what = match diagnostic.place.as_str() {
            "" => format!("the schema of `{}`", version.resource.kind),
            path => format!("`{path}`"),
        };
        let message = format!(
            "{what} would be rejected by the API server: {}",
            diagnostic.message
        );
        let help = diagnostic.help.unwrap_or_default();
        error(version, version.place.span, message, &help, schemas);
    }
}

/// The API server silently prunes labels and annotations in e.g. a pod template unless the schema
/// declares them.
pub(super) fn check_metadata(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    for (name, part) in &version.schema.properties {
        let fields = part
            .properties
            .iter()
            .map(|(field, schema)| (Some(field), schema));
        let whole = part.properties.is_empty().then_some((None, part));
        for (field, schema) in fields.chain(whole) {
            let is_metadata = field.is_some_and(|field| &**field == "metadata") && is_dropped_meta(schema);
            let below = if is_metadata && !part.embedded_resource {
                Some(String::new())
            } else {
                dropped_object_meta(schema)
            };
            if let Some(below) = below {
                let at = field.map(|field| format!(".{field}")).unwrap_or_default();
                let message =
                    format!("the API server drops the labels and annotations in `.{name}{at}{below}`");
                let help = "add `embedded_object_meta` to the field or type, in `#[kube(…)]` or `#[crd(…)]`, or \
                            `embedded_object_meta = false` if nothing needs them";
                warn(version, version.place.span, message, help, schemas);
            }
        }
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
        // Paths outside of spec and status have already been reported.
        let Some(path) = path.filter(|path| path.starts_with(".spec.") || path.starts_with(".status."))
        else {
            continue;
        };
        let problem = match find_field(&version.schema, path) {
            // A path with an empty name has already been reported as malformed.
            PathEnd::Missing { name, .. } if name.is_empty() => continue,
            // Not an error: published CRDs contain such paths, and everything but the scale
            // subresource works.
            PathEnd::Missing { name, near } => {
                let message = format!("`{key}` does not exist: unknown field `{name}`");
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "use the JSON names of the fields; the scale subresource finds nothing at this path"
                            .to_owned()
                    }
                };
                warn(version, scale.span_of(key), message, &help, schemas);
                continue;
            }
            PathEnd::Schema(schema)
                if let Some(found) = schema.schema_type.filter(|found| *found != expected) =>
            {
                format!("expected {} at `{key}`, found {}", expected.noun(), found.noun())
            }
            _ => continue,
        };
        let help = match key {
            "label_selector_path" => {
                "use the path of a string such as `.status.selector`, and write the selector of the pods there"
            }
            _ => "use the path of a field with an integer",
        };
        error(version, scale.span_of(key), problem, help, schemas);
    }
}

fn check_selectable(version: &Version<'_>, field: &SelectableField, schemas: &mut Schemas<'_>) {
    let path = field.json_path.as_str();
    // Malformed paths have already been reported.
    let is_reported =
        !path.starts_with('.') || path.contains(['[', ']']) || path[1..].split('.').any(str::is_empty);
    if is_reported || path == ".metadata" || path.starts_with(".metadata.") {
        return;
    }
    let mut help = "use the path of a string, integer or boolean field, with JSON names".to_owned();
    let reason = match find_field(&version.schema, path) {
        PathEnd::Missing { name, near } => {
            if let Some(near) = near {
                help = format!("did you mean `{near}`?");
            }
            format!("unknown field `{name}`")
        }
        PathEnd::Open => "its content has no schema".to_owned(),
        PathEnd::Schema(schema)
            if !matches!(
                schema.schema_type,
                Some(SchemaType::String | SchemaType::Integer | SchemaType::Boolean)
            ) =>
        {
            "expected a string, an integer or a boolean".to_owned()
        }
        PathEnd::Schema(_) => return,
    };
    let message = format!("`{path}` is not a valid selectable field: {reason}");
    error(version, field.span, message, &help, schemas);
}

fn warn(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    schemas.report().warning(version.at(span), message, help);
}

fn error(version: &Version<'_>, span: Span, message: String, help: &str, schemas: &mut Schemas<'_>) {
    schemas.report().error(version.at(span), message, help);
}
