//! Sharding, which distributes the objects of all controllers over several replicas. No two
//! replicas ever reconcile the same object concurrently.
//!
//! An object's UID is hashed to 64 bits. The space of all hashes is split into equal ranges (256 by
//! default), each of which is owned by a replica. A replica's caches, queues and workers only
//! contain the objects in its ranges.
//!
//! | module | responsibility |
//! |---|---|
//! | [`space`] | the hash, ranges, and sets of ranges |
//! | [`scope`] | which objects of a kind a replica holds |
//! | [`assignment`] | which replica should own which range |
//! | [`claims`] | which replica owns which range, as stored |
//! | [`ring`] | the decisions of one replica, without I/O; its header shows why no two replicas process one range |
//! | [`right`] | the leader's Lease, which the ring holds so that no leader works beside it |
//! | [`membership`] | Leases and claims at the API server |
//! | this one | what workers and caches of this process may do |
//!
//! # Leases, and what they cost
//!
//! Each replica has its own Lease, and renews it once per retry period (2 s). All claims are stored
//! in an annotation of another Lease, which is only written when the owner of a range changes. The
//! Lease of the leader is renewed by any of the replicas, once per renew deadline (10 s). In each
//! round, a replica writes its own Lease and lists all Leases in the namespace. With 256 ranges, this
//! adds up to the following load on the API server:
//!
//! | | 3 replicas | 100 replicas |
//! |---|---|---|
//! | writes a second while nothing moves | 1.6 | 50.1 |
//! | objects listed a second while nothing moves | 7.5 | 5,100 |
//! | writes when a replica joins or leaves | at most 5 | at most 5 or 6 |
//!
//! The list has no selector, so that nothing depends on labels, which anybody may edit. A replica
//! recognizes the Leases by their names.
//!
//! To put this into perspective, 100 replicas cause the same load as 500 nodes, since kubelets
//! renew a Lease every 10 s. We've considered some alternatives, but all of them cost more:
//!
//! - One Lease per range, renewed by its owner. This takes 128 writes per second, whether there are
//!   2 replicas or 100.
//! - One object per range, without renewals. This takes a write for each range that moves (128 when
//!   the second replica joins), and each replica has to list or watch 256 more objects.
//! - Renewals in the object with the claims. All replicas would contend for the same object, with
//!   50 writes per second, each of which sends all claims to all replicas.
//! - Claims in the Lease of their owner. This avoids another object, but two replicas might claim a
//!   range concurrently. With a single object, the API server rejects one of them.
//!
//! All reads must return the most recent state (see [`ring`]). Polling is sufficient: a watch would
//! receive just as many objects, since every renewal is an event.
//!
//! # How a range moves
//!
//! 1. If the share of a replica has become smaller, it stops taking new keys of some ranges
//!    ([`Shards::set_serving`]), and waits until none of their keys are in progress
//!    ([`Shards::is_idle`]).
//! 2. It removes its claim.
//! 3. Another replica, whose share has become larger, claims the range. Its caches list the objects
//!    of the range: children first, followed by the objects themselves, whose initial events add
//!    them to the queue.
//!
//! # After a loss
//!
//! A replica that couldn't renew its Lease in time cancels its reconciles
//! ([`Shards::revoke`]). Once none of them is left, it may continue where it was interrupted. If
//! one of them does not end within a second, or if the replica runs a task, the process has to exit.
//!
//! The range of an object can't move during a reconcile, because it is not idle then. Writes of a
//! reconcile therefore need no check for that; they only require that the replica's Lease is still
//! valid, and the [fence](crate::leader_election) checks this for every write.

pub(crate) mod assignment;
mod claims;
mod membership;
mod right;
mod ring;
// A simulation, which needs the private parts of this module but does not belong to the library.
#[cfg(test)]
#[path = "../../tests/scale/mod.rs"]
mod scale;
mod scope;
mod space;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use assignment::TASKS;
pub(crate) use membership::{Membership, MembershipLost, RingConfig};
pub use scope::ShardBy;
pub(crate) use scope::{Division, Scope};
use space::{DEFAULT_RANGES, RANGES, range_of};
pub(crate) use space::{RangeSet, hash};

/// Number of shards for [`Manager::sharded`](crate::Manager::sharded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding(u32);

impl Sharding {
    /// Splits the objects into 256 ranges.
    pub fn auto() -> Self {
        Self(DEFAULT_RANGES)
    }

