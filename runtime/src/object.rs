//! Which types can be reconciled, watched and applied, and how they are named.

use std::fmt::{self, Debug};

use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A Kubernetes type known at compile time: what `derive(CustomResource)` and k8s-openapi make.
///
/// Implemented for every type that fits; nobody implements it by hand.
pub trait Object:
    Resource<DynamicType = (), Scope: Scope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: Scope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// Where objects of a kind live: in namespaces, or once per cluster.
pub trait Scope: sealed::Sealed + Send + Sync + 'static {
    /// Whether objects of this scope have a namespace.
    const NAMESPACED: bool;

    /// The API of a kind of this scope, in one namespace, or everywhere when `namespace` is `None`.
    ///
    /// A cluster-wide kind has only one API, whatever the namespace.
    fn api<K>(client: Client, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>;
}

impl Scope for NamespaceResourceScope {
    const NAMESPACED: bool = true;

    fn api<K>(client: Client, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

impl Scope for ClusterResourceScope {
    const NAMESPACED: bool = false;

    fn api<K>(client: Client, _namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>,
    {
        Api::all(client)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for kube::core::NamespaceResourceScope {}
    impl Sealed for kube::core::ClusterResourceScope {}
}

/// Namespace and name: what identifies an object among those of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

impl Key {
    pub(crate) fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().map(Into::into),
            name: meta.name.as_deref().unwrap_or_default().into(),
        }
    }

    /// The key of an object of kind `K`, whose scope decides whether a namespace is part of it.
    pub(crate) fn in_scope<K: Object>(namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.filter(|_| K::Scope::NAMESPACED).map(Into::into);
        Self {
            namespace,
            name: name.into(),
        }
    }

    pub(crate) fn to_ref<K: Object>(&self) -> ObjectRef<K> {
        let reference = ObjectRef::new(&self.name);
        match &self.namespace {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// `Deployment default/web`, for messages.
pub(crate) fn describe<K: Resource<DynamicType = ()>>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    }
}

/// `Deployment (apps/v1)`, for messages.
pub(crate) fn describe_kind<K: Resource<DynamicType = ()>>() -> String {
    format!("{} ({})", K::kind(&()), K::api_version(&()))
}

/// An object as the body of a server-side apply: typed, and without what only the server writes.
pub(crate) fn to_apply<K: Resource<DynamicType = ()> + Serialize>(
    object: &K,
) -> Result<serde_json::Value, serde_json::Error> {
    let mut body = serde_json::to_value(object)?;
    body["apiVersion"] = K::api_version(&()).into();
    body["kind"] = K::kind(&()).into();
    if let Some(metadata) = body
        .get_mut("metadata")
        .and_then(serde_json::Value::as_object_mut)
    {
        // The server refuses an apply that brings its own record of who applied what.
        metadata.remove("managedFields");
    }
    Ok(body)
}
