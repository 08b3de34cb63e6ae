//! Serves the kinds of CRDs as soon as the CRDs are stored.

use serde_json::{Value, json};

use super::failure::{Cause, Failure};
use super::kinds::{Definition, ResourceId, string_at};
use super::store::State;

pub(super) fn establish_crd(
    object: &mut Value,
    now: &str,
    definition: &Definition,
) -> Result<Definition, Failure> {
    let name = string_at(object, "/metadata/name").to_owned();
    let described = Definition::of_crd(object).map_err(|why| {
        let cause = Cause::invalid("spec.versions", format!("Invalid value: {why}"));
        Failure::invalid(definition, &name, &[cause])
    })?;
    if name != described.id.to_string() {
        let message = format!("Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group");
        return Err(Failure::invalid(
            definition,
            &name,
            &[Cause::invalid("metadata.name", message)],
        ));
    }
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now });
    object["status"] = json!({
        "acceptedNames": {
            "plural": described.id.plural, "kind": described.kind, "listKind": described.list_kind,
            "singular": described.singular, "shortNames": described.short_names,
        },
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": [described.storage],
    });
    Ok(described)
}

impl State {
    pub(super) fn abandon(&mut self, crd: &Value) {
        let id = ResourceId::new(
            string_at(crd, "/spec/group"),
            string_at(crd, "/spec/names/plural"),
        );
        self.forget(&id);
    }
}
