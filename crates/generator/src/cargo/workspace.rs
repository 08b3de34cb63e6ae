//! Finds the workspace of a package, and the members of a workspace.

use std::collections::BTreeSet;
use std::rc::Rc;

use toml_edit::{Document, Item};

use super::file::{File, Files, string_at, strings_at, table_at};
use crate::Diagnostic;
use crate::sources::{Sources, join};

const MAX_ANCESTORS: usize = 32;

/// Returns the workspace of a package that is not a workspace root itself. As in Cargo: the one
/// named by `package.workspace`, or else the nearest parent with a `[workspace]` that does not
/// exclude the package.
pub(super) fn root_of(file: &File, files: &mut Files<'_>) -> Result<Option<Rc<File>>, Diagnostic> {
    if let Some(named) = file
        .table("package")
        .and_then(|package| string_at(package, "workspace"))
    {
        return files.get(&join(&file.folder, named));
    }
    let mut folder = file.folder.clone();
    for _ in 0..MAX_ANCESTORS {
        let above = join(&folder, "..");
        if above == folder {
            break;
        }
        folder = above;
        if let Some(candidate) = files.get(&folder)?
            && candidate.table("workspace").is_some()
            && !excludes(&candidate, &file.folder)
        {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

/// Returns the directories listed in `members` of a workspace root. Path dependencies, which are
/// members too, are not included.
pub(super) fn find_members(root: &File, sources: &dyn Sources) -> Result<BTreeSet<String>, Diagnostic> {
    let mut folders = BTreeSet::new();
    let Some(workspace) = root.table("workspace") else {
        return Ok(folders);
    };
    // A root package is a member without being listed.
    if root.table("package").is_some() {
        folders.insert(root.folder.clone());
    }
    for pattern in strings_at(workspace, "members") {
        let is_pattern = pattern.contains(['*', '?', '[']);
        for folder in expand(root, pattern, sources)? {
            let manifest = join(&folder, "Cargo.toml");
            let is_package = sources.text(&manifest).map_or(true, |text| text.is_some());
            // A pattern may match directories without a package, but an explicit member must be
            // one.
            if is_package && !excludes(root, &folder) {
                folders.insert(folder);
            } else if !is_package && !is_pattern {
                let message = format!("the member `{pattern}` has no `Cargo.toml`");
                return Err(root.error(workspace.get("members"), message, ""));
            }
        }
    }
    Ok(folders)
}

/// Returns true if a package in `folder` could be a member even if `members` doesn't list it.
pub(super) fn may_hold_member(root: &File, folder: &str) -> bool {
    root.table("workspace").is_some() && below(&root.folder, folder) && !excludes(root, folder)
}

fn excludes(root: &File, folder: &str) -> bool {
    let Some(workspace) = root.table("workspace") else {
        return false;
    };
    // As in Cargo, a path in `members` wins over `exclude`.
    let listed = strings_at(workspace, "members").any(|member| join(&root.folder, member) == folder);
    !listed
        && strings_at(workspace, "exclude").any(|excluded| {
            let excluded = join(&root.folder, excluded);
            excluded == folder || below(&excluded, folder)
        })
}

fn below(folder: &str, other: &str) -> bool {
    if folder.is_empty() {
        return !other.starts_with("..") && !other.starts_with('/');
    }
    if folder.split('/').all(|part| part == "..") {
        // `..` contains everything but its own parents.
        let above = format!("{folder}/..");
        return !other.starts_with('/') && other != above && !other.starts_with(&format!("{above}/"));
    }
    other
        .strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Expands e.g. `crates/*` to directories.
fn expand(root: &File, pattern: &str, sources: &dyn Sources) -> Result<Vec<String>, Diagnostic> {
    let mut folders = vec![root.folder.clone()];
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if !part.contains(['*', '?', '[']) {
            folders.iter_mut().for_each(|folder| *folder = join(folder, part));
            continue;
        }
        let mut next = Vec::new();
        for folder in folders {
            let names = sources.folders(&folder).map_err(|reason| {
                let at = root
                    .table("workspace")
                    .and_then(|workspace| workspace.get("members"));
                root.error(at, format!("failed to read `{folder}`: {reason}"), "")
            })?;
            next.extend(
                names
                    .iter()
                    .filter(|name| !name.starts_with('.') && matches(part, name))
                    .map(|name| join(&folder, name)),
            );
        }
        folders = next;
    }
    Ok(folders)
}

/// Whether a package belongs to the workspace above it, by Cargo's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// The manifest has no `[workspace]`, or its `[workspace]` excludes the package.
    None,
    /// The workspace lists the package.
    Listed,
    /// The workspace doesn't list the package, so Cargo refuses to build it.
    Unlisted,
}

/// Returns whether the package in `folder`, relative to the manifest above it, belongs to a
/// workspace. A manifest that isn't valid TOML counts as one without a workspace.
pub fn find_membership(manifest: &str, folder: &str) -> Membership {
    let Ok(document) = Document::parse(manifest) else {
        return Membership::None;
    };
    let Some(workspace) = table_at(document.as_table(), "workspace") else {
        return Membership::None;
    };
    let is_listed = strings_at(workspace, "members").any(|pattern| matches_path(pattern, folder));
    let is_excluded = strings_at(workspace, "exclude").any(|excluded| {
        let excluded = join("", excluded);
        excluded == folder || below(&excluded, folder)
    });
    match (is_listed, is_excluded) {
        (true, _) => Membership::Listed,
        (false, true) => Membership::None,
        (false, false) => Membership::Unlisted,
    }
}

/// Like `matches`, but for whole paths: `**` matches any number of directories.
fn matches_path(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let names: Vec<&str> = path.split('/').collect();
    matches_parts(&parts, &names)
}

fn matches_parts(parts: &[&str], names: &[&str]) -> bool {
    match (parts, names) {
        ([], names) => names.is_empty(),
        (["**", rest @ ..], names) => (0..=names.len()).any(|at| matches_parts(rest, &names[at..])),
        ([part, rest @ ..], [name, names @ ..]) => matches(part, name) && matches_parts(rest, names),
        (_, []) => false,
    }
}

/// Supports `*`, `?` and `[…]`.
fn matches(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            starts.into_iter().any(|at| matches(rest, &name[at..]))
        }
        Some('[') if letters.as_str().contains(']') => {
            let Some((set, rest)) = letters.as_str().split_once(']') else {
                return false;
            };
            let mut name = name.chars();
            name.next().is_some_and(|letter| in_set(set, letter)) && matches(rest, name.as_str())
        }
        Some(wanted) => {
            let mut name = name.chars();
            name.next()
                .is_some_and(|letter| wanted == '?' || wanted == letter)
                && matches(letters.as_str(), name.as_str())
        }
    }
}

