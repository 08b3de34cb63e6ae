//! Settings for projects without a PROJECT file, from `[package.metadata.rbuilder]` or
//! `[workspace.metadata.rbuilder]` in the project's `Cargo.toml`. `rbuilder adopt` creates them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use rbuilder_generator::{Levels, Sources};
use rbuilder_yaml::is_yaml;
use toml_edit::{Document, Item, TableLike};

use crate::tree::{Tree, check_relative};

/// Valid keys in a workspace. Keys in a package are checked by the generator.
const KEYS: [&str; 6] = ["crd-dir", "crd-file", "crd-files", "keep-going", "deny", "allow"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Settings {
    pub(in crate::commands) crd_dir: Option<String>,
    /// File name pattern of CRDs, with `{group}` and `{plural}`. Without `{plural}`, all CRDs are
    /// in one file.
    pub(in crate::commands) crd_file: Option<String>,
    pub(in crate::commands) crd_files: BTreeMap<String, String>,
    /// Whether errors only block the affected manifests. The default depends on the project.
    pub(in crate::commands) keep_going: Option<bool>,
    /// Which warnings to turn into errors, and which to suppress.
    pub(in crate::commands) levels: Levels,
}

pub(in crate::commands) const DEFAULT_FILE: &str = "{group}_{plural}.yaml";

impl Settings {
    /// Reads the settings of the project, or defaults without a `Cargo.toml`. Settings must not
    /// refer to anything outside of the project.
    pub(in crate::commands) fn read(tree: &Tree) -> Result<Settings> {
        // Cargo.toml may be a symlink, which only `sources` follows.
        let text = tree.sources([]).text("Cargo.toml").ok().flatten();
        match text.as_deref().map(Document::parse) {
            Some(Ok(document)) => Settings::of(document.as_table()),
            // The generator reports invalid TOML.
            Some(Err(_)) | None => Ok(Settings::default()),
        }
    }

    pub(in crate::commands) fn has_places(&self) -> bool {
        self.crd_dir.is_some() || self.crd_file.is_some() || !self.crd_files.is_empty()
    }

    /// Splits the settings in two: for CRDs in a directory, given with a trailing `/`, and for all
    /// others.
    pub(super) fn split(&self, folder: &str) -> (Settings, Settings) {
        let is_below = |path: &String| path.starts_with(folder);
        let (files_below, files): (BTreeMap<_, _>, BTreeMap<_, _>) = self
            .crd_files
            .clone()
            .into_iter()
            .partition(|(_, path)| is_below(path));
        let below = Settings {
            crd_files: files_below,
            ..Settings::default()
        };
        let others = Settings {
            crd_files: files,
            ..Settings::default()
        };
        // Without a directory, the pattern applies to the default directory.
        match self.crd_dir.as_ref().is_none_or(is_below) {
            true => (
                Settings {
                    crd_files: below.crd_files,
                    ..self.clone()
                },
                others,
            ),
            false => (
                below,
                Settings {
                    crd_files: others.crd_files,
                    ..self.clone()
                },
            ),
        }
    }

    fn of(document: &dyn TableLike) -> Result<Settings> {
        let mut settings = Settings::default();
        for part in ["workspace", "package"] {
            let own = document
                .get(part)
                .and_then(|part| part.get("metadata"))
                .and_then(|metadata| metadata.get("rbuilder"));
            let Some(own) = own.and_then(Item::as_table_like) else {
                continue;
            };
            if part == "workspace"
                && let Some((key, _)) = own.iter().find(|(key, _)| !KEYS.contains(key))
            {
                bail!(
                    "unknown key `{key}` in `[workspace.metadata.rbuilder]` of Cargo.toml: expected {}",
                    KEYS.map(|key| format!("`{key}`")).join(", ")
                );
            }
            settings
                .add(own)
                .with_context(|| format!("failed to read `[{part}.metadata.rbuilder]` in Cargo.toml"))?;
        }
        Ok(settings)
    }

    fn add(&mut self, own: &dyn TableLike) -> Result<()> {
        if let Some(item) = own.get("crd-dir") {
            let folder = string(item, "crd-dir")?.trim_end_matches('/');
            check_relative(folder).context("`crd-dir` must be a directory within the project")?;
            self.crd_dir = Some(folder.to_owned());
        }
        if let Some(item) = own.get("crd-file") {
            let name = string(item, "crd-file")?;
            if name.contains('/') || !is_yaml(name) {
                bail!("`crd-file` must be a file name that ends in .yaml or .yml; found `{name}`");
            }
            if name.contains("{group}") && !name.contains("{plural}") {
                bail!("`crd-file` must contain `{{plural}}` if it contains `{{group}}`; found `{name}`");
            }
            self.crd_file = Some(name.to_owned());
        }
        if let Some(item) = own.get("crd-files") {
            let Some(files) = item.as_table_like() else {
                bail!("`crd-files` must be a table of paths by the names of CRDs");
            };
            for (crd, item) in files.iter() {
                let path = string(item, "crd-files")?;
                check_relative(path)
                    .with_context(|| format!("the file of `{crd}` must be within the project"))?;
                if !is_yaml(path) {
                    bail!("the file of `{crd}` must end in .yaml or .yml; found `{path}`");
                }
                self.crd_files.insert(crd.to_owned(), path.to_owned());
            }
        }
        if let Some(item) = own.get("keep-going") {
            let Some(keep_going) = item.as_bool() else {
                bail!("`keep-going` must be `true` or `false`");
            };
            self.keep_going = Some(keep_going);
        }
        let mut levels = Levels::default();
        for word in strings(own, "allow")? {
            levels
                .allow(word)
                .map_err(|reason| anyhow!("`allow`: {reason}"))?;
        }
        for word in strings(own, "deny")? {
            levels.deny(word).map_err(|reason| anyhow!("`deny`: {reason}"))?;
        }
        self.levels.extend(&levels);
        Ok(())
    }
}

fn strings<'a>(own: &'a dyn TableLike, key: &str) -> Result<Vec<&'a str>> {
    let Some(item) = own.get(key) else {
        return Ok(Vec::new());
    };
    let list = item.as_array();
    let list = list.and_then(|list| list.iter().map(|word| word.as_str()).collect::<Option<Vec<_>>>());
    list.ok_or_else(|| anyhow!("`{key}` must be a list of strings"))
}

