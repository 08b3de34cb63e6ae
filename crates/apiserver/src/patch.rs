//! Patches in the four content types supported by Kubernetes.

use std::sync::Arc;

use json_patch::jsonptr::Pointer;
use json_patch::{AddOperation, PatchOperation};
use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::patch::{merge, merge_json};
use serde_json::{Value, json};

use super::apply::Apply;
use super::failure::Failure;
use super::kinds::string_at;
use super::store::State;
use super::strategic::BySchema;
use super::write::Writer;
use super::{managers, typed};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

impl State {
    pub(super) fn patch(
        &mut self,
        writer: Writer<'_>,
        content_type: &str,
    ) -> Result<(Arc<Value>, bool), Failure> {
        if content_type.starts_with(APPLY) {
            return self.apply(writer);
        }
        let old = self.named(writer.request)?;
        let shown = writer.versions().read(&old, writer.version)?.into_owned();
        let patched = patched(writer, content_type, shown)?;
        let new = writer.decoded_patch(&patched)?;
        let (found, name) = (
            string_at(&new, "/metadata/name"),
            string_at(&old, "/metadata/name"),
        );
        if found != name {
            let message =
                format!("the name of the object ({found}) does not match the name on the URL ({name})");
            return Err(Failure::bad_request(message));
        }
        Ok((self.save(writer, Some(old), new, None)?, false))
    }

    fn apply(&mut self, writer: Writer<'_>) -> Result<(Arc<Value>, bool), Failure> {
        let request = writer.request;
        let old = match self.named(request) {
            Err(missing) if !writer.part().is_empty() => return Err(missing),
            old => old.ok(),
        };
        check_type(writer)?;
        let mut wanted = writer.sent()?;
        let given = wanted["metadata"]["managedFields"].as_array();
        if given.is_some_and(|entries| !entries.is_empty()) {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        if old.is_none() {
            check_unknown_uid(writer, &wanted)?;
        }
        check_typed(writer)?;
        let name = request.name.clone().unwrap_or_default();
        match string_at(&wanted, "/metadata/name") {
            "" if old.is_none() => {
                let message = format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                );
                return Err(Failure::bad_request(message));
            }
            "" => wanted["metadata"]["name"] = name.into(),
            found if found == name => {}
            found => {
                let message =
                    format!("the name of the object ({found}) does not match the name on the URL ({name})");
                return Err(Failure::bad_request(message));
            }
        }
        let made = old.is_none();
        let live = match &old {
            None => Value::Null,
            Some(old) => writer.versions().read(old, writer.version)?.into_owned(),
        };
        let apply = Apply {
            live: &live,
            wanted,
            applier: writer.manager(true, self.now()),
            force: request.is_set("force"),
            versions: writer.versions(),
            version: writer.version,
        };
        let (new, managers) = apply.run(managers::read_managers(&live))?;
        let new = writer.completed(new)?;
        Ok((self.save(writer, old, new, Some(managers))?, made))
    }
}

/// Built-in kinds have a message of their own for an applied configuration of another kind.
fn check_type(writer: Writer<'_>) -> Result<(), Failure> {
    let (definition, body) = (writer.definition, &writer.request.body);
    let (version, kind) = (string_at(body, "/apiVersion"), string_at(body, "/kind"));
    let is_same = kind == definition.kind && version == definition.api_version(&writer.version.name);
    if definition.custom || is_same || !body.is_object() {
        return Ok(());
    }
    let (group, version) = gvk::split(version);
    let message = format!("invalid object type: {group}/{version}, Kind={kind}");
    Err(Failure::bad_request(message))
}

fn check_typed(writer: Writer<'_>) -> Result<(), Failure> {
    let wanted = &writer.request.body;
    let mut errors = typed::find_mismatches(wanted, writer.version.schema());
    let said = match errors.len() {
        0 => return Ok(()),
        1 => errors.remove(0),
        _ => format!("errors:\n  {}", errors.join("\n  ")),
    };
    let definition = writer.definition;
    let message = format!(
        "failed to create typed patch object ({}/{}; {}, Kind={}): {said}",
        string_at(wanted, "/metadata/namespace"),
        string_at(wanted, "/metadata/name"),
        definition.api_version(&writer.version.name),
        definition.kind,
    );
    Err(Failure::new(500, "", message))
}

/// Rejects an apply with a uid if there's no such object: the uid shows that the applier expects to
/// update an existing one.
fn check_unknown_uid(writer: Writer<'_>, wanted: &Value) -> Result<(), Failure> {
    let uid = string_at(wanted, "/metadata/uid");
    if uid.is_empty() {
        return Ok(());
    }
    let why =
        format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(Failure::conflict(
        writer.id(),
        string_at(wanted, "/metadata/name"),
        &why,
    ))
}

fn patched(writer: Writer<'_>, content_type: &str, mut object: Value) -> Result<Value, Failure> {
    let patch = &writer.request.body;
    if content_type.starts_with(JSON) {
        let patch: json_patch::Patch = serde_json::from_value(patch.clone())
            .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
        // The API server deviates from RFC 6902, which `json_patch` implements.
        let patch = as_go_reads(&patch, &object);
        json_patch::patch(&mut object, &patch).map_err(|_| {
            Failure::of_code(
                422,
                "the server rejected our request due to an error in our request",
            )
            .with(json!({}))
        })?;
        return Ok(object);
    }
    let is_strategic = content_type.starts_with(STRATEGIC) && !writer.definition.custom;
    if !is_strategic && !content_type.starts_with(MERGE) {
        return Err(match writer.definition.custom {
            true => Failure::unsupported_patch(&[JSON, MERGE, APPLY]),
            // The router refuses it before any handler.
            false => Failure::of_code(415, "415: Unsupported Media Type").with(json!({})),
        });
    }
    if !patch.is_object() {
        return Err(Failure::bad_request(
            "error decoding patch: it is not a JSON object",
        ));
    }
    if is_strategic {
        merge(&mut object, patch, &BySchema(Some(writer.version.schema())));
    } else {
        merge_json(&mut object, patch);
    }
    Ok(object)
}

/// Emulates kube-apiserver's evanphx/json-patch: unlike in RFC 6902, `replace` also adds fields,
/// and a `test` for `null` passes if the field is absent.
fn as_go_reads(patch: &json_patch::Patch, object: &Value) -> json_patch::Patch {
    let mut so_far = object.clone();
    let mut operations = Vec::new();
    for operation in &patch.0 {
        let operation = match operation {
            PatchOperation::Replace(replace) if is_absent(&so_far, &replace.path) => {
                PatchOperation::Add(AddOperation {
                    path: replace.path.clone(),
                    value: replace.value.clone(),
                })
            }
            PatchOperation::Test(test) if test.value.is_null() && is_absent_field(&so_far, &test.path) => {
                continue;
            }
            other => other.clone(),
        };
        // Ignore errors; the caller applies the same patch and reports them.
        let _ = json_patch::patch(&mut so_far, std::slice::from_ref(&operation));
        operations.push(operation);
    }
    json_patch::Patch(operations)
}

fn is_absent(object: &Value, path: &Pointer) -> bool {
    object.pointer(path.as_str()).is_none()
}

/// Returns whether only the last step of the path is missing and its parent is an object. Fields of
/// absent objects and list items don't count as absent fields.
fn is_absent_field(object: &Value, path: &Pointer) -> bool {
    let parent = path.parent().and_then(|parent| object.pointer(parent.as_str()));
    is_absent(object, path) && parent.is_some_and(Value::is_object)
}
