//! The release of kube that a program is built with: older ones have fewer attributes, and another schemars.

use std::fmt;

/// A release of kube, by the numbers that decide compatibility: 0.98 or 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KubeRelease {
    major: u16,
    minor: u16,
}

impl KubeRelease {
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

    /// Returns the release in a lock file, the newest of several.
    pub(crate) fn find_locked(lock: &str) -> Option<Self> {
        let mut lines = lock.lines().map(str::trim);
        let mut newest = None;
        while let Some(line) = lines.next() {
            if line == "name = \"kube\"" {
                newest = newest.max(lines.next().and_then(read_version_line));
            }
        }
        newest
    }
}

impl fmt::Display for KubeRelease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

fn read_version_line(line: &str) -> Option<KubeRelease> {
    let version = line.strip_prefix("version = \"")?;
    let mut numbers = version.split('.').map(str::parse);
    Some(KubeRelease::new(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files() {
        let entry = |name: &str, version: &str| {
            format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
        };
        for (lock, release) in [
            (String::new(), None),
            (entry("kube-derive", "0.98.0"), None),
            (entry("kube", "0.98.0"), Some("0.98")),
            (entry("kube", "5.0.1"), Some("5.0")),
            (
                entry("kube", "0.99.0") + &entry("kube", "2.0.1") + &entry("kube-core", "4.0.0"),
                Some("2.0"),
            ),
            (entry("kube", "new"), None),
        ] {
            let found = KubeRelease::find_locked(&lock).map(|release| release.to_string());
            assert_eq!(found.as_deref(), release, "{lock}");
        }
    }
}
