//! Simulates replicas with their rings, queues and workers, and the state that they share: stored
//! claims, watches, and changes that aren't reconciled yet.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::costs::Costs;
use super::member::{Member, PERIOD, Replica, TICK};
use crate::queue::NORMAL;
use crate::shards::RangeSet;
use crate::shards::ring::model::Store;

#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) objects: u32,
    pub(super) ranges: u32,
    pub(super) workers: usize,
    /// Number of random objects that change per second.
    pub(super) changes: u32,
    /// Whether the API server supports shard selectors.
    pub(super) server_shards: bool,
    /// Whether the operator is new, so that the first reconcile of each object needs requests.
    pub(super) cold: bool,
    pub(super) costs: Costs,
}

/// Statistics since the last reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Histogram of the delays of reconciled changes, in milliseconds.
    pub(super) delays: BTreeMap<u64, u64>,
    pub(super) reconciles: u64,
    pub(super) lease_writes: u64,
    pub(super) claim_writes: u64,
    pub(super) listed_leases: u64,
    pub(super) listed_objects: u64,
    pub(super) events: u64,
    pub(super) moved_ranges: u64,
    /// Includes replicas that no longer exist.
    pub(super) cpu: Duration,
}

impl Counts {
    pub(super) fn delay(&self, share: f64) -> Duration {
        let wanted = (self.changes() as f64 * share).ceil() as u64;
        let mut passed = 0;
        let found = self.delays.iter().find(|(_, count)| {
            passed += **count;
            passed >= wanted
        });
        Duration::from_millis(found.map_or(0, |(delay, _)| *delay))
    }

    pub(super) fn changes(&self) -> u64 {
        self.delays.values().sum()
    }
}

pub(super) struct World {
    pub(super) store: Store,
    /// Replica that watches each range.
    pub(super) watchers: Vec<Option<usize>>,
    /// Objects of each range that are still to be reconciled, and since when.
    pub(super) changed: Vec<BTreeMap<u32, Instant>>,
    /// Bit set of all objects that were reconciled at least once.
    pub(super) reconciled: Vec<u64>,
    /// Replica that is reconciling an object.
    pub(super) working: HashMap<u32, usize>,
    pub(super) counts: Counts,
    pub(super) random: u64,
}

impl World {
    /// Returns `true` if the object was reconciled for the first time.
    pub(super) fn is_first(&mut self, object: u32) -> bool {
        let (word, bit) = ((object / u64::BITS) as usize, 1 << (object % u64::BITS));
        let is_first = self.reconciled[word] & bit == 0;
        self.reconciled[word] |= bit;
        is_first
    }

    /// Returns a number less than `limit`. Each run gets the same sequence.
    fn random(&mut self, limit: u32) -> u32 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.random >> 32) * u64::from(limit)) >> 32) as u32
    }
}

struct Running {
    replica: Rc<Replica>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// All replicas of an operator. Must be used within a [`LocalSet`](tokio::task::LocalSet).
pub(super) struct Fleet {
    setting: Setting,
    epoch: Instant,
    world: Rc<RefCell<World>>,
    replicas: Vec<Running>,
    started: usize,
    changing: JoinHandle<()>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.changing.abort();
    }
}

impl Fleet {
    /// There are no replicas yet, but objects start changing immediately.
    pub(super) fn new(setting: Setting) -> Self {
        let ranges = setting.ranges as usize;
        let world = Rc::new(RefCell::new(World {
            store: Store::default(),
            watchers: vec![None; ranges],
            changed: vec![BTreeMap::new(); ranges],
            reconciled: vec![
                if setting.cold { 0 } else { u64::MAX };
                setting.objects.div_ceil(u64::BITS) as usize
            ],
            working: HashMap::new(),
            counts: Counts::default(),
            random: 1,
        }));
        let mut fleet = Self {
            setting,
            epoch: Instant::now(),
            world,
            replicas: Vec::new(),
            started: 0,
            changing: tokio::task::spawn_local(async {}),
        };
        fleet.change();
        fleet
    }

    pub(super) fn start(&mut self) {
        self.started += 1;
        let replica = Rc::new(Replica::new(self.started, self.setting.ranges));
        let member = Member {
            setting: self.setting,
            epoch: self.epoch,
            world: Rc::clone(&self.world),
            replica: Rc::clone(&replica),
        };
        let mut tasks = vec![
            tokio::task::spawn_local(member.clone().rounds()),
            tokio::task::spawn_local(member.clone().follow_ranges()),
        ];
        tasks.extend((0..self.setting.workers).map(|_| tokio::task::spawn_local(member.clone().work())));
        self.replicas.push(Running { replica, tasks });
        // Otherwise, all other watches would ignore the new one.
        self.change();
    }

    /// Starts several replicas within a period.
    pub(super) async fn start_many(&mut self, replicas: usize) {
        for _ in 0..replicas {
            self.start();
            sleep(PERIOD / replicas as u32).await;
        }
    }

