//! Serves the API over HTTP: with TLS or in plain text on TCP, or on a Unix socket.
//!
//! Every request except for health checks and the version needs a bearer token: the
//! [administrator's](ServedApi::token), or one that the server issued for a service account. The
//! permissions of service accounts and impersonated users are those of the roles and bindings in
//! the store.
//!
//! Clients that are slow, idle or hostile hold no resources for long: there are limits for the
//! number of connections, for the time of handshakes, heads and bodies, and for the size of bodies.

mod connection;
mod login;
mod users;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use rbuilder_control_plane::{ServingCertificate, issue_serving_certificate};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use self::connection::{Connections, Listener, accept};
use self::login::Login;
use crate::ApiServer;
use crate::identity::TokenKey;

/// Changes kept for watches and lists of older versions. kube-apiserver keeps five minutes of them.
const MOST_CHANGES: usize = 10_000;

/// How long [`ServedApi::stop`] waits for responses.
const LONGEST_STOP: Duration = Duration::from_secs(2);

/// Where to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listen {
    /// HTTP/1.1 and HTTP/2 over TLS, with a new certificate for this address. Port 0 is any free
    /// port.
    Tls(SocketAddr),
    /// HTTP/1.1 without TLS. The token is readable by everybody on the network.
    Plain(SocketAddr),
    /// HTTP/1.1 on a Unix socket that only this user can open. The file must not exist.
    #[cfg(unix)]
    Unix(PathBuf),
}

impl Default for Listen {
    /// TLS on a free port of 127.0.0.1.
    fn default() -> Self {
        Self::Tls(SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

/// A server that answers requests until it is [stopped](Self::stop) or dropped.
pub struct ServedApi {
    server: ApiServer,
    url: String,
    token: String,
    kubeconfig: Value,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl fmt::Debug for ServedApi {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedApi")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Serves the API to other processes.
    ///
    /// From now on, requests are permitted by the roles in the store, and issued tokens are signed.
    /// The history is limited to 10,000 changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the address can't be bound, or if the certificate can't be issued.
    ///
    /// # Panics
    ///
    /// Panics if called outside a tokio runtime.
    pub async fn serve(&self, listen: &Listen) -> io::Result<ServedApi> {
        let token = random_token()?;
        self.shared()
            .state()
            .open_to_users(TokenKey::new(random()?), MOST_CHANGES);
        let (listener, url, authority) = bind(listen).await?;
        let kubeconfig = kubeconfig(&url, authority.as_deref(), &token);
        let (stop, stopped) = watch::channel(false);
        let connections = Connections::new(Login::new(self.clone(), &token), stopped);
        Ok(ServedApi {
            server: self.clone(),
            task: tokio::spawn(accept(listener, connections)),
            url,
            token,
            kubeconfig,
            stop,
        })
    }
}

impl ServedApi {
    /// The URL, e.g. `https://127.0.0.1:40123`, or the path of the socket as `unix:///…`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A kubeconfig for the administrator. It contains the token: write it to a private file.
    #[must_use]
    pub fn kubeconfig(&self) -> &Value {
        &self.kubeconfig
    }

    /// Stops to accept connections, ends watches, and waits up to two seconds for other responses.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.server.drop_watches();
        let _ = tokio::time::timeout(LONGEST_STOP, &mut self.task).await;
    }
}

impl Drop for ServedApi {
    fn drop(&mut self) {
        // The task owns the connections, which end with it.
        self.task.abort();
    }
}

/// Returns the listener, its URL and the PEM certificate of the CA.
async fn bind(listen: &Listen) -> io::Result<(Listener, String, Option<String>)> {
    match listen {
        Listen::Tls(address) => {
            let (listener, address) = bind_tcp(*address).await?;
            let host = match address.ip() {
                ip if ip.is_unspecified() => "localhost".to_owned(),
                ip => ip.to_string(),
            };
            let certificate = issue_serving_certificate(&host).map_err(io::Error::other)?;
            let url = format!("https://{}", reachable(address));
            let acceptor = acceptor(&certificate)?;
            Ok((
                Listener::Tls(listener, acceptor),
                url,
                Some(certificate.authority),
            ))
        }
        Listen::Plain(address) => {
            let (listener, address) = bind_tcp(*address).await?;
            Ok((
                Listener::Plain(listener),
                format!("http://{}", reachable(address)),
                None,
            ))
        }
        #[cfg(unix)]
        Listen::Unix(path) => {
            let listener = bind_private(path)
                .map_err(|error| io::Error::other(format!("cannot listen on {}: {error}", path.display())))?;
            Ok((
                Listener::Unix(listener),
                format!("unix://{}", path.display()),
                None,
            ))
        }
    }
}

async fn bind_tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let failed = |error| io::Error::other(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Binds a socket in a private folder and moves it, because the mode of a socket is only known
/// after anybody can connect to it.
#[cfg(unix)]
fn bind_private(path: &std::path::Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let private = tempfile::Builder::new()
        .prefix(".rbuilder-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(folder.unwrap_or(std::path::Path::new(".")))?;
    let hidden = private.path().join("socket");
    let listener = UnixListener::bind(&hidden)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    // Unlike a rename, a link doesn't replace a file.
    std::fs::hard_link(&hidden, path)?;
    Ok(listener)
}

/// The address at which clients on this machine reach a listener.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn acceptor(certificate: &ServingCertificate) -> io::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(certificate.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

fn random_token() -> io::Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(random()?))
}

fn kubeconfig(url: &str, authority: Option<&str>, token: &str) -> Value {
    let mut cluster = json!({ "server": url });
    if let Some(authority) = authority {
        cluster["certificate-authority-data"] = BASE64.encode(authority).into();
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "rbuilder",
        "clusters": [{ "name": "rbuilder", "cluster": cluster }],
        "users": [{ "name": "admin", "user": { "token": token } }],
        "contexts": [{ "name": "rbuilder", "context": { "cluster": "rbuilder", "user": "admin" } }],
    })
}
