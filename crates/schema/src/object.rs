//! Builds the schema of an object from its fields.

use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;

use crate::absent::AbsentValues;
use crate::apply::{apply_markers, in_marker};
use crate::build::of_type;
use crate::number::check_integer;
use crate::rules::{refuse_repeated_rules, unite_rules};
use crate::site::MarkerName;
use crate::variant_docs::add_variant_docs;
use crate::{Cel, Field, Markers, OneOf, Presence, Schema, SchemaType, Site, Slot, cel_name};

pub(crate) type FieldDiagnostic = (usize, Diagnostic<MarkerName>);

/// `site` returns the site of the field at an index, which differs between structs and variants.
pub(crate) fn object_schema(
    fields: &[Field],
    slots: &[Slot],
    absent: &mut AbsentValues<'_>,
    site: &dyn Fn(usize) -> Site,
    diagnostics: &mut Vec<FieldDiagnostic>,
) -> Schema {
    let mut schema = of_type(SchemaType::Object);
    for (position, field) in fields.iter().enumerate() {
        let mut found = Vec::new();
        match slots.get(field.slot) {
            Some(slot) if field.flatten => flatten(field, slot, &mut schema, &mut found),
            Some(slot) => {
                let mut fill_in =
                    |property: &mut Arc<Schema>| absent.fill_in(site(position), field, property);
                add(field, slot, &mut fill_in, &mut schema, &mut found);
            }
            None => found.push(Diagnostic::error(None, "the type of the field could not be read")),
        }
        diagnostics.extend(found.into_iter().map(|diagnostic| (position, diagnostic)));
    }
    close_map(&mut schema);
    schema
}

pub(crate) fn is_optional(field: &Field, slot: &Slot) -> bool {
    field
        .markers
        .optional
        .unwrap_or_else(|| reads_without(field, slot))
}

fn reads_without(field: &Field, slot: &Slot) -> bool {
    match field.presence {
        Presence::ByType => slot.optional,
        Presence::Defaulted => true,
        Presence::Required => false,
    }
}

/// Reports markers that let the API server accept objects unreadable for serde.
fn check_readable(
    field: &Field,
    slot: &Slot,
    property: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if field.markers.optional != Some(true) && !field.markers.nullable {
        return;
    }
    // If the JSON doesn't follow from the type, only `Required` is certain.
    let is_certain = field.presence == Presence::Required || !field.stated;
    if field.markers.optional == Some(true)
        && is_certain
        && !reads_without(field, slot)
        && property.default.is_none()
    {
        let diagnostic = Diagnostic::error(
            Some("optional"),
            "serde requires this field, so it cannot be `optional`",
        );
        diagnostics.push(diagnostic.help("make it an `Option`, or add `default` to `#[serde(…)]`"));
    }
    let is_typed = property.schema_type.is_some() && !property.preserve_unknown_fields;
    if field.markers.nullable && is_typed && !field.stated && !slot.optional && !slot.schema.nullable {
        let diagnostic = Diagnostic::error(
            Some("nullable"),
            "serde does not accept `null` here, so the field cannot be `nullable`",
        );
        diagnostics.push(diagnostic.help("make it an `Option`"));
    }
}

/// Reports markers on a value, its items and its values that allow more than the Rust type can
/// hold. `own` is the schema of the type without the markers.
pub(crate) fn check_range(markers: &Markers, own: &Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    check_integer(markers.stated(), own, diagnostics);
    let parts = [
        ("items", &markers.items, &own.items),
        ("values", &markers.values, &own.additional_properties),
    ];
    for (name, markers, own) in parts {
        let (Some(markers), Some(own)) = (markers, own) else {
            continue;
        };
        let is_typed = own.schema_type.is_some() && !own.preserve_unknown_fields;
        if markers.nullable && is_typed && !own.nullable {
            let diagnostic = Diagnostic::error(
                Some(name),
                format!("serde does not accept `null` here, so `{name}` cannot be `nullable`"),
            );
            diagnostics.push(diagnostic.help("use `Option` as the type of the items or values"));
        }
        in_marker(name, diagnostics, |found| check_range(markers, own, found));
    }
}

