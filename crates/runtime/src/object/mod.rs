//! Traits for types that can be reconciled, watched or applied, and descriptions of kinds.

use std::fmt::{self, Debug};
use std::hash::Hash;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::core::{
    ClusterResourceScope, GroupVersionKind, NamespaceResourceScope, ObjectMeta, PartialObjectMeta,
};
use kube::discovery;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource};
use rbuilder_kubernetes::gvk;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Implements the methods of `Resource` that identify the resource, delegating to `$object`.
macro_rules! forward_resource {
    ($object:ident) => {
        type DynamicType = $object::DynamicType;
        type Scope = $object::Scope;

        fn kind(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            $object::kind(dynamic)
        }

        fn group(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            $object::group(dynamic)
        }

        fn version(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            $object::version(dynamic)
        }

        fn plural(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
            $object::plural(dynamic)
        }

        fn metadata_api() -> bool {
            $object::metadata_api()
        }

        fn url_path(dynamic: &Self::DynamicType, namespace: Option<&str>) -> String {
            $object::url_path(dynamic, namespace)
        }
    };
}

mod any;
mod decoded;
mod lazy;
mod trimmed;

pub(crate) use any::{AnyKind, describe_object, event_reference, to_apply_body};
pub use any::{AnyObject, WithStatus};
pub use decoded::Undecodable;
pub(crate) use decoded::{Decoded, FieldError, decode_value};
pub(crate) use lazy::Lazy;
pub(crate) use trimmed::{LAST_APPLIED, Trimmed};

/// A Kubernetes type that is known at compile time, e.g. from `derive(CustomResource)` or from
/// k8s-openapi.
///
/// There's no need to implement this yourself, because there is a blanket implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object of a kind that is known at compile time",
    label = "expected a type of `#[derive(CustomResource)]` or of k8s-openapi",
    note = "if it is an `Arc` of an object, such as the argument of a reconcile function, pass the object: `&*object`",
    note = "if it is a `DynamicObject`, use the function for such kinds, such as `Controller::dynamic` or `Ctx::cached_dynamic`"
)]
pub trait Object:
    Resource<DynamicType = (), Scope: Scope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

#[diagnostic::do_not_recommend]
impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: Scope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// A type that can be watched: an [`Object`], just the metadata of one ([`PartialObjectMeta`]), or
/// kube's [`DynamicObject`] for kinds that are only known at runtime.
///
/// There is no need to implement this yourself, because there's a blanket implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    label = "expected an object, its metadata, or a `DynamicObject`",
    note = "if it is an `Arc` of an object, such as the argument of a reconcile function, pass the object: `&*object`"
)]
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

#[diagnostic::do_not_recommend]
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

/// A kind that is only known at runtime. Its objects are [`DynamicObject`]s.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicKind {
    resource: ApiResource,
    namespaced: bool,
}

impl DynamicKind {
    /// Creates a namespaced kind.
    pub fn namespaced(resource: ApiResource) -> Self {
        Self {
            resource,
            namespaced: true,
        }
    }

    /// Creates a cluster-scoped kind.
    pub fn cluster_wide(resource: ApiResource) -> Self {
        Self {
            resource,
            namespaced: false,
        }
    }

    /// Looks up a kind with the discovery API, including its plural name and scope.
    ///
    /// Every call sends a request to the API server. [`Ctx::discover`](crate::Ctx::discover) and
    /// [`Manager::discover`](crate::Manager::discover) cache the result.
    ///
    /// # Errors
    ///
    /// Fails if the kind isn't served, or if there is no response from the API server. The error
    /// message includes the kind.
    pub async fn discover(client: &Client, kind: &GroupVersionKind) -> Result<Self, Error> {
        let found = discovery::pinned_kind(client, kind).await;
        let (resource, capabilities) = found.map_err(|source| DiscoveryError::new(kind, source))?;
        Ok(Self {
            resource,
            namespaced: capabilities.scope == discovery::Scope::Namespaced,
        })
    }

