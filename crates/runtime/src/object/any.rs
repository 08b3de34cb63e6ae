//! Abstraction over objects whose kind is known at compile time, and those whose kind is only known
//! at runtime.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::Value;

use self::source::{KindSource, StatusSource};
use super::{DynamicKind, Kind, Object, Watchable};

/// An object that a [`Ctx`](crate::Ctx) can write, own, or record events about, i.e. every
/// [`Object`] that implements `Serialize`, and kube's [`DynamicObject`].
///
/// A `DynamicObject` must have its API version and kind in `types`. They are set for objects in
/// caches and in responses, and for those created with [`DynamicKind::object`]. If the kind was
/// passed to a controller or a watch as a [`DynamicKind`], this provides its plural name and scope.
/// Otherwise, they're looked up once with the discovery API.
///
/// There's no need to implement this yourself, because there is a blanket implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    label = "expected an object, such as one of a kind of `#[derive(CustomResource)]` or of k8s-openapi",
    note = "if it is an `Arc` of an object, such as the argument of a reconcile function, pass the object: `&*object`, or `(*object).clone()` where no reference is expected",
    note = "if it is an `Option`, pass the object if there is one; `ApplySet::extend` takes the `Option`"
)]
pub trait AnyObject: Watchable + Serialize {
    /// Returns the kind if it is determined by the type.
    #[doc(hidden)]
    fn type_kind() -> Option<AnyKind<Self>>;

    /// Converts `kind` to the kind of this type.
    #[doc(hidden)]
    fn run_time_kind(kind: &DynamicKind) -> AnyKind<Self>;

    /// Returns the API version and kind, or `None` if a dynamic object lacks them.
    #[doc(hidden)]
    fn type_meta(&self) -> Option<TypeMeta>;
}

/// A kind. Only public because it is used in a sealed trait.
#[doc(hidden)]
pub struct AnyKind<K: kube::Resource>(pub(crate) Kind<K>);

#[diagnostic::do_not_recommend]
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

/// An object whose status can be set with [`Ctx::apply_status`](crate::Ctx::apply_status), i.e.
/// every [`Object`] that has a status (e.g. with `derive(CustomResource)` and `status = "…"`), and
/// [`DynamicObject`], whose status is JSON.
///
/// There's no need to implement this yourself, because there's a blanket implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object with a status",
    label = "expected an object of a kind with a status, such as one of `#[kube(status = \"…\")]`",
    note = "if it is an `Arc` of an object, such as the argument of a reconcile function, pass the object: `&*object`"
)]
pub trait WithStatus: AnyObject {
    /// Type of the status.
    type Status: Serialize;

    /// Returns the status as JSON, or `None` if it isn't set.
    #[doc(hidden)]
    fn status_json(&self) -> Result<Option<Value>, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<K: AnyObject> WithStatus for K
where
    K::DynamicType: StatusSource<K>,
{
    type Status = <K::DynamicType as StatusSource<K>>::Status;

    fn status_json(&self) -> Result<Option<Value>, serde_json::Error> {
        K::DynamicType::status_json(self)
    }
}

/// Determines whether the kind and the status come from the type or from the object.
///
/// These traits are implemented for the `DynamicType` of a [`Resource`](kube::Resource), which is
/// `()` if the type determines the kind. They can't be implemented for each `Object` and for
/// `DynamicObject` directly: Rust doesn't know that the `DynamicType` of the latter is a different
/// one, and would report overlapping implementations.
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

    // The compiler names this trait rather than `WithStatus`, which would need it.
    #[diagnostic::on_unimplemented(
        message = "`{K}` is not a Kubernetes object with a status",
        label = "expected an object of a kind with a status, such as one of `#[kube(status = \"…\")]`"
    )]
    pub trait StatusSource<K> {
        type Status: Serialize;
        fn status_json(object: &K) -> Result<Option<Value>, serde_json::Error>;
    }

    #[diagnostic::do_not_recommend]
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

pub(crate) fn describe_object<K: AnyObject>(object: &K) -> String {
    let kind = object
        .type_meta()
        .map_or_else(|| "object".to_owned(), |types| types.kind);
    match object.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", object.name_any()),
        None => format!("{kind} {}", object.name_any()),
    }
}

/// Returns a reference for use in events, without the resource version. kube's recorder compares
/// references, so each version would start a new series of events.
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

/// Returns the body of a server-side apply, which needs `apiVersion` and `kind`.
pub(crate) fn to_apply_body<K: AnyObject + Serialize>(
    object: &K,
    kind: &Kind<K>,
) -> Result<Value, serde_json::Error> {
    let mut body = serde_json::to_value(object)?;
    body["apiVersion"] = K::api_version(&kind.dynamic).into();
    body["kind"] = K::kind(&kind.dynamic).into();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        // The API server rejects an apply that contains `managedFields`.
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