/// Adds a field. `fill_in` sets the default that serde uses for an absent field, and returns
/// whether there is one.
fn add(
    field: &Field,
    slot: &Slot,
    fill_in: &mut dyn FnMut(&mut Arc<Schema>) -> bool,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    let had = diagnostics.len();
    let mut property = if field.markers.schemaless {
        Arc::default()
    } else {
        Arc::clone(&slot.schema)
    };
    if let Some(description) = &field.description {
        let description = add_variant_docs(description, &property);
        Arc::make_mut(&mut property).description = Some(description.into());
    }
    if field.markers != *Markers::none() {
        apply_markers(&field.markers, Arc::make_mut(&mut property), diagnostics);
    }
    let mut optional = is_optional(field, slot);
    if diagnostics.len() == had && fill_in(&mut property) {
        // The API server fills in a field with a default, so it need not be required unless a
        // marker says so.
        optional |= field.markers.optional.is_none();
    }
    check_readable(field, slot, &property, diagnostics);
    if !field.stated {
        check_range(&field.markers, &slot.schema, diagnostics);
    }
    if field.markers.immutable {
        let rule = "self == oldSelf".into();
        Arc::make_mut(&mut property).validations.push(Cel {
            rule,
            message: Some("field is immutable".into()),
            origin: field.markers.origin,
            ..Cel::default()
        });
        let property = Arc::make_mut(&mut property);
        unite_rules(&mut property.validations);
        refuse_repeated_rules("immutable", property, diagnostics);
        // The rule above doesn't run if the field is removed.
        if optional {
            let rule = once_set(&field.name, diagnostics).map(|rule| Cel {
                origin: field.markers.origin,
                ..rule
            });
            schema.validations.extend(rule);
        }
    }
    let name: Arc<str> = field.name.as_str().into();
    if !optional {
        schema.required.insert(Arc::clone(&name));
    }
    if schema.properties.insert(name, property).is_some() {
        diagnostics.push(Diagnostic::error(
            None,
            format!("duplicate field name \"{}\" in JSON", field.name),
        ));
    }
}

fn once_set(name: &str, diagnostics: &mut Vec<Diagnostic<MarkerName>>) -> Option<Cel> {
    let Some(path) = cel_name(name) else {
        diagnostics.push(Diagnostic::error(
            Some("immutable"),
            format!("CEL cannot refer to the field \"{name}\""),
        ));
        return None;
    };
    Some(Cel {
        // Must be on the parent: the rules of an absent field don't run.
        rule: format!("!has(oldSelf.{path}) || has(self.{path})"),
        message: Some(format!("field {name} is immutable once set")),
        ..Cel::default()
    })
}

fn flatten(field: &Field, slot: &Slot, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    // `optional` is the only marker that makes sense on a flattened field.
    if (Markers {
        optional: None,
        ..field.markers.clone()
    }) != *Markers::none()
    {
        let diagnostic = Diagnostic::error(
            None,
            "markers have no effect on a flattened field, which does not appear in JSON",
        );
        diagnostics.push(diagnostic.help("move the markers to the fields of its type"));
    }
    let inner = &slot.schema;
    if inner.schema_type.is_none() && !inner.any_of.is_empty() && !inner.int_or_string {
        let diagnostic = Diagnostic::error(None, "a type that can be a string cannot be flattened");
        diagnostics.push(diagnostic.help("write `{}` after the name of each variant without data"));
        return;
    }
    if inner.preserve_unknown_fields && inner.properties.is_empty() {
        schema.preserve_unknown_fields = true;
        return;
    }
    if inner.schema_type != Some(SchemaType::Object) && !inner.preserve_unknown_fields {
        let diagnostic = Diagnostic::error(None, "expected a struct, an enum of structs or a map to flatten");
        diagnostics.push(diagnostic.help("remove `#[serde(flatten)]`"));
        return;
    }
    let optional = is_optional(field, slot);
    check_readable(field, slot, &Schema::default(), diagnostics);
    hoist(inner, optional, schema, diagnostics);
}

fn hoist(inner: &Schema, optional: bool, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    for (name, property) in &inner.properties {
        if schema.properties.insert(name.clone(), property.clone()).is_some() {
            diagnostics.push(Diagnostic::error(
                None,
                format!("duplicate field name \"{name}\" in JSON"),
            ));
        }
    }
    if let Some(values) = &inner.additional_properties {
        schema.additional_properties = Some(values.clone());
    }
    schema.preserve_unknown_fields |= inner.preserve_unknown_fields;
    if inner.max_properties.is_some() {
        let diagnostic = Diagnostic::error(
            None,
            "flattened fields are merged with others, so they cannot be counted",
        );
        diagnostics.push(diagnostic.help("remove `max_properties` from the type"));
    }
    // The whole value may be absent, so nothing can be required.
    if optional {
        schema.validations.extend(if_any_is_set(inner));
        return;
    }
    schema.validations.extend(inner.validations.iter().cloned());
    schema.required.extend(inner.required.iter().map(Arc::clone));
    schema.all_of.extend(inner.all_of.iter().cloned());
    join_alternatives(&inner.one_of, &inner.any_of, schema);
    schema.min_properties = schema.min_properties.max(inner.min_properties);
}

