//! The status that stackable-versioned generates for kinds that track conversions.
//!
//! With `experimental_conversion_tracking`, the status of a kind also stores the values that a
//! conversion would lose. The macro declares a struct for it next to the version modules, with
//! these values and the fields of the original status.

use rbuilder_syntax::TrackedStatus;

use super::file::FileReader;
use crate::package::{Glob, ModuleId, Name, TypeId, TypeItem};

/// What the struct needs. stackable-versioned's documentation ends up in the CRD, so it's part of
/// this.
const CHANGES: &str = r#"
/// Contains changed values during upgrades and downgrades of CRDs.
#[derive(::serde::Deserialize, ::serde::Serialize, ::schemars::JsonSchema, Default)]
pub struct ChangedValues {
    /// List of values needed when downgrading to a particular version.
    pub downgrades: ::std::collections::BTreeMap<String, Vec<ChangedValue>>,
    /// List of values needed when upgrading to a particular version.
    pub upgrades: ::std::collections::BTreeMap<String, Vec<ChangedValue>>,
}
/// Contains a changed value for a single field of the CRD.
#[derive(::serde::Deserialize, ::serde::Serialize, ::schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedValue {
    /// The name of the field of the custom resource this value is for.
    pub json_path: String,
    /// The value to be used when upgrading or downgrading the custom resource.
    pub value: AnyObject,
}
#[derive(::serde::Deserialize, ::serde::Serialize, ::schemars::JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AnyObject {}
"#;

/// The slot of `status` in the generated struct, after `changed_values`.
const ORIGINAL: usize = 1;

impl FileReader<'_, '_> {
    /// Generates a status, in the module `around` the versions, for each kind among the types from
    /// `first` on.
    pub(super) fn add_tracked_statuses(&mut self, first: usize, around: ModuleId) {
        let types = &self.collector.package.types[first..];
        let kinds = types.iter().filter_map(TypeItem::resource);
        let statuses: Vec<TrackedStatus> = kinds
            .filter_map(|resource| resource.tracked_status.clone())
            .collect();
        for status in statuses {
            let is_known = self.collector.package.modules[around.0]
                .names
                .contains_key(&status.name);
            // All versions of a kind have the same status, so add it only once.
            if !is_known {
                self.add_tracked_status(&status, around);
            }
        }
    }

    fn add_tracked_status(&mut self, status: &TrackedStatus, around: ModuleId) {
        let package = self.collector.package.module(around).package;
        // The macro does not give names to the helper types in the user's module, so hide them in a
        // module of their own.
        let inner = self.collector.add_module(package, Some(around));
        self.collector.package.modules[inner.0].globs.push(Glob {
            path: vec!["super".to_owned()],
            undecided: None,
        });
        let original = match status.original {
            Some(_) => "#[serde(flatten)]\npub status: AnyObject,",
            None => "",
        };
        let text = format!(
            "{CHANGES}#[derive(::serde::Deserialize, ::serde::Serialize, ::schemars::JsonSchema, Default)]\n\
             #[serde(rename_all = \"camelCase\")]\n\
             pub struct {} {{ pub changed_values: ChangedValues, {original} }}\n",
            status.name
        );
        let id = TypeId(self.collector.package.types.len() + TYPES_BEFORE);
        if !self.read_written_items(&text, inner) {
            return;
        }
        let Some(item) = self.collector.package.types.get_mut(id.0) else {
            return;
        };
        if let (Some(model), Some(original)) = (&mut item.model, &status.original) {
            model.span = status.span;
            model.sites.fill(status.span);
            if let Some(slot) = model.slots.get_mut(ORIGINAL) {
                *slot = original.clone();
            }
        }
        self.collector.package.modules[around.0]
            .names
            .insert(status.name.clone(), Name::Type(id));
    }
}

/// How many types [`CHANGES`] declares.
const TYPES_BEFORE: usize = 3;
