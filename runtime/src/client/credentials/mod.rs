//! Credentials that change while the operator runs.
//!
//! kube reads a token file, and the CA of the API server, once a minute, and runs a plug-in again before the expiry that it
//! has stated. It never replaces a client certificate, nor what a plug-in gave without an expiry. As in client-go:
//!
//! - After the API server has answered 401, the plug-in runs again, and files are read again. The caller gets the 401: its
//!   next attempt has the new credentials.
//! - Files with a client certificate and its key are read again once a minute (client-go: five). Requests use new connections
//!   once they have changed; a watch in progress keeps its connection until it ends.

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

/// Time between two looks at the files of a client certificate.
const FILE_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two attempts to renew credentials that the API server rejects.
const BETWEEN_RENEWALS: Duration = Duration::from_secs(5);

/// A transport that is replaced when its credentials are renewed. Clones share it.
#[derive(Clone)]
pub(super) struct Renewing(Arc<Shared>);

struct Shared {
    config: Config,
    /// The files of the client certificate.
    files: Vec<PathBuf>,
    state: Mutex<State>,
    /// Held during a renewal.
    renewing: tokio::sync::Mutex<()>,
}

struct State {
    transport: Transport,
    /// Number of renewals so far.
    generation: u64,
    contents: Vec<Option<Vec<u8>>>,
    /// The time of the last look at the files.
    looked: Instant,
    /// The time of the last attempt to renew.
    attempted: Option<Instant>,
}

impl Renewing {
    /// Creates the first transport, which may block.
    ///
    /// # Errors
    /// When the configuration cannot be used.
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
        // The pool of connections has no limit.
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
            if response.status() == StatusCode::UNAUTHORIZED && can_change(&shared.config.auth_info) {
                shared.renew(generation, BETWEEN_RENEWALS).await;
            }
            Ok(response)
        })
    }
}

impl Shared {
    /// Looks at the files, unless that was done less than a minute ago.
    fn have_files_changed(&self) -> bool {
        let mut state = self.lock();
        if self.files.is_empty() || state.looked.elapsed() < FILE_INTERVAL {
            return false;
        }
        state.looked = Instant::now();
        let contents = read_files(&self.files);
        // A file that is missing is about to be replaced.
        contents != state.contents && contents.iter().all(Option::is_some)
    }

    /// Replaces the transport of this generation, unless it has been, or less than `pause` after the last attempt. Goes on in
    /// the background if the caller gives up.
    async fn renew(self: &Arc<Self>, generation: u64, pause: Duration) {
        let shared = Arc::clone(self);
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
                // Before the transport, so that a file that is replaced meanwhile is noticed next time.
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
                // It has panicked, which is logged.
                Err(_) => {}
            }
        });
        // It cannot fail but by a panic.
        let _ = renewal.await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if credentials may be others when they are loaded again.
fn can_change(auth: &AuthInfo) -> bool {
    auth.exec.is_some()
        || auth.auth_provider.is_some()
        || (auth.token.is_none() && auth.token_file.is_some())
        || !certificate_files(auth).is_empty()
}

/// Returns the files of the client certificate and its key. Data in the configuration takes precedence.
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
