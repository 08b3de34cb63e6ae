//! Injects the CA bundle into all webhook configurations and CRDs that refer to the operator's
//! service.

use std::collections::BTreeSet;
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
use kube::api::{ApiResource, DynamicObject, ListParams, TypeMeta};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::is_unreachable;
use crate::list_watch::{ListLimit, ListWatch};

use super::{KeeperError, Settings, post_params};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Prefix of annotations on objects into which cert-manager injects CA bundles.
const CERT_MANAGER: &str = "cert-manager.io/inject-";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigurationKind {
    Mutating,
    Validating,
}

impl ConfigurationKind {
    const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    fn resource(self) -> ApiResource {
        match self {
            Self::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            Self::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Targets {
    pub(crate) admission: bool,
    /// Kinds of configurations that must exist for all webhooks to be called.
    pub(crate) needed: BTreeSet<ConfigurationKind>,
    /// CRDs for which this operator has conversions.
    pub(crate) crds: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InjectionCounts {
    /// Number of objects that refer to the service.
    pub(super) found: usize,
    pub(super) changed: usize,
    /// Reasons why the API server doesn't call some of the webhooks, e.g. a missing configuration.
    pub(super) unreferenced: Vec<String>,
}

impl Targets {
    pub(super) async fn inject(
        &self,
        client: &Client,
        settings: &Settings,
        bundle: &str,
    ) -> Result<InjectionCounts, KeeperError> {
        let bundle = STANDARD.encode(bundle);
        let mut counts = InjectionCounts::default();
        // After an error, continue with the other objects, and return the first error at the end.
        let mut result = Ok(());
        for kind in self.configurations() {
            let before = counts.found;
            let injected = inject_configurations(client, kind, settings, &bundle, &mut counts).await;
            if injected.is_ok() && counts.found == before && self.needed.contains(&kind) {
                counts.unreferenced.push(missing_configuration(kind, settings));
            }
            result = result.and(injected);
        }
        if self.admission && self.needed.is_empty() && result.is_ok() && counts.found == 0 {
            let message = format!(
                "no webhook configuration refers to the service {}",
                settings.place()
            );
            counts.unreferenced.push(message);
        }
        for name in &self.crds {
            let injected = inject_crd(client, name, settings, &bundle, &mut counts).await;
            result = result.and(injected);
        }
        result.map(|()| counts)
    }

    fn configurations(&self) -> impl Iterator<Item = ConfigurationKind> {
        // Look for both kinds, because a raw webhook may be in either.
        let kinds = ConfigurationKind::ALL.into_iter();
        kinds.filter(|_| self.admission)
    }

    pub(super) fn watch_changes(
        &self,
        client: &Client,
        settings: &Settings,
    ) -> SelectAll<BoxStream<'static, ()>> {
        let mut all = SelectAll::new();
        for kind in self.configurations() {
            let config = settings
                .configuration(kind)
                .map_or_else(watcher::Config::default, only_named);
            let client = client.clone();
            all.push(match kind {
                ConfigurationKind::Mutating => {
                    watch_changes::<MutatingWebhookConfiguration>(Api::all(client), config)
                }
                ConfigurationKind::Validating => {
                    watch_changes::<ValidatingWebhookConfiguration>(Api::all(client), config)
                }
            });
        }
        for name in &self.crds {
            let crds = Api::all(client.clone());
            all.push(watch_changes::<CustomResourceDefinition>(crds, only_named(name)));
        }
        all
    }
}

fn missing_configuration(kind: ConfigurationKind, settings: &Settings) -> String {
    let (kind_name, place) = (kind.resource().kind, settings.place());
    match settings.configuration(kind) {
        Some(name) => {
            format!("{kind_name} `{name}` does not exist or does not refer to the service `{place}`")
        }
        None => format!("no {kind_name} refers to the service `{place}`"),
    }
}

/// Selects a single object, which RBAC rules with `resourceNames` permit.
pub(super) fn only_named(name: &str) -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={name}"))
}

/// The stream yields an item per change.
pub(super) fn watch_changes<K>(
    api: Api<PartialObjectMeta<K>>,
    config: watcher::Config,
) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = ListWatch::new(api, config, ListLimit::default()).into_stream();
    let changes = events.filter_map(|event| async move {
        match event {
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
            Ok(_) => Some(()),
            Err(error) if is_unreachable(&error) => None,
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "watch failed, retrying");
                None
            }
        }
    });
    changes.boxed()
}

