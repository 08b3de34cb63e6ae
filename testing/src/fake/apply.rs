//! Server-side apply: merges an applied configuration into the live object, field by field, and updates who manages
//! which field.
//!
//! # Example
//! A Deployment has two managers: the operator `op` has applied `replicas` and a label, and `kubectl scale` has updated
//! `replicas` since. The manager of a field is whoever last changed it, and of an unchanged one everybody who applied
//! it.
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
//! 2. Merge: `tier` is added and `replicas` becomes 3. `app` stays for the moment.
//! 3. Prune: `app` is in what `op` applied *before*, and in nobody's set *now*, so it is removed. A field that `op`
//!    never applied is not removed, even when no manager has it: that is why the earlier set is compared and not the
//!    live object.
//! 4. Conflicts: the fields whose *value* changes (`tier`, `replicas`), intersected with each other manager's
//!    set, leave `replicas` of `kubectl`. Without `force` the answer is 409 and nothing has happened. If `op` had
//!    applied `replicas: 5`, the value would not change, and both would manage the field.
//! 5. With `force`, `kubectl` loses `f:replicas`; its entry is empty then and is dropped. `op` has the set of step 1:
//!
//! ```text
//! live     labels: {tier: front}       replicas: 3
//! op       Apply   f:labels{f:tier}    f:replicas
//! ```
//!
//! Comparing whole objects instead of sets would report a conflict for every field of the live object that the applied
//! configuration leaves out.

use rbuilder_schema::Schema;
use serde_json::Value;

use super::failure::Failure;
use super::fields::{Difference, Fields, Form, field_schema, form_of, item_schema, item_step};
use super::managers::{Manager, manageable_part};

/// The input of an apply.
pub(super) struct Apply<'a> {
    /// The stored object; `null` when there is none.
    pub(super) live: &'a Value,
    /// The applied configuration.
    pub(super) wanted: Value,
    /// The manager that applies; `run` fills in its fields.
    pub(super) applier: Manager,
    pub(super) force: bool,
    pub(super) has_status: bool,
    pub(super) schema: &'a Schema,
}

impl Apply<'_> {
    /// Returns the merged object and its managers.
    ///
    /// # Errors
    /// When other managers own fields that would change, and `force` is not set.
    pub(super) fn run(self, mut managers: Vec<Manager>) -> Result<(Value, Vec<Manager>), Failure> {
        let schema = Some(self.schema);
        let mut applier = self.applier;
        let mut wanted = self.wanted;
        drop_nulls(&mut wanted);
        let part = |object: &Value| manageable_part(object, &applier.subresource, self.has_status);
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
        let mut everybody = fields.clone();
        managers.iter().for_each(|manager| everybody.add(&manager.fields));
        // Every object has metadata, so it is never pruned, even if no manager has a field in it.
        everybody.reserve("f:metadata");

        // An apply of the status merges nothing but the status, and one of the object everything else.
        let mut result = merge(self.live, &restrict(&wanted, &part(&wanted)), schema);
        if let Some(earlier) = &earlier {
            prune(&mut result, &earlier.fields, &everybody, schema);
        }
        let Difference { changed, removed } = if self.live.is_null() {
            Difference::default()
        } else {
            Difference::between(&part(self.live), &part(&result), schema)
        };
        let conflicts: Vec<(String, Vec<String>)> = managers
            .iter()
            .map(|manager| (manager.describe(), manager.fields.common(&changed).paths()))
            .filter(|(_, paths)| !paths.is_empty())
            .collect();
        if !conflicts.is_empty() && !self.force {
            return Err(Failure::apply_conflict(&conflicts));
        }
        for manager in &mut managers {
            manager.fields = manager.fields.minus(&changed).minus(&removed);
        }
        if let Some(earlier) = earlier.filter(|earlier| earlier.fields == fields && changed.is_empty()) {
            applier.time = earlier.time;
        }
        applier.fields = fields;
        managers.push(applier);
        Ok((result, managers))
    }
}

/// Returns the fields of the manageable part of an object. Empty metadata has no manager.
fn applied(part: &Value, schema: Option<&Schema>) -> Fields {
    let mut part = part.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.retain(|name, value| {
            name != "metadata" || value.as_object().is_none_or(|inner| !inner.is_empty())
        });
    }
    Fields::applied(&part, schema)
}

/// Returns the manageable part of an object, with the fields that identify it.
fn restrict(object: &Value, part: &Value) -> Value {
    let mut restricted = part.clone();
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

/// Removes nulls: a field that is applied as `null` counts as not applied.
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

/// Merges a list by item: existing items keep their position, new ones are appended.
fn merge_list(live: &[Value], wanted: &[Value], keys: Option<&[String]>, schema: Option<&Schema>) -> Value {
    let inner = item_schema(schema);
    let mut merged = live.to_vec();
    for item in wanted {
        let wanted_step = item_step(item, keys, inner);
        match merged
            .iter_mut()
            .find(|found| item_step(found, keys, inner) == wanted_step)
        {
            Some(found) => *found = merge(found, item, inner),
            None => merged.push(item.clone()),
        }
    }
    merged.into()
}

/// Removes the fields that the applier set before and that no manager has now.
fn prune(value: &mut Value, earlier: &Fields, wanted: &Fields, schema: Option<&Schema>) {
    let keys = match form_of(value, schema) {
        Form::Whole => return,
        Form::Map => return prune_fields(value, earlier, wanted, schema),
        Form::Set => None,
        Form::Keyed(keys) => Some(keys.to_vec()),
    };
    let inner = item_schema(schema);
    let Value::Array(list) = value else { return };
    list.retain_mut(|item| {
        let step = item_step(item, keys.as_deref(), inner);
        match (earlier.get(&step), wanted.get(&step)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(earlier), Some(wanted)) => {
                prune(item, earlier, wanted, inner);
                true
            }
        }
    });
}

fn prune_fields(value: &mut Value, earlier: &Fields, wanted: &Fields, schema: Option<&Schema>) {
    let Value::Object(fields) = value else { return };
    for (step, earlier) in earlier.below() {
        let name = step.strip_prefix("f:").unwrap_or(step);
        match wanted.get(step) {
            None => {
                fields.remove(name);
            }
            Some(wanted) => {
                if let Some(value) = fields.get_mut(name) {
                    prune(value, earlier, wanted, field_schema(schema, name).0);
                }
            }
        }
    }
}
