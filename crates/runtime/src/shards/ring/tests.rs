use std::collections::BTreeMap;

use proptest::prelude::*;

use super::model::Store;
use super::*;
use crate::shards::right::{Right, RightLease, RightStep};

const DURATION: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(2);
const RANGES: u32 = 8;
/// When a replica's Lease ends that it has not renewed yet. Until then, its fence is closed, so it
/// serves nothing.
const UNRENEWED: Duration = Duration::MAX;
/// Holder of the leader's Lease.
const RING: &str = "ring";

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
    /// The claims are written, but not the leader's Lease after that.
    LosesConfirmation,
}

/// A write of the leader's Lease.
struct RightWrite {
    base: Option<String>,
    holder: String,
    duration: Duration,
}

/// The API server and all replicas. There is a single global time, from which the clock of each
/// replica may differ.
#[derive(Default)]
struct World {
    now: Duration,
    store: Store,
    delayed: Vec<ClaimsWrite>,
    delayed_rights: Vec<RightWrite>,
    replicas: Vec<Replica>,
    leaders: Vec<Leader>,
    started: usize,
}

struct Replica {
    identity: String,
    ring: Ring,
    right: Right,
    /// Whether it has stopped all keys until it can continue.
    suspended: bool,
    /// Offset of the replica's clock.
    offset: Duration,
    /// In global time.
    valid_until: Duration,
    /// Number of keys in progress, per range.
    running: BTreeMap<u32, usize>,
}

impl Replica {
    fn acting(&self, now: Duration) -> RangeSet {
        if now >= self.valid_until || self.valid_until == UNRENEWED {
            return RangeSet::empty(RANGES);
        }
        let serving = self.serving();
        RangeSet::of(RANGES, |range| {
            serving.contains(range) || self.running.contains_key(&range)
        })
    }

    fn serving(&self) -> RangeSet {
        match self.suspended || !self.right.is_confirmed() {
            true => RangeSet::empty(RANGES),
            false => self.ring.serving(),
        }
    }

    fn owns(&self) -> bool {
        let claims = self.ring.claims();
        claims.is_some_and(|claims| !claims.held_by(&self.identity).is_empty())
    }

    fn suspend(&mut self) {
        self.suspended = true;
        self.ring.suspend();
        self.running.clear();
        self.valid_until = Duration::ZERO;
    }
}

/// A replica of the same operator with leader election, by client-go's algorithm. While it leads, it
/// works on all ranges.
struct Leader {
    identity: String,
    seen: Option<(RightLease, Duration)>,
    /// `None` for a candidate.
    valid_until: Option<Duration>,
}

impl World {
    fn start(&mut self, ranges: u32) -> usize {
        self.started += 1;
        let identity = format!("replica-{}", self.started);
        self.replicas.push(Replica {
            ring: Ring::new(identity.clone(), ranges, DURATION, PERIOD),
            right: Right::new(RING.to_owned(), DURATION, DEADLINE),
            identity,
            suspended: false,
            offset: Duration::from_secs(1000 * self.started as u64),
            valid_until: UNRENEWED,
            running: BTreeMap::new(),
        });
        self.replicas.len() - 1
    }

    /// Runs a round: renews the Lease, reads everything, and modifies the claims.
    fn round(&mut self, index: usize, network: Network) {
        let sent = self.now;
        if sent >= self.replicas[index].valid_until && !self.replicas[index].suspended {
            self.replicas[index].suspend();
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
        replica.ring.observe(now, now, observed);
        replica.right.observe(now, now, self.store.right.clone());
        if replica.ring.has_lost() {
            self.crash(index);
            return;
        }
        if !self.hold_right(index, network) {
            return;
        }
        let replica = &mut self.replicas[index];
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
            if network != Network::LosesConfirmation {
                self.hold_right(index, network);
            }
        }
        for departed in self.replicas[index].ring.departed() {
            self.store.leases.remove(&departed);
        }
        let replica = &self.replicas[index];
        if replica.ring.leaving && !replica.owns() {
            self.leave(index, network);
        }
    }

