//! The version of kube that a program uses. Older versions lack attributes and depend on an older
//! schemars.

/// The part of the version that determines compatibility, e.g. 0.98 or 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KubeRelease {
    major: u16,
    minor: u16,
}

impl KubeRelease {
    /// First version with `annotation` and `label`.
    pub(crate) const ANNOTATION: Self = Self::new(0, 97);
    /// First version with `storage`, `served` and `deprecated`.
    pub(crate) const STORAGE: Self = Self::new(0, 98);
    /// First version with `validation`, formerly called `rule`.
    pub(crate) const VALIDATION: Self = Self::new(1, 0);
    /// First version on schemars 1 instead of 0.8.
    pub(crate) const SCHEMARS_1: Self = Self::new(2, 0);
    /// The version required by rbuilder and `derive(CrdSchema)`.
    pub(crate) const RBUILDER: Self = Self::new(5, 0);

    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        KubeRelease { major, minor }
    }
}
