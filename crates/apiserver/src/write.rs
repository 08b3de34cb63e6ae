//! Writes: validation and defaulting before an object is stored.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::changes::Changes;
use super::failure::{Cause, Failure};
use super::fields::Fields;
use super::kinds::{Definition, ResourceId, Version, string_at};
use super::managers::{self, Manager};
use super::read::key_of;
use super::request::{Request, Verb};
use super::roles::Permission;
use super::store::State;
use super::versions::Versions;
use super::warnings::Warnings;
use super::webhooks::Reviews;
use super::{builtin, crds, services};

#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) request: &'a Request,
    pub(super) definition: &'a Definition,
    pub(super) version: &'a Version,
    pub(super) manager: &'a str,
    pub(super) warnings: &'a Warnings,
    pub(super) reviews: &'a Reviews,
}

impl<'a> Writer<'a> {
    pub(super) fn versions(&self) -> Versions<'a> {
        Versions {
            definition: self.definition,
            reviews: self.reviews,
        }
    }

    pub(super) fn id(&self) -> &ResourceId {
        &self.definition.id
    }

    /// Returns `status` or an empty string. Writing to `scale` writes the object itself.
    pub(super) fn part(&self) -> &str {
        self.request
            .subresource
            .as_deref()
            .filter(|name| *name == "status")
            .unwrap_or_default()
    }

    pub(super) fn is_dry_run(&self) -> bool {
        // A deletion with a body ignores the parameter.
        let is_deletion = matches!(self.request.verb, Verb::Delete | Verb::DeleteCollection);
        match &self.request.body {
            body if is_deletion && !body.is_null() => body["dryRun"][0] == "All",
            _ => self.request.parameter("dryRun") == "All",
        }
    }

    pub(super) fn manager(&self, applies: bool, now: String) -> Manager {
        Manager {
            name: self.manager.to_owned(),
            applies,
            api_version: self.definition.api_version(&self.version.name),
            subresource: self.request.subresource.clone().unwrap_or_default(),
            time: now,
            fields: Fields::default(),
        }
    }

    pub(super) fn sent(&self) -> Result<Value, Failure> {
        let mut object = self.request.body.clone();
        let kind = &self.definition.kind;
        if !object.is_object()
            || !matches!(
                object.get("metadata"),
                None | Some(Value::Null | Value::Object(_))
            )
        {
            let message = format!(
                "the object provided is unrecognized (must be of type {kind}): it is not a JSON object"
            );
            return Err(Failure::bad_request(message));
        }
        let expected = self.definition.api_version(&self.version.name);
        let (found, found_version) = (string_at(&object, "/kind"), string_at(&object, "/apiVersion"));
        if self.definition.custom && found.is_empty() {
            let message =
                format!("the object provided is unrecognized (must be of type {kind}): 'Kind' is missing");
            return Err(Failure::bad_request(message));
        }
        if !found.is_empty() && (found != kind || found_version != expected) {
            let message = format!(
                "{found} in version \"{found_version}\" cannot be handled as a {kind}: \
                 the path asks for {kind} in version \"{expected}\""
            );
            return Err(Failure::bad_request(message));
        }
        object["apiVersion"] = expected.into();
        object["kind"] = kind.clone().into();
        self.set_namespace(&mut object)?;
        Ok(object)
    }

    pub(super) fn set_namespace(&self, object: &mut Value) -> Result<(), Failure> {
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        let wanted = self.request.namespace.as_deref().unwrap_or_default();
        let found = string_at(object, "/metadata/namespace");
        if !wanted.is_empty() && !found.is_empty() && found != wanted {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Failure::bad_request(message));
        }
        // The path is authoritative: cluster-scoped objects lose a namespace set by the client.
        match &self.request.namespace {
            Some(namespace) => object["metadata"]["namespace"] = namespace.clone().into(),
            None => drop(
                object["metadata"]
                    .as_object_mut()
                    .and_then(|metadata| metadata.remove("namespace")),
            ),
        }
        Ok(())
    }
}

impl State {
    pub(super) fn create(&mut self, writer: Writer<'_>) -> Result<Arc<Value>, Failure> {
        let object = writer.decoded()?;
        self.save(writer, None, object, None)
    }

