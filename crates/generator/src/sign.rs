//! Signs that a kind belongs to another project.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// kopium generated the type from an existing CRD.
    Generated,
    /// Stated in a comment above the type or at the beginning of the file.
    Said,
    /// The group is reserved for the Kubernetes community.
    Reserved,
    /// The program creates CRDs of other kinds, but never of this one.
    NeverMade,
    /// The program creates CRDs or reconciles kinds of other groups, but not of this group.
    OnlyRead,
}

impl Sign {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Sign::Generated => "kopium generated it from a CRD",
            Sign::Said => "a comment says that its CRD is not made here",
            Sign::Reserved => "groups that end in `k8s.io` belong to projects of the Kubernetes community",
            Sign::NeverMade => "the program calls `crd()` for other kinds and never for this one",
            Sign::OnlyRead => {
                "the program makes or reconciles kinds of other groups and none of this one, and no CRD of it is committed"
            }
        }
    }
}
