//! The steps of a write, from the request body to the stored object.

use rbuilder_kubernetes::gvk;
use rbuilder_schema::Schema;
use serde_json::{Map, Value};

use crate::correlate::Correlated;
use crate::decode::{self, Body, Decoded, FieldValidation};
use crate::definition::Definition;
use crate::embedded::check_embedded;
use crate::encoding::encode;
use crate::error::{FieldError, Reason};
use crate::lists::find_duplicates;
use crate::metadata::{self, Metadata, NameRule};
use crate::path::Path;
use crate::prune;
use crate::rules::{Ratchet, Rules};
use crate::values::Checker;
use crate::verdict::{Failure, Undecided, Verdict};
use crate::{builtin_defaults, builtin_rules};

/// Validates writes to objects of a kind, for a single version.
#[derive(Debug)]
pub struct Judge {
    definition: Definition,
    rules: Option<Rules>,
    is_builtin: bool,
}

#[derive(Default)]
struct Findings {
    errors: Vec<FieldError>,
    warnings: Vec<String>,
    undecided: Vec<Undecided>,
}

const BLOCKED: &str = "some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";

impl Judge {
    /// Prepares a definition: normalizes the values in its schema and compiles its rules.
    pub fn new(mut definition: Definition) -> Judge {
        settle_schema(&mut definition.schema);
        if let Some(schema) = &mut definition.stored_schema {
            settle_schema(schema);
        }
        let rules = Rules::compile(&definition.schema);
        Judge {
            definition,
            rules,
            is_builtin: false,
        }
    }

    /// Prepares a built-in kind, which a schema describes only partially: the API server validates
    /// these in code, and each has its own naming rule. The core group is the empty string.
    pub fn of_builtin(definition: Definition) -> Judge {
        Judge {
            is_builtin: true,
            ..Judge::new(definition)
        }
    }

    /// Returns true if this is a built-in kind.
    pub fn is_builtin(&self) -> bool {
        self.is_builtin
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Validates the creation of an object. `namespace` is ignored for cluster-scoped objects.
    ///
    /// The stored object has no `uid`, no `creationTimestamp` and no managed fields. With
    /// `generateName`, the name is the prefix followed by `xxxxx` in place of random characters.
    pub fn create(&self, body: &Body, namespace: &str, fields: FieldValidation) -> Verdict {
        let Decoded { object, warnings } = match self.decode(body, fields) {
            Ok(decoded) => decoded,
            Err(failure) => return refuse(failure, Findings::default()),
        };
        self.check_new(object, namespace).after(warnings)
    }

    /// Validates an update of a stored object. `resourceVersion` and `uid` default to those of the
    /// old object, as in a patch.
    pub fn update(&self, body: &Body, old: &Value, fields: FieldValidation) -> Verdict {
        match self.decode_update(body, old, fields) {
            Ok(Decoded { object, warnings }) => self.check_update(object, old).after(warnings),
            Err(failure) => refuse(failure, Findings::default()),
        }
    }

    /// Validates an update of the `status` subresource.
    pub fn update_status(&self, body: &Body, old: &Value, fields: FieldValidation) -> Verdict {
        match self.decode_update(body, old, fields) {
            Ok(Decoded { object, warnings }) => self.check_status_update(object, old).after(warnings),
            Err(failure) => refuse(failure, Findings::default()),
        }
    }

    /// Validates the creation of a decoded object; see [`create`](Self::create).
    ///
    /// The server calls mutating webhooks between decoding and this step.
    pub fn check_new(&self, mut object: Value, namespace: &str) -> Verdict {
        let mut findings = Findings::default();
        self.settle_metadata(&mut object, namespace);
        if let Some(failure) = self.check_namespace(&object, namespace) {
            return refuse(failure, findings);
        }
        if self.definition.has_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        self.check_created(&object, &mut findings);
        let new = Metadata::of(&object);
        if findings.errors.is_empty() {
            findings.warnings.extend(metadata::find_odd_finalizers(new, None));
        }
        self.conclude(object, findings)
    }

    /// Validates an update of a stored object, given the decoded new object; see
    /// [`update`](Self::update).
    pub fn check_update(&self, object: Value, old: &Value) -> Verdict {
        let old = self.read(old);
        let new = self.prepare_update(object, &old);
        self.conclude_update(new, &old)
    }

    /// Validates an update of a stored object's status, given a decoded object with the new status.
    pub fn check_status_update(&self, mut object: Value, old: &Value) -> Verdict {
        let old = self.read(old);
        let mut new = old.clone();
        replace_field(&mut new, "status", object.get_mut("status").map(Value::take));
        let mut findings = Findings::default();
        self.check_common(&new, &old, &mut findings);
        self.check_status(&new, &old, &mut findings);
        self.conclude(new, findings)
    }

    /// Decodes the body of a write, including pruning and defaulting.
    ///
    /// # Errors
    ///
    /// Returns the server's failure.
    pub fn decode(&self, body: &Body, fields: FieldValidation) -> Result<Decoded, Failure> {
        let Definition {
            kind,
            version,
            schema,
            ..
        } = &self.definition;
        decode::check_identity(body, kind)?;
        let found = body.value()["apiVersion"].as_str().unwrap_or_default();
        let wanted = self.api_version();
        let mut decoded = decode::decode(body, schema, fields, kind, version)?;
        if self.is_builtin {
            encode(&mut decoded.object, schema);
        }
        if found != wanted {
            return Err(Failure::malformed(format!(
                "the API version in the data ({found}) does not match the expected API version ({wanted})"
            )));
        }
        if let Some(duplicates) = remove_repeated_owners(&mut decoded.object) {
            decoded.warnings.push(format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, \
                 and may reject such requests as early as 1.24; please fix your requests; \
                 duplicate UID(s) observed: {}",
                duplicates.join(", ")
            ));
        }
        Ok(decoded)
    }

