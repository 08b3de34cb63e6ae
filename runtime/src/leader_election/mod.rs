//! Leader election with a `Lease`, so that only one of several processes acts on the cluster.
//!
//! The algorithm is client-go's. A candidate takes a lease that was not renewed for its whole duration, measured on the
//! candidate's own monotonic clock since it last observed a change of the lease. Each write carries the resource version
//! that was read, so that of two candidates that write at the same time one gets a conflict. A leader that could not
//! renew within the renew deadline has lost, before any other process may take over.
//!
//! It differs from client-go in five points, all of them safer: the renew deadline is measured from when the last
//! successful renewal was sent, not from when it was answered; a response that arrives after the deadline does not
//! renew; a leader that observes another holder has lost immediately; a candidate that has observed a lease respects
//! its holder even after the lease was deleted; and a lease is released only by [`Leadership::release`], which the
//! manager calls when its reconciles have finished.
//!
//! # Fencing
//! A process that has lost its lease must not write, though it may not know of the loss, or be unable to stop:
//!
//! - The [elector](Elector) of a manager with a configuration renews on a [thread](Leadership::start_on_thread) with a
//!   runtime and a client of its own. Reconciles that block the threads of the manager's runtime do not delay it.
//! - The [fence] is the moment at which the renew deadline passes. Workers compare it with the clock before each key,
//!   and the [client](fence_client) of leader-only controllers before each write.
//! - The [watchdog] ends the process a second after the loss, whatever blocks it.
//!
//! | the process | holds because |
//! |---|---|
//! | blocks all threads of its runtime | the elector has its own; after a loss the watchdog ends the process |
//! | is stopped and continued (SIGSTOP, cgroup freezer, starved of CPU) | the monotonic clock went on, so the fence has closed |
//! | has its wall clock set | nothing here reads it, except to write `acquireTime` and `renewTime` for people |
//! | loses the network | the fence closes without any answer, 5 s before another process may take the lease |
//!
//! Two limits remain, as in client-go. A request that was sent before the fence closed may arrive later, by at most the
//! time that the network holds it back. And on a machine that is suspended, the monotonic clock of Linux stands still:
//! after the machine is resumed, the process may write until its elector has asked the API server, which it does at
//! the next retry period. Resource versions and server-side apply protect against both.
//!
//! # Example: observed time, not the lease's own
//! The lease says `renewTime: 12:00:00, leaseDurationSeconds: 15`, and the holder's clock is a minute slow.
//!
//! | candidate's monotonic clock | event |
//! |---|---|
//! | 0 s (12:01:00 on its wall clock) | reads the lease for the first time; starts to count |
//! | 2 s | reads it again: `renewTime: 12:00:02`. The spec has changed, so it starts to count again |
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

mod fence;
mod fenced_client;
mod leadership;
mod watchdog;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Config, Resource};
use tokio::time::{Instant, sleep, timeout};

use crate::client::{ClientSettings, is_unreachable, new_lease_client, with_field_manager};
use crate::deadline::{deadline_after, scale};
use crate::error::ManagerError;
use crate::metrics::Metrics;
use crate::random::{random_share, random_u64};

pub(crate) use fence::Fence;
use fence::FenceState;
pub(crate) use fenced_client::fence_client;
pub(crate) use leadership::{Leadership, LeadershipLost};
pub(crate) use watchdog::start_watchdog;

/// The file in which a pod finds its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The field manager of leases and of the events about them.
const FIELD_MANAGER: &str = "rbuilder-leader-election";

/// Random part of the time between two attempts, relative to the retry period, so that candidates do not write at the
/// same time.
const JITTER: f64 = 1.2;

/// Number of attempts to release a lease that others change, for example with `kubectl annotate`; client-go's
/// `retry.DefaultRetry`.
const RELEASE_ATTEMPTS: usize = 5;
/// Time for the event that reports the end of the leadership, while the process waits to exit.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

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

/// Returns the parameters of writes.
fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
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
    format!("{host}_{:016x}{:016x}", random_u64(), random_u64())
}

/// Returns `period` plus a random part of up to [`JITTER`] times the period.
fn add_jitter(period: Duration) -> Duration {
    scale(period, 1.0 + JITTER * random_share())
}

/// A candidate for leadership.
pub(crate) struct Elector {
    election: Election,
    client: Client,
    leases: Api<Lease>,
    /// The lease as last read or written.
    observed: Option<ObservedLease>,
    fence: Fence,
    /// The clock of the times that are written for people.
    wall_clock: fn() -> Timestamp,
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
    /// The write that succeeded was sent at this time.
    Leading(Instant),
    HeldBy(String),
}

