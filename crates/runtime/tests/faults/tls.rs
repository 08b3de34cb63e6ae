//! TLS faults between an operator and the API server. Each fault should be logged once, including
//! its cause. The operator must not connect more often than usual, and must recover afterwards.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::{Config, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::proxy::Proxy;

/// Must be longer than kube's connect timeout (30 s) and the maximum backoff of a watch.
const SOON: Duration = Duration::from_secs(120);
/// How long a fault continues after it was logged.
const WHILE: Duration = Duration::from_secs(10);
/// Maximum number of connections in that time, for an operator with a single watch. The backoff
/// starts at 0.8 s.
const MOST_CONNECTIONS: usize = 15;

/// Name of a cluster's CA.
const NAME: &str = "kubernetes";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn certificate(&self) -> &Certificate {
        self.0.as_ref()
    }

    /// Returns an acceptor with a new certificate.
    fn acceptor(&self) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(
            tokio_rustls::rustls::crypto::ring::default_provider(),
        ));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth();
        let config = config
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// How the server handles new connections.
#[derive(Clone)]
enum Handshake {
    Complete(TlsAcceptor),
    /// Responds to the first message with an alert.
    Refuse,
    /// Never responds.
    Stall,
    /// Closes the connection in the middle of its first message.
    Cut,
    /// Responds with plain HTTP.
    PlainHttp,
}

