//! Decisions of a replica: which ranges to serve, which ones to give up, and how to modify the
//! claims.
//!
//! [`Ring`] is a state machine without any I/O. Its inputs are what was read from the API server,
//! the results of writes, and a monotonic clock. Tests can therefore run any number of rings
//! against a model of the API server in arbitrary order, with lost and delayed requests.
//!
//! # Why no two replicas serve one range
//!
//! 1. The claims are a single object, and all writes contain the resource version that was read. So
//!    they are always consistent, and each range has one owner.
//! 2. A replica only serves a range if it owned the range when it last read the claims, and as long
//!    as its own Lease is valid according to its own clock, i.e. until the renew deadline after the
//!    last successful renewal was sent.
//! 3. Other replicas only remove the claims of a replica if its Lease hasn't changed for the lease
//!    duration, which is longer than the renew deadline. They measure this from when they received
//!    the last change until they sent the request that shows no further change. All reads must be
//!    consistent: a stale read might not show a renewal.
//! 4. A replica does not give up a range until none of its keys are in progress, and takes no new
//!    ones once it is about to send this write. If the result is unknown, the range stays given up
//!    until the claims have changed; until then, the write might still arrive. Restored claims may
//!    precede a write that did arrive, so the range also stays given up while they're fresh.
//!
//! If the claims are deleted, they're restored by a replica that remembers them. A replica that
//! doesn't remember them waits for the lease duration first. Further ranges may have been acquired
//! since the claims that are being restored, and the write that restores them might arrive late.
//! Therefore, no replica starts to serve ranges of [fresh](Claims::fresh) claims until the lease
//! duration is over. By then, each of the other replicas has either read that it has
//! [lost](Ring::has_lost) a range, or has lost its Lease because it could not read anything. It
//! stops in both cases.
//!
//! # Claims that were edited
//!
//! Anybody may edit the claims, or restore a backup of them. A range may then look free although a
//! replica serves it, until that replica reads the claims again. Edited claims are therefore fresh,
//! and the next replica that writes them stores this. They count as edited if any of the following
//! holds, where the first is reliable and the others help if the API server doesn't record field
//! managers:
//!
//! - Their field manager is not a replica, see [`Observed::edited`].
//! - Their generation has not increased, as it does with each write of a replica.
//! - They give this replica a range with an epoch in which it has not claimed that range.
//!
//! # After an interruption
//!
//! A replica that could not renew its Lease in time stops all reconciles, but stays a member of the
//! ring: see [`Ring::suspend`]. If its claims are unchanged once it can read them, nobody else has
//! served its ranges in the meantime. But a write that takes them may still arrive late. So the
//! replica first writes the claims, with the same ranges: all writes that are based on an earlier
//! version fail from then on. If the claims are gone, it restores them without serving anything,
//! like everybody else. It can't tell whether the others are alive, since they may have been
//! interrupted as well, so it gives them another lease duration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::assignment::assign;
use super::claims::{Claim, Claims};
use super::space::RangeSet;

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;

/// Time for the last keys of a range to finish, after which the range is served again.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Delay before the next attempt to give up such a range.
const DRAIN_PAUSE: Duration = Duration::from_secs(60);
/// Share of the lease duration after which a gap between two reads counts as an interruption.
const INTERRUPTION: u32 = 3;

/// Time on a replica's clock, which starts at an arbitrary point.
pub(crate) type Clock = Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) identity: String,
    /// Changes with each renewal.
    pub(crate) version: String,
    /// How long the replica may hold its claims after a renewal.
    pub(crate) duration: Duration,
    /// Set if the replica is about to stop, so it doesn't acquire any ranges.
    pub(crate) leaving: bool,
}

/// Result of a consistent read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Claims and their resource version.
    pub(crate) claims: Option<(Claims, String)>,
    /// Whether the claims were last written by anything else than a replica.
    pub(crate) edited: bool,
    pub(crate) replicas: Vec<Heartbeat>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// Stored, with the new resource version.
    Stored(String),
    /// The write may have succeeded, or may still succeed: there was no response, or a conflict. A
    /// client that retries requests may get a conflict from its own first attempt.
    Unknown,
}

/// A modification of the claims, which must be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimsWrite {
    pub(crate) claims: Claims,
    /// `None` to create the claims.
    pub(crate) base: Option<String>,
}

/// What this replica does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    /// This replica doesn't own the range, or no longer does.
    Elsewhere,
    /// The range is served, and won't be given up before `not_before`.
    Owned { not_before: Clock },
    /// The range is owned, but no new keys are taken.
    Draining { since: Clock },
    /// A write that gives up the range was sent, with an unknown result.
    Releasing,
}

