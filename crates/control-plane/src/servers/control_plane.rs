//! Starts etcd and kube-apiserver: arguments, ports and readiness.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::assets::Assets;
use super::cancel::Cancel;
use super::certificates::Certificates;
use super::controllers;
use super::port::ReservedPort;
use super::probe::Probe;
use super::process::Process;
use super::settings::Settings;
use crate::Error;
use crate::workspace::Workspace;

/// Number of attempts, in case another process takes one of the ports.
const ATTEMPTS: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// One year. Longer timeouts could overflow when added to the current time.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A server of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// etcd, the storage backend.
    Etcd,
    /// The API server.
    ApiServer,
}

impl Server {
    /// Name of the program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
        }
    }
}

#[derive(Clone, Copy)]
struct WaitLimit<'a> {
    deadline: Instant,
    /// `None` for restarts: the flag belongs to the start, and callers may set it once that has
    /// returned.
    cancel: Option<&'a Cancel>,
}

impl<'a> WaitLimit<'a> {
    fn of(settings: &Settings, cancel: Option<&'a Cancel>) -> Self {
        let deadline = Instant::now() + settings.start_timeout.min(LONGEST_WAIT);
        Self { deadline, cancel }
    }
}

/// A running control plane. On drop, the servers are killed and their files removed.
#[derive(Debug)]
pub struct ControlPlane {
    /// In start order. Empty after `stop`.
    servers: Mutex<Vec<Process>>,
    settings: Settings,
    etcd: Probe,
    api_server: Probe,
    kubeconfig: Value,
    kubeconfig_path: PathBuf,
    workspace: Workspace,
    /// Held until the servers have exited, because restarted servers reuse their ports.
    _ports: [ReservedPort; 2],
}

impl ControlPlane {
    /// Starts the servers on free ports of 127.0.0.1. Returns once the API server is ready and the
    /// namespace `default` exists.
    ///
    /// # Errors
    ///
    /// Returns an error if the start is cancelled, if a server exits early, or if a server isn't
    /// ready within the start timeout. The error includes the tail of the server's log. All
    /// processes have been killed by then.
    pub fn start(assets: &Assets, settings: &Settings, cancel: &Cancel) -> Result<Self, Error> {
        let mut attempt = 1;
        loop {
            let (error, lost_port) = match Self::start_once(assets, settings, cancel) {
                Ok(plane) => return Ok(plane),
                Err(failure) => failure,
            };
            if !lost_port || attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
        }
    }

    /// The error's flag tells whether another process took a port, in which case a retry may
    /// succeed.
    fn start_once(assets: &Assets, settings: &Settings, cancel: &Cancel) -> Result<Self, (Error, bool)> {
        let limit = WaitLimit::of(settings, Some(cancel));
        let plane = Self::prepare(settings).map_err(|err| (err, false))?;
        match plane.run(assets, limit) {
            Ok(()) => Ok(plane),
            Err(error) => {
                let lost_port = plane.servers().iter().any(Process::lost_its_port);
                Err((error, lost_port))
            }
        }
    }

    /// Prepares without starting any process. Dropping the value cleans up, even if the start fails
    /// later.
    fn prepare(settings: &Settings) -> Result<Self, Error> {
        let workspace = Workspace::create()?;
        let certificates = Certificates::generate()?;
        write_certificates(&workspace, &certificates)?;
        let [etcd_port, api_server_port] = [ReservedPort::reserve()?, ReservedPort::reserve()?];
        let kubeconfig = kubeconfig(api_server_port.number(), &certificates);
        let kubeconfig_path = workspace.write("kubeconfig", &format!("{kubeconfig:#}\n"))?;
        Ok(Self {
            servers: Mutex::default(),
            settings: settings.clone(),
            etcd: Probe::plain(etcd_port.number()),
            api_server: Probe::tls(api_server_port.number(), &certificates)?,
            _ports: [etcd_port, api_server_port],
            kubeconfig,
            kubeconfig_path,
            workspace,
        })
    }

