//! `null` in places where the schema accepts it and serde does not: a type that a marker makes nullable is read from
//! `null` only in an `Option`, which is where it is used.

use std::collections::BTreeSet;

use rbuilder_schema::{Container, Content, Field, Shape, Tagging};

use crate::package::{Package, TypeId};
use crate::resolve::Ty;

/// The types that a marker makes nullable and that serde reads from `null` only in an `Option`.
pub(crate) fn find_types_that_need_option(package: &Package) -> BTreeSet<TypeId> {
    let types = package.types.iter().enumerate();
    let found = types.filter(|(_, item)| item.model.as_ref().is_some_and(|model| model.needs_option));
    found.map(|(position, _)| TypeId(position)).collect()
}

/// The slots whose values serde reads by their type, each with true if the value can be `null` by itself: that of a
/// flattened field, for one, has no place of its own.
pub(crate) fn list_read_slots(container: &Container) -> Vec<(usize, bool)> {
    let of_fields = |fields: &[Field]| -> Vec<(usize, bool)> {
        let read = fields.iter().filter(|field| !field.stated);
        read.map(|field| (field.slot, !field.flatten)).collect()
    };
    match &container.shape {
        Shape::Object(fields) => of_fields(fields),
        Shape::Transparent(slot) => vec![(*slot, false)],
        Shape::Enum { tagging, variants } => {
            let has_place = matches!(tagging, Tagging::External | Tagging::Adjacent(..));
            let contents = variants.iter().flat_map(|variant| match &variant.content {
                Content::Unit => Vec::new(),
                Content::Newtype(slot) => vec![(*slot, has_place)],
                Content::Object(fields) => of_fields(fields),
            });
            contents.collect()
        }
    }
}

/// Returns the type that a `null` in a value of type `ty` reaches outside of an `Option`; with `is_inside`, that in its
/// items and values only.
pub(crate) fn find_reached(ty: &Ty, is_inside: bool, need_option: &BTreeSet<TypeId>) -> Option<TypeId> {
    match ty {
        Ty::Item(id, _) => (!is_inside && need_option.contains(id)).then_some(*id),
        Ty::Option(inner) => find_reached(inner, true, need_option),
        Ty::List(item) | Ty::Set(item) | Ty::Array(item, _) | Ty::Map(_, item) => {
            find_reached(item, false, need_option)
        }
        Ty::Written(..) | Ty::Known(_) | Ty::Kubernetes(_) | Ty::Root(_) => None,
    }
}