    /// Splits the objects into this many ranges. If there are more replicas than ranges, some of
    /// them get no objects.
    ///
    /// # Errors
    ///
    /// Fails if the number is not between 1 and 1024.
    pub fn ranges(ranges: u32) -> Result<Self, InvalidSharding> {
        match RANGES.contains(&ranges) {
            true => Ok(Self(ranges)),
            false => Err(InvalidSharding(ranges.to_string())),
        }
    }

    pub(crate) fn count(self) -> u32 {
        self.0
    }
}

/// Error of [`Sharding::ranges`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `auto` or a number of ranges from 1 to 1024, found `{0}`")]
pub struct InvalidSharding(String);

impl FromStr for Sharding {
    type Err = InvalidSharding;

    fn from_str(text: &str) -> Result<Self, InvalidSharding> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::auto()),
            (_, Ok(ranges)) => Self::ranges(ranges),
            _ => Err(InvalidSharding(text.to_owned())),
        }
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ranges of this process. Modified by the membership, and read by workers and caches. Clones
/// share the same state.
#[derive(Clone)]
pub(crate) struct Shards(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Ranges whose objects the caches contain.
    owned: watch::Sender<Arc<RangeSet>>,
    /// For each cache of children, the ranges whose objects it has already listed.
    covered: watch::Sender<BTreeMap<u64, RangeSet>>,
    next_child: AtomicU64,
    /// Notified when a draining range becomes idle.
    idle: Notify,
    /// Number of times that all ranges were revoked.
    revocations: watch::Sender<u64>,
    /// Number of tasks that this replica runs. They can't be started again.
    tasks: AtomicUsize,
    /// Whether the process has to exit.
    lost: AtomicBool,
    status: Mutex<RingStatus>,
}

