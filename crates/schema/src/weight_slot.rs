//! The weight of a schema, and the slot in which it's cached.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// About how large a schema is as JSON, in bytes. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Everything but the descriptions.
    pub structure: u32,
    /// The descriptions, which an option can shorten.
    pub descriptions: u32,
}

impl Weight {
    /// Returns the sum of both.
    pub fn total(self) -> usize {
        self.structure as usize + self.descriptions as usize
    }
}

impl Add for Weight {
    type Output = Weight;

    fn add(self, other: Weight) -> Weight {
        Weight {
            structure: self.structure.saturating_add(other.structure),
            descriptions: self.descriptions.saturating_add(other.descriptions),
        }
    }
}

/// Caches the weight of a schema. A clone starts without a weight, because one only clones a schema
/// in order to change it. Comparisons ignore the slot.
#[derive(Debug, Default)]
pub struct WeightSlot(AtomicU64);

impl Clone for WeightSlot {
    fn clone(&self) -> Self {
        WeightSlot::default()
    }
}

impl PartialEq for WeightSlot {
    fn eq(&self, _: &WeightSlot) -> bool {
        true
    }
}

impl WeightSlot {
    /// Every schema weighs something, so zero means that the weight hasn't been computed yet.
    pub(crate) fn get(&self) -> Option<Weight> {
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(Weight {
            structure: (both >> 32) as u32,
            descriptions: both as u32,
        })
    }

    pub(crate) fn set(&self, weight: Weight) {
        // Both numbers are in a single atomic, so that nobody can see one without the other.
        let both = u64::from(weight.structure) << 32 | u64::from(weight.descriptions);
        self.0.store(both, Ordering::Relaxed);
    }
}
