//! The weight of a schema, and its cache.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

/// An estimate of a schema's size as JSON, in bytes. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Everything except descriptions.
    pub structure: u32,
    /// Descriptions, which options can shorten.
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

/// The cached weight of a schema. A clone has an empty cache, because schemas are cloned to be
/// changed. Comparisons ignore it.
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
    /// Returns the cached weight. Every schema has some weight, so zero means "not computed".
    pub(crate) fn get(&self) -> Option<Weight> {
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(Weight {
            structure: (both >> 32) as u32,
            descriptions: both as u32,
        })
    }

    pub(crate) fn set(&self, weight: Weight) {
        let both = u64::from(weight.structure) << 32 | u64::from(weight.descriptions);
        self.0.store(both, Ordering::Relaxed);
    }
}
