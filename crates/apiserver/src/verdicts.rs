//! Decodes and validates written objects, using the rules of `rbuilder-judge`.

use rbuilder_judge::{Body, Builtin, Decoded, FieldValidation, Verdict};
use serde_json::Value;

use super::failure::Failure;
use super::kinds::{OPEN, ResourceId};
use super::write::Writer;

impl Writer<'_> {
    /// Decodes, prunes and defaults the object in the request body. Unknown and duplicate fields
    /// cause warnings or a failure, depending on `fieldValidation`.
    pub(super) fn decoded(&self) -> Result<Value, Failure> {
        let body = Body::from(self.request.body.clone());
        let body = body.with_duplicates(self.request.duplicates.iter().cloned());
        let Decoded { mut object, warnings } = self.decode(&body, self.field_validation())?;
        self.warnings.add(warnings);
        self.set_namespace(&mut object)?;
        Ok(object)
    }

    pub(super) fn decoded_patch(&self, patched: &Value) -> Result<Value, Failure> {
        let decoded = self.decode(&Body::from(patched.clone()), self.field_validation());
        // The server decodes patch results elsewhere, and wraps field errors there.
        let Decoded { mut object, warnings } = decoded.map_err(|failure| match failure {
            rbuilder_judge::Failure::Malformed { problems, .. } if !problems.is_empty() => {
                let why = format!("strict decoding error: {}", problems.join(", "));
                Failure::invalid_patch(patched, &why)
            }
            failure => failure.into(),
        })?;
        self.warnings.add(warnings);
        self.set_namespace(&mut object)?;
        Ok(object)
    }

    /// Completes an object that the server itself changed, e.g. with a webhook's patch.
    pub(super) fn completed(&self, object: Value) -> Result<Value, Failure> {
        match self.version.judge() {
            Some(judge) => Ok(judge.complete(object)?),
            None => {
                let decoded = self
                    .builtin()
                    .decode(&Body::from(object), FieldValidation::Ignore)?;
                Ok(decoded.object)
            }
        }
    }

    fn decode(&self, body: &Body, fields: FieldValidation) -> Result<Decoded, rbuilder_judge::Failure> {
        match self.version.judge() {
            Some(judge) => judge.decode(body, fields),
            None => self.builtin().decode(body, fields),
        }
    }

    fn field_validation(&self) -> FieldValidation {
        match self.request.parameter("fieldValidation") {
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            _ => FieldValidation::Warn,
        }
    }

    pub(super) fn judge_new(&self, object: Value) -> Result<Value, Failure> {
        let Some(judge) = self.version.judge() else {
            self.builtin().check(&object, None)?;
            return Ok(object);
        };
        let namespace = self.request.namespace.as_deref().unwrap_or_default();
        self.conclude(judge.check_new(object, namespace))
    }

    pub(super) fn judge_update(&self, object: Value, old: &Value) -> Result<Value, Failure> {
        let Some(judge) = self.version.judge() else {
            match self.part() {
                "status" => self.builtin().check_status(&object, old)?,
                _ => self.builtin().check(&object, Some(old))?,
            }
            return Ok(object);
        };
        self.conclude(match self.part() {
            "status" => judge.check_status_update(object, old),
            _ => judge.check_update(object, old),
        })
    }

    fn conclude(&self, verdict: Verdict) -> Result<Value, Failure> {
        self.warnings.add(verdict.warnings);
        verdict.result.map_err(Failure::from)
    }

    fn builtin(&self) -> Builtin<'_> {
        let definition = self.definition;
        // The catalogue has no schema for CRDs, as their schema is recursive.
        let is_crd = definition.id == ResourceId::crds();
        Builtin {
            group: &definition.id.group,
            version: &self.version.name,
            kind: &definition.kind,
            is_namespaced: definition.namespaced,
            schema: if is_crd { &OPEN } else { self.version.schema() },
        }
    }
}