/// Restricts the rules of an optional flattened value to objects with any of its fields.
fn if_any_is_set(inner: &Schema) -> Vec<Cel> {
    // A field with a default is always present, so its presence says nothing. Only check such
    // fields if there are no others.
    let has_open = inner
        .properties
        .values()
        .any(|property| property.default.is_none());
    let present: Vec<_> = inner
        .properties
        .iter()
        .filter(|(_, property)| !has_open || property.default.is_none())
        .filter_map(|(name, _)| cel_name(name))
        .map(|path| format!("has(self.{path})"))
        .collect();
    let guard = present.join(" || ");
    let guarded = |rule: &Cel| Cel {
        rule: format!("!({guard}) || ({})", rule.rule),
        ..rule.clone()
    };
    inner.validations.iter().map(guarded).collect()
}

fn join_alternatives(one_of: &[Schema], any_of: &[Schema], schema: &mut Schema) {
    // A schema can have only one list per keyword, so put a second one under `allOf`.
    if schema.one_of.is_empty() {
        schema.one_of = one_of.to_vec();
    } else if !one_of.is_empty() {
        schema.all_of.push(Schema {
            one_of: one_of.to_vec(),
            ..Schema::default()
        });
    }
    if schema.any_of.is_empty() {
        schema.any_of = any_of.to_vec();
    } else if !any_of.is_empty() {
        schema.all_of.push(Schema {
            any_of: any_of.to_vec(),
            ..Schema::default()
        });
    }
}

fn close_map(schema: &mut Schema) {
    // A structural schema can't have both fields and map values, so keep the keys of a flattened
    // map without checking its values.
    if !schema.properties.is_empty() && schema.additional_properties.take().is_some() {
        schema.preserve_unknown_fields = true;
    }
}

/// Builds the rules about several fields, with the expressions of controller-gen in its order: at
/// most, exactly, at least.
pub(crate) fn one_of_rules(
    rules: &[OneOf],
    fields: &[Field],
    slots: &[Slot],
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) -> Vec<Cel> {
    let mut sorted: Vec<&OneOf> = rules.iter().collect();
    sorted.sort_by_key(|rule| match rule {
        OneOf::AtMost(_) => 0,
        OneOf::Exactly(_) => 1,
        OneOf::AtLeast(_) => 2,
    });
    sorted
        .into_iter()
        .filter_map(|rule| one_of_rule(rule, fields, slots, diagnostics))
        .collect()
}

fn one_of_rule(
    rule: &OneOf,
    fields: &[Field],
    slots: &[Slot],
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) -> Option<Cel> {
    let (marker, idents) = match rule {
        OneOf::AtMost(idents) => ("at_most_one_of", idents),
        OneOf::Exactly(idents) => ("exactly_one_of", idents),
        OneOf::AtLeast(idents) => ("at_least_one_of", idents),
    };
    let mut names = Vec::with_capacity(idents.len());
    for ident in idents {
        let Some(field) = fields.iter().find(|field| field.ident == *ident) else {
            // The front end has already reported a missing field at the marker.
            continue;
        };
        if !slots.get(field.slot).is_some_and(|slot| is_optional(field, slot)) {
            let diagnostic = Diagnostic::error(
                Some(marker),
                format!("the field `{ident}` is required and therefore always set"),
            );
            diagnostics.push(diagnostic.help("make it an `Option`, or add `#[serde(default)]`"));
        }
        match cel_name(&field.name) {
            Some(path) => names.push((field.name.as_str(), path)),
            None => diagnostics.push(Diagnostic::error(
                Some(marker),
                format!("CEL cannot refer to the field \"{}\"", field.name),
            )),
        }
    }
    if names.len() != idents.len() {
        return None;
    }
    let list = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    let join = |term: &dyn Fn(&str) -> String, between: &str| {
        names
            .iter()
            .map(|(_, path)| term(path))
            .collect::<Vec<_>>()
            .join(between)
    };
    let count = || join(&|path| format!("(has(self.{path})?1:0)"), "+");
    let (rule, message) = match rule {
        OneOf::AtMost(_) => (
            format!("{} <= 1", count()),
            format!("at most one of the fields in [{list}] may be set"),
        ),
        OneOf::Exactly(_) => (
            format!("{} == 1", count()),
            format!("exactly one of the fields in [{list}] must be set"),
        ),
        OneOf::AtLeast(_) => (
            join(&|path| format!("has(self.{path})"), "||"),
            format!("at least one of the fields in [{list}] must be set"),
        ),
    };
    Some(Cel {
        rule,
        message: Some(message),
        ..Cel::default()
    })
}