#[derive(Clone, Debug)]
struct Seen {
    version: String,
    /// When this version was received.
    since: Clock,
    duration: Duration,
    leaving: bool,
    /// Whether the last read returned its Lease.
    present: bool,
}

#[derive(Debug)]
pub(crate) struct Ring {
    identity: String,
    /// Number of ranges if this replica has to create the claims.
    ranges: u32,
    /// Lease duration of this replica, also used for replicas whose Lease was never seen.
    duration: Duration,
    /// Delay before acquiring ranges, so that other replicas get a chance to join.
    settle: Duration,
    seen: BTreeMap<String, Seen>,
    /// Claims as last read or written, with their resource version. `None` as the version means
    /// that they have to be created.
    claims: Option<(Claims, Option<String>)>,
    states: Vec<RangeState>,
    /// When each range was first seen without an owner.
    free_since: Vec<Option<Clock>>,
    /// Resource version a write was based on, kept while the result of the write is unknown.
    unknown: Option<Option<String>>,
    /// Set if the claims are fresh: identifies their creation, and when it was first seen.
    fresh: Option<(String, Clock)>,
    /// Set if the claims were edited, and are not marked as fresh yet.
    edited: bool,
    creations: u32,
    /// Highest generation seen so far.
    generation: u64,
    /// The epoch in which this replica has claimed each range, or tried to.
    claimed: Vec<Option<u64>>,
    leaving: bool,
    suspended: bool,
    /// Whether this replica was suspended and has not written the claims since.
    unconfirmed: bool,
    lost: bool,
    /// When a new replica was last seen.
    last_join: Clock,
    /// When the ring was first read.
    started: Option<Clock>,
    /// When the last read was sent (not received).
    read: Clock,
}

