//! etcd and kube-apiserver together: their flags, their ports, and when they are ready.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use super::assets::Assets;
use super::certificates::Certificates;
use super::process::Process;
use super::settings::Settings;
use super::workspace::Workspace;

pub(super) const ETCD: &str = "etcd";
pub(super) const API_SERVER: &str = "kube-apiserver";

/// Number of starts attempted when another process takes a port between our choice of it and the server's bind.
const ATTEMPTS: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of one request of the readiness poll; long, because the first TLS handshake of a busy server is slow.
const POLL_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane.
#[derive(Debug)]
pub(super) struct ControlPlane {
    /// The running servers in start order; empty after `stop`.
    servers: Mutex<Vec<Process>>,
    settings: Settings,
    etcd_url: String,
    config: Config,
    kubeconfig: Kubeconfig,
    kubeconfig_path: PathBuf,
    workspace: Workspace,
}

impl ControlPlane {
    pub(super) async fn start(assets: &Assets, settings: &Settings) -> Result<Self, Error> {
        let mut attempt = 1;
        loop {
            let (error, lost_port) = match Self::start_once(assets, settings).await {
                Ok(plane) => return Ok(plane),
                Err(failure) => failure,
            };
            if !lost_port || attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
        }
    }

    /// Starts the servers once. On failure, the flag says whether a port was lost, so that other ports may work.
    async fn start_once(assets: &Assets, settings: &Settings) -> Result<Self, (Error, bool)> {
        let deadline = Instant::now() + settings.start_timeout;
        let plane = Self::prepare(settings).await.map_err(|err| (err, false))?;
        match plane.run(assets, deadline).await {
            Ok(()) => Ok(plane),
            Err(error) => {
                let lost_port = plane.servers().iter().any(Process::lost_its_port);
                Err((error, lost_port))
            }
        }
    }

    /// Prepares everything but the processes. Dropping the returned value cleans up.
    async fn prepare(settings: &Settings) -> Result<Self, Error> {
        let workspace = Workspace::create()?;
        let certificates = Certificates::generate()?;
        write_certificates(&workspace, &certificates)?;
        let kubeconfig = kubeconfig(free_port()?, &certificates)?;
        let text = serde_json::to_string_pretty(&kubeconfig);
        let text = text.map_err(|err| Error::new(format!("cannot write a kubeconfig: {err}")))?;
        let kubeconfig_path = workspace.write("kubeconfig", &text)?;
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await;
        let mut config =
            config.map_err(|err| Error::new(format!("cannot read the generated kubeconfig: {err}")))?;
        config.default_retry = false;
        Ok(Self {
            servers: Mutex::default(),
            settings: settings.clone(),
            etcd_url: format!("http://127.0.0.1:{}", free_port()?),
            config,
            kubeconfig,
            kubeconfig_path,
            workspace,
        })
    }

    async fn run(&self, assets: &Assets, deadline: Instant) -> Result<(), Error> {
        let mut arguments = etcd_arguments(&self.etcd_url);
        arguments.extend(self.settings.etcd_args.iter().map(OsString::from));
        self.launch(ETCD, &assets.etcd, arguments)?;
        self.wait_until_ready(ETCD, deadline).await?;
        let port = self.config.cluster_url.port_u16().unwrap_or_default();
        let mut arguments = apiserver_arguments(port, &self.etcd_url);
        arguments.extend(self.settings.apiserver_args.iter().map(OsString::from));
        self.launch(API_SERVER, &assets.kube_apiserver, arguments)?;
        self.wait_until_ready(API_SERVER, deadline).await?;
        self.wait_for_default_namespace(deadline).await
    }

    fn launch(&self, name: &'static str, program: &Path, arguments: Vec<OsString>) -> Result<(), Error> {
        let process = Process::start(name, program, arguments, &self.workspace, &self.settings)?;
        self.servers().push(process);
        Ok(())
    }

    async fn wait_until_ready(&self, name: &str, deadline: Instant) -> Result<(), Error> {
        if name == ETCD {
            self.wait_for(deadline, &config_for(&self.etcd_url)?, "/health")
                .await
        } else {
            self.wait_for(deadline, &self.config, "/readyz").await
        }
    }

