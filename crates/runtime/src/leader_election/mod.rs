//! Leader election with a `Lease`, so that only one of several processes acts on the cluster.
//!
//! The algorithm is client-go's. A candidate takes a lease that has not been renewed for its full
//! duration, which the candidate measures on its own monotonic clock from when it last observed a
//! change to the lease. Each write carries the resource version that was read, so if two candidates
//! write at the same time, one of them gets a conflict. A leader that fails to renew within the
//! renew deadline considers itself deposed before any other process may take over.
//!
//! It differs from client-go in five ways, all of them safer:
//!
//! - The renew deadline is measured from when the last successful renewal was sent, not from when
//!   its response arrived.
//! - A response that arrives after the deadline does not renew the lease.
//! - A leader that observes another holder has lost immediately.
//! - A candidate that has observed a lease respects its holder even after the lease was deleted.
//! - A lease is only released by [`Leadership::release`], which the manager calls when its
//!   reconciles have finished.
//!
//! # Fencing
//! A process that has lost its lease must not write, although it may not know of the loss or may be
//! unable to stop:
//!
//! - The [elector](Elector) of a manager with a configuration renews on a
//!   [thread](Leadership::start_on_thread) with its own runtime and client. Reconciles that block
//!   the threads of the manager's runtime do not delay it.
//! - The [fence] is the time at which the renew deadline passes. Workers compare it with the clock
//!   before each key, and the [client](fence_client) of leader-only controllers before each write.
//! - The [watchdog] exits the process a second after the loss, no matter what blocks it.
//!
//! | if the process | then |
//! |---|---|
//! | blocks all threads of its runtime | the elector still has its own; after a loss the watchdog exits the process |
//! | is suspended and resumed (SIGSTOP, cgroup freezer, CPU starvation) | the monotonic clock kept running, so the fence has closed |
//! | has its wall clock changed | nothing here reads it, except to write `acquireTime` and `renewTime` for people |
//! | loses the network | the fence closes without any response, 5 s before another process may take the lease |
//!
//! Two limits remain, as in client-go. A request that was sent before the fence closed may arrive
//! later, by as long as the network delays it. And while a machine is suspended, Linux's monotonic
//! clock stands still: after it resumes, the process may write until its elector has contacted the
//! API server, at the latest after one retry period. Resource versions and server-side apply
//! protect against both.
//!
//! # Example: observed time, not the lease's own
//! The lease says `renewTime: 12:00:00, leaseDurationSeconds: 15`, and the holder's clock is a minute slow.
//!
//! | candidate's monotonic clock | event |
//! |---|---|
//! | 0 s (12:01:00 on its wall clock) | reads the lease for the first time and starts to count |
//! | 2 s | reads `renewTime: 12:00:02`. The spec has changed, so it starts to count again |
//! | 4 s | the holder is killed; the lease stays at `12:00:02` |
//! | 6 s, 8 s, … 16 s | reads the unchanged lease: 14 s since the last change, still valid |
//! | 18 s | 16 s since the last change, more than 15 s: takes the lease |
//!
//! Comparing `renewTime` with the wall clock would be simpler, but at 0 s it would find that the
//! lease expired 45 s ago, and take it from a healthy leader. The price of counting from the first
//! observation: a candidate that starts after the holder died has to wait for a full lease
//! duration.
//!
//! # Example: the renew deadline
//! Lease duration 15 s, renew deadline 10 s, retry period 2 s. The leader sends a renewal at 100 s.
//! The API server stores it at 100.1 s and becomes unreachable before the response reaches the
//! leader.
//!
//! | time | leader | candidates |
//! |---|---|---|
//! | 100 s | sends the renewal; its last *successful* one was sent at 98 s | |
//! | 100.1 s | | observe the renewal at the earliest; may take the lease at 115.1 s |
//! | 102 s, 104 s, … | retries fail or time out | |
//! | 108 s | 10 s after 98 s: has lost; the manager cancels its reconciles and exits | |
//! | 115.1 s | gone for 7 s | one takes the lease |
//!
//! The deadline must therefore be shorter than the lease duration, and is measured from the sending
//! of a request: candidates may observe a renewal as soon as it was sent, not only once the leader
//! has received the response. A request in flight when the deadline passes is dropped, because its
//! response could not be used anyway.
//!
//! # Example: release
//! On SIGTERM, the manager first lets running reconciles finish. It then releases the lease by
//! writing an empty holder and a duration of 1 s, so that another replica takes over at its next
//! attempt, after 2 to 4.4 s instead of 15 s. Releasing it earlier would let two processes act at
//! once. For the same reason, the lease is left to expire if a reconcile did not finish within the
//! grace period.

mod fence;
mod fenced_client;
mod handle;
mod leadership;
mod requests;
mod watchdog;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Config, Resource};
use tokio::time::{Instant, sleep, timeout};

use crate::client::{ClientSettings, new_lease_client, with_field_manager};
use crate::deadline::{deadline_after, scale};
use crate::error::ManagerError;
use crate::metrics::Metrics;
use crate::random::{random_share, random_u64};

pub(crate) use fence::Fence;
use fence::FenceState;
pub(crate) use fenced_client::fence_client;
pub(crate) use handle::{Background, LeaseHandle, LeaseState, LoseOnDrop, RenewalStopped, start_on_thread};
pub(crate) use leadership::{Leadership, LeadershipLost};
pub(crate) use requests::{RequestError, send};
pub(crate) use watchdog::start_watchdog;