struct State {
    /// Ranges whose keys workers may take.
    serving: RangeSet,
    /// Number of keys in progress, per range.
    running: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RingStatus {
    pub(crate) identity: String,
    /// The configured number until the claims were read.
    pub(crate) ranges: u32,
    pub(crate) generation: u64,
    pub(crate) replicas: Vec<String>,
    /// Arcs, identity, and number of ranges of each owner.
    pub(crate) owners: Vec<(String, String, u32)>,
    /// Number of ranges of this replica that are served. The others are about to be given up.
    pub(crate) serving: u32,
    pub(crate) draining: u32,
    /// Number of ranges without an owner, and for how long there have been any.
    pub(crate) unowned: u32,
    pub(crate) unowned_for: Duration,
    /// Number of ranges that this replica has acquired and given up so far.
    pub(crate) acquired: u64,
    pub(crate) released: u64,
    /// Number of writes of claims that were rejected because of a conflict, or have failed.
    pub(crate) conflicts: u64,
    pub(crate) failures: u64,
    /// Why this replica has stopped all reconciles for the moment.
    pub(crate) suspended: Option<String>,
}

pub(crate) enum Entry {
    /// The key can be processed while the guard exists.
    Entered(KeyGuard),
    /// The range may be about to move to another replica, so retry later.
    Draining,
    /// The range belongs to another replica.
    Elsewhere,
}

/// Keeps a range on this replica.
pub(crate) struct KeyGuard {
    shards: Shards,
    range: u32,
    ranges: u32,
    revocations: u64,
    is_task: bool,
}

impl Shards {
    pub(crate) fn new() -> Self {
        let none = RangeSet::empty(0);
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                serving: none.clone(),
                running: Vec::new(),
            }),
            owned: watch::channel(Arc::new(none)).0,
            covered: watch::channel(BTreeMap::new()).0,
            next_child: AtomicU64::new(0),
            idle: Notify::new(),
            revocations: watch::channel(0).0,
            tasks: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            status: Mutex::default(),
        }))
    }

    /// Sets the ranges whose keys workers may take.
    pub(crate) fn set_serving(&self, serving: RangeSet) {
        let mut state = self.lock();
        if state.serving.space() != serving.space() {
            // The number of ranges can only change while none of them is owned, so no keys are in
            // progress.
            state.running = vec![0; serving.space() as usize];
        }
        state.serving = serving;
    }

    /// Takes all ranges from the workers, and cancels the reconciles in progress.
    pub(crate) fn revoke(&self) {
        let mut state = self.lock();
        state.serving = RangeSet::empty(state.serving.space());
        self.0.revocations.send_modify(|revocations| *revocations += 1);
    }

    /// Returns `true` if any key is in progress, or a task is running.
    pub(crate) fn is_in_use(&self) -> bool {
        self.lock().running.iter().any(|running| *running > 0)
    }

    pub(crate) fn has_tasks(&self) -> bool {
        self.0.tasks.load(Ordering::Acquire) > 0
    }

    /// Makes the process exit, even if nothing is in progress.
    pub(crate) fn lose(&self) {
        self.revoke();
        self.0.lost.store(true, Ordering::Release);
    }

    /// Returns `true` if the process must not go on after its Lease has expired.
    pub(crate) fn must_exit(&self) -> bool {
        self.0.lost.load(Ordering::Acquire) || self.is_in_use()
    }

    /// Sets the ranges whose objects the caches should contain.
    pub(crate) fn set_owned(&self, owned: RangeSet) {
        self.0.owned.send_if_modified(|before| {
            let is_changed = **before != owned;
            if is_changed {
                *before = Arc::new(owned);
            }
            is_changed
        });
    }

    /// The receiver is notified when the ranges change.
    pub(crate) fn owned(&self) -> watch::Receiver<Arc<RangeSet>> {
        self.0.owned.subscribe()
    }

    pub(crate) fn owns_hash(&self, hash: u64) -> bool {
        let owned = self.0.owned.borrow();
        owned.space() > 0 && owned.contains_hash(hash)
    }

    pub(crate) fn is_idle(&self, range: u32) -> bool {
        self.lock()
            .running
            .get(range as usize)
            .is_none_or(|running| *running == 0)
    }

    /// Waits until a draining range becomes idle.
    pub(crate) async fn became_idle(&self) {
        self.0.idle.notified().await;
    }

    pub(crate) fn enter(&self, hash: u64) -> Entry {
        let mut state = self.lock();
        let ranges = state.serving.space();
        if ranges == 0 {
            return Entry::Elsewhere;
        }
        let range = range_of(hash, ranges);
        match state.serving.contains(range) {
            true => Entry::Entered(self.guard(&mut state, range)),
            false if self.0.owned.borrow().contains(range) => Entry::Draining,
            false => Entry::Elsewhere,
        }
    }

    fn guard(&self, state: &mut State, range: u32) -> KeyGuard {
        state.running[range as usize] += 1;
        KeyGuard {
            shards: self.clone(),
            range,
            ranges: state.serving.space(),
            revocations: *self.0.revocations.borrow(),
            is_task: false,
        }
    }

    /// Waits until this replica owns [`TASKS`], and keeps that range while the guard exists.
    pub(crate) async fn enter_tasks(&self) -> KeyGuard {
        let mut owned = self.owned();
        loop {
            owned.borrow_and_update();
            {
                let mut state = self.lock();
                if state.serving.contains(TASKS) {
                    self.0.tasks.fetch_add(1, Ordering::AcqRel);
                    let mut guard = self.guard(&mut state, TASKS);
                    guard.is_task = true;
                    return guard;
                }
            }
            // Can't fail, because `self` owns the sender.
            let _ = owned.changed().await;
        }
    }

    /// Registers a cache of children, whose lists the caches of owners wait for. Returns its
    /// number.
    pub(crate) fn add_child(&self) -> u64 {
        let child = self.0.next_child.fetch_add(1, Ordering::Relaxed);
        let none = RangeSet::empty(0);
        self.0
            .covered
            .send_modify(|covered| drop(covered.insert(child, none)));
        child
    }

    /// Called when a cache of children has listed the objects in these ranges.
    pub(crate) fn note_covered(&self, child: u64, ranges: RangeSet) {
        self.0
            .covered
            .send_modify(|covered| drop(covered.insert(child, ranges)));
    }

    pub(crate) fn remove_child(&self, child: u64) {
        self.0.covered.send_modify(|covered| drop(covered.remove(&child)));
    }

    pub(crate) async fn children_listed(&self, ranges: &RangeSet) {
        let is_listed = |covered: &RangeSet| ranges.without(covered).is_empty();
        let mut covered = self.0.covered.subscribe();
        // Can't fail, because `self` owns the sender.
        let _ = covered.wait_for(|covered| covered.values().all(is_listed)).await;
    }

    pub(crate) fn set_status(&self, status: RingStatus) {
        *self.0.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn status(&self) -> RingStatus {
        self.0
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: nothing can panic while the lock is held.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shards").field(&*self.0.owned.borrow()).finish()
    }
}

