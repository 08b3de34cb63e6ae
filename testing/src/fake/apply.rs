//! Server-side apply: merging what somebody wants into what there is, field by field, by who manages it.

use rbuilder_schema::Schema;
use serde_json::Value;

use super::failure::Failure;
use super::fields::{Difference, Fields, Form, field, form, items, step};
use super::managers::{Manager, manageable};

/// What an apply is about.
pub(super) struct Apply<'a> {
    /// The object as it is; `null` when there is none.
    pub(super) live: &'a Value,
    /// What is wanted.
    pub(super) wanted: Value,
    /// Who wants it; the fields are found here.
    pub(super) applier: Manager,
    pub(super) force: bool,
    pub(super) has_status: bool,
    pub(super) schema: &'a Schema,
}

impl Apply<'_> {
    /// The object as it is to be, and its managers.
    ///
    /// # Errors
    /// When others manage fields that would change, and it is not forced.
    pub(super) fn run(self, mut managers: Vec<Manager>) -> Result<(Value, Vec<Manager>), Failure> {
        let schema = Some(self.schema);
        let mut applier = self.applier;
        let mut wanted = self.wanted;
        drop_nulls(&mut wanted);
        let part = |object: &Value| manageable(object, &applier.subresource, self.has_status);
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
        // Nobody's fields make the metadata, which every object has.
        everybody.reserve("f:metadata");

        // Of the object's own fields only those that can be managed this way are merged.
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

/// The fields of the manageable part of an object. Metadata without anything in it is nobody's.
fn applied(part: &Value, schema: Option<&Schema>) -> Fields {
    let mut part = part.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.retain(|name, value| {
            name != "metadata" || value.as_object().is_none_or(|inner| !inner.is_empty())
        });
    }
    Fields::applied(&part, schema)
}

/// The manageable part of an object, with what identifies it.
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

/// A field that is applied as `null` is one that is not applied.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(drop_nulls);
    }
}

fn merge(live: &Value, wanted: &Value, schema: Option<&Schema>) -> Value {
    match (form(wanted, schema), live, wanted) {
        (Form::Map, Value::Object(live), Value::Object(wanted)) => {
            let mut merged = live.clone();
            for (name, value) in wanted {
                let before = live.get(name).unwrap_or(&Value::Null);
                merged.insert(name.clone(), merge(before, value, field(schema, name).0));
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

/// What is there stays in its place; what is new comes behind.
fn merge_list(live: &[Value], wanted: &[Value], keys: Option<&[String]>, schema: Option<&Schema>) -> Value {
    let inner = items(schema);
    let mut merged = live.to_vec();
    for item in wanted {
        let wanted_step = step(item, keys, inner);
        match merged
            .iter_mut()
            .find(|found| step(found, keys, inner) == wanted_step)
        {
            Some(found) => *found = merge(found, item, inner),
            None => merged.push(item.clone()),
        }
    }
    merged.into()
}

/// Takes away what the applier set before and nobody wants any more.
fn prune(value: &mut Value, earlier: &Fields, wanted: &Fields, schema: Option<&Schema>) {
    let keys = match form(value, schema) {
        Form::Whole => return,
        Form::Map => return prune_fields(value, earlier, wanted, schema),
        Form::Set => None,
        Form::Keyed(keys) => Some(keys.to_vec()),
    };
    let inner = items(schema);
    let Value::Array(list) = value else { return };
    list.retain_mut(|item| {
        let step = step(item, keys.as_deref(), inner);
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
                    prune(value, earlier, wanted, field(schema, name).0);
                }
            }
        }
    }
}
