//! A replica's tasks: rounds of its ring, lists, and workers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::costs::Cpu;
use super::fleet::{Setting, World};
use crate::metrics::Metrics;
use crate::queue::{LOW, NORMAL, Workqueue};
use crate::shards::ring::{Ring, WriteResult};
use crate::shards::{Entry, RangeSet, Shards};

const LEASE_DURATION: Duration = Duration::from_secs(15);
pub(super) const PERIOD: Duration = Duration::from_secs(2);
/// Delay before retrying a key whose range is about to move.
const DRAINING_RETRY: Duration = Duration::from_millis(100);
const PAGE: u32 = 500;
/// Resolution of tokio's timers. Shorter work doesn't wait, but still counts as CPU time.
pub(super) const TICK: Duration = Duration::from_millis(1);

pub(super) struct Replica {
    pub(super) number: usize,
    pub(super) ring: RefCell<Ring>,
    pub(super) shards: Shards,
    pub(super) queue: Workqueue<u32>,
    pub(super) cpu: RefCell<Cpu>,
    /// Number of lists in progress.
    pub(super) lists: RefCell<usize>,
}

impl Replica {
    pub(super) fn new(number: usize, ranges: u32) -> Self {
        let identity = identity_of(number);
        Self {
            number,
            ring: RefCell::new(Ring::new(identity, ranges, LEASE_DURATION, PERIOD)),
            shards: Shards::new(),
            queue: Workqueue::new(Metrics::new().queue("scale")),
            cpu: RefCell::default(),
            lists: RefCell::default(),
        }
    }
}

fn identity_of(number: usize) -> String {
    format!("replica-{number}")
}

#[derive(Clone)]
pub(super) struct Member {
    pub(super) setting: Setting,
    pub(super) epoch: Instant,
    pub(super) world: Rc<RefCell<World>>,
    pub(super) replica: Rc<Replica>,
}

impl Member {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Uses CPU time, and waits until the CPU is done.
    async fn use_cpu(&self, work: Duration) {
        let now = self.now();
        let done = self.replica.cpu.borrow_mut().charge(now, work);
        if done - now >= TICK {
            sleep_until(self.epoch + done).await;
        }
    }

    /// Renews the Lease and follows the ring's decisions, until the replica has left.
    pub(super) async fn rounds(self) {
        loop {
            if self.round() {
                return;
            }
            // Start the next round immediately if a draining range becomes idle.
            let _ = timeout(PERIOD, self.replica.shards.became_idle()).await;
        }
    }

    /// Runs a round. Returns `true` if the replica has left.
    fn round(&self) -> bool {
        let mut world = self.world.borrow_mut();
        let mut ring = self.replica.ring.borrow_mut();
        let identity = identity_of(self.replica.number);
        world.store.renew(identity.clone(), ring.is_leaving());
        let observed = world.store.read(LEASE_DURATION);
        world.counts.lease_writes += 1;
        world.counts.listed_leases += observed.replicas.len() as u64 + 1;
        let now = self.now();
        ring.observe(now, now, observed);
        assert!(!ring.has_lost(), "{identity} has lost a range");
        ring.plan(now);
        self.publish(&ring);
        let shards = &self.replica.shards;
        if let Some(write) = ring.next_write(now, |range| shards.is_idle(range)) {
            self.publish(&ring);
            world.counts.claim_writes += 1;
            let stored = world.store.write(&write);
            ring.written(
                now,
                write,
                stored.map_or(WriteResult::Unknown, WriteResult::Stored),
            );
            self.publish(&ring);
        }
        for departed in ring.departed() {
            world.store.leases.remove(&departed);
        }
        let has_left = ring.is_leaving() && ring.owned().is_empty();
        if has_left {
            world.store.leases.remove(&identity);
        }
        has_left
    }

    fn publish(&self, ring: &Ring) {
        self.replica.shards.set_serving(ring.serving());
        self.replica.shards.set_owned(ring.owned());
    }