    /// Completes an object that was changed by the server itself, e.g. by an apply or a webhook's
    /// patch: prunes and defaults it. Unlike [`decode`](Self::decode), keeps `null`, which
    /// validation rejects in non-nullable fields.
    ///
    /// # Errors
    ///
    /// Returns the server's failure if the metadata can't be decoded.
    pub fn complete(&self, object: Value) -> Result<Value, Failure> {
        decode::complete(object, &self.definition.schema).map_err(Failure::malformed)
    }

    fn decode_update(&self, body: &Body, old: &Value, fields: FieldValidation) -> Result<Decoded, Failure> {
        let decoded = self.decode(body, fields)?;
        let (name, was) = (
            Metadata::of(&decoded.object).text("name"),
            Metadata::of(old).text("name"),
        );
        if name != was {
            return Err(Failure::malformed(format!(
                "the name of the object ({name}) does not match the name on the URL ({was})"
            )));
        }
        let namespace = Metadata::of(old).text("namespace");
        match self.check_namespace(&decoded.object, namespace) {
            Some(failure) => Err(failure),
            None => Ok(decoded),
        }
    }

    fn api_version(&self) -> String {
        gvk::api_version(&self.definition.group, &self.definition.version)
    }

    fn settle_metadata(&self, object: &mut Value, namespace: &str) {
        let is_namespaced = self.definition.is_namespaced;
        let metadata = metadata_mut(object);
        for name in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata.remove(name);
        }
        metadata.insert("generation".to_owned(), 1.into());
        if !is_namespaced {
            metadata.remove("namespace");
        } else if !metadata.contains_key("namespace") && !namespace.is_empty() {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        let prefix = metadata
            .get("generateName")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if let Some(prefix) = prefix.filter(|_| !metadata.contains_key("name")) {
            // The server's random characters are unknown, but naming rules apply to the complete
            // name, so append some letters.
            metadata.insert("name".to_owned(), format!("{prefix}xxxxx").into());
        }
    }

