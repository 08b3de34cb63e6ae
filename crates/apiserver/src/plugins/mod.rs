//! The admission plugins of kube-apiserver that operators notice: priorities and tolerations of
//! Pods, limit ranges, quotas, and the protection of volumes in use.
//!
//! The plugin `ServiceAccount` is off, as in a test environment.

mod limits;
mod pods;
mod quotas;
mod resources;

use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::{Definition, ResourceId, string_at};
use super::store::{Key, State};
use super::write::Writer;

/// The next state of a quota, to be stored with the object that it is charged for.
pub(super) type Charge = (Key, Value);

/// Finalizers that plugins add to new objects.
const PROTECTION: &[(&str, &str, &str)] = &[
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

fn protection(id: &ResourceId) -> Option<&'static str> {
    let mut rows = PROTECTION.iter();
    let found = rows.find(|(group, plural, _)| id.group == *group && id.plural == *plural)?;
    Some(found.2)
}

fn is_node(id: &ResourceId) -> bool {
    id.group.is_empty() && id.plural == "nodes"
}

fn is_pod(definition: &Definition) -> bool {
    definition.kind == "Pod" && !definition.custom
}

impl Writer<'_> {
    /// Whether plugins may change the object.
    pub(super) fn is_plugged(&self) -> bool {
        let id = self.id();
        self.request.subresource.is_none()
            && (is_pod(self.definition) || is_node(id) || protection(id).is_some())
    }
}

impl State {
    pub(super) fn run_plugins(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), Failure> {
        if !writer.is_plugged() {
            return Ok(());
        }
        if is_pod(writer.definition) {
            return self.complete_pod(writer, old, object);
        }
        if old.is_some() {
            return Ok(());
        }
        if is_node(writer.id()) {
            // Until the node controller sees that the node is ready.
            let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
            push_new(&mut object["spec"]["taints"], taint);
        }
        if let Some(finalizer) = protection(writer.id()) {
            push_new(&mut object["metadata"]["finalizers"], finalizer.into());
        }
        Ok(())
    }

    fn complete_pod(&self, writer: Writer<'_>, old: Option<&Value>, pod: &mut Value) -> Result<(), Failure> {
        if let Some(old) = old {
            pods::keep_priority(old, pod);
        } else {
            self.set_limits(writer, pod);
            self.set_priority(writer, pod)?;
        }
        pods::add_tolerations(pod);
        Ok(())
    }

    /// Checks limit ranges and quotas. Returns the quotas to charge.
    pub(super) fn check_quotas(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<Vec<Charge>, Failure> {
        if !writer.definition.namespaced || writer.request.subresource.is_some() {
            return Ok(Vec::new());
        }
        self.check_limits(writer, old, object)?;
        self.find_charges(writer, old, object)
    }

    pub(super) fn charge(&mut self, charges: Vec<Charge>) {
        for (key, quota) in charges {
            self.put(&ResourceId::new("", "resourcequotas"), key, quota);
        }
    }

    /// Whether the result of a write depends on other objects.
    pub(super) fn depends_on_others(&self, writer: Writer<'_>) -> bool {
        let exists =
            |group: &str, plural: &str| self.objects(&ResourceId::new(group, plural)).next().is_some();
        let definition = writer.definition;
        exists("", "resourcequotas")
            || exists("", "limitranges")
            || is_pod(definition) && exists("scheduling.k8s.io", "priorityclasses")
            || definition.id.group == "rbac.authorization.k8s.io"
    }
}

/// Adds an item to a list that doesn't contain it.
fn push_new(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(items) = list.as_array_mut()
        && !items.contains(&item)
    {
        items.push(item);
    }
}

/// A plugin refuses an object.
fn refuse(writer: Writer<'_>, object: &Value, why: &str) -> Failure {
    let name = match string_at(object, "/metadata/name") {
        "" => string_at(object, "/metadata/generateName"),
        name => name,
    };
    Failure::forbidden(writer.id(), name, why, None)
}
