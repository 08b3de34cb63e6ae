//! The package adopted by `init --in-package`, as recorded in PROJECT.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{FILE, set};

/// A package that existed before the project. Its code, `Cargo.toml` and other pre-existing files
/// aren't part of the scaffold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdoptedPackage {
    /// Name of the Cargo package.
    pub name: String,
    /// Name of its library in Rust code; empty if there is none.
    #[serde(default)]
    pub library: String,
    /// Name of the binary that the image runs.
    pub binary: String,
    /// Root file of that binary, e.g. `src/main.rs`.
    pub main: String,
    /// Whether the binary accepts the arguments of rbuilder's manager, and thus has the manager's
    /// probes and metrics.
    #[serde(default)]
    pub manager: bool,
    /// Scaffold paths that are left out, because the package has its own file there or an
    /// equivalent one.
    #[serde(default)]
    pub left_out: Vec<String>,
}

impl AdoptedPackage {
    /// Crate name that tests and `main` import: the library's name, or the name that a library
    /// would have.
    pub fn crate_ident(&self) -> String {
        match self.library.as_str() {
            "" => self.name.replace('-', "_"),
            library => library.to_owned(),
        }
    }

    /// Whether a path of the scaffold is left out.
    pub fn leaves_out(&self, path: &str) -> bool {
        self.left_out.iter().any(|left_out| left_out == path)
    }

    /// Checks the values that end up in scaffolded files, some of which are read by shells and
    /// make.
    ///
    /// # Errors
    /// Fails with the key of an invalid value in PROJECT.
    pub fn check(&self) -> Result<()> {
        let is_name = |name: &str| {
            let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
                && name.bytes().all(is_char)
        };
        let is_path = crate::tree::check_relative(&self.main).is_ok();
        for (key, value, is_valid) in [
            ("name", &self.name, is_name(&self.name)),
            (
                "library",
                &self.library,
                self.library.is_empty() || is_name(&self.library),
            ),
            ("binary", &self.binary, is_name(&self.binary)),
            ("main", &self.main, is_path),
        ] {
            if !is_valid {
                bail!(
                    "invalid {key} `{}` of the package in {FILE}",
                    value.escape_debug()
                );
            }
        }
        Ok(())
    }

    pub(super) fn print(&self) -> Value {
        let mut all = Map::new();
        set(&mut all, "name", json!(self.name));
        set(&mut all, "library", json!(self.library));
        set(&mut all, "binary", json!(self.binary));
        set(&mut all, "main", json!(self.main));
        set(&mut all, "manager", json!(self.manager));
        set(&mut all, "leftOut", json!(self.left_out));
        Value::Object(all)
    }
}
