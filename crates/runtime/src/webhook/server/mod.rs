//! Startup, readiness and certificate of the webhook server.
//!
//! With a managed certificate, the process only becomes ready once all webhooks are referenced by a
//! configuration; until then, the check reports what is missing. From then on it stays ready until
//! it's asked to stop. The server keeps listening for a while after that, because the Service leads
//! to it until all nodes know that the Pod is gone.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Version};
use kube::Client;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Routes;
use super::managed::{Injection, Keeper, ManagedCertificate};
use super::memory;
use crate::args::ManagerArgs;
use crate::error::ManagerError;
use crate::metrics::Metrics;
use crate::server::{Reply, RequestBody, Server, ServerThreads};
use crate::shutdown::Shutdown;
use crate::tls::{CertificateError, Certificates, Files, check_handshake};

/// Used in errors.
pub(crate) const NAME: &str = "the webhook server";

pub(crate) struct Setup<'a> {
    pub(crate) args: &'a ManagerArgs,
    /// Certificate set in the operator's code.
    pub(crate) certificate: Option<ManagedCertificate>,
    /// File with the CAs of accepted client certificates.
    pub(crate) client_authorities: Option<&'a Path>,
    pub(crate) client: Client,
    pub(crate) metrics: Metrics,
    /// Includes the time for injecting the CA bundle of a managed certificate.
    pub(crate) timeout: Duration,
    pub(crate) max_connections: usize,
    /// Total for all reviews, in bytes. `None` for the default.
    pub(crate) memory: Option<usize>,
    pub(crate) threads: ServerThreads,
}

pub(crate) struct Started {
    pub(crate) serving: BoxFuture<'static, ()>,
    injection: Option<watch::Receiver<Injection>>,
}

/// The check `webhook` of `/readyz`.
#[derive(Clone, Default)]
pub(crate) struct Readiness(Arc<State>);

#[derive(Default)]
struct State {
    listening: Mutex<Option<Listening>>,
    /// Set when the process is about to stop.
    is_leaving: AtomicBool,
}

#[derive(Clone)]
struct Listening {
    address: SocketAddr,
    certificates: Arc<Certificates>,
    injection: Option<watch::Receiver<Injection>>,
}

pub(crate) async fn start_server(
    routes: Routes,
    setup: Setup<'_>,
    readiness: &Readiness,
    shutdown: Shutdown,
) -> Result<Started, ManagerError> {
    let failed = |reason: String| ManagerError::Server { server: NAME, reason };
    let (args, metrics) = (setup.args, setup.metrics.clone());
    let client_authorities = setup.client_authorities;
    let Source {
        certificates,
        upkeep,
        injection,
    } = find_certificate(&routes, &setup).await?;
    let tls = certificates.acceptor(client_authorities, args.enable_http2);
    let tls = tls.map_err(|error| failed(error.to_string()))?;
    let server = Server::bind(&bind_address(args)).await;
    let server = server.map_err(|error| failed(format!("--webhook-host, --webhook-port: {error}")))?;
    let server = server.ok_or_else(|| failed("--webhook-port: no address to listen on".to_owned()))?;
    let address = server.address().map_err(|error| failed(error.to_string()))?;
    tracing::info!(%address, "serving webhooks");
    readiness.set_listening(Listening {
        address,
        certificates,
        injection: injection.clone(),
    });
    let server = server.with_max_connections(setup.max_connections);
    let server = setup
        .threads
        .adopt(server)
        .map_err(|error| failed(error.to_string()))?;
    let memory = setup.memory.unwrap_or_else(memory::default_total);
    let handler = routes.into_handler(&metrics, memory);
    let handler = close_when_leaving(handler, readiness.clone());
    let serving = setup
        .threads
        .run(server.serve(Some(tls), handler, shutdown.requested()));
    let serving = async move {
        tokio::select! {
            () = serving => {}
            () = upkeep => {}
        }
    };
    Ok(Started {
        serving: serving.boxed(),
        injection,
    })
}

/// Makes clients reconnect while the process is leaving, so that they reach another replica once the
/// Service leads there. Closing an idle connection instead would lose a request that is on its way.
fn close_when_leaving<H, F>(
    handler: H,
    readiness: Readiness,
) -> impl Fn(Request<RequestBody>) -> BoxFuture<'static, Reply> + Send + Sync + 'static
where
    H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    move |request| {
        // HTTP/2 has no such header. The server tells its clients when it stops listening.
        let has_header = request.version() <= Version::HTTP_11;
        let (reply, readiness) = (handler(request), readiness.clone());
        async move {
            let mut reply = reply.await;
            if has_header && readiness.is_leaving() {
                reply
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            reply
        }
        .boxed()
    }
}

/// Adds the brackets that IPv6 addresses need.
fn bind_address(args: &ManagerArgs) -> String {
    let port = args.webhook_port;
    match args.webhook_host.as_deref() {
        Some(host) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        host => format!("{}:{port}", host.unwrap_or_default()),
    }
}

