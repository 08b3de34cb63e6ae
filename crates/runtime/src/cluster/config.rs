//! The configuration of another cluster, and where its credentials come from.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};

use super::kubeconfig::{Allowed, parse_kubeconfig, to_config};

/// The configuration of another cluster, for [`Manager::cluster`](crate::Manager::cluster) or
/// [`Clusters::add`](crate::Clusters::add).
///
/// ```
/// # use rbuilder::ClusterConfig;
/// let edge = ClusterConfig::from_secret("edge", "operators", "edge-kubeconfig", "kubeconfig").namespaces(["web"]);
/// ```
#[derive(Clone)]
#[must_use = "pass it to `Manager::cluster` or `Clusters::add`"]
pub struct ClusterConfig {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) namespaces: Vec<String>,
    pub(super) is_required: bool,
}

/// Where the address and the credentials of a cluster come from.
#[derive(Clone)]
pub(super) struct Source {
    origin: Origin,
    context: Option<String>,
    allowed: Allowed,
}

#[derive(Clone)]
enum Origin {
    File(PathBuf),
    Secret {
        namespace: String,
        name: String,
        key: String,
    },
    Text(Vec<u8>),
    InCluster,
    Config(Box<Config>, Serial),
    Client(Client, Serial),
}

/// Distinguishes values that cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Serial(u64);

impl Serial {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The result of reading a source.
pub(super) enum Loaded {
    Config(Box<Config>),
    Client(Client),
}

impl ClusterConfig {
    fn new(name: impl Into<String>, origin: Origin, allowed: Allowed) -> Self {
        Self {
            name: name.into(),
            source: Source {
                origin,
                context: None,
                allowed,
            },
            namespaces: Vec::new(),
            is_required: false,
        }
    }

    /// Uses a kubeconfig file.
    ///
    /// The file is read again every minute and when the API server rejects its credentials, so it
    /// may be a mounted Secret with rotating credentials. It does not have to exist at first.
    pub fn from_kubeconfig(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self::new(name, Origin::File(path.into()), Allowed::ALL)
    }

    /// Uses the kubeconfig in a Secret of the manager's own cluster.
    ///
    /// The Secret is read again every minute and when the API server rejects its credentials. It
    /// does not have to exist at first. Deleting the Secret later has no effect; to stop using a
    /// cluster, [remove](crate::Clusters::remove) it. The manager's role needs `get` on the Secret.
    ///
    /// A Secret is untrusted input: kubeconfig keys that run commands, read files, name a proxy, or
    /// send credentials to an unverified server are refused, unless allowed with the `allow_…`
    /// methods.
    pub fn from_secret(
        name: impl Into<String>,
        namespace: impl Into<String>,
        secret: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        let origin = Origin::Secret {
            namespace: namespace.into(),
            name: secret.into(),
            key: key.into(),
        };
        Self::new(name, origin, Allowed::default())
    }

    /// Uses a kubeconfig in memory, such as one that a controller has read from a Secret. As for
    /// [`from_secret`](Self::from_secret), dangerous keys are refused.
    pub fn from_kubeconfig_text(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self::new(name, Origin::Text(text.into()), Allowed::default())
    }

    /// Uses the cluster of the pod's service account, for a manager whose own cluster is a
    /// different one.
    pub fn in_cluster(name: impl Into<String>) -> Self {
        Self::new(name, Origin::InCluster, Allowed::ALL)
    }

    /// Uses a kube configuration.
    pub fn from_config(name: impl Into<String>, config: Config) -> Self {
        Self::new(
            name,
            Origin::Config(Box::new(config), Serial::new()),
            Allowed::ALL,
        )
    }

    /// Uses an existing client, for tests and for clients with custom layers. Its requests are
    /// counted only if it was built with
    /// [`Metrics::count_requests`](crate::metrics::Metrics::count_requests).
    pub fn from_client(name: impl Into<String>, client: Client) -> Self {
        Self::new(name, Origin::Client(client, Serial::new()), Allowed::ALL)
    }

    /// Selects a context of the kubeconfig. Defaults to its `current-context`.
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.source.context = Some(context.into());
        self
    }

    /// Watches objects in these namespaces only. Defaults to all. `--watch-namespace` only applies
    /// to the manager's own cluster.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Delays all controllers until the caches of this cluster are synced, like those of the
    /// manager's own cluster. The manager fails if that takes longer than
    /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout). Losing the cluster later stops
    /// nothing. By default, a manager starts without its other clusters.
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Allows `exec` and `auth-provider` in a kubeconfig that is not a file. Whoever can write the
    /// kubeconfig can then run commands in the operator's pod.
    pub fn allow_commands(mut self) -> Self {
        self.source.allowed.commands = true;
        self
    }

    /// Allows paths of files (`tokenFile`, `client-certificate`, `client-key`,
    /// `certificate-authority`) in a kubeconfig that is not a file. Whoever can write the
    /// kubeconfig can then have the operator's files sent to a server.
    pub fn allow_files(mut self) -> Self {
        self.source.allowed.files = true;
        self
    }

    /// Allows `proxy-url` in a kubeconfig that is not a file.
    pub fn allow_proxy(mut self) -> Self {
        self.source.allowed.proxy = true;
        self
    }

    /// Allows `insecure-skip-tls-verify` and addresses without TLS in a kubeconfig that is not a
    /// file. Anyone between the operator and the cluster can then read the credentials.
    pub fn allow_insecure(mut self) -> Self {
        self.source.allowed.insecure = true;
        self
    }
}

