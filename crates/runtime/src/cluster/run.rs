//! Tasks that run for each cluster.

use std::time::Duration;

use futures::FutureExt;
use http::{Request, Uri};
use kube::client::Body;
use kube::{Client, Config};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};
use tracing::Instrument;

use super::config::{Loaded, Source};
use super::connection::State;
use super::handle::Cluster;
use super::set::ClusterServices;
use crate::backoff::Backoff;
use crate::cache::NamedWatch;
use crate::causes::describe_causes;
use crate::client::{ClientSettings, Reachability, new_manager_client};
use crate::error::Error;
use crate::traces::trace_requests;

/// Interval between reads of a kubeconfig.
const REREAD_EVERY: Duration = Duration::from_secs(60);
/// Minimum delay before re-reading the kubeconfig if the API server keeps rejecting our
/// credentials.
const REREAD_PAUSE: Duration = Duration::from_secs(5);
/// Delay between attempts to connect to a cluster, same as for watches.
const RETRIES: Backoff = Backoff {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30),
};

/// Runs a cluster until it's removed. Errors are only logged, since they must not affect the
/// manager or other parts of the cluster.
pub(super) async fn run_cluster(
    cluster: Cluster,
    services: ClusterServices,
    mut watches: mpsc::UnboundedReceiver<NamedWatch>,
) -> Result<(), Error> {
    let mut state = cluster.0.connection.watch_state();
    // Dropping the set cancels all tasks.
    let mut tasks = JoinSet::new();
    let span = tracing::info_span!("cluster", cluster = cluster.name());
    let report = cluster.caches().clone().report_stale(services.stale_after);
    tasks.spawn(report.map(|()| Ok(())).instrument(span.clone()));
    tasks.spawn(follow_source(cluster.clone(), services));
    tasks.spawn(announce_connections(cluster.clone()));
    tasks.spawn(announce_sync(cluster.clone()));
    loop {
        tokio::select! {
            // Can't fail, because the cluster owns the sender.
            _ = state.wait_for(|state| *state == State::Removed) => return Ok(()),
            Some((name, watch)) = watches.recv() => {
                let watch = async move { watch.await.map_err(|error| format!("{name} stopped: {error:#}")) };
                tasks.spawn(watch.instrument(span.clone()));
            }
            Some(ended) = tasks.join_next() => note_end(&cluster, ended),
        }
    }
}

fn note_end(cluster: &Cluster, ended: Result<Result<(), String>, JoinError>) {
    let reason = match ended {
        Ok(Ok(())) => return,
        Ok(Err(reason)) => reason,
        Err(error) => error.to_string(),
    };
    tracing::error!(
        cluster = cluster.name(),
        error = reason,
        "part of a cluster failed"
    );
    cluster.0.connection.note_failure(reason);
}

#[derive(PartialEq)]
struct Connected {
    version: u64,
    server: Server,
}

/// Identity of a server, to detect when a client connects to a different one.
#[derive(PartialEq)]
enum Server {
    /// The address and the CA certificates.
    At(Uri, Option<Vec<Vec<u8>>>),
    /// Serial number of a client whose server isn't known.
    Behind(u64),
}

impl Connected {
    fn new(loaded: &Loaded, version: u64) -> Self {
        let server = match loaded {
            Loaded::Config(config) => Server::At(config.cluster_url.clone(), config.root_cert.clone()),
            Loaded::Client(_) => Server::Behind(version),
        };
        Self { version, server }
    }
}

/// Connects to the cluster, and reconnects when the credentials change.
async fn follow_source(cluster: Cluster, services: ClusterServices) -> Result<(), String> {
    let settings = ClientSettings {
        reachability: Reachability::default(),
        flow_control: services.client.flow_control.separate(),
        ..services.client.clone()
    };
    let mut connected: Option<Connected> = None;
    let mut pace = Pace::default();
    loop {
        let source = cluster.source();
        let outcome = connect(&cluster, &source, &services, &settings, &mut connected).await;
        match outcome {
            Ok(()) if cluster.is_connected() => {
                // A fixed source never changes, so there's nothing to re-read.
                let period = match source.is_fixed() {
                    true => Duration::MAX,
                    false => REREAD_EVERY,
                };
                wait_while_connected(&cluster, period, &mut pace).await;
                continue;
            }
            Ok(()) => {}
            // Still connected, so keep using the old credentials.
            Err(reason) if connected.is_some() => {
                tracing::warn!(
                    cluster = cluster.name(),
                    error = reason,
                    "credentials not read again"
                );
            }
            Err(reason) => cluster.0.connection.note_failure(reason),
        }
        wait(&cluster, pace.next()).await;
    }
}

