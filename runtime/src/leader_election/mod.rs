//! Leader election: of several processes, one may act on the cluster; which one, a `Lease` says.
//!
//! The algorithm is client-go's. A candidate takes a lease that nobody renewed for its whole duration, as
//! counted on the candidate's own monotonic clock since it last saw the lease change; the clocks of two
//! machines are never compared. Every write names the resource version that was read, so that of two
//! candidates one is refused. A leader that could not renew in time has lost, before any other may take
//! over.
//!
//! It differs from client-go in four points, all on the safe side: the renew deadline counts from the
//! sending of the last renewal that succeeded, not from the answer to it; a leader that sees another holder
//! has lost at once; a candidate that has seen a lease leaves it to its holder even when somebody deletes it; and
//! a lease is released only by [`Leadership::release`], which the manager calls when
//! its reconciles have ended.

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

use crate::error::ManagerError;
use crate::metrics::Metrics;

/// Where a pod finds the namespace it runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The waits between two tries are stretched by up to this part of themselves, so that candidates do not
/// march in step.
const JITTER: f64 = 1.2;

/// Which lease, who asks for it, and how long everything takes.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    /// Name of the `Lease`, the same in all replicas.
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Who this is; never the same in two processes.
    pub(crate) identity: String,
    pub(crate) times: LeaseTimes,
}

/// How long everything takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTimes {
    /// How long other candidates leave a lease alone that is not renewed.
    pub(crate) duration: Duration,
    /// How long the leader tries to renew before it gives up. It must be shorter than the lease.
    pub(crate) renew_deadline: Duration,
    /// The pause between two tries.
    pub(crate) retry_period: Duration,
}

