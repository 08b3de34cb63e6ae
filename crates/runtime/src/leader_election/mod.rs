//! Leader election using a `Lease`, which ensures that only one of several processes acts on the
//! cluster.
//!
//! This is client-go's algorithm. A candidate acquires the lease if it hasn't been renewed for the
//! lease duration, as measured by the candidate's own monotonic clock since it last observed a
//! change. All writes include the resource version that was read, so if two candidates write
//! concurrently, one of them gets a conflict. A leader that can't renew the lease within the renew
//! deadline considers it lost, before any other process may acquire it.
//!
//! There are five differences to client-go, each of which makes it a bit safer:
//!
//! - The renew deadline is measured from when the last successful renewal was sent, not from when
//!   its response arrived.
//! - A response that arrives after the deadline does not renew the lease.
//! - A leader that observes another holder has lost immediately.
//! - A candidate that has observed a lease respects its holder even after the lease was deleted.
//! - A lease is only released by [`Leadership::release`], which the manager calls once its
//!   reconciles have finished.
//!
//! # Fencing
//!
//! A process that lost its lease must not write anything. But it may not have noticed the loss yet,
//! or may be unable to stop:
//!
//! - The [elector](Elector) of a manager with a configuration renews on a
//!   [thread](Leadership::start_on_thread) with its own runtime and client. Reconciles that block
//!   the threads of the manager's runtime do not delay it.
//! - The [fence] is the time at which the renew deadline passes. Workers compare it with the clock
//!   before each key, and the [client](fence_client) of leader-only controllers before each write.
//! - The [watchdog] exits the process a second after the loss, whatever blocks it.
//!
//! | if the process | then |
//! |---|---|
//! | blocks all threads of its runtime | the elector still has its own; after a loss the watchdog exits the process |
//! | is suspended and resumed (SIGSTOP, cgroup freezer, CPU starvation) | the monotonic clock kept running, so the fence has closed |
//! | has its wall clock changed | nothing here reads it, except to write `acquireTime` and `renewTime` for people |
//! | loses the network | the fence closes without any response, 5 s before another process may take the lease |
//!
//! Two limitations remain, as in client-go. A request sent before the fence was closed may arrive
//! later, depending on the delay of the network. And Linux's monotonic clock does not advance while
//! a machine is suspended: after resuming, the process may write until its elector has contacted
//! the API server, i.e. for up to one retry period. Resource versions and server-side apply protect
//! against both.
//!
//! # Example: observed time, not the lease's own
//!
//! The lease says `renewTime: 12:00:00, leaseDurationSeconds: 15`, and the holder's clock is a
//! minute slow.
//!
//! | candidate's monotonic clock | event |
//! |---|---|
//! | 0 s (12:01:00 on its wall clock) | reads the lease for the first time and starts to count |
//! | 2 s | reads `renewTime: 12:00:02`. The spec has changed, so it starts to count again |
//! | 4 s | the holder is killed; the lease stays at `12:00:02` |
//! | 6 s, 8 s, … 16 s | reads the unchanged lease: 14 s since the last change, still valid |
//! | 18 s | 16 s since the last change, more than 15 s: takes the lease |
//!
//! Comparing `renewTime` with the wall clock would be simpler. However, the candidate would then
//! conclude at 0 s that the lease expired 45 s ago, and take it from a healthy leader. The downside
//! is that a candidate started after the holder died must wait for the full lease duration.
//!
//! # Example: the renew deadline
//!
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
//! This is why the deadline must be shorter than the lease duration, and why it starts when a
//! request is sent: candidates may observe a renewal as soon as it is sent, before the leader
//! receives the response. A request still in flight at the deadline is dropped, since its response
//! would be useless.
//!
//! # Example: release
//!
//! After SIGTERM, the manager first waits until all reconciles have finished. It then releases the
//! lease by setting an empty holder and a duration of 1 s. Another replica takes over at its next
//! attempt, which takes 2 to 4.4 s instead of 15 s. Releasing the lease any earlier could result in
//! two concurrently active processes. For the same reason, the lease is left to expire if a
//! reconcile does not finish within the grace period.
//!
//! # Beside shards
//!
//! Replicas with shards hold the same lease together, so leader election needs no special case for
//! them except for a message. See `shards/right.rs`.

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

