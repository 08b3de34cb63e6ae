//! Checks the struct of a kind without a spec, which describes the entire object. There, the API
//! server supports fewer schema keys than in a field, and some field names are reserved.

use rbuilder_reader::Span;
use rbuilder_schema::{Field, Key, Markers, Schema, check_root};

use crate::table::Seen;
use crate::{CustomResource, FieldValue, Session};

/// Fields present in every object.
const FIELDS_OF_OBJECTS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

pub(crate) fn check_has_fields(has_fields: bool, at: Span, session: &mut Session) {
    // kube-derive requires named fields even with `no_spec`.
    if !has_fields {
        let help = "name the fields: without a spec they stand beside `metadata`";
        session.error_help(at, "a kind with `no_spec` needs a struct with named fields", help);
    }
}

pub(crate) fn drop_fields_of_objects(
    fields: &mut Vec<Field>,
    sites: &mut Vec<Span>,
    values: &mut Vec<FieldValue>,
    session: &mut Session,
) {
    let mut taken = Vec::new();
    for (position, field) in fields.iter().enumerate() {
        if let Some(name) = field_of_objects(field) {
            let message = format!("every object has a field `{name}`, also without a spec");
            session.error_help(sites[position], message, "remove the field, or rename it");
            taken.push(position);
        }
    }
    // Remove these fields, or the final schema would report them again.
    for position in taken.into_iter().rev() {
        fields.remove(position);
        sites.remove(position);
        values.remove(position);
    }
}

fn field_of_objects(field: &Field) -> Option<&'static str> {
    let in_json = (!field.flatten).then_some(field.name.as_str());
    // kube-derive compares Rust names.
    let in_rust = match field.ident.as_str() {
        "api_version" => "apiVersion",
        ident => ident,
    };
    let is_taken = |name: &&str| Some(*name) == in_json || *name == in_rust;
    FIELDS_OF_OBJECTS.into_iter().find(is_taken)
}

/// Checks the markers on the struct of a kind with `no_spec`, to which the rules for entire objects
/// apply.
pub(crate) fn check_markers(
    resource: &CustomResource,
    markers: &mut Markers,
    seen: &Seen,
    session: &mut Session,
) {
    if !resource.no_spec {
        return;
    }
    for (name, at) in seen.iter() {
        if let ("schema", Some(schema)) = (name, &mut markers.schema) {
            let is_refused = report_root(schema, resource, at, session);
            // The user wrote this schema as a whole, so keep it intact and just mark it as
            // reported.
            schema.is_reported.0 |= is_refused;
            continue;
        }
        let Some(stated) = state_alone(name, markers) else {
            continue;
        };
        if report_root(&stated, resource, at, session) {
            drop_marker(name, markers);
        }
    }
}

fn report_root(stated: &Schema, resource: &CustomResource, at: Span, session: &mut Session) -> bool {
    let diagnostics = check_root(stated, resource.object_parts());
    let is_refused = !diagnostics.is_empty();
    for diagnostic in diagnostics {
        session.report(diagnostic.at(at));
    }
    is_refused
}

/// Returns a schema with just the key of one marker, or `None` if the marker has no key or one that
/// is valid for an entire object.
fn state_alone(name: &str, markers: &Markers) -> Option<Schema> {
    let mut stated = Schema::default();
    match name {
        "map_type" | "struct_type" => stated.map_type = markers.topology.map_type,
        "embedded_resource" => stated.embedded_resource = markers.embedded_resource,
        "nullable" => stated.nullable = markers.nullable,
        "default" => stated.default.clone_from(&markers.default),
        _ => refused_constraint(name)?.copy(markers.stated(), &mut stated),
    }
    Some(stated)
}

fn drop_marker(name: &str, markers: &mut Markers) {
    match name {
        "map_type" | "struct_type" => markers.topology.map_type = None,
        "embedded_resource" => markers.embedded_resource = false,
        "nullable" => markers.nullable = false,
        "default" => markers.default = None,
        _ => {
            if let Some(key) = refused_constraint(name) {
                key.clear(markers.stated_mut());
            }
        }
    }
}

fn refused_constraint(name: &str) -> Option<&'static Key> {
    Key::of_argument(name).filter(|key| key.is_refused_with_status())
}
