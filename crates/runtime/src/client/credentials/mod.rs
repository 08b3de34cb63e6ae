//! Renews credentials while the operator is running.
//!
//! kube re-reads token files and the CA of the API server once a minute, and runs an exec plugin
//! again before its credentials expire. However, it never replaces client certificates, or
//! credentials from a plugin that doesn't specify an expiry. We do what client-go does:
//!
//! - If the API server responds with 401, the plugin is run again and files are re-read. The 401 is
//!   still returned to the caller, and the new credentials are used for the next attempt.
//! - The files of a client certificate are re-read once a minute (client-go: every five minutes).
//!   When they change, new requests use new connections. Watches keep their connection until they
//!   end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::Config;
use kube::client::{Body, DynBody};
use kube::config::AuthInfo;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

use super::transport::{Transport, new_transport};

const FILE_INTERVAL: Duration = Duration::from_secs(60);
const BETWEEN_RENEWALS: Duration = Duration::from_secs(5);

/// A transport that we replace when we renew its credentials. Clones share the same state.
#[derive(Clone)]
pub(super) struct Renewing(Arc<Shared>);

struct Shared {
    config: Config,
    files: Vec<PathBuf>,
    state: Mutex<State>,
    /// Held during a renewal.
    renewing: tokio::sync::Mutex<()>,
}

struct State {
    transport: Transport,
    /// Each renewal increments this.
    generation: u64,
    contents: Vec<Option<Vec<u8>>>,
    /// When we last looked at the files.
    looked: Instant,
    attempted: Option<Instant>,
}

impl Renewing {
    /// Creates the initial transport. Beware that this may block. Fails if the configuration can't
    /// be used.
    pub(super) fn new(config: Config) -> Result<Self, kube::Error> {
        let files = certificate_files(&config.auth_info);
        let contents = read_files(&files);
        let state = State {
            transport: new_transport(&config)?,
            generation: 0,
            contents,
            looked: Instant::now(),
            attempted: None,
        };
        Ok(Self(Arc::new(Shared {
            config,
            files,
            state: Mutex::new(state),
            renewing: tokio::sync::Mutex::default(),
        })))
    }
}

impl Service<Request<Body>> for Renewing {
    type Response = Response<Box<DynBody>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // We're always ready, because the connection pool is unbounded.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            if shared.have_files_changed() {
                let generation = shared.lock().generation;
                shared.renew(generation, Duration::ZERO).await;
            }
            let (transport, generation) = {
                let state = shared.lock();
                (state.transport.clone(), state.generation)
            };
            let response = transport.oneshot(request).await?;
            // The caller gets the 401 nevertheless, like in client-go. Only its next attempt uses
            // the new credentials.
            if response.status() == StatusCode::UNAUTHORIZED && can_change(&shared.config.auth_info) {
                shared.renew(generation, BETWEEN_RENEWALS).await;
            }
            Ok(response)
        })
    }
}

impl Shared {
    /// Looks at the files at most once a minute.
    fn have_files_changed(&self) -> bool {
        let mut state = self.lock();
        if self.files.is_empty() || state.looked.elapsed() < FILE_INTERVAL {
            return false;
        }
        state.looked = Instant::now();
        let contents = read_files(&self.files);
        // A missing file is probably about to be replaced.
        contents != state.contents && contents.iter().all(Option::is_some)
    }

    /// Replaces the transport, unless somebody else has already replaced this generation, or the
    /// last attempt is less than `pause` ago.
    async fn renew(self: &Arc<Self>, generation: u64, pause: Duration) {
        let shared = Arc::clone(self);
        // Use a task, so that the renewal continues if the caller is cancelled.
        let renewal = tokio::spawn(async move {
            let _renewing = shared.renewing.lock().await;
            let started = {
                let state = shared.lock();
                let is_early = state.attempted.is_some_and(|last| last.elapsed() < pause);
                (state.generation == generation && !is_early).then(Instant::now)
            };
            if started.is_none() {
                return;
            }
            let source = Arc::clone(&shared);
            let renewed = tokio::task::spawn_blocking(move || {
                // Read the files before creating the transport. If somebody replaces them in
                // between, we'll notice next time.
                let contents = read_files(&source.files);
                new_transport(&source.config).map(|transport| (transport, contents))
            });
            let renewed = renewed.await;
            let mut state = shared.lock();
            state.attempted = Some(Instant::now());
            match renewed {
                Ok(Ok((transport, contents))) => {
                    state.transport = transport;
                    state.contents = contents;
                    state.generation += 1;
                    tracing::debug!("credentials for the API server read again");
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "cannot renew the credentials for the API server, keeping the old ones");
                }
                // The task has panicked, which was logged already.
                Err(_) => {}
            }
        });
        // This only fails if the task panics.
        let _ = renewal.await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if it might make a difference to load the credentials again.
fn can_change(auth: &AuthInfo) -> bool {
    auth.exec.is_some()
        || auth.auth_provider.is_some()
        || (auth.token.is_none() && auth.token_file.is_some())
        || !certificate_files(auth).is_empty()
}

/// Inline data takes precedence over files, so we don't have to watch those.
fn certificate_files(auth: &AuthInfo) -> Vec<PathBuf> {
    let certificate = auth
        .client_certificate
        .as_ref()
        .filter(|_| auth.client_certificate_data.is_none());
    let key = auth
        .client_key
        .as_ref()
        .filter(|_| auth.client_key_data.is_none());
    certificate.into_iter().chain(key).map(PathBuf::from).collect()
}

fn read_files(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|path| std::fs::read(path).ok()).collect()
}

#[cfg(test)]
mod tests;
