//! Calls the webhooks that match a write and processes their responses.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::attributes::{Attributes, Operation};
use super::configuration::{Hook, Phase, hooks};
use super::reviews::{Call, Question};
use crate::failure::Failure;
use crate::kinds::{Version, string_at};
use crate::store::State;
use crate::write::Writer;

impl Writer<'_> {
    pub(crate) fn is_reviewed(&self) -> bool {
        let id = &self.definition.id;
        // Webhook configurations are exempt, or a broken webhook could lock everyone out. Evictions
        // aren't reviewed as deletions.
        let subresource = self.request.subresource.as_deref();
        self.reviews.are_enabled()
            && id.group != "admissionregistration.k8s.io"
            && matches!(subresource, None | Some("status" | "scale"))
    }
}

impl State {
    pub(crate) fn mutate(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        mut object: Value,
    ) -> Result<Value, Failure> {
        // Webhooks would mutate a `Scale` here, most fields of which are read-only.
        if !writer.is_reviewed() || writer.request.subresource.as_deref() == Some("scale") {
            return Ok(object);
        }
        let hooks = hooks(self, Phase::Mutating);
        let mut rounds = Rounds::default();
        // The second round handles `reinvocationPolicy: IfNeeded`.
        for round in 0..2 {
            for (index, hook) in hooks.iter().enumerate() {
                if !rounds.includes(round, index) {
                    continue;
                }
                let attributes = attributes(writer, &object, old);
                let Some(version) = hook.matched_version(attributes, self)? else {
                    continue;
                };
                let changed = self.call_mutating(hook, attributes, version, round)?;
                rounds.note(index, changed.is_some(), hook);
                if let Some(changed) = changed {
                    object = changed;
                }
            }
        }
        Ok(object)
    }

    pub(crate) fn validate(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<(), Failure> {
        if !writer.is_reviewed() {
            return Ok(());
        }
        self.call_validating(attributes(writer, object, old))
    }

    pub(crate) fn review_deletion(&self, writer: Writer<'_>, object: &Value) -> Result<(), Failure> {
        if !writer.is_reviewed() {
            return Ok(());
        }
        let read = writer.versions().read(object, writer.version)?;
        let attributes = Attributes {
            writer,
            operation: Operation::Delete,
            object: &Value::Null,
            old: &read,
        };
        // Mutating webhooks are also called for deletions, even though there's nothing to mutate.
        for hook in hooks(self, Phase::Mutating) {
            if let Some(version) = hook.matched_version(attributes, self)? {
                self.call_mutating(&hook, attributes, version, 0)?;
            }
        }
        self.call_validating(attributes)
    }

    fn call_validating(&self, attributes: Attributes<'_>) -> Result<(), Failure> {
        // Like a real server, keep calling the others after a denial, as they may return warnings.
        let mut denied = None;
        for hook in hooks(self, Phase::Validating) {
            let called = self.call_matching(&hook, attributes);
            if attributes.writer.reviews.is_pending() {
                return called;
            }
            denied = denied.or(called.err());
        }
        denied.map_or(Ok(()), Err)
    }

    fn call_matching(&self, hook: &Hook, attributes: Attributes<'_>) -> Result<(), Failure> {
        match hook.matched_version(attributes, self)? {
            Some(version) => self.call(hook, attributes, version, 0).map(drop),
            None => Ok(()),
        }
    }

    fn call_mutating(
        &self,
        hook: &Hook,
        attributes: Attributes<'_>,
        version: &Version,
        round: usize,
    ) -> Result<Option<Value>, Failure> {
        let Some(response) = self.call(hook, attributes, version, round)? else {
            return Ok(None);
        };
        let patch = read_patch(&response).map_err(|why| Failure::internal(&why))?;
        if patch.0.is_empty() {
            return Ok(None);
        }
        if attributes.object.is_null() {
            return Err(Failure::internal(&format!(
                "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
                hook.name()
            )));
        }
        let before = attributes.convert(attributes.object, version)?;
        let mut object = before.clone();
        json_patch::patch(&mut object, &patch).map_err(|error| Failure::internal(&error.to_string()))?;
        let writer = attributes.writer;
        let object = writer.completed(attributes.convert(&object, writer.version)?)?;
        Ok(Some(object).filter(|object| object != attributes.object))
    }

    /// Calls a webhook. Returns `None` if the call failed and the failure policy is `Ignore`.
    fn call(
        &self,
        hook: &Hook,
        attributes: Attributes<'_>,
        version: &Version,
        round: usize,
    ) -> Result<Option<Value>, Failure> {
        let (writer, name) = (attributes.writer, hook.name());
        if writer.is_dry_run() && !hook.supports_dry_run() {
            let message = format!("admission webhook \"{name}\" does not support dry run");
            return Err(Failure::bad_request(message));
        }
        let (url, path) = hook.address();
        let call = Call {
            key: (hook.configuration_name().to_owned(), name.to_owned(), round),
            url,
            path,
            timeout: hook.timeout(),
            question: Question::Admission(attributes.to_request(version, &self.roles)?),
        };
        let response = match writer.reviews.ask(call)? {
            Ok(response) => response,
            Err(_) if hook.ignores_failures() => return Ok(None),
            Err(why) => {
                return Err(Failure::internal(&format!(
                    "failed calling webhook \"{name}\": {why}"
                )));
            }
        };
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let warnings = warnings.filter_map(|warning| Some(warning.as_str()?.to_owned()));
        writer.warnings.add(warnings);
        match response["allowed"] == true {
            true => Ok(Some(response)),
            false => Err(denial(name, &response["status"])),
        }
    }
}

fn attributes<'a>(writer: Writer<'a>, object: &'a Value, old: Option<&'a Value>) -> Attributes<'a> {
    Attributes {
        writer,
        operation: match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        },
        object,
        old: old.unwrap_or(&Value::Null),
    }
}

#[derive(Default)]
struct Rounds {
    /// Webhooks with the policy `IfNeeded` that have already seen the current object.
    called: BTreeSet<usize>,
    outdated: BTreeSet<usize>,
}

impl Rounds {
    fn includes(&self, round: usize, index: usize) -> bool {
        round == 0 || self.outdated.contains(&index)
    }

    fn note(&mut self, index: usize, has_changed: bool, hook: &Hook) {
        if has_changed {
            self.outdated.append(&mut self.called);
        }
        if hook.is_reinvoked() {
            self.called.insert(index);
        }
    }
}

fn read_patch(response: &Value) -> Result<json_patch::Patch, String> {
    let bytes: Vec<u8> = match &response["patch"] {
        Value::Null => return Ok(json_patch::Patch::default()),
        Value::String(text) => STANDARD.decode(text).map_err(|error| error.to_string())?,
        // Go also decodes lists of numbers as bytes, which is how kube serializes them.
        numbers => serde_json::from_value(numbers.clone()).map_err(|error| error.to_string())?,
    };
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

// Webhooks may return a partial status.
fn denial(webhook: &str, status: &Value) -> Failure {
    let denied = format!("admission webhook \"{webhook}\" denied the request");
    let message = match (string_at(status, "/message"), string_at(status, "/reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    Failure::of_status(status, &message)
}
