//! Readiness of kinds that other objects depend on.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::object::{AnyObject, Kind};

/// Group and kind.
pub(super) const CRD: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");
pub(super) const NAMESPACE: (&str, &str) = ("", "Namespace");

/// Returns `false` for CRDs that are not established yet, and for namespaces that are terminating.
/// All other objects are usable once they exist.
pub(super) fn is_usable<K: AnyObject + Serialize>(kind: &Kind<K>, object: &K) -> Result<bool, Error> {
    let (group, kind) = (K::group(&kind.dynamic), kind.name());
    let check: fn(&Value) -> bool = match (&*group, &*kind) {
        CRD => is_established,
        NAMESPACE => |namespace| namespace["status"]["phase"] != "Terminating",
        _ => return Ok(true),
    };
    Ok(check(&serde_json::to_value(object)?))
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
