//! `#[kube(…)]` and `#[crd(…)]` on types, fields and variants: the marker table and its reader.

use rbuilder_schema::Markers;
use syn::{Attribute, GenericArgument, PathArguments};

use crate::{Session, SpanId};

/// Where a marker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a struct or enum.
    Type,
    /// On a named field.
    Field,
    /// On the one unnamed field of a newtype.
    Newtype,
    /// On an enum variant.
    Variant,
    /// Inside `items(…)`, `keys(…)` or `values(…)`.
    Value,
}

/// What the markers of one field say.
#[derive(Default)]
pub(crate) struct FieldMarkers {
    pub(crate) markers: Markers,
    /// `schema_type`, and where it is written.
    pub(crate) schema_type: Option<syn::Type>,
    pub(crate) schema_type_span: SpanId,
}

pub(crate) fn parse_container(attrs: &[Attribute], is_root: bool, session: &mut Session) -> Markers {
    let _ = (attrs, is_root, session);
    Markers::default()
}

pub(crate) fn parse_field(
    attrs: &[Attribute],
    ty: &syn::Type,
    place: Place,
    session: &mut Session,
) -> FieldMarkers {
    let _ = (attrs, ty, place, session);
    FieldMarkers::default()
}

pub(crate) fn parse_variant(attrs: &[Attribute], session: &mut Session) -> Markers {
    let _ = (attrs, session);
    Markers::default()
}

/// Whether a type is written as an `Option`.
pub(crate) fn is_option(ty: &syn::Type) -> bool {
    argument_of(ty, "Option").is_some()
}

fn argument_of<'t>(ty: &'t syn::Type, name: &str) -> Option<&'t syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(args) = &last.arguments else {
        return None;
    };
    args.args.iter().find_map(|arg| match arg {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
