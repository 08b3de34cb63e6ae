//! Slots: the types that a container mentions, each where its schema will be put.

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::ESCAPE;

use super::Reader;
use crate::SchemaFunction;
use crate::marker;
use crate::serde_attrs::FieldAttrs;
use crate::session::SlotType;

impl Reader<'_, '_> {
    /// The slot of `from`, `try_from` or `into`.
    pub(super) fn stand_in(&mut self, text: &str, at: Span) -> Option<usize> {
        match TypeRef::parse(text, at) {
            Some(slot) => Some(self.add_slot(slot, || SlotType::Text(text.to_owned()))),
            None => {
                self.session.error(at, format!("expected a type, found `{text}`"));
                None
            }
        }
    }

    /// The slot of a field, after the markers that replace its type.
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
        if let Some(at) = attrs.opaque {
            self.session.error_help(
                at,
                "cannot determine the JSON that this function serializes",
                ESCAPE,
            );
            return self.schemaless(&ty);
        }
        let span = ty.span;
        self.add_slot(ty, || SlotType::Written(span))
    }

    /// A slot for a type that must not be looked at, so that the type need not have a schema: text stands in
    /// for it, and only whether it is an `Option` is kept.
    fn schemaless(&mut self, ty: &TypeRef) -> usize {
        let stand_in = if marker::is_option(ty) {
            "::core::option::Option<::std::string::String>"
        } else {
            "::std::string::String"
        };
        let slot = TypeRef::parse(stand_in, ty.span).unwrap_or_else(|| ty.clone());
        self.add_slot(slot, || SlotType::Text(stand_in.to_owned()))
    }

    /// A slot of a type whose schema a function returns.
    pub(super) fn add_function(
        &mut self,
        ty: TypeRef,
        written: Option<Span>,
        function: SchemaFunction,
    ) -> usize {
        let slot = self.add_slot(ty, || SlotType::Function(function.path.clone(), written));
        self.schema_functions.insert(slot, function);
        slot
    }

    pub(super) fn add_slot(&mut self, slot: TypeRef, ty: impl FnOnce() -> SlotType) -> usize {
        self.session.keep_slot_type(ty);
        self.slots.push(slot);
        self.slots.len() - 1
    }
}
