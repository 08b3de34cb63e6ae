//! Renews credentials while the operator is running.
//!
//! kube re-reads token files and the API server's CA once a minute, and re-runs an exec plugin
//! before its credentials expire. However, it never replaces client certificates, or credentials
//! from a plugin that doesn't specify an expiry. Like client-go, we do:
//!
//! - On a 401, the plugin is re-run and files are re-read. The caller still receives the 401; the
//!   next attempt uses the new credentials.
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
use crate::causes::describe_causes;

const FILE_INTERVAL: Duration = Duration::from_secs(60);
const BETWEEN_RENEWALS: Duration = Duration::from_secs(5);

/// A transport that is replaced when its credentials are renewed. Clones share the same state.
#[derive(Clone)]
pub(super) struct Renewing(Arc<Shared>);

struct Shared {
    config: Config,
    files: Vec<PathBuf>,
    state: Mutex<State>,
    /// Held during a renewal, so there's only one at a time.
    renewing: tokio::sync::Mutex<()>,
}

struct State {
    transport: Transport,
    /// Incremented by each renewal.
    generation: u64,
    contents: Vec<Option<Vec<u8>>>,
    /// When the files were last read.
    looked: Instant,
    attempted: Option<Instant>,
}

impl Renewing {
    /// Creates the initial transport. May block. Fails if the configuration is invalid.
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
        // Always ready, because the connection pool is unbounded.
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
            // As in client-go, the caller still gets the 401; only its next attempt uses the new
            // credentials.
            if response.status() == StatusCode::UNAUTHORIZED && can_change(&shared.config.auth_info) {
                shared.renew(generation, BETWEEN_RENEWALS).await;
            }
            Ok(response)
        })
    }
}

impl Shared {
    /// Reads the files at most once a minute.
    fn have_files_changed(&self) -> bool {
        let mut state = self.lock();
        if self.files.is_empty() || state.looked.elapsed() < FILE_INTERVAL {
            return false;
        }
        state.looked = Instant::now();
        let contents = read_files(&self.files);
        // A missing file is probably just being replaced.
        contents != state.contents && contents.iter().all(Option::is_some)
    }

    /// Replaces the transport, unless another task already replaced this generation or the last
    /// attempt was less than `pause` ago.
    async fn renew(self: &Arc<Self>, generation: u64, pause: Duration) {
        let shared = Arc::clone(self);
        // Spawn a task, so that the renewal continues if the caller is cancelled.
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
                // Read the files before creating the transport. If they change in between, the next
                // check will notice.
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
                    let error = describe_causes(&error);
                    tracing::warn!(
                        error,
                        "cannot renew the credentials for the API server, keeping the old ones"
                    );
                }
                // The task panicked, which was already logged.
                Err(_) => {}
            }
        });
        // Only fails if the task panics.
        let _ = renewal.await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if reloading the credentials might make a difference.
fn can_change(auth: &AuthInfo) -> bool {
    auth.exec.is_some()
        || auth.auth_provider.is_some()
        || (auth.token.is_none() && auth.token_file.is_some())
        || !certificate_files(auth).is_empty()
}

/// Inline data takes precedence over files, so files that it overrides aren't watched.
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
