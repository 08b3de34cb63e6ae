//! Deletes objects, either immediately or once the last finalizer is removed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::string_at;
use super::read::key_of;
use super::selectors::Selector;
use super::store::{Key, State};
use super::versions::Selected;
use super::write::{Writer, is_released};

/// Built-in kinds whose storage is configured to return the deleted object. All others return a
/// `Status`.
const SHOWN: &[&str] = &[
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceQuota",
    "Service",
    "ServiceAccount",
];

impl State {
    pub(super) fn delete(&mut self, writer: Writer<'_>) -> Result<Value, Failure> {
        let object = self.named(writer.request)?;
        // The object may be unreadable because its conversion webhook fails. It can't be deleted
        // then.
        writer.versions().get(&object, writer.version)?;
        self.delete_object(writer, &object)
    }

    pub(super) fn delete_collection(&mut self, writer: Writer<'_>) -> Result<Vec<(Key, Selected)>, Failure> {
        let selector = Selector::read(writer.request, writer.version, false)?;
        let objects = self.objects(writer.id());
        let selected = writer.versions().select(objects, &selector, writer.version)?;
        // Call all webhooks before deleting anything, since the whole request is rerun while a
        // webhook is pending.
        for (_, object) in &selected {
            let reviewed = self.review_deletion(writer, &object.stored);
            if writer.reviews.is_pending() {
                reviewed?;
            }
        }
        for (_, object) in &selected {
            self.delete_object(writer, &object.stored)?;
        }
        Ok(selected)
    }

    fn delete_object(&mut self, writer: Writer<'_>, object: &Arc<Value>) -> Result<Value, Failure> {
        check_preconditions(writer, object)?;
        self.review_deletion(writer, object)?;
        let definition = writer.definition;
        let mut last = self.marked(object, &writer.request.body);
        let gone = is_released(&last);
        if !gone {
            // Converting the response may also require a webhook, so do it before storing anything.
            writer.versions().read(&last, writer.version)?;
        }
        if !writer.is_dry_run() {
            let namespace = string_at(object, "/metadata/namespace").to_owned();
            let key = match namespace.as_str() {
                "" => key_of(writer.request, string_at(object, "/metadata/name")),
                _ => (namespace, string_at(object, "/metadata/name").to_owned()),
            };
            if gone || last != **object {
                last = Value::clone(&*self.settle(writer.id(), key, last));
            }
        }
        if !gone || (!definition.custom && SHOWN.contains(&definition.kind.as_str())) {
            return Ok(last);
        }
        let metadata = &object["metadata"];
        let mut details = json!({
            "name": metadata["name"], "kind": definition.id.plural, "uid": metadata["uid"],
        });
        if !definition.id.group.is_empty() {
            details["group"] = definition.id.group.clone().into();
        }
        Ok(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        }))
    }

    pub(super) fn marked(&self, object: &Value, options: &Value) -> Value {
        let mut marked = object.clone();
        let finalizer = match string_at(options, "/propagationPolicy") {
            "Foreground" => Some("foregroundDeletion"),
            "Orphan" => Some("orphan"),
            _ => None,
        };
        let grace = grace_period(object, options);
        let is_namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
        let metadata = &mut marked["metadata"];
        if metadata.get("deletionTimestamp").is_some() {
            // A repeated deletion may shorten the grace period, but never extend it.
            if metadata["deletionGracePeriodSeconds"]
                .as_i64()
                .is_some_and(|left| grace < left)
            {
                metadata["deletionGracePeriodSeconds"] = grace.into();
            }
            return marked;
        }
        metadata["deletionTimestamp"] = self.now().into();
        if !is_namespace {
            metadata["deletionGracePeriodSeconds"] = grace.into();
        }
        if let Some(finalizer) = finalizer {
            if !metadata["finalizers"].is_array() {
                metadata["finalizers"] = json!([]);
            }
            if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
                finalizers.push(finalizer.into());
            }
        }
        if let Some(generation) = metadata["generation"].as_i64() {
            metadata["generation"] = (generation + 1).into();
        }
        if is_namespace {
            marked["status"]["phase"] = "Terminating".into();
        }
        marked
    }
}

/// The grace period in seconds. Only running Pods have one.
fn grace_period(object: &Value, options: &Value) -> i64 {
    let runs = object["kind"] == "Pod"
        && object["apiVersion"] == "v1"
        && !string_at(object, "/spec/nodeName").is_empty()
        && !matches!(string_at(object, "/status/phase"), "Succeeded" | "Failed");
    if !runs {
        return 0;
    }
    let asked = options["gracePeriodSeconds"].as_i64();
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
    asked.or(own).unwrap_or(30)
}

fn check_preconditions(writer: Writer<'_>, object: &Value) -> Result<(), Failure> {
    let conditions = &writer.request.body["preconditions"];
    let (uid, version) = (
        string_at(conditions, "/uid"),
        string_at(conditions, "/resourceVersion"),
    );
    let (is_uid, is_version) = (
        string_at(object, "/metadata/uid"),
        string_at(object, "/metadata/resourceVersion"),
    );
    let why = if !uid.is_empty() && uid != is_uid {
        format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({is_uid}). \
             The object might have been deleted and then recreated"
        )
    } else if !version.is_empty() && version != is_version {
        format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({is_version}). The object might have been modified"
        )
    } else {
        return Ok(());
    };
    Err(Failure::conflict(
        writer.id(),
        string_at(object, "/metadata/name"),
        &why,
    ))
}