impl Ring {
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
            edited: false,
            creations: 0,
            generation: 0,
            claimed: Vec::new(),
            leaving: false,
            suspended: false,
            unconfirmed: false,
            lost: false,
            last_join: Clock::ZERO,
            started: None,
            read: Clock::ZERO,
        }
    }

    /// Makes this replica acquire nothing and give up all ranges, from now on.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Called after the replica has stopped all of its reconciles, because its Lease may have expired
    /// or because a leader is at work. Until [`resume`](Self::resume), its ranges count as owned, but
    /// the caller must not serve them.
    pub(crate) fn suspend(&mut self) {
        self.unconfirmed = true;
        self.suspended = true;
    }

    pub(crate) fn resume(&mut self) {
        self.suspended = false;
    }

    /// Returns `true` if the claims were edited, and no replica has noted this in them yet.
    pub(crate) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Returns how long a range has been without an owner, as far as this replica knows.
    pub(crate) fn unowned_for(&self, now: Clock) -> Duration {
        let since = self.free_since.iter().flatten().min();
        since.map_or(Duration::ZERO, |since| now.saturating_sub(*since))
    }

    /// Returns `true` once a range was taken from this replica. It must stop immediately, since
    /// keys of that range may be in progress.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost
    }

    pub(crate) fn claims(&self) -> Option<&Claims> {
        self.claims.as_ref().map(|(claims, _)| claims)
    }

    /// Ranges whose keys workers may take.
    pub(crate) fn serving(&self) -> RangeSet {
        self.in_state(|state| matches!(state, RangeState::Owned { .. }))
    }

    /// Includes ranges that are draining.
    pub(crate) fn owned(&self) -> RangeSet {
        self.in_state(|state| matches!(state, RangeState::Owned { .. } | RangeState::Draining { .. }))
    }

    fn in_state(&self, is_in: impl Fn(RangeState) -> bool) -> RangeSet {
        RangeSet::of(self.states.len() as u32, |range| {
            is_in(self.states[range as usize])
        })
    }

    /// Returns the sorted identities of all replicas that share the ranges.
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

    /// Returns the replicas that have neither a valid Lease nor a claim.
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

    /// Updates the state with the result of a consistent read. `sent` and `received` are the times
    /// of the request and the response.
    pub(crate) fn observe(&mut self, sent: Clock, received: Clock, observed: Observed) {
        let was_interrupted =
            self.started.is_some() && sent.saturating_sub(self.read) >= self.duration / INTERRUPTION;
        self.started.get_or_insert(received);
        self.read = sent;
        let present: BTreeSet<&str> = observed
            .replicas
            .iter()
            .map(|seen| seen.identity.as_str())
            .collect();
        for (identity, seen) in &mut self.seen {
            if std::mem::replace(&mut seen.present, present.contains(identity.as_str())) && !seen.present {
                // The Lease may have been renewed before it was deleted.
                seen.since = received;
            }
            if was_interrupted {
                // The replica may have been unable to renew its Lease for the same reason.
                seen.since = received;
            }
        }
        for heartbeat in observed.replicas {
            self.observe_replica(received, heartbeat);
        }
        match observed.claims {
            Some((claims, version)) => {
                self.observe_claims(received, claims, Some(version), observed.edited);
            }
            None => self.observe_deletion(),
        }
        self.forget_replicas();
    }

    /// Remembers the claims, so that they can be restored.
    fn observe_deletion(&mut self) {
        self.claims.iter_mut().for_each(|(_, version)| *version = None);
        if self.suspended {
            // Since this replica last read the claims, others may have taken its ranges.
            let is_owned = |state: &&mut RangeState| !matches!(state, RangeState::Releasing);
            let owned = self.states.iter_mut().filter(is_owned);
            owned.for_each(|state| *state = RangeState::Elsewhere);
        }
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

    fn observe_claims(&mut self, now: Clock, claims: Claims, version: Option<String>, edited: bool) {
        if self.unknown.as_ref().is_some_and(|base| *base != version) {
            self.unknown = None;
        }
        let space = claims.ranges.len();
        if self.states.len() != space {
            // The number of ranges can only change while none of them is owned.
            self.lost |= !self.owned().is_empty();
            self.states = vec![RangeState::Elsewhere; space];
            self.free_since = vec![None; space];
            self.claimed = vec![None; space];
        }
        self.update_freshness(now, &claims, version.as_ref(), edited);
        self.generation = self.generation.max(claims.generation);
        let is_settled = self.is_settled(now);
        for (range, claim) in claims.ranges.iter().enumerate() {
            match claim {
                Some(claim) => {
                    self.free_since[range] = None;
                    // The Lease of this owner may never have been seen.
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
                // Another replica may have acquired the range after the claims that were restored,
                // and may not have read yet that it no longer owns the range.
                (RangeState::Elsewhere | RangeState::Releasing, true) if !is_settled || self.unconfirmed => {
                    *state
                }
                // The same goes for what this replica has served before an interruption.
                (_, true) if (!is_settled || self.unconfirmed) && self.suspended => RangeState::Elsewhere,
                (RangeState::Elsewhere, true) => RangeState::Owned { not_before: now },
                (RangeState::Releasing, true) if self.unknown.is_none() => {
                    RangeState::Draining { since: now }
                }
                (state, true) => state,
            };
            match claim {
                Some(claim) if is_own && *state != RangeState::Elsewhere => {
                    self.claimed[range] = Some(claim.epoch);
                }
                // A write that claims the range may still arrive.
                _ if is_own || self.unknown.is_some() => {}
                _ => self.claimed[range] = None,
            }
        }
        self.claims = Some((claims, version));
    }

    /// Determines whether the claims are fresh, and since when.
    fn update_freshness(&mut self, now: Clock, claims: &Claims, version: Option<&String>, edited: bool) {
        let before = self.claims.as_ref();
        let is_same = before.is_some_and(|(_, known)| version.is_some() && known.as_ref() == version);
        if is_same && self.edited {
            return;
        }
        // A replica that did not recognize the edit has written the claims.
        let is_unmarked = self.edited && !self.is_settled(now) && claims.fresh.is_none();
        let known = self.fresh.take();
        // Claims that were deleted start again, and are fresh anyway.
        let is_older = before.is_some_and(|(before, known)| {
            known.is_some() && !is_same && claims.generation <= self.generation && claims != before
        });
        let gives_range = (0..).zip(&claims.ranges).any(|(range, claim): (usize, _)| {
            claim.as_ref().is_some_and(|claim| {
                claim.holder == self.identity && self.claimed[range] != Some(claim.epoch)
            })
        });
        // Once another replica has seen fresh claims for long enough, it removes the mark.
        let is_given = gives_range && known.is_none() && claims.fresh.is_none();
        self.edited = version.is_some() && (edited || is_older || is_given || is_unmarked);
        let creation = match self.edited {
            true => version.map(|version| format!("edited/{version}")),
            false => claims.fresh.clone(),
        };
        self.fresh = creation.map(|creation| match known {
            Some((known, since)) if known == creation => (known, since),
            _ => (creation, now),
        });
    }

    /// Forgets replicas that no longer exist and have no claims.
    fn forget_replicas(&mut self) {
        let claims = self.claims.as_ref().map(|(claims, _)| claims);
        self.seen.retain(|identity, seen| {
            seen.present || claims.is_some_and(|claims| !claims.held_by(identity).is_empty())
        });
    }

    /// Decides which ranges to give up. Workers stop taking their keys.
    pub(crate) fn plan(&mut self, now: Clock) {
        let kept = self.wanted();
        for (range, state) in (0_u32..).zip(&mut self.states) {
            let is_kept = kept.as_ref().is_some_and(|kept| kept.contains(range));
            *state = match *state {
                RangeState::Owned { not_before } if !is_kept && (self.leaving || now >= not_before) => {
                    RangeState::Draining { since: now }
                }
                RangeState::Draining { .. } if is_kept => RangeState::Owned { not_before: now },
                // Some key takes too long. Serve the range again rather than let its other keys
                // starve.
                RangeState::Draining { since } if !self.leaving && now >= since + DRAIN_LIMIT => {
                    RangeState::Owned {
                        not_before: now + DRAIN_PAUSE,
                    }
                }
                state => state,
            };
        }
    }

    fn wanted(&self) -> Option<RangeSet> {
        let claims = self.claims()?;
        let members = self.members();
        let own = members.binary_search(&self.identity).ok()?;
        let index = |claim: &Option<Claim>| {
            let holder = &claim.as_ref()?.holder;
            members.binary_search(holder).ok()
        };
        let owners: Vec<_> = claims.ranges.iter().map(index).collect();
        // Prefer to give up what is not served, including what edited claims have given to us.
        let unserved = claims.held_by(&self.identity).without(&self.serving());
        let assigned = assign(&owners, members.len(), &unserved)?;
        Some(RangeSet::of(claims.space(), |range| {
            assigned[range as usize] == own
        }))
    }

    /// Returns the next modification of the claims, if any. The caller must send it, because the
    /// ranges that it gives up no longer count as owned.
    ///
    /// `is_idle` returns whether none of a range's keys are in progress.
    pub(crate) fn next_write(&mut self, now: Clock, is_idle: impl Fn(u32) -> bool) -> Option<ClaimsWrite> {
        let (before, base) = match &self.claims {
            Some((claims, version)) => (self.recut(claims), version.clone()),
            None if self.may_create(now) => (Claims::none(self.ranges), None),
            None => return None,
        };
        // The states must match the ranges that are about to be created.
        if self
            .claims
            .as_ref()
            .is_none_or(|(claims, _)| claims.space() != before.space())
        {
            self.observe_claims(now, before.clone(), base.clone(), false);
        }
        let may_acquire = base.is_some() && self.is_settled(now);
        let wanted = self.wanted().filter(|_| may_acquire);
        let mut claims = before.clone();
        claims.generation = self.generation.max(before.generation) + 1;
        if base.is_none() || (self.edited && !self.is_settled(now)) {
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
                // Repeat the release, since the result of the previous write is unknown.
                RangeState::Releasing => *claim = None,
                RangeState::Elsewhere => {
                    let is_expired = claim.as_ref().is_some_and(|claim| self.is_expired(&claim.holder));
                    if is_expired {
                        *claim = None;
                    }
                    if claim.is_none() && is_wanted && (is_expired || self.has_settled(now, range)) {
                        *claim = Some(Claim::new(self.identity.clone(), claims.generation));
                        self.claimed[range as usize] = Some(claims.generation);
                    }
                }
                RangeState::Owned { .. } | RangeState::Draining { .. } => {}
            }
        }
        let confirms = self.unconfirmed && !self.suspended && !claims.held_by(&self.identity).is_empty();
        let is_changed = claims.ranges != before.ranges || claims.fresh != before.fresh || confirms;
        (is_changed || base.is_none()).then_some(ClaimsWrite { claims, base })
    }

    /// While this is `false`, no replica may acquire anything. See the module documentation.
    fn is_settled(&self, now: Clock) -> bool {
        self.fresh
            .as_ref()
            .is_none_or(|(_, since)| now >= *since + self.duration)
    }

    /// Applies this replica's configured number of ranges, which is only possible while no range is
    /// owned.
    fn recut(&self, claims: &Claims) -> Claims {
        match claims.are_free() && claims.space() != self.ranges {
            true => Claims {
                generation: claims.generation,
                unknown: claims.unknown.clone(),
                ..Claims::none(self.ranges)
            },
            false => claims.clone(),
        }
    }

    /// Returns `true` if no other replica can remember the deleted claims.
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

    /// Returns `true` if a free range may be acquired: either no replica has joined recently, or
    /// the range has been without an owner for long enough.
    fn has_settled(&self, now: Clock, range: u32) -> bool {
        // If many replicas start concurrently, the earliest would otherwise acquire everything, and
        // give up most of it later.
        let joined = self.last_join.max(self.started.unwrap_or(now));
        let free = self.free_since.get(range as usize).copied().flatten();
        now.saturating_sub(joined) >= self.settle
            || free.is_some_and(|since| now.saturating_sub(since) >= self.settle)
    }

    pub(crate) fn written(&mut self, now: Clock, write: ClaimsWrite, result: WriteResult) {
        match result {
            WriteResult::Stored(version) => {
                self.unconfirmed &= self.suspended;
                self.observe_claims(now, write.claims, Some(version), false);
            }
            WriteResult::Unknown => self.unknown = Some(write.base),
        }
    }
}
