//! Shards: several replicas share the objects of all controllers, and no two of them work on the
//! same object.
//!
//! The 64-bit hashes of the objects' UIDs are cut into equal ranges, 256 by default. Each replica
//! owns some of them, and its caches, queues and workers only see the objects in these ranges.
//!
//! | module | responsibility |
//! |---|---|
//! | [`space`] | the hash, ranges, and sets of ranges |
//! | [`scope`] | which objects of a kind a replica holds |
//! | [`assignment`] | which replica should own which range |
//! | [`claims`] | which replica owns which range, as stored |
//! | [`ring`] | the decisions of one replica, without I/O; its header shows why no two replicas work on one range |
//! | [`membership`] | Leases and claims at the API server |
//! | this one | what workers and caches of this process may do |
//!
//! # Leases, and what they cost
//! Each replica has a Lease of its own, which it renews every retry period (2 s). All claims are in
//! one further Lease, as an annotation, which is written when ranges change their owner and at no
//! other time. Each round of a replica is one write of its Lease and one list of all Leases of the
//! ring. At the API server, with 256 ranges:
//!
//! | | 3 replicas | 100 replicas |
//! |---|---|---|
//! | writes a second while nothing moves | 1.5 | 50 |
//! | objects listed a second while nothing moves | 6 | 5,050 |
//! | writes when a replica joins or leaves | at most 4 | at most 4 or 5 |
//!
//! A hundred replicas therefore cost what 500 nodes cost, because kubelets renew a Lease every 10 s.
//! The alternatives cost more:
//!
//! - A Lease for each range, renewed by its owner, takes 128 writes a second, no matter whether there
//!   are 2 replicas or 100.
//! - An object for each range without renewals takes one write for each range that moves (128 when
//!   the second replica joins), and each replica has to list or watch 256 objects more.
//! - Renewals in the object of the claims would make all replicas contend for one object. It would
//!   be written 50 times a second, and each write would send all claims to all replicas.
//! - Claims in the Lease of their owner need no further object, but two owners could claim a range at
//!   the same time. With one object, the API server refuses the second write.
//!
//! Reads must show the most recent state, for the reason in [`ring`]. Polling is enough: a watch would
//! receive as many objects, and every renewal at once.
//!
//! # How a range moves
//! 1. A replica whose share has become smaller stops taking new keys of some ranges
//!    ([`Shards::set_serving`]) and waits until its last key of a range is done ([`Shards::is_idle`]).
//! 2. It removes its claim.
//! 3. Another replica whose share has room claims the range. Its caches list the objects of the range,
//!    first the children, then the objects themselves, whose initial events enqueue them.
//!
//! While a reconcile runs, its range cannot move, because the range is not idle. The writes of the
//! reconcile therefore only have to check that the Lease of the replica is still valid, which the
//! [fence](crate::leader_election) does for each of them.

pub(crate) mod assignment;
mod claims;
mod membership;
mod ring;
#[cfg(test)]
mod scale;
mod scope;
mod space;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use assignment::TASKS;
pub(crate) use membership::{Membership, MembershipLost, RingConfig};
pub use scope::ShardBy;
pub(crate) use scope::{Division, Scope};
pub(crate) use space::RangeSet;
use space::{DEFAULT_RANGES, RANGES, range_of};

/// Whether and how finely the replicas of an operator share its objects; see
/// [`Manager::sharded`](crate::Manager::sharded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding(u32);

impl Sharding {
    /// Cuts the space of objects into 256 ranges.
    pub fn auto() -> Self {
        Self(DEFAULT_RANGES)
    }

    /// Cuts the space of objects into this many ranges. Replicas beyond that number get no objects.
    ///
    /// # Errors
    /// Fails unless the number is between 1 and 1024.
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

/// A number of ranges that cannot be used.
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

/// The ranges of this process, shared by all clones: by the membership, which changes them, by
/// workers and by caches.
#[derive(Clone)]
pub(crate) struct Shards(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The ranges whose objects the caches hold.
    owned: watch::Sender<Arc<RangeSet>>,
    /// The ranges whose objects each cache of children has listed.
    covered: watch::Sender<BTreeMap<u64, RangeSet>>,
    next_child: AtomicU64,
    /// Notified when a draining range becomes idle.
    idle: Notify,
    status: Mutex<RingStatus>,
}

struct State {
    /// The ranges whose keys workers may take.
    serving: RangeSet,
    /// Number of keys in progress by range.
    running: Vec<usize>,
}

/// The state of the ring for metrics and debug endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct RingStatus {
    pub(crate) identity: String,
    /// The number of ranges; zero before the claims were read.
    pub(crate) ranges: u32,
    pub(crate) generation: u64,
    /// All live replicas that share the ranges.
    pub(crate) replicas: Vec<String>,
    /// The owners of ranges: arcs, identity, number of ranges.
    pub(crate) owners: Vec<(String, String, u32)>,
    /// The ranges that this replica works on, and those that it is giving up.
    pub(crate) serving: u32,
    pub(crate) draining: u32,
    /// The ranges without an owner, and for how long the oldest has had none.
    pub(crate) unowned: u32,
    pub(crate) unowned_for: Duration,
    /// How many ranges this replica has acquired and given up.
    pub(crate) acquired: u64,
    pub(crate) released: u64,
}

