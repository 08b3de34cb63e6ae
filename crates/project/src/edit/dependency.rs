//! Edits Cargo.toml: adds and removes a dependency on a crate that defines the types of external
//! kinds.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use toml_edit::{DocumentMut, Item, Table};

use super::Obstacle;

const DEPENDENCIES: &str = "dependencies";

/// A crate as passed to `--external-crate`, e.g. `gateway-api@0.22`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the package.
    pub package: String,
    /// Version requirement.
    pub version: Option<String>,
}

impl Requirement {
    /// Parses the value of `--external-crate`.
    ///
    /// # Errors
    /// Fails if `text` is not a package name, optionally followed by `@` and a version.
    pub fn parse(text: &str) -> Result<Requirement> {
        let (package, version) = match text.split_once('@') {
            Some((package, version)) => (package, Some(version)),
            None => (text, None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_version = |byte: u8| byte.is_ascii_alphanumeric() || b".-+^~=*".contains(&byte);
        let starts = package.starts_with(|first: char| first.is_ascii_alphabetic());
        let has_version = version.is_none_or(|version| {
            version.bytes().any(|byte| byte.is_ascii_digit()) && version.bytes().all(is_version)
        });
        if !(starts && package.bytes().all(is_name) && has_version) {
            bail!(
                "`--external-crate` must be the name of a package on crates.io with a version, such as `gateway-api@0.22`; found `{text}`"
            );
        }
        Ok(Requirement {
            package: package.to_owned(),
            version: version.map(str::to_owned),
        })
    }

    /// The crate's name in Rust code, e.g. `gateway_api` for `gateway-api`.
    pub fn crate_name(&self) -> String {
        self.package.replace('-', "_")
    }

    /// The line for `[dependencies]`, e.g. `gateway-api = "0.22"`.
    pub fn line(&self) -> String {
        format!(
            "{} = \"{}\"",
            self.package,
            self.version.as_deref().unwrap_or("*")
        )
    }
}

/// Returns the names, as used in Rust code, of all dependencies in the given tables. Empty if
/// `text` is not valid TOML.
pub fn crate_names(text: &str, tables: &[&str]) -> BTreeSet<String> {
    let Ok(document) = toml_edit::Document::parse(text) else {
        return BTreeSet::new();
    };
    let tables = tables
        .iter()
        .filter_map(|table| document.get(table)?.as_table_like());
    let names = tables.flat_map(|table| table.iter().map(|(name, _)| name.replace('-', "_")));
    names.collect()
}

/// Returns the paths of a package's path dependencies, except for the rbuilder library. Empty if
/// `text` is not valid TOML.
pub fn list_paths(text: &str) -> Vec<String> {
    let Ok(document) = toml_edit::Document::parse(text) else {
        return Vec::new();
    };
    let tables = [DEPENDENCIES, "build-dependencies"]
        .iter()
        .filter_map(|table| document.get(table)?.as_table_like());
    let of_others = tables.flat_map(|table| table.iter()).filter(|(name, item)| {
        let package = item.get("package").and_then(Item::as_str);
        package.unwrap_or(name) != crate::library::PACKAGE
    });
    let paths = of_others.filter_map(|(_, item)| Some(item.get("path")?.as_str()?.to_owned()));
    paths.collect()
}

/// Returns the library name in Rust code, if the manifest specifies one.
pub fn library_name(text: &str) -> Option<String> {
    let document = toml_edit::Document::parse(text).ok()?;
    let name = |table: &str| Some(document.get(table)?.get("name")?.as_str()?.replace('-', "_"));
    name("lib").or_else(|| name("package"))
}

/// Whether a manifest lists a dependency, given by its crate name in Rust code. False if `text` is
/// not valid TOML.
pub fn has_crate(text: &str, crate_name: &str) -> bool {
    crate_names(text, &[DEPENDENCIES]).contains(crate_name)
}

/// Adds a dependency in sorted order. An existing dependency of the same name is left alone,
/// regardless of its version.
///
/// # Errors
/// Fails if `text` is not valid TOML, or if `dependencies` is not a table.
pub fn add_dependency(text: &str, wanted: &Requirement) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    let Some(version) = &wanted.version else {
        return Ok(text.to_owned());
    };
    if has_crate(text, &wanted.crate_name()) {
        return Ok(text.to_owned());
    }
    let root = document.as_table_mut();
    let table = root
        .entry(DEPENDENCIES)
        .or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = table.as_table_mut() else {
        return Err(Obstacle::new("`dependencies` is not a table"));
    };
    let is_sorted = table.iter().map(|(name, _)| name).is_sorted();
    table.insert(&wanted.package, toml_edit::value(version));
    // Only sort if the table was sorted before.
    if is_sorted {
        table.sort_values();
    }
    Ok(document.to_string())
}

/// Removes a dependency that [`add_dependency`] added. It is kept if its version was changed or
/// other keys were added since.
///
/// # Errors
/// Fails if `text` is not valid TOML.
pub fn remove_dependency(text: &str, added: &Requirement) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    let table = document.get_mut(DEPENDENCIES).and_then(Item::as_table_mut);
    let Some(table) = table else {
        return Ok(text.to_owned());
    };
    let version = table.get(&added.package).and_then(Item::as_str);
    if version.is_none() || version != added.version.as_deref() {
        return Ok(text.to_owned());
    }
    table.remove(&added.package);
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Obstacle> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Obstacle::new(format!("it does not parse ({})", error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "[package]\nname = \"shop\"\n\n[dependencies]\nclap = \"4\" # flags\nkube = { version = \"5\" }\n\n[features]\n";

    #[test]
    fn adds_dependency_in_order_and_removes_it() {
        let wanted = Requirement::parse("gateway-api@0.22").expect("a crate");
        let after = add_dependency(BEFORE, &wanted).expect("TOML");
        assert_eq!(after, BEFORE.replace("kube =", "gateway-api = \"0.22\"\nkube ="));
        assert!(has_crate(&after, "gateway_api") && !has_crate(BEFORE, "gateway_api"));
        assert_eq!(add_dependency(&after, &wanted).as_deref(), Ok(after.as_str()));
        assert_eq!(remove_dependency(&after, &wanted).as_deref(), Ok(BEFORE));
    }

    #[test]
    fn keeps_dependencies_that_it_did_not_add() {
        let wanted = Requirement::parse("kube@6").expect("a crate");
        assert_eq!(add_dependency(BEFORE, &wanted).as_deref(), Ok(BEFORE));
        assert_eq!(remove_dependency(BEFORE, &wanted).as_deref(), Ok(BEFORE));
    }

    #[test]
    fn lists_paths_needed_by_a_build() {
        let text = "[dependencies]\na = { path = \"../a\" }\nb = \"1\"\nrbuilder = { package = \"rbuilder-runtime\", path = \"../r\" }\n\n[dependencies.c]\npath = \"c\"\n\n[dev-dependencies]\nd = { path = \"d\" }\n\n[build-dependencies]\ne = { path = \"/e\" }\n";
        assert_eq!(list_paths(text), ["../a", "c", "/e"]);
        assert_eq!(list_paths("["), [""; 0]);
    }

    #[test]
    fn rejects_invalid_crates() {
        for text in [
            "",
            "a b",
            "@1",
            "a@",
            "a@x",
            "github.com/cert-manager/cert-manager@v1.20.2",
        ] {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
        let plain = Requirement::parse("gateway-api").expect("a crate");
        assert_eq!(plain.version, None);
    }
}