    /// Calls `act` with one of the servers.
    ///
    /// # Errors
    /// When the environment was stopped, and those of `act`.
    pub(super) fn with_server<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut Process, &Workspace) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut servers = self.servers();
        let server = servers.iter_mut().find(|server| server.name() == name);
        let server = server.ok_or_else(|| Error::new(format!("{name} was stopped with its environment")))?;
        act(server, &self.workspace)
    }

    /// Restarts a server with its arguments and data, and waits until it is ready.
    pub(super) async fn restart(&self, name: &str) -> Result<(), Error> {
        let deadline = Instant::now() + self.settings.start_timeout;
        self.with_server(name, |server, workspace| {
            server.restart(workspace, &self.settings)
        })?;
        self.wait_until_ready(name, deadline).await
    }

    /// Polls a path until it answers 200. Fails at the deadline, or as soon as a server has exited.
    async fn wait_for(&self, deadline: Instant, config: &Config, path: &str) -> Result<(), Error> {
        let client = client_for(config)?;
        self.poll(deadline, &format!("{path} was not ok"), || {
            let request = http::Request::get(path).body(Vec::new());
            let client = client.clone();
            async move {
                client
                    .request_text(request.map_err(kube::Error::HttpError)?)
                    .await
                    .map(drop)
            }
        })
        .await
    }

    /// Waits for the namespace `default`, which kube-apiserver creates shortly after it is ready.
    async fn wait_for_default_namespace(&self, deadline: Instant) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(client_for(&self.config)?);
        let get = || async { namespaces.get("default").await.map(drop) };
        self.poll(deadline, "namespace `default` was not found", get)
            .await
    }

    async fn poll<F>(&self, deadline: Instant, reason: &str, request: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), kube::Error>>,
    {
        loop {
            let found = timeout(POLL_TIMEOUT, request()).await;
            if matches!(found, Ok(Ok(()))) {
                return Ok(());
            }
            for server in self.servers().iter_mut() {
                server.check_running()?;
            }
            if Instant::now() >= deadline {
                let found = match found {
                    Ok(Err(err)) => Error::request(reason, &err).to_string(),
                    _ => format!("{reason}: no answer"),
                };
                let what = format!("was not ready within the start timeout ({found})");
                return Err(self
                    .servers()
                    .last()
                    .map_or_else(|| Error::new(&*what), |server| server.error(&what)));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    pub(super) fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// Stops the API server, then etcd. A second call does nothing.
    pub(super) async fn stop(&self) -> Result<(), Error> {
        let deadline = Instant::now() + self.settings.stop_timeout;
        let mut servers = std::mem::take(&mut *self.servers());
        while let Some(mut server) = servers.pop() {
            server.kill_until(&self.workspace, deadline).await?;
        }
        Ok(())
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Process>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let mut servers = std::mem::take(&mut *self.servers());
        while let Some(mut server) = servers.pop() {
            server.kill(&self.workspace);
        }
    }
}

/// Returns a port that is free now. Another process may take it before the server binds it; see [`ATTEMPTS`].
fn free_port() -> Result<u16, Error> {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(port
        .map_err(|err| Error::new(format!("cannot find a free port on 127.0.0.1: {err}")))?
        .port())
}

/// Writes the files that the servers' arguments name relative to the workspace, in which they run.
fn write_certificates(workspace: &Workspace, certificates: &Certificates) -> Result<(), Error> {
    let Certificates {
        authority,
        server,
        admin: _,
        service_account_key,
        service_account_public_key,
    } = certificates;
    workspace.write("ca.crt", authority)?;
    workspace.write("apiserver.crt", &server.certificate)?;
    workspace.write("apiserver.key", &server.key)?;
    workspace.write("sa.key", service_account_key)?;
    workspace.write("sa.pub", service_account_public_key)?;
    Ok(())
}

fn etcd_arguments(url: &str) -> Vec<OsString> {
    let listen = format!("--listen-client-urls={url}");
    let advertise = format!("--advertise-client-urls={url}");
    [
        "--data-dir=etcd",
        listen.as_str(),
        advertise.as_str(),
        // There are no peers; port 0 takes any free port.
        "--listen-peer-urls=http://127.0.0.1:0",
        // The data is deleted with the test, so it need not survive a power failure.
        "--unsafe-no-fsync",
    ]
    .map(OsString::from)
    .to_vec()
}

fn apiserver_arguments(port: u16, etcd_url: &str) -> Vec<OsString> {
    let etcd = format!("--etcd-servers={etcd_url}");
    let secure_port = format!("--secure-port={port}");
    let issuer = format!("--service-account-issuer=https://127.0.0.1:{port}/");
    [
        etcd.as_str(),
        secure_port.as_str(),
        issuer.as_str(),
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--cert-dir=.",
        "--tls-cert-file=apiserver.crt",
        "--tls-private-key-file=apiserver.key",
        "--client-ca-file=ca.crt",
        "--service-account-key-file=sa.pub",
        "--service-account-signing-key-file=sa.key",
        "--authorization-mode=RBAC",
        // No controller creates service accounts, and the plugin refuses pods without one.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        // The only server listens on a loopback address, which endpoints must not contain.
        "--endpoint-reconciler-type=none",
    ]
    .map(OsString::from)
    .to_vec()
}

fn kubeconfig(port: u16, certificates: &Certificates) -> Result<Kubeconfig, Error> {
    let data = |pem: &str| ByteString(pem.as_bytes().to_vec());
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "envtest",
        "clusters": [{ "name": "envtest", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": data(&certificates.authority),
        }}],
        "users": [{ "name": "admin", "user": {
            "client-certificate-data": data(&certificates.admin.certificate),
            "client-key-data": data(&certificates.admin.key),
        }}],
        "contexts": [{ "name": "envtest", "context": { "cluster": "envtest", "user": "admin" }}],
    });
    serde_json::from_value(kubeconfig).map_err(|err| Error::new(format!("cannot create a kubeconfig: {err}")))
}

fn config_for(url: &str) -> Result<Config, Error> {
    let url = url
        .parse()
        .map_err(|err| Error::new(format!("{url} is not a URL: {err}")))?;
    let mut config = Config::new(url);
    config.default_retry = false;
    Ok(config)
}

fn client_for(config: &Config) -> Result<Client, Error> {
    Client::try_from(config.clone()).map_err(|err| Error::request("cannot create a client", &err))
}
