//! Server-side apply: merges an applied configuration into the live object field by field, and
//! updates the field managers.
//!
//! # Example
//!
//! A Deployment has two managers: the operator `op` applied `replicas` and a label, then
//! `kubectl scale` updated `replicas`. A manager owns the fields that it was the last to change.
//! Fields that several managers apply with the same value are co-owned.
//!
//! ```text
//! live     labels: {app: web}          replicas: 5
//! op       Apply   f:labels{f:app}
//! kubectl  Update                      f:replicas
//! ```
//!
//! Now `op` applies `labels: {tier: front}, replicas: 3`:
//!
//! 1. The applied fields are `{f:labels{f:tier}, f:replicas}`.
//! 2. Merge: add `tier` and set `replicas` to 3. Keep `app` for now.
//! 3. Prune: `op` applied `app` *before* and no manager owns it *now*, so it is removed. Fields
//!    that `op` never applied are not removed, even if no manager owns them. That is why this step
//!    uses the earlier set of fields instead of the live object.
//! 4. Conflicts: intersect the fields whose *value* changes (`tier`, `replicas`) with the set of
//!    each other manager. This leaves `kubectl`'s `replicas`. Without `force`, the server returns
//!    409 and changes nothing. If `op` had applied `replicas: 5`, the value would not change and
//!    both managers would own the field.
//! 5. With `force`, `kubectl` loses `f:replicas`, and its empty entry is removed. `op` owns the set
//!    from step 1:
//!
//! ```text
//! live     labels: {tier: front}       replicas: 3
//! op       Apply   f:labels{f:tier}    f:replicas
//! ```
//!
//! Comparing whole objects instead of sets would report a conflict for every live field that's
//! missing from the applied configuration.

use std::rc::Rc;

use rbuilder_schema::Schema;
use serde_json::Value;

use super::changes::Changes;
use super::failure::Failure;
use super::fields::{Difference, Fields, Form, field_schema, form_of, item_schema, item_step};
use super::kinds::Version;
use super::managers::{Manager, manageable_part};
use super::prune::Pruning;
use super::versions::Versions;

pub(super) struct Apply<'a> {
    /// The stored object, or `null` if it doesn't exist.
    pub(super) live: &'a Value,
    pub(super) wanted: Value,
    /// The applying manager. Its fields are only known after the merge in `run`.
    pub(super) applier: Manager,
    pub(super) force: bool,
    pub(super) versions: Versions<'a>,
    /// Version of `live` and `wanted`.
    pub(super) version: &'a Version,
}

impl Apply<'_> {
    /// Returns the merged object and its managers.
    ///
    /// # Errors
    ///
    /// Returns a conflict if other managers own fields that would change, unless `force` is set.
    pub(super) fn run(self, mut managers: Vec<Manager>) -> Result<(Value, Vec<Manager>), Failure> {
        let schema = Some(self.version.schema());
        let mut applier = self.applier;
        let mut wanted = self.wanted;
        drop_nulls(&mut wanted);
        let part = |object: &Value| manageable_part(object, &applier.subresource, self.version.status);
        // Same as kube-apiserver for objects created without field management: their fields get an
        // owner that a first apply can conflict with.
        if managers.is_empty() && !self.live.is_null() {
            managers.push(Manager {
                name: "before-first-apply".to_owned(),
                applies: false,
                fields: applied(&part(self.live), schema),
                ..applier.clone()
            });
        }
        let fields = applied(&part(&wanted), schema);
        let own = managers.iter().position(|manager| manager.is(&applier));
        let earlier = own.map(|position| managers.remove(position));
        // Applying to the status subresource must not affect anything else, and applying to the
        // object must not affect the status, so merge only the part that belongs to this endpoint.
        let mut result = merge(self.live, &restrict(&wanted, &part(&wanted)), schema);
        if let Some(earlier) = &earlier {
            let new_entry = Manager {
                fields: fields.clone(),
                ..applier.clone()
            };
            let pruning = Pruning {
                versions: self.versions,
                version: self.version,
                subresource: &applier.subresource,
            };
            result = pruning.prune(result, earlier, managers.iter().chain([&new_entry]))?;
        }
        let subresource = applier.subresource.clone();
        let before = if self.live.is_null() { &result } else { self.live };
        let mut changes = Changes::new(self.versions, self.version, before, &result, &subresource);
        let (mut managers, differences) = compare_for_managers(managers, &mut changes)?;
        let is_changed = !changes.own().changed.is_empty();
        let conflicts: Vec<(String, Vec<String>)> = managers
            .iter()
            .zip(&differences)
            .map(|(manager, difference)| {
                let common = manager.fields.common(&difference.changed);
                (manager.describe(), common.paths())
            })
            .filter(|(_, paths)| !paths.is_empty())
            .collect();
        if !conflicts.is_empty() && !self.force {
            return Err(Failure::apply_conflict(&conflicts));
        }
        for (manager, difference) in managers.iter_mut().zip(&differences) {
            let left = manager.fields.minus(&difference.changed);
            manager.fields = left.minus(&difference.removed);
        }
        // A no-op apply keeps its timestamp.
        if let Some(earlier) = earlier.filter(|earlier| earlier.fields == fields && !is_changed) {
            applier.time = earlier.time;
        }
        applier.fields = fields;
        managers.push(applier);
        Ok((result, managers))
    }
}

