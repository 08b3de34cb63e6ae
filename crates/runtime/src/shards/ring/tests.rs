use std::collections::BTreeMap;

use proptest::prelude::*;

use super::model::Store;
use super::*;

const DURATION: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(2);
const RANGES: u32 = 8;

/// What happens to a round's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Works,
    LosesRenewal,
    LosesRead,
    LosesWrite,
    LosesResponseOfWrite,
    /// The write arrives late or is lost.
    DelaysWrite,
}

/// The API server and all replicas. There is a single global time, from which the clock of each
/// replica may differ.
#[derive(Default)]
struct World {
    now: Duration,
    store: Store,
    delayed: Vec<ClaimsWrite>,
    replicas: Vec<Replica>,
    started: usize,
}

struct Replica {
    identity: String,
    ring: Ring,
    /// Offset of the replica's clock.
    offset: Duration,
    /// In global time.
    valid_until: Duration,
    /// Number of keys in progress, per range.
    running: BTreeMap<u32, usize>,
}

impl Replica {
    fn acting(&self, now: Duration) -> RangeSet {
        if now >= self.valid_until {
            return RangeSet::empty(RANGES);
        }
        let serving = self.ring.serving();
        RangeSet::of(RANGES, |range| {
            serving.contains(range) || self.running.contains_key(&range)
        })
    }
}

impl World {
    fn start(&mut self, ranges: u32) -> usize {
        self.started += 1;
        let identity = format!("replica-{}", self.started);
        self.replicas.push(Replica {
            ring: Ring::new(identity.clone(), ranges, DURATION, PERIOD),
            identity,
            offset: Duration::from_secs(1000 * self.started as u64),
            valid_until: self.now + DEADLINE,
            running: BTreeMap::new(),
        });
        self.replicas.len() - 1
    }

    /// Runs a round: renews the Lease, reads everything, and modifies the claims.
    fn round(&mut self, index: usize, network: Network) {
        let sent = self.now;
        if sent >= self.replicas[index].valid_until {
            // The fence is closed, so the replica exits.
            self.crash(index);
            return;
        }
        if network != Network::LosesRenewal {
            let replica = &self.replicas[index];
            self.store
                .renew(replica.identity.clone(), replica.ring.is_leaving());
        }
        if network == Network::LosesRead {
            return;
        }
        let observed = self.store.read(DURATION);
        let replica = &mut self.replicas[index];
        let now = self.now + replica.offset;
        if network != Network::LosesRenewal {
            replica.valid_until = sent + DEADLINE;
        }
        replica.ring.observe(now, now, observed);
        if replica.ring.has_lost() {
            self.crash(index);
            return;
        }
        replica.ring.plan(now);
        let running = replica.running.clone();
        if let Some(write) = replica
            .ring
            .next_write(now, |range| !running.contains_key(&range))
        {
            let result = match network {
                Network::LosesWrite => WriteResult::Unknown,
                Network::DelaysWrite => {
                    self.delayed.push(write.clone());
                    WriteResult::Unknown
                }
                Network::LosesResponseOfWrite => {
                    self.store.write(&write);
                    WriteResult::Unknown
                }
                _ => self
                    .store
                    .write(&write)
                    .map_or(WriteResult::Unknown, WriteResult::Stored),
            };
            self.replicas[index].ring.written(now, write, result);
        }
        for departed in self.replicas[index].ring.departed() {
            self.store.leases.remove(&departed);
        }
        let replica = &self.replicas[index];
        if replica.ring.leaving
            && replica
                .ring
                .claims()
                .is_none_or(|claims| claims.held_by(&replica.identity).is_empty())
        {
            self.store.leases.remove(&self.replicas[index].identity);
            self.replicas.remove(index);
        }
    }

    fn crash(&mut self, index: usize) {
        self.replicas.remove(index);
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut next: BTreeMap<String, Duration> = BTreeMap::new();
        while self.now < end {
            for index in (0..self.replicas.len()).rev() {
                let due = next
                    .entry(self.replicas[index].identity.clone())
                    .or_insert(self.now);
                if *due <= self.now {
                    *due = self.now + PERIOD;
                    self.round(index, Network::Works);
                }
            }
            self.now += Duration::from_millis(250);
            self.check();
        }
    }

