//! Determines which member of the ring should own which range.
//!
//! The result depends on the members and on the current owners. The numbers of ranges per member
//! differ by at most one. Members keep their ranges as long as they don't exceed their share: if a
//! member leaves, only its own ranges move, and if a member joins, only its new share does.
//!
//! Hashing the members onto the ring would not require the current owners. But with one point per
//! member, the shares can differ by a factor of ten or more, and with a hundred points, each member
//! has a hundred arcs, and the API server repeats the selector in every response. To keep the
//! number of arcs low, we take ranges from the ends of arcs, and prefer to give them to the owner
//! of the adjacent arc.
//!
//! [`TASKS`] is an exception: its owner keeps that range until it leaves the ring, because tasks
//! cannot be started twice in a process.

use super::space::RangeSet;

/// Range whose owner runs the tasks that must only run once.
pub(crate) const TASKS: u32 = 0;

/// Determines which member should own each of the ranges. Members are identified by their index.
///
/// `owners` contains `None` for a range without an owner, or whose owner isn't a member. `given`
/// are ranges that are being given up anyway. Returns `None` if there are no members.
pub(crate) fn assign(owners: &[Option<usize>], members: usize, given: &RangeSet) -> Option<Vec<usize>> {
    if members == 0 {
        return None;
    }
    let mut assignment = Assignment {
        owners: owners.to_vec(),
        room: Vec::new(),
    };
    assignment.room = assignment.rooms(members);
    for member in 0..members {
        let surplus = usize::try_from(-assignment.room[member]).unwrap_or(0);
        assignment.give(member, surplus, given);
    }
    assignment.take();
    assignment.owners.into_iter().collect()
}

struct Assignment {
    owners: Vec<Option<usize>>,
    /// Number of additional ranges that each member should get. Negative if it has too many.
    room: Vec<i64>,
}

impl Assignment {
    fn rooms(&self, members: usize) -> Vec<i64> {
        let mut counts = vec![0_usize; members];
        self.owners.iter().flatten().for_each(|owner| counts[*owner] += 1);
        let keeper = self.owners.first().copied().flatten();
        let mut order: Vec<usize> = (0..members).collect();
        // If the ranges can't be distributed evenly, let the members with the most ranges keep one
        // more, since that causes the fewest moves. The owner of `TASKS` comes first, because it
        // can't give up that range.
        order.sort_by_key(|member| {
            (
                Some(*member) != keeper,
                std::cmp::Reverse(counts[*member]),
                *member,
            )
        });
        let (share, rest) = (self.owners.len() / members, self.owners.len() % members);
        let mut rooms = vec![0; members];
        for (position, member) in order.into_iter().enumerate() {
            let quota = share + usize::from(position < rest);
            rooms[member] = quota as i64 - counts[member] as i64;
        }
        rooms
    }

    fn give(&mut self, member: usize, surplus: usize, given: &RangeSet) {
        let mut left = surplus;
        // Start with ranges that the member is giving up anyway, then take entire arcs, and finally
        // the end of an arc.
        for range in given.iter().map(|range| range as usize) {
            if left > 0 && self.may_give(range, member) {
                self.owners[range] = None;
                left -= 1;
            }
        }
        while left > 0 {
            let arcs = self.arcs_of(member);
            let whole = arcs.iter().filter(|(first, end)| end - first <= left);
            let chosen = match whole.min_by_key(|(first, end)| (end - first, *first)) {
                Some((first, end)) => (*first, *end),
                None => match self.end_to_give(&arcs, left) {
                    Some(chosen) => chosen,
                    None => break,
                },
            };
            (chosen.0..chosen.1).for_each(|range| self.owners[range] = None);
            left -= chosen.1 - chosen.0;
        }
        self.room[member] += (surplus - left) as i64;
    }

    fn may_give(&self, range: usize, member: usize) -> bool {
        range != TASKS as usize && self.owners.get(range) == Some(&Some(member))
    }

