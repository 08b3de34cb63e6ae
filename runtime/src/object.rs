//! Which types can be reconciled, watched and applied, and how they are named.

use std::fmt::{self, Debug};
use std::hash::Hash;

use kube::api::{ApiResource, DynamicObject};
use kube::core::{ClusterResourceScope, GroupVersionKind, NamespaceResourceScope, PartialObjectMeta};
use kube::discovery;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::Lean;

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

/// A type of objects that can be watched: every [`Object`], the metadata of one ([`PartialObjectMeta`]), and
/// kube's [`DynamicObject`], whose kind is a value.
///
/// Implemented for every type that fits; nobody implements it by hand.
pub trait Watchable:
    Resource<DynamicType: Clone + Eq + Hash + Debug + Send + Sync>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watchable for K where
    K: Resource<DynamicType: Clone + Eq + Hash + Debug + Send + Sync>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A kind that is known only when the program runs, for [`DynamicObject`]s.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicKind {
    resource: ApiResource,
    namespaced: bool,
}

impl DynamicKind {
    /// A kind whose objects live in namespaces.
    pub fn namespaced(resource: ApiResource) -> Self {
        Self {
            resource,
            namespaced: true,
        }
    }

    /// A kind whose objects live once per cluster.
    pub fn cluster_wide(resource: ApiResource) -> Self {
        Self {
            resource,
            namespaced: false,
        }
    }

    /// The kind as the API server serves it: plural and scope included.
    ///
    /// # Errors
    /// When the API server does not serve such a kind, or does not answer.
    pub async fn discover(client: &Client, kind: &GroupVersionKind) -> Result<Self, kube::Error> {
        let (resource, capabilities) = discovery::pinned_kind(client, kind).await?;
        Ok(Self {
            resource,
            namespaced: capabilities.scope == discovery::Scope::Namespaced,
        })
    }

    /// Group, version, kind and plural.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }
}

/// Makes an API that speaks of a kind in objects of type `O`: in a namespace, or everywhere.
type MakeApi<K, O> = fn(Client, &<K as Resource>::DynamicType, Option<&str>) -> Api<O>;

/// What is to be known of a kind to watch it, whether its type says it or a value does.
pub(crate) struct Kind<K: Resource> {
    pub(crate) dynamic: K::DynamicType,
    pub(crate) namespaced: bool,
    api: MakeApi<K, K>,
    lean_api: MakeApi<K, Lean<K>>,
}

impl<K: Watchable> Clone for Kind<K> {
    fn clone(&self) -> Self {
        Self {
            dynamic: self.dynamic.clone(),
            ..*self
        }
    }
}

impl<K: Object> Kind<K> {
    /// The kind of a type.
    pub(crate) fn of_type() -> Self {
        Self {
            dynamic: (),
            namespaced: K::Scope::NAMESPACED,
            api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
            lean_api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
        }
    }
}

impl From<&DynamicKind> for Kind<DynamicObject> {
    fn from(kind: &DynamicKind) -> Self {
        Self {
            dynamic: kind.resource.clone(),
            namespaced: kind.namespaced,
            api: dynamic_api,
            lean_api: dynamic_api,
        }
    }
}

impl From<&DynamicKind> for Kind<PartialObjectMeta<DynamicObject>> {
    fn from(kind: &DynamicKind) -> Self {
        Self {
            dynamic: kind.resource.clone(),
            namespaced: kind.namespaced,
            api: dynamic_api,
            lean_api: dynamic_api,
        }
    }
}

fn dynamic_api<K>(client: Client, resource: &ApiResource, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = kube::core::DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    }
}

impl<K: Watchable> Kind<K> {
    /// The API of the kind, in one namespace, or everywhere.
    pub(crate) fn api(&self, client: Client, namespace: Option<&str>) -> Api<K> {
        (self.api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// [`api`](Self::api) for objects without what caches drop.
    pub(crate) fn lean_api(&self, client: Client, namespace: Option<&str>) -> Api<Lean<K>> {
        (self.lean_api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// The name of the kind, such as `Deployment`.
    pub(crate) fn name(&self) -> String {
        K::kind(&self.dynamic).into_owned()
    }

    /// `Deployment (apps/v1)`, for messages.
    pub(crate) fn describe(&self) -> String {
        format!("{} ({})", self.name(), K::api_version(&self.dynamic))
    }

    /// `deployments.apps`, for messages.
    pub(crate) fn describe_resource(&self) -> String {
        match K::group(&self.dynamic) {
            group if group.is_empty() => K::plural(&self.dynamic).into_owned(),
            group => format!("{}.{group}", K::plural(&self.dynamic)),
        }
    }

    /// The key of an object of this kind, whose scope decides whether a namespace is part of it.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> Key {
        Key {
            namespace: namespace.filter(|_| self.namespaced).map(Into::into),
            name: name.into(),
        }
    }

    /// The key that a reference to an object of this kind means.
    pub(crate) fn key_of(&self, reference: &ObjectRef<K>) -> Key {
        self.key(reference.namespace.as_deref(), &reference.name)
    }

    /// A reference to the object of this kind with this key.
    pub(crate) fn reference(&self, key: &Key) -> ObjectRef<K> {
        let reference = ObjectRef::new_with(&key.name, self.dynamic.clone());
        match &key.namespace {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
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