    /// Acquires or renews the leader's Lease. Returns `false` if the round is over.
    fn hold_right(&mut self, index: usize, network: Network) -> bool {
        let replica = &mut self.replicas[index];
        let now = self.now + replica.offset;
        let owns = replica.owns();
        match replica.right.step(now, owns) {
            RightStep::Hold(_) => {}
            RightStep::Wait(_) => {
                if replica.valid_until != UNRENEWED {
                    replica.suspend();
                }
                return replica.ring.leaving;
            }
            RightStep::Write(base) => {
                let duration = replica.right.lease_duration();
                let Some(lease) = self.write_right(network, base, RING, duration) else {
                    return false;
                };
                self.replicas[index].right.stored(now, now, owns, lease);
            }
        }
        if network == Network::LosesRenewal {
            return true;
        }
        let replica = &mut self.replicas[index];
        let until = replica.right.held_until().unwrap_or_default();
        replica.valid_until = (self.now + DEADLINE).min(until.saturating_sub(replica.offset));
        if std::mem::take(&mut replica.suspended) {
            replica.ring.resume();
        }
        true
    }

    /// Returns the stored Lease, if the writer knows that it was stored.
    fn write_right(
        &mut self,
        network: Network,
        base: Option<String>,
        holder: &str,
        duration: Duration,
    ) -> Option<RightLease> {
        match network {
            Network::LosesWrite => None,
            Network::LosesResponseOfWrite => {
                self.store.write_right(base.as_deref(), holder, duration);
                None
            }
            Network::DelaysWrite => {
                let holder = holder.to_owned();
                self.delayed_rights.push(RightWrite {
                    base,
                    holder,
                    duration,
                });
                None
            }
            _ => self.store.write_right(base.as_deref(), holder, duration),
        }
    }

    /// Removes a replica without ranges. The last one releases the leader's Lease.
    fn leave(&mut self, index: usize, network: Network) {
        let replica = self.replicas.remove(index);
        self.store.leases.remove(&replica.identity);
        let is_last =
            replica.ring.claims().is_some_and(Claims::are_free) && replica.ring.members().is_empty();
        if let Some(version) = replica.right.held_version().filter(|_| is_last) {
            let base = Some(version.to_owned());
            self.write_right(network, base, "", Duration::from_secs(1));
        }
    }

    fn start_leader(&mut self) {
        self.started += 1;
        self.leaders.push(Leader {
            identity: format!("leader-{}", self.started),
            seen: None,
            valid_until: None,
        });
    }

    /// Attempts to acquire or renew the lease.
    fn lead(&mut self, index: usize, network: Network) {
        let leader = &mut self.leaders[index];
        let has_lapsed = leader.valid_until.is_some_and(|until| self.now >= until);
        if has_lapsed {
            self.leaders.remove(index);
            return;
        }
        if network == Network::LosesRead {
            return;
        }
        let found = self.store.right.clone();
        if let Some(found) = &found
            && leader
                .seen
                .as_ref()
                .is_none_or(|(seen, _)| seen.renewal != found.renewal)
        {
            leader.seen = Some((found.clone(), self.now));
        }
        let is_held_by_other = leader.seen.as_ref().is_some_and(|(seen, since)| {
            !seen.holder.is_empty() && seen.holder != leader.identity && self.now < *since + seen.duration
        });
        if is_held_by_other {
            if leader.valid_until.is_some() {
                self.leaders.remove(index);
            }
            return;
        }
        let (identity, base) = (leader.identity.clone(), found.map(|found| found.version));
        if self.write_right(network, base, &identity, DURATION).is_some() {
            self.leaders[index].valid_until = Some(self.now + DEADLINE);
        }
    }