    pub(super) fn crash(&mut self, replicas: usize) {
        for running in self.replicas.drain(..replicas) {
            let mut world = self.world.borrow_mut();
            world.counts.cpu += running.replica.cpu.borrow().used();
            let number = running.replica.number;
            running
                .replica
                .shards
                .set_owned(RangeSet::empty(self.setting.ranges));
            // The API server rejects its writes before another replica can take over.
            world.working.retain(|_, worker| *worker != number);
            world.watchers.iter_mut().for_each(|watcher| {
                watcher.take_if(|watcher| *watcher == number);
            });
        }
        self.change();
    }

    /// Stops the oldest replicas and waits for them to exit.
    pub(super) async fn stop(&mut self, replicas: usize) {
        let stopping: Vec<Running> = self.replicas.drain(..replicas).collect();
        for running in &stopping {
            running.replica.ring.borrow_mut().leave();
        }
        for mut running in stopping {
            // The first task exits once the replica has given up its ranges.
            let _ = (&mut running.tasks[0]).await;
            self.world.borrow_mut().counts.cpu += running.replica.cpu.borrow().used();
        }
        self.change();
    }

    pub(super) fn set_changes(&mut self, changes: u32) {
        self.setting.changes = changes;
        self.change();
    }

    fn change(&mut self) {
        self.changing.abort();
        let (setting, world, epoch) = (self.setting, Rc::clone(&self.world), self.epoch);
        let replicas: Vec<Rc<Replica>> = self
            .replicas
            .iter()
            .map(|running| Rc::clone(&running.replica))
            .collect();
        self.changing = tokio::task::spawn_local(async move {
            let mut left = 0;
            loop {
                sleep(TICK).await;
                // A tick is a millisecond, so carry thousandths of a change over to the next one.
                left += setting.changes;
                let changes = left / 1000;
                left %= 1000;
                for _ in 0..changes {
                    change_one(setting, &world, &replicas);
                }
                // Every replica receives the events of all others.
                if !setting.server_shards && changes > 0 {
                    let dropped = setting.costs.dropped * changes;
                    for replica in &replicas {
                        replica.cpu.borrow_mut().charge(epoch.elapsed(), dropped);
                    }
                }
            }
        });
    }

    pub(super) fn size(&self) -> usize {
        self.replicas.len()
    }

    /// Waits until all ranges are being watched and the queues are short, i.e. until the number of
    /// waiting keys matches the rate of changes. Returns how long that takes.
    pub(super) async fn converged(&self) -> Duration {
        let start = Instant::now();
        loop {
            sleep(Duration::from_millis(100)).await;
            let is_watched = self.world.borrow().watchers.iter().all(Option::is_some);
            let are_listed = self
                .replicas
                .iter()
                .all(|running| *running.replica.lists.borrow() == 0);
            let waiting: usize = self
                .replicas
                .iter()
                .map(|running| running.replica.queue.depth())
                .sum();
            if is_watched && are_listed && waiting <= self.setting.changes as usize / 20 {
                return start.elapsed();
            }
            assert!(start.elapsed() < Duration::from_secs(3600), "never converged");
        }
    }

    pub(super) fn take_counts(&self) -> Counts {
        let mut counts = std::mem::take(&mut self.world.borrow_mut().counts);
        for running in &self.replicas {
            counts.cpu += std::mem::take(&mut *running.replica.cpu.borrow_mut()).used();
        }
        counts
    }

    /// Returns the number of objects of the replica with the most objects.
    pub(super) fn largest_share(&self) -> u32 {
        let ranges = self
            .replicas
            .iter()
            .map(|running| running.replica.shards.owned().borrow().len());
        (u64::from(ranges.max().unwrap_or(0)) * u64::from(self.setting.objects)
            / u64::from(self.setting.ranges)) as u32
    }
}

fn change_one(setting: Setting, world: &Rc<RefCell<World>>, replicas: &[Rc<Replica>]) {
    let mut world = world.borrow_mut();
    let object = world.random(setting.objects);
    let range = (object % setting.ranges) as usize;
    world.changed[range].entry(object).or_insert_with(Instant::now);
    world.counts.events += match setting.server_shards {
        true => 1,
        false => replicas.len() as u64,
    };
    if let Some(watcher) = world.watchers[range]
        // Replicas are sorted, because they're numbered in the order in which they start.
        && let Ok(index) = replicas.binary_search_by_key(&watcher, |replica| replica.number)
    {
        replicas[index].queue.add(object, NORMAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_is_that_of_a_share_of_the_changes() {
        let counts = Counts {
            delays: [(1, 98), (50, 1), (900, 1)].into(),
            ..Counts::default()
        };
        assert_eq!(counts.delay(0.5), Duration::from_millis(1));
        assert_eq!(counts.delay(0.99), Duration::from_millis(50));
        assert_eq!(counts.delay(1.0), Duration::from_millis(900));
        assert_eq!(counts.changes(), 100);
    }
}
