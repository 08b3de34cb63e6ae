//! Finds `null` values that the schema accepts but serde rejects. A marker can make a type
//! nullable, but serde reads `null` only for an `Option` of that type.

use std::collections::BTreeSet;

use rbuilder_schema::{Container, Content, Field, Shape, Tagging};

use crate::package::{Package, TypeId};
use crate::resolve::Ty;

/// Returns types made nullable by a marker, which serde therefore needs in an `Option`.
pub(crate) fn find_types_that_need_option(package: &Package) -> BTreeSet<TypeId> {
    let types = package.types.iter().enumerate();
    let found = types.filter(|(_, item)| item.model.as_ref().is_some_and(|model| model.needs_option));
    found.map(|(position, _)| TypeId(position)).collect()
}

/// Returns the slots whose values serde reads by their type, and whether each can be `null` on its
/// own. A flattened field can't, for example, because its value is merged into the surrounding
/// object.
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

/// Returns the nullable type that a `null` in `ty` reaches without an `Option` in between. With
/// `is_inside`, searches only the items and values of `ty`.
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