/// Whether a key may be processed.
pub(crate) enum Entry {
    /// It may, as long as the guard exists.
    Entered(KeyGuard),
    /// Its range is about to move to another replica, or not: ask again later.
    Draining,
    /// Its range belongs to another replica.
    Elsewhere,
}

/// Keeps a range in this process.
pub(crate) struct KeyGuard {
    shards: Shards,
    range: u32,
    ranges: u32,
}

impl Shards {
    /// Creates the ranges of a process that owns none yet.
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
            status: Mutex::default(),
        }))
    }

    /// Sets the ranges whose keys workers may take.
    pub(crate) fn set_serving(&self, serving: RangeSet) {
        let mut state = self.lock();
        if state.serving.space() != serving.space() {
            // Nobody owns a range when the space is cut anew, so no key is in progress.
            state.running = vec![0; serving.space() as usize];
        }
        state.serving = serving;
    }

    /// Sets the ranges whose objects the caches hold.
    pub(crate) fn set_owned(&self, owned: RangeSet) {
        self.0.owned.send_if_modified(|before| {
            let is_changed = **before != owned;
            if is_changed {
                *before = Arc::new(owned);
            }
            is_changed
        });
    }

    /// Returns the ranges whose objects the caches hold, and their changes.
    pub(crate) fn owned(&self) -> watch::Receiver<Arc<RangeSet>> {
        self.0.owned.subscribe()
    }

    /// Returns `true` if this replica owns the range of a hash.
    pub(crate) fn owns_hash(&self, hash: u64) -> bool {
        let owned = self.0.owned.borrow();
        owned.space() > 0 && owned.contains_hash(hash)
    }

    /// Returns `true` if no key of a range is in progress.
    pub(crate) fn is_idle(&self, range: u32) -> bool {
        self.lock()
            .running
            .get(range as usize)
            .is_none_or(|running| *running == 0)
    }

    /// Resolves when a draining range has become idle.
    pub(crate) async fn became_idle(&self) {
        self.0.idle.notified().await;
    }

    /// Begins to process a key of the object with this hash.
    pub(crate) fn enter(&self, hash: u64) -> Entry {
        let mut state = self.lock();
        let ranges = state.serving.space();
        if ranges == 0 {
            return Entry::Elsewhere;
        }
        let range = range_of(hash, ranges);
        match state.serving.contains(range) {
            true => {
                state.running[range as usize] += 1;
                let shards = self.clone();
                Entry::Entered(KeyGuard {
                    shards,
                    range,
                    ranges,
                })
            }
            false if self.0.owned.borrow().contains(range) => Entry::Draining,
            false => Entry::Elsewhere,
        }
    }

    /// Waits until this replica owns the range of the tasks, and keeps it.
    pub(crate) async fn enter_tasks(&self) -> KeyGuard {
        let mut owned = self.owned();
        loop {
            owned.borrow_and_update();
            {
                let mut state = self.lock();
                if state.serving.contains(TASKS) {
                    state.running[TASKS as usize] += 1;
                    let (shards, range, ranges) = (self.clone(), TASKS, state.serving.space());
                    return KeyGuard {
                        shards,
                        range,
                        ranges,
                    };
                }
            }
            // This handle owns the sender, so the wait cannot fail.
            let _ = owned.changed().await;
        }
    }

    /// Registers a cache of children, whose lists the caches of their owners wait for. Returns its
    /// number.
    pub(crate) fn add_child(&self) -> u64 {
        let child = self.0.next_child.fetch_add(1, Ordering::Relaxed);
        let none = RangeSet::empty(0);
        self.0
            .covered
            .send_modify(|covered| drop(covered.insert(child, none)));
        child
    }

    /// Records the ranges whose objects a cache of children has listed.
    pub(crate) fn note_covered(&self, child: u64, ranges: RangeSet) {
        self.0
            .covered
            .send_modify(|covered| drop(covered.insert(child, ranges)));
    }

    /// Unregisters a cache of children that has ended.
    pub(crate) fn remove_child(&self, child: u64) {
        self.0.covered.send_modify(|covered| drop(covered.remove(&child)));
    }

    /// Waits until all caches of children have listed the objects of these ranges.
    pub(crate) async fn children_listed(&self, ranges: &RangeSet) {
        let is_listed = |covered: &RangeSet| ranges.without(covered).is_empty();
        let mut covered = self.0.covered.subscribe();
        // This handle owns the sender, so the wait cannot fail.
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
        // Nothing can panic while the lock is held.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shards").field(&*self.0.owned.borrow()).finish()
    }
}

impl KeyGuard {
    /// Returns `true` if the guard keeps the range of this hash.
    pub(crate) fn keeps(&self, hash: u64) -> bool {
        range_of(hash, self.ranges) == self.range
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
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

    /// Returns a hash in this range of four.
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
