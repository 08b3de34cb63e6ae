//! Source replacement in `.cargo/config.toml`, which makes Cargo look in a vendored directory
//! instead of a registry or a git repository.

use std::collections::BTreeMap;

use serde_json::Value;
use toml_edit::{Document, TableLike};

use super::file::{string_at, table_at};
use super::lock::LockedPackage;
use crate::sources::{Sources, join};

const MAX_ANCESTORS: usize = 32;

/// Limit for following `replace-with`, which can form a cycle.
const MAX_REPLACEMENTS: usize = 16;

/// The sources of crates.io packages in `Cargo.lock`.
const CRATES_IO: [&str; 2] = [
    "registry+https://github.com/rust-lang/crates.io-index",
    "sparse+https://index.crates.io/",
];

/// The `[source.…]` tables of Cargo's configuration.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    sources: BTreeMap<String, Replacement>,
}

#[derive(Debug, Default)]
struct Replacement {
    registry: Option<String>,
    git: Option<String>,
    replace_with: Option<String>,
    /// Relative to the project.
    directory: Option<String>,
}

impl Replacements {
    /// Reads Cargo's configuration from the project and the directories above it. The nearest one
    /// wins.
    pub(super) fn read(sources: &dyn Sources) -> Replacements {
        let mut found = Replacements::default();
        let mut folder = String::new();
        for _ in 0..MAX_ANCESTORS {
            for name in [".cargo/config.toml", ".cargo/config"] {
                // Skip files outside of the repository: the output must depend on the repository
                // alone.
                if let Ok(Some(text)) = sources.text(&join(&folder, name)) {
                    found.add(&text, &folder);
                    break;
                }
            }
            let above = join(&folder, "..");
            if above == folder {
                break;
            }
            folder = above;
        }
        found
    }

    fn add(&mut self, text: &str, folder: &str) {
        let Ok(document) = Document::parse(text) else {
            return;
        };
        let tables = table_at(document.as_table(), "source")
            .into_iter()
            .flat_map(TableLike::iter);
        for (name, table) in tables.filter_map(|(name, item)| Some((name, item.as_table_like()?))) {
            let of = |key: &str| string_at(table, key).map(str::to_owned);
            let known = self.sources.entry(name.to_owned()).or_default();
            known.registry = known.registry.take().or_else(|| of("registry"));
            known.git = known.git.take().or_else(|| of("git"));
            known.replace_with = known.replace_with.take().or_else(|| of("replace-with"));
            let directory = of("directory").map(|directory| join(folder, &directory));
            known.directory = known.directory.take().or(directory);
        }
    }

    fn directory_of(&self, source: &str) -> Option<&str> {
        let mut tables = self.sources.iter();
        let (_, mut replacement) = tables.find(|(name, table)| table.is_of(name, source))?;
        for _ in 0..MAX_REPLACEMENTS {
            if let Some(directory) = &replacement.directory {
                return Some(directory);
            }
            replacement = self.sources.get(replacement.replace_with.as_ref()?)?;
        }
        None
    }

    /// Returns the directory of a vendored package, or `None` if its source is not replaced.
    ///
    /// Fails if the vendored directory lacks the package or has it with another checksum.
    pub(super) fn find_folder(
        &self,
        package: &LockedPackage,
        sources: &dyn Sources,
    ) -> Option<Result<String, String>> {
        let directory = self.directory_of(package.source.as_deref()?)?;
        Some(find_in(directory, package, sources))
    }
}

impl Replacement {
    /// Returns true if the table called `name` describes `source`, as written in `Cargo.lock`.
    fn is_of(&self, name: &str, source: &str) -> bool {
        if name == "crates-io" {
            return CRATES_IO.contains(&source);
        }
        let bare = |url: &str| {
            let url = url.trim_start_matches("registry+").trim_start_matches("sparse+");
            url.trim_end_matches('/').to_owned()
        };
        if let Some(repository) = source.strip_prefix("git+") {
            let repository = repository.split(['?', '#']).next().unwrap_or_default();
            return self
                .git
                .as_deref()
                .is_some_and(|git| bare(git) == bare(repository));
        }
        let registry = self.registry.as_deref();
        registry.is_some_and(|registry| bare(registry) == bare(source))
    }
}

fn find_in(directory: &str, package: &LockedPackage, sources: &dyn Sources) -> Result<String, String> {
    let LockedPackage { name, version, .. } = package;
    let usual = [format!("{name}-{version}"), name.clone()];
    let is_package = |folder: &String| is_manifest_of(sources, folder, package);
    let mut folder = usual
        .iter()
        .map(|name| join(directory, name))
        .find(|folder| is_package(folder));
    // `cargo vendor` appends the version only for crates vendored in several versions, so the
    // package may be under neither of the usual names. Fall back to reading each manifest.
    if folder.is_none() {
        let others = sources.folders(directory).unwrap_or_default();
        let mut others = others.iter().map(|name| join(directory, name));
        folder = others.find(|folder| is_package(folder));
    }
    let folder = folder.ok_or_else(|| format!("`{directory}` does not have {name} {version}"))?;
    let path = join(&folder, ".cargo-checksum.json");
    let text = match sources.text(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(format!("`{path}` does not exist")),
        Err(reason) => return Err(format!("failed to read `{path}`: {reason}")),
    };
    let record: Value =
        serde_json::from_str(&text).map_err(|error| format!("failed to parse `{path}`: {error}"))?;
    // Packages from git have no checksum in either file, so both sides are `None`.
    let checksum = record.get("package").and_then(Value::as_str);
    if checksum.map(str::to_ascii_lowercase) != package.checksum {
        return Err(format!(
            "`{path}` does not have the checksum of {name} {version} in `Cargo.lock`"
        ));
    }
    Ok(folder)
}

fn is_manifest_of(sources: &dyn Sources, folder: &str, package: &LockedPackage) -> bool {
    let Ok(Some(text)) = sources.text(&join(folder, "Cargo.toml")) else {
        return false;
    };
    let Ok(document) = Document::parse(&*text) else {
        return false;
    };
    table_at(document.as_table(), "package").is_some_and(|found| {
        string_at(found, "name") == Some(&package.name)
            && string_at(found, "version") == Some(&package.version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_replacement_of_source() {
        let mut replacements = Replacements::default();
        replacements.add(
            "[source.crates-io]\nreplace-with = \"mirror\"\n\n[source.mirror]\nreplace-with = \"vendored\"\nregistry = \"sparse+https://mirror/index\"\n\n\
             [source.vendored]\ndirectory = \"vendor\"\n\n[source.fork]\ngit = \"https://github.com/a/b\"\nrev = \"1\"\nreplace-with = \"vendored\"\n\n\
             [source.a]\nregistry = \"https://circle\"\nreplace-with = \"a\"\n",
            "..",
        );
        // The nearest configuration is read first and wins.
        replacements.add("[source.vendored]\ndirectory = \"other\"\n", "../..");
        for (source, expected) in [
            (
                "registry+https://github.com/rust-lang/crates.io-index",
                Some("../vendor"),
            ),
            ("registry+https://mirror/index/", Some("../vendor")),
            ("git+https://github.com/a/b?rev=1#0123", Some("../vendor")),
            ("git+https://github.com/a/c#0123", None),
            ("registry+https://other", None),
            ("sparse+https://circle", None),
        ] {
            assert_eq!(replacements.directory_of(source), expected, "{source}");
        }
    }
}
