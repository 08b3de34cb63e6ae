//! Admission and conversion webhooks: typed functions that the API server asks before it stores an object.
//!
//! A [`Webhook`] is a value, like a controller: what is to be asked about a kind. The manager serves all of them on one
//! port; paths are controller-runtime's, and what `rbuilder manifests` writes for `#[webhook]` points there. How a
//! request travels is `server`'s and `tls`'s; which kinds are asked about is the cluster's webhook configuration's.

mod admission;
mod conversion;
mod denied;
mod managed;
mod patch;
mod routes;
pub(crate) mod server;

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use kube::api::DynamicObject;
use kube::core::admission::AdmissionResponse;
use serde::Serialize;

use crate::object::Object;

pub use denied::Denied;
/// What is to be done to an object; kube's type.
pub use kube::core::admission::Operation;
pub use managed::ManagedCertificate;
pub(crate) use routes::Routes;

use admission::{Defaulter, RawHandler, Validator};
pub(crate) use conversion::{AnyConverter, Converter};

/// What is asked: who wants to do what to which object, and how. kube's type.
///
/// The functions of a [`Webhook`] get their objects as arguments of their own, so `object` and `old_object` are empty
/// here; a [raw](crate::Manager::raw_webhook) one finds them here.
pub type AdmissionRequest = kube::core::admission::AdmissionRequest<DynamicObject>;

/// Remarks that the API server passes on to the client, which shows them; keep each under 120 characters.
pub type Warnings = Vec<String>;

/// What the API server asks about objects of kind `K`, and the functions that answer.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use rbuilder::{Denied, Manager, Webhook, webhook::{AdmissionRequest, Warnings}};
/// fn default(map: &mut ConfigMap, _request: &AdmissionRequest) {
///     map.metadata.labels.get_or_insert_default().insert("defaulted".into(), "yes".into());
/// }
///
/// fn validate(new: &ConfigMap, old: Option<&ConfigMap>, _request: &AdmissionRequest) -> Result<Warnings, Denied> {
///     if old.is_some_and(|old| old.data != new.data) {
///         return Err(Denied::invalid("data", "cannot be changed"));
///     }
///     Ok(vec!["this ConfigMap cannot be changed later".into()])
/// }
///
/// # fn with(manager: Manager) -> Manager {
/// manager.webhook(Webhook::<ConfigMap>::new().defaulter(default).validator(validate))
/// # }
/// ```
///
/// A function that panics is answered for with status 500; what the API server does then is the configuration's
/// `failurePolicy`.
#[must_use = "hand it to `Manager::webhook`"]
pub struct Webhook<K: Object> {
    defaulter: Option<Defaulter<K>>,
    validator: Option<Validator<K>>,
    defaulter_path: Option<String>,
    validator_path: Option<String>,
    converter: Option<Converter<K>>,
}

impl<K: Object + Serialize> Default for Webhook<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object + Serialize> Webhook<K> {
    /// Asks nothing yet.
    pub fn new() -> Self {
        Self {
            defaulter: None,
            validator: None,
            defaulter_path: None,
            validator_path: None,
            converter: None,
        }
    }

    /// Fills in what an object leaves out, when it is created or updated, before it is validated.
    ///
    /// The API server gets a patch of what the function changed, and no patch when it changed nothing. Fields that
    /// the type does not know stay as they are. Return nothing, or a `Result` to refuse the object. Deletions are
    /// allowed without asking. The API server may ask again after other webhooks have changed the object, so the
    /// function must bear being called on what it has defaulted before.
    ///
    /// The path is `/mutate-<group>-<version>-<kind>`, with dots of the group as dashes, in lower case.
    pub fn defaulter<F, R>(mut self, default: F) -> Self
    where
        F: Fn(&mut K, &AdmissionRequest) -> R + Send + Sync + 'static,
        R: Defaulted,
    {
        self.defaulter = Some(Box::new(move |mut object, request| {
            let defaulted = default(&mut object, &request).into_result();
            std::future::ready(defaulted.map(|()| object)).boxed()
        }));
        self
    }

