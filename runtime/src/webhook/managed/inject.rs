//! The authority in the configurations that send the API server to this operator.

use std::fmt::Debug;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams, TypeMeta};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{KeepError, Settings};

/// How long the API server may take to answer one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Annotations with this beginning ask cert-manager's injector to do the same.
const CERT_MANAGER: &str = "cert-manager.io/inject-";

/// What may send the API server to this operator.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    /// Whether webhook configurations do.
    pub(crate) admission: bool,
    /// The names of the CRDs whose objects this operator converts.
    pub(crate) crds: Vec<String>,
}

/// How it went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Injected {
    /// How many objects point to the service.
    pub(super) found: usize,
    /// In how many of them something had to be changed.
    pub(super) changed: usize,
}

impl Targets {
    /// Brings the bundle to where the service is named. What fails does not keep the rest from being done; the first
    /// error is returned.
    pub(super) async fn inject(
        &self,
        client: &Client,
        settings: &Settings,
        bundle: &str,
    ) -> Result<Injected, KeepError> {
        let bundle = STANDARD.encode(bundle);
        let mut injected = Injected::default();
        let mut outcome = Ok(());
        let kinds = [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ];
        for kind in kinds.iter().filter(|_| self.admission) {
            let done = inject_all(client, kind, settings, &bundle, &mut injected).await;
            outcome = outcome.and(done);
        }
        for name in &self.crds {
            let done = inject_crd(client, name, settings, &bundle, &mut injected).await;
            outcome = outcome.and(done);
        }
        outcome.map(|()| injected)
    }

    /// Hears of every change of what might have to be changed back.
    pub(super) fn changes(&self, client: &Client) -> SelectAll<BoxStream<'static, ()>> {
        let mut all = SelectAll::new();
        if self.admission {
            let config = watcher::Config::default;
            all.push(changes::<MutatingWebhookConfiguration>(
                Api::all(client.clone()),
                config(),
            ));
            all.push(changes::<ValidatingWebhookConfiguration>(
                Api::all(client.clone()),
                config(),
            ));
        }
        for name in &self.crds {
            let crds = Api::all(client.clone());
            all.push(changes::<CustomResourceDefinition>(crds, named(name)));
        }
        all
    }
}

/// The one object of this name: a role that names it allows to watch it.
pub(super) fn named(name: &str) -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={name}"))
}

/// A word for every change of the objects that a watch shows, and none of their contents.
pub(super) fn changes<K>(api: Api<PartialObjectMeta<K>>, config: watcher::Config) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api, config).default_backoff();
    let changes = events.filter_map(|event| async move {
        match event {
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
            Ok(_) => Some(()),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "watch failed, retrying");
                None
            }
        }
    });
    changes.boxed()
}

/// Waits for an answer of the API server, but not for ever.
pub(super) async fn request<T>(
    verb: &'static str,
    what: impl FnOnce() -> String,
    answer: impl Future<Output = kube::Result<T>>,
) -> Result<T, KeepError> {
    let reason = match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(kube::Error::Api(status))) => status.message.clone(),
        Ok(Err(error)) => format!("{:#}", crate::Error::from(error)),
        Err(_) => format!("request timed out after {REQUEST_TIMEOUT:?}"),
    };
    let what = what();
    Err(KeepError::Request { verb, what, reason })
}

async fn inject_all(
    client: &Client,
    kind: &ApiResource,
    settings: &Settings,
    bundle: &str,
    injected: &mut Injected,
) -> Result<(), KeepError> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let what = || format!("{}s", kind.kind);
    let list = request("list", what, api.list(&ListParams::default())).await?;
    let mut outcome = Ok(());
    for mut object in list.items {
        // The items of a list do not say what they are.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
        });
        let configs = object.data["webhooks"].as_array_mut().into_iter().flatten();
        let configs = configs.map(|webhook| &mut webhook["clientConfig"]);
        let change = fill(configs, settings, bundle);
        outcome = outcome.and(store(&api, kind, &object, change, injected).await);
    }
    outcome
}

/// A CRD that is not there has nobody who asks: it is looked for again when it appears.
async fn inject_crd(
    client: &Client,
    name: &str,
    settings: &Settings,
    bundle: &str,
    injected: &mut Injected,
) -> Result<(), KeepError> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let what = || format!("{} {name}", kind.kind);
    let Some(mut crd) = request("get", what, api.get_opt(name)).await? else {
        return Ok(());
    };
    let config = crd.data.pointer_mut("/spec/conversion/webhook/clientConfig");
    let change = fill(config.into_iter(), settings, bundle);
    store(&api, &kind, &crd, change, injected).await
}

/// Whether any of these points to the service, and whether one of them needed the bundle.
struct Change {
    found: bool,
    changed: bool,
}

fn fill<'a>(configs: impl Iterator<Item = &'a mut Value>, settings: &Settings, bundle: &str) -> Change {
    let mut change = Change {
        found: false,
        changed: false,
    };
    for config in configs {
        let service = &config["service"];
        if service["name"] != *settings.service || service["namespace"] != *settings.namespace {
            continue;
        }
        change.found = true;
        if config["caBundle"] != bundle {
            config["caBundle"] = bundle.into();
            change.changed = true;
        }
    }
    change
}

/// Replaces the object as it was read, so that what others changed meanwhile is not undone.
async fn store(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    object: &DynamicObject,
    change: Change,
    injected: &mut Injected,
) -> Result<(), KeepError> {
    let what = || format!("{} {}", kind.kind, object.name_any());
    injected.found += usize::from(change.found);
    if change.found
        && object
            .annotations()
            .keys()
            .any(|key| key.starts_with(CERT_MANAGER))
    {
        return Err(KeepError::Contested(what()));
    }
    if change.changed {
        injected.changed += 1;
        let (name, params) = (object.name_any(), PostParams::default());
        request("update", what, api.replace(&name, &params, object)).await?;
        tracing::info!(
            object = what(),
            "injected the CA bundle of the webhook certificate"
        );
    }
    Ok(())
}