    pub(super) fn update(&mut self, writer: Writer<'_>) -> Result<Arc<Value>, Failure> {
        // Don't fail yet; an undecodable body takes precedence over a missing object.
        let old = self.named(writer.request);
        let object = writer.decoded()?;
        let name = writer.request.name.as_deref().unwrap_or_default();
        let found = string_at(&object, "/metadata/name");
        if !found.is_empty() && found != name {
            let message =
                format!("the name of the object ({found}) does not match the name on the URL ({name})");
            return Err(Failure::bad_request(message));
        }
        let old = old?;
        let version = string_at(&object, "/metadata/resourceVersion");
        if matches!(version, "" | "0") && !builtin::takes_blind_updates(writer.definition) {
            let cause = Cause::invalid(
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            );
            return Err(Failure::invalid_resource(writer.id(), name, cause));
        }
        self.save(writer, Some(old), object, None)
    }

    /// Validates and stores a decoded object's new state. `managers` is set for applies.
    pub(super) fn save(
        &mut self,
        writer: Writer<'_>,
        stored: Option<Arc<Value>>,
        new: Value,
        managers: Option<Vec<Manager>>,
    ) -> Result<Arc<Value>, Failure> {
        let old = match &stored {
            None => None,
            Some(stored) => Some(writer.versions().read(stored, writer.version)?),
        };
        let (new, managers) = self.admit(writer, old.as_deref(), new, managers)?;
        let mut new = match &old {
            Some(old) => update_object(writer, old, new)?,
            None => {
                // Creating an object through an apply also requires the permission to create it.
                if writer.request.verb == Verb::Patch && !writer.request.by_admin {
                    let permission = Permission {
                        verb: Verb::Create,
                        ..Permission::of(writer.request)
                    };
                    match &writer.request.user {
                        Some(user) => self.roles_of(user).check(permission)?,
                        None => self.roles.check(permission)?,
                    }
                }
                self.complete_new(writer, new)?
            }
        };
        let served = if *writer.id() == ResourceId::crds() && writer.part().is_empty() {
            let now = self.now();
            // Preserve the conditions with their transition times, unless the names have changed.
            let conditions = old.as_ref().map(|old| old["status"].clone());
            let described = crds::establish_crd(&mut new, &now, writer.definition)?;
            if let Some(status) =
                conditions.filter(|status| status["acceptedNames"] == new["status"]["acceptedNames"])
            {
                new["status"] = status;
            }
            Some(described)
        } else {
            None
        };
        count_generation(writer, old.as_deref(), &mut new);
        let changes_managers = self.note_managers(writer, old.as_deref(), &mut new, managers)?;
        // Allocated fields have no manager.
        self.allocate(writer, old.as_deref(), &mut new)?;
        self.validate(writer, old.as_deref(), &new)?;
        let charges = self.check_quotas(writer, old.as_deref(), &new)?;
        if old.is_none() {
            self.check_absent(writer, &new)?;
        }
        drop(old);
        let mut new = writer.versions().to_stored(new)?;
        // Serving a kind anew closes its watches, so skip this if its definition is unchanged.
        let served = served.filter(|_| stored.as_ref().is_none_or(|stored| stored["spec"] != new["spec"]));
        if let Some(stored) = stored {
            // Like kube-apiserver, skip no-op writes.
            if !changes_managers && is_same(&stored, &new) {
                return Ok(stored);
            }
            // Dry runs return the stored resource version.
            set(
                &mut new["metadata"],
                "resourceVersion",
                stored["metadata"].get("resourceVersion").cloned(),
            );
        }
        // Convert the response before storing anything, since its conversion may be pending.
        writer.versions().read(&new, writer.version)?;
        if writer.is_dry_run() {
            return Ok(Arc::new(new));
        }
        if let Some(described) = served {
            self.serve(described);
        }
        self.charge(charges);
        Ok(self.settle(
            writer.id(),
            key_of(writer.request, string_at(&new, "/metadata/name")),
            new,
        ))
    }

    fn allocate(&self, writer: Writer<'_>, old: Option<&Value>, new: &mut Value) -> Result<(), Failure> {
        let definition = writer.definition;
        if !services::allocates(definition) || !writer.part().is_empty() {
            return Ok(());
        }
        let name = string_at(new, "/metadata/name").to_owned();
        let own = key_of(writer.request, &name);
        let others = self.objects(writer.id()).filter(|(key, _)| **key != own);
        let allocated = services::allocate(old, new, others.map(|(_, other)| &**other), self.version());
        allocated.map_err(|cause| Failure::invalid(definition, &name, &[cause]))
    }

    /// Stores an object, or removes it if it's being deleted and nothing holds it back.
    pub(super) fn settle(&mut self, id: &ResourceId, key: super::store::Key, object: Value) -> Arc<Value> {
        if is_released(&object) {
            self.remove(id, &key);
            if *id == ResourceId::crds() {
                self.abandon(&object);
            }
            return Arc::new(object);
        }
        self.put(id, key, object)
    }

