//! Field managers: the entries of `metadata.managedFields`.
//!
//! Writes share an entry only if they have the same name, operation and subresource and, for
//! updates, the same API version. An operator that applies a Deployment and updates its status has
//! two entries. Hence omitting a field from an apply never removes what the same operator wrote to
//! the status.

use rbuilder_schema::Schema;
use serde_json::{Map, Value, json};

use super::changes::Changes;
use super::failure::Failure;
use super::fields::{Difference, Fields};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) applies: bool,
    pub(super) api_version: String,
    /// Empty for the main resource.
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) fields: Fields,
}

impl Manager {
    /// Returns whether both are the same entry. Fields are irrelevant, and so is an applier's
    /// version: appliers have a single entry, in the version that they last applied.
    pub(super) fn is(&self, other: &Manager) -> bool {
        self.name == other.name
            && self.applies == other.applies
            && (self.applies || self.api_version == other.api_version)
            && self.subresource == other.subresource
    }

    /// Formats the manager for conflict messages, e.g. `"kubectl" using v1`.
    pub(super) fn describe(&self) -> String {
        let mut said = format!("\"{}\"", self.name);
        if !self.subresource.is_empty() {
            said = format!("{said} with subresource \"{}\"", self.subresource);
        }
        if self.applies {
            said
        } else {
            format!("{said} using {}", self.api_version)
        }
    }
}

/// Whether both lists contain the same entries, ignoring times and order.
pub(super) fn own_the_same(before: &[Manager], after: &[Manager]) -> bool {
    let has = |entry: &Manager| {
        let mut others = after.iter();
        others.any(|other| {
            other.is(entry) && other.api_version == entry.api_version && other.fields == entry.fields
        })
    };
    before.len() == after.len() && before.iter().all(has)
}

pub(super) fn read_managers(object: &Value) -> Vec<Manager> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .map(|entry| Manager {
            name: text(&entry["manager"]),
            applies: entry["operation"] == "Apply",
            api_version: text(&entry["apiVersion"]),
            subresource: text(&entry["subresource"]),
            time: text(&entry["time"]),
            fields: Fields::read(&entry["fieldsV1"]),
        })
        .collect()
}

pub(super) fn write_managers(object: &mut Value, mut managers: Vec<Manager>) {
    // Drop managers that no longer own any fields.
    managers.retain(|manager| !manager.fields.is_empty());
    managers
        .sort_by(|a, b| (!a.applies, &a.name, &a.subresource).cmp(&(!b.applies, &b.name, &b.subresource)));
    let entries: Vec<Value> = managers.iter().map(to_json).collect();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), entries.into());
        }
    }
}

fn to_json(manager: &Manager) -> Value {
    let operation = if manager.applies { "Apply" } else { "Update" };
    let mut entry = json!({
        "manager": manager.name, "operation": operation, "apiVersion": manager.api_version,
        "time": manager.time, "fieldsType": "FieldsV1", "fieldsV1": manager.fields.to_json(),
    });
    if !manager.subresource.is_empty() {
        entry["subresource"] = manager.subresource.clone().into();
    }
    entry
}

/// Records an update: the writer takes ownership of the fields that it changes.
pub(super) fn note_update(
    managers: &mut Vec<Manager>,
    writer: Manager,
    changes: &mut Changes<'_>,
) -> Result<(), Failure> {
    let own = changes.own();
    if own.changed.is_empty() && own.removed.is_empty() {
        return Ok(());
    }
    let noted = std::mem::take(managers);
    // Updates write the whole object, so unchanged fields say nothing about the writer's intent.
    // They keep their managers.
    for mut manager in noted {
        if let Some(difference) = changes.in_version(&manager.api_version)? {
            manager.fields = manager
                .fields
                .minus(&difference.changed)
                .minus(&difference.removed);
            managers.push(manager);
        }
    }
    let known = managers.iter().position(|manager| manager.is(&writer));
    match known {
        _ if own.changed.is_empty() => {}
        Some(position) => {
            managers[position].fields.add(&own.changed);
            managers[position].time = writer.time;
        }
        None => managers.push(Manager {
            fields: own.changed.clone(),
            ..writer
        }),
    }
    Ok(())
}

/// Set by the server, hence not managed.
const SERVER_METADATA: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// Returns the part of an object whose fields get managers when this subresource is written.
pub(super) fn manageable_part(object: &Value, subresource: &str, has_status: bool) -> Value {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    // Copying what's kept is cheaper than removing the rest from a clone, as the rest is usually
    // larger.
    let copy = |fields: &Map<String, Value>, is_kept: &dyn Fn(&str) -> bool| -> Map<String, Value> {
        let kept = fields.iter().filter(|(name, _)| is_kept(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if subresource == "status" {
        return copy(fields, &|name| name == "status").into();
    }
    let mut part = copy(fields, &|name| {
        !(matches!(name, "apiVersion" | "kind" | "metadata") || has_status && name == "status")
    });
    let metadata = match fields.get("metadata") {
        Some(Value::Object(metadata)) => copy(metadata, &|name| !SERVER_METADATA.contains(&name)).into(),
        Some(other) => other.clone(),
        None => json!({}),
    };
    part.insert("metadata".to_owned(), metadata);
    part.into()
}

pub(super) fn manageable_difference(
    before: &Value,
    after: &Value,
    subresource: &str,
    has_status: bool,
    schema: &Schema,
) -> Difference {
    let before = manageable_part(before, subresource, has_status);
    let after = manageable_part(after, subresource, has_status);
    Difference::between(&before, &after, Some(schema))
}
