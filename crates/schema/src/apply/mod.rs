//! Applies markers to a schema. This is the only place that defines the meaning of a marker.

mod constrain;
mod parts;

use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;
use serde_json::Value;

use crate::build::{allow_null, int_or_string};
use crate::rework::{self as meta, drop_object_meta, is_bare, keep_object_meta, shorten_descriptions};
use crate::rules::{refuse_repeated_rules, unite_rules};
use crate::site::MarkerName;
use crate::structural::check_list_map;
use crate::validate::{check_default, validate};
use crate::{Cel, KEYS, Key, Markers, Role, Schema, SchemaType, Topology};
pub(crate) use constrain::drop_implied_bounds;
use constrain::{apply_constraints, check_constraints};
pub use parts::with_bounds_of_parts;

/// Checks the markers on a value whose type is known, but not the rest of its schema. The returned
/// errors apply wherever the value is used.
pub fn check_markers(markers: &Markers, mut schema: Schema) -> Vec<Diagnostic<MarkerName>> {
    let mut diagnostics = Vec::new();
    apply_markers(markers, &mut schema, &mut diagnostics);
    diagnostics
}

/// Applies markers to the schema of a value. If both the type and a marker constrain the same
/// thing, the tighter constraint wins.
pub(crate) fn apply_markers(
    markers: &Markers,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    // Destructure the markers, so that a new one doesn't compile until it's handled here. Markers
    // on a single field (`immutable`, `optional`) or on several fields (`one_of`) are up to the
    // parent object.
    let Markers {
        stated: _,
        min_size: _,
        max_size: _,
        items,
        keys,
        values,
        cel,
        one_of: _,
        immutable: _,
        default,
        optional: _,
        nullable,
        topology,
        embedded_resource,
        preserve_unknown_fields,
        int_or_string,
        schemaless: _,
        schema: literal,
        embedded_object_meta,
        max_description_length,
        descriptor,
        origin: _,
    } = markers;
    let had = diagnostics.len();
    if let Some(literal) = literal {
        let description = schema.description.take();
        *schema = Schema::clone(literal);
        schema.description = description.or(schema.description.take());
    }
    retype(markers.stated().schema_type, *int_or_string, schema);
    schema.nullable |= nullable;
    apply_constraints(markers, schema, diagnostics);
    schema.preserve_unknown_fields |= preserve_unknown_fields;
    if *embedded_resource {
        embed(schema, diagnostics);
    }
    apply_inner(
        items.as_deref(),
        schema.items.as_mut().map(Arc::make_mut),
        "items",
        "a list",
        diagnostics,
    );
    apply_inner(
        values.as_deref(),
        schema.additional_properties.as_mut().map(Arc::make_mut),
        "values",
        "a map",
        diagnostics,
    );
    if let Some(keys) = keys {
        schema.validations.splice(0..0, key_rules(keys, diagnostics));
    }
    // Like controller-gen, put the rules of a field before the rules of its type.
    schema.validations.splice(0..0, cel.iter().cloned());
    unite_rules(&mut schema.validations);
    if !cel.is_empty() {
        refuse_repeated_rules("cel", schema, diagnostics);
    }
    merge_as(topology, schema, diagnostics);
    let has_object_meta = match embedded_object_meta {
        Some(true) => keep_object_meta_of(schema),
        Some(false) => drop_object_meta(schema),
        None => true,
    };
    if !has_object_meta {
        let diagnostic = Diagnostic::error(
            Some("embedded_object_meta"),
            "expected an embedded object with `metadata`, found none",
        );
        diagnostics.push(diagnostic.help("remove `embedded_object_meta`"));
    }
    override_words(markers, schema);
    schema.description.take_if(|text| text.is_empty());
    if let Some(most) = max_description_length {
        shorten_descriptions(schema, *most);
    }
    override_with(&mut schema.descriptor.0, descriptor.as_ref());
    override_with(&mut schema.default, default.as_ref());
    if narrows(markers) && diagnostics.len() == had {
        check_constraints(markers.stated(), schema, diagnostics);
    }
    check_values(markers, schema, diagnostics);
    // `null` only means that the type's default doesn't apply here. The API server has no `null`
    // defaults.
    if schema.default == Some(Value::Null) {
        schema.default = None;
    }
    // Don't touch a schema that the user wrote out.
    if schema.nullable && !schema.enumeration.is_empty() && literal.is_none() {
        allow_null(schema);
    }
}

