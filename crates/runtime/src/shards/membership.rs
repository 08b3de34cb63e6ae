//! Membership of this process in the ring (i.e. its Lease and the claims on the API server).
//!
//! In each round, we renew the Lease of this replica, read all Leases of the ring, and modify the
//! claims if [`Ring`] says so. The fence is only extended if the claims could be read as well: a
//! replica that can write but not read wouldn't notice that it lost a range.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::claims::Claims;
use super::ring::{ClaimsWrite, Clock, Heartbeat, Observed, Ring, WriteResult};
use super::space::hash;
use super::{RangeSet, RingStatus, Shards};
use crate::client::{ClientSettings, new_lease_client};
use crate::deadline::{deadline_after, scale};
use crate::leader_election::{
    Background, Fence, LeaseHandle, LeaseState, LeaseTimes, LoseOnDrop, RenewalStopped, RequestError,
    new_identity, send, start_on_thread,
};
use crate::metrics::Metrics;
use crate::random::random_share;

const FIELD_MANAGER: &str = "rbuilder-shards";
/// Label on all Leases of a ring. Its value is the ID of the manager.
const RING_LABEL: &str = "rbuilder.dev/shards";
const CLAIMS: &str = "rbuilder.dev/shard-claims";
/// Set on the Lease of a replica that is about to stop.
const LEAVING: &str = "rbuilder.dev/shards-leaving";
const LABEL_LENGTH: usize = 63;
/// Maximum number of attempts per round to write the claims while other replicas write them too.
const WRITE_ATTEMPTS: usize = 5;
/// Time for other ranges to become idle as well, so that a single write can give up all of them.
const IDLE_PAUSE: Duration = Duration::from_millis(20);
/// Relative to the period. Keeps replicas from writing concurrently.
const JITTER: f64 = 0.1;

#[derive(Clone, Debug)]
pub(crate) struct RingConfig {
    /// Shared by all replicas of a manager.
    pub(crate) id: String,
    pub(crate) namespace: String,
    /// Number of ranges if this replica has to create the claims.
    pub(crate) ranges: u32,
    pub(crate) times: LeaseTimes,
}

/// Why this process must stop serving its ranges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MembershipLost {
    #[error("another replica has taken a range of this one")]
    RangeTaken,
    #[error("failed to renew the lease within {deadline:?}; last error: {last_error}")]
    RenewDeadline { deadline: Duration, last_error: String },
    #[error("lease renewal stopped")]
    RenewalStopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Join,
    /// Stop acquiring ranges, and give up the idle ones.
    Leave,
    /// No range is in use any longer, so give up the remaining ones and delete the Lease.
    Finish,
}

impl From<RenewalStopped> for MembershipLost {
    fn from(_: RenewalStopped) -> Self {
        Self::RenewalStopped
    }
}

pub(crate) struct Membership(LeaseHandle<Order, MembershipLost>);

impl Membership {
    /// Joins the ring on a separate thread, with its own runtime and client. See
    /// [`crate::leader_election`] for the reasons. Fails if one of these can't be created.
    pub(crate) async fn start_on_thread(
        ring: RingConfig,
        config: Config,
        metrics: &Metrics,
        settings: ClientSettings,
        fence: Fence,
        shards: Shards,
    ) -> Result<Self, String> {
        let (handle, background) = LeaseHandle::new(&fence, Order::Join);
        let metrics = metrics.clone();
        start_on_thread("shards", move || {
            let client = new_lease_client(config, &metrics, &settings, request_timeout(&ring.times))?;
            Ok(run(background, Member::new(ring, client, fence, shards)))
        })
        .await?;
        Ok(Self(handle))
    }

    pub(crate) fn start_as_task(ring: RingConfig, client: Client, fence: Fence, shards: Shards) -> Self {
        let (mut handle, background) = LeaseHandle::new(&fence, Order::Join);
        handle.spawn(run(background, Member::new(ring, client, fence, shards)));
        Self(handle)
    }

    /// Waits for this process to become a member of the ring, without a timeout. A new member may
    /// not own any ranges yet. Fails if the background task exits first.
    pub(crate) async fn joined(&self) -> Result<(), MembershipLost> {
        self.0.held().await
    }

    /// Returns when this process must immediately stop processing its ranges. Never returns once it
    /// has left the ring.
    pub(crate) fn lost(&self) -> impl Future<Output = MembershipLost> + Send + use<> {
        self.0.lost(Duration::ZERO)
    }