    fn check_namespace(&self, object: &Value, namespace: &str) -> Option<Failure> {
        let found = Metadata::of(object).text("namespace");
        let differs = self.definition.is_namespaced && !found.is_empty() && found != namespace;
        differs.then(|| {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            Failure::malformed(message.to_owned())
        })
    }

    /// Returns a stored object as the server reads it: pruned and defaulted according to the
    /// current schema, and with the fields that every stored object has.
    pub fn read(&self, stored: &Value) -> Value {
        let mut object = self.read_stored(stored);
        replace_field(&mut object, "apiVersion", Some(self.api_version().into()));
        let metadata = metadata_mut(&mut object);
        metadata.entry("generation").or_insert_with(|| 1.into());
        object
    }

    /// Returns an object as the server reads it from its store. If another version is stored, the
    /// object only has what both versions have, and the defaults of the stored one. If a webhook
    /// converts between them, its result isn't known, so nothing is dropped.
    fn read_stored(&self, object: &Value) -> Value {
        let schema = &self.definition.schema;
        match &self.definition.stored_schema {
            Some(stored) => decode::convert(&decode::read_stored(object, stored), schema),
            None => decode::read_stored(object, schema),
        }
    }

    /// Converts an object from another version, like the server does with the strategy `None`:
    /// fields that only exist in the other version are dropped.
    pub fn convert(&self, object: &Value) -> Value {
        let mut object = decode::convert(object, &self.definition.schema);
        replace_field(&mut object, "apiVersion", Some(self.api_version().into()));
        object
    }

