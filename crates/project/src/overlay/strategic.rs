//! Strategic merge patches in kustomizations. We don't know the schemas of the objects here, so lists
//! are merged according to the names of their fields.

use rbuilder_kubernetes::patch::{self, ListMerge, PatchStrategy};
use serde_json::Value;

/// Merge keys of lists in the types of Kubernetes.
const KEYS: &[(&str, &str)] = &[
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ownerReferences", "uid"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("secrets", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("webhooks", "name"),
];

/// Returns the merge key of a list of a Pod, or `None` if a patch replaces the whole list.
pub fn merge_key(field: &str) -> Option<&'static str> {
    KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
}

/// Merges a patch into an object.
pub fn merge(base: &mut Value, patch: &Value) {
    patch::merge(base, patch, &ByName::default());
}

/// The name of a field, and that of the list whose items contain it. Names that are not in [`KEYS`]
/// are empty.
#[derive(Clone, Copy, Default)]
struct ByName {
    around: Option<&'static str>,
    field: &'static str,
}

impl PatchStrategy for ByName {
    fn field(&self, name: &str) -> Self {
        let known = KEYS.iter().find(|(known, _)| *known == name);
        Self {
            field: known.map_or("", |(known, _)| known),
            ..*self
        }
    }

    fn items(&self) -> Self {
        Self {
            around: Some(self.field),
            field: "",
        }
    }

    fn list(&self) -> ListMerge<'_> {
        let is_container = self
            .around
            .is_some_and(|list| list.to_lowercase().ends_with("containers"));
        match (self.field, merge_key(self.field)) {
            // Those of a Service. Others, e.g. in the rules of a NetworkPolicy, have no key.
            ("ports", _) if self.around.is_none() => ListMerge::ByKey("port"),
            ("ports", _) if !is_container => ListMerge::Replace,
            (_, Some(key)) => ListMerge::ByKey(key),
            (_, None) => ListMerge::Replace,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_by_their_keys() {
        let mut base = json!({ "containers": [
            { "name": "manager", "env": [{ "name": "A", "value": "1" }, { "name": "B" }], "args": ["x"] },
        ], "hostNetwork": true });
        let patch = json!({ "containers": [
            { "name": "manager", "args": ["y"], "env": [
                { "name": "A", "value": "2" }, { "name": "B", "$patch": "delete" }, { "name": "C" },
                { "name": "D", "$patch": "delete" },
            ] },
            { "name": "proxy" },
        ], "hostNetwork": null, "strategy": { "type": "Recreate", "rollingUpdate": null } });
        merge(&mut base, &patch);
        let expected = json!({ "containers": [
            { "name": "manager", "env": [{ "name": "A", "value": "2" }, { "name": "C" }], "args": ["y"] },
            { "name": "proxy" },
        ], "strategy": { "type": "Recreate" } });
        assert_eq!(base, expected);
    }

    #[test]
    fn lists_are_replaced_on_request() {
        let mut base = json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 80 }] }] });
        let patch = json!({ "containers": [
            { "name": "a", "ports": [{ "$patch": "replace" }, { "containerPort": 90 }] },
        ] });
        merge(&mut base, &patch);
        let expected = json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 90 }] }] });
        assert_eq!(base, expected);
    }

    #[test]
    fn ports_of_services_merge_by_their_number() {
        let mut base = json!({ "kind": "Service", "spec": { "ports": [{ "port": 80 }, { "port": 90 }] } });
        merge(
            &mut base,
            &json!({ "spec": { "ports": [{ "port": 90, "name": "b" }] } }),
        );
        let ports = json!([{ "port": 80 }, { "port": 90, "name": "b" }]);
        assert_eq!(base["spec"]["ports"], ports);
    }
}
