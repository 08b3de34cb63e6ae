//! The versions of a CRD.

use rbuilder_judge::Definition;
use serde_json::Value;

use crate::place::list;

pub(crate) fn versions(crd: &Value) -> Vec<&Value> {
    list(&crd["spec"]["versions"])
}

pub(crate) fn find_version<'c>(crd: &'c Value, name: &Value) -> Option<&'c Value> {
    versions(crd).into_iter().find(|version| version["name"] == *name)
}

pub(crate) fn is_served(version: &Value) -> bool {
    version["served"] != false
}

/// The definition of a version, whether it's served or not. Objects are judged as if they were
/// stored in this version: what conversions lose is compared on its own.
pub(crate) fn definition(crd: &Value, name: &str) -> Result<Option<Definition>, String> {
    let Some(version) = find_version(crd, &name.into()) else {
        return Ok(None);
    };
    let definition = Definition::of_version(crd, version)?;
    Ok(Some(Definition {
        stored_schema: None,
        ..definition
    }))
}