    /// Stops a leader or candidate.
    fn stop_leader(&mut self, index: usize) {
        let leader = self.leaders.remove(index);
        if let Some(held) = self
            .store
            .right
            .clone()
            .filter(|right| right.holder == leader.identity)
        {
            self.store
                .write_right(Some(&held.version), "", Duration::from_secs(1));
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
            for index in (0..self.leaders.len()).rev() {
                let due = next
                    .entry(self.leaders[index].identity.clone())
                    .or_insert(self.now);
                if *due <= self.now {
                    *due = self.now + PERIOD;
                    self.lead(index, Network::Works);
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
        let leads = |leader: &&Leader| leader.valid_until.is_some_and(|until| self.now < until);
        let leaders: Vec<&str> = self
            .leaders
            .iter()
            .filter(leads)
            .map(|leader| leader.identity.as_str())
            .collect();
        assert!(
            leaders.len() + usize::from(!taken.is_empty()) <= 1,
            "{leaders:?} lead at {:?}, while replicas work on {taken}",
            self.now
        );
    }

    /// Changes the claims like somebody with `kubectl edit`.
    fn edit(&mut self, change: impl FnOnce(&mut Claims)) {
        if let Some((mut claims, _)) = self.store.claims.clone() {
            change(&mut claims);
            self.store.set_claims(claims, true);
        }
    }

    fn restore(&mut self, backup: usize) {
        if let Some(claims) = self.store.history.get(backup).cloned() {
            self.store.set_claims(claims, true);
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
            .map(|replica| replica.serving().len())
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

/// E.g. while the API server is restarted. The others haven't renewed their Leases either.
#[test]
fn interrupted_replicas_continue_with_the_same_ranges() {
    for pause in [Duration::from_secs(11), Duration::from_secs(120)] {
        let mut world = settled(3);
        let before = world.store.claims.clone();
        // The first one that is back has seen the last renewals of the others.
        for index in 0..3 {
            world.round(index, Network::Works);
        }
        world.now += pause;
        assert_eq!(world.served(), 0, "nobody has a valid Lease");
        world.run(PERIOD);
        assert_eq!((world.served(), world.replicas.len()), (RANGES as usize, 3));
        world.run(Duration::from_secs(60));
        // They have written the same claims once more.
        let without_generation = |stored: &Option<(Claims, String)>| {
            stored.clone().map(|(claims, _)| Claims {
                generation: 0,
                ..claims
            })
        };
        let now = without_generation(&world.store.claims);
        assert_eq!(now, without_generation(&before));
    }
}

#[test]
fn interrupted_replica_whose_range_was_taken_has_lost() {
    let mut world = settled(2);
    let interrupted = world.replicas.remove(0);
    world.time_to_serve();
    world.replicas.push(interrupted);
    world.round(1, Network::Works);
    assert_eq!(world.replicas.len(), 1);
}

/// The replica has lost the range to another one before, which may not have read this yet.
#[test]
fn interrupted_replica_does_not_continue_with_edited_claims() {
    let mut world = settled(2);
    let backup = world.store.history.len() - 1;
    let interrupted = world.replicas.remove(0);
    world.time_to_serve();
    world.restore(backup);
    world.replicas.push(interrupted);
    world.round(1, Network::Works);
    assert_eq!(world.shares(), [8, 0]);
    world.run(Duration::from_secs(60));
    assert_eq!(world.served(), RANGES as usize);
}

/// Another replica took its ranges before the claims were deleted.
#[test]
fn interrupted_replica_does_not_continue_with_deleted_claims() {
    let mut world = settled(2);
    let interrupted = world.replicas.remove(0);
    world.time_to_serve();
    world.store.claims = None;
    world.replicas.push(interrupted);
    world.round(1, Network::Works);
    assert_eq!(world.shares(), [8, 0]);
    world.run(Duration::from_secs(60));
    assert_eq!(world.served(), RANGES as usize);
}

/// Returns the identity of the second replica, which owns the range that can't be given up.
fn with_receiver() -> (World, String) {
    let mut world = settled(2);
    let owner = world
        .store
        .claims
        .as_ref()
        .unwrap()
        .0
        .holder(0)
        .unwrap()
        .to_owned();
    world.replicas.sort_by_key(|replica| replica.identity == owner);
    (world, owner)
}

/// As with `kubectl edit`, which leaves the generation as it is, or with a new generation.
#[test]
fn range_given_by_an_edit_waits_for_a_lease_duration() {
    for generations in [0, 1] {
        let (mut world, receiver) = with_receiver();
        world.edit(|claims| {
            claims.generation += generations;
            for claim in claims.ranges.iter_mut().flatten() {
                claim.holder = receiver.clone();
            }
        });
        world.round(1, Network::Works);
        world.check();
        assert_eq!(world.shares(), [4, 4], "the first one has not read it yet");
        world.round(0, Network::Works);
        assert_eq!(world.replicas.len(), 1, "it has lost its ranges");
        world.run(DURATION - Duration::from_secs(1));
        assert_eq!(world.shares(), [4]);
        world.run(Duration::from_secs(5));
        assert_eq!(world.shares(), [8]);
    }
}

/// Without field managers, only the epoch tells that the range was not acquired.
#[test]
fn range_given_with_a_new_generation_waits_without_field_managers() {
    let (mut world, receiver) = with_receiver();
    let (mut claims, _) = world.store.claims.clone().unwrap();
    claims.generation += 1;
    for claim in claims.ranges.iter_mut().flatten() {
        claim.holder = receiver.clone();
    }
    world.store.set_claims(claims, false);
    world.round(1, Network::Works);
    assert_eq!(world.shares(), [4, 4]);
    world.round(0, Network::Works);
    world.run(Duration::from_secs(30));
    assert_eq!(world.shares(), [8]);
}

#[test]
fn free_range_of_an_edit_is_not_acquired_for_a_lease_duration() {
    let mut world = settled(2);
    let other = world.replicas[0].identity.clone();
    world.edit(|claims| {
        let taken = claims.ranges.iter_mut();
        taken
            .filter(|claim| claim.as_ref().is_some_and(|claim| claim.holder == other))
            .for_each(|claim| *claim = None);
    });
    for _ in 0..3 {
        world.round(1, Network::Works);
    }
    world.check();
    let (claims, _) = world.store.claims.clone().unwrap();
    assert!(claims.fresh.is_some(), "stored for the others: {claims:?}");
    world.round(0, Network::Works);
    world.run(Duration::from_secs(30));
    assert_eq!(world.shares(), [8]);
}

#[test]
fn restored_backup_gives_no_range_to_two_replicas() {
    for backup in 0..settled(3).store.history.len() {
        let mut world = settled(3);
        world.restore(backup);
        for index in (0..3).rev() {
            world.round(index, Network::Works);
            world.check();
        }
        world.start(RANGES);
        world.run(Duration::from_secs(60));
        assert_eq!(world.served(), RANGES as usize, "{backup}");
    }
}

#[test]
fn edit_of_anything_but_the_claims_changes_nothing() {
    let mut world = settled(2);
    let (claims, _) = world.store.claims.clone().unwrap();
    world.store.set_claims(claims.clone(), false);
    world.run(Duration::from_secs(10));
    assert_eq!(world.store.claims.unwrap().0, claims);
}

#[test]
fn ring_waits_for_the_leader() {
    let mut world = World::default();
    world.start_leader();
    world.run(PERIOD);
    for _ in 0..2 {
        world.start(RANGES);
    }
    world.run(Duration::from_secs(60));
    assert_eq!((world.served(), world.store.claims.is_none()), (0, true));
    world.stop_leader(0);
    let waited = world.time_to_serve();
    assert!(waited <= Duration::from_secs(20), "{waited:?}");
}

#[test]
fn leader_waits_for_the_ring() {
    let mut world = settled(2);
    world.start_leader();
    world.run(Duration::from_secs(60));
    assert_eq!(world.served(), RANGES as usize);
    assert_eq!(world.leaders[0].valid_until, None);
    for replica in &mut world.replicas {
        replica.ring.leave();
    }
    world.run(Duration::from_secs(5));
    assert_eq!(world.replicas.len(), 0);
    assert!(
        world.leaders[0].valid_until.is_some(),
        "the last one released the lease"
    );
}

#[test]
fn leader_takes_over_from_killed_replicas() {
    let mut world = settled(2);
    world.start_leader();
    world.run(PERIOD);
    world.replicas.clear();
    world.run(2 * DURATION - PERIOD);
    assert_eq!(world.leaders[0].valid_until, None);
    world.run(DEADLINE + 2 * PERIOD);
    assert!(world.leaders[0].valid_until.is_some());
}

/// The last replica is about to release the leader's Lease when another one joins.
#[test]
fn lease_is_not_released_after_another_replica_has_acquired_ranges() {
    let mut world = settled(1);
    world.start_leader();
    world.run(PERIOD);
    world.replicas[0].ring.leave();
    world.round(0, Network::Works);
    let released = world.store.right.take();
    // The release is delayed.
    let held = world.store.write_right(None, RING, 2 * DURATION).unwrap();
    world.delayed_rights.push(RightWrite {
        base: Some(held.version),
        holder: String::new(),
        duration: Duration::from_secs(1),
    });
    assert_eq!(released.unwrap().holder, "");
    world.start(RANGES);
    world.time_to_serve();
    world.happen(Event::ArriveRight(0));
    world.run(Duration::from_secs(10));
    assert_eq!(world.served(), RANGES as usize);
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
    ArriveRight(usize),
    DeleteClaims,
    DeleteLease(usize),
    EditClaims(usize, Edit),
    RestoreClaims(usize),
    StartLeader,
    Lead(usize, Network),
    StopLeader(usize),
    CrashLeader(usize),
}

/// A change of claims by hand. Either the generation is left alone, or increased as well.
#[derive(Clone, Copy, Debug)]
struct Edit {
    generations: u64,
    /// First range, and number of ranges.
    first: u32,
    count: u32,
    frees: bool,
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
        match self.next(15) {
            0..8 => Network::Works,
            14 => Network::LosesConfirmation,
            8 => Network::LosesRenewal,
            9 => Network::LosesRead,
            10 => Network::LosesWrite,
            11 => Network::LosesResponseOfWrite,
            _ => Network::DelaysWrite,
        }
    }

    fn event(&mut self) -> Event {
        match self.next(100) {
            0..60 => Event::Round(self.index(), self.network()),
            60..66 => Event::Begin(self.index(), self.next(RANGES.into()) as u32),
            66..72 => Event::End(self.index()),
            72..75 => Event::Start,
            75..78 => Event::Arrive(self.index()),
            78..80 => Event::Stop(self.index()),
            80 => Event::Crash(self.index()),
            81 => Event::DeleteClaims,
            82 => Event::DeleteLease(self.index()),
            83 => Event::EditClaims(self.index(), self.edit()),
            84 => Event::RestoreClaims(self.index()),
            85 => Event::StartLeader,
            86 => Event::StopLeader(self.index()),
            87 => Event::CrashLeader(self.index()),
            88..90 => Event::ArriveRight(self.index()),
            _ => Event::Lead(self.index(), self.network()),
        }
    }

    fn edit(&mut self) -> Edit {
        Edit {
            generations: self.next(2),
            first: self.next(RANGES.into()) as u32,
            count: 1 + self.next(RANGES.into()) as u32,
            frees: self.next(3) == 0,
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
            Event::ArriveRight(index) if !self.delayed_rights.is_empty() => {
                let RightWrite {
                    base,
                    holder,
                    duration,
                } = self.delayed_rights.remove(index % self.delayed_rights.len());
                self.store.write_right(base.as_deref(), &holder, duration);
            }
            Event::DeleteClaims => self.store.claims = None,
            // Mostly recent ones: old ones are easier to recognize.
            Event::RestoreClaims(index) if !self.store.history.is_empty() => {
                let stored = self.store.history.len();
                self.restore(stored - 1 - index % stored.min(8));
            }
            Event::StartLeader if self.leaders.len() < 2 => self.start_leader(),
            Event::Lead(index, network) if !self.leaders.is_empty() => {
                self.lead(index % self.leaders.len(), network);
            }
            Event::StopLeader(index) if !self.leaders.is_empty() => {
                self.stop_leader(index % self.leaders.len());
            }
            Event::CrashLeader(index) if !self.leaders.is_empty() => {
                self.leaders.remove(index % self.leaders.len());
            }
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
            Event::EditClaims(index, edit) => {
                let holder = self.replicas[index % replicas].identity.clone();
                self.edit(|claims| {
                    claims.generation += edit.generations;
                    let edited = claims.ranges.iter_mut().skip(edit.first as usize);
                    for claim in edited.take(edit.count as usize) {
                        // `kubectl edit` usually keeps the epoch.
                        let epoch = claim.as_ref().map_or(1, |claim| claim.epoch);
                        *claim = (!edit.frees).then(|| Claim::new(holder.clone(), epoch));
                    }
                });
            }
            Event::Crash(index) => self.crash(index % replicas),
            Event::Stop(index) => self.replicas[index % replicas].ring.leave(),
            Event::Round(index, network) => self.round(index % replicas, network),
            Event::Begin(index, range) => {
                let now = self.now;
                let replica = &mut self.replicas[index % replicas];
                if now < replica.valid_until && replica.serving().contains(range) {
                    *replica.running.entry(range).or_default() += 1;
                }
            }
            Event::End(index) => drop(self.replicas[index % replicas].running.pop_first()),
            Event::Start
            | Event::Arrive(_)
            | Event::ArriveRight(_)
            | Event::DeleteLease(_)
            | Event::RestoreClaims(_)
            | Event::StartLeader
            | Event::Lead(..)
            | Event::StopLeader(_)
            | Event::CrashLeader(_) => {}
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

    /// No two replicas ever serve the same range, and none beside a leader. After the last fault,
    /// all ranges are served again.
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
        world.delayed_rights.clear();
        world.leaders.clear();
        world.replicas.iter_mut().for_each(|replica| replica.running.clear());
        world.start(RANGES);
        // If a key takes too long, its range only moves after a pause.
        world.run(DRAIN_PAUSE + Duration::from_secs(30));
        prop_assert_eq!(world.served(), RANGES as usize);
        let shares = world.shares();
        prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{:?}", shares);
    }
}
