//! The weight of a schema, and the slot that caches it.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// The approximate size of a schema as JSON, in bytes. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Everything except descriptions.
    pub structure: u32,
    /// Descriptions, which an option can shorten.
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

/// Caches the weight of a schema. A clone starts without a weight, because schemas are only cloned
/// to be changed. Comparisons ignore the slot.
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
    pub(crate) fn get(&self) -> Option<Weight> {
        // Every schema weighs something, so zero means "not computed yet".
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(Weight {
            structure: (both >> 32) as u32,
            descriptions: both as u32,
        })
    }

    pub(crate) fn set(&self, weight: Weight) {
        // A single atomic holds both numbers, so that readers never see one without the other.
        let both = u64::from(weight.structure) << 32 | u64::from(weight.descriptions);
        self.0.store(both, Ordering::Relaxed);
    }
}
