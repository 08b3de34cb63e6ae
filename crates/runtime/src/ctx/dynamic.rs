//! Kinds known only at run time.

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Api, Resource};

use super::Ctx;
use crate::cache::{Cached, Index, Selection};
use crate::error::Error;
use crate::object::{AnyKind, AnyObject, DynamicKind, Kind, Watchable};

impl<S> Ctx<S> {
    /// Returns a kind with its plural and scope, looking it up in the API server's discovery on
    /// first use.
    ///
    /// The result is shared by all contexts of a manager and
    /// [`Manager::discover`](crate::Manager::discover). If a kind is not served, or its resource is
    /// gone, the next call looks it up again.
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
    /// Fails if the API server does not serve the kind, or does not respond. The error names the
    /// kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        self.shared.kinds.find(&self.shared.client, kind).await
    }

    /// Like [`cached`](Self::cached), for a kind known only at run time.
    ///
    /// # Errors
    /// Returns a terminal error if the manager has no cache of this kind.
    pub fn cached_dynamic(&self, kind: &DynamicKind) -> Result<Cached<DynamicObject>, Error> {
        self.cached_dynamic_selection(kind, &Selection::all())
    }

    /// Like [`cached_selection`](Self::cached_selection), for a kind known only at run time.
    ///
    /// # Errors
    /// Returns a terminal error if the manager has no cache of this kind with exactly this
    /// selection.
    pub fn cached_dynamic_selection(
        &self,
        kind: &DynamicKind,
        selection: &Selection,
    ) -> Result<Cached<DynamicObject>, Error> {
        self.find_cache(kind.into(), selection, "_dynamic")
    }

    /// Like [`api`](Self::api), for a kind known only at run time.
    pub fn api_dynamic(&self, kind: &DynamicKind, object: &impl Resource) -> Api<DynamicObject> {
        Kind::from(kind).api(self.client(), object.meta().namespace.as_deref())
    }

    /// Like [`caching`](Self::caching), for a kind known only at run time.
    pub fn caching_dynamic(
        self,
        kind: &DynamicKind,
        objects: impl IntoIterator<Item = DynamicObject>,
    ) -> Self {
        let cache = self.caches().of(&kind.into(), &Selection::all());
        objects.into_iter().for_each(|object| cache.put(object));
        self.add_kind(cache.kind());
        self
    }

    /// Like [`indexing`](Self::indexing), for a kind known only at run time.
    pub fn indexing_dynamic(
        self,
        kind: &DynamicKind,
        name: impl Into<String>,
        values: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let cache = self.caches().of(&kind.into(), &Selection::all());
        cache.add_index(Index::new(name.into(), values));
        self
    }

    /// Remembers the kind of a controller or a watch, so that it needs no discovery.
    pub(crate) fn add_kind<K: Watchable>(&self, kind: &Kind<K>) {
        if let Some(kind) = kind.to_dynamic() {
            self.shared.kinds.add(kind);
        }
    }

    /// Returns the kind of an object.
    ///
    /// # Errors
    /// Fails like [`discover`](Self::discover), and with a terminal error for a dynamic object
    /// without `apiVersion` and `kind`.
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

    /// Returns the API for an object's kind and namespace.
    pub(super) fn api_of<K: AnyObject>(&self, kind: &Kind<K>, object: &K) -> Api<K> {
        kind.api(self.client(), object.meta().namespace.as_deref())
    }

    /// Makes the next use of a kind look it up again if the API server responded 404 to an object
    /// or its resource.
    pub(super) fn forget_if_missing<K: Watchable>(&self, kind: &Kind<K>, error: &kube::Error) {
        let is_missing = matches!(error, kube::Error::Api(status) if status.is_not_found());
        if let (true, Some(kind)) = (is_missing, kind.to_dynamic()) {
            self.shared.kinds.forget(&kind);
        }
    }
}
