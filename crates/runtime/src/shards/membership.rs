//! Membership of this process in the ring (i.e. its Lease and the claims on the API server).
//!
//! In each round, we renew the Lease of this replica, read all Leases of the ring, renew the Lease of
//! the leader if [`Right`] says so, and modify the claims if [`Ring`] says so. The fence is only
//! extended if the claims could be read as well: a replica that can write but not read wouldn't
//! notice that it lost a range.
//!
//! A replica without a valid Lease, or beside a leader, is suspended: it stops its reconciles, and
//! tries to continue in the next round.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, MicroTime};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::claims::Claims;
use super::right::{Right, RightLease, RightStep};
use super::ring::{ClaimsWrite, Clock, Heartbeat, Observed, Ring, WriteResult};
use super::space::hash;
use super::{RangeSet, RingStatus, Shards};
use crate::client::{ClientSettings, new_lease_client};
use crate::deadline::{deadline_after, scale};
use crate::leader_election::{
    Background, EXIT_GRACE, Fence, LeaseHandle, LeaseState, LeaseTimes, LoseOnDrop, RenewalStopped,
    RequestError, held_spec, new_identity, released_spec, ring_identity, send, start_on_thread,
};
use crate::metrics::Metrics;
use crate::random::random_share;

const FIELD_MANAGER: &str = "rbuilder-shards";
/// Label on all Leases of a ring. Its value is the ID of the manager. We don't select by it, but
/// people do, and so did the first version of this library.
const RING_LABEL: &str = "rbuilder.dev/shards";
const CLAIMS: &str = "rbuilder.dev/shard-claims";
/// The claims in a set of managed fields.
const MANAGED_CLAIMS: &str = "/f:metadata/f:annotations/f:rbuilder.dev~1shard-claims";
/// Set on the Lease of a replica that is about to stop.
const LEAVING: &str = "rbuilder.dev/shards-leaving";
const LABEL_LENGTH: usize = 63;
/// Maximum number of attempts per round to write the claims while other replicas write them too.
const WRITE_ATTEMPTS: usize = 5;
/// Number of conflicts in a row that are logged as a warning. Far more than occur while many
/// replicas join.
const LASTING_CONFLICT: usize = 10;
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
    #[error("lease is held by the leader {0}")]
    Leader(String),
    #[error(
        "reconciles are still running after {EXIT_GRACE:?}; they were stopped because the lease has expired"
    )]
    StillRunning,
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