    fn check(&self) {
        let mut taken = RangeSet::empty(RANGES);
        for replica in &self.replicas {
            let acting = replica.acting(self.now);
            let shared: Vec<u32> = acting.iter().filter(|range| taken.contains(*range)).collect();
            assert!(
                shared.is_empty(),
                "{shared:?} have two replicas at {:?}, one is {}",
                self.now,
                replica.identity
            );
            taken = taken.union(&acting);
        }
    }

    fn served(&self) -> usize {
        let acting = self.replicas.iter().map(|replica| replica.acting(self.now));
        let all = acting.fold(RangeSet::empty(RANGES), |all, acting| all.union(&acting));
        all.len() as usize
    }

    fn shares(&self) -> Vec<u32> {
        self.replicas
            .iter()
            .map(|replica| replica.ring.serving().len())
            .collect()
    }

    /// Runs until every range is served. Returns how long that takes.
    fn time_to_serve(&mut self) -> Duration {
        let start = self.now;
        while self.served() < RANGES as usize {
            self.run(Duration::from_millis(250));
            assert!(self.now < start + Duration::from_secs(120), "never served");
        }
        self.now - start
    }
}

fn settled(replicas: usize) -> World {
    let mut world = World::default();
    for _ in 0..replicas {
        world.start(RANGES);
    }
    world.run(Duration::from_secs(60));
    assert_eq!(world.served(), RANGES as usize);
    world
}

#[test]
fn replicas_share_the_ranges_evenly() {
    assert_eq!(settled(1).shares(), [8]);
    assert_eq!(settled(2).shares(), [4, 4]);
    let mut three = settled(3).shares();
    three.sort_unstable();
    assert_eq!(three, [2, 3, 3]);
}

#[test]
fn first_replica_waits_for_a_lease_duration_and_later_ones_only_settle() {
    let mut world = World::default();
    for _ in 0..3 {
        world.start(RANGES);
    }
    let waited = world.time_to_serve();
    assert!(
        waited >= DURATION && waited <= Duration::from_secs(20),
        "{waited:?}"
    );
    world.replicas.iter_mut().for_each(|replica| replica.ring.leave());
    world.run(Duration::from_secs(3));
    assert_eq!(world.replicas.len(), 0);
    world.start(RANGES);
    let waited = world.time_to_serve();
    assert!(waited <= Duration::from_secs(3), "{waited:?}");
}

/// After the claims are deleted, the other replica may still remember them.
#[test]
fn replica_that_remembers_no_claims_waits_for_others_to_restore_them() {
    let mut world = World::default();
    world
        .store
        .leases
        .insert("other".to_owned(), ("1".to_owned(), true));
    world.start(RANGES);
    world.run(DURATION - PERIOD);
    assert_eq!(world.store.claims, None);
    let waited = world.time_to_serve();
    assert!(
        waited >= DURATION && waited <= Duration::from_secs(20),
        "{waited:?}"
    );
}

#[test]
fn ranges_of_a_crashed_replica_are_served_after_the_lease_duration() {
    let mut world = settled(3);
    world.crash(1);
    let waited = world.time_to_serve();
    // The others may have read the last renewal up to two seconds before the crash.
    assert!(
        waited >= Duration::from_secs(13) && waited <= Duration::from_secs(20),
        "{waited:?}"
    );
}

/// The new replica has not observed the Lease of the crashed replica for long enough, but others
/// have.
#[test]
fn replica_that_joins_after_a_crash_does_not_delay_the_takeover() {
    let mut world = settled(3);
    world.crash(1);
    world.run(Duration::from_secs(10));
    world.start(RANGES);
    let waited = Duration::from_secs(10) + world.time_to_serve();
    assert!(waited <= Duration::from_secs(20), "{waited:?}");
}

#[test]
fn ranges_of_a_stopped_replica_are_served_within_five_seconds() {
    let mut world = settled(3);
    world.replicas[1].ring.leave();
    world.round(1, Network::Works);
    let waited = world.time_to_serve();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(world.replicas.len(), 2);
}

#[test]
fn join_moves_only_the_share_of_the_new_replica() {
    let mut world = settled(3);
    let before = world.store.claims.clone().unwrap().0;
    world.start(RANGES);
    world.run(Duration::from_secs(20));
    let after = world.store.claims.clone().unwrap().0;
    let moved = (0..RANGES)
        .filter(|range| before.holder(*range) != after.holder(*range))
        .count();
    assert_eq!((world.shares(), moved), (vec![2, 2, 2, 2], 2));
    let moved = (0..RANGES)
        .filter(|range| before.get(*range) != after.get(*range))
        .count();
    assert_eq!(moved, 2, "other claims keep their epoch");
}