    /// Returns the group, version, kind and plural name.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Returns `true` if the kind is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// Creates an object of this kind, without a namespace and contents.
    ///
    /// ```
    /// # use kube::api::{ApiResource, DynamicObject, TypeMeta};
    /// # use kube::core::GroupVersionKind;
    /// # use rbuilder::DynamicKind;
    /// # use serde_json::json;
    /// let routes = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute"));
    /// let route = DynamicKind::namespaced(routes).object("web").within("shop");
    /// let route = route.data(json!({ "spec": { "hostnames": ["shop.example.com"] } }));
    /// ```
    pub fn object(&self, name: impl AsRef<str>) -> DynamicObject {
        DynamicObject::new(name.as_ref(), &self.resource)
    }

    pub(crate) fn group_version_kind(&self) -> GroupVersionKind {
        let ApiResource {
            group, version, kind, ..
        } = &self.resource;
        GroupVersionKind::gvk(group, version, kind)
    }
}

#[derive(Debug, thiserror::Error)]
enum DiscoveryError {
    #[error("the API server does not serve kind `{kind}` in {api_version}; is its CRD installed?")]
    NotServed {
        kind: String,
        api_version: String,
        #[source]
        source: kube::Error,
    },
    #[error("failed to look up kind `{kind}` in {api_version}")]
    NoAnswer {
        kind: String,
        api_version: String,
        #[source]
        source: kube::Error,
    },
}

impl DiscoveryError {
    fn new(kind: &GroupVersionKind, source: kube::Error) -> Self {
        let (api_version, kind) = (kind.api_version(), kind.kind.clone());
        match &source {
            kube::Error::Discovery(_) => Self::NotServed {
                kind,
                api_version,
                source,
            },
            // The API server's response for unknown paths isn't a `Status`, so it has no such reason.
            kube::Error::Api(status) if status.code == 404 => Self::NotServed {
                kind,
                api_version,
                source,
            },
            _ => Self::NoAnswer {
                kind,
                api_version,
                source,
            },
        }
    }
}

/// The API is for a single namespace, or for all namespaces if `None`.
type MakeApi<K, O> = fn(Client, &<K as Resource>::DynamicType, Option<&str>) -> Api<O>;

/// A kind with everything needed to watch it. The kind may come from a type, or may only be known
/// at runtime.
pub(crate) struct Kind<K: Resource> {
    pub(crate) dynamic: K::DynamicType,
    pub(crate) namespaced: bool,
    api: MakeApi<K, K>,
    watched_api: MakeApi<K, Decoded<K>>,
    trimmed_api: MakeApi<K, Decoded<Trimmed<K>>>,
    lazy_api: MakeApi<K, Lazy<K>>,
    /// Sets the API version and kind of an object unless the type determines them.
    set_types: fn(&mut K, &K::DynamicType),
    /// `None` if the type determines the kind.
    to_dynamic: fn(&K::DynamicType, bool) -> Option<DynamicKind>,
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
    pub(crate) fn of_type() -> Self {
        Self {
            dynamic: (),
            namespaced: K::Scope::NAMESPACED,
            api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
            watched_api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
            trimmed_api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
            lazy_api: |client, (), namespace| <K::Scope as Scope>::api(client, namespace),
            set_types: |_, ()| {},
            to_dynamic: |(), _| None,
        }
    }
}

impl From<&DynamicKind> for Kind<DynamicObject> {
    fn from(kind: &DynamicKind) -> Self {
        Self {
            dynamic: kind.resource.clone(),
            namespaced: kind.namespaced,
            api: dynamic_api,
            watched_api: dynamic_api,
            trimmed_api: dynamic_api,
            lazy_api: dynamic_api,
            set_types: |object, resource| {
                // The API server omits both when it lists built-in kinds.
                object.types.get_or_insert_with(|| TypeMeta {
                    api_version: resource.api_version.clone(),
                    kind: resource.kind.clone(),
                });
            },
            to_dynamic: to_dynamic_kind,
        }
    }
}

impl From<&DynamicKind> for Kind<PartialObjectMeta<DynamicObject>> {
    fn from(kind: &DynamicKind) -> Self {
        Self {
            dynamic: kind.resource.clone(),
            namespaced: kind.namespaced,
            api: dynamic_api,
            watched_api: dynamic_api,
            trimmed_api: dynamic_api,
            lazy_api: dynamic_api,
            set_types: |_, _| {},
            to_dynamic: to_dynamic_kind,
        }
    }
}

