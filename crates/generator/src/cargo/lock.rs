//! `Cargo.lock`: versions, checksums and the dependency graph.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use semver::{Version, VersionReq};
use toml_edit::{Document, TableLike};

use super::file::string_at;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockId(usize);

#[derive(Debug)]
pub(super) struct Lock {
    packages: Vec<LockedPackage>,
    by_name: BTreeMap<String, Vec<LockId>>,
}

#[derive(Debug)]
pub(super) struct LockedPackage {
    pub(super) name: String,
    pub(super) version: String,
    /// `None` for path dependencies.
    pub(super) source: Option<String>,
    /// SHA-256 as hexadecimal digits. Only packages from a registry have one.
    pub(super) checksum: Option<String>,
    dependencies: Vec<LockId>,
}

impl Lock {
    /// Parses a lock file of any format version. The error is a phrase that gives the reason.
    pub(super) fn parse(text: &str) -> Result<Lock, String> {
        let document = Document::parse(text).map_err(|error| error.message().trim().to_owned())?;
        let mut lock = Lock {
            packages: Vec::new(),
            by_name: BTreeMap::new(),
        };
        let tables = document.get("package").and_then(|item| item.as_array_of_tables());
        let mut named_dependencies = Vec::new();
        for table in tables.into_iter().flatten() {
            let (Some(name), Some(version)) = (string_at(table, "name"), string_at(table, "version")) else {
                return Err("a package without `name` or `version`".to_owned());
            };
            let source = string_at(table, "source");
            let checksum = string_at(table, "checksum").or_else(|| {
                // Before 2019, Cargo kept checksums in a `[metadata]` table.
                let key = format!("checksum {name} {version} ({})", source?);
                string_at(document.get("metadata")?.as_table_like()? as &dyn TableLike, &key)
            });
            let id = LockId(lock.packages.len());
            lock.by_name.entry(name.to_owned()).or_default().push(id);
            lock.packages.push(LockedPackage {
                name: name.to_owned(),
                version: version.to_owned(),
                source: source.map(str::to_owned),
                checksum: checksum.map(str::to_ascii_lowercase),
                dependencies: Vec::new(),
            });
            let list = table.get("dependencies").and_then(|item| item.as_array());
            named_dependencies.push(list.into_iter().flatten().filter_map(|value| value.as_str()));
        }
        // Resolve dependencies in a second pass, since they may refer to packages further down.
        for (at, named) in named_dependencies.into_iter().enumerate() {
            let found = named.filter_map(|named| lock.find_named(named)).collect();
            lock.packages[at].dependencies = found;
        }
        Ok(lock)
    }

    pub(super) fn package(&self, id: LockId) -> &LockedPackage {
        &self.packages[id.0]
    }

    /// Looks up a dependency by `name`, `name version` or `name version (source)`. Cargo writes the
    /// shortest form that is unambiguous.
    fn find_named(&self, named: &str) -> Option<LockId> {
        let mut words = named.splitn(3, ' ');
        let (name, version, source) = (words.next()?, words.next(), words.next());
        let source = source.map(|source| source.trim_start_matches('(').trim_end_matches(')'));
        let candidates = self.by_name.get(name)?.iter().copied();
        let mut fitting = candidates.filter(|id| {
            let package = self.package(*id);
            version.is_none_or(|version| version == package.version)
                && (source.is_none() || source == package.source.as_deref())
        });
        fitting.next()
    }

    /// Looks up a package of the repository itself, which has no `source`.
    pub(super) fn find_local(&self, name: &str, version: Option<&str>) -> Option<LockId> {
        let candidates = self.by_name.get(name)?.iter().copied();
        let local: Vec<LockId> = candidates
            .filter(|id| self.package(*id).source.is_none())
            .collect();
        let same = local
            .iter()
            .find(|id| version == Some(self.package(**id).version.as_str()));
        same.or(local.first()).copied()
    }

