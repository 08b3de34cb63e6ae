//! The decisions of one replica: which ranges it may work on, which it gives up, and how it changes
//! the claims.
//!
//! [`Ring`] is a state machine without I/O. Its inputs are what the replica has read from the API
//! server, how its own writes ended, and its own monotonic clock. A test can run any number of rings
//! against a model of the API server, in any order, with requests that get lost or arrive late.
//!
//! # Why no two replicas work on one range
//! 1. The claims are one object, and each write carries the resource version that was read. So the
//!    claims are always one consistent table, with one owner for each range.
//! 2. A replica works on a range only if the claims that it last read name it, and while its own
//!    Lease is valid by its own clock: for the renew deadline after its last successful renewal was
//!    sent.
//! 3. Others remove the claim of a replica only if its Lease has not changed for the lease duration,
//!    which is longer than the renew deadline. They count from when they had read the last change to
//!    when they sent the read that showed no other. Reads must be consistent: a stale one could hide
//!    a renewal.
//! 4. A replica gives up a range only after its last key of the range is done, and from before it
//!    sends that write. If it does not learn how the write ended, the range stays given up until the
//!    claims have changed, because the write may still arrive as long as they have not.
//!
//! If somebody deletes the claims, a replica that remembers them restores them, and one that does not
//! waits for a lease duration first. Ranges may have been acquired after the claims that are
//! restored, and a write that restores claims may arrive late. So for a lease duration, nobody begins
//! to work on ranges of [fresh](Claims::fresh) claims. In that time, every other replica either reads
//! that it has [lost](Ring::has_lost) a range, or loses its Lease because it reads nothing. Either way
//! it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::assignment::assign;
use super::claims::{Claim, Claims};
use super::space::RangeSet;

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;

/// How long the last keys of a range may take before its replica continues to work on the range.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// How long the replica then waits before it tries again to give up the range.
const DRAIN_PAUSE: Duration = Duration::from_secs(60);

/// The time on the clock of one replica, since an arbitrary start.
pub(crate) type Clock = Duration;

/// The Lease of a replica, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) identity: String,
    /// Differs after each renewal.
    pub(crate) version: String,
    /// How long after a renewal the replica may hold its claims.
    pub(crate) duration: Duration,
    /// Whether the replica is about to stop and takes no ranges.
    pub(crate) leaving: bool,
}

/// What one consistent read of the API server has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The claims and their resource version.
    pub(crate) claims: Option<(Claims, String)>,
    pub(crate) replicas: Vec<Heartbeat>,
}

/// How a write of the claims ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// The API server has stored the claims, with this resource version.
    Stored(String),
    /// The API server may have stored the claims, or may still do so: there was no response, or it
    /// was a conflict, which a client that repeats its request also gets from its own first attempt.
    Unknown,
}

/// A change of the claims to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimsWrite {
    pub(crate) claims: Claims,
    /// The resource version that the write requires; `None` to create the claims.
    pub(crate) base: Option<String>,
}

/// The state of a range in one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    /// Not owned by this replica, or not any more.
    Elsewhere,
    /// This replica works on the range. It gives the range up no earlier than `not_before`.
    Owned { not_before: Clock },
    /// Owned, but no new key is taken.
    Draining { since: Clock },
    /// This replica has sent a write that gives up the range, and has not learned that it was
    /// stored.
    Releasing,
}

/// What a replica knows of another one.
#[derive(Clone, Debug)]
struct Seen {
    version: String,
    /// When the response with this version arrived.
    since: Clock,
    duration: Duration,
    leaving: bool,
    /// Whether the last read contained its Lease.
    present: bool,
}

/// One replica's view of the ring.
#[derive(Debug)]
pub(crate) struct Ring {
    identity: String,
    /// Number of ranges if this replica creates the claims.
    ranges: u32,
    /// The lease duration. Also applies to replicas that are known by a claim only.
    duration: Duration,
    /// How long ranges without an owner wait for other replicas that are about to join.
    settle: Duration,
    seen: BTreeMap<String, Seen>,
    /// The claims as last read or written, with their resource version. Without one, they have to
    /// be created.
    claims: Option<(Claims, Option<String>)>,
    states: Vec<RangeState>,
    /// Since when this replica has known each range to have no owner.
    free_since: Vec<Option<Clock>>,
    /// The resource version on which a write with an unknown result was based.
    unknown: Option<Option<String>>,
    /// The creation that makes the claims fresh, and when it was first seen.
    fresh: Option<(String, Clock)>,
    /// How often this replica has tried to create the claims.
    creations: u32,
    leaving: bool,
    /// Whether a range was taken from this replica.
    lost: bool,
    /// When another replica was seen for the first time, most recently.
    last_join: Clock,
    /// When this replica first read the ring.
    started: Option<Clock>,
    /// When the last read was sent.
    read: Clock,
}

