//! What all parts of a parse share: diagnostics, constants, and the types that the derive emits.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::Span;
use serde_json::Value;

use crate::{Allow, Diagnostic, Diagnostics, ModuleVersion, SchemaSource};

/// The state of a parse. The generator has one per file, and the derive one per item.
#[derive(Debug, Default)]
pub struct Session {
    /// All diagnostics so far.
    pub diagnostics: Diagnostics,
    /// The codes that `allow(…)` has named so far.
    pub allows: Vec<Allow>,
    /// The current item with its attributes. This is what an `allow(…)` on it applies to.
    pub scope: Span,
    /// Only kept for the derive, which emits them.
    slot_types: Option<Vec<SlotType>>,
    /// We failed to parse a marker of the last item.
    pub(crate) is_incomplete: bool,
    /// Which library generates the schema of the last item.
    pub(crate) schema_source: SchemaSource,
    /// Patterns that we know to be valid. Many fields share a pattern, so there's no need to parse
    /// it each time.
    good_patterns: BTreeSet<String>,
    /// The values of the program's constants, by path as written in attributes.
    constants: BTreeMap<String, Value>,
    /// Constants in attributes whose values we don't know.
    missing_constants: BTreeSet<String>,
    /// Which version stackable-versioned generates the items for.
    pub(crate) module_version: Option<ModuleVersion>,
}

/// The type of a slot the way the derive emits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotType {
    /// The tokens of the item that are in this span.
    Written(Span),
    /// A type that a marker names, or one that takes the place of the declared type.
    Text(String),
    /// The path of a function that returns the schema. There is also the span of the declared type,
    /// unless there's no such type.
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

    /// Creates a session that knows the values of constants. Their paths are those in the
    /// attributes of schemars and validators, and the value of a regular expression is its pattern.
    pub fn with_constants(constants: BTreeMap<String, Value>) -> Self {
        Session {
            constants,
            ..Session::default()
        }
    }

    /// Sets the version of all further items, in a module with stackable-versioned's
    /// `#[versioned]`. They are then read the way they are in that version, and
    /// `#[versioned(crd(…))]` on a struct counts as `#[kube(…)]`. Returns the version before.
    pub fn set_module_version(&mut self, version: Option<ModuleVersion>) -> Option<ModuleVersion> {
        std::mem::replace(&mut self.module_version, version)
    }

    /// Takes the constants that someone asked for although we don't know their values.
    pub fn take_missing_constants(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.missing_constants)
    }

    /// Returns the value of a constant. If we don't know it, we record that someone asked for it.
    pub(crate) fn constant(&mut self, path: &str) -> Option<Value> {
        let value = self.constants.get(path).cloned();
        if value.is_none() {
            self.missing_constants.insert(path.to_owned());
        }
        value
    }

    /// Returns true if it's the derive that is parsing the item. It can see the item's markers, but
    /// not its other derives.
    pub(crate) fn is_of_derive(&self) -> bool {
        self.slot_types.is_some()
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.schema_source == SchemaSource::CrdSchema
    }

    /// Takes the slot types of the last item, in the order of the slots. There are none unless the
    /// session keeps slot types.
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
