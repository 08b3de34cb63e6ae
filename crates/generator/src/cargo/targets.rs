//! The root files of a package's targets.

use std::collections::BTreeSet;

use toml_edit::{Item, TableLike};

use super::file::{File, bool_at, string_at, table_at};
use crate::Diagnostic;
use crate::sources::{Sources, join};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The name of the crate in Rust code.
    pub(crate) name: String,
    pub(crate) path: String,
}

pub(super) fn find_library(file: &File, sources: &dyn Sources) -> Option<Library> {
    let library = library_of(file);
    is_file(sources, &library.path).then_some(library)
}

pub(super) fn library_of(file: &File) -> Library {
    // Don't check that the root file exists: a published package that others depend on certainly
    // has a library.
    let lib = file.table("lib");
    let name = lib
        .and_then(|lib| string_at(lib, "name"))
        .or_else(|| string_at(file.table("package")?, "name"))
        .unwrap_or_default();
    let path = lib.and_then(|lib| string_at(lib, "path")).unwrap_or("src/lib.rs");
    Library {
        name: name.replace('-', "_"),
        path: join(&file.folder, path),
    }
}

pub(super) fn find_binaries(file: &File, sources: &dyn Sources) -> Result<Vec<String>, Diagnostic> {
    let found = find_named_binaries(file, sources)?;
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Returns the name and the root file of each binary, sorted by path.
pub(super) fn find_named_binaries(
    file: &File,
    sources: &dyn Sources,
) -> Result<Vec<(String, String)>, Diagnostic> {
    targets(file, sources, &BINARIES)
}

/// Returns the name and the root file of each example, sorted by path.
pub(super) fn find_examples(file: &File, sources: &dyn Sources) -> Result<Vec<(String, String)>, Diagnostic> {
    targets(file, sources, &EXAMPLES)
}

/// How Cargo discovers binaries or examples.
struct Sort {
    key: &'static str,
    folder: &'static str,
    /// The key that disables discovery.
    auto: &'static str,
    /// A root file outside of `folder`. Only binaries have one.
    main: Option<&'static str>,
}

const BINARIES: Sort = Sort {
    key: "bin",
    folder: "src/bin",
    auto: "autobins",
    main: Some("src/main.rs"),
};

const EXAMPLES: Sort = Sort {
    key: "example",
    folder: "examples",
    auto: "autoexamples",
    main: None,
};

fn targets(file: &File, sources: &dyn Sources, sort: &Sort) -> Result<Vec<(String, String)>, Diagnostic> {
    let package = file.table("package");
    let package_name = package
        .and_then(|package| string_at(package, "name"))
        .unwrap_or_default();
    let folder = join(&file.folder, sort.folder);
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for written in tables(file.root(), sort.key) {
        let Some(name) = string_at(written, "name") else {
            continue;
        };
        let candidates = match string_at(written, "path") {
            Some(path) => vec![join(&file.folder, path)],
            None => {
                // Only a binary named like the package can be in `src/main.rs`.
                let main = sort.main.filter(|_| name == package_name);
                let main = main.map(|main| join(&file.folder, main));
                let beside = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/main.rs")];
                beside.into_iter().chain(main).collect()
            }
        };
        if let Some(path) = candidates.into_iter().find(|path| is_file(sources, path)) {
            paths.insert(path.clone());
            found.insert((name.to_owned(), path));
        }
    }
    // Cargo discovers targets unless told otherwise, e.g. by `autobins = false`.
    if package.and_then(|package| bool_at(package, sort.auto)) != Some(false) {
        let main = sort.main.map(|main| join(&file.folder, main));
        let main = main.filter(|path| is_file(sources, path));
        let below = sources.rust_files(&folder).map_err(|reason| {
            let message = format!("failed to read `{folder}`: {reason}");
            file.error(None, message, "")
        })?;
        let automatic = below.into_iter().filter_map(|path| {
            let name = automatic_name(path.strip_prefix(&folder)?.strip_prefix('/')?)?.to_owned();
            Some((name, path))
        });
        let main = main.map(|path| (package_name.to_owned(), path));
        // Don't add a target with an explicit `path` twice.
        found.extend(automatic.chain(main).filter(|(_, path)| !paths.contains(path)));
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

/// E.g. `x` for both `x.rs` and `x/main.rs`.
fn automatic_name(path: &str) -> Option<&str> {
    match path.split_once('/') {
        None => path.strip_suffix(".rs"),
        Some((folder, "main.rs")) => Some(folder),
        Some(_) => None,
    }
}

/// Accepts both `[[bin]]` and `bin = [{ … }]`.
fn tables<'a>(root: &'a dyn TableLike, key: &str) -> Vec<&'a dyn TableLike> {
    match root.get(key) {
        Some(Item::ArrayOfTables(list)) => list.iter().map(|table| table as &dyn TableLike).collect(),
        Some(item) => item
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|value| value.as_inline_table())
            .map(|table| table as &dyn TableLike)
            .collect(),
        None => Vec::new(),
    }
}

pub(super) fn is_proc_macro(file: &File) -> bool {
    table_at(file.root(), "lib").is_some_and(|lib| {
        // Cargo also accepts the spelling `proc_macro`.
        bool_at(lib, "proc-macro")
            .or_else(|| bool_at(lib, "proc_macro"))
            .unwrap_or(false)
    })
}

fn is_file(sources: &dyn Sources, path: &str) -> bool {
    // Treat unreadable files as existing; reading them later reports the error.
    sources.text(path).map_or(true, |text| text.is_some())
}
