//! Readiness of kinds that other objects depend on.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::object::{AnyObject, Kind};

pub(super) const CRD: &str = "CustomResourceDefinition";

/// Returns `false` for CRDs that are not established yet, and for namespaces that are terminating.
/// All other objects are usable once they exist.
pub(super) fn is_usable<K: AnyObject + Serialize>(kind: &Kind<K>, object: &K) -> Result<bool, Error> {
    let (group, kind) = (K::group(&kind.dynamic), kind.name());
    let check: fn(&Value) -> bool = match (&*group, &*kind) {
        ("apiextensions.k8s.io", CRD) => is_established,
        ("", "Namespace") => |namespace| namespace["status"]["phase"] != "Terminating",
        _ => return Ok(true),
    };
    Ok(check(&serde_json::to_value(object)?))
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