    fn run(&self, assets: &Assets, limit: WaitLimit<'_>) -> Result<(), Error> {
        let etcd_url = format!("http://127.0.0.1:{}", self.etcd.port());
        let mut arguments = etcd_arguments(&etcd_url);
        arguments.extend(self.settings.etcd_args.iter().map(OsString::from));
        self.launch(Server::Etcd, &assets.etcd, arguments)?;
        self.wait_until_ready(Server::Etcd, limit)?;
        let mut arguments = apiserver_arguments(self.api_server.port(), &etcd_url);
        if self.settings.nodes > 0 {
            arguments.extend(controllers::API_SERVER_ARGUMENTS.map(OsString::from));
        }
        arguments.extend(self.settings.apiserver_args.iter().map(OsString::from));
        self.launch(Server::ApiServer, &assets.kube_apiserver, arguments)?;
        self.wait_until_ready(Server::ApiServer, limit)?;
        // kube-apiserver reports ready slightly before it creates this namespace.
        self.wait_for(limit, &self.api_server, "/api/v1/namespaces/default")?;
        if self.settings.controllers || self.settings.nodes > 0 {
            self.run_controllers(assets, limit)?;
        }
        Ok(())
    }

    fn run_controllers(&self, assets: &Assets, limit: WaitLimit<'_>) -> Result<(), Error> {
        // These programs have no readiness endpoint, so wait below for their first effects on
        // objects.
        let launch = |name, arguments| self.launch_program(name, &assets.find_beside(name)?, arguments);
        launch(
            controllers::CONTROLLER_MANAGER,
            controllers::controller_manager_arguments(),
        )?;
        let nodes = 0..self.settings.nodes;
        if !nodes.is_empty() {
            launch(controllers::SCHEDULER, controllers::scheduler_arguments())?;
            launch(controllers::KWOK, controllers::kwok_arguments())?;
        }
        for index in nodes.clone() {
            let node = controllers::node(index).to_string();
            self.api_server
                .post("/api/v1/nodes", &node)
                .map_err(|err| Error::new(format!("cannot create a node: {err}")))?;
        }
        for index in nodes {
            let path = format!("/api/v1/nodes/{}", controllers::node_name(index));
            self.wait_until(limit, &path, &|| {
                self.api_server
                    .get(&path)
                    .and_then(|node| match controllers::is_ready(&node) {
                        true => Ok(()),
                        false => Err("the node is not ready".to_owned()),
                    })
            })?;
        }
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        self.wait_for(limit, &self.api_server, account)
    }

    fn launch(&self, server: Server, program: &Path, arguments: Vec<OsString>) -> Result<(), Error> {
        self.launch_program(server.name(), program, arguments)
    }

    fn launch_program(
        &self,
        name: &'static str,
        program: &Path,
        arguments: Vec<OsString>,
    ) -> Result<(), Error> {
        let process = Process::start(name, program, arguments, &self.workspace, &self.settings)?;
        self.servers().push(process);
        Ok(())
    }

    fn wait_until_ready(&self, server: Server, limit: WaitLimit<'_>) -> Result<(), Error> {
        match server {
            Server::Etcd => self.wait_for(limit, &self.etcd, "/health"),
            Server::ApiServer => self.wait_for(limit, &self.api_server, "/readyz"),
        }
    }

    /// Sends a signal to a server, e.g. `STOP`.
    ///
    /// # Errors
    ///
    /// Returns an error if the control plane was stopped or the signal can't be sent.
    pub fn signal(&self, server: Server, signal: &str) -> Result<(), Error> {
        self.with_server(server, |process, _| process.signal(signal))
    }

    /// Kills a server until it's [restarted](Self::restart).
    ///
    /// # Errors
    ///
    /// Returns an error if the control plane was stopped.
    pub fn kill(&self, server: Server) -> Result<(), Error> {
        self.with_server(server, |process, workspace| {
            process.take_down(workspace);
            Ok(())
        })
    }

    /// Restarts a server with the same arguments and data, and waits for it to become ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the control plane was stopped, or if the server isn't ready within the
    /// start timeout.
    pub fn restart(&self, server: Server) -> Result<(), Error> {
        let limit = WaitLimit::of(&self.settings, None);
        self.with_server(server, |process, workspace| {
            process.restart(workspace, &self.settings)
        })?;
        self.wait_until_ready(server, limit)
    }

