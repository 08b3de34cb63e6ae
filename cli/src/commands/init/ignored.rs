//! The lines that `init --in-package` adds to the `.gitignore` of a package.

use anyhow::Result;

use crate::tree::Tree;

const BUILT: [&str; 3] = ["/target/", "/bin/", "/dist/"];

/// Chooses the scaffolded lines for files that the project generates, except for directories in
/// which the package has files.
pub(super) fn choose_lines(tree: &Tree, scaffolded: &str) -> Result<String> {
    let mut chosen = String::new();
    let mut comment = "";
    for line in scaffolded.split_inclusive('\n') {
        let entry = line.trim();
        if entry.is_empty() || entry.starts_with('#') {
            comment = if entry.is_empty() { "" } else { line };
            continue;
        }
        let is_chosen = match BUILT.contains(&entry) {
            true => entry == BUILT[0] || !has_files(tree, entry.trim_matches('/'))?,
            // Lines about editors and settings are up to the user.
            false => entry.contains("rbuilder"),
        };
        if is_chosen {
            let space = if comment.is_empty() || chosen.is_empty() {
                ""
            } else {
                "\n"
            };
            chosen.push_str(&format!("{space}{comment}{line}"));
            comment = "";
        }
    }
    Ok(chosen)
}

fn has_files(tree: &Tree, folder: &str) -> Result<bool> {
    Ok(!tree.list(folder)?.is_empty() || !tree.list_folders(folder)?.is_empty())
}