impl Ring {
    /// Creates the view of a replica that has read nothing yet.
    pub(crate) fn new(identity: String, ranges: u32, duration: Duration, settle: Duration) -> Self {
        Self {
            identity,
            ranges,
            duration,
            settle,
            seen: BTreeMap::new(),
            claims: None,
            states: Vec::new(),
            free_since: Vec::new(),
            unknown: None,
            fresh: None,
            creations: 0,
            leaving: false,
            lost: false,
            last_join: Clock::ZERO,
            started: None,
            read: Clock::ZERO,
        }
    }

    /// Makes this replica take no more ranges and give up all that it has.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Returns how long a range has had no owner, as far as this replica knows.
    pub(crate) fn unowned_for(&self, now: Clock) -> Duration {
        let since = self.free_since.iter().flatten().min();
        since.map_or(Duration::ZERO, |since| now.saturating_sub(*since))
    }

    /// Returns `true` once a range was taken from this replica without its consent. Then it must stop
    /// at once: its keys of the range may still be running.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost
    }

    /// Returns the claims as last read or written.
    pub(crate) fn claims(&self) -> Option<&Claims> {
        self.claims.as_ref().map(|(claims, _)| claims)
    }

    /// Returns the ranges whose keys workers may take.
    pub(crate) fn serving(&self) -> RangeSet {
        self.in_state(|state| matches!(state, RangeState::Owned { .. }))
    }

    /// Returns the ranges that this replica owns, including ranges that it is draining.
    pub(crate) fn owned(&self) -> RangeSet {
        self.in_state(|state| matches!(state, RangeState::Owned { .. } | RangeState::Draining { .. }))
    }

    fn in_state(&self, is_in: impl Fn(RangeState) -> bool) -> RangeSet {
        RangeSet::of(self.states.len() as u32, |range| {
            is_in(self.states[range as usize])
        })
    }

    /// Returns the identities of the replicas that share the ranges.
    pub(crate) fn members(&self) -> Vec<String> {
        let others = self.seen.iter().filter(|(identity, seen)| {
            **identity != self.identity && seen.present && !seen.leaving && !self.has_expired(seen)
        });
        let mut members: Vec<String> = others.map(|(identity, _)| identity.clone()).collect();
        if !self.leaving {
            members.push(self.identity.clone());
        }
        members.sort_unstable();
        members
    }

    /// Returns the identities of replicas whose Lease has expired and that hold no claim any more.
    pub(crate) fn departed(&self) -> Vec<String> {
        let holds = |identity: &str| {
            self.claims()
                .is_none_or(|claims| !claims.held_by(identity).is_empty())
        };
        let departed = self.seen.iter().filter(|(identity, seen)| {
            **identity != self.identity && seen.present && self.has_expired(seen) && !holds(identity)
        });
        departed.map(|(identity, _)| identity.clone()).collect()
    }

    fn has_expired(&self, seen: &Seen) -> bool {
        self.read.saturating_sub(seen.since) >= seen.duration
    }

    /// Takes in a consistent read that was sent and answered at these times.
    pub(crate) fn observe(&mut self, sent: Clock, received: Clock, observed: Observed) {
        self.started.get_or_insert(received);
        self.read = sent;
        let present: BTreeSet<&str> = observed
            .replicas
            .iter()
            .map(|seen| seen.identity.as_str())
            .collect();
        for (identity, seen) in &mut self.seen {
            if std::mem::replace(&mut seen.present, present.contains(identity.as_str())) && !seen.present {
                // It may have been renewed before it was deleted.
                seen.since = received;
            }
        }
        for heartbeat in observed.replicas {
            self.observe_replica(received, heartbeat);
        }
        match observed.claims {
            Some((claims, version)) => self.observe_claims(received, claims, Some(version)),
            // The write that creates the claims restores those that this replica remembers.
            None => self.claims.iter_mut().for_each(|(_, version)| *version = None),
        }
        self.forget_replicas();
    }

    fn observe_replica(&mut self, now: Clock, heartbeat: Heartbeat) {
        let Heartbeat {
            identity,
            version,
            duration,
            leaving,
        } = heartbeat;
        let is_new = !self.seen.contains_key(&identity);
        if is_new && identity != self.identity {
            self.last_join = now;
        }
        let seen = self.seen.entry(identity).or_insert_with(|| Seen {
            version: version.clone(),
            since: now,
            duration,
            leaving,
            present: true,
        });
        seen.present = true;
        if seen.version != version {
            *seen = Seen {
                version,
                since: now,
                duration,
                leaving,
                present: true,
            };
        }
    }

    fn observe_claims(&mut self, now: Clock, claims: Claims, version: Option<String>) {
        if self.unknown.as_ref().is_some_and(|base| *base != version) {
            self.unknown = None;
        }
        let known = self.fresh.take();
        self.fresh = claims.fresh.clone().map(|creation| match known {
            Some((known, since)) if known == creation => (known, since),
            _ => (creation, now),
        });
        let is_settled = self.is_settled(now);
        let space = claims.ranges.len();
        if self.states.len() != space {
            // Claims are only cut anew while nobody owns a range.
            self.lost |= !self.owned().is_empty();
            self.states = vec![RangeState::Elsewhere; space];
            self.free_since = vec![None; space];
        }
        for (range, claim) in claims.ranges.iter().enumerate() {
            match claim {
                Some(claim) => {
                    self.free_since[range] = None;
                    // The claim may be of a replica whose Lease this one has never seen.
                    if !self.seen.contains_key(&claim.holder) {
                        let seen = Seen {
                            version: String::new(),
                            since: now,
                            duration: self.duration,
                            leaving: false,
                            present: false,
                        };
                        self.seen.insert(claim.holder.clone(), seen);
                    }
                }
                None => {
                    self.free_since[range].get_or_insert(now);
                }
            }
            let is_own = claim.as_ref().is_some_and(|claim| claim.holder == self.identity);
            let state = &mut self.states[range];
            self.lost |= !is_own && matches!(state, RangeState::Owned { .. } | RangeState::Draining { .. });
            *state = match (*state, is_own) {
                (_, false) => RangeState::Elsewhere,
                // Another replica may not have read yet that the range is not its own any more.
                (RangeState::Elsewhere, true) if !is_settled => RangeState::Elsewhere,
                (RangeState::Elsewhere, true) => RangeState::Owned { not_before: now },
                (RangeState::Releasing, true) if self.unknown.is_none() => {
                    RangeState::Draining { since: now }
                }
                (state, true) => state,
            };
        }
        self.claims = Some((claims, version));
    }

    /// Forgets replicas that are gone and hold no claim.
    fn forget_replicas(&mut self) {
        let claims = self.claims.as_ref().map(|(claims, _)| claims);
        self.seen.retain(|identity, seen| {
            seen.present || claims.is_some_and(|claims| !claims.held_by(identity).is_empty())
        });
    }

    /// Decides which ranges to give up, and stops taking their keys.
    pub(crate) fn plan(&mut self, now: Clock) {
        let kept = self.wanted();
        for (range, state) in (0_u32..).zip(&mut self.states) {
            let is_kept = kept.as_ref().is_some_and(|kept| kept.contains(range));
            *state = match *state {
                RangeState::Owned { not_before } if !is_kept && (self.leaving || now >= not_before) => {
                    RangeState::Draining { since: now }
                }
                RangeState::Draining { .. } if is_kept => RangeState::Owned { not_before: now },
                RangeState::Draining { since } if !self.leaving && now >= since + DRAIN_LIMIT => {
                    RangeState::Owned {
                        not_before: now + DRAIN_PAUSE,
                    }
                }
                state => state,
            };
        }
    }

    /// Returns the ranges that this replica should own.
    fn wanted(&self) -> Option<RangeSet> {
        let claims = self.claims()?;
        let members = self.members();
        let own = members.binary_search(&self.identity).ok()?;
        let index = |claim: &Option<Claim>| {
            let holder = &claim.as_ref()?.holder;
            members.binary_search(holder).ok()
        };
        let owners: Vec<_> = claims.ranges.iter().map(index).collect();
        let draining =
            self.in_state(|state| matches!(state, RangeState::Draining { .. } | RangeState::Releasing));
        let assigned = assign(&owners, members.len(), &draining)?;
        Some(RangeSet::of(claims.space(), |range| {
            assigned[range as usize] == own
        }))
    }

    /// Returns the change of the claims to send now, if any. `is_idle` returns whether this replica
    /// works on no key of a range. From then on, the ranges that the change gives up count as given
    /// up.
    pub(crate) fn next_write(&mut self, now: Clock, is_idle: impl Fn(u32) -> bool) -> Option<ClaimsWrite> {
        let (before, base) = match &self.claims {
            Some((claims, version)) => (self.recut(claims), version.clone()),
            None if self.may_create(now) => (Claims::none(self.ranges), None),
            None => return None,
        };
        if self
            .claims
            .as_ref()
            .is_none_or(|(claims, _)| claims.space() != before.space())
        {
            self.observe_claims(now, before.clone(), base.clone());
        }
        let may_acquire = base.is_some() && self.is_settled(now);
        let wanted = self.wanted().filter(|_| may_acquire);
        let mut claims = before.clone();
        claims.generation += 1;
        if base.is_none() {
            self.creations += 1;
            claims.fresh = Some(format!("{}/{}", self.identity, self.creations));
        } else if may_acquire {
            claims.fresh = None;
        }
        for range in 0..before.space() {
            let state = self.states[range as usize];
            let is_wanted = wanted.as_ref().is_some_and(|wanted| wanted.contains(range));
            let claim = &mut claims.ranges[range as usize];
            match state {
                RangeState::Draining { .. } if is_idle(range) => {
                    self.states[range as usize] = RangeState::Releasing;
                    *claim = None;
                }
                RangeState::Releasing => *claim = None,
                RangeState::Elsewhere => {
                    let is_expired = claim.as_ref().is_some_and(|claim| self.is_expired(&claim.holder));
                    if is_expired {
                        *claim = None;
                    }
                    if claim.is_none() && is_wanted && (is_expired || self.has_settled(now, range)) {
                        *claim = Some(Claim {
                            holder: self.identity.clone(),
                            epoch: claims.generation,
                        });
                    }
                }
                RangeState::Owned { .. } | RangeState::Draining { .. } => {}
            }
        }
        let is_changed = claims.ranges != before.ranges || claims.fresh != before.fresh;
        (is_changed || base.is_none()).then_some(ClaimsWrite { claims, base })
    }

    /// Returns `true` unless the claims are fresh.
    fn is_settled(&self, now: Clock) -> bool {
        self.fresh
            .as_ref()
            .is_none_or(|(_, since)| now >= *since + self.duration)
    }

    /// Returns the claims with the number of ranges that this replica is configured with, if nobody
    /// owns a range.
    fn recut(&self, claims: &Claims) -> Claims {
        match claims.are_free() && claims.space() != self.ranges {
            true => Claims {
                generation: claims.generation,
                ..Claims::none(self.ranges)
            },
            false => claims.clone(),
        }
    }

    /// Returns `true` if no other replica can remember claims that have been deleted.
    fn may_create(&self, now: Clock) -> bool {
        let is_alone = self
            .seen
            .iter()
            .all(|(identity, seen)| *identity == self.identity || self.has_expired(seen));
        self.started
            .is_some_and(|started| is_alone || now >= started + self.duration)
    }

    fn is_expired(&self, holder: &str) -> bool {
        holder != self.identity && self.seen.get(holder).is_some_and(|seen| self.has_expired(seen))
    }

    /// Returns `true` if no replica has joined recently, or the range has waited for that long
    /// enough. When many replicas start at the same time, the first ones would otherwise take
    /// everything, and then pass on most of it.
    fn has_settled(&self, now: Clock, range: u32) -> bool {
        let joined = self.last_join.max(self.started.unwrap_or(now));
        let free = self.free_since.get(range as usize).copied().flatten();
        now.saturating_sub(joined) >= self.settle
            || free.is_some_and(|since| now.saturating_sub(since) >= self.settle)
    }

    /// Takes in how a write ended.
    pub(crate) fn written(&mut self, now: Clock, write: ClaimsWrite, result: WriteResult) {
        match result {
            WriteResult::Stored(version) => self.observe_claims(now, write.claims, Some(version)),
            WriteResult::Unknown => self.unknown = Some(write.base),
        }
    }
}
