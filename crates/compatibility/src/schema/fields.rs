//! Fields, maps and pruning.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_schema::Schema;
use serde_json::json;

use super::alone::{Alone, with_keys};
use super::{Comparison, Probe};
use crate::path::{Path, Step};
use crate::witness::{Candidate, edges};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A field name that no schema declares.
const UNKNOWN: &str = "unknownField";

impl Comparison {
    pub(super) fn compare_required(&mut self, old: &Schema, new: &Schema, path: &Path) {
        for name in new.required.difference(&old.required) {
            let field = path.field(name);
            let is_filled = new.properties.get(name).is_some_and(|property| {
                property
                    .default
                    .as_ref()
                    .is_some_and(|default| !default.is_null())
            });
            // The API server also defaults stored objects when reading them.
            if is_filled {
                let message = "required, with a default".to_owned();
                self.add("required-with-default", &field, message, Probe::Nothing);
                continue;
            }
            let probe = Probe::Values {
                path: field.clone(),
                candidates: vec![Candidate::Absent],
                reads: false,
                alone: Alone::at(path, with_required(old, new, name)),
            };
            self.add("required-added", &field, "required".to_owned(), probe);
        }
        for name in old.required.difference(&new.required) {
            if member(new, name).is_some() {
                self.add(
                    "required-removed",
                    &path.field(name),
                    "optional".to_owned(),
                    Probe::Nothing,
                );
            }
        }
    }

    pub(super) fn compare_fields(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let names: BTreeSet<&Arc<str>> = old.properties.keys().chain(new.properties.keys()).collect();
        for name in names {
            // Every object has these fields, regardless of the schema.
            if path.0.is_empty() && matches!(&**name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let field = path.field(name);
            match (member(old, name), member(new, name)) {
                (Some(before), Some(after)) => {
                    self.drops_null = new.properties.contains_key(name) && !new.required.contains(name);
                    self.compare(&before, &after, &field);
                    self.drops_null = false;
                }
                (Some(before), None) => {
                    let probe = Probe::Values {
                        path: field.clone(),
                        candidates: edges(&before, &Schema::default()),
                        reads: true,
                        alone: Alone::at(path, without_field(old, new, name)),
                    };
                    self.add("field-removed", &field, "removed".to_owned(), probe);
                }
                (None, Some(_)) => self.add("field-added", &field, "new".to_owned(), Probe::Nothing),
                (None, None) => {}
            }
        }
        self.compare_maps(old, new, path);
        self.compare_embedded(old, new, path);
    }

    fn compare_maps(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let values = path.then(Step::Values);
        match (&old.additional_properties, &new.additional_properties) {
            (Some(before), Some(after)) => self.compare(before, after, &values),
            (Some(before), None) if new.preserve_unknown_fields => self.compare(before, &any(), &values),
            (Some(before), None) => {
                let message = "other keys are pruned".to_owned();
                let probe = Probe::Values {
                    path: values.clone(),
                    candidates: edges(before, &Schema::default()),
                    reads: true,
                    alone: Alone::at(path, with_keys(old, new, &["additionalProperties"])),
                };
                self.add("map-closed", &values, message, probe);
            }
            (None, Some(after)) if old.preserve_unknown_fields => self.compare(&any(), after, &values),
            (None, Some(_)) => self.add(
                "map-opened",
                &values,
                "other keys are kept".to_owned(),
                Probe::Nothing,
            ),
            (None, None) => match (keeps_unknown(old), keeps_unknown(new)) {
                (true, false) => {
                    let probe = Probe::Values {
                        path: path.field(UNKNOWN),
                        candidates: vec![Candidate::Value(json!(1)), Candidate::Value(json!("a"))],
                        reads: true,
                        alone: Alone::at(path, with_keys(old, new, &[PRESERVE])),
                    };
                    let message = "unknown fields are pruned".to_owned();
                    self.add("preserve-unknown-fields-removed", path, message, probe);
                }
                (false, true) => {
                    let message = "unknown fields are kept".to_owned();
                    self.add("preserve-unknown-fields-added", path, message, Probe::Nothing);
                }
                _ => {}
            },
        }
    }

    fn compare_embedded(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let alone = || with_keys(old, new, &["x-kubernetes-embedded-resource"]);
        match (old.embedded_resource, new.embedded_resource) {
            (false, true) => {
                let message = "a whole object, with `apiVersion` and `kind`".to_owned();
                self.add_searched("embedded-resource-added", path, message, (old, alone()), true);
            }
            (true, false) => {
                let message = "no object with metadata of its own".to_owned();
                self.add_searched("embedded-resource-removed", path, message, (old, alone()), true);
            }
            _ => {}
        }
    }
}

fn with_required(old: &Schema, new: &Schema, name: &Arc<str>) -> Schema {
    let mut node = old.clone();
    node.required.insert(Arc::clone(name));
    // The field may be new as well.
    if member(old, name).is_none()
        && let Some(field) = new.properties.get(name)
    {
        node.properties.insert(Arc::clone(name), Arc::clone(field));
    }
    node
}

/// Removes a field, which would remain if the old schema kept what it doesn't declare.
fn without_field(old: &Schema, new: &Schema, name: &str) -> Schema {
    let mut node = with_keys(old, new, &[PRESERVE, "additionalProperties"]);
    node.properties.remove(name);
    node.required.remove(name);
    node
}

/// Returns the schema of a field, which may be `additionalProperties`.
fn member<'s>(schema: &'s Schema, name: &str) -> Option<Cow<'s, Schema>> {
    let known = schema
        .properties
        .get(name)
        .or(schema.additional_properties.as_ref());
    match known {
        Some(known) => Some(Cow::Borrowed(known)),
        None => keeps_unknown(schema).then(|| Cow::Owned(any())),
    }
}

/// Only meaningful for values with fields.
fn keeps_unknown(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
}

/// A schema that preserves values of any type.
fn any() -> Schema {
    Schema {
        preserve_unknown_fields: true,
        ..Schema::default()
    }
}
