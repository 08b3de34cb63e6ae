//! Configuration of additional clusters, including the source of their credentials.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};
use tokio::time::{Instant, sleep};

use super::kubeconfig::{Allowed, parse_kubeconfig, to_config};
use crate::causes::describe_causes;
use crate::client::without_credentials;

/// How long a file may be missing or incomplete before that is an error. Many tools truncate a file
/// and write it anew.
const REWRITE: Duration = Duration::from_secs(3);
const REWRITE_POLL: Duration = Duration::from_millis(100);

/// Configuration of an additional cluster. Pass it to [`Manager::cluster`](crate::Manager::cluster)
/// or [`Clusters::add`](crate::Clusters::add).
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

/// Two configurations (or clients) can't be compared, so each gets a number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Serial(u64);

impl Serial {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

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

    /// Creates a configuration from a kubeconfig file.
    ///
    /// The file does not have to exist yet. It's re-read every minute, and whenever the API server
    /// rejects its credentials, so you can mount a Secret and rotate the credentials in it. A file
    /// that is incomplete because it's being rewritten is read again for three seconds.
    pub fn from_kubeconfig(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self::new(name, Origin::File(path.into()), Allowed::ALL)
    }

    /// Creates a configuration from a kubeconfig in a Secret, which is read from the manager's own
    /// cluster.
    ///
    /// The Secret does not have to exist yet. It's re-read every minute, and whenever the API
    /// server rejects its credentials, so the manager's role needs the verb `get` for it. Deleting
    /// the Secret doesn't disconnect the cluster; call [`remove`](crate::Clusters::remove) for
    /// that.
    ///
    /// # Security
    ///
    /// Anyone who can write the Secret controls its contents. Therefore, a kubeconfig that runs a
    /// command, reads files, uses a proxy, or sends credentials to a server without verifying its
    /// certificate is rejected. Each of these can be permitted with one of the `allow_…` methods.
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

    /// Creates a configuration from a kubeconfig in memory, e.g. one that a controller has read
    /// from a Secret. Has the same restrictions as [`from_secret`](Self::from_secret).
    pub fn from_kubeconfig_text(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self::new(name, Origin::Text(text.into()), Allowed::default())
    }

    /// Creates a configuration for the cluster that the process is running in. Use this if the
    /// manager's own cluster is a different one.
    pub fn in_cluster(name: impl Into<String>) -> Self {
        Self::new(name, Origin::InCluster, Allowed::ALL)
    }

    /// Creates a configuration from a [`kube::Config`].
    pub fn from_config(name: impl Into<String>, config: Config) -> Self {
        Self::new(
            name,
            Origin::Config(Box::new(config), Serial::new()),
            Allowed::ALL,
        )
    }

    /// Creates a configuration from an existing client, e.g. for tests, or for clients with custom
    /// layers.
    ///
    /// Its requests don't show up in the metrics, unless the client was built with
    /// [`Metrics::count_requests`](crate::metrics::Metrics::count_requests).
    pub fn from_client(name: impl Into<String>, client: Client) -> Self {
        Self::new(name, Origin::Client(client, Serial::new()), Allowed::ALL)
    }

