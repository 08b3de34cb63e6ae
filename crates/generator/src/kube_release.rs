//! The version of kube used by a program. Older versions lack attributes and use an older schemars.

/// A version of kube as far as compatibility is concerned, such as 0.98 or 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KubeRelease {
    major: u16,
    minor: u16,
}

impl KubeRelease {
    /// The first version with `annotation` and `label`.
    pub(crate) const ANNOTATION: Self = Self::new(0, 97);
    /// The first version with `storage`, `served` and `deprecated`.
    pub(crate) const STORAGE: Self = Self::new(0, 98);
    /// The first version with `validation`, formerly `rule`.
    pub(crate) const VALIDATION: Self = Self::new(1, 0);
    /// The first version with schemars 1 instead of 0.8.
    pub(crate) const SCHEMARS_1: Self = Self::new(2, 0);
    /// The version that rbuilder and `derive(CrdSchema)` require.
    pub(crate) const RBUILDER: Self = Self::new(5, 0);

    /// Creates a version from its first two numbers.
    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        KubeRelease { major, minor }
    }
}
