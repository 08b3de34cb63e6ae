//! Leader election with a `Lease`, so that only one of several processes acts on the cluster.
//!
//! The algorithm is client-go's. A candidate takes a lease that was not renewed for its whole duration, measured on the
//! candidate's own monotonic clock since it last observed a change of the lease. Each write carries the resource version
//! that was read, so that of two candidates that write at the same time one gets a conflict. A leader that could not
//! renew within the renew deadline has lost, before any other process may take over.
//!
//! It differs from client-go in four points, all of them safer: the renew deadline is measured from when the last
//! successful renewal was sent, not from when it was answered; a leader that observes another holder has lost
//! immediately; a candidate that has observed a lease respects its holder even after the lease was deleted; and a lease
//! is released only by [`Leadership::release`], which the manager calls when its reconciles have finished.
//!
//! # Example: observed time, not the lease's own
//! The lease says `renewTime: 12:00:00, leaseDurationSeconds: 15`, and the holder's clock is a minute slow.
//!
//! | candidate's monotonic clock | event |
//! |---|---|
//! | 0 s (12:01:00 on its wall clock) | reads the lease for the first time; starts to count |
//! | 2 s | reads it again: `renewTime: 12:00:02`. The spec has changed, so it starts to count anew |
//! | 4 s | the holder is killed; the lease stays at `12:00:02` |
//! | 6 s, 8 s, … 16 s | reads the unchanged lease: 14 s since the last change, still valid |
//! | 18 s | 16 s since the last change, more than 15 s: takes the lease |
//!
//! Comparing `renewTime` with the wall clock is simpler, but at 0 s it would find the lease expired 45 s ago and take it
//! from a healthy leader. The price of counting from the first observation is that a candidate that starts after the
//! holder died waits for a full lease duration.
//!
//! # Example: the renew deadline
//! Lease duration 15 s, renew deadline 10 s, retry period 2 s. The leader sends a renewal at 100 s; the API server stores
//! it at 100.1 s and becomes unreachable before the response arrives at the leader.
//!
//! | time | leader | candidates |
//! |---|---|---|
//! | 100 s | sends the renewal; its last *successful* one was sent at 98 s | |
//! | 100.1 s | | observe the renewal at the earliest; may take the lease at 115.1 s |
//! | 102 s, 104 s, … | retries fail or time out | |
//! | 108 s | 10 s after 98 s: has lost; the manager cancels its reconciles and exits | |
//! | 115.1 s | gone for 7 s | one takes the lease |
//!
//! So the deadline must be shorter than the lease duration, and it starts at the sending of a request: a candidate may
//! observe a renewal from the moment it was sent, not only once the leader has received the response. A request that is
//! in flight when the deadline passes is dropped, for its response could not be used anyway.
//!
//! # Example: release
//! On SIGTERM the manager first lets running reconciles finish, and then releases the lease by writing an empty holder and
//! a duration of 1 s, so that another replica takes over at its next attempt, after 2 to 4.4 s instead of 15 s. Releasing
//! it earlier would let two processes act at once. If a reconcile did not finish within the grace period, the lease is
//! left to expire for the same reason.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::client::ClientBuilder;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Config, Resource};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::deadline::{deadline_after, scale};
use crate::error::ManagerError;
use crate::metrics::Metrics;

/// The file in which a pod finds its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Random part of the time between two attempts, relative to the retry period, so that candidates do not write at the
/// same time.
const JITTER: f64 = 1.2;

/// The lease, the identity of this candidate, and the durations.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    /// Name of the `Lease`, the same in all replicas.
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The identity of this process, unique among all processes.
    pub(crate) identity: String,
    pub(crate) times: LeaseTimes,
}

/// The durations of leader election.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTimes {
    /// Time after the last observed renewal until other candidates may take the lease.
    pub(crate) duration: Duration,
    /// Time after the last successful renewal until the leader gives up. It must be shorter than the lease duration.
    pub(crate) renew_deadline: Duration,
    /// Time between two attempts.
    pub(crate) retry_period: Duration,
}

impl Default for LeaseTimes {
    /// Returns client-go's defaults.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaseTimes {
    /// Checks that the durations are consistent.
    ///
    /// # Errors
    /// When the lease could expire before the leader gives up, or the leader could give up before a second attempt.
    pub(crate) fn check(&self) -> Result<(), ManagerError> {
        let Self {
            duration,
            renew_deadline,
            retry_period,
        } = *self;
        let mistake = if duration < Duration::from_secs(1) {
            format!("lease duration must be at least 1s, found {duration:?}")
        } else if retry_period.is_zero() {
            "retry period must be greater than zero".to_owned()
        } else if renew_deadline >= duration {
            format!(
                "lease duration must be greater than the renew deadline of {renew_deadline:?}, found {duration:?}"
            )
        } else if renew_deadline <= scale(retry_period, JITTER) {
            format!(
                "renew deadline must be greater than {JITTER} times the retry period of {retry_period:?}, found \
                 {renew_deadline:?}"
            )
        } else {
            return Ok(());
        };
        Err(ManagerError::LeaseTimes(mistake))
    }
}