    /// Lists new ranges, and stops watching lost ones.
    pub(super) async fn follow_ranges(self) {
        let mut owned = self.replica.shards.owned();
        let mut before = RangeSet::empty(self.setting.ranges);
        while owned.changed().await.is_ok() {
            let now = RangeSet::clone(&owned.borrow_and_update());
            {
                let mut world = self.world.borrow_mut();
                for range in before.without(&now).iter() {
                    world.watchers[range as usize].take_if(|watcher| *watcher == self.replica.number);
                }
            }
            let new = now.without(&before);
            before = now;
            if !new.is_empty() {
                self.world.borrow_mut().counts.moved_ranges += u64::from(new.len());
                *self.replica.lists.borrow_mut() += 1;
                tokio::task::spawn_local(self.clone().list(new));
            }
        }
    }

    /// Lists ranges page by page, then starts to watch them.
    async fn list(self, ranges: RangeSet) {
        let (objects, all) = (self.setting.objects, self.setting.ranges);
        let mut unlisted = ranges
            .iter()
            .flat_map(|range| (range..objects).step_by(all as usize));
        loop {
            let page: Vec<u32> = unlisted.by_ref().take(PAGE as usize).collect();
            if page.is_empty() || !self.owns_any(&ranges) {
                break;
            }
            sleep(self.setting.costs.page).await;
            self.use_cpu(self.setting.costs.listed * page.len() as u32).await;
            self.world.borrow_mut().counts.listed_objects += page.len() as u64;
            for object in page {
                self.replica.queue.add(object, LOW);
            }
        }
        *self.replica.lists.borrow_mut() -= 1;
        let owned = self.replica.shards.owned();
        let mut world = self.world.borrow_mut();
        for range in ranges.iter().filter(|range| owned.borrow().contains(*range)) {
            world.watchers[range as usize] = Some(self.replica.number);
            // The watch starts at the list's version, so it delivers everything since then.
            for object in world.changed[range as usize].keys() {
                self.replica.queue.add(*object, NORMAL);
            }
        }
    }

    fn owns_any(&self, ranges: &RangeSet) -> bool {
        let owned = self.replica.shards.owned();
        let owned = owned.borrow();
        ranges.iter().any(|range| owned.contains(range))
    }

    pub(super) async fn work(self) {
        while let Some(object) = self.replica.queue.next().await {
            let range = object % self.setting.ranges;
            match self.replica.shards.enter(hash_in(range, self.setting.ranges)) {
                Entry::Entered(_guard) => self.reconcile(object, range as usize).await,
                Entry::Draining => self.replica.queue.add_after(object, DRAINING_RETRY, LOW),
                Entry::Elsewhere => {}
            }
            self.replica.queue.done(&object);
        }
    }

    async fn reconcile(&self, object: u32, range: usize) {
        let (changed, is_first) = {
            let mut world = self.world.borrow_mut();
            let other = world.working.insert(object, self.replica.number);
            assert_eq!(other, None, "two replicas work on {object}");
            (world.changed[range].remove(&object), world.is_first(object))
        };
        let costs = self.setting.costs;
        if changed.is_some() || is_first {
            self.use_cpu(costs.changed).await;
            sleep(costs.requests).await;
        } else {
            self.use_cpu(costs.unchanged).await;
        }
        let mut world = self.world.borrow_mut();
        world.working.remove(&object);
        world.counts.reconciles += 1;
        if let Some(changed) = changed {
            let delay = changed.elapsed().as_millis() as u64;
            *world.counts.delays.entry(delay).or_default() += 1;
        }
    }
}

fn hash_in(range: u32, ranges: u32) -> u64 {
    (((u128::from(range) << 64) + (1 << 63)) / u128::from(ranges)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::space::range_of;

    #[test]
    fn hash_is_in_its_range() {
        for ranges in [1, 3, 256, 1024] {
            assert!((0..ranges).all(|range| range_of(hash_in(range, ranges), ranges) == range));
        }
    }
}