#[test]
fn range_moves_only_after_its_last_key_is_done() {
    let mut world = settled(1);
    let busy = 7;
    world.replicas[0].running.insert(busy, 1);
    world.start(RANGES);
    world.run(Duration::from_secs(20));
    assert_eq!(
        world.shares(),
        [4, 3],
        "the busy range is neither served nor moved"
    );
    world.replicas[0].running.clear();
    world.run(Duration::from_secs(6));
    assert_eq!(world.shares(), [4, 4]);
}

/// The write might still arrive, and then another replica can acquire the ranges.
#[test]
fn range_stays_given_up_while_the_write_may_still_arrive() {
    let mut world = settled(1);
    world.start(RANGES);
    world.round(1, Network::Works);
    world.round(0, Network::DelaysWrite);
    world.replicas[1].ring.leave();
    world.round(1, Network::Works);
    assert_eq!(
        world.replicas.len(),
        1,
        "the first replica shall have all ranges again"
    );
    world.round(0, Network::LosesWrite);
    assert_eq!(world.shares(), [4]);
    let write = world.delayed.remove(0);
    assert!(world.store.write(&write).is_some());
    world.run(Duration::from_secs(6));
    assert_eq!(world.shares(), [8]);
}

/// Otherwise, all other keys of the range would starve.
#[test]
fn range_with_a_key_that_never_ends_is_served_again() {
    let mut world = settled(1);
    world.replicas[0].running.insert(7, 1);
    world.start(RANGES);
    world.run(DRAIN_LIMIT + Duration::from_secs(5));
    assert_eq!(world.served(), RANGES as usize);
}

#[test]
fn deleted_claims_are_restored() {
    let mut world = settled(2);
    let before = world.store.claims.take().unwrap().0;
    world.run(Duration::from_secs(4));
    let after = world.store.claims.clone().unwrap().0;
    assert_eq!(after.ranges, before.ranges);
    world.store.claims = None;
    world.start(RANGES);
    world.run(Duration::from_secs(10));
    let after = world.store.claims.clone().unwrap().0;
    assert!(
        after.fresh.is_some() && after.held_by("replica-3").is_empty(),
        "{after:?}"
    );
    world.run(Duration::from_secs(30));
    assert_eq!(world.served(), RANGES as usize);
    assert_eq!(world.store.claims.unwrap().0.fresh, None);
}

/// Replicas with different settings still agree, because the number is part of the claims.
#[test]
fn number_of_ranges_changes_once_nobody_owns_one() {
    let mut world = settled(1);
    world.start(4);
    world.run(Duration::from_secs(20));
    assert_eq!(world.shares(), [4, 4], "the number of the first replica");
    world.replicas.iter_mut().for_each(|replica| replica.ring.leave());
    world.run(Duration::from_secs(4));
    assert_eq!(world.replicas.len(), 0);
    world.start(4);
    world.run(Duration::from_secs(6));
    assert_eq!(world.shares(), [4]);
    assert_eq!(world.store.claims.unwrap().0.space(), 4);
}

/// Replica 2 restores claims from before replica 1 gave up a range and replica 3 acquired it.
#[test]
fn range_stays_given_up_while_restored_claims_are_fresh() {
    let mut world = settled(1);
    for newcomer in [1, 2] {
        world.start(RANGES);
        world.round(newcomer, Network::Works);
    }
    world.now += PERIOD;
    world.round(0, Network::LosesResponseOfWrite);
    world.round(2, Network::Works);
    assert_eq!(world.shares(), [3, 0, 2]);
    world.store.claims = None;
    world.store.leases.remove("replica-3");
    world.round(1, Network::Works);
    world.round(0, Network::Works);
    world.check();
    world.run(Duration::from_secs(60));
    assert_eq!(world.served(), RANGES as usize);
}

/// Not taking new keys of the range isn't sufficient, since some may still be in progress.
#[test]
fn replica_whose_claim_was_removed_has_lost() {
    let mut world = settled(2);
    let write = world.store.claims.as_mut().unwrap();
    write.0.ranges.fill(None);
    world.run(PERIOD);
    assert_eq!(world.replicas.len(), 0);
}

