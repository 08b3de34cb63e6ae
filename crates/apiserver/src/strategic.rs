//! Strategic merge patches for built-in kinds. Lists are merged by the keys in the schema.
//!
//! Only the first of several keys is used, because `patchMergeKey` in the Go types is a single key.

use rbuilder_kubernetes::patch::{ListMerge, PatchStrategy};
use rbuilder_schema::{ListType, Schema};

use super::fields::{field_schema, item_schema};

/// Merges as the schema of a value says. Without a schema, lists are replaced.
pub(super) struct BySchema<'s>(pub(super) Option<&'s Schema>);

impl PatchStrategy for BySchema<'_> {
    fn field(&self, name: &str) -> Self {
        Self(field_schema(self.0, name).0)
    }

    fn items(&self) -> Self {
        Self(item_schema(self.0))
    }

    fn list(&self) -> ListMerge<'_> {
        match self
            .0
            .map(|schema| (schema.list_type, schema.list_map_keys.first()))
        {
            Some((Some(ListType::Set), _)) => ListMerge::Union,
            Some((Some(ListType::Map), Some(key))) => ListMerge::ByKey(key),
            _ => ListMerge::Replace,
        }
    }
}

#[cfg(test)]
mod tests {
    use rbuilder_catalogue::Catalogue;
    use rbuilder_kubernetes::patch::merge;
    use serde_json::{Value, json};

    use super::*;

    fn check(mut value: Value, patch: &Value, expected: &Value) {
        let schema = Catalogue::default()
            .schema("k8s_openapi::api::core::v1::PodSpec")
            .unwrap();
        merge(&mut value, patch, &BySchema(Some(&schema)));
        assert_eq!(value, *expected, "{patch}");
    }

    #[test]
    fn merges_lists_by_key() {
        let pod = json!({ "containers": [{ "name": "a", "image": "1", "args": ["x"] }, { "name": "b" }] });
        let change = json!({ "containers": [{ "name": "c" }, { "name": "a", "image": "2", "args": ["y"] }] });
        let expected = json!({ "containers": [
            { "name": "a", "image": "2", "args": ["y"] }, { "name": "b" }, { "name": "c" },
        ] });
        check(pod.clone(), &change, &expected);
        check(
            pod.clone(),
            &json!({ "containers": [{ "name": "a", "$patch": "delete" }] }),
            &json!({ "containers": [{ "name": "b" }] }),
        );
        check(
            pod.clone(),
            &json!({ "containers": [{ "$patch": "replace" }, { "name": "z" }] }),
            &json!({ "containers": [{ "name": "z" }] }),
        );
        let ordered = json!({
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }],
            "containers": [{ "name": "a", "image": null }],
        });
        check(
            pod,
            &ordered,
            &json!({ "containers": [{ "name": "b" }, { "name": "a", "args": ["x"] }] }),
        );
    }

    #[test]
    fn supports_replace_and_retain_keys_directives() {
        let pod = || json!({ "nodeSelector": { "a": "1", "b": "2" }, "hostNetwork": true });
        check(
            pod(),
            &json!({ "nodeSelector": { "$patch": "replace", "c": "3" } }),
            &json!({ "nodeSelector": { "c": "3" }, "hostNetwork": true }),
        );
        check(
            pod(),
            &json!({ "nodeSelector": null, "$retainKeys": ["nodeSelector"] }),
            &json!({}),
        );
    }
}