pub(crate) struct Membership {
    handle: LeaseHandle<Order, MembershipLost>,
    fence: Fence,
    shards: Shards,
}

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
        let (membership, background) = Self::new(&fence, &shards);
        let metrics = metrics.clone();
        start_on_thread("shards", move || {
            let client = new_lease_client(config, &metrics, &settings, request_timeout(&ring.times))?;
            Ok(run(background, Member::new(ring, client, fence, shards)))
        })
        .await?;
        Ok(membership)
    }

    fn new(fence: &Fence, shards: &Shards) -> (Self, Background<Order, MembershipLost>) {
        let (handle, background) = LeaseHandle::new(fence, Order::Join);
        let membership = Self {
            handle,
            fence: fence.clone(),
            shards: shards.clone(),
        };
        (membership, background)
    }

    pub(crate) fn start_as_task(ring: RingConfig, client: Client, fence: Fence, shards: Shards) -> Self {
        let (mut membership, background) = Self::new(&fence, &shards);
        membership
            .handle
            .spawn(run(background, Member::new(ring, client, fence, shards)));
        membership
    }

    /// Waits for this process to become a member of the ring, without a timeout. A new member may
    /// not own any ranges yet. Fails if the background task exits first.
    pub(crate) async fn joined(&self) -> Result<(), MembershipLost> {
        self.handle.held().await
    }

    /// Returns when this process must exit: it has lost a range, or can't stop its reconciles after
    /// its Lease has expired. Never returns once it has left the ring.
    pub(crate) fn lost(&self) -> impl Future<Output = MembershipLost> + Send + use<> {
        let reported = self.handle.reported_loss();
        let (fence, shards) = (self.fence.clone(), self.shards.clone());
        let unstoppable = async move {
            loop {
                fence.lapsed().await;
                // The thread of the membership may be blocked.
                shards.revoke();
                sleep(EXIT_GRACE).await;
                if fence.is_lost() && shards.is_in_use() {
                    return MembershipLost::StillRunning;
                }
            }
        };
        async {
            tokio::select! {
                biased;
                lost = reported => lost,
                lost = unstoppable => lost,
            }
        }
    }

    /// Whether the process has to exit because of a loss, and can't leave the ring any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.handle.is_lost()
    }

    /// Announces that this replica is about to stop. From now on, each range is given up once none
    /// of its keys are in progress.
    pub(crate) fn begin_to_leave(&self) {
        self.handle.order(Order::Leave);
    }

    /// Gives up all ranges and deletes the Lease. Must not be called while a range is still in use.
    pub(crate) async fn leave(self) {
        self.handle.order(Order::Finish);
        self.handle.ended().await;
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
        let is_over = match member.timed_round().await {
            Round::Done => {
                state.send_if_modified(|state| {
                    let is_first = *state == LeaseState::Waiting;
                    if is_first {
                        *state = LeaseState::Held;
                    }
                    is_first
                });
                member.holds_nothing()
            }
            // Let the Lease expire.
            Round::Waiting => true,
            Round::Failed => member.holds_nothing(),
            Round::Lost(lost) => break Some(lost),
        };
        if order == Order::Finish && is_over {
            break None;
        }
        tokio::select! {
            () = member.fence.lapsed(), if member.suspended.is_none() => {
                let lost = member.renewed_too_late();
                if let Round::Lost(lost) = member.suspend(lost) {
                    break Some(lost);
                }
            }
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
            member.shards.lose();
            tracing::error!(ring = member.config.id, reason = %lost, "lost the shards of this replica");
            state.send_replace(LeaseState::Lost(lost));
        }
        None => {
            member.fence.close();
            state.send_replace(LeaseState::Ended);
            member.release_right().await;
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
    /// This replica is suspended, or has not served any ranges yet because of a leader.
    Waiting,
    Lost(MembershipLost),
}

/// Who holds the leader's Lease.
enum HeldBy {
    /// The replicas of this ring. Contains until when this replica may serve ranges.
    Ring(Clock),
    Leader(String),
    /// Another process has written the Lease concurrently.
    Unknown,
}

struct Member {
    config: RingConfig,
    identity: String,
    lease: String,
    leases: Api<Lease>,
    ring: Ring,
    right: Right,
    fence: Fence,
    shards: Shards,
    /// Times of the ring are relative to this.
    epoch: Instant,
    /// The Lease with the claims, as last read.
    claims: Option<Lease>,
    /// The leader's Lease, as last read.
    right_lease: Option<Lease>,
    /// Why this replica has stopped its reconciles.
    suspended: Option<String>,
    /// Leader that this replica waits for.
    leader: Option<String>,
    /// Resource version of the edited claims that were last logged.
    logged_edit: Option<String>,
    /// Number of consecutive conflicts.
    conflicts_in_a_row: usize,
    conflicts: u64,
    failures: u64,
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
        let right = Right::new(ring_identity(&config.id), duration, config.times.renew_deadline);
        Self {
            lease: replica_lease(&config.id, &identity),
            leases: Api::namespaced(client, &config.namespace),
            identity,
            ring,
            right,
            fence,
            shards,
            epoch: Instant::now(),
            claims: None,
            right_lease: None,
            suspended: None,
            leader: None,
            logged_edit: None,
            conflicts_in_a_row: 0,
            conflicts: 0,
            failures: 0,
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
        let (error, is_unreachable) = match timeout(left, self.round()).await {
            Ok(Ok(round)) => return round,
            Ok(Err(error)) => (error.to_string(), error.is_unreachable()),
            Err(_) => ("request timed out".to_owned(), false),
        };
        let ring = &self.config.id;
        if is_unreachable {
            tracing::debug!(ring, error, "failed to renew the lease of this replica, retrying");
        } else {
            tracing::warn!(ring, error, "failed to renew the lease of this replica, retrying");
        }
        self.last_error = error;
        match self.fence.is_lost() {
            true => self.suspend(self.renewed_too_late()),
            false => Round::Failed,
        }
    }

    /// Stops all reconciles until this replica may continue, unless the process has to exit.
    fn suspend(&mut self, reason: MembershipLost) -> Round {
        if self.suspended.is_none() {
            self.fence.lose();
            self.ring.suspend();
            self.suspended = Some(reason.to_string());
            self.shards.revoke();
            self.publish();
            tracing::error!(ring = self.config.id, %reason, "stopped all reconciles of this replica, retrying");
        }
        match self.shards.has_tasks() {
            true => Round::Lost(reason),
            false => Round::Waiting,
        }
    }

    /// Opens the fence or extends it. Fails if reconciles from before the loss are still running.
    fn open_fence(&mut self, until: Instant) -> bool {
        if self.suspended.is_none() {
            return self.fence.extend(until);
        }
        if self.shards.is_in_use() || !self.fence.reopen(until) {
            return false;
        }
        self.ring.resume();
        self.suspended = None;
        tracing::info!(
            ring = self.config.id,
            "continuing with the shards of this replica"
        );
        true
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
            match self.hold_right().await? {
                HeldBy::Ring(until) => {
                    self.leader = None;
                    let until = self.epoch + until;
                    let deadline = deadline_after(sent, self.times().renew_deadline);
                    if !self.open_fence(deadline.min(until)) {
                        return Ok(self.suspend(self.renewed_too_late()));
                    }
                }
                // Giving up ranges is always allowed.
                HeldBy::Leader(leader) => match self.wait_for(leader) {
                    Round::Waiting if self.ring.is_leaving() => {}
                    waits => return Ok(waits),
                },
                HeldBy::Unknown => continue,
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
                // After its first ranges, this renews the Lease once more.
                if let HeldBy::Unknown = self.hold_right().await? {
                    continue;
                }
                self.publish();
                break;
            }
        }
        self.delete_departed().await;
        Ok(Round::Done)
    }

    /// Returns [`Round::Lost`] if the process has to exit.
    fn wait_for(&mut self, leader: String) -> Round {
        if self.leader.as_ref() != Some(&leader) {
            tracing::warn!(
                lease = self.config.id,
                holder = leader,
                "a replica with `--leader-elect` is at work, waiting until it has stopped"
            );
            self.leader = Some(leader.clone());
        }
        match self.fence.is_held_or_lost() {
            true => self.suspend(MembershipLost::Leader(leader)),
            false => Round::Waiting,
        }
    }

    /// Acquires or renews the leader's Lease for the ring, if necessary.
    async fn hold_right(&mut self) -> Result<HeldBy, RequestError> {
        let owns = !self.holds_nothing();
        let base = match self.right.step(self.clock(), owns) {
            RightStep::Hold(until) => return Ok(HeldBy::Ring(until)),
            RightStep::Wait(leader) => return Ok(HeldBy::Leader(leader)),
            RightStep::Write(base) => base,
        };
        let name = self.config.id.clone();
        let mut lease = match (&base, self.right_lease.take()) {
            (Some(_), Some(lease)) => lease,
            _ => Lease {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    namespace: Some(self.config.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            },
        };
        let (holder, duration) = (self.right.holder(), self.right.lease_duration());
        lease.spec = Some(held_spec(lease.spec.as_ref(), holder, duration, Timestamp::now()));
        let sent = self.clock();
        let written = match base {
            Some(_) => {
                self.request(self.leases.replace(&name, &post_params(), &lease))
                    .await
            }
            None => self.request(self.leases.create(&post_params(), &lease)).await,
        };
        match written {
            Ok(stored) => {
                let observed = to_right(&stored, self.times().duration);
                self.right_lease = Some(stored);
                self.right.stored(sent, self.clock(), owns, observed);
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => return Ok(HeldBy::Unknown),
            // There's time for another attempt.
            Err(error) if self.right.is_confirmed() == owns && self.right.held_until().is_some() => {
                tracing::debug!(lease = name, %error, "failed to renew the lease of the leader, retrying");
            }
            Err(error) => return Err(error),
        }
        Ok(HeldBy::Ring(self.right.held_until().unwrap_or(sent)))
    }

    /// Releases the leader's Lease if this was the last replica, so that a leader doesn't have to
    /// wait until the Lease expires.
    async fn release_right(&mut self) {
        for _ in 0..WRITE_ATTEMPTS {
            let is_last = self.ring.claims().is_some_and(Claims::are_free) && self.ring.members().is_empty();
            let Some(mut lease) = self
                .right_lease
                .take()
                .filter(|_| is_last && self.right.held_version().is_some())
            else {
                return;
            };
            lease.spec = Some(released_spec(lease.spec, Timestamp::now()));
            let name = self.config.id.clone();
            match self
                .request(self.leases.replace(&name, &post_params(), &lease))
                .await
            {
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    tracing::warn!(lease = name, %error, "failed to release lease, it will expire");
                    return;
                }
                Ok(_) => {
                    tracing::info!(lease = name, "released lease");
                    return;
                }
            }
            // Another replica may have renewed the Lease, or joined.
            if self.read().await.is_err() {
                return;
            }
        }
    }

    fn publish(&mut self) {
        let none = RangeSet::empty(self.ring.owned().space());
        let (serving, owned) = match (&self.suspended, self.right.is_confirmed()) {
            (Some(_), _) => (none, self.ring.owned()),
            (None, true) => (self.ring.serving(), self.ring.owned()),
            (None, false) => (none.clone(), none),
        };
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
            ranges: self.config.ranges,
            serving: serving.len(),
            draining: match self.suspended {
                Some(_) => 0,
                None => owned.len() - serving.len(),
            },
            unowned_for: self.ring.unowned_for(self.clock()),
            acquired: self.acquired,
            released: self.released,
            conflicts: self.conflicts,
            failures: self.failures,
            suspended: self.suspended.clone(),
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
            match self
                .request(self.leases.patch_metadata(&self.lease, &patch_params(), &patch))
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
        ring_identity(&self.config.id)
    }

    /// Reads all Leases of the ring, and that of the leader.
    async fn read(&mut self) -> Result<(), RequestError> {
        let sent = self.clock();
        // Don't select by labels, which anybody may remove. Don't specify a resource version: this
        // must be the most recent state.
        let listed = self.request(self.leases.list(&ListParams::default())).await?;
        let (claims_name, default) = (self.claims_name(), self.times().duration);
        let mut observed = Observed::default();
        self.claims = None;
        self.right_lease = None;
        for lease in listed.items {
            match lease.metadata.name.as_deref() {
                Some(name) if name == claims_name => self.read_claims(lease, &mut observed).await?,
                Some(name) if name == self.config.id => self.right_lease = Some(lease),
                _ => observed
                    .replicas
                    .extend(to_heartbeat(&lease, &self.config.id, default)),
            }
        }
        let right = self.right_lease.as_ref().map(|lease| to_right(lease, default));
        self.right.observe(sent, self.clock(), right);
        self.ring.observe(sent, self.clock(), observed);
        self.log_edit();
        Ok(())
    }

    async fn read_claims(&mut self, mut lease: Lease, observed: &mut Observed) -> Result<(), RequestError> {
        let name = lease.name_any();
        match Claims::parse(lease.annotations().get(CLAIMS).map_or("", String::as_str)) {
            Ok(claims) => {
                if !lease.labels().contains_key(RING_LABEL) {
                    self.restore_label(&mut lease).await;
                }
                observed.edited = editor(&lease).is_some();
                observed.claims = Some((claims, lease.resource_version().unwrap_or_default()));
                self.claims = Some(lease);
            }
            Err(error) => {
                tracing::error!(lease = name, error, "the claims have been edited, restoring them");
                self.delete(&lease).await?;
            }
        }
        Ok(())
    }

    fn log_edit(&mut self) {
        let Some(lease) = self.claims.as_ref().filter(|_| self.ring.is_edited()) else {
            return;
        };
        let version = lease.resource_version();
        if self.logged_edit != version {
            tracing::warn!(
                lease = lease.name_any(),
                editor = editor(lease).unwrap_or("unknown"),
                "the claims have been edited or restored; nobody acquires ranges for {:?}",
                self.times().duration
            );
            self.logged_edit = version;
        }
    }

    /// Restores the label of the claims, on a best-effort basis.
    async fn restore_label(&self, lease: &mut Lease) {
        let name = lease.name_any();
        tracing::warn!(
            lease = name,
            "the claims have lost the label {RING_LABEL}, restoring it"
        );
        let patch = Patch::Merge(json!({ "metadata": {
            "labels": { RING_LABEL: label_value(&self.config.id) },
            // Otherwise, we could overwrite claims that we haven't read.
            "resourceVersion": lease.resource_version(),
        } }));
        match self
            .request(self.leases.patch_metadata(&name, &patch_params(), &patch))
            .await
        {
            Ok(stored) => lease.metadata.resource_version = stored.metadata.resource_version,
            Err(error) => tracing::debug!(lease = name, %error, "failed to restore a label"),
        }
    }

    /// Returns `true` if the claims were stored.
    async fn write(&mut self, write: ClaimsWrite) -> bool {
        let name = self.claims_name();
        let text = write.claims.to_text();
        let result = match (&write.base, self.claims.take()) {
            (Some(_), Some(mut lease)) => {
                lease.annotations_mut().insert(CLAIMS.to_owned(), text);
                let label = label_value(&self.config.id);
                lease.labels_mut().insert(RING_LABEL.to_owned(), label);
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
                self.conflicts_in_a_row = 0;
                WriteResult::Stored(version)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => {
                self.conflicts += 1;
                self.conflicts_in_a_row += 1;
                let (ring, conflicts) = (&self.config.id, self.conflicts_in_a_row);
                if conflicts.is_multiple_of(LASTING_CONFLICT) {
                    tracing::warn!(ring, conflicts, %error, "failed to change the claims, something else keeps changing them");
                } else {
                    tracing::debug!(ring, conflicts, "another replica has changed the claims");
                }
                WriteResult::Unknown
            }
            Err(error) => {
                self.failures += 1;
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
            let name = replica_lease(&self.config.id, &departed);
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

fn patch_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
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

/// Name of the Lease of a replica.
fn replica_lease(id: &str, identity: &str) -> String {
    format!("{id}-{:016x}", hash(identity))
}

/// `None` if this isn't the Lease of a replica of the ring.
fn to_heartbeat(lease: &Lease, id: &str, default: Duration) -> Option<Heartbeat> {
    let spec = lease.spec.as_ref()?;
    let identity = spec.holder_identity.clone()?;
    (lease.metadata.name.as_ref()? == &replica_lease(id, &identity)).then(|| Heartbeat {
        identity,
        version: renewal(spec),
        duration: duration_of(spec).unwrap_or(default),
        leaving: lease.annotations().contains_key(LEAVING),
    })
}

fn to_right(lease: &Lease, default: Duration) -> RightLease {
    let spec = lease.spec.clone().unwrap_or_default();
    RightLease {
        renewal: renewal(&spec),
        duration: duration_of(&spec).unwrap_or(default),
        holder: spec.holder_identity.unwrap_or_default(),
        version: lease.resource_version().unwrap_or_default(),
    }
}

/// Changes with each renewal. The resource version also changes with a label, which doesn't mean
/// that the holder is alive.
fn renewal(spec: &LeaseSpec) -> String {
    let renewed = spec.renew_time.as_ref().map(|MicroTime(time)| time.to_string());
    format!(
        "{}/{}",
        spec.lease_transitions.unwrap_or(0),
        renewed.unwrap_or_default()
    )
}

fn duration_of(spec: &LeaseSpec) -> Option<Duration> {
    let seconds = u64::try_from(spec.lease_duration_seconds?).ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the field manager of the claims if they were last written by anything else than a
/// replica, e.g. `kubectl-edit`.
fn editor(lease: &Lease) -> Option<&str> {
    let has_claims = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|FieldsV1(fields)| fields.pointer(MANAGED_CLAIMS).is_some())
    };
    let managers = lease.metadata.managed_fields.iter().flatten().filter(has_claims);
    managers
        .map(|entry| entry.manager.as_deref().unwrap_or_default())
        .find(|manager| *manager != FIELD_MANAGER)
}