/// A TLS server in front of a proxy, which is stopped on drop.
struct Front {
    port: u16,
    handshake: watch::Sender<Handshake>,
    accepted: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

impl Front {
    async fn start(upstream: &Proxy, handshake: Handshake) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let upstream = upstream.config().cluster_url.authority().unwrap().to_string();
        let (handshake, changes) = watch::channel(handshake);
        let accepted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&accepted);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(stream, upstream.clone(), changes.clone()));
            }
        });
        Self {
            port,
            handshake,
            accepted,
            _accepting: accepting,
        }
    }

    /// Changes how new connections are handled, and closes existing ones.
    fn change(&self, handshake: Handshake) {
        self.handshake.send_replace(handshake);
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Serves a connection until the handling changes.
async fn serve(stream: TcpStream, upstream: String, mut changes: watch::Receiver<Handshake>) {
    let handshake = changes.borrow_and_update().clone();
    tokio::select! {
        _ = shake(stream, &upstream, handshake) => {}
        _ = changes.changed() => {}
    }
}

async fn shake(mut stream: TcpStream, upstream: &str, handshake: Handshake) -> io::Result<()> {
    let answer: &[u8] = match handshake {
        Handshake::Complete(acceptor) => {
            let mut stream = acceptor.accept(stream).await?;
            let mut upstream = TcpStream::connect(upstream).await?;
            return copy_bidirectional(&mut stream, &mut upstream).await.map(drop);
        }
        Handshake::Stall => std::future::pending().await,
        // A fatal alert (handshake_failure).
        Handshake::Refuse => &[21, 3, 3, 0, 2, 2, 40],
        // The header of a handshake message with 100 bytes, only 4 of which are sent.
        Handshake::Cut => &[22, 3, 3, 0, 100, 2, 0, 0, 96],
        Handshake::PlainHttp => b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    };
    if stream.read(&mut [0; 4096]).await? == 0 {
        return Ok(());
    }
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    // Wait until the operator has closed the connection. With unread data, it would be reset before
    // the operator gets to read the response.
    while stream.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}

/// Warnings and errors of all operators in this program.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn shared() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::WARN)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .init();
            log
        })
    }

    /// Returns all lines that report an unreachable server. For an open watch, the error would be a
    /// different one.
    fn about(&self, url: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let start = format!("cannot reach the API server at {url}: ");
        text.lines()
            .filter(|line| line.contains(&start))
            .map(str::to_owned)
            .collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Names of all objects that were reconciled.
type Reconciled = Arc<Mutex<Vec<String>>>;

async fn note(map: Arc<ConfigMap>, ctx: Ctx<Reconciled>) -> Result {
    ctx.lock().unwrap().push(map.name_any());
    Ok(Action::await_change())
}

/// An operator that reconciles ConfigMaps in a namespace, and connects to a TLS server.
struct Stage {
    env: Environment,
    namespace: String,
    authority: Authority,
    /// Directory with the CA bundle (`ca.crt`) that the operator trusts.
    trusted: TempDir,
    front: Front,
    _proxy: Proxy,
    reconciled: Reconciled,
}

impl Stage {
    async fn new(env: Environment, seed: u64) -> Self {
        let namespace = env.namespace("tls").await.unwrap();
        let authority = Authority::new(NAME);
        let proxy = Proxy::start(env.client(), seed).await;
        let front = Front::start(&proxy, Handshake::Complete(authority.acceptor())).await;
        let trusted = tempfile::tempdir().unwrap();
        std::fs::write(trusted.path().join("ca.crt"), authority.certificate().pem()).unwrap();
        Self {
            env,
            namespace,
            authority,
            trusted,
            front,
            _proxy: proxy,
            reconciled: Reconciled::default(),
        }
    }

    fn bundle(&self) -> PathBuf {
        self.trusted.path().join("ca.crt")
    }

    /// The configuration that kube creates in a Pod, and that we create for a kubeconfig with a CA
    /// file.
    fn config(&self) -> Config {
        let mut config = Config::new(self.front.url().parse().unwrap());
        config.root_cert = Some(vec![self.authority.certificate().der().to_vec()]);
        config.root_cert_file = Some(self.bundle());
        config
    }

    fn manager(&self) -> Manager {
        let args = ManagerArgs {
            watch_namespace: self.namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        Manager::with_config("tls.example.com", self.config(), args)
            .unwrap()
            .controller(Controller::new(note, Arc::clone(&self.reconciled)))
    }

    fn start(&self) -> (oneshot::Sender<()>, JoinHandle<Result<()>>) {
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(self.manager().start_until(async {
            let _ = stopped.await;
        }));
        (stop, running)
    }

    /// Creates an object and waits until it's reconciled.
    async fn is_reconciled(&self, name: &str) {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        let maps = Api::<ConfigMap>::namespaced(self.env.client(), &self.namespace);
        maps.create(&PostParams::default(), &map).await.unwrap();
        eventually(SOON, || async {
            self.reconciled.lock().unwrap().iter().any(|found| found == name)
        })
        .await;
    }

    /// Waits until the fault is logged. It must be logged only once and with its cause, and the
    /// operator must connect at its usual pace.
    async fn reports(&self, what: &str, cause: &str) {
        let url = self.front.url();
        eventually(SOON, || async { !Log::shared().about(&url).is_empty() }).await;
        let before = self.front.accepted();
        sleep(WHILE).await;
        let tried = self.front.accepted() - before;
        let lines = Log::shared().about(&url);
        println!("{what}: {tried} connections in {WHILE:?}; {}", lines.join("\n"));
        assert_eq!(lines.len(), 1, "{what}: {lines:#?}");
        let line = &lines[0];
        assert_eq!(line.matches(cause).count(), 1, "{what}: {line}");
        assert!(
            tried <= MOST_CONNECTIONS,
            "{what}: {tried} connections in {WHILE:?}"
        );
    }
}

/// The fault affects the server's connections for a while.
async fn survives(env: Environment, what: &str, fault: Handshake, cause: &str) {
    let stage = Stage::new(env, 50).await;
    let (stop, running) = stage.start();
    stage.is_reconciled("before").await;
    stage.front.change(fault.clone());
    stage.reports(what, cause).await;
    assert!(!running.is_finished(), "{what}");

    // An operator started during a fault exits with the cause, as in a terminal.
    if !matches!(fault, Handshake::Stall) {
        let started = stage.manager().start_until(std::future::pending());
        let error = format!("{:#}", started.await.unwrap_err());
        assert_eq!(error.matches(cause).count(), 1, "{what}: {error}");
        assert_eq!(error.matches(&stage.front.url()).count(), 1, "{what}: {error}");
    }

    stage
        .front
        .change(Handshake::Complete(stage.authority.acceptor()));
    stage.is_reconciled("after").await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// The server gets a certificate from a new CA, and the operator's bundle is only updated later. In
/// a cluster, different components distribute the two.
async fn survives_a_rotation(env: Environment) {
    let stage = Stage::new(env, 51).await;
    let (stop, running) = stage.start();
    stage.is_reconciled("before").await;
    // Both CAs have the same name, as in a cluster.
    let next = Authority::new(NAME);
    stage.front.change(Handshake::Complete(next.acceptor()));
    stage
        .reports("a rotation", "signed by an unknown authority")
        .await;
    std::fs::write(stage.bundle(), next.certificate().pem()).unwrap();
    stage.is_reconciled("after").await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// The scenarios run concurrently, since they spend most of the time waiting.
#[rbuilder::envtest::test]
async fn survives_tls_faults_and_logs_each_once(env: Environment) {
    Log::shared();
    let other = Handshake::Complete(Authority::new("another").acceptor());
    let mut scenarios = JoinSet::new();
    for (what, fault, cause) in [
        ("a refusal", Handshake::Refuse, "received fatal alert"),
        ("a stall", Handshake::Stall, "deadline has elapsed"),
        ("a cut", Handshake::Cut, "tls handshake eof"),
        ("another certificate", other, "signed by an unknown authority"),
        ("plain HTTP", Handshake::PlainHttp, "does not speak TLS"),
    ] {
        scenarios.spawn(survives(env.clone(), what, fault, cause));
    }
    scenarios.spawn(survives_a_rotation(env));
    let mut failures = Vec::new();
    while let Some(ended) = scenarios.join_next().await {
        failures.extend(ended.err());
    }
    assert!(failures.is_empty(), "{failures:?}");
}