struct Source {
    certificates: Arc<Certificates>,
    /// Reloads or rotates the certificate. Never returns.
    upkeep: BoxFuture<'static, ()>,
    injection: Option<watch::Receiver<Injection>>,
}

/// Looks for a certificate in this order: the files in the flags, a managed certificate (from flags
/// or code), and controller-runtime's default files.
async fn find_certificate(routes: &Routes, setup: &Setup<'_>) -> Result<Source, ManagerError> {
    let args = setup.args;
    let asked = ManagedCertificate::from_args(args);
    let folder = args
        .webhook_cert_path
        .clone()
        .filter(|folder| folder != Path::new(""));
    if let (Some(folder), Some(_)) = (&folder, &asked) {
        return Err(ManagerError::Flag {
            flag: "webhook-cert-path",
            value: folder.display().to_string(),
            reason: "with --webhook-cert-service the manager issues the certificate itself; set only one of the two"
                .to_owned(),
        });
    }
    let failed = |reason: String| ManagerError::Server { server: NAME, reason };
    let managed = asked
        .or_else(|| setup.certificate.clone())
        .filter(|_| folder.is_none());
    let Some(managed) = managed else {
        let files = certificate_files(args, folder);
        let (certificates, upkeep) = Certificates::from_files(files, setup.metrics.clone())
            .map_err(|error| failed(format!("--webhook-cert-path: {error}{}", advice_for(&error))))?;
        return Ok(Source {
            certificates,
            upkeep: upkeep.boxed(),
            injection: None,
        });
    };
    let (client, metrics) = (setup.client.clone(), setup.metrics.clone());
    let keeper = Keeper::new(
        managed,
        routes.injection_targets(),
        client,
        metrics,
        setup.timeout,
    )
    .await;
    let keeper = keeper.map_err(|error| failed(error.to_string()))?;
    Ok(Source {
        certificates: keeper.certificates(),
        injection: Some(keeper.injection()),
        upkeep: keeper.run().boxed(),
    })
}

/// Returns a hint for a missing certificate. The file usually exists in a cluster, but hardly ever
/// on a developer's machine.
fn advice_for(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Read { source, .. } if source.kind() == ErrorKind::NotFound => {
            "; on a development machine, run `rbuilder dev`, which issues a certificate, or set ENABLE_WEBHOOKS=false"
        }
        _ => "",
    }
}

/// `folder` defaults to the same directory as in controller-runtime.
fn certificate_files(args: &ManagerArgs, folder: Option<PathBuf>) -> Files {
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("k8s-webhook-server/serving-certs"));
    Files {
        certificate: folder.join(&args.webhook_cert_name),
        key: folder.join(&args.webhook_cert_key),
    }
}

impl Started {
    /// Waits until the CA bundle was injected everywhere. Until then, the API server doesn't trust
    /// this server, so it can't call the conversion webhooks that our caches need.
    ///
    /// [`serving`](Self::serving) must be polled concurrently.
    pub(crate) fn injected(&self, limit: Duration) -> impl Future<Output = Result<(), ManagerError>> + use<> {
        let injection = self.injection.clone();
        async move {
            let Some(mut injection) = injection else {
                return Ok(());
            };
            let done = injection.wait_for(|injection| !matches!(injection, Injection::Pending(_)));
            if timeout(limit, done).await.is_ok() {
                // Also reached if the keeper has exited, which the manager will report.
                return Ok(());
            }
            let reason = match &*injection.borrow() {
                Injection::Pending(Some(error)) => error.clone(),
                _ => "no response from the API server".to_owned(),
            };
            let limit = limit.as_secs();
            let reason = format!("CA bundle not injected within {limit} s: {reason}");
            Err(ManagerError::Server { server: NAME, reason })
        }
    }
}

impl Readiness {
    fn set_listening(&self, listening: Listening) {
        *self.lock() = Some(listening);
    }

    /// Fails the check from now on, and makes clients reconnect.
    pub(crate) fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Release);
    }

    fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Listening>> {
        self.0.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the CA bundle was injected, and that clients see our current certificate.
    pub(crate) async fn check(&self) -> Result<(), String> {
        if self.is_leaving() {
            return Err("the process is shutting down".to_owned());
        }
        let listening = self.lock().clone();
        let Some(listening) = listening else {
            return Err("the webhook server is not listening yet".to_owned());
        };
        if let Some(injection) = &listening.injection {
            match &*injection.borrow() {
                Injection::Done => {}
                Injection::Pending(error) => {
                    let error = error.as_deref().unwrap_or("injection has just started");
                    return Err(format!("CA bundle not injected yet: {error}"));
                }
                Injection::Unreferenced(reason) => {
                    return Err(format!(
                        "some webhooks are not called by the API server: {reason}"
                    ));
                }
            }
        }
        check_handshake(listening.address, &listening.certificates).await
    }
}

#[cfg(test)]
mod tests;
