//! How server-side apply merges lists and maps.

use rbuilder_schema::{ListType, MapType, Schema, SchemaType};

use super::alone::with_keys;
use super::{Comparison, Probe};
use crate::path::Path;

impl Comparison {
    pub(super) fn compare_topology(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let list_type = |schema: &Schema| schema.list_type.unwrap_or(ListType::Atomic);
        let (before, after) = (list_type(old), list_type(new));
        if before != after {
            let message = format!("list type {} instead of {}", after.as_str(), before.as_str());
            let alone = with_keys(
                old,
                new,
                &["x-kubernetes-list-type", "x-kubernetes-list-map-keys"],
            );
            self.add_searched("list-type-changed", path, message, (old, alone), false);
        } else if before == ListType::Map && old.list_map_keys != new.list_map_keys {
            let shown = |keys: &[String]| format!("`{}`", keys.join("`, `"));
            let message = format!(
                "list map keys {} instead of {}",
                shown(&new.list_map_keys),
                shown(&old.list_map_keys)
            );
            let alone = with_keys(old, new, &["x-kubernetes-list-map-keys"]);
            self.add_searched("list-map-keys-changed", path, message, (old, alone), false);
        }
        let map_type = |schema: &Schema| schema.map_type.unwrap_or(MapType::Granular);
        let is_map = |schema: &Schema| matches!(schema.schema_type, Some(SchemaType::Object) | None);
        let (before, after) = (map_type(old), map_type(new));
        if before != after && is_map(old) {
            let message = format!("map type {} instead of {}", after.as_str(), before.as_str());
            self.add("map-type-changed", path, message, Probe::Nothing);
        }
    }
}