/// Checks that `default` and `example` are valid for the schema. If the field adds constraints, the
/// default of its type is checked again, as it may violate them.
fn check_values(markers: &Markers, schema: &Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    if let Some(default) = &markers.default {
        if let Err(reason) = check_default(default, schema) {
            diagnostics.push(Diagnostic::error(
                Some("default"),
                format!("invalid default: {reason}"),
            ));
        }
    } else if let Some(default) = &schema.default
        && narrows(markers)
        && let Err(reason) = check_default(default, schema)
    {
        let diagnostic = Diagnostic::error(
            None,
            format!("the default of the type is not valid here: {reason}"),
        );
        diagnostics.push(diagnostic.help("add `default = …` to the field"));
    }
    if let Some(example) = &markers.stated().example
        && let Err(reason) = validate(example, schema)
    {
        diagnostics.push(Diagnostic::error(
            Some("example"),
            format!("invalid example: {reason}"),
        ));
    }
}

fn narrows(markers: &Markers) -> bool {
    let is_constrained = |stated: &Schema| Key::arguments().any(|key| key.is_set(stated));
    markers.stated.as_deref().is_some_and(is_constrained)
        || markers.min_size.is_some()
        || markers.max_size.is_some()
        || markers.topology != Markers::none().topology
        || markers.items.is_some()
        || markers.keys.is_some()
        || markers.values.is_some()
        || markers.embedded_resource
}

/// Keeps the metadata of embedded objects. The value may be the metadata itself, or contain objects
/// with metadata.
fn keep_object_meta_of(schema: &mut Schema) -> bool {
    if !is_bare(schema) {
        return keep_object_meta(schema);
    }
    *schema = Schema {
        description: schema.description.take(),
        ..meta::embedded_object_meta()
    };
    true
}

fn override_with<T: Clone>(value: &mut Option<T>, written: Option<&T>) {
    if let Some(written) = written {
        *value = Some(written.clone());
    }
}

fn override_words(markers: &Markers, schema: &mut Schema) {
    let Some(stated) = &markers.stated else { return };
    for key in KEYS
        .iter()
        .filter(|key| key.role == Role::Words && key.is_set(stated))
    {
        key.copy(stated, schema);
    }
}

/// Replaces the type for `type = "…"` and `int_or_string`. The old type's constraints are dropped,
/// as they are meaningless for the new one.
fn retype(schema_type: Option<SchemaType>, is_int_or_string: bool, schema: &mut Schema) {
    if is_int_or_string && !schema.int_or_string {
        *schema = Schema {
            description: schema.description.take(),
            ..int_or_string()
        };
    } else if schema_type.is_some() && schema.schema_type != schema_type {
        *schema = Schema {
            schema_type,
            description: schema.description.take(),
            ..Schema::default()
        };
    }
}

fn embed(schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    if schema.schema_type != Some(SchemaType::Object) {
        diagnostics.push(
            Diagnostic::error(
                Some("embedded_resource"),
                "`embedded_resource` applies to objects",
            )
            .help("put it on a `RawExtension` or a struct"),
        );
    } else if schema.properties.is_empty() && !schema.preserve_unknown_fields {
        let diagnostic = Diagnostic::error(
            Some("embedded_resource"),
            "an embedded resource needs `properties` or `preserve_unknown_fields`",
        );
        diagnostics.push(diagnostic.help("add `preserve_unknown_fields`"));
    } else {
        schema.embedded_resource = true;
    }
}

fn apply_inner(
    markers: Option<&Markers>,
    inner: Option<&mut Schema>,
    name: &'static str,
    wanted: &str,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    match (markers, inner) {
        (None, _) => {}
        (Some(markers), Some(inner)) => {
            in_marker(name, diagnostics, |found| apply_markers(markers, inner, found));
        }
        (Some(_), None) => diagnostics.push(Diagnostic::error(
            Some(name),
            format!("`{name}` applies to {wanted}; this value is not one"),
        )),
    }
}

