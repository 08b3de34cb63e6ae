//! Container and slots to schema.

use rbuilder_diagnostic::Diagnostic;

use serde_json::Value;

use crate::absent::AbsentValues;
use crate::apply::apply_markers;
use crate::build::{allow_null, any, of_type};
use crate::enumeration::{enum_schema, variant_docs};
use crate::object::{object_schema, one_of_rules};
use crate::rules::unite_rules;
use crate::validate::check_default;
use crate::{Closed, Container, Schema, SchemaType, Shape, Slot, Tagging, Variant};

/// The part of a container that a problem is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The type as a whole.
    Container,
    /// A field of a struct, by position in [`Shape::Object`](crate::Shape::Object).
    Field(usize),
    /// A variant of an enum, by position.
    Variant(usize),
    /// A field of a variant, by both positions.
    VariantField(usize, usize),
}

/// The name of a marker or constraint in source, such as `default`; `None` where none is meant.
pub type MarkerName = Option<&'static str>;

/// The part of a container that a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The type, a field or a variant.
    pub site: Site,
    /// The marker there.
    pub marker: MarkerName,
}

impl From<Site> for Part {
    fn from(site: Site) -> Self {
        Part { site, marker: None }
    }
}

impl Site {
    /// Places what was found about the markers of this site.
    pub(crate) fn mark(self, diagnostic: Diagnostic<MarkerName>) -> Diagnostic<Part> {
        diagnostic.map_place(|marker| Part { site: self, marker })
    }
}

/// The schema of a container, and the defaults of serde that it cannot have.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The schema.
    pub schema: Schema,
    /// The fields whose default the API server would refuse, each with the reason.
    pub refused: Vec<(Site, String)>,
}

/// Builds the schema of a container from the schemas of the types it mentions.
///
/// # Errors
/// All errors found, in source order: types without a structural schema, and what the API server would refuse.
pub fn assemble(container: &Container, slots: &[Slot]) -> Result<Schema, Vec<Diagnostic<Part>>> {
    assemble_with_defaults(container, slots, &[]).map(|assembled| assembled.schema)
}

/// [`assemble`], with the values that serde gives to absent fields; nothing for one that is not known. A field whose markers have no default has this one,
/// unless it is `null`, the schema refuses it, or a rule such as `exactly_one_of(…)` asks whether the field is set.
///
/// # Errors
/// As those of [`assemble`].
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
        // Only now are the rules there that the default must keep.
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
        // The way out of an enum that has no schema, as the help about it says.
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

/// Returns the schema of a newtype's content. Nothing drops the `null` of an `Option` in it: the newtype is a value, not a
/// field.
fn held(slot: &Slot) -> Schema {
    let mut schema = Schema::clone(&slot.schema);
    if slot.optional {
        allow_null(&mut schema);
    }
    schema
}

/// The field that serde writes into a tagged struct, and passes over when it reads one.
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

/// Returns whether serde finds the variant of a value by trying each.
fn is_tried(tagging: &Tagging, variants: &[Variant]) -> bool {
    *tagging == Tagging::Untagged || variants.iter().any(|variant| variant.untagged)
}

/// The container's own words, and what the doc comments of unit variants add to them.
fn describe(container: &Container) -> Option<String> {
    let variants = match &container.shape {
        Shape::Enum { variants, .. } => variant_docs(variants),
        Shape::Object(_) | Shape::Transparent(_) => None,
    };
    match (&container.description, variants) {
        (Some(own), Some(variants)) => Some(format!("{own}\n\n{variants}")),
        (own, variants) => own.clone().or(variants),
    }
}
