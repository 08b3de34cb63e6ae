//! Finds values that a schema accepts and serde rejects, because the schema language cannot
//! describe them.
//!
//! An object in a structural schema either has fields or is a map, never both. Each field has a
//! single schema, whatever the variant.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tagged::{Common, common};
use super::{Carried, carried, same};
use crate::absent::AbsentValues;
use crate::{Container, Content, Field, Schema, SchemaType, Shape, Site, Slot, Tagging, Variant};

/// Something that serde checks and the API server does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// Values of a map that shares its object with other variants.
    MapOfVariant,
    /// Values of a flattened map next to fields.
    FlattenedMap,
    /// Fields of other variants, in a variant that denies unknown fields.
    OtherFields,
    /// The content of an adjacently tagged enum whose variants hold different types.
    Content,
    /// The content of variants in an enum that also has variants without content.
    BesideNames,
    /// Unknown fields that a marker preserves and the type denies.
    KeptFields,
}

/// Finds everything that a container's schema does not check. Does not look into the types of its
/// fields.
pub fn find_unchecked(container: &Container, slots: &[Slot]) -> Vec<(Site, Unchecked)> {
    let markers = &container.markers;
    if markers.schema.is_some() || markers.preserve_unknown_fields {
        return Vec::new();
    }
    match &container.shape {
        Shape::Object(fields) => of_fields(fields, slots, container.tag.is_some()),
        Shape::Transparent(_) => Vec::new(),
        Shape::Enum { tagging, variants } => of_variants(tagging, variants, container.denies_unknown, slots),
    }
}

fn of_fields(fields: &[Field], slots: &[Slot], has_tag: bool) -> Vec<(Site, Unchecked)> {
    let schema = |field: &Field| slots.get(field.slot).map(|slot| &*slot.schema);
    let has_name =
        |field: &Field| !field.flatten || schema(field).is_some_and(|schema| !schema.properties.is_empty());
    let has_names = has_tag || fields.iter().any(has_name);
    let found = fields.iter().enumerate().filter_map(|(position, field)| {
        let schema = schema(field).filter(|_| !field.stated)?;
        let kept = field.markers.preserve_unknown_fields && field.markers.schema.is_none();
        let what = match () {
            () if field.flatten && has_names && schema.additional_properties.is_some() => {
                Unchecked::FlattenedMap
            }
            () if !field.flatten && kept && schema.closed.0 => Unchecked::KeptFields,
            () => return None,
        };
        Some((Site::Field(position), what))
    });
    found.collect()
}

/// The content of a variant with data.
struct Held {
    position: usize,
    schema: Schema,
    /// True if the validation of the variant excludes fields of other variants.
    excludes_others: bool,
}

fn of_variants(
    tagging: &Tagging,
    variants: &[Variant],
    denies_unknown: bool,
    slots: &[Slot],
) -> Vec<(Site, Unchecked)> {
    let is_tried = |variant: &Variant| variant.untagged || *tagging == Tagging::Untagged;
    let of_group = |tried: bool| -> Vec<Held> {
        let group = variants
            .iter()
            .enumerate()
            .filter(|(_, variant)| is_tried(variant) == tried);
        group
            .filter_map(|(position, variant)| held(position, variant, denies_unknown, slots))
            .collect()
    };
    let (tagged, tried) = (of_group(false), of_group(true));
    let has_unit = variants
        .iter()
        .any(|variant| !is_tried(variant) && variant.content == Content::Unit);
    let mut found = match tagging {
        Tagging::Internal(_) => of_shared_object(&tagged, false),
        Tagging::Adjacent(..) => of_content(&tagged),
        Tagging::External if has_unit && !tagged.is_empty() => {
            vec![(Site::Container, Unchecked::BesideNames)]
        }
        Tagging::External | Tagging::Untagged => Vec::new(),
    };
    let is_object = |held: &Held| held.schema.schema_type == Some(SchemaType::Object);
    let is_one = tried.iter().all(|held| same(&held.schema, &tried[0].schema));
    if tried.iter().all(is_object) && !is_one && !tried.iter().any(takes_anything) {
        found.extend(of_shared_object(&tried, true));
    }
    found
}

impl Held {
    /// Returns whether serde reads every object of another variant as this one if the field `name`
    /// is added.
    fn reads_with(&self, other: &Schema, name: &Arc<str>) -> bool {
        let is_there = |needed: &Arc<str>| needed == name || other.required.contains(needed);
        !self.schema.closed.0 && !self.excludes_others && self.schema.required.iter().all(is_there)
    }
}

fn held(position: usize, variant: &Variant, denies_unknown: bool, slots: &[Slot]) -> Option<Held> {
    let mut none = AbsentValues::default();
    let Carried { schema, .. } = carried(position, variant, slots, &mut none, &mut Vec::new())?;
    Some(Held {
        position,
        schema,
        excludes_others: denies_unknown && matches!(variant.content, Content::Object(_)),
    })
}

/// Returns whether serde accepts every object as this variant.
fn takes_anything(held: &Held) -> bool {
    held.schema.preserve_unknown_fields && held.schema.properties.is_empty()
}

fn of_content(tagged: &[Held]) -> Vec<(Site, Unchecked)> {
    let contents: Vec<&Schema> = tagged.iter().map(|held| &held.schema).collect();
    match common(&contents) {
        Common::Nothing if contents.len() > 1 => vec![(Site::Container, Unchecked::Content)],
        Common::Object(_) => of_shared_object(tagged, false),
        _ => Vec::new(),
    }
}

/// Finds unchecked values in variants that share an object. If serde tries them in turn, an object
/// that one variant rejects may be valid for another.
fn of_shared_object(variants: &[Held], are_tried: bool) -> Vec<(Site, Unchecked)> {
    let names: BTreeSet<&Arc<str>> = variants
        .iter()
        .flat_map(|held| held.schema.properties.keys())
        .collect();
    let found = variants.iter().filter_map(|held| {
        let is_other = |name: &Arc<str>| !held.schema.properties.contains_key(name);
        let is_of_another =
            |name: &Arc<str>| are_tried && variants.iter().any(|other| other.reads_with(&held.schema, name));
        let has_others = || names.iter().any(|name| is_other(name) && !is_of_another(name));
        let what = match () {
            () if held.schema.additional_properties.is_some() => Unchecked::MapOfVariant,
            () if held.schema.closed.0 && !held.excludes_others && has_others() => Unchecked::OtherFields,
            () => return None,
        };
        Some((Site::Variant(held.position), what))
    });
    found.collect()
}