    /// Returns the package that a dependency resolves to.
    ///
    /// A package can depend on two versions of the same crate by renaming one of them. As in Cargo,
    /// the newest version that matches the requirement wins.
    pub(super) fn find_dependency(
        &self,
        dependent: LockId,
        name: &str,
        requirement: Option<&str>,
    ) -> Option<LockId> {
        let dependencies = self.package(dependent).dependencies.iter().copied();
        let named: Vec<LockId> = dependencies.filter(|id| self.package(*id).name == name).collect();
        if let [only] = named.as_slice() {
            return Some(*only);
        }
        let requirement = requirement.and_then(|text| VersionReq::parse(text).ok());
        let fitting = named.into_iter().filter_map(|id| {
            let version = Version::parse(&self.package(id).version).ok()?;
            let admits = requirement
                .as_ref()
                .is_none_or(|requirement| requirement.matches(&version));
            admits.then_some((version, id))
        });
        fitting.max().map(|(_, id)| id)
    }

    /// Returns a package and its transitive dependents. Nothing else can enable its features, so
    /// the rest of the graph can stay unread.
    pub(super) fn find_dependents(&self, id: LockId) -> BTreeSet<LockId> {
        let mut dependents: BTreeMap<LockId, Vec<LockId>> = BTreeMap::new();
        for (at, package) in self.packages.iter().enumerate() {
            for dependency in &package.dependencies {
                dependents.entry(*dependency).or_default().push(LockId(at));
            }
        }
        reach(id, |id| dependents.get(&id).map_or(&[], Vec::as_slice))
    }

    /// Returns the versions of a package among `id` and its transitive dependencies.
    pub(super) fn versions_below(&self, id: LockId, name: &str) -> BTreeSet<&str> {
        let found = reach(id, |id| &self.package(id).dependencies);
        let packages = found.into_iter().map(|id| self.package(id));
        let named = packages.filter(|package| package.name == name);
        named.map(|package| package.version.as_str()).collect()
    }
}

/// Returns a package and all packages that `next` leads to.
fn reach<'l>(from: LockId, next: impl Fn(LockId) -> &'l [LockId]) -> BTreeSet<LockId> {
    let mut found = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        open.extend(next(id).iter().copied().filter(|id| found.insert(*id)));
    }
    found
}

/// Whether a lock file has more than one version of a package. Called in every run, so this doesn't
/// parse the file.
pub(super) fn has_several_versions(lock: &str, name: &str) -> bool {
    let entry = format!("name = \"{name}\"");
    memmem::find_iter(lock.as_bytes(), &entry).nth(1).is_some()
}

pub(super) fn find_newest_release(lock: &str, name: &str) -> Option<(u16, u16)> {
    // Called in every run, so scan the lines instead of parsing the file. `version` follows `name`
    // in every version of the format.
    let name = format!("name = \"{name}\"");
    let mut lines = lock.lines().map(str::trim);
    let mut newest = None;
    while let Some(line) = lines.next() {
        if line == name {
            newest = newest.max(lines.next().and_then(read_release));
        }
    }
    newest
}

