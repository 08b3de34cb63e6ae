//! The markers of a kind without a spec: its struct is the whole object, which can have fewer keys than a field.

use rbuilder_reader::Span;
use rbuilder_schema::{Markers, Schema, check_root};

use crate::table::Seen;
use crate::{CustomResource, Session};

/// Checks the markers on the struct of a kind with `no_spec` by the rules for whole objects. A marker that breaks one is
/// dropped, so that the schema that is made with it is not reported again.
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
        let Some(stated) = state_alone(name, markers) else {
            continue;
        };
        if report_root(&stated, resource, at, session) {
            drop_marker(name, markers);
        }
    }
}

/// Reports the keys that a whole object cannot have, and returns true if there is one.
fn report_root(stated: &Schema, resource: &CustomResource, at: Span, session: &mut Session) -> bool {
    let diagnostics = check_root(stated, resource.has_status_subresource());
    let is_refused = !diagnostics.is_empty();
    for diagnostic in diagnostics {
        session.report(diagnostic.at(at));
    }
    is_refused
}

/// Returns a schema with the key of one marker. `None` if a whole object can have it, or if it is no key.
fn state_alone(name: &str, markers: &Markers) -> Option<Schema> {
    let validation = &markers.validation;
    let alternatives = validation.alternatives.as_deref().cloned().unwrap_or_default();
    let mut stated = Schema::default();
    match name {
        "all_of" => stated.all_of = alternatives.all_of,
        "any_of" => stated.any_of = alternatives.any_of,
        "one_of" => stated.one_of = alternatives.one_of,
        "not" => stated.not = alternatives.not,
        "enum" => stated.enumeration.clone_from(&validation.enumeration),
        "min_properties" => stated.min_properties = validation.min_properties,
        "max_properties" => stated.max_properties = validation.max_properties,
        "map_type" | "struct_type" => stated.map_type = markers.topology.map_type,
        "embedded_resource" => stated.embedded_resource = markers.embedded_resource,
        "nullable" => stated.nullable = markers.nullable,
        "default" => stated.default.clone_from(&markers.default),
        _ => return None,
    }
    Some(stated)
}

fn drop_marker(name: &str, markers: &mut Markers) {
    let validation = &mut markers.validation;
    match name {
        "enum" => validation.enumeration.clear(),
        "min_properties" => validation.min_properties = None,
        "max_properties" => validation.max_properties = None,
        "map_type" | "struct_type" => markers.topology.map_type = None,
        "embedded_resource" => markers.embedded_resource = false,
        "nullable" => markers.nullable = false,
        "default" => markers.default = None,
        _ => {
            let Some(alternatives) = validation.alternatives.as_deref_mut() else {
                return;
            };
            match name {
                "all_of" => alternatives.all_of.clear(),
                "any_of" => alternatives.any_of.clear(),
                "one_of" => alternatives.one_of.clear(),
                _ => alternatives.not = None,
            }
        }
    }
}
