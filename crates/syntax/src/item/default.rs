//! Selects the serde defaults that become part of the schema, for both front ends.
//!
//! Types with schemars' derive use all serde defaults, as schemars does. `derive(CrdSchema)` has a
//! marker for defaults: a bare `#[serde(default)]` only makes a field optional, while a named
//! function provides a default, like the marker. `#[crd(serde_defaults)]` uses all defaults, and
//! `#[crd(serde_defaults = false)]` none.

use rbuilder_reader::grammar::{GenericKind, Generics};
use rbuilder_reader::{Attribute, TypeKind, TypeRef, has_derive};
use rbuilder_schema::Markers;

use super::{FieldRules, Reader};
use crate::serde_attrs::FieldAttrs;
use crate::{AbsentValue, DefaultSource, Session};

/// Which serde defaults become part of a type's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defaults {
    Serde,
    /// Only those returned by a named function.
    Functions,
    None,
}

impl Defaults {
    pub(super) fn choose(marker: Option<bool>, attrs: &[Attribute<'_>], session: &Session) -> Self {
        match marker {
            Some(true) => Defaults::Serde,
            Some(false) => Defaults::None,
            None if session.is_of_derive() || has_derive(attrs, "CrdSchema") => Defaults::Functions,
            None => Defaults::Serde,
        }
    }

    fn has(self, source: &DefaultSource, of_container: Option<&DefaultSource>) -> bool {
        let is_function = |source: &DefaultSource| matches!(source, DefaultSource::Function(_));
        match self {
            Defaults::Serde => true,
            Defaults::Functions => match source {
                DefaultSource::Container => of_container.is_some_and(is_function),
                source => is_function(source),
            },
            Defaults::None => false,
        }
    }
}

impl Reader<'_, '_> {
    /// Returns what serde uses for an absent field, or `None` if it shouldn't be part of the
    /// schema.
    pub(super) fn absent_value(
        &self,
        attrs: &FieldAttrs,
        rules: &FieldRules,
        ty: &TypeRef,
        markers: &Markers,
    ) -> Option<AbsentValue> {
        // A field that serde does not write has no JSON value. A field that serde does not read has
        // no default.
        if attrs.flatten || attrs.output_only || attrs.input_only.is_some() || markers.default.is_some() {
            return None;
        }
        let container = |written: &Option<DefaultSource>| written.as_ref().map(|_| DefaultSource::Container);
        let has_default = attrs.default.is_some() || rules.default.is_some();
        let shown = attrs.shown_default.clone();
        let shown = shown.or_else(|| container(&rules.shown_default).filter(|_| attrs.default.is_none()));
        let source = match shown {
            Some(source) => source,
            None => {
                let own = attrs.default.clone();
                let source = own.or_else(|| container(&rules.default))?;
                if !self.defaults.has(&source, rules.default.as_ref()) {
                    return None;
                }
                source
            }
        };
        // Values of type parameters may not be serializable.
        let is_generic = match source {
            DefaultSource::Container => !self.type_parameters.is_empty(),
            _ => mentions(ty, &self.type_parameters),
        };
        (!is_generic).then_some(AbsentValue {
            source,
            is_shown_only: !has_default,
        })
    }
}

pub(super) fn type_parameters(generics: &Generics<'_>) -> Vec<String> {
    let types = generics.list.iter();
    let types = types.filter(|parameter| parameter.kind == GenericKind::Type);
    types.map(|parameter| parameter.ident.text.to_owned()).collect()
}

/// Returns true if a type uses one of these type parameters, so that its values may not be
/// serializable.
fn mentions(ty: &TypeRef, names: &[String]) -> bool {
    if names.is_empty() {
        return false;
    }
    match &ty.kind {
        TypeKind::Path(segments, args) => {
            let first = segments.first();
            first.is_some_and(|first| names.contains(first)) || args.iter().any(|arg| mentions(arg, names))
        }
        TypeKind::Array(item, _) => mentions(item, names),
        TypeKind::Tuple(items) => items.iter().any(|item| mentions(item, names)),
        TypeKind::Other(_) => true,
    }
}
