//! Builds the schema of a container from the schemas of its slots.

use rbuilder_diagnostic::Diagnostic;

use serde_json::Value;

use crate::absent::AbsentValues;
use crate::apply::apply_markers;
use crate::build::{allow_null, any, of_type};
use crate::enumeration::enum_schema;
use crate::object::{object_schema, one_of_rules};
use crate::rules::unite_rules;
use crate::site::{Part, Site};
use crate::validate::check_default;
use crate::variant_docs::variant_docs;
use crate::{Closed, Container, Schema, SchemaType, Shape, Slot, Tagging, Variant};

/// The schema of a container, and the serde defaults that it can't express.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The schema.
    pub schema: Schema,
    /// The fields whose default the API server would reject, with the reason.
    pub refused: Vec<(Site, String)>,
}

/// Builds the schema of a container from the schemas of the types that it mentions.
///
/// # Errors
///
/// Returns all problems in source order: types without a structural schema, and schemas that the
/// API server would reject.
pub fn assemble(container: &Container, slots: &[Slot]) -> Result<Schema, Vec<Diagnostic<Part>>> {
    assemble_with_defaults(container, slots, &[]).map(|assembled| assembled.schema)
}

/// Like [`assemble`], but also sets defaults. `defaults` has the values that serde fills in for
/// absent fields, or `None` for unknown values.
///
/// A value becomes the default of its field unless a marker already sets one, the value is `null`,
/// the schema rejects it, or the field is counted by a rule such as `exactly_one_of(…)`.
///
/// # Errors
///
/// Fails for the same reasons as [`assemble`].
pub fn assemble_with_defaults(
    container: &Container,
    slots: &[Slot],
    defaults: &[(Site, Option<Value>)],
) -> Result<Assembled, Vec<Diagnostic<Part>>> {
    let mut diagnostics = Vec::new();
    let mut absent = AbsentValues::new(defaults, &container.markers);
    let mut schema = shape(container, slots, &mut absent, &mut diagnostics);
    if let Some(description) = describe(container) {
        schema.description = Some(description.into());
    }
    let mut found = Vec::new();
    apply_markers(&container.markers, &mut schema, &mut found);
    if let Shape::Object(fields) = &container.shape {
        let rules = one_of_rules(&container.markers.one_of, fields, slots, &mut found);
        let origin = container.markers.origin;
        schema
            .validations
            .extend(rules.into_iter().map(|rule| crate::Cel { origin, ..rule }));
        unite_rules(&mut schema.validations);
        // These rules weren't known when the default was first checked, so check it again.
        if !container.markers.one_of.is_empty()
            && found.is_empty()
            && let Some(Err(reason)) = schema
                .default
                .as_ref()
                .map(|default| check_default(default, &schema))
        {
            found.push(Diagnostic::error(
                Some("default"),
                format!("invalid default: {reason}"),
            ));
        }
    }
    diagnostics.extend(
        found
            .into_iter()
            .map(|diagnostic| Site::Container.mark(diagnostic)),
    );
    if diagnostics.is_empty() {
        Ok(Assembled {
            schema,
            refused: absent.refused,
        })
    } else {
        Err(diagnostics)
    }
}

fn shape(
    container: &Container,
    slots: &[Slot],
    absent: &mut AbsentValues<'_>,
    diagnostics: &mut Vec<Diagnostic<Part>>,
) -> Schema {
    match &container.shape {
        Shape::Object(fields) => {
            let mut found = Vec::new();
            let mut schema = object_schema(fields, slots, absent, &Site::Field, &mut found);
            diagnostics.extend(
                found
                    .into_iter()
                    .map(|(field, diagnostic)| Site::Field(field).mark(diagnostic)),
            );
            if let Some((name, value)) = &container.tag {
                add_tag(name, value, &mut schema, diagnostics);
            }
            schema.closed = Closed(container.denies_unknown);
            schema
        }
        Shape::Transparent(slot) => slots.get(*slot).map(held).unwrap_or_default(),
        // Accept any content: the error about an enum without a schema tells users to add this
        // marker.
        Shape::Enum { tagging, variants }
            if container.markers.preserve_unknown_fields && is_tried(tagging, variants) =>
        {
            any()
        }
        Shape::Enum { tagging, variants } => enum_schema(
            tagging,
            (variants, container.denies_unknown),
            slots,
            absent,
            diagnostics,
        ),
    }
}

fn held(slot: &Slot) -> Schema {
    let mut schema = Schema::clone(&slot.schema);
    // The API server drops `null` fields. Here, however, the value itself is the `Option`.
    if slot.optional {
        allow_null(&mut schema);
    }
    schema
}

fn add_tag(name: &str, value: &str, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<Part>>) {
    let property = Schema {
        enumeration: vec![value.into()],
        ..of_type(SchemaType::String)
    };
    if schema.properties.insert(name.into(), property.into()).is_some() {
        let message = format!("the field \"{name}\" has the same name as the tag");
        diagnostics.push(Diagnostic::error(Site::Container.into(), message));
    }
}

/// Returns whether serde determines the variant by trial and error.
fn is_tried(tagging: &Tagging, variants: &[Variant]) -> bool {
    *tagging == Tagging::Untagged || variants.iter().any(|variant| variant.untagged)
}

fn describe(container: &Container) -> Option<String> {
    let variants = match &container.shape {
        Shape::Enum {
            tagging, variants, ..
        } => variant_docs(tagging, variants),
        Shape::Object(_) | Shape::Transparent(_) => None,
    };
    match (&container.description, variants) {
        (Some(own), Some(variants)) => Some(format!("{own}\n\n{variants}")),
        (own, variants) => own.clone().or(variants),
    }
}
