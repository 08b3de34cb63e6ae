//! Minor versions of Kubernetes.

use std::fmt;

/// A minor version of Kubernetes 1 that is supported by
/// [k8s-openapi](crate::versions::K8S_OPENAPI).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor(u8);

impl Minor {
    /// The feature `earliest` of k8s-openapi.
    pub const EARLIEST: Minor = Minor(33);
    /// The feature `latest` of k8s-openapi.
    pub const LATEST: Minor = Minor(37);

    /// Fails to compile if the catalogue doesn't have this minor.
    pub(crate) const fn of(number: u8) -> Self {
        match Self::new(number) {
            Some(minor) => minor,
            None => panic!("the catalogue has no such minor"),
        }
    }

    /// Kubernetes 1.`number`, if the catalogue contains it.
    pub const fn new(number: u8) -> Option<Self> {
        if Self::EARLIEST.0 <= number && number <= Self::LATEST.0 {
            Some(Minor(number))
        } else {
            None
        }
    }

    /// The minor closest to Kubernetes 1.`number`.
    pub const fn nearest(number: u8) -> Self {
        if number < Self::EARLIEST.0 {
            Self::EARLIEST
        } else if number > Self::LATEST.0 {
            Self::LATEST
        } else {
            Minor(number)
        }
    }

    /// All minors in ascending order.
    pub fn all() -> impl DoubleEndedIterator<Item = Minor> {
        (Self::EARLIEST.0..=Self::LATEST.0).map(Minor)
    }

    /// The minor selected by a feature of k8s-openapi, e.g. `v1_35`, `earliest`, `latest`.
    pub fn from_feature(feature: &str) -> Option<Self> {
        match feature {
            "earliest" => Some(Self::EARLIEST),
            "latest" => Some(Self::LATEST),
            _ => Self::new(feature.strip_prefix("v1_")?.parse().ok()?),
        }
    }

    /// Parses a version such as `1.35`, the format of k8s-openapi's `K8S_OPENAPI_ENABLED_VERSION`.
    pub fn from_version(version: &str) -> Option<Self> {
        Self::new(version.strip_prefix("1.")?.parse().ok()?)
    }

    /// Returns the number after the dot, e.g. 35 for Kubernetes 1.35.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The newest minor.
impl Default for Minor {
    fn default() -> Self {
        Self::LATEST
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_minors() {
        let number = |minor: Option<Minor>| minor.map(Minor::number);
        for (feature, expected) in [
            ("v1_33", Some(33)),
            ("earliest", Some(33)),
            ("latest", Some(37)),
            ("v1_32", None),
            ("v1_38", None),
            ("schemars", None),
            ("v1_", None),
        ] {
            assert_eq!(number(Minor::from_feature(feature)), expected, "{feature}");
        }
        for (version, expected) in [
            ("1.36", Some(36)),
            ("1.20", None),
            ("v1.36", None),
            ("1.36.3", None),
        ] {
            assert_eq!(number(Minor::from_version(version)), expected, "{version}");
        }
        for (asked, expected) in [(0, 33), (20, 33), (33, 33), (35, 35), (37, 37), (90, 37)] {
            assert_eq!(Minor::nearest(asked).number(), expected, "{asked}");
        }
        assert_eq!(Minor::LATEST.to_string(), "1.37");
    }
}