/// An event in a history. An index refers to one of the replicas that exist at that time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Start,
    Crash(usize),
    Stop(usize),
    Round(usize, Network),
    Begin(usize, u32),
    End(usize),
    Arrive(usize),
    DeleteClaims,
    DeleteLease(usize),
}

/// Derives decisions from a number. Using a proptest strategy for each decision would take four
/// times as long as running the histories.
struct Decisions(u64);

impl Decisions {
    fn next(&mut self, choices: u64) -> u64 {
        let choice = self.0 % choices;
        self.0 /= choices;
        choice
    }

    fn index(&mut self) -> usize {
        self.next(1 << 12) as usize
    }

    fn network(&mut self) -> Network {
        match self.next(14) {
            0..8 => Network::Works,
            8 => Network::LosesRenewal,
            9 => Network::LosesRead,
            10 => Network::LosesWrite,
            11 => Network::LosesResponseOfWrite,
            _ => Network::DelaysWrite,
        }
    }

    fn event(&mut self) -> Event {
        match self.next(83) {
            0..60 => Event::Round(self.index(), self.network()),
            60..66 => Event::Begin(self.index(), self.next(RANGES.into()) as u32),
            66..72 => Event::End(self.index()),
            72..75 => Event::Start,
            75..78 => Event::Arrive(self.index()),
            78..80 => Event::Stop(self.index()),
            80 => Event::Crash(self.index()),
            81 => Event::DeleteClaims,
            _ => Event::DeleteLease(self.index()),
        }
    }

    /// Returns the delay until the next event. Usually short, but sometimes as long as if the
    /// machine were suspended.
    fn wait(&mut self) -> Duration {
        Duration::from_millis(match self.next(21) {
            0 => 1500 + self.next(28_500),
            _ => self.next(1500),
        })
    }
}

impl World {
    fn happen(&mut self, event: Event) {
        let replicas = self.replicas.len();
        match event {
            Event::Start if replicas < 4 => {
                self.start(RANGES);
            }
            Event::Arrive(index) if !self.delayed.is_empty() => {
                let write = self.delayed.remove(index % self.delayed.len());
                self.store.write(&write);
            }
            Event::DeleteClaims => self.store.claims = None,
            Event::DeleteLease(index) if !self.store.leases.is_empty() => {
                let identity = self
                    .store
                    .leases
                    .keys()
                    .nth(index % self.store.leases.len())
                    .cloned();
                self.store.leases.remove(&identity.unwrap());
            }
            _ if replicas == 0 => {}
            Event::Crash(index) => self.crash(index % replicas),
            Event::Stop(index) => self.replicas[index % replicas].ring.leave(),
            Event::Round(index, network) => self.round(index % replicas, network),
            Event::Begin(index, range) => {
                let now = self.now;
                let replica = &mut self.replicas[index % replicas];
                if now < replica.valid_until && replica.ring.serving().contains(range) {
                    *replica.running.entry(range).or_default() += 1;
                }
            }
            Event::End(index) => drop(self.replicas[index % replicas].running.pop_first()),
            Event::Start | Event::Arrive(_) | Event::DeleteLease(_) => {}
        }
    }
}

/// CI tries 10,000 histories.
fn histories() -> u32 {
    match std::env::var("RBUILDER_RING_HISTORIES") {
        Ok(number) => number.parse().expect("RBUILDER_RING_HISTORIES is a number"),
        Err(_) => 300,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: histories(), ..ProptestConfig::default() })]

    /// No two replicas ever serve the same range. After the last fault, all ranges are served
    /// again.
    #[test]
    fn no_history_gives_a_range_to_two_replicas(
        history in prop::collection::vec(any::<u64>().prop_map(|number| {
            let mut decisions = Decisions(number);
            (decisions.wait(), decisions.event())
        }), 1..300),
    ) {
        let mut world = World::default();
        for (wait, event) in history {
            world.now += wait;
            world.happen(event);
            world.check();
        }
        world.delayed.clear();
        world.replicas.iter_mut().for_each(|replica| replica.running.clear());
        world.start(RANGES);
        // If a key takes too long, its range only moves after a pause.
        world.run(DRAIN_PAUSE + Duration::from_secs(30));
        prop_assert_eq!(world.served(), RANGES as usize);
        let shares = world.shares();
        prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{:?}", shares);
    }
}
