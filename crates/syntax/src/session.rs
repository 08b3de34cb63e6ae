//! State shared by all parts of a parse: diagnostics, constants, and the types emitted by the
//! derive.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::Span;
use serde_json::Value;

use crate::{Allow, Diagnostic, Diagnostics, ModuleVersion, SchemaSource};

/// The state of a parse: one per file in the generator, one per item in the derive.
#[derive(Debug, Default)]
pub struct Session {
    /// All diagnostics so far.
    pub diagnostics: Diagnostics,
    /// The codes named in `allow(…)` so far.
    pub allows: Vec<Allow>,
    /// The current item with its attributes, i.e. the scope of an `allow(…)` on it.
    pub scope: Span,
    /// Only kept for the derive, which emits them.
    slot_types: Option<Vec<SlotType>>,
    /// A marker of the last item failed to parse.
    pub(crate) is_incomplete: bool,
    /// The library that generates the schema of the last item.
    pub(crate) schema_source: SchemaSource,
    /// Patterns known to be valid. Many fields share a pattern, which needn't be parsed each time.
    good_patterns: BTreeSet<String>,
    /// The values of the program's constants, by path as written in attributes.
    constants: BTreeMap<String, Value>,
    /// Constants in attributes whose values aren't known.
    missing_constants: BTreeSet<String>,
    /// The version for which stackable-versioned generates the items.
    pub(crate) module_version: Option<ModuleVersion>,
}

/// The type of a slot as emitted by the derive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotType {
    /// The tokens of the item within this span.
    Written(Span),
    /// A type named in a marker, or one that replaces the declared type.
    Text(String),
    /// The path of a function that returns the schema, and the span of the declared type, if there
    /// is one.
    Function(String, Option<Span>),
}

impl Session {
    /// Creates a session that keeps slot types.
    pub fn keeping_slot_types() -> Self {
        Session {
            slot_types: Some(Vec::new()),
            ..Session::default()
        }
    }

    /// Creates a session with the values of constants, keyed by their paths in the attributes of
    /// schemars and validators. The value of a regular expression is its pattern.
    pub fn with_constants(constants: BTreeMap<String, Value>) -> Self {
        Session {
            constants,
            ..Session::default()
        }
    }

    /// Sets the version of all further items in a module with stackable-versioned's `#[versioned]`.
    /// Items are then read as of that version, and `#[versioned(crd(…))]` on a struct counts as
    /// `#[kube(…)]`. Returns the previous version.
    pub fn set_module_version(&mut self, version: Option<ModuleVersion>) -> Option<ModuleVersion> {
        std::mem::replace(&mut self.module_version, version)
    }

    /// Takes the constants that were requested but have no known value.
    pub fn take_missing_constants(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.missing_constants)
    }

    /// Returns the value of a constant, or records the request if the value is unknown.
    pub(crate) fn constant(&mut self, path: &str) -> Option<Value> {
        let value = self.constants.get(path).cloned();
        if value.is_none() {
            self.missing_constants.insert(path.to_owned());
        }
        value
    }

    /// Returns true if the derive is parsing the item. It can see the item's markers, but not its
    /// other derives.
    pub(crate) fn is_of_derive(&self) -> bool {
        self.slot_types.is_some()
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.schema_source == SchemaSource::CrdSchema
    }

    /// Takes the slot types of the last item, in the order of the slots. Empty unless the session
    /// keeps slot types.
    pub fn take_slot_types(&mut self) -> Vec<SlotType> {
        self.slot_types.as_mut().map(std::mem::take).unwrap_or_default()
    }

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

    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    pub(crate) fn error_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Diagnostic::error(span, message).help(help));
    }
}