    /// Announces that this replica is about to stop. From now on, each range is given up once none
    /// of its keys are in progress.
    pub(crate) fn begin_to_leave(&self) {
        self.0.order(Order::Leave);
    }

    /// Gives up all ranges and deletes the Lease. Must not be called while a range is still in use.
    pub(crate) async fn leave(self) {
        self.0.order(Order::Finish);
        self.0.ended().await;
    }
}

/// Renews this replica's Lease until the Lease is lost or the replica is told to finish.
async fn run(background: Background<Order, MembershipLost>, mut member: Member) {
    let Background { mut orders, state } = background;
    let _closed = LoseOnDrop(member.fence.clone());
    let lost = loop {
        let order = *orders.borrow_and_update();
        if order >= Order::Leave {
            member.ring.leave();
        }
        match member.timed_round().await {
            Round::Done => drop(state.send_if_modified(|state| {
                let is_first = *state == LeaseState::Waiting;
                if is_first {
                    *state = LeaseState::Held;
                }
                is_first
            })),
            Round::Failed => {}
            Round::Lost(lost) => break Some(lost),
        }
        if order == Order::Finish && member.holds_nothing() {
            break None;
        }
        tokio::select! {
            () = sleep(scale(member.times().retry_period, 1.0 + JITTER * random_share())) => {}
            () = member.shards.became_idle() => sleep(IDLE_PAUSE).await,
            // The `Membership` was dropped; this is a bug in the caller.
            changed = orders.changed() => if changed.is_err() {
                return;
            },
        }
    };
    match lost {
        Some(lost) => {
            member.fence.lose();
            tracing::error!(ring = member.config.id, reason = %lost, "lost the shards of this replica");
            state.send_replace(LeaseState::Lost(lost));
        }
        None => {
            member.fence.close();
            state.send_replace(LeaseState::Ended);
            member.delete_lease().await;
        }
    }
}

fn request_timeout(times: &LeaseTimes) -> Duration {
    // A round takes three requests, and two rounds must fit into the renew deadline.
    (times.renew_deadline / 4).max(Duration::from_secs(1))
}

enum Round {
    Done,
    /// To be retried.
    Failed,
    Lost(MembershipLost),
}

struct Member {
    config: RingConfig,
    identity: String,
    lease: String,
    leases: Api<Lease>,
    ring: Ring,
    fence: Fence,
    shards: Shards,
    /// Times of the ring are relative to this.
    epoch: Instant,
    /// The Lease with the claims, as last read.
    claims: Option<Lease>,
    renewals: i32,
    exists: bool,
    last_error: String,
    acquired: u64,
    released: u64,
}

impl Member {
    fn new(config: RingConfig, client: Client, fence: Fence, shards: Shards) -> Self {
        let identity = new_identity();
        let LeaseTimes {
            duration,
            retry_period,
            ..
        } = config.times;
        let ring = Ring::new(identity.clone(), config.ranges, duration, retry_period);
        Self {
            lease: format!("{}-{:016x}", config.id, hash(&identity)),
            leases: Api::namespaced(client, &config.namespace),
            identity,
            ring,
            fence,
            shards,
            epoch: Instant::now(),
            claims: None,
            renewals: 0,
            exists: false,
            last_error: "none".to_owned(),
            acquired: 0,
            released: 0,
            config,
        }
    }

    fn times(&self) -> &LeaseTimes {
        &self.config.times
    }

    fn clock(&self) -> Clock {
        self.epoch.elapsed()
    }

    fn holds_nothing(&self) -> bool {
        let claims = self.ring.claims();
        claims.is_none_or(|claims| claims.held_by(&self.identity).is_empty())
    }

    /// Runs one round of the membership, with a timeout so that the round can't outlast the Lease.
    async fn timed_round(&mut self) -> Round {
        let deadline = self.times().renew_deadline;
        // The fence isn't open before the first renewal.
        let left = self.fence.time_left().unwrap_or(deadline);
        let error = match timeout(left, self.round()).await {
            Ok(Ok(round)) => return round,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "request timed out".to_owned(),
        };
        tracing::warn!(
            ring = self.config.id,
            error,
            "failed to renew the lease of this replica, retrying"
        );
        self.last_error = error;
        match self.fence.is_lost() {
            true => Round::Lost(self.renewed_too_late()),
            false => Round::Failed,
        }
    }

    fn renewed_too_late(&self) -> MembershipLost {
        MembershipLost::RenewDeadline {
            deadline: self.times().renew_deadline,
            last_error: self.last_error.clone(),
        }
    }