impl Election {
    pub(crate) fn new(name: impl Into<String>, namespace: impl Into<String>, times: LeaseTimes) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            identity: new_identity(),
            times,
        }
    }

    /// Returns the timeout of one request: two must fit into the renew deadline, or one slow response would lose the
    /// lease.
    fn request_timeout(&self) -> Duration {
        (self.times.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// Returns the namespace of this pod; `None` outside of a cluster.
pub(crate) fn pod_namespace() -> Option<String> {
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns `<host name>_<random>`: the host name is the pod's name, the rest distinguishes processes of one host.
fn new_identity() -> String {
    let host = hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{host}_{:016x}{:016x}", random_u64(0), random_u64(1))
}

/// Returns a random number. The standard library seeds each hasher with random numbers of the operating system, which is
/// sufficient here.
fn random_u64(salt: u64) -> u64 {
    RandomState::new().hash_one(salt)
}

/// Returns `period` plus a random part of up to [`JITTER`] times the period.
fn add_jitter(period: Duration) -> Duration {
    let share = random_u64(0) as f64 / u64::MAX as f64;
    scale(period, 1.0 + JITTER * share)
}

/// The reason for which this process is no longer the leader.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum LeadershipLost {
    #[error("lease is held by {0}")]
    HeldByOther(String),
    #[error("failed to renew lease within {:?}; last error: {last_error}", .deadline)]
    RenewDeadline { deadline: Duration, last_error: String },
    #[error("lease renewal stopped")]
    RenewalStopped,
}

/// A candidate for leadership.
pub(crate) struct Elector {
    election: Election,
    client: Client,
    leases: Api<Lease>,
    /// The lease as last read or written.
    observed: Option<ObservedLease>,
}

#[derive(Clone)]
struct ObservedLease {
    lease: Lease,
    /// The time at which this spec was first observed.
    at: Instant,
}

/// The result of an attempt to acquire or renew the lease. A failed request is an error instead, which says nothing about
/// the holder.
enum Attempt {
    Leading,
    HeldBy(String),
}

impl Elector {
    /// Creates a candidate with a client of its own: renewals must not be queued behind other requests, nor be retried by
    /// the client after the deadline.
    ///
    /// # Errors
    /// When no client can be created from the configuration.
    pub(crate) fn with_config(
        election: Election,
        mut config: Config,
        metrics: &Metrics,
    ) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.connect_timeout = Some(election.request_timeout());
        let counted = metrics.count_requests(&config.cluster_url);
        let client = ClientBuilder::try_from(config)?.with_layer(&counted).build();
        Ok(Self::with_client(election, client))
    }

    /// Creates a candidate that shares a client. Each request still times out after half the renew deadline.
    pub(crate) fn with_client(election: Election, client: Client) -> Self {
        let leases = Api::namespaced(client.clone(), &election.namespace);
        Self {
            election,
            client,
            leases,
            observed: None,
        }
    }

    /// Waits until this process is the leader, for as long as it takes. Dropping the future withdraws the candidate.
    pub(crate) async fn acquire(mut self) -> Leadership {
        let lease = format!("{}/{}", self.election.namespace, self.election.name);
        tracing::info!(
            lease,
            identity = self.election.identity,
            "attempting to acquire leader lease"
        );
        let mut holder = None;
        loop {
            let sent = Instant::now();
            match self.try_acquire_or_renew().await {
                Ok(Attempt::Leading) => {
                    tracing::info!(lease, "successfully acquired lease");
                    self.record_event();
                    return Leadership::start(self, sent);
                }
                Ok(Attempt::HeldBy(other)) => {
                    if holder.as_ref() != Some(&other) {
                        tracing::info!(lease, holder = other, "lease is held by another process");
                        holder = Some(other);
                    }
                }
                Err(error) => tracing::warn!(lease, %error, "failed to acquire lease, retrying"),
            }
            sleep(add_jitter(self.election.times.retry_period)).await;
        }
    }

    /// Attempts once to acquire or renew the lease.
    async fn try_acquire_or_renew(&mut self) -> Result<Attempt, String> {
        if let Some(lease) = self.own_lease() {
            // No other process may write a lease that is valid, so there is no need to read it first. If one did
            // nevertheless, the write fails with a conflict.
            if self.write(lease.clone()).await.is_ok() {
                return Ok(Attempt::Leading);
            }
        }
        let Some(found) = self.read().await? else {
            // The holder does not know that the lease was deleted, and may act until it would have expired.
            if let Some(holder) = self.other_holder() {
                return Ok(Attempt::HeldBy(holder));
            }
            self.create().await?;
            return Ok(Attempt::Leading);
        };
        self.observe(found.clone());
        if let Some(holder) = self.other_holder() {
            return Ok(Attempt::HeldBy(holder));
        }
        self.write(found).await?;
        Ok(Attempt::Leading)
    }

    fn own_lease(&self) -> Option<&Lease> {
        let observed = self.observed.as_ref()?;
        (self.is_own(&observed.lease) && self.is_valid(observed)).then_some(&observed.lease)
    }

    fn is_own(&self, lease: &Lease) -> bool {
        holder(lease) == Some(self.election.identity.as_str())
    }

    /// Returns `true` if the lease has not expired, by the duration in the lease and not by our own.
    fn is_valid(&self, observed: &ObservedLease) -> bool {
        let seconds = observed
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(self.election.times.duration, Duration::from_secs);
        observed.at.elapsed() < duration
    }

    /// Returns the holder of the lease if it is another process and the lease has not expired.
    fn other_holder(&self) -> Option<String> {
        let observed = self.observed.as_ref()?;
        let holder = holder(&observed.lease)?;
        (!self.is_own(&observed.lease) && self.is_valid(observed)).then(|| holder.to_owned())
    }

    /// Stores the lease. The expiry is measured anew only if the spec has changed: a changed label or annotation does not
    /// mean that the holder is alive.
    fn observe(&mut self, lease: Lease) {
        match &mut self.observed {
            Some(observed) if observed.lease.spec == lease.spec => observed.lease = lease,
            observed => {
                *observed = Some(ObservedLease {
                    lease,
                    at: Instant::now(),
                })
            }
        }
    }

    async fn read(&self) -> Result<Option<Lease>, String> {
        self.with_timeout(self.leases.get_opt(&self.election.name)).await
    }

    async fn create(&mut self) -> Result<(), String> {
        let metadata = ObjectMeta {
            name: Some(self.election.name.clone()),
            namespace: Some(self.election.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease {
            metadata,
            spec: Some(self.new_spec(None)),
        };
        let created = self
            .with_timeout(self.leases.create(&PostParams::default(), &lease))
            .await?;
        self.observe(created);
        Ok(())
    }

    /// Acquires or renews the lease. Its resource version makes the API server return a conflict if the lease has changed
    /// since it was read.
    async fn write(&mut self, mut lease: Lease) -> Result<(), String> {
        lease.spec = Some(self.new_spec(lease.spec.as_ref()));
        let replaced = self.replace(&lease).await?;
        self.observe(replaced);
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, String> {
        self.with_timeout(
            self.leases
                .replace(&self.election.name, &PostParams::default(), lease),
        )
        .await
    }

    /// Returns the spec of a lease held by this process; `before` is the previous spec.
    fn new_spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let before = before.cloned().unwrap_or_default();
        let own = before.holder_identity.as_deref() == Some(self.election.identity.as_str());
        let transitions = before.lease_transitions.unwrap_or(0);
        let first = before.holder_identity.is_none() && before.acquire_time.is_none();
        LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: Some(whole_seconds(self.election.times.duration)),
            acquire_time: if own { before.acquire_time } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(if own || first {
                transitions
            } else {
                transitions.saturating_add(1)
            }),
            ..before
        }
    }

    async fn with_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, String> {
        let limit = self.election.request_timeout();
        match timeout(limit, request).await {
            Ok(response) => response.map_err(|error| error.to_string()),
            Err(_) => Err(format!("request timed out after {limit:?}")),
        }
    }

    /// Renews the lease until the renew deadline has passed, another process holds it, or `stop` is set. `renewed` is the
    /// time at which the last successful renewal was sent.
    async fn renew(
        &mut self,
        mut renewed: Instant,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), LeadershipLost> {
        let LeaseTimes {
            renew_deadline,
            retry_period,
            ..
        } = self.election.times;
        let mut last_error = "none".to_owned();
        loop {
            let deadline = deadline_after(renewed, renew_deadline);
            let stopped = async { stop.wait_for(|stop| *stop).await.map(drop) };
            // An error means that the `Leadership` was dropped, which aborts this task.
            if timeout_at(
                deadline.min(deadline_after(Instant::now(), retry_period)),
                stopped,
            )
            .await
            .is_ok()
            {
                return Ok(());
            }
            let sent = Instant::now();
            if sent < deadline {
                match timeout_at(deadline, self.try_acquire_or_renew()).await {
                    Ok(Ok(Attempt::Leading)) => renewed = sent,
                    Ok(Ok(Attempt::HeldBy(other))) => return Err(LeadershipLost::HeldByOther(other)),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "failed to renew lease, retrying");
                        last_error = error;
                    }
                    Err(_) => last_error = "request timed out".to_owned(),
                }
            }
            if Instant::now() >= deadline_after(renewed, renew_deadline) {
                return Err(LeadershipLost::RenewDeadline {
                    deadline: renew_deadline,
                    last_error,
                });
            }
        }
    }

    /// Releases the lease, unless another process holds it.
    async fn release(&mut self) -> Result<(), String> {
        // Read again: a renewal that was cancelled may have been stored.
        let Some(mut lease) = self.read().await? else {
            return Ok(());
        };
        if !self.is_own(&lease) {
            return Ok(());
        }
        let now = Some(MicroTime(Timestamp::now()));
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: now.clone(),
            renew_time: now,
            ..lease.spec.unwrap_or_default()
        });
        self.replace(&lease).await.map(drop)
    }

    /// Records an event on the lease in the background, which may get lost.
    fn record_event(&self) {
        let Some(observed) = &self.observed else { return };
        let reference = observed.lease.object_ref(&());
        let reporter = Reporter {
            controller: self.election.name.clone(),
            instance: Some(self.election.identity.clone()),
        };
        let recorder = Recorder::new(self.client.clone(), reporter);
        let event = Event {
            type_: EventType::Normal,
            reason: "LeaderElection".to_owned(),
            note: Some(format!("{} became leader", self.election.identity)),
            action: "BecomeLeader".to_owned(),
            secondary: None,
        };
        let limit = self.election.request_timeout();
        tokio::spawn(async move {
            if let Ok(Err(error)) = timeout(limit, recorder.publish(&event, &reference)).await {
                tracing::debug!(%error, "failed to record leader election event");
            }
        });
    }
}

