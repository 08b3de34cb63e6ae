//! The space of hashes, its ranges, and sets of ranges.
//!
//! We use 64-bit FNV-1a because that's what the API server computes for `shardSelector`. The
//! results must always match: the API server decides what to send to a replica, and the replica
//! decides what to keep.

use std::fmt;

pub(crate) const RANGES: std::ops::RangeInclusive<u32> = 1..=1024;

/// With 256 ranges, each of ten replicas owns 25 or 26, a difference of 4%. Each of a hundred
/// replicas owns two or three.
pub(crate) const DEFAULT_RANGES: u32 = 256;

const SPACE_END: u128 = 1 << 64;

pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the range of a hash. All `ranges` ranges have the same size.
pub(crate) fn range_of(hash: u64, ranges: u32) -> u32 {
    // The result is less than `ranges`, because the hash is less than the end of the space.
    ((u128::from(hash) * u128::from(ranges)) >> 64) as u32
}

fn start_of(range: u32, ranges: u32) -> u128 {
    (u128::from(range) * SPACE_END).div_ceil(u128::from(ranges))
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: u32,
    bits: Vec<u64>,
}

impl RangeSet {
    /// The space consists of `ranges` ranges.
    pub(crate) fn empty(ranges: u32) -> Self {
        let words = ranges.div_ceil(u64::BITS);
        Self {
            ranges,
            bits: vec![0; words as usize],
        }
    }

    pub(crate) fn of(ranges: u32, is_in: impl Fn(u32) -> bool) -> Self {
        let mut set = Self::empty(ranges);
        (0..ranges)
            .filter(|range| is_in(*range))
            .for_each(|range| set.insert(range));
        set
    }

    /// Number of ranges in the space, whether they are in the set or not.
    pub(crate) fn space(&self) -> u32 {
        self.ranges
    }

    pub(crate) fn insert(&mut self, range: u32) {
        self.bits[(range / u64::BITS) as usize] |= 1 << (range % u64::BITS);
    }

    pub(crate) fn contains(&self, range: u32) -> bool {
        let word = self.bits.get((range / u64::BITS) as usize);
        word.is_some_and(|word| word & (1 << (range % u64::BITS)) != 0)
    }

    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.contains(range_of(hash, self.ranges))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    pub(crate) fn len(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.ranges).filter(|range| self.contains(*range))
    }

    /// Returns the ranges that aren't in `other`, i.e. all of them if `other` is from a different
    /// space.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let is_same_space = self.ranges == other.ranges;
        Self::of(self.ranges, |range| {
            self.contains(range) && !(is_same_space && other.contains(range))
        })
    }

    /// Both sets must be from the same space.
    pub(crate) fn union(&self, other: &Self) -> Self {
        debug_assert_eq!(self.ranges, other.ranges);
        Self::of(self.ranges, |range| self.contains(range) || other.contains(range))
    }

    /// Returns the runs of adjacent ranges, with an exclusive end.
    pub(crate) fn arcs(&self) -> Vec<(u32, u32)> {
        let mut arcs: Vec<(u32, u32)> = Vec::new();
        for range in self.iter() {
            match arcs.last_mut() {
                Some((_, end)) if *end == range => *end += 1,
                _ => arcs.push((range, range + 1)),
            }
        }
        arcs
    }

    /// Returns a `shardSelector` for objects whose `field` is in this set.
    pub(crate) fn selector(&self, field: &str) -> String {
        let parts = self.arcs().into_iter().map(|(first, end)| {
            let (start, end) = (start_of(first, self.ranges), start_of(end, self.ranges));
            // Pad to 16 digits. Only the end of the space has 17.
            format!("shardRange({field}, '0x{start:016x}', '0x{end:016x}')")
        });
        parts.collect::<Vec<_>>().join(" || ")
    }
}

impl fmt::Display for RangeSet {
    /// Formats the arcs, e.g. `0-15,32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, end)) in self.arcs().into_iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match end - first {
                1 => write!(f, "{first}")?,
                _ => write!(f, "{first}-{}", end - 1)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RangeSet({self} of {})", self.ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "object.metadata.uid";

    /// This is why docs/scaling.md advises against such names.
    #[test]
    fn names_that_only_differ_at_their_end_share_ranges() {
        let ranges = |names: Vec<String>| {
            let ranges: std::collections::BTreeSet<u32> =
                names.iter().map(|name| range_of(hash(name), 256)).collect();
            ranges.len()
        };
        assert_eq!(
            ranges((0..100).map(|number| format!("team-{number:02}")).collect()),
            1
        );
        assert_eq!(
            ranges((0..1000).map(|number| format!("team-{number:03}")).collect()),
            10
        );
        assert_eq!(
            ranges((0..1000).map(|number| format!("team-{number:03}-prod")).collect()),
            247
        );
    }

    #[test]
    fn hash_is_fnv_1a() {
        // Test vectors by the authors of FNV.
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_hash_is_in_the_range_whose_bounds_contain_it() {
        for ranges in [1, 2, 3, 7, 256, 1000, 1024] {
            for range in 0..ranges {
                let (start, end) = (start_of(range, ranges), start_of(range + 1, ranges));
                let last = u64::try_from(end - 1).unwrap();
                assert_eq!(range_of(u64::try_from(start).unwrap(), ranges), range);
                assert_eq!(range_of(last, ranges), range);
            }
            assert_eq!(start_of(0, ranges), 0);
            assert_eq!(start_of(ranges, ranges), SPACE_END);
        }
    }

    #[test]
    fn selector_joins_adjacent_ranges() {
        let set = RangeSet::of(4, |range| range != 1);
        assert_eq!(
            set.selector(UID),
            "shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000') || \
             shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
        );
        assert_eq!(set.to_string(), "0,2-3");
        assert_eq!(RangeSet::empty(4).selector(UID), "");
    }

    #[test]
    fn sets_of_different_spaces_share_no_range() {
        let (four, eight) = (RangeSet::of(4, |_| true), RangeSet::of(8, |_| true));
        assert_eq!(four.without(&eight), four);
        assert!(four.without(&four).is_empty());
    }
}
