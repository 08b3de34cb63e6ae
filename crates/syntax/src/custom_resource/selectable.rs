//! `selectable = "…"`: makes a field available in field selectors.

use rbuilder_diagnostic::suggest::find_nearest;
use rbuilder_schema::Field;

use crate::{CustomResource, SchemaMode, SelectableField, Session};

/// Help for a path that isn't similar to any field.
const ANY_SCALAR: &str = "use the path of a string, integer or boolean field, with JSON names";

/// The API server's limit.
const MAX_SELECTABLE: usize = 8;

pub(super) fn check_selectable(field: &SelectableField, earlier: &[SelectableField], session: &mut Session) {
    let (path, at) = (field.json_path.as_str(), field.span);
    if !path.starts_with('.') || path.len() < 2 {
        let help = "write a path from the root of the object, as in `.spec.size`";
        session.error_help(at, format!("`{path}` is not a valid JSON path"), help);
    } else if path.contains(['[', ']']) {
        let help = "separate field names by dots, as in `.spec.size`; elements of lists cannot be selected";
        session.error_help(
            at,
            format!("`{path}` is not a valid selectable field: brackets are not allowed"),
            help,
        );
    } else if path[1..].split('.').any(str::is_empty) {
        let help = "separate field names by single dots, as in `.spec.size`";
        session.error_help(
            at,
            format!("`{path}` is not a valid selectable field: a name is missing"),
            help,
        );
    } else if path == ".metadata" || path.starts_with(".metadata.") {
        let help = "remove it: `metadata.name` and `metadata.namespace` are always selectable";
        session.error_help(at, "fields of `metadata` cannot be made selectable", help);
    }
    if earlier.iter().any(|earlier| earlier.json_path == path) {
        session.error(at, format!("duplicate selectable field `{path}`"));
    }
    if earlier.len() == MAX_SELECTABLE {
        session.error(
            at,
            format!("a version can have at most {MAX_SELECTABLE} selectable fields"),
        );
    }
}

/// Reports selectable fields that the struct lacks. The check of the final schema would find them
/// as well, but can't run in the compiler.
pub(crate) fn check_selected_fields(resource: &CustomResource, fields: &[Field], session: &mut Session) {
    let is_stated = resource.schema_mode == SchemaMode::Manual || resource.root_schema.is_some();
    // Another derive, or a handwritten `impl`, may produce a schema with other fields.
    if !session.is_ours() || is_stated || resource.no_spec || fields.iter().any(|field| field.flatten) {
        return;
    }
    for SelectableField {
        span,
        json_path: path,
    } in &resource.selectable_fields
    {
        let Some(name) = path
            .strip_prefix(".spec.")
            .and_then(|rest| rest.split('.').next())
        else {
            continue;
        };
        let is_reported = name.is_empty() || path.contains(['[', ']']);
        if !is_reported && !fields.iter().any(|field| field.name == name) {
            let message = format!("`{path}` is not a valid selectable field: unknown field `{name}`");
            let names = fields.iter().map(|field| field.name.as_str());
            match find_nearest(name, names) {
                Some(near) => session.error_help(*span, message, format!("did you mean `{near}`?")),
                None => session.error_help(*span, message, ANY_SCALAR),
            }
        }
    }
}