impl KeyGuard {
    pub(crate) fn keeps(&self, hash: u64) -> bool {
        range_of(hash, self.ranges) == self.range
    }

    /// Returns once the range was taken from the workers although the key is in progress.
    pub(crate) async fn revoked(&self) {
        let mut revocations = self.shards.0.revocations.subscribe();
        // Can't fail, because `self` owns the sender.
        let _ = revocations.wait_for(|now| *now != self.revocations).await;
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        if self.is_task {
            self.shards.0.tasks.fetch_sub(1, Ordering::AcqRel);
        }
        let mut state = self.shards.lock();
        if state.serving.space() != self.ranges {
            return;
        }
        let serves = state.serving.contains(self.range);
        let running = &mut state.running[self.range as usize];
        *running = running.saturating_sub(1);
        if *running == 0 && !serves {
            self.shards.0.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn owning(ranges: impl Fn(u32) -> bool + Copy) -> Shards {
        let shards = Shards::new();
        shards.set_serving(RangeSet::of(4, ranges));
        shards.set_owned(RangeSet::of(4, ranges));
        shards
    }

    fn in_range(range: u64) -> u64 {
        range << 62
    }

    #[test]
    fn only_keys_of_served_ranges_are_processed() {
        let shards = owning(|range| range < 2);
        assert!(matches!(shards.enter(in_range(1)), Entry::Entered(_)));
        assert!(matches!(shards.enter(in_range(2)), Entry::Elsewhere));
        shards.set_serving(RangeSet::of(4, |range| range == 0));
        assert!(matches!(shards.enter(in_range(1)), Entry::Draining));
        assert!(matches!(Shards::new().enter(0), Entry::Elsewhere));
    }

    #[test]
    fn revoked_keys_end_before_the_range_is_served_again() {
        let shards = owning(|range| range < 2);
        let Entry::Entered(before) = shards.enter(0) else {
            panic!("it is served");
        };
        assert_eq!(before.revoked().now_or_never(), None);
        shards.revoke();
        assert_eq!(before.revoked().now_or_never(), Some(()));
        assert!(matches!(shards.enter(0), Entry::Draining) && shards.is_in_use());
        drop(before);
        assert!(!shards.is_in_use());
        shards.set_serving(RangeSet::of(4, |range| range < 2));
        let Entry::Entered(after) = shards.enter(0) else {
            panic!("it is served again");
        };
        assert_eq!(after.revoked().now_or_never(), None);
    }

    #[test]
    fn range_is_idle_once_its_last_key_is_done() {
        let shards = owning(|range| range < 2);
        let (Entry::Entered(one), Entry::Entered(other)) = (shards.enter(0), shards.enter(0)) else {
            panic!("both are served");
        };
        shards.set_serving(RangeSet::of(4, |range| range == 1));
        drop(one);
        assert!(!shards.is_idle(0) && shards.is_idle(1));
        assert_eq!(shards.became_idle().now_or_never(), None);
        drop(other);
        assert!(shards.is_idle(0));
        assert_eq!(shards.became_idle().now_or_never(), Some(()));
    }

    #[test]
    fn owners_wait_for_all_caches_of_children() {
        let shards = owning(|range| range < 2);
        let (one, other) = (shards.add_child(), shards.add_child());
        let wanted = RangeSet::of(4, |range| range < 2);
        shards.note_covered(one, wanted.clone());
        shards.note_covered(other, RangeSet::of(4, |range| range == 0));
        assert_eq!(shards.children_listed(&wanted).now_or_never(), None);
        shards.note_covered(other, wanted.clone());
        assert_eq!(shards.children_listed(&wanted).now_or_never(), Some(()));
    }

    #[test]
    fn number_of_ranges_is_checked() {
        assert_eq!("auto".parse(), Ok(Sharding::auto()));
        assert_eq!("64".parse(), Sharding::ranges(64));
        for wrong in ["0", "1025", "-1", "many", ""] {
            let expected = format!("expected `auto` or a number of ranges from 1 to 1024, found `{wrong}`");
            assert_eq!(wrong.parse::<Sharding>().unwrap_err().to_string(), expected);
        }
    }
}