    async fn round(&mut self) -> Result<Round, RequestError> {
        let sent = Instant::now();
        self.renew().await?;
        for _ in 0..WRITE_ATTEMPTS {
            self.read().await?;
            if self.ring.has_lost() {
                return Ok(Round::Lost(MembershipLost::RangeTaken));
            }
            // Only extend the fence after reading the claims. Otherwise, a replica that can write
            // but not read wouldn't notice that it lost a range.
            if !self
                .fence
                .extend(deadline_after(sent, self.times().renew_deadline))
            {
                return Ok(Round::Lost(self.renewed_too_late()));
            }
            self.ring.plan(self.clock());
            self.publish();
            let shards = self.shards.clone();
            let Some(write) = self.ring.next_write(self.clock(), |range| shards.is_idle(range)) else {
                break;
            };
            // From now on, the ranges to be given up no longer count as owned.
            self.publish();
            if self.write(write).await {
                self.publish();
                break;
            }
        }
        self.delete_departed().await;
        Ok(Round::Done)
    }

    fn publish(&mut self) {
        let (serving, owned) = (self.ring.serving(), self.ring.owned());
        let before = Arc::clone(&self.shards.owned().borrow());
        let (acquired, released) = (owned.without(&before), before.without(&owned));
        if !acquired.is_empty() || !released.is_empty() {
            let (acquired, released) = (acquired.to_string(), released.to_string());
            tracing::info!(ring = self.config.id, %owned, acquired, released, "shards of this replica");
        }
        self.acquired += u64::from(acquired.len());
        self.released += u64::from(released.len());
        self.shards.set_serving(serving.clone());
        self.shards.set_owned(owned.clone());
        self.shards.set_status(self.status(&serving, &owned));
    }

    fn status(&self, serving: &RangeSet, owned: &RangeSet) -> RingStatus {
        let mut status = RingStatus {
            identity: self.identity.clone(),
            replicas: self.ring.members(),
            serving: serving.len(),
            draining: owned.len() - serving.len(),
            unowned_for: self.ring.unowned_for(self.clock()),
            acquired: self.acquired,
            released: self.released,
            ..RingStatus::default()
        };
        if let Some(claims) = self.ring.claims() {
            status.ranges = claims.space();
            status.generation = claims.generation;
            status.unowned = claims.free().len();
            status.owners = claims
                .holders()
                .into_iter()
                .map(|holder| {
                    let held = claims.held_by(&holder);
                    (held.to_string(), holder, held.len())
                })
                .collect();
        }
        status
    }

