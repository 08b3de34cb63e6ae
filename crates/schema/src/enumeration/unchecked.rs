//! Finds values that a schema accepts but serde rejects, because schemas can't express everything
//! that serde checks.
//!
//! In a structural schema, an object either has fields or is a map, never both, and a field has the
//! same schema in every variant.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tagged::{Common, common};
use super::{Carried, carried, same};
use crate::absent::AbsentValues;
use crate::{Container, Content, Field, Schema, SchemaType, Shape, Site, Slot, Tagging, Variant};

/// A check in serde that the API server can't perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// The values of a map inside a variant, if the variant's fields are merged into the same
    /// object as the fields of other variants.
    MapOfVariant,
    /// The values of a flattened map alongside fields.
    FlattenedMap,
    /// Fields of other variants, in a variant that denies unknown fields.
    OtherFields,
    /// The content of an adjacently tagged enum with variants of different types.
    Content,
    /// The content of variants in an enum that also has variants without content.
    BesideNames,
    /// Unknown fields preserved by a marker although the type denies them.
    KeptFields,
}

/// Finds everything that the schema of a container doesn't check, not including the types of its
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

struct Held {
    position: usize,
    schema: Schema,
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
    /// Returns whether serde would read every object of another variant as this one if the field
    /// `name` were added.
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

/// Finds what isn't checked in variants that share an object. If serde tries the variants in turn,
/// an object rejected by one of them may still be valid for another.
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