    /// Returns the arcs that may be taken from a member.
    fn arcs_of(&self, member: usize) -> Vec<(usize, usize)> {
        let mut arcs: Vec<(usize, usize)> = Vec::new();
        for range in (0..self.owners.len()).filter(|range| self.may_give(*range, member)) {
            match arcs.last_mut() {
                Some((_, end)) if *end == range => *end += 1,
                _ => arcs.push((range, range + 1)),
            }
        }
        arcs
    }

    /// Picks `left` ranges at one end of an arc; all arcs are longer than that. Prefers an end next
    /// to a range without an owner, or whose owner should get more.
    fn end_to_give(&self, arcs: &[(usize, usize)], left: usize) -> Option<(usize, usize)> {
        let is_open = |range: Option<&Option<usize>>| match range {
            Some(Some(owner)) => self.room[*owner] > 0,
            Some(None) => true,
            None => false,
        };
        let at_front = |(first, _): &&(usize, usize)| {
            is_open(first.checked_sub(1).and_then(|before| self.owners.get(before)))
        };
        let at_back = |(_, end): &&(usize, usize)| is_open(self.owners.get(*end));
        if let Some((_, end)) = arcs.iter().find(at_back) {
            return Some((end - left, *end));
        }
        if let Some((first, _)) = arcs.iter().find(at_front) {
            return Some((*first, first + left));
        }
        let longest = arcs.iter().max_by_key(|(first, end)| end - first);
        longest.map(|(_, end)| (end - left, *end))
    }

    /// Assigns all ranges without an owner. Each run of them goes to its neighbours first, then to
    /// the members with the most room.
    fn take(&mut self) {
        while let Some(first) = self.owners.iter().position(Option::is_none) {
            let run = self.owners[first..].iter().take_while(|owner| owner.is_none());
            let (mut first, mut end) = (first, first + run.count());
            let before = first.checked_sub(1).and_then(|before| self.owners[before]);
            if let Some(owner) = before {
                first += self.fill(owner, first..end);
            }
            if let Some(owner) = self.owners.get(end).copied().flatten() {
                let room = usize::try_from(self.room[owner]).unwrap_or(0).min(end - first);
                end -= self.fill(owner, end - room..end);
            }
            if first < end {
                let roomiest =
                    (0..self.room.len()).max_by_key(|member| (self.room[*member], usize::MAX - member));
                let Some(owner) = roomiest else { return };
                if self.fill(owner, first..end) == 0 {
                    return;
                }
            }
        }
    }