/// A failed request about the lease.
#[derive(Debug)]
enum RequestError {
    Failed(kube::Error),
    TimedOut(Duration),
}

impl RequestError {
    /// Returns `true` if the API server could not be reached, which the client has logged.
    fn is_unreachable(&self) -> bool {
        matches!(self, Self::Failed(error) if is_unreachable(error))
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Self::Failed(kube::Error::Api(status)) if status.is_conflict())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut(limit) => write!(f, "request timed out after {limit:?}"),
        }
    }
}

impl Elector {
    /// Creates a candidate with a client of its own: renewals must not be queued behind other requests, nor be retried by
    /// the client after the deadline.
    ///
    /// # Errors
    /// When no client can be created from the configuration.
    fn with_config(
        election: Election,
        config: Config,
        metrics: &Metrics,
        settings: &ClientSettings,
        fence: Fence,
    ) -> Result<Self, kube::Error> {
        let client = new_lease_client(config, metrics, settings, election.request_timeout())?;
        Ok(Self::with_client(election, client, fence))
    }

    /// Creates a candidate that shares a client. Each request still times out after half the renew deadline.
    fn with_client(election: Election, client: Client, fence: Fence) -> Self {
        let leases = Api::namespaced(client.clone(), &election.namespace);
        Self {
            election,
            client,
            leases,
            observed: None,
            fence,
            wall_clock: Timestamp::now,
        }
    }

    /// Waits until this process is the leader, for as long as it takes, and opens the fence. Dropping the future
    /// withdraws the candidate.
    async fn acquire(&mut self) {
        let lease = format!("{}/{}", self.election.namespace, self.election.name);
        tracing::info!(
            lease,
            identity = self.election.identity,
            "attempting to acquire leader lease"
        );
        let mut holder = None;
        loop {
            match self.try_acquire_or_renew().await {
                Ok(Attempt::Leading(sent)) => {
                    self.fence.extend(self.deadline_of(sent));
                    tracing::info!(lease, "successfully acquired lease");
                    return;
                }
                Ok(Attempt::HeldBy(other)) => {
                    if holder.as_ref() != Some(&other) {
                        tracing::info!(lease, holder = other, "lease is held by another process");
                        holder = Some(other);
                    }
                }
                Err(error) if error.is_unreachable() => {
                    tracing::debug!(lease, %error, "failed to acquire lease, retrying");
                }
                Err(error) => tracing::warn!(lease, %error, "failed to acquire lease, retrying"),
            }
            sleep(add_jitter(self.election.times.retry_period)).await;
        }
    }

    /// Returns the time until which this process may act after a renewal that was sent at this time.
    fn deadline_of(&self, sent: Instant) -> Instant {
        deadline_after(sent, self.election.times.renew_deadline)
    }