pub(super) async fn send_request<T>(
    verb: &'static str,
    what: impl FnOnce() -> String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, KeeperError> {
    let (reason, is_unreachable) = match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(response)) => return Ok(response),
        Ok(Err(kube::Error::Api(status))) => (status.message.clone(), false),
        Ok(Err(error)) => {
            let is_unreachable = is_unreachable(&error);
            (format!("{:#}", crate::Error::from(error)), is_unreachable)
        }
        Err(_) => (format!("request timed out after {REQUEST_TIMEOUT:?}"), false),
    };
    let what = what();
    Err(KeeperError::Request {
        verb,
        what,
        reason,
        is_unreachable,
    })
}

async fn inject_configurations(
    client: &Client,
    kind: ConfigurationKind,
    settings: &Settings,
    bundle: &str,
    counts: &mut InjectionCounts,
) -> Result<(), KeeperError> {
    let name = settings.configuration(kind);
    let kind = &kind.resource();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let objects = match name {
        Some(name) => {
            let what = || format!("{} {name}", kind.kind);
            let found = send_request("get", what, api.get_opt(name)).await?;
            found.into_iter().collect()
        }
        None => {
            let what = || format!("{}s", kind.kind);
            send_request("list", what, api.list(&ListParams::default()))
                .await?
                .items
        }
    };
    let mut result = Ok(());
    for mut object in objects {
        // Items of a list lack `apiVersion` and `kind`.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
        });
        let configs = object.data["webhooks"].as_array_mut().into_iter().flatten();
        let configs = configs.map(|webhook| &mut webhook["clientConfig"]);
        let change = set_bundle(configs, settings, bundle);
        result = result.and(update_object(&api, kind, &object, change, counts).await);
    }
    result
}

/// Injects the bundle into a CRD. If it doesn't exist yet, a watch reports its creation.
async fn inject_crd(
    client: &Client,
    name: &str,
    settings: &Settings,
    bundle: &str,
    counts: &mut InjectionCounts,
) -> Result<(), KeeperError> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let what = || format!("{} {name}", kind.kind);
    let Some(mut crd) = send_request("get", what, api.get_opt(name)).await? else {
        counts.unreferenced.push(format!("{} does not exist", what()));
        return Ok(());
    };
    let config = crd.data.pointer_mut("/spec/conversion/webhook/clientConfig");
    let change = set_bundle(config.into_iter(), settings, bundle);
    if !change.found {
        let place = settings.place();
        counts.unreferenced.push(format!(
            "the conversion of {} does not refer to the service `{place}`",
            what()
        ));
    }
    update_object(&api, &kind, &crd, change, counts).await
}

struct BundleChange {
    found: bool,
    changed: bool,
}

/// Updates all client configurations that refer to the service.
fn set_bundle<'a>(
    configs: impl Iterator<Item = &'a mut Value>,
    settings: &Settings,
    bundle: &str,
) -> BundleChange {
    let mut change = BundleChange {
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

async fn update_object(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    object: &DynamicObject,
    change: BundleChange,
    counts: &mut InjectionCounts,
) -> Result<(), KeeperError> {
    let what = || format!("{} {}", kind.kind, object.name_any());
    counts.found += usize::from(change.found);
    // Injecting our bundle as well would undo each other's changes in a hot loop.
    if change.found
        && object
            .annotations()
            .keys()
            .any(|key| key.starts_with(CERT_MANAGER))
    {
        return Err(KeeperError::ManagedByCertManager(what()));
    }
    if change.changed {
        counts.changed += 1;
        // The object includes its resource version, so concurrent changes aren't overwritten.
        let (name, params) = (object.name_any(), post_params());
        send_request("update", what, api.replace(&name, &params, object)).await?;
        tracing::info!(object = what(), "injected CA bundle");
    }
    Ok(())
}