impl Default for LeaseTimes {
    /// client-go's.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaseTimes {
    /// # Errors
    /// When the leader could lose its lease before it gave up, or give up before it tried twice.
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
        } else if renew_deadline <= retry_period.mul_f64(JITTER) {
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

    /// Two tries must fit into the renew deadline, or one slow answer would cost the leadership.
    fn request_timeout(&self) -> Duration {
        (self.times.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// The namespace of this pod; `None` outside a cluster.
pub(crate) fn pod_namespace() -> Option<String> {
    let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// `<host name>_<something new>`: the host name is the pod's name and tells people who leads, the rest
/// tells two processes of one host apart.
fn new_identity() -> String {
    let host = hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{host}_{:016x}{:016x}", random(0), random(1))
}

/// The standard library seeds each hasher from the operating system's random numbers, which is all that is
/// needed here.
fn random(salt: u64) -> u64 {
    RandomState::new().hash_one(salt)
}

/// `period`, or up to [`JITTER`] times longer on top of it.
fn jittered(period: Duration) -> Duration {
    let share = random(0) as f64 / u64::MAX as f64;
    period.mul_f64(1.0 + JITTER * share)
}

/// Why a process is not, or no longer, the leader.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("lease is held by {0}")]
    To(String),
    #[error("failed to renew lease within {:?}; last error: {last_error}", .deadline)]
    Deadline { deadline: Duration, last_error: String },
    #[error("lease renewal stopped")]
    Unrenewed,
}

/// A candidate.
pub(crate) struct Elector {
    election: Election,
    client: Client,
    leases: Api<Lease>,
    /// What was last read or written, and when it was first seen so.
    observed: Option<Observed>,
}

#[derive(Clone)]
struct Observed {
    lease: Lease,
    at: Instant,
}

/// What one try came to. An error of the API server is a try that failed, and says nothing about who leads.
enum Outcome {
    Leading,
    HeldBy(String),
}

impl Elector {
    /// A candidate with a client of its own: a leader must not wait behind other requests, and must not
    /// have a renewal repeated after its deadline.
    ///
    /// # Errors
    /// When no client can be made from the configuration.
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

    /// A candidate that shares a client. Each request is given up after half the renew deadline all the same.
    pub(crate) fn with_client(election: Election, client: Client) -> Self {
        let leases = Api::namespaced(client.clone(), &election.namespace);
        Self {
            election,
            client,
            leases,
            observed: None,
        }
    }

    /// Waits until this process is the leader, for as long as it takes. Dropping the future gives the
    /// candidacy up.
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
            match self.attempt().await {
                Ok(Outcome::Leading) => {
                    tracing::info!(lease, "successfully acquired lease");
                    self.announce();
                    return Leadership::start(self, sent);
                }
                Ok(Outcome::HeldBy(other)) => {
                    if holder.as_ref() != Some(&other) {
                        tracing::info!(lease, holder = other, "lease is held by another process");
                        holder = Some(other);
                    }
                }
                Err(error) => tracing::warn!(lease, %error, "failed to acquire lease, retrying"),
            }
            sleep(jittered(self.election.times.retry_period)).await;
        }
    }

    /// One try to take or renew the lease.
    async fn attempt(&mut self) -> Result<Outcome, String> {
        if let Some(lease) = self.own_lease() {
            // Nobody else may have written meanwhile, so the read can be spared; if somebody has, this is
            // refused.
            if self.write(lease.clone()).await.is_ok() {
                return Ok(Outcome::Leading);
            }
        }
        let Some(found) = self.read().await? else {
            // Who deletes a lease does not tell its holder, who may act until it would have expired.
            if let Some(holder) = self.other_holder() {
                return Ok(Outcome::HeldBy(holder));
            }
            self.create().await?;
            return Ok(Outcome::Leading);
        };
        self.observe(found.clone());
        if let Some(holder) = self.other_holder() {
            return Ok(Outcome::HeldBy(holder));
        }
        self.write(found).await?;
        Ok(Outcome::Leading)
    }

    fn own_lease(&self) -> Option<&Lease> {
        let observed = self.observed.as_ref()?;
        (self.is_own(&observed.lease) && self.is_valid(observed)).then_some(&observed.lease)
    }

    fn is_own(&self, lease: &Lease) -> bool {
        holder(lease) == Some(self.election.identity.as_str())
    }

    /// Counted with the duration that the holder promised, not with our own.
    fn is_valid(&self, observed: &Observed) -> bool {
        let seconds = observed
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(self.election.times.duration, Duration::from_secs);
        observed.at.elapsed() < duration
    }

    /// Who holds the lease, when that is somebody else and may still be alive.
    fn other_holder(&self) -> Option<String> {
        let observed = self.observed.as_ref()?;
        let holder = holder(&observed.lease)?;
        (!self.is_own(&observed.lease) && self.is_valid(observed)).then(|| holder.to_owned())
    }

    /// Only a change of what the holder wrote starts the clock anew; a label somebody adds is no sign of
    /// life.
    fn observe(&mut self, lease: Lease) {
        match &mut self.observed {
            Some(observed) if observed.lease.spec == lease.spec => observed.lease = lease,
            observed => {
                *observed = Some(Observed {
                    lease,
                    at: Instant::now(),
                })
            }
        }
    }

    async fn read(&self) -> Result<Option<Lease>, String> {
        self.in_time(self.leases.get_opt(&self.election.name)).await
    }

    async fn create(&mut self) -> Result<(), String> {
        let metadata = ObjectMeta {
            name: Some(self.election.name.clone()),
            namespace: Some(self.election.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease {
            metadata,
            spec: Some(self.claim(None)),
        };
        let made = self
            .in_time(self.leases.create(&PostParams::default(), &lease))
            .await?;
        self.observe(made);
        Ok(())
    }

    /// Takes or renews the lease. The resource version inside makes the API server refuse this if the lease
    /// has changed since it was read.
    async fn write(&mut self, mut lease: Lease) -> Result<(), String> {
        lease.spec = Some(self.claim(lease.spec.as_ref()));
        let written = self.replace(&lease).await?;
        self.observe(written);
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, String> {
        self.in_time(
            self.leases
                .replace(&self.election.name, &PostParams::default(), lease),
        )
        .await
    }

    /// What the leader says about itself; `before` is what the lease said.
    fn claim(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let before = before.cloned().unwrap_or_default();
        let own = before.holder_identity.as_deref() == Some(self.election.identity.as_str());
        let transitions = before.lease_transitions.unwrap_or(0);
        let first = before.holder_identity.is_none() && before.acquire_time.is_none();
        LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: Some(seconds(self.election.times.duration)),
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

    async fn in_time<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
        let limit = self.election.request_timeout();
        match timeout(limit, request).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("request timed out after {limit:?}")),
        }
    }

    /// Renews until that fails for too long or `stop` is said. `renewed` is when the last renewal that
    /// succeeded was sent.
    async fn renew(&mut self, mut renewed: Instant, mut stop: watch::Receiver<bool>) -> Result<(), Lost> {
        let LeaseTimes {
            renew_deadline,
            retry_period,
            ..
        } = self.election.times;
        let mut last_error = "none".to_owned();
        loop {
            let deadline = renewed + renew_deadline;
            let stopped = async { stop.wait_for(|stop| *stop).await.map(drop) };
            // An error means that the `Leadership` is gone, and this task with it in a moment.
            if timeout_at(deadline.min(Instant::now() + retry_period), stopped)
                .await
                .is_ok()
            {
                return Ok(());
            }
            let sent = Instant::now();
            if sent < deadline {
                match timeout_at(deadline, self.attempt()).await {
                    Ok(Ok(Outcome::Leading)) => renewed = sent,
                    Ok(Ok(Outcome::HeldBy(other))) => return Err(Lost::To(other)),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "failed to renew lease, retrying");
                        last_error = error;
                    }
                    Err(_) => last_error = "request timed out".to_owned(),
                }
            }
            if Instant::now() >= renewed + renew_deadline {
                return Err(Lost::Deadline {
                    deadline: renew_deadline,
                    last_error,
                });
            }
        }
    }

    /// Leaves the lease to whoever comes next, unless somebody has it already.
    async fn release(&mut self) -> Result<(), String> {
        // Read anew: a renewal that was cut off may have been written after all.
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

    /// An event on the lease, for people who ask who led when. It may get lost.
    fn announce(&self) {
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

/// A released lease has the empty holder.
fn holder(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|holder| !holder.is_empty())
}

/// A lease of no whole second would be valid for nobody.
fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs().max(1)).unwrap_or(i32::MAX)
}

