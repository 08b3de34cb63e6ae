//! Deletes objects, either immediately or once the last finalizer is removed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::{ResourceId, string_at};
use super::parameters;
use super::read::key_of;
use super::request::{Request, Verb};
use super::selectors::Selector;
use super::store::{Key, State};
use super::versions::Selected;
use super::write::{Writer, is_released};

/// Built-in kinds whose storage is configured to return the deleted object. All others return a
/// `Status`.
const SHOWN: &[&str] = &[
    "CSIDriver",
    "CSINode",
    "DeviceClass",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "ResourceSlice",
    "Service",
    "ServiceAccount",
    "StorageClass",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// Namespaces that admission protects from deletion.
const IMMORTAL: &[&str] = &["default", "kube-public", "kube-system"];

/// Kinds whose dependents are orphaned by default, as they were before garbage collection existed.
const ORPHANING: &[(&str, &str)] = &[("", "replicationcontrollers"), ("batch", "jobs")];

const PODS_STAY: &str = "child pods are preserved by default when jobs are deleted; set \
    propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Finalizers that the garbage collector removes.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// The options of a deletion, from the body of the request or, without a body, from its parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    /// `Background`, `Foreground` or `Orphan`; `None` leaves it to the kind and the object.
    pub(super) policy: Option<&'static str>,
    grace_period: Option<i64>,
    pub(super) is_dry_run: bool,
    uid: String,
    resource_version: String,
}

impl DeleteOptions {
    pub(super) fn read(request: &Request) -> Result<Self, Failure> {
        match &request.body {
            Value::Null => Self::parse(&parameters::delete_options(request)),
            body => Self::parse(body),
        }
    }

    pub(super) fn parse(options: &Value) -> Result<Self, Failure> {
        parameters::check_delete_options(options)?;
        let policy = match string_at(options, "/propagationPolicy") {
            "Background" => Some("Background"),
            "Foreground" => Some("Foreground"),
            "Orphan" => Some("Orphan"),
            _ => None,
        };
        // The predecessor of `propagationPolicy`.
        let former = options["orphanDependents"].as_bool();
        let conditions = &options["preconditions"];
        Ok(Self {
            policy: policy.or(former.map(|orphans| if orphans { "Orphan" } else { "Background" })),
            grace_period: options["gracePeriodSeconds"].as_i64(),
            is_dry_run: options["dryRun"][0] == "All",
            uid: string_at(conditions, "/uid").to_owned(),
            resource_version: string_at(conditions, "/resourceVersion").to_owned(),
        })
    }

    pub(super) fn of_policy(policy: &'static str) -> Self {
        Self {
            policy: Some(policy),
            ..Self::default()
        }
    }
}

impl State {
    pub(super) fn delete(&mut self, writer: Writer<'_>) -> Result<Value, Failure> {
        let options = DeleteOptions::read(writer.request)?;
        self.delete_named(writer, &options)
    }

    pub(super) fn delete_named(
        &mut self,
        writer: Writer<'_>,
        options: &DeleteOptions,
    ) -> Result<Value, Failure> {
        let object = self.named(writer.request)?;
        // The object may be unreadable because its conversion webhook fails. It can't be deleted
        // then.
        writer.versions().get(&object, writer.version)?;
        warn_about_pods(writer, options);
        self.delete_object(writer, &object, options)
    }