#[derive(Default)]
struct Pace {
    failures: u32,
}

impl Pace {
    fn next(&mut self) -> Duration {
        let delay = RETRIES.delay_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// `lasted` is how long the connection was usable. The delay only grows if the connection is
    /// lost repeatedly in quick succession.
    fn next_after(&mut self, lasted: Duration) -> Duration {
        if lasted >= RETRIES.max {
            self.failures = 0;
        }
        self.next()
    }
}

/// Returns when it's time to re-read the credentials, or to probe a lost connection.
async fn wait_while_connected(cluster: &Cluster, period: Duration, pace: &mut Pace) {
    let (mut state, since) = (cluster.0.connection.watch_state(), Instant::now());
    let lost = async {
        // Can't fail, because the cluster owns the sender.
        let _ = state.wait_for(|state| *state != State::Connected).await;
    };
    tokio::select! {
        () = wait(cluster, period) => {}
        () = lost => wait(cluster, pace.next_after(since.elapsed())).await,
    }
}

/// Waits for `delay`, or until the credentials may have changed.
async fn wait(cluster: &Cluster, delay: Duration) {
    tokio::select! {
        () = sleep(delay) => {}
        () = cluster.0.source_replaced.notified() => {}
        () = cluster.0.connection.rejected() => sleep(REREAD_PAUSE.min(delay)).await,
    }
}

/// Reloads the credentials and switches to them if they have changed.
async fn connect(
    cluster: &Cluster,
    source: &Source,
    services: &ClusterServices,
    settings: &ClientSettings,
    connected: &mut Option<Connected>,
) -> Result<(), String> {
    let (loaded, version) = source.load(&services.own).await?;
    let now = Connected::new(&loaded, version);
    if connected.as_ref() != Some(&now) {
        let client = match loaded {
            Loaded::Client(client) => client,
            Loaded::Config(config) => new_client(*config, services, settings)?,
        };
        cluster.0.connection.set_client(client);
        match connected {
            // Resource versions of different servers are unrelated, so the watches can't resume.
            Some(before) if before.server != now.server => {
                tracing::info!(
                    cluster = cluster.name(),
                    "cluster has another server, listing its objects again"
                );
                cluster.caches().restart();
            }
            Some(_) => tracing::info!(cluster = cluster.name(), "cluster has other credentials"),
            None => {}
        }
        *connected = Some(now);
    }
    // Probe the cluster if it did not respond to the most recent request; otherwise nothing might
    // notice that it's back.
    if !cluster.is_connected() {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static("/version");
        // Ignore the result, which the connection has already recorded.
        let _ = cluster.client().send(request).await;
    }
    // No-op except for the first time.
    cluster.caches().start();
    Ok(())
}

fn new_client(
    config: Config,
    services: &ClusterServices,
    settings: &ClientSettings,
) -> Result<Client, String> {
    let server = config.cluster_url.clone();
    let client =
        new_manager_client(config, &services.metrics, settings).map_err(|error| describe_causes(&error))?;
    Ok(trace_requests(client, Some(&server)))
}

/// Logs when the cluster is connected or lost. Makes controllers retry once it's back.
async fn announce_connections(cluster: Cluster) -> Result<(), String> {
    let mut state = cluster.0.connection.watch_state();
    let (name, mut pace) = (cluster.name(), Pace::default());
    loop {
        // Can't fail, because the cluster owns the sender.
        let _ = state.wait_for(|state| *state == State::Connected).await;
        tracing::info!(cluster = name, "cluster connected");
        let since = Instant::now();
        cluster.call_on_ready();
        let lost = state.wait_for(|state| *state != State::Connected).await;
        let reason = lost.ok().and_then(|state| state.problem().map(str::to_owned));
        tracing::warn!(cluster = name, error = reason, "cluster lost, retrying");
        // Limit the effect of a flapping connection to once every 30 seconds.
        sleep(pace.next_after(since.elapsed())).await;
    }
}

async fn announce_sync(cluster: Cluster) -> Result<(), String> {
    cluster.until_synced().await;
    tracing::info!(cluster = cluster.name(), "caches of the cluster synced");
    cluster.call_on_ready();
    Ok(())
}
