//! `Cargo.toml`, read by hand: where the targets begin, which features are on, what the dependencies are called.
//!
//! One call of `cargo metadata` costs more than all the rest of a run.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_syntax::Severity;
use toml_edit::{Document, Item, TableLike};

use crate::{Diagnostic, SourceSet};

const PATH: &str = "Cargo.toml";

/// What a package's manifest says about its source.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// Library first, then binaries by path.
    pub(crate) targets: Vec<Target>,
    /// The features that are on.
    pub(crate) features: BTreeSet<String>,
    /// The name in source of each dependency, and the name of the crate behind it.
    pub(crate) dependencies: BTreeMap<String, String>,
}

/// A library or a binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name other targets know the library by; a binary has none.
    pub(crate) lib_name: Option<String>,
    /// The root file.
    pub(crate) path: String,
}

/// Reads the manifest of a package.
pub(crate) fn read(sources: &SourceSet, features: &[String]) -> Result<Manifest, Diagnostic> {
    let text = sources
        .get(PATH)
        .ok_or_else(|| error(0..0, "there is no `Cargo.toml`"))?;
    let document = Document::parse(text).map_err(|problem| {
        error(
            problem.span().unwrap_or(0..0),
            &format!("`Cargo.toml` is not TOML: {}", problem.message()),
        )
    })?;
    let root = document.as_table();
    let Some(package) = table(root, "package") else {
        let help = "run this in the package that holds the API types";
        let problem = error(0..0, "`Cargo.toml` describes no package");
        return Err(Diagnostic {
            help: Some(help.into()),
            ..problem
        });
    };
    let mut targets: Vec<Target> = library(root, package, sources).into_iter().collect();
    targets.extend(binaries(root, package, sources));
    if targets.is_empty() {
        return Err(error(
            0..0,
            "the package has neither `src/lib.rs` nor `src/main.rs`",
        ));
    }
    Ok(Manifest {
        targets,
        features: active_features(root, features),
        dependencies: dependencies(root),
    })
}

fn error(range: std::ops::Range<usize>, message: &str) -> Diagnostic {
    Diagnostic {
        path: PATH.into(),
        range,
        severity: Severity::Error,
        message: message.into(),
        help: None,
    }
}

fn table<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a dyn TableLike> {
    table.get(key)?.as_table_like()
}

fn text<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

fn library(root: &dyn TableLike, package: &dyn TableLike, sources: &SourceSet) -> Option<Target> {
    let lib = table(root, "lib");
    let path = lib.and_then(|lib| text(lib, "path")).unwrap_or("src/lib.rs");
    let name = lib
        .and_then(|lib| text(lib, "name"))
        .or_else(|| text(package, "name"))
        .unwrap_or_default();
    let path = normalize_path(path);
    sources.get(&path).is_some().then(|| Target {
        lib_name: Some(name.replace('-', "_")),
        path,
    })
}

fn binaries(root: &dyn TableLike, package: &dyn TableLike, sources: &SourceSet) -> Vec<Target> {
    let mut paths = BTreeSet::new();
    if let Some(written) = root.get("bin").and_then(Item::as_array_of_tables) {
        for bin in written {
            match (text(bin, "path"), text(bin, "name")) {
                (Some(path), _) => paths.insert(normalize_path(path)),
                (None, Some(name)) => paths.insert(format!("src/bin/{name}.rs")),
                (None, None) => false,
            };
        }
    }
    if package.get("autobins").and_then(Item::as_bool) != Some(false) {
        paths.insert("src/main.rs".into());
        paths.extend(
            sources
                .paths()
                .filter(|path| is_automatic_binary(path))
                .map(str::to_owned),
        );
    }
    paths.retain(|path| sources.get(path).is_some());
    paths
        .into_iter()
        .map(|path| Target { lib_name: None, path })
        .collect()
}

/// `src/bin/x.rs` and `src/bin/x/main.rs`.
fn is_automatic_binary(path: &str) -> bool {
    path.strip_prefix("src/bin/")
        .is_some_and(|rest| match rest.split_once('/') {
            None => rest.ends_with(".rs"),
            Some((_, file)) => file == "main.rs",
        })
}