    pub(super) fn delete_collection(&mut self, writer: Writer<'_>) -> Result<Vec<(Key, Selected)>, Failure> {
        let options = DeleteOptions::read(writer.request)?;
        let selector = Selector::read(writer.request, writer.version, false)?;
        warn_about_pods(writer, &options);
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
            self.delete_object(writer, &object.stored, &options)?;
        }
        Ok(selected)
    }

    fn delete_object(
        &mut self,
        writer: Writer<'_>,
        object: &Arc<Value>,
        options: &DeleteOptions,
    ) -> Result<Value, Failure> {
        check_preconditions(writer, object, options)?;
        let (definition, name) = (writer.definition, string_at(object, "/metadata/name"));
        if *writer.id() == ResourceId::namespaces() && IMMORTAL.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden(writer.id(), name, why, None));
        }
        self.review_deletion(writer, object)?;
        let mut last = self.marked(writer.id(), object, options);
        let gone = is_released(&last);
        if !gone {
            // Converting the response may also require a webhook, so do it before storing anything.
            writer.versions().read(&last, writer.version)?;
        }
        if !options.is_dry_run {
            let namespace = string_at(object, "/metadata/namespace").to_owned();
            let key = match namespace.as_str() {
                "" => key_of(writer.request, name),
                _ => (namespace, name.to_owned()),
            };
            if gone || last != **object {
                last = Value::clone(&*self.settle(writer.id(), key, last));
            }
        }
        if !gone {
            return Ok(last);
        }
        if !definition.custom && SHOWN.contains(&definition.kind.as_str()) {
            // Only Pods are marked before they are removed.
            return Ok(if is_pod(object) {
                last
            } else {
                Value::clone(object)
            });
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

    /// Sets the finalizers in the spec of a namespace, which is removed with the last one.
    pub(super) fn finalize(&mut self, writer: Writer<'_>) -> Result<Value, Failure> {
        if writer.request.verb != Verb::Update {
            return Err(Failure::method_not_allowed());
        }
        let mut namespace = Value::clone(&*self.named(writer.request)?);
        let left = writer.request.body["spec"]["finalizers"].as_array();
        namespace["spec"] = match left.filter(|left| !left.is_empty()) {
            Some(left) => json!({ "finalizers": left }),
            None => json!({}),
        };
        if writer.is_dry_run() {
            return Ok(namespace);
        }
        let key = key_of(writer.request, string_at(&namespace, "/metadata/name"));
        Ok(Value::clone(&*self.settle(writer.id(), key, namespace)))
    }

    /// Returns an object with the marks of a deletion: the time, the grace period and the
    /// finalizers for the garbage collector.
    pub(super) fn marked(&self, id: &ResourceId, object: &Value, options: &DeleteOptions) -> Value {
        let mut marked = object.clone();
        let is_namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
        let metadata = &mut marked["metadata"];
        let is_going = metadata.get("deletionTimestamp").is_some();
        let left = metadata["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or_default();
        if is_going && left > 0 {
            // A repeated deletion may shorten the grace period, but changes nothing else.
            if let Some(period) = options.grace_period.filter(|period| *period < left) {
                let end = string_at(metadata, "/deletionTimestamp");
                metadata["deletionTimestamp"] = after(end, period - left).into();
                metadata["deletionGracePeriodSeconds"] = period.into();
            }
            return marked;
        }
        if is_going && is_namespace {
            return marked;
        }
        if !is_going {
            let period = grace_period(object, options);
            metadata["deletionTimestamp"] = self.now_after(period).into();
            if !is_namespace {
                metadata["deletionGracePeriodSeconds"] = period.into();
            }
            if let Some(generation) = metadata["generation"].as_i64() {
                metadata["generation"] = (generation + 1).into();
            }
        }
        set_collector_finalizers(id, metadata, options.policy);
        if is_namespace {
            marked["status"]["phase"] = "Terminating".into();
        }
        marked
    }
}

fn warn_about_pods(writer: Writer<'_>, options: &DeleteOptions) {
    if options.policy.is_none() && writer.id().group == "batch" && writer.id().plural == "jobs" {
        writer.warnings.add([PODS_STAY.to_owned()]);
    }
}

/// Adds the finalizer for a propagation policy, and removes those of other policies. Without a
/// policy, the object's own finalizers decide, then its kind.
fn set_collector_finalizers(id: &ResourceId, metadata: &mut Value, policy: Option<&str>) {
    let before = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let own = before.iter().find_map(|name| match name.as_str()? {
        ORPHAN => Some(ORPHAN),
        FOREGROUND => Some(FOREGROUND),
        _ => None,
    });
    let wanted = match policy {
        // Events have no dependents.
        _ if id.plural == "events" => None,
        Some("Orphan") => Some(ORPHAN),
        Some("Foreground") => Some(FOREGROUND),
        Some(_) => None,
        None => own.or_else(|| {
            ORPHANING
                .contains(&(id.group.as_str(), id.plural.as_str()))
                .then_some(ORPHAN)
        }),
    };
    if own == wanted {
        return;
    }
    let mut after: Vec<Value> = before;
    after.retain(|name| name != ORPHAN && name != FOREGROUND);
    after.extend(wanted.map(Value::from));
    metadata["finalizers"] = after.into();
}

fn is_pod(object: &Value) -> bool {
    object["kind"] == "Pod" && object["apiVersion"] == "v1"
}

/// The grace period in seconds. Only running Pods have one.
fn grace_period(object: &Value, options: &DeleteOptions) -> i64 {
    let runs = is_pod(object)
        && !string_at(object, "/spec/nodeName").is_empty()
        && !matches!(string_at(object, "/status/phase"), "Succeeded" | "Failed");
    if !runs {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
    match options.grace_period.or(own).unwrap_or(30) {
        // A negative period stands for the shortest one.
        ..0 => 1,
        period => period,
    }
}

/// Adds seconds to a time in the metadata format.
fn after(time: &str, seconds: i64) -> String {
    let parsed = time.parse::<Timestamp>().ok();
    let moved = parsed.and_then(|time| time.checked_add(SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(
        || time.to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

fn check_preconditions(writer: Writer<'_>, object: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    let (uid, version) = (&options.uid, &options.resource_version);
    let (is_uid, is_version) = (
        string_at(object, "/metadata/uid"),
        string_at(object, "/metadata/resourceVersion"),
    );
    let why = if !uid.is_empty() && *uid != is_uid {
        format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({is_uid}). \
             The object might have been deleted and then recreated"
        )
    } else if !version.is_empty() && *version != is_version {
        format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({is_version}). The object might have been modified"
        )
    } else {
        return Ok(());
    };
    // The message names the kind instead of the resource.
    let kind = ResourceId::new(&*writer.id().group, &*writer.definition.kind);
    Err(Failure::conflict(
        &kind,
        string_at(object, "/metadata/name"),
        &why,
    ))
}