    fn prepare_update(&self, mut new: Value, old: &Value) -> Value {
        if self.definition.has_status {
            replace_field(&mut new, "status", old.get("status").cloned());
        }
        let generation = Metadata::of(old).generation();
        // Metadata-only writes don't increment the generation.
        let counts = without_metadata(&new) != without_metadata(old);
        let metadata = metadata_mut(&mut new);
        metadata.insert("generation".to_owned(), (generation + i64::from(counts)).into());
        let is_forced = ["creationTimestamp", "deletionTimestamp"];
        let is_default = [
            "uid",
            "resourceVersion",
            "namespace",
            "deletionGracePeriodSeconds",
        ];
        for name in is_forced.into_iter().chain(is_default) {
            let Some(value) = old["metadata"].get(name) else {
                continue;
            };
            if is_forced.contains(&name) || !metadata.contains_key(name) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        new
    }

    fn conclude_update(&self, new: Value, old: &Value) -> Verdict {
        let mut findings = Findings::default();
        self.check_common(&new, old, &mut findings);
        self.check_updated(&new, old, &mut findings);
        if findings.errors.is_empty() {
            let (new, old) = (Metadata::of(&new), Metadata::of(old));
            findings
                .warnings
                .extend(metadata::find_odd_finalizers(new, Some(old)));
        }
        self.conclude(new, findings)
    }

    fn check_created(&self, object: &Value, findings: &mut Findings) {
        let schema = &self.definition.schema;
        let errors = self.check_type_meta(object);
        if errors.is_empty() {
            let (metadata, field) = (Metadata::of(object), Path::root().child("metadata"));
            let is_namespaced = self.definition.is_namespaced;
            let names = match self.is_builtin {
                true => NameRule::of_builtin(&self.definition.group, &self.definition.kind),
                false => NameRule::Subdomain,
            };
            findings
                .errors
                .extend(metadata::check_new(metadata, is_namespaced, names, &field));
            match self.is_builtin {
                true => self.check_builtin(object, None, findings),
                false => {
                    let mut checker = Checker::new(Path::root(), &mut findings.undecided);
                    findings.errors.extend(checker.find_errors(object, schema, None));
                }
            }
            findings.errors.extend(self.check_scale(object));
        }
        findings.errors.extend(errors);
        findings
            .errors
            .extend(check_embedded(object, schema, &Path::root()));
        findings
            .errors
            .extend(find_duplicates(object, schema, &Path::root()));
        self.run_rules(object, None, findings);
    }

    fn check_common(&self, new: &Value, old: &Value, findings: &mut Findings) {
        findings.errors.extend(metadata::check_new(
            Metadata::of(new),
            self.definition.is_namespaced,
            NameRule::PathSegment,
            &Path::root().child("metadata"),
        ));
        findings.errors.extend(check_changed_metadata(new, old));
    }

    fn check_updated(&self, new: &Value, old: &Value, findings: &mut Findings) {
        let schema = &self.definition.schema;
        let errors = self.check_type_meta(new);
        if errors.is_empty() {
            findings.errors.extend(check_changed_metadata(new, old));
            match self.is_builtin {
                true => self.check_builtin(new, Some(old), findings),
                false => {
                    let correlated = Correlated::new(new, old, schema);
                    let mut checker = Checker::new(Path::root(), &mut findings.undecided);
                    findings
                        .errors
                        .extend(checker.find_errors(new, schema, Some(correlated)));
                }
            }
            findings.errors.extend(self.check_scale(new));
        }
        findings.errors.extend(errors);
        findings.errors.extend(check_embedded(new, schema, &Path::root()));
        findings.errors.extend(self.find_new_duplicates(new, old));
        self.run_rules(new, Some(old), findings);
    }

    /// Checks an object of a built-in kind, by its schema and by the server's rules in code. Fields
    /// that the schema requires become warnings: the server decodes absent ones as empty, which only
    /// some rules refuse.
    fn check_builtin(&self, object: &Value, old: Option<&Value>, findings: &mut Findings) {
        let Definition { group, kind, .. } = &self.definition;
        let complete = |object: &Value| {
            let mut object = object.clone();
            builtin_defaults::set_defaults(group, kind, &mut object);
            object
        };
        let mut checker = Checker::of_builtin(Path::root(), &mut findings.undecided, &[]);
        let errors = checker.find_errors(object, &self.definition.schema, None);
        // The server fails to decode such an object, so it doesn't check the rest.
        let is_decoded = errors.iter().all(|error| error.reason != Reason::TypeInvalid);
        let old = old.map(complete);
        let rules = match is_decoded {
            true => builtin_rules::find_violations(group, kind, &complete(object), old.as_ref()),
            false => Vec::new(),
        };
        for error in errors {
            match error.reason {
                // The words of the rules are the server's.
                _ if rules.iter().any(|known| known.field == error.field) => {}
                Reason::Required => findings.warnings.push(error.to_string()),
                _ => findings.errors.push(error),
            }
        }
        findings.errors.extend(rules);
    }

    fn check_status(&self, new: &Value, old: &Value, findings: &mut Findings) {
        let schema = &self.definition.schema;
        let errors = self.check_type_meta(new);
        if errors.is_empty() {
            findings.errors.extend(check_changed_metadata(new, old));
            if let (Some(status), Some(inner)) = (new.get("status"), schema.properties.get("status")) {
                let correlated = Correlated::new(new, old, schema).key("status");
                let mut checker = Checker::new(Path::root().child("status"), &mut findings.undecided);
                findings
                    .errors
                    .extend(checker.find_errors(status, inner, correlated));
            }
            let scale = self.definition.scale.as_ref();
            findings
                .errors
                .extend(scale.map(|scale| scale.check_status(new)).unwrap_or_default());
        }
        findings.errors.extend(errors);
        findings.errors.extend(self.find_new_duplicates(new, old));
        self.run_rules(new, Some(old), findings);
    }

    fn check_type_meta(&self, object: &Value) -> Vec<FieldError> {
        let wanted = [
            ("kind", self.definition.kind.clone()),
            ("apiVersion", self.api_version()),
        ];
        let mut errors = Vec::new();
        for (name, wanted) in wanted {
            let found = object[name].as_str().unwrap_or_default();
            if found != wanted {
                let detail = format!("must be {wanted}");
                errors.push(FieldError::invalid(
                    &Path::root().child(name),
                    &found.into(),
                    &detail,
                ));
            }
        }
        errors
    }

    fn check_scale(&self, object: &Value) -> Vec<FieldError> {
        let Some(scale) = &self.definition.scale else {
            return Vec::new();
        };
        scale
            .check_spec(object)
            .into_iter()
            .chain(scale.check_status(object))
            .collect()
    }

    // Updates may keep duplicates that already existed.
    fn find_new_duplicates(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let find = |object| find_duplicates(object, &self.definition.schema, &Path::root());
        if find(old).is_empty() {
            find(new)
        } else {
            Vec::new()
        }
    }

    fn run_rules(&self, object: &Value, old: Option<&Value>, findings: &mut Findings) {
        let Some(rules) = &self.rules else { return };
        if findings.errors.iter().any(|error| error.reason.blocks_rules()) {
            findings
                .errors
                .push(FieldError::invalid(&Path::root(), &Value::Null, BLOCKED));
            return;
        }
        let correlated = old.map(|old| Correlated::new(object, old, &self.definition.schema));
        let found = rules.run(object, old, Ratchet::new(correlated));
        findings.errors.extend(found.errors);
        findings.warnings.extend(found.warnings);
        findings.undecided.extend(found.undecided);
    }

    fn conclude(&self, object: Value, findings: Findings) -> Verdict {
        if findings.errors.is_empty() {
            return Verdict {
                // The response isn't the object as stored, but what the server gets when it decodes
                // the stored object again.
                result: Ok(prune::encode(&self.read_stored(&object))),
                warnings: findings.warnings,
                undecided: findings.undecided,
            };
        }
        let Definition { kind, group, .. } = &self.definition;
        let failure = Failure::Invalid {
            kind: kind.clone(),
            group: group.clone(),
            name: Metadata::of(&object).text("name").to_owned(),
            errors: findings.errors.clone(),
        };
        refuse(failure, findings)
    }
}

fn refuse(failure: Failure, findings: Findings) -> Verdict {
    Verdict {
        result: Err(failure),
        warnings: findings.warnings,
        undecided: findings.undecided,
    }
}

fn check_changed_metadata(new: &Value, old: &Value) -> Vec<FieldError> {
    let (new, old) = (Metadata::of(new), Metadata::of(old));
    let mut errors = metadata::check_changed(new, old, &Path::root().child("metadata"));
    // Objects that don't come from a server lack a resource version.
    if old.text("resourceVersion").is_empty() {
        errors.retain(|error| error.field != "metadata.resourceVersion");
    }
    errors
}

/// Same as what the server does when it reads a CRD.
fn settle_schema(schema: &mut Schema) {
    schema
        .enumeration
        .iter_mut()
        .for_each(|value| *value = prune::encode(value));
    if let Some(mut default) = schema.default.as_ref().map(prune::encode) {
        let bare = Schema {
            default: None,
            ..schema.clone()
        };
        prune::prune_default(&mut default, &bare);
        schema.default = Some(default);
    }
    let inner = schema.properties.values_mut();
    let inner = inner
        .chain(&mut schema.items)
        .chain(&mut schema.additional_properties);
    inner.for_each(|inner| settle_schema(std::sync::Arc::make_mut(inner)));
}

fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it has just become an object"),
    }
}

fn without_metadata(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.remove("metadata");
    }
    content
}

fn replace_field(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => drop(fields.insert(name.to_owned(), value)),
        None => drop(fields.remove(name)),
    }
}

/// Removes duplicate owners. Returns their UIDs, if any.
fn remove_repeated_owners(object: &mut Value) -> Option<Vec<String>> {
    let owners = object.pointer_mut("/metadata/ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::new();
    let mut repeated = Vec::new();
    for owner in owners.drain(..) {
        match kept.contains(&owner) {
            true => repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned()),
            false => kept.push(owner),
        }
    }
    *owners = kept;
    (!repeated.is_empty()).then_some(repeated)
}