    /// Assigns ranges from the start of a run until the member has enough. Returns their number.
    fn fill(&mut self, owner: usize, run: std::ops::Range<usize>) -> usize {
        let taken = usize::try_from(self.room[owner]).unwrap_or(0).min(run.len());
        for range in run.take(taken) {
            self.owners[range] = Some(owner);
        }
        self.room[owner] -= taken as i64;
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const RANGES: usize = 256;

    /// A ring in which ranges move immediately. Members are plain numbers.
    #[derive(Clone, Debug)]
    struct Model {
        owners: Vec<Option<u32>>,
        members: Vec<u32>,
    }

    impl Model {
        fn of(members: u32) -> Self {
            let mut model = Self {
                owners: vec![None; RANGES],
                members: (0..members).collect(),
            };
            model.settle();
            model
        }

        /// Moves all ranges to their new owners. Returns the number of ranges that had a different
        /// owner.
        fn settle(&mut self) -> usize {
            let index = |owner: &Option<u32>| {
                owner.and_then(|owner| self.members.iter().position(|member| *member == owner))
            };
            let owners: Vec<_> = self.owners.iter().map(index).collect();
            let none = RangeSet::empty(RANGES as u32);
            let Some(assigned) = assign(&owners, self.members.len(), &none) else {
                self.owners = vec![None; RANGES];
                return 0;
            };
            let moved = owners
                .iter()
                .zip(&assigned)
                .filter(|(owner, new)| owner.is_some_and(|owner| owner != **new));
            let moved = moved.count();
            self.owners = assigned
                .into_iter()
                .map(|member| Some(self.members[member]))
                .collect();
            moved
        }

        fn shares(&self) -> BTreeMap<u32, usize> {
            let mut shares: BTreeMap<u32, usize> = self.members.iter().map(|member| (*member, 0)).collect();
            self.owners
                .iter()
                .flatten()
                .for_each(|owner| *shares.entry(*owner).or_default() += 1);
            shares
        }

        fn most_arcs(&self) -> usize {
            let arcs = |member: &u32| {
                let is_own = |range: u32| self.owners[range as usize] == Some(*member);
                RangeSet::of(RANGES as u32, is_own).arcs().len()
            };
            self.members.iter().map(arcs).max().unwrap_or(0)
        }

        fn join(&mut self, member: u32) {
            self.members.push(member);
        }

        fn leave(&mut self, position: usize) -> u32 {
            let member = self.members.remove(position);
            for owner in &mut self.owners {
                *owner = owner.filter(|owner| *owner != member);
            }
            member
        }
    }

    #[test]
    fn first_members_have_one_arc_each() {
        assert_eq!(Model::of(1).most_arcs(), 1);
        assert_eq!(Model::of(7).most_arcs(), 1);
    }

    #[test]
    fn join_moves_the_share_of_the_new_member() {
        for members in [1_u32, 2, 4, 10, 50, 99] {
            let mut model = Model::of(members);
            model.join(1000);
            assert_eq!(model.settle(), RANGES / (members as usize + 1), "{members}");
            assert_eq!(model.settle(), 0, "the ring is settled");
        }
    }

    #[test]
    fn leave_moves_nothing_between_those_that_stay() {
        for members in [2_u32, 3, 10, 50, 100] {
            let mut model = Model::of(members);
            model.leave(1);
            assert_eq!(model.settle(), 0, "{members}");
        }
    }

    #[test]
    fn more_members_than_ranges_leave_some_without() {
        let none = RangeSet::empty(2);
        assert_eq!(assign(&[None, Some(2)], 4, &none), Some(vec![0, 2]));
        assert_eq!(assign(&[None], 0, &RangeSet::empty(1)), None);
    }

    #[test]
    fn ranges_already_given_up_are_given_first() {
        let owners: Vec<_> = (0..8).map(|_| Some(0)).collect();
        let given = RangeSet::of(8, |range| (2..6).contains(&range));
        let assigned = assign(&owners, 2, &given).unwrap();
        assert_eq!(assigned, [0, 0, 1, 1, 1, 1, 0, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// For all histories, shares are even, there are few arcs, and joining or leaving members
        /// cause as few moves as possible.
        #[test]
        fn history_of_joins_and_leaves_keeps_the_ring_even(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..60),
        ) {
            let mut model = Model::of(1);
            for (number, (joins, index)) in steps.into_iter().enumerate() {
                let keeper = model.owners[TASKS as usize];
                let before = model.members.len();
                let (moved, most) = if joins || before == 1 {
                    model.join(number as u32 + 1);
                    (model.settle(), RANGES.div_ceil(before + 1))
                } else {
                    let left = model.leave(index.index(before));
                    prop_assert!(model.owners.iter().all(|owner| *owner != Some(left)));
                    (model.settle(), 0)
                };
                prop_assert!(moved <= most, "{moved} ranges moved");
                if keeper.is_some_and(|keeper| model.members.contains(&keeper)) {
                    prop_assert_eq!(model.owners[TASKS as usize], keeper);
                }
                let shares = model.shares();
                let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
                prop_assert!(most - least <= 1, "{shares:?}");
                prop_assert!(model.most_arcs() <= 24, "{} arcs", model.most_arcs());
            }
        }
    }
}