fn in_set(set: &str, letter: char) -> bool {
    let (negated, set) = match set.strip_prefix('!') {
        Some(set) => (true, set),
        None => (false, set),
    };
    let set: Vec<char> = set.chars().collect();
    let ranges = set
        .windows(3)
        .any(|part| part[1] == '-' && (part[0]..=part[2]).contains(&letter));
    (ranges || set.contains(&letter)) != negated
}

pub(super) fn is_inherited(item: &Item) -> bool {
    let says = item
        .as_table_like()
        .and_then(|table| table.get("workspace")?.as_bool());
    says == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_patterns() {
        for (pattern, name, expected) in [
            ("*", "api", true),
            ("*-api", "shop-api", true),
            ("*-api", "shop", false),
            ("a?i", "api", true),
            ("v[12]", "v2", true),
            ("v[1-3]", "v2", true),
            ("v[!1-3]", "v2", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn finds_membership_of_new_package() {
        for (workspace, expected) in [
            ("[package]\nname = 'a'", Membership::None),
            ("[workspace", Membership::None),
            ("[workspace]", Membership::Unlisted),
            ("[workspace]\nmembers = ['crates/a']", Membership::Unlisted),
            ("[workspace]\nmembers = ['./crates/shop']", Membership::Listed),
            ("[workspace]\nmembers = ['crates/*']", Membership::Listed),
            ("[workspace]\nmembers = ['**']", Membership::Listed),
            (
                "[workspace]\nmembers = ['*']\nexclude = ['crates']",
                Membership::None,
            ),
            (
                "[workspace]\nmembers = ['crates/*']\nexclude = ['crates']",
                Membership::Listed,
            ),
        ] {
            assert_eq!(find_membership(workspace, "crates/shop"), expected, "{workspace}");
        }
    }

    #[test]
    fn compares_relative_directories() {
        for (folder, other, expected) in [
            ("", "api", true),
            ("", "../api", false),
            ("..", "../api", true),
            ("..", "api", true),
            ("..", "../../api", false),
            ("crates", "crates/api", true),
            ("crates", "cratesapi", false),
            ("", "/abs", false),
        ] {
            assert_eq!(below(folder, other), expected, "{folder} {other}");
        }
    }
}