    /// Compacts etcd, which discards all but the latest version of each object. kube-apiserver does
    /// the same every five minutes.
    ///
    /// # Errors
    ///
    /// Returns an error if etcd doesn't respond.
    pub fn compact(&self) -> Result<(), Error> {
        let ask = |path: &str, request: Value| {
            let answer = self.etcd.post(path, &request.to_string());
            answer.map_err(|err| Error::new(format!("etcd cannot be compacted: {err}")))
        };
        // Any key will do: every response contains the current revision (as a string).
        let answer = ask("/v3/kv/range", json!({ "key": BASE64.encode("/") }))?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let revision = &answer["header"]["revision"];
        ask(
            "/v3/kv/compaction",
            json!({ "revision": revision, "physical": true }),
        )?;
        Ok(())
    }

    fn with_server<T>(
        &self,
        server: Server,
        act: impl FnOnce(&mut Process, &Workspace) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let name = server.name();
        let mut servers = self.servers();
        let process = servers.iter_mut().find(|process| process.name() == name);
        let process =
            process.ok_or_else(|| Error::new(format!("{name} was stopped with its environment")))?;
        act(process, &self.workspace)
    }

    /// Fails at the deadline, or as soon as a server exits.
    fn wait_for(&self, limit: WaitLimit<'_>, probe: &Probe, path: &str) -> Result<(), Error> {
        self.wait_until(limit, path, &|| probe.get(path).map(drop))
    }

    fn wait_until(
        &self,
        limit: WaitLimit<'_>,
        path: &str,
        ask: &dyn Fn() -> Result<(), String>,
    ) -> Result<(), Error> {
        loop {
            let Err(found) = ask() else {
                return Ok(());
            };
            self.check_running()?;
            if limit.cancel.is_some_and(Cancel::is_cancelled) {
                return Err(Error::new("the start of the control plane was cancelled"));
            }
            if Instant::now() >= limit.deadline {
                let what = format!("was not ready within the start timeout ({path} was not ok: {found})");
                return Err(self
                    .servers()
                    .last()
                    .map_or_else(|| Error::new(&*what), |server| server.error(&what)));
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Checks that no server has exited, as servers never exit on their own.
    ///
    /// # Errors
    ///
    /// Returns an error with the name of the exited server and the tail of its log.
    pub fn check_running(&self) -> Result<(), Error> {
        self.servers().iter_mut().try_for_each(Process::check_running)
    }

    /// The URL of kube-apiserver.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_server.port())
    }

    /// A kubeconfig for a member of `system:masters`.
    #[must_use]
    pub fn kubeconfig(&self) -> &Value {
        &self.kubeconfig
    }

    /// Path of the kubeconfig file, which is removed together with the control plane.
    #[must_use]
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// Stops the API server, then etcd. Subsequent calls are no-ops.
    ///
    /// # Errors
    ///
    /// Returns an error if a server doesn't exit within the stop timeout.
    pub fn stop(&self) -> Result<(), Error> {
        let deadline = Instant::now() + self.settings.stop_timeout.min(LONGEST_WAIT);
        let mut servers = std::mem::take(&mut *self.servers());
        // In reverse start order, since the API server needs etcd until it exits.
        while let Some(mut server) = servers.pop() {
            server.kill_until(&self.workspace, deadline)?;
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

fn write_certificates(workspace: &Workspace, certificates: &Certificates) -> Result<(), Error> {
    let Certificates {
        authority,
        server,
        admin: _,
        service_account_key,
        service_account_public_key,
    } = certificates;
    // Written to the servers' working directory, so that arguments can use relative paths.
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
        // There are no peers. Port 0 makes etcd listen on any free port.
        "--listen-peer-urls=http://127.0.0.1:0",
        // The data is temporary and needn't survive a power failure.
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
        // The plugin rejects Pods without a service account, and without controllers, none are
        // created.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        // Keeps the API server from writing its address to Endpoints, where loopback addresses
        // aren't allowed.
        "--endpoint-reconciler-type=none",
    ]
    .map(OsString::from)
    .to_vec()
}

fn kubeconfig(port: u16, certificates: &Certificates) -> Value {
    let data = |pem: &str| BASE64.encode(pem);
    json!({
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
    })
}