    async fn renew(&mut self) -> Result<(), RequestError> {
        self.renewals = self.renewals.wrapping_add(1).max(0);
        let now = MicroTime(Timestamp::now());
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.times().duration.as_secs().max(1)).ok(),
            // Each renewal must differ from the previous one, even if the wall clock does not
            // advance.
            lease_transitions: Some(self.renewals),
            renew_time: Some(now),
            ..LeaseSpec::default()
        };
        let leaving = self.ring.is_leaving().then_some("true");
        let metadata = json!({
            "labels": { RING_LABEL: label_value(&self.config.id) },
            "annotations": { LEAVING: leaving },
        });
        if self.exists {
            let patch = Patch::Merge(json!({ "metadata": metadata, "spec": spec }));
            let params = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            match self
                .request(self.leases.patch_metadata(&self.lease, &params, &patch))
                .await
            {
                Err(error) if error.is_not_found() => {}
                renewed => return renewed.map(drop),
            }
        }
        let mut lease = self.new_lease(&self.lease);
        lease.spec = Some(spec);
        if leaving.is_some() {
            lease
                .annotations_mut()
                .insert(LEAVING.to_owned(), "true".to_owned());
        }
        match self.request(self.leases.create(&post_params(), &lease)).await {
            // The response to an earlier attempt was lost.
            Err(error) if error.is_already_exists() => {}
            created => drop(created?),
        }
        self.exists = true;
        Ok(())
    }

    fn new_lease(&self, name: &str) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.config.namespace.clone()),
                labels: Some([(RING_LABEL.to_owned(), label_value(&self.config.id))].into()),
                ..ObjectMeta::default()
            },
            spec: None,
        }
    }

    fn claims_name(&self) -> String {
        format!("{}-shards", self.config.id)
    }

    /// Reads all Leases of the ring.
    async fn read(&mut self) -> Result<(), RequestError> {
        let sent = self.clock();
        let label = format!("{RING_LABEL}={}", label_value(&self.config.id));
        let listed = self
            // Don't specify a resource version: this must be the most recent state.
            .request(self.leases.list(&ListParams::default().labels(&label)))
            .await?;
        let (name, default) = (self.claims_name(), self.times().duration);
        let mut observed = Observed::default();
        self.claims = None;
        for lease in listed.items {
            if lease.metadata.name.as_deref() != Some(name.as_str()) {
                observed.replicas.extend(to_heartbeat(&lease, default));
                continue;
            }
            match Claims::parse(lease.annotations().get(CLAIMS).map_or("", String::as_str)) {
                Ok(claims) => {
                    let version = lease.resource_version().unwrap_or_default();
                    observed.claims = Some((claims, version));
                    self.claims = Some(lease);
                }
                Err(error) => {
                    tracing::error!(lease = name, error, "the claims have been edited, restoring them");
                    self.delete(&lease).await?;
                }
            }
        }
        self.ring.observe(sent, self.clock(), observed);
        Ok(())
    }

    /// Returns `true` if the claims were stored.
    async fn write(&mut self, write: ClaimsWrite) -> bool {
        let name = self.claims_name();
        let text = write.claims.to_text();
        let result = match (&write.base, self.claims.take()) {
            (Some(_), Some(mut lease)) => {
                lease.annotations_mut().insert(CLAIMS.to_owned(), text);
                self.request(self.leases.replace(&name, &post_params(), &lease))
                    .await
            }
            _ => {
                let mut lease = self.new_lease(&name);
                lease.annotations_mut().insert(CLAIMS.to_owned(), text);
                self.request(self.leases.create(&post_params(), &lease)).await
            }
        };
        let result = match result {
            Ok(stored) => {
                let version = stored.resource_version().unwrap_or_default();
                self.claims = Some(stored);
                WriteResult::Stored(version)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => {
                tracing::debug!(ring = self.config.id, "another replica has changed the claims");
                WriteResult::Unknown
            }
            Err(error) => {
                tracing::warn!(ring = self.config.id, %error, "failed to change the claims, retrying");
                WriteResult::Unknown
            }
        };
        let is_stored = matches!(result, WriteResult::Stored(_));
        self.ring.written(self.clock(), write, result);
        is_stored
    }

    /// Cleans up after crashed replicas, whose ranges are free by now.
    async fn delete_departed(&self) {
        for departed in self.ring.departed() {
            tracing::info!(
                ring = self.config.id,
                replica = departed,
                "replica is gone, its ranges are free"
            );
            let name = format!("{}-{:016x}", self.config.id, hash(&departed));
            let deleted = self
                .request(self.leases.delete(&name, &DeleteParams::default()))
                .await;
            if let Err(error) = deleted {
                tracing::debug!(lease = name, %error, "failed to delete a lease");
            }
        }
    }

    async fn delete_lease(&self) {
        if let Err(error) = self
            .request(self.leases.delete(&self.lease, &DeleteParams::default()))
            .await
        {
            tracing::warn!(lease = self.lease, %error, "failed to delete lease, it will expire");
        }
    }

    /// Deletes a Lease, unless it was modified since it was read.
    async fn delete(&self, lease: &Lease) -> Result<(), RequestError> {
        let params = DeleteParams::default().preconditions(Preconditions {
            resource_version: lease.resource_version(),
            uid: lease.uid(),
        });
        self.request(self.leases.delete(&lease.name_any(), &params))
            .await
            .map(drop)
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        send(request_timeout(self.times()), request).await
    }
}

fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

fn label_value(id: &str) -> String {
    // An ID may be longer than a label value.
    match id.len() <= LABEL_LENGTH {
        true => id.to_owned(),
        false => format!("{:016x}", hash(id)),
    }
}

fn to_heartbeat(lease: &Lease, default: Duration) -> Option<Heartbeat> {
    let spec = lease.spec.as_ref()?;
    let seconds = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let renewed = spec.renew_time.as_ref().map(|MicroTime(time)| time.to_string());
    Some(Heartbeat {
        identity: spec.holder_identity.clone()?,
        // Don't use the resource version for this: a changed label doesn't mean that the replica is
        // alive.
        version: format!(
            "{}/{}",
            spec.lease_transitions.unwrap_or(0),
            renewed.unwrap_or_default()
        ),
        duration: seconds.map_or(default, Duration::from_secs),
        leaving: lease.annotations().contains_key(LEAVING),
    })
}
