//! The state of a struct or enum in one version of its module.

use rbuilder_reader::grammar::{Body, FieldItem, Fields, TypeItem, VariantItem};
use rbuilder_reader::token::Ident;
use rbuilder_reader::{Attribute, TypeRef};

use super::actions::{Actions, Past};
use super::module::ModuleVersion;
use crate::Session;

/// Converts an item to what the macro generates for a version.
pub(crate) fn at_version(item: &mut TypeItem<'_>, version: &ModuleVersion, session: &mut Session) {
    match &mut item.body {
        Body::Struct(Fields::Named(fields)) => {
            fields.retain_mut(|field| keep_field(field, version, session));
        }
        Body::Enum(variants) => variants.retain_mut(|variant| keep_variant(variant, version, session)),
        // Rejected by the macro.
        Body::Struct(Fields::Unnamed(_) | Fields::Unit) | Body::Union => {}
    }
}

fn keep_field(field: &mut FieldItem<'_>, version: &ModuleVersion, session: &mut Session) -> bool {
    let Some(ident) = &mut field.ident else {
        return true;
    };
    let Some(kept) = change(&mut field.attrs, ident, "deprecated_", version, session) else {
        return false;
    };
    if let Some(ty) = kept.ty {
        field.ty = ty;
    }
    true
}

fn keep_variant(variant: &mut VariantItem<'_>, version: &ModuleVersion, session: &mut Session) -> bool {
    change(
        &mut variant.attrs,
        &mut variant.ident,
        "Deprecated",
        version,
        session,
    )
    .is_some()
}

#[derive(Default)]
struct Kept {
    ty: Option<TypeRef>,
}

/// Changes the name and the attributes. Returns `None` if the field or variant doesn't exist in
/// this version.
fn change<'a>(
    attrs: &mut Vec<Attribute<'a>>,
    ident: &mut Ident<'a>,
    prefix: &str,
    version: &ModuleVersion,
    session: &mut Session,
) -> Option<Kept> {
    let actions = match Actions::read(attrs, (ident.text, ident.span), prefix, version) {
        Ok(Some(actions)) => actions,
        Ok(None) => return Some(Kept::default()),
        Err(error) => {
            session.report(error);
            return Some(Kept::default());
        }
    };
    let Past { name, ty, deprecated } = actions.at(version, ident.text, prefix)?;
    ident.text = name;
    attrs.extend(deprecated);
    Some(Kept { ty })
}