/// This process leads, and renews its lease in the background until this is released, dropped, or
/// [lost](Self::lost).
///
/// Dropping it keeps the lease until it expires: right after a crash of its owner, when nobody knows what
/// still runs.
pub(crate) struct Leadership {
    renewer: JoinHandle<Elector>,
    stop: watch::Sender<bool>,
    state: watch::Receiver<State>,
}

#[derive(Clone)]
enum State {
    Renewing,
    Stopped,
    Lost(Lost),
}

impl Leadership {
    fn start(mut elector: Elector, acquired: Instant) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (ended, state) = watch::channel(State::Renewing);
        let renewer = tokio::spawn(async move {
            let end = elector.renew(acquired, stopped).await;
            ended.send_replace(end.map_or_else(State::Lost, |()| State::Stopped));
            elector
        });
        Self { renewer, stop, state }
    }

    /// Resolves when this process no longer leads, and never if it gives the lease up itself. It must stop
    /// acting at once then, best by ending.
    pub(crate) fn lost(&self) -> impl Future<Output = Lost> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            let ended = state
                .wait_for(|state| !matches!(state, State::Renewing))
                .await
                .map(|state| state.clone());
            match ended {
                Ok(State::Lost(lost)) => lost,
                Ok(State::Renewing | State::Stopped) => std::future::pending().await,
                // The renewing task is gone without a word: it panicked, or its runtime ends.
                Err(_) => Lost::Unrenewed,
            }
        }
    }

    /// Stops renewing and gives the lease up, so that another candidate need not wait for it to expire.
    ///
    /// To be called when nothing acts as leader any more. A lease that cannot be given up is logged; it
    /// expires.
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