/// Returns the holder of a lease; a released lease has an empty one.
fn holder(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|holder| !holder.is_empty())
}

/// Returns the duration in whole seconds, at least one: a lease of zero seconds would never be valid.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs().max(1)).unwrap_or(i32::MAX)
}

/// The leadership of this process, which renews its lease in the background until it is released, dropped or
/// [lost](Self::lost).
///
/// Dropping it stops the renewal without releasing the lease, which then expires: after a failure, work may still be in
/// progress.
pub(crate) struct Leadership {
    renewer: JoinHandle<Elector>,
    stop: watch::Sender<bool>,
    state: watch::Receiver<RenewalState>,
}

#[derive(Clone)]
enum RenewalState {
    Renewing,
    Stopped,
    Lost(LeadershipLost),
}

impl Leadership {
    fn start(mut elector: Elector, acquired: Instant) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (state_sender, state) = watch::channel(RenewalState::Renewing);
        let renewer = tokio::spawn(async move {
            let result = elector.renew(acquired, stopped).await;
            state_sender.send_replace(result.map_or_else(RenewalState::Lost, |()| RenewalState::Stopped));
            elector
        });
        Self { renewer, stop, state }
    }

    /// Resolves when the leadership is lost, never when it is released. The process must then stop acting immediately,
    /// preferably by exiting.
    pub(crate) fn lost(&self) -> impl Future<Output = LeadershipLost> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            let ended = state
                .wait_for(|state| !matches!(state, RenewalState::Renewing))
                .await
                .map(|state| state.clone());
            match ended {
                Ok(RenewalState::Lost(lost)) => lost,
                Ok(RenewalState::Renewing | RenewalState::Stopped) => std::future::pending().await,
                // The renewing task was dropped: it panicked, or its runtime is shutting down.
                Err(_) => LeadershipLost::RenewalStopped,
            }
        }
    }

    /// Stops renewing and releases the lease, so that another candidate need not wait for it to expire.
    ///
    /// Call it once nothing acts as leader any more. A failure is logged; the lease then expires.
    pub(crate) async fn release(mut self) {
        self.stop.send_replace(true);
        let Ok(mut elector) = (&mut self.renewer).await else {
            return;
        };
        let lease = elector.election.name.clone();
        match elector.release().await {
            Ok(()) => tracing::info!(lease, "released lease"),
            Err(error) => tracing::warn!(lease, %error, "failed to release lease, it will expire"),
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.renewer.abort();
    }
}

#[cfg(test)]
mod tests;