fn compare_for_managers(
    managers: Vec<Manager>,
    changes: &mut Changes<'_>,
) -> Result<(Vec<Manager>, Vec<Rc<Difference>>), Failure> {
    let mut compared = (Vec::new(), Vec::new());
    for manager in managers {
        // `None`: the kind no longer has this version, so drop the entry.
        if let Some(difference) = changes.in_version(&manager.api_version)? {
            compared.0.push(manager);
            compared.1.push(difference);
        }
    }
    Ok(compared)
}

pub(super) fn applied(part: &Value, schema: Option<&Schema>) -> Fields {
    let mut part = part.clone();
    // Drop empty `metadata`, which would otherwise count as an owned field.
    if let Some(fields) = part.as_object_mut() {
        fields.retain(|name, value| {
            name != "metadata" || value.as_object().is_none_or(|inner| !inner.is_empty())
        });
    }
    Fields::applied(&part, schema)
}

fn restrict(object: &Value, part: &Value) -> Value {
    let mut restricted = part.clone();
    // Not owned by any manager, but the merge needs them to identify the object.
    for name in ["apiVersion", "kind"] {
        restricted[name] = object[name].clone();
    }
    for name in ["name", "namespace", "uid", "resourceVersion"] {
        if let Some(value) = object["metadata"].get(name) {
            restricted["metadata"][name] = value.clone();
        }
    }
    restricted
}

/// Removes nulls: applying `null` is the same as not applying the field.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(drop_nulls);
    }
}

fn merge(live: &Value, wanted: &Value, schema: Option<&Schema>) -> Value {
    match (form_of(wanted, schema), live, wanted) {
        (Form::Map, Value::Object(live), Value::Object(wanted)) => {
            let mut merged = live.clone();
            for (name, value) in wanted {
                let before = live.get(name).unwrap_or(&Value::Null);
                merged.insert(name.clone(), merge(before, value, field_schema(schema, name).0));
            }
            merged.into()
        }
        (Form::Set, Value::Array(live), Value::Array(wanted)) => merge_list(live, wanted, None, schema),
        (Form::Keyed(keys), Value::Array(live), Value::Array(wanted)) => {
            merge_list(live, wanted, Some(keys), schema)
        }
        _ => wanted.clone(),
    }
}

/// Merges a list by item, like structured-merge-diff 6: applied items are in applied order, and all
/// others keep their positions between them.
fn merge_list(live: &[Value], wanted: &[Value], keys: Option<&[String]>, schema: Option<&Schema>) -> Value {
    let inner = item_schema(schema);
    let steps = |items: &[Value]| -> Vec<String> {
        let steps = items.iter().map(|item| item_step(item, keys, inner));
        steps.collect()
    };
    let (live_steps, wanted_steps) = (steps(live), steps(wanted));
    let merge_item = |step: &String, item: &Value| match live_steps.iter().position(|known| known == step) {
        Some(position) => merge(&live[position], item, inner),
        None => item.clone(),
    };
    let mut shared = wanted_steps.iter().filter(|step| live_steps.contains(step));
    let mut next_shared = shared.next();
    let mut merged = Vec::with_capacity(live.len().max(wanted.len()));
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < wanted.len() {
        if let Some(step) = live_steps.get(left) {
            if !wanted_steps.contains(step) {
                merged.push(live[left].clone());
                left += 1;
                continue;
            }
            let is_merged = wanted_steps[..right].contains(step);
            let is_next = wanted_steps.get(right) == Some(step);
            if is_merged || (!is_next && next_shared.is_some_and(|next| next != step)) {
                left += 1;
                continue;
            }
            left += usize::from(is_next);
        }
        let step = &wanted_steps[right];
        merged.push(merge_item(step, &wanted[right]));
        if next_shared == Some(step) {
            next_shared = shared.next();
        }
        right += 1;
    }
    merged.into()
}