use crate::causes::describe_causes;
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
pub(crate) use watchdog::{EXIT_GRACE, start_watchdog};

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Also used for events about leases.
const FIELD_MANAGER: &str = "rbuilder-leader-election";

/// Relative to the retry period. Keeps candidates from writing concurrently.
const JITTER: f64 = 1.2;

/// Number of attempts to release a lease that is modified concurrently, e.g. with `kubectl
/// annotate`. Same as `retry.DefaultRetry` in client-go.
const RELEASE_ATTEMPTS: usize = 5;
/// How long the lost-leadership event may delay the exit.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub(crate) struct Election {
    /// Name of the `Lease` that all replicas share.
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Unique to this process.
    pub(crate) identity: String,
    pub(crate) times: LeaseTimes,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTimes {
    /// Time without a renewal after which candidates can acquire the lease.
    pub(crate) duration: Duration,
    /// Time without a successful renewal after which the leader gives up. Must be shorter than
    /// `duration`.
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
}

impl Default for LeaseTimes {
    /// Same defaults as client-go.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaseTimes {
    /// Fails if a lease could expire before the leader gives up, or if the leader would give up
    /// before making a second attempt.
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

    /// Two requests must fit into the renew deadline, so that a single slow response doesn't cost
    /// us the lease.
    fn request_timeout(&self) -> Duration {
        (self.times.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Identity under which all replicas of a sharded operator hold the leader's lease. This is the name
/// of the Lease with their claims.
pub(crate) fn ring_identity(id: &str) -> String {
    format!("{id}-shards")
}

/// `None` if this process doesn't run in a Pod.
pub(crate) fn pod_namespace() -> Option<String> {
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns `<host name>_<random>`. The host name of a Pod is its name; the suffix distinguishes
/// processes on the same host.
pub(crate) fn new_identity() -> String {
    let host = hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{host}_{:016x}{:016x}", random_u64(), random_u64())
}

fn add_jitter(period: Duration) -> Duration {
    scale(period, 1.0 + JITTER * random_share())
}

pub(crate) struct Elector {
    election: Election,
    client: Client,
    leases: Api<Lease>,
    /// The lease as last read or written.
    observed: Option<ObservedLease>,
    fence: Fence,
    /// Only used for timestamps meant for humans.
    wall_clock: fn() -> Timestamp,
}

#[derive(Clone)]
struct ObservedLease {
    lease: Lease,
    /// When this spec was first observed.
    at: Instant,
}

/// Result of trying to acquire or renew the lease. Doesn't include failed requests, which say
/// nothing about the holder.
enum Attempt {
    /// We hold the lease. Contains the time at which the write was sent.
    Leading(Instant),
    HeldBy(String),
}

impl Elector {
    /// Creates a candidate with its own client: renewals should not wait for other requests, and
    /// the client must not retry a renewal after the deadline. Fails if the client can't be
    /// created.
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

    /// Creates a candidate with a shared client. Requests still time out after half of the renew
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

    /// Waits until this process is the leader, then opens the fence. There's no timeout; drop the
    /// future to stop trying.
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
                    // Only log when the holder changes.
                    if holder.as_ref() != Some(&other) {
                        if other == ring_identity(&self.election.name) {
                            tracing::warn!(
                                lease,
                                holder = other,
                                "replicas with `--shards` are at work, waiting until all of them have stopped"
                            );
                        } else {
                            tracing::info!(lease, holder = other, "lease is held by another process");
                        }
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

    /// Returns until when this process may act as the leader, if its last renewal was `sent` at
    /// that time.
    fn deadline_of(&self, sent: Instant) -> Instant {
        deadline_after(sent, self.election.times.renew_deadline)
    }

    async fn try_acquire_or_renew(&mut self) -> Result<Attempt, RequestError> {
        if let Some(lease) = self.own_lease() {
            // No other process may write a lease while it's valid, so there's no need to read it
            // first. If it was modified anyway, we get a conflict.
            if let Ok(sent) = self.write(lease.clone()).await {
                return Ok(Attempt::Leading(sent));
            }
        }
        let Some(found) = self.read().await? else {
            // The holder hasn't noticed that its lease was deleted. It may still be active until
            // the lease would have expired.
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

    fn is_valid(&self, observed: &ObservedLease) -> bool {
        // Use the duration in the lease, which may be different from ours.
        let seconds = observed
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(self.election.times.duration, Duration::from_secs);
        observed.at.elapsed() < duration
    }

    /// Returns the holder if it's another process and its lease hasn't expired.
    fn other_holder(&self) -> Option<String> {
        let observed = self.observed.as_ref()?;
        let holder = holder(&observed.lease)?;
        (!self.is_own(&observed.lease) && self.is_valid(observed)).then(|| holder.to_owned())
    }

    fn observe(&mut self, lease: Lease) {
        match &mut self.observed {
            // Only a label or an annotation has changed. Don't reset the expiry, since the holder
            // may not be alive.
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

    /// Acquires or renews the lease, and returns when the request was sent. Fails with a conflict
    /// if the lease was modified since it was read.
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

    fn new_spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = (self.wall_clock)();
        held_spec(before, &self.election.identity, self.election.times.duration, now)
    }

    async fn with_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        send(self.election.request_timeout(), request).await
    }

    /// Renews the lease and extends the fence until the renew deadline has passed or another
    /// process holds the lease.
    async fn renew(&mut self) -> LeadershipLost {
        let LeaseTimes {
            renew_deadline,
            retry_period,
            ..
        } = self.election.times;
        let mut last_error = "none".to_owned();
        while let FenceState::HeldFor(left) = self.fence.state() {
            sleep(left.min(retry_period)).await;
            // The lease may have lapsed while sleeping.
            let FenceState::HeldFor(left) = self.fence.state() else {
                break;
            };
            match timeout(left, self.try_acquire_or_renew()).await {
                Ok(Ok(Attempt::Leading(sent))) => {
                    // If this was too late, the loop is about to end.
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

    /// Releases the lease, unless another process holds it.
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
        // Don't rely on the observed lease, since a cancelled renewal may have succeeded.
        let Some(mut lease) = self.read().await? else {
            return Ok(());
        };
        if !self.is_own(&lease) {
            return Ok(());
        }
        lease.spec = Some(released_spec(lease.spec, (self.wall_clock)()));
        self.replace(&lease).await.map(drop)
    }

    /// The returned future sends an event `<identity> <change>` about the lease, on a best-effort
    /// basis.
    fn event(&self, action: &str, change: &str, limit: Duration) -> impl Future<Output = ()> + Send + use<> {
        let reference = self
            .observed
            .as_ref()
            .map(|observed| observed.lease.object_ref(&()));
        let reporter = Reporter {
            controller: self.election.name.clone(),
            instance: Some(self.election.identity.clone()),
        };
        // kube's recorder doesn't set a field manager.
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
                let error = describe_causes(&error);
                tracing::debug!(error, "failed to record leader election event");
            }
        }
    }
}

/// Returns the spec after `holder` has acquired or renewed a lease.
pub(crate) fn held_spec(
    before: Option<&LeaseSpec>,
    holder: &str,
    duration: Duration,
    now: Timestamp,
) -> LeaseSpec {
    let now = Some(MicroTime(now));
    let before = before.cloned().unwrap_or_default();
    let own = before.holder_identity.as_deref() == Some(holder);
    let transitions = before.lease_transitions.unwrap_or(0);
    // The first acquisition of a lease doesn't count as a transition.
    let first = before.holder_identity.is_none() && before.acquire_time.is_none();
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(whole_seconds(duration)),
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

/// Returns the spec after a lease was released.
pub(crate) fn released_spec(before: Option<LeaseSpec>, now: Timestamp) -> LeaseSpec {
    let now = Some(MicroTime(now));
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: now.clone(),
        renew_time: now,
        ..before.unwrap_or_default()
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        // The holder is an empty string after the lease was released.
        .filter(|holder| !holder.is_empty())
}

/// Rounds a duration to whole seconds, but at least one: a lease of zero would never be valid.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs().max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