    /// Runs the mutating admission plugins and webhooks.
    fn admit(
        &mut self,
        writer: Writer<'_>,
        old: Option<&Value>,
        mut object: Value,
        managers: Option<Vec<Manager>>,
    ) -> Result<(Value, Option<Vec<Manager>>), Failure> {
        if old.is_none() {
            self.check_namespace(writer, string_at(&object, "/metadata/name"))?;
        }
        self.check_escalation(writer, old, &object)?;
        if !writer.is_reviewed() && !writer.is_plugged() {
            return Ok((object, managers));
        }
        // Update the managers before calling webhooks; fields changed by webhooks remain unmanaged.
        let before = object.clone();
        self.note_managers(writer, old, &mut object, managers.clone())?;
        let noted = object.clone();
        self.run_plugins(writer, old, &mut object)?;
        if writer.is_reviewed() {
            object = self.mutate(writer, old, object)?;
        }
        if object == noted {
            return Ok((before, managers));
        }
        let noted = managers::read_managers(&noted);
        Ok((object, Some(managers.unwrap_or(noted))))
    }

    fn check_absent(&self, writer: Writer<'_>, object: &Value) -> Result<(), Failure> {
        let name = string_at(object, "/metadata/name");
        match self.get(writer.id(), &key_of(writer.request, name)) {
            Some(existing) => Err(Failure::already_exists(writer.id(), existing)),
            None => Ok(()),
        }
    }

    fn complete_new(&mut self, writer: Writer<'_>, mut object: Value) -> Result<Value, Failure> {
        let definition = writer.definition;
        let prefix = string_at(&object, "/metadata/generateName").to_owned();
        if string_at(&object, "/metadata/name").is_empty() && !prefix.is_empty() {
            object["metadata"]["name"] = format!("{prefix}{}", self.suffix()).into();
        }
        // Check this before validation, which drops the resource version.
        let is_versioned = !string_at(&object, "/metadata/resourceVersion").is_empty();
        if let Some(fields) = object
            .as_object_mut()
            .filter(|_| writer.version.status && definition.kind != "Node")
        {
            fields.remove("status");
        }
        if !definition.custom {
            let has_status = writer.version.status;
            builtin::complete_object(&definition.kind, &mut object, has_status, &self.now());
        }
        let mut object = writer.judge_new(object)?;
        if is_versioned && writer.request.verb == Verb::Create {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::new(500, "", message));
        }
        let (uid, now) = (self.uid(), self.now());
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for name in [
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "managedFields",
                "resourceVersion",
                "selfLink",
            ] {
                metadata.remove(name);
            }
            metadata.insert("uid".to_owned(), uid.into());
            metadata.insert("creationTimestamp".to_owned(), now.into());
        }
        if definition.kind == "Job" && !definition.custom {
            builtin::generate_selector(&mut object);
        }
        Ok(object)
    }

    pub(super) fn check_namespace(&self, writer: Writer<'_>, name: &str) -> Result<(), Failure> {
        let Some(namespace) = &writer.request.namespace else {
            return Ok(());
        };
        let namespaces = ResourceId::namespaces();
        let found = self.get(&namespaces, &(String::new(), namespace.clone()));
        let found = found.ok_or_else(|| Failure::not_found(&namespaces, namespace))?;
        if found["metadata"].get("deletionTimestamp").is_none() {
            return Ok(());
        }
        let cause = Cause {
            reason: "NamespaceTerminating",
            field: "metadata.namespace".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
        };
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(Failure::forbidden(writer.id(), name, &why, Some(cause)))
    }

    /// Updates the managed fields. Returns whether anything but timestamps changed, since the
    /// server ignores writes that only change these.
    fn note_managers(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        new: &mut Value,
        applied: Option<Vec<Manager>>,
    ) -> Result<bool, Failure> {
        let before = old.map(managers::read_managers).unwrap_or_default();
        let managers = match applied {
            Some(managers) => managers,
            None => {
                let nothing = serde_json::json!({ "metadata": {} });
                let old = old.unwrap_or(&nothing);
                let versions = writer.versions();
                let mut changes = Changes::new(versions, writer.version, old, new, writer.part());
                let mut managers = before.clone();
                managers::note_update(&mut managers, writer.manager(false, self.now()), &mut changes)?;
                managers
            }
        };
        managers::write_managers(new, managers);
        Ok(!managers::own_the_same(&before, &managers::read_managers(new)))
    }
}