    /// [`defaulter`](Self::defaulter) that may wait, for what only the cluster knows. It gets the object and gives it
    /// back. The API server waits as well, up to the configuration's `timeoutSeconds`.
    pub fn defaulter_async<F, Fut, E>(mut self, default: F) -> Self
    where
        F: Fn(K, Arc<AdmissionRequest>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, E>> + Send + 'static,
        E: Into<Denied>,
    {
        self.defaulter = Some(Box::new(move |object, request| {
            let defaulted = default(object, request);
            async move { defaulted.await.map_err(Into::into) }.boxed()
        }));
        self
    }

    /// Says whether an object may be stored: the object, and what it is to replace.
    ///
    /// When an object is deleted, it comes as the first argument and there is no second; the request's `operation`
    /// says so. Return `Result<(), E>`, or `Result<Warnings, E>` to remark on what is allowed; the error says what
    /// the client is told, see [`Denied`].
    ///
    /// The path is `/validate-<group>-<version>-<kind>`, with dots of the group as dashes, in lower case.
    pub fn validator<F, R>(mut self, validate: F) -> Self
    where
        F: Fn(&K, Option<&K>, &AdmissionRequest) -> R + Send + Sync + 'static,
        R: Validated,
    {
        self.validator = Some(Box::new(move |new, old, request| {
            std::future::ready(validate(&new, old.as_deref(), &request).into_result()).boxed()
        }));
        self
    }

    /// [`validator`](Self::validator) that may wait, for what only the cluster knows.
    pub fn validator_async<F, Fut, R>(mut self, validate: F) -> Self
    where
        F: Fn(Arc<K>, Option<Arc<K>>, Arc<AdmissionRequest>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: Validated + 'static,
    {
        self.validator = Some(Box::new(move |new, old, request| {
            validate(new, old, request).map(Validated::into_result).boxed()
        }));
        self
    }

    /// Serves the defaulter at this path, which begins with `/`, in place of the usual one.
    pub fn defaulter_path(mut self, path: impl Into<String>) -> Self {
        self.defaulter_path = Some(path.into());
        self
    }

    /// Serves the validator at this path, which begins with `/`, in place of the usual one.
    pub fn validator_path(mut self, path: impl Into<String>) -> Self {
        self.validator_path = Some(path.into());
        self
    }

    /// Converts objects between `K`, the hub, and another version of the kind, in both directions; and between any
    /// two of the spokes, through the hub. Served at `/convert`, where a CRD's `conversion` should point.
    ///
    /// That both directions exist is checked by the compiler. `metadata` is the API server's: names, uid
    /// and the like are kept whatever the conversion does. Labels and annotations are the conversion's where it
    /// carried the metadata over (the uid tells); else those it sets are added.
    ///
    /// ```
    /// # use kube::CustomResource;
    /// # use rbuilder::Webhook;
    /// # use serde::{Deserialize, Serialize};
    /// # mod v1 {
    /// #     use super::*;
    /// #     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    /// #     #[kube(group = "example.com", version = "v1", kind = "Note", schema = "disabled")]
    /// #     pub struct NoteSpec { pub text: String }
    /// # }
    /// # mod v2 {
    /// #     use super::*;
    /// #     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    /// #     #[kube(group = "example.com", version = "v2", kind = "Note", schema = "disabled")]
    /// #     pub struct NoteSpec { pub words: Vec<String> }
    /// # }
    /// impl From<v1::Note> for v2::Note {
    ///     fn from(note: v1::Note) -> Self {
    ///         let words = note.spec.text.split(' ').map(str::to_owned).collect();
    ///         Self { metadata: note.metadata, spec: v2::NoteSpec { words } }
    ///     }
    /// }
    /// impl From<v2::Note> for v1::Note {
    ///     fn from(note: v2::Note) -> Self {
    ///         Self { metadata: note.metadata, spec: v1::NoteSpec { text: note.spec.words.join(" ") } }
    ///     }
    /// }
    ///
    /// # fn main() {
    /// let converting = Webhook::<v1::Note>::new().spoke::<v2::Note>();
    /// # }
    /// ```
    /// Without the way back, the same does not compile:
    /// ```compile_fail,E0277
    /// # use kube::CustomResource;
    /// # use rbuilder::Webhook;
    /// # use serde::{Deserialize, Serialize};
    /// # mod v1 {
    /// #     use super::*;
    /// #     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    /// #     #[kube(group = "example.com", version = "v1", kind = "Note", schema = "disabled")]
    /// #     pub struct NoteSpec { pub text: String }
    /// # }
    /// # mod v2 {
    /// #     use super::*;
    /// #     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    /// #     #[kube(group = "example.com", version = "v2", kind = "Note", schema = "disabled")]
    /// #     pub struct NoteSpec { pub words: Vec<String> }
    /// # }
    /// # impl From<v1::Note> for v2::Note {
    /// #     fn from(note: v1::Note) -> Self {
    /// #         let words = note.spec.text.split(' ').map(str::to_owned).collect();
    /// #         Self { metadata: note.metadata, spec: v2::NoteSpec { words } }
    /// #     }
    /// # }
    /// # fn main() {
    /// let converting = Webhook::<v1::Note>::new().spoke::<v2::Note>();
    /// # }
    /// ```
    /// `assert_round_trip` (feature `testing`) asks in a test whether anything is lost on the way.
    pub fn spoke<V>(mut self) -> Self
    where
        V: Object + Serialize,
        K: TryFrom<V, Error: std::fmt::Display>,
        V: TryFrom<K, Error: std::fmt::Display>,
    {
        self.converter.get_or_insert_with(Converter::new).add::<V>();
        self
    }

    pub(crate) fn route(self, routes: &mut Routes) {
        if let Some(defaulter) = self.defaulter {
            let path = self.defaulter_path.unwrap_or_else(|| routes::path::<K>("mutate"));
            routes.add(path, admission::defaulting(defaulter));
        }
        if let Some(validator) = self.validator {
            let path = self
                .validator_path
                .unwrap_or_else(|| routes::path::<K>("validate"));
            routes.add(path, admission::validating(validator));
        }
        if let Some(converter) = self.converter {
            routes.add_converter(converter);
        }
    }
}

/// A webhook that answers requests as they come, about objects of any kind; see
/// [`Manager::raw_webhook`](crate::Manager::raw_webhook).
pub(crate) fn raw<F, Fut>(handler: F) -> RawHandler
where
    F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = AdmissionResponse> + Send + 'static,
{
    Box::new(move |request| handler(request).boxed())
}

pub(crate) fn route_raw(path: String, handler: RawHandler, routes: &mut Routes) {
    routes.add(path, admission::answering(handler));
}

/// What a defaulter may return: nothing, or a `Result` whose error becomes a [`Denied`].
pub trait Defaulted: sealed::Sealed {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), Denied>;
}

impl Defaulted for () {
    fn into_result(self) -> Result<(), Denied> {
        Ok(())
    }
}

impl<E: Into<Denied>> Defaulted for Result<(), E> {
    fn into_result(self) -> Result<(), Denied> {
        self.map_err(Into::into)
    }
}

/// What a validator may return: `Result<(), E>` or `Result<Warnings, E>`, whose error becomes a [`Denied`].
pub trait Validated: sealed::Sealed {
    #[doc(hidden)]
    fn into_result(self) -> Result<Warnings, Denied>;
}

impl<E: Into<Denied>> Validated for Result<(), E> {
    fn into_result(self) -> Result<Warnings, Denied> {
        self.map(|()| Warnings::new()).map_err(Into::into)
    }
}

impl<E: Into<Denied>> Validated for Result<Warnings, E> {
    fn into_result(self) -> Result<Warnings, Denied> {
        self.map_err(Into::into)
    }
}

mod sealed {
    use super::Warnings;

    pub trait Sealed {}
    impl Sealed for () {}
    impl<E> Sealed for Result<(), E> {}
    impl<E> Sealed for Result<Warnings, E> {}
}

#[cfg(test)]
mod tests;