impl fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("name", &self.name)
            .field("source", &self.source.describe())
            .field("namespaces", &self.namespaces)
            .field("required", &self.is_required)
            .finish()
    }
}

impl Source {
    /// Returns `true` if reading the source again cannot yield anything new.
    pub(super) fn is_fixed(&self) -> bool {
        !matches!(self.origin, Origin::File(_) | Origin::Secret { .. })
    }

    /// Describes the source without its contents.
    pub(super) fn describe(&self) -> String {
        match &self.origin {
            Origin::File(path) => format!("kubeconfig file {}", path.display()),
            Origin::Secret { namespace, name, key } => {
                format!("key `{key}` of the Secret {namespace}/{name}")
            }
            Origin::Text(_) => "kubeconfig in memory".to_owned(),
            Origin::InCluster => "service account of the pod".to_owned(),
            Origin::Config(config, _) => format!("configuration of {}", config.cluster_url),
            Origin::Client(..) => "client".to_owned(),
        }
    }

    /// Reads the configuration. The second value identifies its contents and stays the same if
    /// nothing has changed. `own` is a client of the manager's own cluster.
    ///
    /// # Errors
    /// Returns the place and the problem, without the contents.
    pub(super) async fn load(&self, own: &Client) -> Result<(Loaded, u64), String> {
        let loaded = match &self.origin {
            Origin::File(path) => self.load_file(path).await,
            Origin::Secret { namespace, name, key } => {
                let text = read_secret(own, namespace, name, key).await;
                match text {
                    Ok(text) => self.load_text(&text).await,
                    Err(error) => Err(error),
                }
            }
            Origin::Text(text) => self.load_text(text).await,
            Origin::InCluster => Config::incluster()
                .map(|config| (config, 0))
                .map_err(|error| error.to_string()),
            Origin::Config(config, serial) => Ok((Config::clone(config), serial.0)),
            Origin::Client(client, serial) => return Ok((Loaded::Client(client.clone()), serial.0)),
        };
        match loaded {
            Ok((config, version)) => Ok((Loaded::Config(Box::new(config)), version)),
            Err(error) => Err(format!("{}: {error}", self.describe())),
        }
    }

    async fn load_file(&self, path: &Path) -> Result<(Config, u64), String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        // Paths in the file are relative to its directory.
        let kubeconfig = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
        let config = to_config(kubeconfig, self.context.as_deref(), self.allowed).await?;
        Ok((config, hash_of(&text)))
    }

    async fn load_text(&self, text: &[u8]) -> Result<(Config, u64), String> {
        let config = to_config(parse_kubeconfig(text)?, self.context.as_deref(), self.allowed).await?;
        Ok((config, hash_of(text)))
    }

    /// Returns `true` if both have the same place and contents, so that replacing one with the
    /// other changes nothing.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_same_origin = match (&self.origin, &other.origin) {
            (Origin::File(one), Origin::File(other)) => one == other,
            (Origin::Text(one), Origin::Text(other)) => one == other,
            (
                Origin::Secret { namespace, name, key },
                Origin::Secret {
                    namespace: other_namespace,
                    name: other_name,
                    key: other_key,
                },
            ) => (namespace, name, key) == (other_namespace, other_name, other_key),
            (Origin::InCluster, Origin::InCluster) => true,
            (
                Origin::Config(_, one) | Origin::Client(_, one),
                Origin::Config(_, other) | Origin::Client(_, other),
            ) => one == other,
            _ => false,
        };
        is_same_origin && self.context == other.context && self.allowed == other.allowed
    }
}

async fn read_secret(own: &Client, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, String> {
    let secrets: Api<Secret> = Api::namespaced(own.clone(), namespace);
    let secret = secrets.get_opt(name).await.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!(
                "{}; does the manager's role allow `get` on the Secret?",
                status.message
            )
        }
        error => crate::error::describe_causes(&error),
    })?;
    let secret = secret.ok_or("the Secret does not exist")?;
    let mut data = secret.data.unwrap_or_default();
    match data.remove(key) {
        Some(text) => Ok(text.0),
        None if data.is_empty() => Err("the Secret has no data".to_owned()),
        None => {
            let keys: Vec<String> = data.into_keys().collect();
            Err(format!(
                "the Secret has no such key, only `{}`",
                keys.join("`, `")
            ))
        }
    }
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
