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

/// Starts tried in all when another process takes a port between our choosing it and the server's binding it.
const ATTEMPTS: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// One request of the readiness poll; the first TLS handshake of a busy server takes its time.
const POLL_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane.
#[derive(Debug)]
pub(super) struct ControlPlane {
    /// In the order of their start; empty once stopped.
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

    /// On failure the flag says whether another try with other ports may go better.
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

    /// Everything but the processes. From here on, dropping the value cleans up.
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
            config.map_err(|err| Error::new(format!("cannot read our own kubeconfig: {err}")))?;
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

    /// Does something to one of the servers; an error when it was stopped for good.
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

    /// Starts a server that was killed, as it was, and waits until it is ready.
    pub(super) async fn restart(&self, name: &str) -> Result<(), Error> {
        let deadline = Instant::now() + self.settings.start_timeout;
        self.with_server(name, |server, workspace| {
            server.restart(workspace, &self.settings)
        })?;
        self.wait_until_ready(name, deadline).await
    }

    /// Waits until a server answers 200, as long as all that should run do and the time is not over.
    async fn wait_for(&self, deadline: Instant, config: &Config, path: &str) -> Result<(), Error> {
        let client = client(config)?;
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

    /// kube-apiserver makes it shortly after it is ready, and every namespaced test may want it.
    async fn wait_for_default_namespace(&self, deadline: Instant) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(client(&self.config)?);
        let look = || async { namespaces.get("default").await.map(drop) };
        self.poll(deadline, "there was no namespace `default`", look)
            .await
    }

    async fn poll<F>(&self, deadline: Instant, reason: &str, look: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), kube::Error>>,
    {
        loop {
            let found = timeout(POLL_TIMEOUT, look()).await;
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

    /// Ends the API server, then etcd. A second stop has nothing to do.
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

/// A port that is free now. Another process may take it before the server does; see [`ATTEMPTS`].
fn free_port() -> Result<u16, Error> {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(port
        .map_err(|err| Error::new(format!("there is no free port on 127.0.0.1: {err}")))?
        .port())
}

/// Relative names: the servers run in the workspace.
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
        // It has no peers; port 0 lets it take any free one.
        "--listen-peer-urls=http://127.0.0.1:0",
        // The data goes with the test, so it need not survive a power cut.
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
        // No controller makes service accounts, and without this no pod could be created.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        // There is one server and its address is a loopback one, which endpoints may not hold.
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
    serde_json::from_value(kubeconfig).map_err(|err| Error::new(format!("cannot make a kubeconfig: {err}")))
}

fn config_for(url: &str) -> Result<Config, Error> {
    let url = url
        .parse()
        .map_err(|err| Error::new(format!("{url} is no URL: {err}")))?;
    let mut config = Config::new(url);
    config.default_retry = false;
    Ok(config)
}

fn client(config: &Config) -> Result<Client, Error> {
    Client::try_from(config.clone()).map_err(|err| Error::request("cannot make a client", &err))
}