fn update_object(writer: Writer<'_>, old: &Value, mut new: Value) -> Result<Value, Failure> {
    check_identity(writer, old, &new)?;
    if !writer.definition.custom {
        keep_server_fields(writer, old, &mut new);
    }
    let managed = old["metadata"].get("managedFields").cloned();
    set(&mut new["metadata"], "managedFields", managed.clone());
    let mut new = writer.judge_update(new, old)?;
    set(&mut new["metadata"], "managedFields", managed);
    Ok(new)
}

/// Restores fields that clients can't change in a built-in kind. For custom resources, this is done
/// by the judge.
fn keep_server_fields(writer: Writer<'_>, old: &Value, new: &mut Value) {
    if writer.part() == "status" {
        keep_all_but_status(writer, old, new);
    } else if writer.version.status {
        set(new, "status", old.get("status").cloned());
    }
    let metadata = &old["metadata"];
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = metadata.get(name) {
            set(&mut new["metadata"], name, Some(value.clone()));
        }
    }
    for name in ["generation", "selfLink", "deletionGracePeriodSeconds"] {
        set(&mut new["metadata"], name, metadata.get(name).cloned());
    }
    for name in ["name", "uid", "resourceVersion"] {
        if matches!(string_at(&new["metadata"], &format!("/{name}")), "" | "0") {
            set(&mut new["metadata"], name, metadata.get(name).cloned());
        }
    }
}

/// Unlike for custom resources, a write of the status may change most of the metadata.
fn keep_all_but_status(writer: Writer<'_>, old: &Value, new: &mut Value) {
    let (status, mut metadata) = (new["status"].take(), new["metadata"].take());
    let kept: &[&str] = match writer.definition.kind.as_str() {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences"],
        _ => &[],
    };
    for name in kept {
        set(&mut metadata, name, old["metadata"].get(*name).cloned());
    }
    *new = old.clone();
    set(new, "status", Some(status));
    set(new, "metadata", Some(metadata));
    builtin::encode_status(&writer.definition.kind, new);
}

fn check_identity(writer: Writer<'_>, old: &Value, new: &Value) -> Result<(), Failure> {
    let (id, name) = (writer.id(), string_at(old, "/metadata/name"));
    let (uid, is) = (string_at(new, "/metadata/uid"), string_at(old, "/metadata/uid"));
    if !uid.is_empty() && uid != is && writer.request.verb == Verb::Update {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {is}");
        return Err(Failure::conflict(id, name, &why));
    }
    let version = string_at(new, "/metadata/resourceVersion");
    if !matches!(version, "" | "0") && version != string_at(old, "/metadata/resourceVersion") {
        return Err(Failure::modified(id, name));
    }
    Ok(())
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => drop(fields.insert(name.to_owned(), value)),
        None => drop(fields.remove(name)),
    }
}

fn count_generation(writer: Writer<'_>, old: Option<&Value>, new: &mut Value) {
    // For custom resources, the judge increments it.
    let is_counted = writer.definition.counts_generation && !writer.definition.custom;
    if !is_counted || writer.part() == "status" {
        return;
    }
    let ignored: &[&str] = match writer.version.status || *writer.id() == ResourceId::crds() {
        true => &["metadata", "apiVersion", "status"],
        false => &["metadata", "apiVersion"],
    };
    let generation = match old {
        None => 1,
        Some(old) => {
            let before = old["metadata"]["generation"].as_i64().unwrap_or(1);
            let is_changed = !is_same_except(ignored, old, new);
            let kind = &writer.definition.kind;
            before + i64::from(builtin::changes_generation(kind, old, new, is_changed))
        }
    };
    new["metadata"]["generation"] = generation.into();
}

fn is_same(old: &Value, new: &Value) -> bool {
    is_same_except(&["metadata"], old, new)
        && is_same_except(&["managedFields"], &old["metadata"], &new["metadata"])
}

fn is_same_except(ignored: &[&str], old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old == new;
    };
    // Field order may differ with serde_json's `preserve_order`, so don't compare the maps
    // directly.
    let compared = |name: &String| !ignored.contains(&name.as_str());
    let same = |(name, value): (&String, &Value)| new.get(name) == Some(value);
    old.keys().filter(|name| compared(name)).count() == new.keys().filter(|name| compared(name)).count()
        && old.iter().filter(|(name, _)| compared(name)).all(same)
}

/// Returns true if an object is being deleted without any finalizers or grace period to hold it
/// back.
pub(super) fn is_released(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let waits = metadata["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default()
        > 0;
    // Namespaces also have finalizers in their spec.
    let is_namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
    let is_held = !empty(&metadata["finalizers"]) || is_namespace && !empty(&object["spec"]["finalizers"]);
    metadata.get("deletionTimestamp").is_some() && !waits && !is_held
}
