//! Objects of built-in kinds, as far as schemas can validate them.
//!
//! The server validates these kinds in code rather than with a schema. It rejects everything that
//! this module rejects, and more; `builtin_rules` implements some of the rules in code.

use rbuilder_kubernetes::gvk;
use rbuilder_schema::Schema;
use serde_json::Value;

use crate::decode::{Body, Decoded, FieldValidation, check_identity, decode};
use crate::encoding::encode;
use crate::error::{FieldError, Reason};
use crate::lists::find_duplicates_except;
use crate::metadata::{self, Metadata, NameRule};
use crate::path::Path;
use crate::values::Checker;
use crate::verdict::Failure;
use crate::{builtin_defaults, builtin_rules};

/// Metadata has its own rules, and Go fills absent status fields with zero values, so the schema
/// can't be applied to either.
const UNCHECKED: &[&str] = &["metadata", "status"];

/// A version of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct Builtin<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version, such as `v1`.
    pub version: &'a str,
    /// The kind, such as `ConfigMap`.
    pub kind: &'a str,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
    /// The schema of the objects, including their metadata.
    pub schema: &'a Schema,
}

impl Builtin<'_> {
    /// Decodes the body of a write. `apiVersion` and `kind` are added if missing.
    ///
    /// # Errors
    ///
    /// Returns the server's failure. The message may differ for values of the wrong type.
    pub fn decode(&self, body: &Body, fields: FieldValidation) -> Result<Decoded, Failure> {
        let Builtin { kind, version, .. } = *self;
        self.check_identity(body)?;
        let mut decoded = decode(body, self.schema, fields, kind, version)?;
        encode(&mut decoded.object, self.schema);
        builtin_defaults::set_defaults(self.group, kind, &mut decoded.object);
        decoded.object["apiVersion"] = self.api_version().into();
        decoded.object["kind"] = self.kind.into();
        let wrong = self.find_violations(&decoded.object);
        match wrong
            .into_iter()
            .find(|error| error.reason == Reason::TypeInvalid)
        {
            None => Ok(decoded),
            Some(error) => {
                let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}");
                Err(Failure::malformed(message))
            }
        }
    }

    /// Checks a decoded object before it is stored, ignoring its status.
    ///
    /// # Errors
    ///
    /// Returns all violations.
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Result<(), Failure> {
        let mut errors = self.find_errors(object, old);
        errors.extend(builtin_rules::find_violations(self.group, self.kind, object, old));
        self.conclude(object, errors)
    }

    /// Checks an object on a status update. The server's rules in code for the other fields don't
    /// apply.
    ///
    /// # Errors
    ///
    /// Returns all violations.
    pub fn check_status(&self, object: &Value, old: &Value) -> Result<(), Failure> {
        self.conclude(object, self.find_errors(object, Some(old)))
    }

    fn find_errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let (metadata, field) = (Metadata::of(object), Path::root().child("metadata"));
        // The server is stricter about the names of new objects. Names of stored objects are
        // immutable.
        let names = match old {
            None => NameRule::of_builtin(self.group, self.kind),
            Some(_) => NameRule::PathSegment,
        };
        let mut errors = metadata::check_new(metadata, self.is_namespaced, names, &field);
        if let Some(old) = old {
            errors.extend(metadata::check_changed(metadata, Metadata::of(old), &field));
        }
        errors.extend(self.find_violations(object));
        errors
    }

    fn conclude(&self, object: &Value, errors: Vec<FieldError>) -> Result<(), Failure> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Failure::Invalid {
            kind: self.kind.to_owned(),
            group: self.group.to_owned(),
            name: Metadata::of(object).text("name").to_owned(),
            errors,
        })
    }

    fn check_identity(&self, body: &Body) -> Result<(), Failure> {
        let kind = self.kind;
        let Some(fields) = body.value().as_object().filter(|_| !body.is_too_large()) else {
            // Not even an object; reuse the message for custom resources.
            return check_identity(body, kind);
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let (found, version, wanted) = (text("kind"), text("apiVersion"), self.api_version());
        if found.is_empty() || found == kind && version == wanted {
            return Ok(());
        }
        Err(Failure::malformed(format!(
            "{found} in version {version:?} cannot be handled as a {kind}: the path asks for {kind} in version {wanted:?}"
        )))
    }

    fn api_version(&self) -> String {
        gvk::api_version(self.group, self.version)
    }

    fn find_violations(&self, object: &Value) -> Vec<FieldError> {
        let mut undecided = Vec::new();
        let mut checker = Checker::of_builtin(Path::root(), &mut undecided, UNCHECKED);
        let mut errors = checker.find_errors(object, self.schema, None);
        errors.extend(find_duplicates_except(UNCHECKED, object, self.schema));
        errors
    }
}