    /// Attempts once to acquire or renew the lease.
    async fn try_acquire_or_renew(&mut self) -> Result<Attempt, RequestError> {
        if let Some(lease) = self.own_lease() {
            // No other process may write a lease that is valid, so there is no need to read it first. If one did
            // nevertheless, the write fails with a conflict.
            if let Ok(sent) = self.write(lease.clone()).await {
                return Ok(Attempt::Leading(sent));
            }
        }
        let Some(found) = self.read().await? else {
            // The holder does not know that the lease was deleted, and may act until it would have expired.
            if let Some(holder) = self.other_holder() {
                return Ok(Attempt::HeldBy(holder));
            }
            return Ok(Attempt::Leading(self.create().await?));
        };
        self.observe(found.clone());
        if let Some(holder) = self.other_holder() {
            return Ok(Attempt::HeldBy(holder));
        }
        Ok(Attempt::Leading(self.write(found).await?))
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

    /// Stores the lease. The expiry is measured again only if the spec has changed: a changed label or annotation does not
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

    async fn read(&self) -> Result<Option<Lease>, RequestError> {
        self.with_timeout(self.leases.get_opt(&self.election.name)).await
    }

    /// Creates the lease, and returns the time at which the request was sent.
    async fn create(&mut self) -> Result<Instant, RequestError> {
        let metadata = ObjectMeta {
            name: Some(self.election.name.clone()),
            namespace: Some(self.election.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease {
            metadata,
            spec: Some(self.new_spec(None)),
        };
        let sent = Instant::now();
        let created = self
            .with_timeout(self.leases.create(&post_params(), &lease))
            .await?;
        self.observe(created);
        Ok(sent)
    }

    /// Acquires or renews the lease, and returns the time at which the request was sent. The lease's resource version
    /// makes the API server return a conflict if it has changed since it was read.
    async fn write(&mut self, mut lease: Lease) -> Result<Instant, RequestError> {
        lease.spec = Some(self.new_spec(lease.spec.as_ref()));
        let sent = Instant::now();
        let replaced = self.replace(&lease).await?;
        self.observe(replaced);
        Ok(sent)
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, RequestError> {
        self.with_timeout(self.leases.replace(&self.election.name, &post_params(), lease))
            .await
    }

    /// Returns the spec of a lease held by this process; `before` is the previous spec.
    fn new_spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = Some(MicroTime((self.wall_clock)()));
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
    ) -> Result<T, RequestError> {
        let limit = self.election.request_timeout();
        match timeout(limit, request).await {
            Ok(response) => response.map_err(RequestError::Failed),
            Err(_) => Err(RequestError::TimedOut(limit)),
        }
    }

    /// Renews the lease, and moves the fence, until the renew deadline has passed or another process holds the lease.
    async fn renew(&mut self) -> LeadershipLost {
        let LeaseTimes {
            renew_deadline,
            retry_period,
            ..
        } = self.election.times;
        let mut last_error = "none".to_owned();
        while let FenceState::HeldFor(left) = self.fence.state() {
            sleep(left.min(retry_period)).await;
            let FenceState::HeldFor(left) = self.fence.state() else {
                break;
            };
            match timeout(left, self.try_acquire_or_renew()).await {
                Ok(Ok(Attempt::Leading(sent))) => {
                    // If it came too late, the loop ends.
                    self.fence.extend(self.deadline_of(sent));
                }
                Ok(Ok(Attempt::HeldBy(other))) => return LeadershipLost::HeldByOther(other),
                Ok(Err(error)) => {
                    if error.is_unreachable() {
                        tracing::debug!(%error, "failed to renew lease, retrying");
                    } else {
                        tracing::warn!(%error, "failed to renew lease, retrying");
                    }
                    last_error = error.to_string();
                }
                Err(_) => last_error = "request timed out".to_owned(),
            }
        }
        LeadershipLost::RenewDeadline {
            deadline: renew_deadline,
            last_error,
        }
    }

    /// Releases the lease, unless another process holds it. When someone else changes the lease at the same time, it is
    /// read and written again.
    async fn release(&self) -> Result<(), RequestError> {
        let mut attempt = 1;
        loop {
            match self.try_release().await {
                Err(error) if error.is_conflict() && attempt < RELEASE_ATTEMPTS => attempt += 1,
                ended => return ended,
            }
        }
    }

    async fn try_release(&self) -> Result<(), RequestError> {
        // Read again: a renewal that was cancelled may have been stored.
        let Some(mut lease) = self.read().await? else {
            return Ok(());
        };
        if !self.is_own(&lease) {
            return Ok(());
        }
        let now = Some(MicroTime((self.wall_clock)()));
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: now.clone(),
            renew_time: now,
            ..lease.spec.unwrap_or_default()
        });
        self.replace(&lease).await.map(drop)
    }

    /// Returns a future that records an event on the lease, `<identity> <change>`. The event may get lost.
    fn event(&self, action: &str, change: &str, limit: Duration) -> impl Future<Output = ()> + Send + use<> {
        let reference = self
            .observed
            .as_ref()
            .map(|observed| observed.lease.object_ref(&()));
        let reporter = Reporter {
            controller: self.election.name.clone(),
            instance: Some(self.election.identity.clone()),
        };
        // The recorder's requests name no field manager.
        let client = with_field_manager(self.client.clone(), FIELD_MANAGER);
        let recorder = Recorder::new(client, reporter);
        let event = Event {
            type_: EventType::Normal,
            reason: "LeaderElection".to_owned(),
            note: Some(format!("{} {change}", self.election.identity)),
            action: action.to_owned(),
            secondary: None,
        };
        async move {
            let Some(reference) = reference else { return };
            if let Ok(Err(error)) = timeout(limit, recorder.publish(&event, &reference)).await {
                tracing::debug!(%error, "failed to record leader election event");
            }
        }
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

#[cfg(test)]
mod tests;