/// The file that contains the pod's namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Field manager for leases and the events about them.
const FIELD_MANAGER: &str = "rbuilder-leader-election";

/// Maximum random addition to the retry period, as a factor of it, so that candidates do not write
/// at the same time.
const JITTER: f64 = 1.2;

/// Number of attempts to release a lease that others modify concurrently, for example with `kubectl
/// annotate`. Equals client-go's `retry.DefaultRetry`.
const RELEASE_ATTEMPTS: usize = 5;
/// How long the exiting process waits to send the event about the end of the leadership.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

/// The lease, this candidate's identity, and the durations.
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
    /// How long after the last observed renewal other candidates may take the lease.
    pub(crate) duration: Duration,
    /// How long after the last successful renewal the leader gives up. Must be shorter than the
    /// lease duration.
    pub(crate) renew_deadline: Duration,
    /// Time between attempts.
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
    /// Fails if the lease could expire before the leader gives up, or the leader could give up
    /// before a second attempt.
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

    /// Returns the timeout of one request. Two requests must fit into the renew deadline, so that a
    /// single slow response does not lose the lease.
    fn request_timeout(&self) -> Duration {
        (self.times.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// Returns the parameters for writes.
fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Returns the namespace of this pod, or `None` outside of a cluster.
pub(crate) fn pod_namespace() -> Option<String> {
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns `<host name>_<random>`. The host name is the pod's name; the rest distinguishes
/// processes on the same host.
pub(crate) fn new_identity() -> String {
    let host = hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{host}_{:016x}{:016x}", random_u64(), random_u64())
}

/// Extends `period` by a random part of up to [`JITTER`] times the period.
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
    /// The clock for the timestamps that are written for people.
    wall_clock: fn() -> Timestamp,
}

#[derive(Clone)]
struct ObservedLease {
    lease: Lease,
    /// When this spec was first observed.
    at: Instant,
}

/// The result of an attempt to acquire or renew the lease. A failed request is a separate error,
/// because it says nothing about the holder.
enum Attempt {
    /// This process holds the lease. Contains the time at which the successful write was sent.
    Leading(Instant),
    HeldBy(String),
}

impl Elector {
    /// Creates a candidate with its own client: renewals must not queue behind other requests, and
    /// the client must not retry them after the deadline.
    ///
    /// # Errors
    /// Fails if no client can be created from the configuration.
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

    /// Creates a candidate that shares a client. Requests still time out after half the renew
    /// deadline.
    fn with_client(election: Election, client: Client, fence: Fence) -> Self {
        let leases = Api::namespaced(client.clone(), &election.namespace);
        Self {
            election,
            client,
            leases,
            observed: None,
            fence,
            wall_clock: crate::clock::now,
        }
    }

    /// Waits until this process is the leader, for as long as it takes, and opens the fence.
    /// Dropping the future withdraws the candidate.
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

    /// Returns the time until which this process may act, given when its last renewal was sent.
    fn deadline_of(&self, sent: Instant) -> Instant {
        deadline_after(sent, self.election.times.renew_deadline)
    }

    /// Attempts once to acquire or renew the lease.
    async fn try_acquire_or_renew(&mut self) -> Result<Attempt, RequestError> {
        if let Some(lease) = self.own_lease() {
            // No other process may write a valid lease, so there is no need to read it first. If
            // one did anyway, the write fails with a conflict.
            if let Ok(sent) = self.write(lease.clone()).await {
                return Ok(Attempt::Leading(sent));
            }
        }
        let Some(found) = self.read().await? else {
            // The holder does not know that the lease was deleted, and may act until it would have
            // expired.
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

    /// Returns `true` if the lease has not expired, according to the duration in the lease rather
    /// than our own.
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

    /// Stores the lease. The expiry is only measured anew if the spec has changed: a changed label
    /// or annotation does not mean that the holder is alive.
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

    /// Creates the lease, and returns when the request was sent.
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

    /// Acquires or renews the lease, and returns when the request was sent. Because of the resource
    /// version in the lease, the API server responds with a conflict if the lease has changed since
    /// it was read.
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

    /// Returns the spec of a lease held by this process. `before` is the previous spec.
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
        send(self.election.request_timeout(), request).await
    }

    /// Renews the lease and moves the fence, until the renew deadline has passed or another process
    /// holds the lease.
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
                    // If the renewal came too late, the loop ends.
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

    /// Releases the lease unless another process holds it. If somebody changes the lease
    /// concurrently, it is read and written again.
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
        // Read it again, because a cancelled renewal may have been stored.
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

    /// Returns a future that records an event `<identity> <change>` on the lease. The event may get
    /// lost.
    fn event(&self, action: &str, change: &str, limit: Duration) -> impl Future<Output = ()> + Send + use<> {
        let reference = self
            .observed
            .as_ref()
            .map(|observed| observed.lease.object_ref(&()));
        let reporter = Reporter {
            controller: self.election.name.clone(),
            instance: Some(self.election.identity.clone()),
        };
        // The recorder's requests specify no field manager.
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

/// Returns the holder of a lease. A released lease has an empty one.
fn holder(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|holder| !holder.is_empty())
}

/// Returns the duration in whole seconds, at least one, because a lease of zero seconds would never
/// be valid.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs().max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