fn string<'a>(item: &'a Item, key: &str) -> Result<&'a str> {
    match item.as_str() {
        Some(text) => Ok(text),
        None => bail!("`{key}` must be a string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings> {
        Settings::of(Document::parse(text).expect("TOML").as_table())
    }

    #[test]
    fn settings_of_packages_and_workspaces() {
        let settings = read(
            "[workspace.metadata.rbuilder]\ncrd-dir = \"charts/crds/\"\n[package.metadata.rbuilder]\nskip = []\nkeep-going = true\ncrd-file = \"{plural}.yml\"\n[package.metadata.rbuilder.crd-files]\n\"cups.x.io\" = \"deploy/cup.yaml\"\n",
        )
        .expect("settings");
        assert_eq!(settings.crd_dir.as_deref(), Some("charts/crds"));
        assert_eq!(settings.crd_file.as_deref(), Some("{plural}.yml"));
        assert_eq!(settings.crd_files["cups.x.io"], "deploy/cup.yaml");
        assert_eq!(settings.keep_going, Some(true));
    }

    #[test]
    fn rejects_outside_paths_and_wrong_types() {
        for (line, part) in [
            ("crd-dir = \"../x\"", "within the project"),
            ("crd-dir = \"/etc\"", "within the project"),
            ("crd-dir = 1", "must be a string"),
            ("crd-file = \"{group}.yaml\"", "`{plural}`"),
            ("crd-file = \"a/{plural}.yaml\"", "file name"),
            ("crd-files = { a = \"../a.yaml\" }", "within the project"),
            ("crd-files = { a = \"a.rs\" }", ".yaml"),
            ("keep-going = 1", "`true` or `false`"),
            ("deny = \"warnings\"", "`deny` must be a list of strings"),
            ("allow = [1]", "`allow` must be a list of strings"),
            ("allow = [\"RB9999\"]", "unknown code `RB9999`"),
            ("only = []", "unknown key `only`"),
        ] {
            let error = read(&format!("[workspace.metadata.rbuilder]\n{line}\n")).expect_err(line);
            assert!(format!("{error:#}").contains(part), "{error:#}");
        }
    }
}
