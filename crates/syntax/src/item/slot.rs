//! Slots: each stands for the schema of a type that a container refers to.

use std::borrow::Cow;

use rbuilder_reader::{Span, TypeKind, TypeRef};
use rbuilder_schema::{ESCAPE, RECURSION, refused, refused_tuple};

use super::Reader;
use crate::marker;
use crate::serde_attrs::FieldAttrs;
use crate::session::SlotType;
use crate::{Diagnostic, SchemaFunction, Session};

impl Reader<'_, '_> {
    /// Adds the slot of a type that replaces this one, due to `from`, `try_from` or `into`.
    pub(super) fn stand_in(&mut self, text: &str, at: Span) -> Option<usize> {
        match TypeRef::parse(text, at) {
            Some(slot) => Some(self.add_slot(slot, || SlotType::Text(text.to_owned()))),
            None => {
                self.session.error(at, format!("expected a type, found `{text}`"));
                None
            }
        }
    }

    /// Adds the slot of a field, whose type may be overridden by a marker.
    pub(super) fn slot(&mut self, ty: TypeRef, attrs: &FieldAttrs, read: &marker::FieldMarkers) -> usize {
        if let Some((slot, text)) = &read.schema_type {
            return self.add_slot(slot.clone(), || SlotType::Text(text.clone()));
        }
        if read.markers.schemaless || read.markers.schema.is_some() {
            return self.schemaless(&ty);
        }
        if let Some(function) = &read.schema_function {
            let span = ty.span;
            return self.add_function(ty, Some(span), function.clone());
        }
        if let Some(opaque) = attrs.opaque {
            if self.session.is_ours() || opaque.is_module {
                self.session.error_help(
                    opaque.span,
                    "cannot determine the JSON that this function serializes",
                    ESCAPE,
                );
                return self.schemaless(&ty);
            }
            // schemars ignores these functions, and so does the CRD that the program prints.
            let message = if opaque.writes {
                "a function serializes this field; its schema describes its type, as that of schemars does"
            } else {
                "a function deserializes this field; its schema describes its type, which is what is serialized"
            };
            self.session
                .report(Diagnostic::warning(opaque.span, message).help(ESCAPE));
        }
        let span = ty.span;
        self.add_slot(ty, || SlotType::Written(span))
    }

    fn schemaless(&mut self, ty: &TypeRef) -> usize {
        // A type without a schema still needs a slot, so use `String`, or an `Option` of it if the
        // type is one.
        let stand_in = if marker::is_option(ty) {
            "::core::option::Option<::std::string::String>"
        } else {
            "::std::string::String"
        };
        let slot = TypeRef::parse(stand_in, ty.span).unwrap_or_else(|| ty.clone());
        self.add_slot(slot, || SlotType::Text(stand_in.to_owned()))
    }

    pub(super) fn add_function(
        &mut self,
        ty: TypeRef,
        written: Option<Span>,
        function: SchemaFunction,
    ) -> usize {
        let slot = self.add_unchecked(ty, || SlotType::Function(function.path.clone(), written));
        self.schema_functions.insert(slot, function);
        slot
    }

    pub(super) fn add_slot(&mut self, slot: TypeRef, ty: impl FnOnce() -> SlotType) -> usize {
        // With another derive, check the type only if a kind needs it.
        if self.session.is_ours() {
            self.check_type(&slot);
        }
        self.add_unchecked(slot, ty)
    }

    /// Reports types that never have a schema. Named types are checked once they are resolved.
    fn check_type(&mut self, ty: &TypeRef) {
        report_refused(ty, self.session);
        if holds(ty, self.ident) {
            let message = format!("the type contains itself: {0} → {0}", self.ident);
            self.session.error_help(ty.span, message, RECURSION);
        }
    }

    fn add_unchecked(&mut self, slot: TypeRef, ty: impl FnOnce() -> SlotType) -> usize {
        self.session.keep_slot_type(ty);
        self.slots.push(slot);
        self.slots.len() - 1
    }
}

fn report_refused(ty: &TypeRef, session: &mut Session) {
    match &ty.kind {
        TypeKind::Array(item, _) => report_refused(item, session),
        TypeKind::Tuple(items) => {
            let (message, help) = refused_tuple(items.is_empty());
            session.error_help(ty.span, message, help);
        }
        TypeKind::Path(segments, args) => {
            if let Some((message, help)) = std_path(segments).and_then(|path| refused(&path)) {
                session.error_help(ty.span, message, help);
            }
            args.iter().for_each(|arg| report_refused(arg, session));
        }
        TypeKind::Other(_) => {}
    }
}

/// Returns the path of a fully qualified type in std. A single segment counts too: it may be a
/// primitive type.
fn std_path(segments: &[String]) -> Option<Cow<'_, str>> {
    let leads_with_colons = segments.first().is_some_and(String::is_empty);
    let (first, rest) = segments[usize::from(leads_with_colons)..].split_first()?;
    match (first.as_str(), rest) {
        ("std" | "core" | "alloc", [_, ..]) => Some(format!("std::{}", rest.join("::")).into()),
        (primitive, []) => Some(primitive.into()),
        _ => None,
    }
}

/// Returns true if the type contains the item `ident`. Only std's containers are searched.
fn holds(ty: &TypeRef, ident: &str) -> bool {
    let (segments, args) = match &ty.kind {
        TypeKind::Array(item, _) => return holds(item, ident),
        TypeKind::Path(segments, args) => (segments, args),
        TypeKind::Tuple(_) | TypeKind::Other(_) => return false,
    };
    if let [only] = segments.as_slice()
        && (only == ident || only == "Self")
    {
        return true;
    }
    let held = match segments.last().map_or("", String::as_str) {
        "Option" | "Box" | "Arc" | "Rc" | "Vec" | "VecDeque" | "HashSet" | "BTreeSet" => args.first(),
        "HashMap" | "BTreeMap" => args.get(1),
        _ => None,
    };
    held.is_some_and(|held| holds(held, ident))
}