// The signature must match `Kind::to_dynamic`.
#[allow(clippy::unnecessary_wraps)]
fn to_dynamic_kind(resource: &ApiResource, namespaced: bool) -> Option<DynamicKind> {
    Some(DynamicKind {
        resource: resource.clone(),
        namespaced,
    })
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
    /// The API is for a single namespace, or for all namespaces if `None`.
    pub(crate) fn api(&self, client: Client, namespace: Option<&str>) -> Api<K> {
        (self.api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// Like [`api`](Self::api), but decodes objects one by one.
    pub(crate) fn watched_api(&self, client: Client, namespace: Option<&str>) -> Api<Decoded<K>> {
        (self.watched_api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// Like [`watched_api`](Self::watched_api), but skips metadata that caches don't keep.
    pub(crate) fn trimmed_api(&self, client: Client, namespace: Option<&str>) -> Api<Decoded<Trimmed<K>>> {
        (self.trimmed_api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// Like [`watched_api`](Self::watched_api), but leaves decoding to the caller.
    pub(crate) fn lazy_api(&self, client: Client, namespace: Option<&str>) -> Api<Lazy<K>> {
        (self.lazy_api)(client, &self.dynamic, namespace.filter(|_| self.namespaced))
    }

    /// Sets the API version and kind of an object if they're missing. No-op if the type determines
    /// them.
    pub(crate) fn set_types(&self, object: &mut K) {
        (self.set_types)(object, &self.dynamic);
    }

    /// Returns the kind unless the type determines it.
    pub(crate) fn to_dynamic(&self) -> Option<DynamicKind> {
        (self.to_dynamic)(&self.dynamic, self.namespaced)
    }

    /// E.g. `Deployment`.
    pub(crate) fn name(&self) -> String {
        K::kind(&self.dynamic).into_owned()
    }

    /// E.g. `Deployment (apps/v1)`, for messages.
    pub(crate) fn describe(&self) -> String {
        format!("{} ({})", self.name(), K::api_version(&self.dynamic))
    }

    /// E.g. `deployments.apps`, for messages.
    pub(crate) fn describe_resource(&self) -> String {
        gvk::qualify(&K::plural(&self.dynamic), &K::group(&self.dynamic))
    }

    /// E.g. `Deployment.apps`, for metrics.
    pub(crate) fn group_kind(&self) -> String {
        gvk::qualify(&self.name(), &K::group(&self.dynamic))
    }

    /// Values in these objects must not be logged.
    pub(crate) fn is_confidential(&self) -> bool {
        self.name() == "Secret" && K::group(&self.dynamic).is_empty()
    }

    /// Ignores the namespace of cluster-scoped kinds.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> Key {
        Key {
            namespace: namespace.filter(|_| self.namespaced).map(Into::into),
            name: name.into(),
        }
    }

    pub(crate) fn key_of(&self, reference: &ObjectRef<K>) -> Key {
        self.key(reference.namespace.as_deref(), &reference.name)
    }

    /// For use in events.
    pub(crate) fn object_reference(&self, meta: &ObjectMeta) -> ObjectReference {
        ObjectReference {
            api_version: Some(K::api_version(&self.dynamic).into_owned()),
            kind: Some(self.name()),
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            // Omit the resource version, see `event_reference`.
            ..ObjectReference::default()
        }
    }

    pub(crate) fn reference(&self, key: &Key) -> ObjectRef<K> {
        let reference = ObjectRef::new_with(&key.name, self.dynamic.clone());
        match &key.namespace {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
}

/// Scope of a kind, i.e. namespaced or cluster-scoped. This trait is sealed.
pub trait Scope: sealed::Sealed + Send + Sync + 'static {
    /// Whether objects have a namespace.
    const NAMESPACED: bool;

    /// Returns the API for a kind with this scope, for all namespaces if `namespace` is `None`.
    ///
    /// For cluster-scoped kinds, the namespace is ignored.
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

/// Identifies an object among the objects of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

impl Key {
    pub(crate) fn of(object: &impl Resource) -> Self {
        Self::of_meta(object.meta())
    }

    pub(crate) fn of_meta(meta: &ObjectMeta) -> Self {
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
