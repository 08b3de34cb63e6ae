//! What one parse collects beside its result: places and complaints.

use quote::ToTokens;

use crate::{Diagnostic, Diagnostics, SpanId, Spans};

/// The state of one parse. The generator uses one for each file, the derive one for each item.
#[derive(Default)]
pub struct Session {
    /// Every place named so far.
    pub spans: Spans,
    /// Every complaint made so far.
    pub diagnostics: Diagnostics,
    /// The `syn` types of the slots of the last item parsed, where they are kept: what the derive writes
    /// back into the program.
    slot_types: Option<Vec<syn::Type>>,
}

impl Session {
    /// A session that keeps the slots' `syn` types.
    pub fn keeping_slot_types() -> Self {
        Session {
            slot_types: Some(Vec::new()),
            ..Session::default()
        }
    }

    /// The slots' types of the last item parsed, in slot order; empty unless they are kept.
    pub fn take_slot_types(&mut self) -> Vec<syn::Type> {
        self.slot_types.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Forgets the previous item's slot types.
    pub(crate) fn start_item(&mut self) {
        if let Some(types) = &mut self.slot_types {
            types.clear();
        }
    }

    pub(crate) fn keep_slot_type(&mut self, ty: &syn::Type) {
        if let Some(types) = &mut self.slot_types {
            types.push(ty.clone());
        }
    }

    /// Names the place that `tokens` cover.
    pub(crate) fn place(&mut self, tokens: impl ToTokens) -> SpanId {
        self.spans.add(tokens)
    }

    /// Adds a complaint.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds an error about a place.
    pub(crate) fn error(&mut self, span: SpanId, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    /// Adds an error about a place and says what to write instead.
    pub(crate) fn error_help(&mut self, span: SpanId, message: impl Into<String>, help: impl Into<String>) {
        self.report(Diagnostic::error(span, message).help(help));
    }

    /// Adds the errors of `syn`, which holds one or more.
    pub(crate) fn syn_error(&mut self, error: &syn::Error) {
        for error in error {
            let span = self.spans.add_span(error.span());
            self.error(span, error.to_string());
        }
    }
}