fn read_release(line: &str) -> Option<(u16, u16)> {
    let version = line.strip_prefix("version = \"")?;
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_newest_release() {
        let entry = |name: &str, version: &str| {
            format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
        };
        for (lock, release) in [
            (String::new(), None),
            ("version = 4\n".to_owned(), None),
            (entry("kube-derive", "0.98.0"), None),
            (entry("kube", "0.98.0"), Some((0, 98))),
            (entry("kube", "5.0.1"), Some((5, 0))),
            (
                entry("kube", "0.99.0") + &entry("kube", "2.0.1") + &entry("kube-core", "4.0.0"),
                Some((2, 0)),
            ),
            (entry("kube", "0.28.1") + &entry("kube", "0.20.0"), Some((0, 28))),
            (entry("kube", "new"), None),
        ] {
            assert_eq!(find_newest_release(&lock, "kube"), release, "{lock}");
        }
    }

    const LOCK: &str = "\
version = 4

[[package]]
name = \"op\"
version = \"0.1.0\"
dependencies = [\"either\", \"foo 1.2.0\", \"foo 2.0.0 (registry+https://a)\"]

[[package]]
name = \"either\"
version = \"1.0.0\"
source = \"registry+https://a\"
checksum = \"AB\"
dependencies = [\"foo 2.0.0 (registry+https://b)\"]

[[package]]
name = \"foo\"
version = \"1.2.0\"
source = \"registry+https://a\"

[[package]]
name = \"foo\"
version = \"2.0.0\"
source = \"registry+https://a\"

[[package]]
name = \"foo\"
version = \"2.0.0\"
source = \"registry+https://b\"
";

    fn describe(lock: &Lock, id: LockId) -> String {
        let package = lock.package(id);
        let source = package.source.as_deref().unwrap_or("path");
        format!("{} {} {source}", package.name, package.version)
    }

    #[test]
    fn finds_package_of_dependency() {
        let lock = Lock::parse(LOCK).expect("a lock file");
        let of = |dependent: &str, name: &str, requirement: Option<&str>| {
            let found = lock.find_dependency(lock.find_named(dependent)?, name, requirement);
            found.map(|id| describe(&lock, id))
        };
        for (dependent, name, requirement, expected) in [
            (
                "op",
                "either",
                Some("0.9"),
                Some("either 1.0.0 registry+https://a"),
            ),
            ("op", "foo", Some("1"), Some("foo 1.2.0 registry+https://a")),
            ("op", "foo", Some("^2.0"), Some("foo 2.0.0 registry+https://a")),
            ("op", "foo", None, Some("foo 2.0.0 registry+https://a")),
            ("op", "foo", Some("3"), None),
            ("either", "foo", None, Some("foo 2.0.0 registry+https://b")),
            ("op", "bar", None, None),
        ] {
            assert_eq!(
                of(dependent, name, requirement).as_deref(),
                expected,
                "{dependent} {name} {requirement:?}"
            );
        }
        assert_eq!(
            lock.find_local("op", None)
                .map(|id| describe(&lock, id))
                .as_deref(),
            Some("op 0.1.0 path")
        );
        assert_eq!(lock.find_local("either", None), None);
    }

    #[test]
    fn finds_dependents() {
        let lock = Lock::parse(LOCK).expect("a lock file");
        let of = |named: &str| -> Vec<String> {
            let id = lock.find_named(named).expect("a package");
            let found = lock.find_dependents(id).into_iter();
            found.map(|id| lock.package(id).name.clone()).collect()
        };
        assert_eq!(of("foo 1.2.0"), ["op", "foo"]);
        assert_eq!(of("foo 2.0.0 (registry+https://b)"), ["op", "either", "foo"]);
    }

    #[test]
    fn finds_versions_below() {
        let lock = Lock::parse(LOCK).expect("a lock file");
        let of = |named: &str| {
            let id = lock.find_named(named).expect("a package");
            Vec::from_iter(lock.versions_below(id, "foo"))
        };
        assert_eq!(of("op"), ["1.2.0", "2.0.0"]);
        assert_eq!(of("either"), ["2.0.0"]);
        assert_eq!(of("foo 1.2.0"), ["1.2.0"]);
        assert!(has_several_versions(LOCK, "foo") && !has_several_versions(LOCK, "either"));
    }

    #[test]
    fn parses_checksums_and_rejects_other_files() {
        let lock = Lock::parse(LOCK).expect("a lock file");
        let either = lock.find_named("either").expect("a package");
        assert_eq!(lock.package(either).checksum.as_deref(), Some("ab"));
        let old = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://a\"\n\n[metadata]\n\"checksum a 1.0.0 (registry+https://a)\" = \"cd\"\n";
        let lock = Lock::parse(old).expect("a lock file");
        let a = lock.find_named("a").expect("a package");
        assert_eq!(lock.package(a).checksum.as_deref(), Some("cd"));
        assert!(Lock::parse("<<<<<<< HEAD").is_err());
        assert!(Lock::parse("[[package]]\nname = \"a\"\n").is_err());
    }
}
