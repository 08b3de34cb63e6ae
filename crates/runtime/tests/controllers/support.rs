//! The operator used by all tests, and a namespace for each of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, CustomResource, ResourceExt};
use rbuilder::{Action, Ctx, Manager, ManagerArgs, Result, conditions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

#[path = "../servers/mod.rs"]
mod servers;
#[allow(unused_imports)] // not every test program that has this file runs on both
pub(crate) use servers::{Server, on_both_servers};

pub(crate) const CRDS: &str = "tests/controllers/crds";
/// Upper bound for anything to happen, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A text, which the operator copies to a ConfigMap.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "controllers.example.com",
    version = "v1",
    kind = "Memo",
    namespaced,
    status = "MemoStatus"
)]
#[kube(schema = "disabled")]
pub(crate) struct MemoSpec {
    pub(crate) text: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct MemoStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copied: Option<String>,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// The reconcile function of most tests.
pub(crate) async fn copy(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    let text = memo.spec.text.clone().unwrap_or_default();
    let copy = ctx
        .apply_owned(&*memo, config_map(&memo.name_any(), &text))
        .await?;
    let mut status = memo.status.clone().unwrap_or_default();
    status.copied = copy.data.and_then(|data| data.get("text").cloned());
    let available = conditions::new("Available", true, "Copied").observed(&*memo);
    conditions::set(&mut status.conditions, available);
    ctx.apply_status(&*memo, status).await?;
    Ok(Action::await_change())
}

/// Counts reconciles by name.
#[derive(Clone, Default)]
pub(crate) struct Seen(pub(crate) Arc<Mutex<HashMap<String, usize>>>);

impl Seen {
    pub(crate) fn note(&self, name: &str) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

pub(crate) fn config_map(name: &str, text: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([("text".to_owned(), text.to_owned())]);
    ConfigMap {
        metadata,
        data: Some(data),
        ..ConfigMap::default()
    }
}

pub(crate) fn memo(name: &str, text: &str) -> Memo {
    Memo::new(
        name,
        MemoSpec {
            text: Some(text.to_owned()),
        },
    )
}

/// A namespace with clients for its kinds.
pub(crate) struct Place {
    pub(crate) env: Server,
    pub(crate) namespace: String,
}

/// Installs a subscriber that ignores everything.
///
/// Works around a problem in tracing: if an event first occurs without a subscriber, its callsite
/// may be disabled for good, even though another thread is just about to collect its log.
fn enable_callsites() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(LevelFilter::INFO);
        // Fails if there already is a subscriber, which is just as good.
        let _ = tracing::subscriber::set_global_default(subscriber);
    });
}

impl Place {
    pub(crate) async fn new(server: impl Into<Server>) -> Self {
        enable_callsites();
        let env = server.into();
        env.install_crds(CRDS).await;
        let namespace = env.namespace("controllers").await;
        Self { env, namespace }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    /// Returns a manager that only watches this namespace.
    pub(crate) fn manager(&self) -> Manager {
        let args = ManagerArgs {
            watch_namespace: self.namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        Manager::with_client("controllers.example.com", self.env.client(), args)
    }

    pub(crate) async fn create(&self, memo: Memo) -> Memo {
        self.api::<Memo>()
            .create(&PostParams::default(), &memo)
            .await
            .unwrap()
    }

    pub(crate) async fn change_text(&self, name: &str, text: &str) {
        let patch = Patch::Merge(json!({ "spec": { "text": text } }));
        self.api::<Memo>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn copied(&self, name: &str) -> Option<String> {
        let copy = self.api::<ConfigMap>().get_opt(name).await.unwrap()?;
        copy.data?.remove("text")
    }
}

/// A manager that runs until it's stopped.
pub(crate) struct Operator {
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<Result<()>>,
}

impl Operator {
    pub(crate) fn start(manager: Manager) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        Self {
            stop,
            ended: tokio::spawn(manager.start_until(stopped)),
        }
    }

    pub(crate) async fn stop(self) -> Result<()> {
        let _ = self.stop.send(());
        self.ended.await.unwrap()
    }
}

/// Includes the head of the response.
pub(crate) async fn get(address: &str, path: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
