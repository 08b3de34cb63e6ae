//! Finds project files by name, e.g. YAML files.

use anyhow::Result;

use super::Tree;

/// No hand-written project is nested deeper or has more directories.
pub(super) const MAX_DEPTH: usize = 24;
const MAX_FOLDERS: usize = 20_000;

/// Directories with generated or third-party files.
pub(super) const PASSED_OVER: [&str; 4] = ["target", "node_modules", "vendor", "dist"];

impl Tree {
    /// Finds all files that end in `.yaml`, `.yml`, `.tpl` or `.json`, sorted. Hidden directories,
    /// symlinks and directories with generated files are skipped.
    ///
    /// # Errors
    /// Fails if a directory cannot be read.
    pub fn find_yaml(&self) -> Result<Vec<String>> {
        self.find_files(may_have_manifests)
    }

    /// Finds all files that `is_wanted` accepts. Searches like [`find_yaml`](Tree::find_yaml).
    ///
    /// # Errors
    /// Fails if a directory cannot be read.
    pub fn find_files(&self, is_wanted: fn(&str) -> bool) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), 0)];
        let mut seen = 0;
        while let Some((folder, depth)) = open.pop() {
            let (files, folders) = self.list_both(&folder)?;
            found.extend(files.into_iter().filter(|path| is_wanted(path)));
            seen += 1;
            if depth >= MAX_DEPTH || seen >= MAX_FOLDERS {
                continue;
            }
            let inner = folders.into_iter().filter(|path| {
                let name = path.rsplit('/').next().unwrap_or(path);
                !name.starts_with('.') && !PASSED_OVER.contains(&name)
            });
            open.extend(inner.map(|path| (path, depth + 1)));
        }
        found.sort();
        Ok(found)
    }
}

pub(super) fn may_have_manifests(path: &str) -> bool {
    [".yaml", ".yml", ".tpl", ".json"]
        .iter()
        .any(|ending| path.ends_with(ending))
}
