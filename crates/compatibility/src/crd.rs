//! The versions of a CRD, for judging objects.

use rbuilder_judge::Definition;
use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

/// The definition of a version, whether it's served or not. Objects are judged as if they were
/// stored in this version: what conversions lose is compared on its own.
pub(crate) fn definition(crd: &Value, name: &str) -> Result<Option<Definition>, String> {
    let crd = Crd::of(crd);
    let Some(version) = crd.version(name) else {
        return Ok(None);
    };
    let definition = Definition::of_version(crd, version)?;
    Ok(Some(Definition {
        stored_schema: None,
        ..definition
    }))
}
