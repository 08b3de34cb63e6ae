//! The release of kube that a program is built with: older ones have fewer attributes, and another schemars.

/// A release of kube, by the numbers that decide compatibility: 0.98 or 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KubeRelease {
    major: u16,
    minor: u16,
}

impl KubeRelease {
    /// The first with `annotation` and `label`.
    pub(crate) const ANNOTATION: Self = Self::new(0, 97);
    /// The first with `storage`, `served` and `deprecated`.
    pub(crate) const STORAGE: Self = Self::new(0, 98);
    /// The first with `validation`, which was `rule` before.
    pub(crate) const VALIDATION: Self = Self::new(1, 0);
    /// The first with schemars 1; before, it was schemars 0.8.
    pub(crate) const SCHEMARS_1: Self = Self::new(2, 0);
    /// The one that rbuilder, and so `derive(CrdSchema)`, works with.
    pub(crate) const RBUILDER: Self = Self::new(5, 0);

    /// The release of these numbers.
    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        KubeRelease { major, minor }
    }
}
