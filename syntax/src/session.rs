//! The state of one parse beside its result: diagnostics, and the types that the derive needs back.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::Span;
use serde_json::Value;

use crate::{Diagnostic, Diagnostics, SchemaSource};

/// The state of one parse. The generator uses one for each file, the derive one for each item.
#[derive(Debug, Default)]
pub struct Session {
    /// Every diagnostic so far.
    pub diagnostics: Diagnostics,
    /// The types of the slots of the last item parsed, where they are kept: what the derive writes back into the
    /// program.
    slot_types: Option<Vec<SlotType>>,
    /// True if a marker of the last item parsed could not be read.
    pub(crate) is_incomplete: bool,
    /// The library that makes the schema of the last item parsed.
    pub(crate) schema_source: SchemaSource,
    /// Regular expressions that were found good: many fields share one.
    good_patterns: BTreeSet<String>,
    /// Values of the program's constants, by path as written in attributes.
    constants: BTreeMap<String, Value>,
    /// The constants that attributes name, of which there is no value.
    missing_constants: BTreeSet<String>,
}

/// The type of a slot, for the derive to write into its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotType {
    /// The tokens in this place of the item.
    Written(Span),
    /// This text, which stands in a marker or stands in for the type.
    Text(String),
    /// The result of the function of this path is the schema; the type, where there is one, is in this place.
    Function(String, Option<Span>),
}

impl Session {
    /// A session that keeps the types of the slots.
    pub fn keeping_slot_types() -> Self {
        Session {
            slot_types: Some(Vec::new()),
            ..Session::default()
        }
    }

    /// A session that knows the values of constants, by path as written in attributes of schemars and validators; of a
    /// regular expression, the value is its pattern.
    pub fn with_constants(constants: BTreeMap<String, Value>) -> Self {
        Session {
            constants,
            ..Session::default()
        }
    }

    /// Returns the constants that were needed and not known, and forgets them.
    pub fn take_missing_constants(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.missing_constants)
    }

    /// The value of a constant; one that is not known is noted.
    pub(crate) fn constant(&mut self, path: &str) -> Option<Value> {
        let value = self.constants.get(path).cloned();
        if value.is_none() {
            self.missing_constants.insert(path.to_owned());
        }
        value
    }

    /// Returns true if the item comes from the derive, which sees the markers of the item and not its derives.
    pub(crate) fn is_of_derive(&self) -> bool {
        self.slot_types.is_some()
    }

    /// Returns true if our derive makes the schema of the item.
    pub(crate) fn is_ours(&self) -> bool {
        self.schema_source == SchemaSource::CrdSchema
    }

    /// The slots' types of the last item parsed, in slot order; empty unless they are kept.
    pub fn take_slot_types(&mut self) -> Vec<SlotType> {
        self.slot_types.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Forgets the previous item.
    pub(crate) fn start_item(&mut self, schema_source: SchemaSource) {
        self.schema_source = schema_source;
        self.is_incomplete = false;
        if let Some(types) = &mut self.slot_types {
            types.clear();
        }
    }

    pub(crate) fn keep_slot_type(&mut self, ty: impl FnOnce() -> SlotType) {
        if let Some(types) = &mut self.slot_types {
            types.push(ty());
        }
    }

    /// Returns true if this regular expression was found good before.
    pub(crate) fn is_good_pattern(&self, pattern: &str) -> bool {
        self.good_patterns.contains(pattern)
    }

    pub(crate) fn keep_good_pattern(&mut self, pattern: &str) {
        self.good_patterns.insert(pattern.to_owned());
    }

    /// Adds a diagnostic.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds an error about a place.
    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    /// Adds an error about a place and says what to write instead.
    pub(crate) fn error_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Diagnostic::error(span, message).help(help));
    }
}