/// Runs `check` and reports all findings at the marker `name`, because the arguments inside of a
/// marker have no separate location.
pub(crate) fn in_marker(
    name: &'static str,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
    check: impl FnOnce(&mut Vec<Diagnostic<MarkerName>>),
) {
    let mut found = Vec::new();
    check(&mut found);
    diagnostics.extend(found.into_iter().map(|diagnostic| diagnostic.at(Some(name))));
}

/// Converts constraints on keys to CEL rules, because structural schemas don't support
/// `propertyNames`.
fn key_rules(keys: &Markers, diagnostics: &mut Vec<Diagnostic<MarkerName>>) -> Vec<Cel> {
    let Schema {
        min_length,
        max_length,
        pattern,
        enumeration,
        ..
    } = keys.stated();
    let mut rules = Vec::new();
    let mut rule = |condition: String, message: String| {
        let rule = format!("self.all(key, {condition})");
        rules.push(Cel {
            rule,
            message: Some(message),
            origin: keys.origin,
            ..Cel::default()
        });
    };
    if let Some(least) = min_length {
        rule(
            format!("size(key) >= {least}"),
            format!("keys must have at least {least} characters"),
        );
    }
    if let Some(most) = max_length {
        rule(
            format!("size(key) <= {most}"),
            format!("keys must have at most {most} characters"),
        );
    }
    if let Some(pattern) = pattern {
        rule(
            format!("key.matches({})", cel_text(pattern)),
            "keys must match the pattern".to_owned() + " " + &one_line(pattern),
        );
    }
    if !enumeration.is_empty() {
        let names: Vec<_> = enumeration.iter().filter_map(Value::as_str).collect();
        let list: Vec<_> = names.iter().map(|name| cel_text(name)).collect();
        rule(
            format!("key in [{}]", list.join(", ")),
            format!("keys must be one of {}", one_line(&names.join(", "))),
        );
    }
    let is_supported = |key: &Key| matches!(key.name, "minLength" | "maxLength" | "pattern" | "enum");
    let supported = Markers {
        stated: keys.stated.clone(),
        cel: keys.cel.clone(),
        ..Markers::default()
    };
    if *keys != supported
        || KEYS
            .iter()
            .any(|key| !is_supported(key) && key.is_set(keys.stated()))
    {
        let diagnostic = Diagnostic::error(
            Some("keys"),
            "`keys(…)` supports only `min_length`, `max_length`, `pattern`, `enum` and `cel`",
        );
        diagnostics.push(diagnostic.help("remove the other arguments of `keys(…)`"));
    }
    for cel in &keys.cel {
        if cel.message_expression.is_some() || cel.optional_old_self.is_some() {
            let diagnostic = Diagnostic::error(Some("keys"), "a rule on keys has access to the key only");
            diagnostics.push(
                diagnostic
                    .help("use `message` instead of `message_expression`, and remove `optional_old_self`"),
            );
        }
        // Bind `self` to the key, as expected by the user's rule.
        rules.push(Cel {
            rule: format!("self.all(key, [key].all(self, {}))", cel.rule),
            ..cel.clone()
        });
    }
    rules
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

pub(crate) fn cel_text(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    format!("'{escaped}'")
}

fn merge_as(topology: &Topology, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    let Topology {
        list_type,
        list_map_keys,
        map_type,
    } = topology;
    if let Some(list_type) = list_type {
        if schema.schema_type == Some(SchemaType::Array) {
            schema.list_type = Some(*list_type);
            schema.list_map_keys = list_map_keys.clone();
            let mistakes = check_list_map(*list_type, schema);
            diagnostics.extend(mistakes.into_iter().map(|mistake| mistake.map_place(Some)));
        } else {
            diagnostics.push(Diagnostic::error(
                Some("list_type"),
                "`list_type` applies to lists; this value is not a list",
            ));
        }
    }
    if let Some(map_type) = map_type {
        if schema.schema_type == Some(SchemaType::Object) {
            schema.map_type = Some(*map_type);
        } else {
            diagnostics.push(Diagnostic::error(
                Some("map_type"),
                "`map_type` and `struct_type` apply to objects; this value is not an object",
            ));
        }
    }
}

#[cfg(test)]
mod tests;
