//! A pseudo-random number generator for tests.

/// A pseudo-random number generator with the same sequence on every machine: Sebastiano Vigna's
/// SplitMix64. Short, and random enough for tests.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Each seed yields a different sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[allow(clippy::should_implement_trait)] // an iterator would have an end
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or_default()
    }

    /// Shuffles the items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
