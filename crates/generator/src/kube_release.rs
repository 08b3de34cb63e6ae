//! The version of kube that a program uses. Older versions lack attributes and use an older
//! schemars.

/// Only has the numbers that compatibility depends on, e.g. 0.98 or 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KubeRelease {
    major: u16,
    minor: u16,
}

impl KubeRelease {
    /// Has `annotation` and `label` from here on.
    pub(crate) const ANNOTATION: Self = Self::new(0, 97);
    /// Has `storage`, `served` and `deprecated` from here on.
    pub(crate) const STORAGE: Self = Self::new(0, 98);
    /// Has `validation` from here on, which used to be called `rule`.
    pub(crate) const VALIDATION: Self = Self::new(1, 0);
    /// Uses schemars 1 from here on, instead of 0.8.
    pub(crate) const SCHEMARS_1: Self = Self::new(2, 0);
    /// rbuilder and `derive(CrdSchema)` need this one.
    pub(crate) const RBUILDER: Self = Self::new(5, 0);

    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        KubeRelease { major, minor }
    }
}