/// The default features and the ones asked for, with all they turn on.
fn active_features(root: &dyn TableLike, asked: &[String]) -> BTreeSet<String> {
    let mut active = BTreeSet::new();
    let mut open: Vec<String> = asked.iter().cloned().chain(["default".to_owned()]).collect();
    while let Some(feature) = open.pop() {
        if !active.insert(feature.clone()) {
            continue;
        }
        let implied = table(root, "features").and_then(|features| features.get(&feature)?.as_array());
        for name in implied.into_iter().flatten().filter_map(|value| value.as_str()) {
            if !name.contains(['/', ':']) {
                open.push(name.to_owned());
            }
        }
    }
    active
}

fn dependencies(root: &dyn TableLike) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (name, value) in table(root, "dependencies").into_iter().flat_map(TableLike::iter) {
        let package = value
            .as_table_like()
            .and_then(|table| text(table, "package"))
            .unwrap_or(name);
        names.insert(name.replace('-', "_"), package.replace('-', "_"));
    }
    names
}

/// A path without `.` and `..`, relative to the package.
pub(crate) fn normalize_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(manifest: &str, files: &[&str]) -> SourceSet {
        let mut sources = SourceSet::default();
        sources.insert(PATH, manifest);
        files.iter().for_each(|path| sources.insert(*path, ""));
        sources
    }

    fn check_targets(manifest: &str, files: &[&str], expected: &[(Option<&str>, &str)]) {
        let manifest = read(&package(manifest, files), &[]).expect("a manifest");
        let targets: Vec<_> = manifest
            .targets
            .iter()
            .map(|target| (target.lib_name.as_deref(), target.path.as_str()))
            .collect();
        assert_eq!(targets, expected);
    }

    #[test]
    fn targets() {
        let named = "[package]\nname = \"my-operator\"\n";
        check_targets(named, &["src/lib.rs"], &[(Some("my_operator"), "src/lib.rs")]);
        check_targets(
            named,
            &[
                "src/lib.rs",
                "src/main.rs",
                "src/bin/a.rs",
                "src/bin/b/main.rs",
                "src/bin/b/c.rs",
            ],
            &[
                (Some("my_operator"), "src/lib.rs"),
                (None, "src/bin/a.rs"),
                (None, "src/bin/b/main.rs"),
                (None, "src/main.rs"),
            ],
        );
        check_targets(
            "[package]\nname = \"x\"\nautobins = false\n[lib]\nname = \"api\"\npath = \"./api/lib.rs\"\n[[bin]]\nname = \"run\"",
            &["api/lib.rs", "src/main.rs", "src/bin/run.rs"],
            &[(Some("api"), "api/lib.rs"), (None, "src/bin/run.rs")],
        );
    }

    #[test]
    fn features_and_dependencies() {
        let text = "[package]\nname = \"x\"\n[features]\ndefault = [\"a\"]\na = [\"b\", \"dep:kube\"]\nc = []\n\
                    [dependencies]\nk = { package = \"kube\", version = \"5\" }\nserde-json = \"1\"";
        let manifest = read(&package(text, &["src/lib.rs"]), &["c".to_owned()]).expect("a manifest");
        assert_eq!(
            manifest.features.iter().collect::<Vec<_>>(),
            ["a", "b", "c", "default"]
        );
        let dependencies: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|(a, b)| format!("{a}={b}"))
            .collect();
        assert_eq!(dependencies, ["k=kube", "serde_json=serde_json"]);
    }

    #[test]
    fn broken_manifests() {
        let cases = [
            ("[package", "`Cargo.toml` is not TOML"),
            ("[workspace]", "`Cargo.toml` describes no package"),
            ("[package]\nname = \"x\"", "the package has neither"),
        ];
        for (text, expected) in cases {
            let problem = read(&package(text, &[]), &[]).expect_err("a broken manifest");
            assert!(problem.message.starts_with(expected), "{}", problem.message);
        }
        assert!(
            read(&SourceSet::default(), &[]).is_err(),
            "a missing manifest is an error"
        );
    }
}
