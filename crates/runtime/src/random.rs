//! Random numbers for identities and jitter. Don't use these for secrets.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Must not be used for secrets.
///
/// The standard library seeds its hashers from the operating system, and each hasher gets a
/// different seed, which is good enough here. In a simulation, the seed of the history determines
/// the numbers.
pub(crate) fn random_u64() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(number) = rbuilder_simulation::random() {
        return number;
    }
    RandomState::new().hash_one(0)
}

/// Between 0 and 1.
pub(crate) fn random_share() -> f64 {
    random_u64() as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_shares_are_in_range() {
        assert_ne!(random_u64(), random_u64());
        let shares: Vec<f64> = (0..1000).map(|_| random_share()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        let mean = shares.iter().sum::<f64>() / 1000.0;
        assert!((0.3..0.7).contains(&mean), "{mean}");
    }
}
