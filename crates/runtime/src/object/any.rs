//! Abstracts over objects whose kind is known at compile time or only at run time.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::Value;

use self::source::{KindSource, StatusSource};
use super::{DynamicKind, Kind, Object, Watchable};

/// An object that a [`Ctx`](crate::Ctx) writes, owns or records events about: every [`Object`] that
/// can be serialized, and kube's [`DynamicObject`], whose kind is only known at run time.
///
/// A `DynamicObject` must have its API version and kind in `types`. Objects from caches, responses
/// and [`DynamicKind::object`] do. Plural and scope come from the [`DynamicKind`] passed to a
/// controller or watch, or else from a single lookup in the API server's discovery.
///
/// Implemented automatically for every suitable type.
pub trait AnyObject: Watchable + Serialize {
    /// Returns the kind, if the type determines it.
    #[doc(hidden)]
    fn type_kind() -> Option<AnyKind<Self>>;

    /// Returns `kind` as the kind of objects of this type.
    #[doc(hidden)]
    fn run_time_kind(kind: &DynamicKind) -> AnyKind<Self>;

    /// Returns API version and kind, or `None` for a dynamic object that lacks them.
    #[doc(hidden)]
    fn type_meta(&self) -> Option<TypeMeta>;
}

/// A kind. Public only because a sealed trait names it.
#[doc(hidden)]
pub struct AnyKind<K: kube::Resource>(pub(crate) Kind<K>);

impl<K: Watchable + Serialize> AnyObject for K
where
    K::DynamicType: KindSource<K>,
{
    fn type_kind() -> Option<AnyKind<K>> {
        K::DynamicType::type_kind()
    }

    fn run_time_kind(kind: &DynamicKind) -> AnyKind<K> {
        K::DynamicType::run_time_kind(kind)
    }

    fn type_meta(&self) -> Option<TypeMeta> {
        K::DynamicType::type_meta(self)
    }
}

/// An object with a status for [`Ctx::apply_status`](crate::Ctx::apply_status): every [`Object`]
/// that has a status, such as those of `derive(CustomResource)` with `status = "…"`, and
/// [`DynamicObject`], whose status is JSON.
///
/// Implemented automatically for every suitable type.
pub trait WithStatus: AnyObject {
    /// The type of the status.
    type Status: Serialize;

    /// Returns the status as JSON, or `None` if there is none.
    #[doc(hidden)]
    fn status_json(&self) -> Result<Option<Value>, serde_json::Error>;
}

impl<K: AnyObject> WithStatus for K
where
    K::DynamicType: StatusSource<K>,
{
    type Status = <K::DynamicType as StatusSource<K>>::Status;

    fn status_json(&self) -> Result<Option<Value>, serde_json::Error> {
        K::DynamicType::status_json(self)
    }
}

/// Where the kind and the status of an object come from: its type, or the object itself.
///
/// The traits are implemented for the `DynamicType` of kube's `Resource`, which is `()` for types
/// that determine their kind. Implementing them for every `Object` and for `DynamicObject` would
/// overlap: Rust cannot see that `DynamicObject` has a different `DynamicType`.
mod source {
    use super::*;

    pub trait KindSource<K: kube::Resource> {
        fn type_kind() -> Option<AnyKind<K>>;
        fn run_time_kind(kind: &DynamicKind) -> AnyKind<K>;
        fn type_meta(object: &K) -> Option<TypeMeta>;
    }

    impl<K: Object> KindSource<K> for () {
        fn type_kind() -> Option<AnyKind<K>> {
            Some(AnyKind(Kind::of_type()))
        }

        fn run_time_kind(_: &DynamicKind) -> AnyKind<K> {
            AnyKind(Kind::of_type())
        }

        fn type_meta(_: &K) -> Option<TypeMeta> {
            Some(TypeMeta {
                api_version: K::api_version(&()).into_owned(),
                kind: K::kind(&()).into_owned(),
            })
        }
    }

    impl KindSource<DynamicObject> for ApiResource {
        fn type_kind() -> Option<AnyKind<DynamicObject>> {
            None
        }

        fn run_time_kind(kind: &DynamicKind) -> AnyKind<DynamicObject> {
            AnyKind(kind.into())
        }

        fn type_meta(object: &DynamicObject) -> Option<TypeMeta> {
            object.types.clone()
        }
    }

    pub trait StatusSource<K> {
        type Status: Serialize;
        fn status_json(object: &K) -> Result<Option<Value>, serde_json::Error>;
    }

    impl<K: Object + HasStatus<Status: Serialize>> StatusSource<K> for () {
        type Status = K::Status;

        fn status_json(object: &K) -> Result<Option<Value>, serde_json::Error> {
            object.status().map(serde_json::to_value).transpose()
        }
    }

    impl StatusSource<DynamicObject> for ApiResource {
        type Status = Value;

        fn status_json(object: &DynamicObject) -> Result<Option<Value>, serde_json::Error> {
            Ok(object.data.get("status").cloned())
        }
    }
}

/// Returns kind, namespace and name for messages, such as `Deployment default/web`.
pub(crate) fn describe_object<K: AnyObject>(object: &K) -> String {
    let kind = object
        .type_meta()
        .map_or_else(|| "object".to_owned(), |types| types.kind);
    match object.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", object.name_any()),
        None => format!("{kind} {}", object.name_any()),
    }
}

/// Returns a reference for events about an object. It is the same for all versions of the object.
///
/// kube's recorder compares references, so a different resource version would start a new series of
/// events.
pub(crate) fn event_reference<K: AnyObject>(object: &K) -> ObjectReference {
    let (api_version, kind) = object
        .type_meta()
        .map(|types| (types.api_version, types.kind))
        .unzip();
    let meta = object.meta();
    ObjectReference {
        api_version,
        kind,
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}

/// Returns the body of a server-side apply: the object with its `apiVersion` and `kind`, and
/// without `managedFields`.
pub(crate) fn to_apply_body<K: AnyObject + Serialize>(
    object: &K,
    kind: &Kind<K>,
) -> Result<Value, serde_json::Error> {
    let mut body = serde_json::to_value(object)?;
    body["apiVersion"] = K::api_version(&kind.dynamic).into();
    body["kind"] = K::kind(&kind.dynamic).into();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        // The server rejects an apply that contains `managedFields`.
        metadata.remove("managedFields");
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn events_about_all_versions_of_an_object_form_one_series() {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("settings".to_owned());
        object.metadata.uid = Some("1".to_owned());
        object.metadata.resource_version = Some("7".to_owned());
        let before = event_reference(&object);
        object.metadata.resource_version = Some("8".to_owned());
        assert_eq!(event_reference(&object), before);
        assert_eq!(before.kind.as_deref(), Some("ConfigMap"));
        assert_eq!(before.uid.as_deref(), Some("1"));
    }
}
