//! The last step of merging an applied configuration: removes fields that the applier no longer
//! applies and no other manager owns.
//!
//! Managers own fields in the version in which they wrote them. Fields are removed in the version
//! that the applier used before; those that managers own in other versions are then added back.

use std::collections::BTreeMap;

use rbuilder_schema::Schema;
use serde_json::Value;

use super::apply::applied;
use super::changes::version_of_manager;
use super::failure::Failure;
use super::fields::{Fields, Form, field_schema, form_of, item_schema, item_step};
use super::kinds::Version;
use super::managers::{Manager, manageable_part};
use super::versions::Versions;

pub(super) struct Pruning<'a> {
    pub(super) versions: Versions<'a>,
    pub(super) version: &'a Version,
    pub(super) subresource: &'a str,
}

impl Pruning<'_> {
    /// Removes fields from the merged object that the applier no longer applies and no manager
    /// owns. `managers` must include the applier's new entry.
    pub(super) fn prune<'m>(
        &self,
        merged: Value,
        earlier: &Manager,
        managers: impl Iterator<Item = &'m Manager>,
    ) -> Result<Value, Failure> {
        let find = |api_version: &str| version_of_manager(self.versions, self.version, api_version);
        // The kind no longer has the earlier entry's version, so there's no telling what it covers.
        let Some(version) = find(&earlier.api_version) else {
            return Ok(merged);
        };
        let mut owned: BTreeMap<&str, (&Version, Fields)> = BTreeMap::new();
        for manager in managers {
            if let Some(version) = find(&manager.api_version) {
                let (_, fields) = owned.entry(&version.name).or_insert((version, Fields::default()));
                fields.add(&manager.fields);
            }
        }
        let merged = self.convert(merged, version)?;
        let schema = Some(version.schema());
        let (_, everybody) = owned
            .remove(&*version.name)
            .unwrap_or((version, Fields::default()));
        let mut pruned = merged.clone();
        remove(&mut pruned, &earlier.fields, &reserve_metadata(everybody), schema);
        // Other managers may own the same data under different names in their versions. Restore it
        // from there and prune again.
        if !owned.is_empty() {
            let mut restored = pruned;
            for (other, fields) in owned.into_values() {
                restored = self.restore(&merged, restored, other, fields)?;
            }
            let kept = self.fields(&self.convert(restored, version)?, version);
            pruned = merged;
            remove(&mut pruned, &earlier.fields, &reserve_metadata(kept), schema);
        }
        self.convert(pruned, self.version)
    }

    fn restore(
        &self,
        merged: &Value,
        pruned: Value,
        version: &Version,
        owned: Fields,
    ) -> Result<Value, Failure> {
        let mut merged = self.convert(merged.clone(), version)?;
        let pruned = self.convert(pruned, version)?;
        let mut kept = self.fields(&pruned, version);
        kept.add(&owned);
        let before = self.fields(&merged, version);
        remove(
            &mut merged,
            &before,
            &reserve_metadata(kept),
            Some(version.schema()),
        );
        Ok(merged)
    }

    fn fields(&self, object: &Value, version: &Version) -> Fields {
        let part = manageable_part(object, self.subresource, version.status);
        applied(&part, Some(version.schema()))
    }

    fn convert(&self, object: Value, version: &Version) -> Result<Value, Failure> {
        match self.versions.definition.custom {
            true => self.versions.convert(&object, version),
            false => Ok(object),
        }
    }
}

fn reserve_metadata(mut fields: Fields) -> Fields {
    // Every object has metadata, so never remove it as a whole.
    fields.reserve("f:metadata");
    fields
}

/// Removes fields in `earlier` that aren't in `wanted`. A map or list that loses its last item
/// becomes null, as in structured-merge-diff 6 (`typed/remove.go`).
fn remove(value: &mut Value, earlier: &Fields, wanted: &Fields, schema: Option<&Schema>) {
    let keys = match form_of(value, schema) {
        Form::Whole => return,
        Form::Map => return remove_fields(value, earlier, wanted, schema),
        Form::Set => None,
        Form::Keyed(keys) => Some(keys.to_vec()),
    };
    let inner = item_schema(schema);
    let Value::Array(list) = value else { return };
    let before = list.len();
    list.retain_mut(|item| {
        let step = item_step(item, keys.as_deref(), inner);
        match (earlier.get(&step), wanted.get(&step)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(earlier), Some(wanted)) => {
                remove(item, earlier, wanted, inner);
                true
            }
        }
    });
    if before > 0 && list.is_empty() {
        *value = Value::Null;
    }
}

fn remove_fields(value: &mut Value, earlier: &Fields, wanted: &Fields, schema: Option<&Schema>) {
    let Value::Object(fields) = value else { return };
    let before = fields.len();
    for (step, earlier) in earlier.below() {
        let name = step.strip_prefix("f:").unwrap_or(step);
        match wanted.get(step) {
            None => {
                fields.remove(name);
            }
            Some(wanted) => {
                if let Some(value) = fields.get_mut(name) {
                    remove(value, earlier, wanted, field_schema(schema, name).0);
                }
            }
        }
    }
    if before > 0 && fields.is_empty() {
        *value = Value::Null;
    }
}
