//! Macro calls between items, and where the items in them are.

use std::ops::Range;

use rbuilder_reader::Span;
use rbuilder_syntax::{Allow, Diagnostic};

use super::path::Location;
use crate::package::{ModuleId, TypeItem};

/// A macro call between the items of a module.
pub(super) struct MacroCall {
    pub(super) span: Span,
    pub(super) module: ModuleId,
    /// Where the files of `mod name;` in the call are.
    pub(super) location: Location,
}

impl MacroCall {
    pub(super) fn new(span: Span, module: ModuleId, location: &Location) -> Self {
        MacroCall {
            span,
            module,
            location: location.clone(),
        }
    }
}

/// The location of an item in a macro call. Tokens that the macro adds are reported at the call.
#[derive(Clone, Debug)]
pub(super) struct Wrapped {
    pub(super) call: Span,
    pub(super) item: Range<usize>,
}

impl Wrapped {
    pub(super) fn place(&self, span: Span) -> Span {
        match self.item.contains(&(span.start as usize)) {
            true => span,
            false => self.call,
        }
    }

    pub(super) fn place_allow(&self, allow: &mut Allow) {
        // The text before the item isn't the user's.
        allow.span = self.place(allow.span);
        let start = u32::try_from(self.item.start).unwrap_or(u32::MAX);
        allow.scope.start = allow.scope.start.max(start);
    }

    /// Redirects diagnostics about code added by the macro to the macro call.
    pub(super) fn place_within(&self, item: &mut TypeItem) {
        let reserved: Vec<Diagnostic> = std::mem::take(&mut item.reserved);
        let placed = reserved
            .into_iter()
            .map(|said| said.map_place(|span| self.place(span)));
        item.reserved = placed.collect();
        let Some(model) = &mut item.model else { return };
        for marker in &mut model.marker_spans {
            marker.span = self.place(marker.span);
        }
        if let Some(resource) = &mut model.custom_resource {
            resource.kind_span = self.place(resource.kind_span);
            resource.schema_span = self.place(resource.schema_span);
        }
    }
}
