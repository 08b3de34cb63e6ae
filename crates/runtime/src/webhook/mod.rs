//! Admission and conversion webhooks with typed functions.
//!
//! A [`Webhook`] contains the functions for a kind. The manager serves all webhooks on the same
//! port, with the same paths as in controller-runtime. To be called, a webhook must be listed in a
//! webhook configuration, which selects kinds and operations and refers to these paths. `rbuilder
//! manifests` generates configurations from `#[webhook]`. The HTTPS server is implemented in
//! `server` and `tls`.

mod admission;
mod as_written;
mod conversion;
mod conversion_review;
mod denied;
#[cfg(feature = "fake")]
mod in_process;
mod items;
mod json_size;
mod managed;
mod memory;
mod patch;
mod received;
mod routes;
pub(crate) mod server;
mod unconverted;

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use kube::api::DynamicObject;
use kube::core::admission::AdmissionResponse;
use serde::Serialize;

use crate::object::Object;

pub use denied::Denied;
#[cfg(feature = "fake")]
pub(crate) use in_process::handler_in_process;
/// Operation of an admission request. Re-exported from kube.
pub use kube::core::admission::Operation;
use managed::ConfigurationKind;
pub use managed::ManagedCertificate;
pub(crate) use routes::Routes;

use admission::{Defaulter, RawHandler, Validator};
#[cfg(feature = "testing")]
pub(crate) use conversion::AnyConverter;
pub(crate) use conversion::Converter;

/// An admission request, as defined by kube. Contains the operation and the user, among others.
///
/// The functions of a [`Webhook`] receive the objects as separate arguments, so `object` and
/// `old_object` are empty. They are only set for [raw](crate::Manager::raw_webhook) webhooks.
pub type AdmissionRequest = kube::core::admission::AdmissionRequest<DynamicObject>;

/// Warnings for the client, sent by the API server. Each should be shorter than 120 characters.
pub type Warnings = Vec<String>;

/// Admission and conversion webhooks for objects of kind `K`.
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
///     Ok(vec!["the data of this ConfigMap cannot be changed later".into()])
/// }
///
/// # fn with(manager: Manager) -> Manager {
/// manager.webhook(Webhook::<ConfigMap>::new().defaulter(default).validator(validate))
/// # }
/// ```
///
/// If one of the functions panics, the response has status 500, and the `failurePolicy` in the
/// webhook configuration determines what the API server does.
#[must_use = "pass it to `Manager::webhook`"]
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
    /// Creates a webhook without any functions.
    pub fn new() -> Self {
        Self {
            defaulter: None,
            validator: None,
            defaulter_path: None,
            validator_path: None,
            converter: None,
        }
    }

    /// Sets the defaulting function. It can modify an object that is created or updated, before
    /// it's validated.
    ///
    /// Either return nothing, or a `Result` to be able to deny requests. The function must be
    /// idempotent, since it may be called again if other webhooks modify the object. It is not
    /// called for deletions.
    ///
    /// Changes are sent to the API server as a patch, which preserves fields that are not part of
    /// the type. This even works for lists with inserted or removed items, which are matched by
    /// fields such as `name`, or by similarity.
    ///
    /// If an object cannot be decoded into `K` (e.g. there is a typo in an enum), the function
    /// isn't called, and the object is admitted unchanged, with a warning. The API server then
    /// validates it against the schema, and reports all invalid fields.
    ///
    /// The path is `/mutate-<group>-<version>-<kind>` in lower case, where the dots of the group
    /// are replaced with dashes.
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

    /// Sets an async defaulting function. Unlike [`defaulter`](Self::defaulter), it takes the
    /// object by value and returns it. The API server waits up to `timeoutSeconds`, which is part
    /// of the webhook configuration.
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

    /// Sets the validating function. It is called with the new object and, for updates and
    /// deletions, the old object.
    ///
    /// Return a `Result<(), E>`, or a `Result<Warnings, E>` to send warnings to the client. Errors
    /// deny the request, using the message and the status of [`Denied`].
    ///
    /// For deletions, both arguments are the object that is about to be deleted; check the
    /// `operation` of the request to detect this. If an object conforms to the schema but cannot be
    /// decoded into `K`, it is denied with status 422 and the name of the field, without calling
    /// the function.
    ///
    /// The path is `/validate-<group>-<version>-<kind>` in lower case, where the dots of the group
    /// are replaced with dashes.
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

    /// Sets an async validating function. See [`validator`](Self::validator).
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

    /// Sets a different path for the defaulter. It must start with `/`.
    pub fn defaulter_path(mut self, path: impl Into<String>) -> Self {
        self.defaulter_path = Some(path.into());
        self
    }

    /// Sets a different path for the validator. It must start with `/`.
    pub fn validator_path(mut self, path: impl Into<String>) -> Self {
        self.validator_path = Some(path.into());
        self
    }

    /// Adds conversions between `K`, which is the hub, and `V`, which is another version of the
    /// same kind (a spoke). Conversions from one spoke to another go through the hub. The path is
    /// `/convert`, and the CRD's `conversion` must refer to it.
    ///
    /// The compiler checks that both directions exist. A conversion can modify labels and
    /// annotations; all other metadata is preserved. If the conversion copies the metadata (as its
    /// UID shows), its labels and annotations replace the original ones. Otherwise, they are
    /// added to the original ones.
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
    ///
    /// This does not compile if the second conversion is missing:
    ///
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
    ///
    /// To test that no data is lost, use `assert_round_trip` (requires the feature `testing`).
    pub fn spoke<V>(mut self) -> Self
    where
        V: Object + Serialize,
        K: TryFrom<V, Error: std::fmt::Display>,
        V: TryFrom<K, Error: std::fmt::Display>,
    {
        self.converter.get_or_insert_with(Converter::new).add::<V>();
        self
    }

    pub(crate) fn add_to(self, routes: &mut Routes) {
        if let Some(defaulter) = self.defaulter {
            let path = self
                .defaulter_path
                .unwrap_or_else(|| routes::default_path::<K>("mutate"));
            let kind = ConfigurationKind::Mutating;
            routes.add(path, Some(kind), admission::defaulting_endpoint(defaulter));
        }
        if let Some(validator) = self.validator {
            let path = self
                .validator_path
                .unwrap_or_else(|| routes::default_path::<K>("validate"));
            let kind = ConfigurationKind::Validating;
            routes.add(path, Some(kind), admission::validating_endpoint(validator));
        }
        if let Some(converter) = self.converter {
            routes.add_converter(converter);
        }
    }
}

pub(crate) fn add_raw_webhook<F, Fut>(path: String, handler: F, routes: &mut Routes)
where
    F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = AdmissionResponse> + Send + 'static,
{
    let handler: RawHandler = Box::new(move |request| handler(request).boxed());
    routes.add(path, None, admission::raw_endpoint(handler));
}

/// Return type of a defaulter: nothing, or a `Result` whose error can be converted to [`Denied`].
/// This trait is sealed.
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

/// Return type of a validator: `Result<(), E>` or `Result<Warnings, E>`, whose error can be
/// converted to [`Denied`]. This trait is sealed.
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