    /// Sets the context of the kubeconfig to use. Defaults to its `current-context`.
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.source.context = Some(context.into());
        self
    }

    /// Sets the namespaces to watch. Defaults to all namespaces, regardless of `--watch-namespace`,
    /// which only affects the manager's own cluster.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Makes the manager wait for the caches of this cluster before it starts any controllers.
    ///
    /// The manager fails if this takes longer than
    /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout), but keeps running if the cluster
    /// becomes unreachable later. By default, it does not wait for additional clusters at all.
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Permits `exec` and `auth-provider` in a kubeconfig that isn't read from a file (e.g. one in
    /// a Secret).
    ///
    /// This allows anyone who can modify the kubeconfig to run commands in the operator's Pod.
    pub fn allow_commands(mut self) -> Self {
        self.source.allowed.commands = true;
        self
    }

    /// Permits paths in a kubeconfig that isn't read from a file, i.e. `tokenFile`,
    /// `client-certificate`, `client-key` and `certificate-authority`.
    ///
    /// This allows anyone who can modify the kubeconfig to send files of the operator's Pod to a
    /// server of their choice.
    pub fn allow_files(mut self) -> Self {
        self.source.allowed.files = true;
        self
    }

    /// Permits `proxy-url` in a kubeconfig that isn't read from a file.
    pub fn allow_proxy(mut self) -> Self {
        self.source.allowed.proxy = true;
        self
    }

    /// Permits `insecure-skip-tls-verify` and addresses without TLS in a kubeconfig that isn't read
    /// from a file.
    ///
    /// This exposes the credentials to anyone who can intercept the connection.
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
    /// Returns `true` if reloading the source would never change anything.
    pub(super) fn is_fixed(&self) -> bool {
        !matches!(self.origin, Origin::File(_) | Origin::Secret { .. })
    }

    /// Doesn't include the contents, since they are secret.
    pub(super) fn describe(&self) -> String {
        match &self.origin {
            Origin::File(path) => format!("kubeconfig file {}", path.display()),
            Origin::Secret { namespace, name, key } => {
                format!("key `{key}` of the Secret {namespace}/{name}")
            }
            Origin::Text(_) => "kubeconfig in memory".to_owned(),
            Origin::InCluster => "service account of the pod".to_owned(),
            Origin::Config(config, _) => {
                format!("configuration of {}", without_credentials(&config.cluster_url))
            }
            Origin::Client(..) => "client".to_owned(),
        }
    }

    /// Loads the configuration. Secrets are read from the manager's own cluster, using the client
    /// `own`.
    ///
    /// Also returns a number that identifies the contents, and only changes along with them. An
    /// error says what is wrong and where, but doesn't quote the contents.
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
            // The service account doesn't change, and kube reloads its token.
            Origin::InCluster => Config::incluster()
                .map(|config| (config, 0))
                .map_err(|error| describe_causes(&error)),
            Origin::Config(config, serial) => Ok((Config::clone(config), serial.0)),
            Origin::Client(client, serial) => return Ok((Loaded::Client(client.clone()), serial.0)),
        };
        match loaded {
            Ok((config, version)) => Ok((Loaded::Config(Box::new(config)), version)),
            Err(error) => Err(format!("{}: {error}", self.describe())),
        }
    }

    /// Reads a file that can't be used again for a few seconds, because it may be about to be
    /// rewritten.
    async fn load_file(&self, path: &Path) -> Result<(Config, u64), String> {
        let deadline = Instant::now() + REWRITE;
        loop {
            match self.read_file(path).await {
                Err(_) if Instant::now() < deadline => sleep(REWRITE_POLL).await,
                loaded => return loaded,
            }
        }
    }

    async fn read_file(&self, path: &Path) -> Result<(Config, u64), String> {
        let read = || std::fs::read(path).map_err(|error| error.to_string());
        let text = read()?;
        // Pass the path rather than the text, because the file may contain relative paths.
        let kubeconfig = Kubeconfig::read_from(path).map_err(|error| describe_causes(&error))?;
        let config = to_config(kubeconfig, self.context.as_deref(), self.allowed).await?;
        // The hash must be about the contents that were parsed.
        match read()? == text {
            true => Ok((config, hash_of(&text))),
            false => Err("it is being changed".to_owned()),
        }
    }

    async fn load_text(&self, text: &[u8]) -> Result<(Config, u64), String> {
        let config = to_config(parse_kubeconfig(text)?, self.context.as_deref(), self.allowed).await?;
        Ok((config, hash_of(text)))
    }

    /// Returns `true` if replacing one source with the other would change nothing.
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
        error => describe_causes(&error),
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

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const USABLE: &str = r#"{
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "edge", "cluster": { "server": "https://edge.example.com" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "edge", "user": "me" } }],
        "users": [{ "name": "me", "user": { "token": "s3cr3t" } }]
    }"#;

    fn file_with(text: &str) -> (TempDir, PathBuf, Source) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        fs::write(&path, text).unwrap();
        let source = ClusterConfig::from_kubeconfig("edge", &path).source;
        (folder, path, source)
    }

    fn unused_client() -> Client {
        let config = Config::new(http::Uri::from_static("https://own.example.com"));
        Client::try_from(config).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn error_of_a_file_names_the_line_but_quotes_nothing() {
        let cases = [
            ("users:\n- name: me\n  user:\n\t  token: s3cr3t\n", "line 4"),
            ("apiVersion: v1\nusers: s3cr3t\n", "line 2"),
            ("users:\n- name: me\n  user:\n    token: [s3cr3t]\n", "line 4"),
            ("users: [{ name: me, user: { token: s3cr3t } }", "line 1"),
        ];
        for (text, place) in cases {
            let (_folder, path, source) = file_with(text);
            let error = source.load(&unused_client()).await.err().unwrap();
            assert!(!error.contains("s3cr3t"), "{error}");
            let start = format!(
                "kubeconfig file {}: it is not the YAML of a kubeconfig ({place}, column ",
                path.display()
            );
            assert!(error.starts_with(&start), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn file_that_is_being_rewritten_is_read_again() {
        for half in ["", &USABLE[..USABLE.len() / 2]] {
            let (_folder, path, source) = file_with(half);
            let client = unused_client();
            let rewrite = async {
                sleep(REWRITE / 2).await;
                fs::write(&path, USABLE).unwrap();
            };
            let (loaded, ()) = tokio::join!(source.load(&client), rewrite);
            assert!(loaded.is_ok(), "{:?}", loaded.err());
        }
        let (_folder, path, source) = file_with("");
        let started = Instant::now();
        let error = source.load(&unused_client()).await.err().unwrap();
        let expected = format!("kubeconfig file {}: it has no `current-context`", path.display());
        assert_eq!(error, expected);
        assert!(started.elapsed() < REWRITE * 2);
    }
}
