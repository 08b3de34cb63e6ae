//! Support for kinds that are only known at runtime.

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Api, Resource};

use super::Ctx;
use crate::cache::{Cached, Index, Selection};
use crate::error::Error;
use crate::object::{AnyKind, AnyObject, DynamicKind, Kind, Watchable, describe_object};

impl<S> Ctx<S> {
    /// Looks up the plural name and the scope of a kind, using the discovery API.
    ///
    /// The result is cached, and shared by all contexts of the manager and by
    /// [`Manager::discover`](crate::Manager::discover). If the kind isn't served, or if its
    /// resource disappears, the next call tries again.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::core::GroupVersionKind;
    /// # use kube::ResourceExt;
    /// # use rbuilder::{Action, Ctx, Result};
    /// # use serde_json::json;
    /// async fn reconcile(shop: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    ///     let route = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute");
    ///     let route = ctx.discover(&route).await?.object(shop.name_any());
    ///     let spec = json!({ "hostnames": ["shop.example.com"] });
    ///     ctx.apply_owned(&*shop, route.data(json!({ "spec": spec }))).await?;
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the kind is not served, or if there is no response from the API server. The error
    /// message includes the kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        self.shared.kinds.find(&self.shared.client, kind).await
    }

    /// Like [`cached`](Self::cached), but for a kind that's only known at runtime.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager doesn't have a cache for this kind.
    pub fn cached_dynamic(&self, kind: &DynamicKind) -> Result<Cached<DynamicObject>, Error> {
        self.cached_dynamic_selection(kind, &Selection::all())
    }

    /// Like [`cached_everywhere`](Self::cached_everywhere), but for a kind that's only known at runtime.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager doesn't have such a cache.
    pub fn cached_everywhere_dynamic(&self, kind: &DynamicKind) -> Result<Cached<DynamicObject>, Error> {
        self.find_cache_everywhere(kind.into(), "`.reads_dynamic(…)`")
    }

    /// Like [`cached_selection`](Self::cached_selection), but for a kind that is only known at
    /// runtime.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager doesn't have a cache for this kind with the same
    /// selection.
    pub fn cached_dynamic_selection(
        &self,
        kind: &DynamicKind,
        selection: &Selection,
    ) -> Result<Cached<DynamicObject>, Error> {
        self.find_cache(kind.into(), selection, "_dynamic")
    }

    /// Like [`api`](Self::api), but for a kind that's only known at runtime.
    pub fn api_dynamic(&self, kind: &DynamicKind, object: &impl Resource) -> Api<DynamicObject> {
        Kind::from(kind).api(self.client(), object.meta().namespace.as_deref())
    }

    /// Like [`caching`](Self::caching), but for a kind that's only known at runtime.
    pub fn caching_dynamic(
        self,
        kind: &DynamicKind,
        objects: impl IntoIterator<Item = DynamicObject>,
    ) -> Self {
        let cache = self.caches().of(&kind.into(), &Selection::all());
        cache.assume_synced();
        objects.into_iter().for_each(|object| cache.put(object));
        self.add_kind(cache.kind());
        self
    }

    /// Like [`indexing`](Self::indexing), but for a kind that is only known at runtime.
    pub fn indexing_dynamic(
        self,
        kind: &DynamicKind,
        name: impl Into<String>,
        values: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let cache = self.caches().of(&kind.into(), &Selection::all());
        cache.assume_synced();
        cache.add_index(Index::new(name.into(), values));
        self
    }

    /// Adds the kind of a controller or a watch, which then needs no discovery.
    pub(crate) fn add_kind<K: Watchable>(&self, kind: &Kind<K>) {
        if let Some(kind) = kind.to_dynamic() {
            self.shared.kinds.add(kind);
        }
    }

    /// Fails if the kind can't be [discovered](Self::discover). Also returns a terminal error if a
    /// dynamic object lacks `apiVersion` or `kind`.
    pub(super) async fn kind_of<K: AnyObject>(&self, object: &K) -> Result<Kind<K>, Error> {
        if let Some(AnyKind(kind)) = K::type_kind() {
            return Ok(kind);
        }
        let types = object.type_meta().ok_or_else(|| {
            Error::terminal("the object has no API version and kind; create it with `DynamicKind::object`")
        })?;
        let kind = self.shared.kinds.find_types(&self.shared.client, types).await?;
        let AnyKind(kind) = K::run_time_kind(&kind);
        Ok(kind)
    }

    /// Like [`kind_of`](Self::kind_of), but fails if a namespaced object has no namespace. The API
    /// server would respond that the path doesn't exist.
    pub(super) async fn placed_kind_of<K: AnyObject>(&self, object: &K) -> Result<Kind<K>, Error> {
        let kind = self.kind_of(object).await?;
        match kind.namespaced && object.meta().namespace.is_none() {
            true => Err(Error::terminal(format!(
                "{} needs a namespace; set `metadata.namespace`",
                describe_object(object)
            ))),
            false => Ok(kind),
        }
    }

    pub(super) fn api_of<K: AnyObject>(&self, kind: &Kind<K>, object: &K) -> Api<K> {
        kind.api(self.client(), object.meta().namespace.as_deref())
    }

    /// A 404 may mean that the CRD was deleted (or replaced), so rediscover the kind next time.
    pub(super) fn forget_if_missing<K: Watchable>(&self, kind: &Kind<K>, error: &kube::Error) {
        let is_missing = matches!(error, kube::Error::Api(status) if status.code == 404);
        if let (true, Some(kind)) = (is_missing, kind.to_dynamic()) {
            self.shared.kinds.forget(&kind);
        }
    }
}
