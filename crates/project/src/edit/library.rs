//! Edits of Cargo.toml that set the source of the rbuilder library in every dependency table.

use toml_edit::{Decor, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use super::Obstacle;
use crate::library::{DEPENDENCY, Library, PACKAGE, Record, series};

const SOURCE: [&str; 9] = [
    "version",
    "git",
    "rev",
    "branch",
    "tag",
    "path",
    "base",
    "registry",
    "registry-index",
];

const TABLES: [&str; 5] = [
    "dependencies",
    "dev-dependencies",
    "dev_dependencies",
    "build-dependencies",
    "build_dependencies",
];

/// A manifest's dependencies on the library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Source of each dependency that specifies one.
    pub sources: Vec<Record>,
    /// Whether a dependency inherits its source with `workspace = true`.
    pub inherits: bool,
    /// Workspace members, as listed.
    pub members: Vec<String>,
}

/// Reads the dependencies on the library.
///
/// # Errors
/// Fails if `text` is not valid TOML.
pub fn read_dependencies(text: &str) -> Result<Dependencies, Obstacle> {
    let mut document = parse(text)?;
    let members = document
        .get("workspace")
        .and_then(|workspace| workspace.get("members")?.as_array())
        .map(|members| {
            members
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        });
    let mut found = Dependencies {
        members: members.unwrap_or_default(),
        ..Dependencies::default()
    };
    visit_dependencies(&mut document, &is_library, &mut |_, item| {
        match inherits(item) {
            true => found.inherits = true,
            false => found.sources.push(read_source(item)),
        }
        Ok(())
    })?;
    Ok(found)
}

/// Changes the library's source in every dependency that specifies one. Comments, other keys and
/// their order are preserved.
///
/// # Errors
/// Fails if `text` is not valid TOML, or if a dependency has a comment in an inline table that
/// could get lost.
pub fn set_library(text: &str, library: &Library) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    visit_dependencies(&mut document, &is_library, &mut |name, item| {
        if inherits(item) || is_current(name, item, library) {
            return Ok(());
        }
        set_source(name, item, library)
    })?;
    Ok(document.to_string())
}

/// Moves the dependencies on other packages, such as kube, to the releases that the library is built
/// on. Their types are part of the library's functions, and each release has its own. A requirement
/// of the same series stays, and so do ranges, exact versions, and dependencies from another source.
///
/// # Errors
/// Fails if `text` is not valid TOML.
pub fn set_releases(text: &str, releases: &[(&str, &str)]) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    for (package, release) in releases {
        let is_package = |name: &str, item: &Item| {
            item.get("package").and_then(Item::as_str).unwrap_or(name) == *package
                && SOURCE[1..].iter().all(|key| item.get(key).is_none())
        };
        visit_dependencies(&mut document, &is_package, &mut |_, item| {
            let version = match item.is_table_like() {
                true => item.get_mut("version"),
                false => Some(item),
            };
            let Some(Item::Value(version)) = version else {
                return Ok(());
            };
            let is_caret = |found: &str| !found.contains([',', '<', '>', '=', '~', '*']);
            if version
                .as_str()
                .is_some_and(|found| is_caret(found) && series(found) != series(release))
            {
                let decor = version.decor().clone();
                *version = Value::from(*release);
                *version.decor_mut() = decor;
            }
            Ok(())
        })?;
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Obstacle> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Obstacle::new(format!("it does not parse ({})", error.message()))
    })
}

type Wanted<'a> = &'a dyn Fn(&str, &Item) -> bool;

/// Visits the wanted dependencies of every table.
fn visit_dependencies(
    document: &mut DocumentMut,
    wanted: Wanted<'_>,
    visit: &mut dyn FnMut(&str, &mut Item) -> Result<(), Obstacle>,
) -> Result<(), Obstacle> {
    let root = document.as_table_mut();
    visit_tables(root, wanted, visit)?;
    if let Some(workspace) = root.get_mut("workspace").and_then(Item::as_table_like_mut) {
        visit_tables(workspace, wanted, visit)?;
    }
    if let Some(targets) = root.get_mut("target").and_then(Item::as_table_like_mut) {
        for (_, target) in targets.iter_mut() {
            if let Some(target) = target.as_table_like_mut() {
                visit_tables(target, wanted, visit)?;
            }
        }
    }
    Ok(())
}

fn visit_tables(
    parent: &mut dyn TableLike,
    wanted: Wanted<'_>,
    visit: &mut dyn FnMut(&str, &mut Item) -> Result<(), Obstacle>,
) -> Result<(), Obstacle> {
    for name in TABLES {
        let Some(table) = parent.get_mut(name).and_then(Item::as_table_like_mut) else {
            continue;
        };
        for (key, item) in table.iter_mut() {
            if wanted(key.get(), item) {
                visit(key.get(), item)?;
            }
        }
    }
    Ok(())
}

fn is_library(name: &str, item: &Item) -> bool {
    match item.get("package").and_then(Item::as_str) {
        // An unrelated package on a registry may be called `rbuilder`.
        Some(package) => package == PACKAGE,
        None => [DEPENDENCY, PACKAGE].contains(&name),
    }
}

fn inherits(item: &Item) -> bool {
    item.get("workspace").and_then(Item::as_bool) == Some(true)
}

fn read_source(item: &Item) -> Record {
    let value = |key: &str| Some(item.get(key)?.as_str()?.to_owned());
    Record {
        version: value("version").or_else(|| item.as_str().map(str::to_owned)),
        git: value("git"),
        rev: ["rev", "tag", "branch"].into_iter().find_map(value),
        path: value("path"),
    }
}

fn is_current(name: &str, item: &Item, library: &Library) -> bool {
    let keys = library.keys();
    let is_named = name == PACKAGE || item.get("package").is_some();
    let value = |key: &str| item.get(key).and_then(Item::as_str);
    let has_no_other = SOURCE.iter().all(|key| {
        item.get(key).is_none() || keys.iter().any(|(known, _)| known == key) || is_kept(key, library)
    });
    is_named && has_no_other && keys.iter().all(|(key, expected)| value(key) == Some(expected))
}

fn is_kept(key: &str, library: &Library) -> bool {
    // A custom registry also applies to the new version.
    matches!(library, Library::Version { .. }) && key.starts_with("registry")
}

fn set_source(name: &str, item: &mut Item, library: &Library) -> Result<(), Obstacle> {
    let is_renamed = name != PACKAGE;
    match item {
        Item::Table(table) => set_in_table(table, is_renamed, library),
        Item::Value(Value::InlineTable(table)) => return set_in_braces(table, is_renamed, library),
        Item::Value(value) => {
            let mut table = InlineTable::new();
            set_in_braces(&mut table, is_renamed, library)?;
            // Keep the whitespace and the comment around the old value.
            *table.decor_mut() = value.decor().clone();
            *value = Value::InlineTable(table);
        }
        Item::None | Item::ArrayOfTables(_) => {
            return Err(Obstacle::new(format!(
                "dependency `{name}` is neither a version nor a table"
            )));
        }
    }
    Ok(())
}

/// Sets the keys of `[dependencies.rbuilder]` or `rbuilder.version = …`.
fn set_in_table(table: &mut Table, is_renamed: bool, library: &Library) {
    let mut comments: Option<(Decor, Decor)> = None;
    for key in SOURCE.iter().filter(|key| !is_kept(key, library)) {
        let Some((old, item)) = table.remove_entry(key) else {
            continue;
        };
        // The first key that we replace donates its comments to the new key.
        let after = item.as_value().map(|value| value.decor().clone());
        comments.get_or_insert_with(|| (old.leaf_decor().clone(), after.unwrap_or_default()));
    }
    if is_renamed && !table.contains_key("package") {
        table.insert("package", toml_edit::value(PACKAGE));
    }
    for (name, text) in library.keys() {
        let (mut key, mut value) = (Key::new(name), Value::from(text));
        if let Some((before, after)) = comments.take() {
            *key.leaf_decor_mut() = before;
            *value.decor_mut() = after;
        }
        table.insert_formatted(&key, Item::Value(value));
    }
    table.sort_values_by(|left, _, right, _| rank(left.get()).cmp(&rank(right.get())));
}

fn set_in_braces(table: &mut InlineTable, is_renamed: bool, library: &Library) -> Result<(), Obstacle> {
    let mut bare = table.clone();
    bare.decor_mut().clear();
    // `fmt` below would drop comments and line breaks.
    if bare.to_string().contains(['#', '\n']) {
        return Err(Obstacle::new(
            "the dependency is an inline table of several lines or with a comment",
        ));
    }
    let decor = table.decor().clone();
    for key in SOURCE.iter().filter(|key| !is_kept(key, library)) {
        table.remove(key);
    }
    if is_renamed && !table.contains_key("package") {
        table.insert("package", PACKAGE.into());
    }
    for (key, text) in library.keys() {
        table.insert(key, text.into());
    }
    table.sort_values_by(|left, _, right, _| rank(left.get()).cmp(&rank(right.get())));
    table.fmt();
    *table.decor_mut() = decor;
    Ok(())
}

/// Sort keys as in the scaffold: package, source, everything else.
fn rank(key: &str) -> usize {
    match SOURCE.iter().position(|known| *known == key) {
        _ if key == "package" => 0,
        Some(place) => 1 + place,
        None => 1 + SOURCE.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git() -> Library {
        Library::git("https://git.example.com/r", "0123abc").expect("a valid source")
    }

    /// Checks that switching to the git source gives `expected`, and that the edit is idempotent.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let changed = set_library(text, &git());
        assert_eq!(changed.as_deref(), Ok(expected));
        assert_eq!(set_library(expected, &git()).as_deref(), Ok(expected));
    }

    const GIT: &str = "git = \"https://git.example.com/r\", rev = \"0123abc\"";

    #[test]
    fn changes_all_tables_and_nothing_else() {
        check(
            "# Mine.\n[dependencies]\nserde = \"1\" # kept\n# The library.\nrbuilder = { package = \"rbuilder-runtime\", path = \"/r/crates/runtime\" } # here\n\n\
             [dev-dependencies]\nrbuilder = { package = \"rbuilder-runtime\", path = \"/r/crates/runtime\", features = [\"testing\"] }\n\n\
             [target.'cfg(unix)'.dependencies]\nrbuilder-runtime = { version = \"0.1\", optional = true }\n",
            &format!(
                "# Mine.\n[dependencies]\nserde = \"1\" # kept\n# The library.\nrbuilder = {{ package = \"rbuilder-runtime\", {GIT} }} # here\n\n\
                 [dev-dependencies]\nrbuilder = {{ package = \"rbuilder-runtime\", {GIT}, features = [\"testing\"] }}\n\n\
                 [target.'cfg(unix)'.dependencies]\nrbuilder-runtime = {{ {GIT}, optional = true }}\n"
            ),
        );
    }

    #[test]
    fn changes_every_notation() {
        check(
            "[dependencies]\nrbuilder = \"0.1\" # somebody else's\n",
            &format!(
                "[dependencies]\nrbuilder = {{ package = \"rbuilder-runtime\", {GIT} }} # somebody else's\n"
            ),
        );
        check(
            "[dependencies.rbuilder]\nfeatures = [\"http2\"]\npackage = \"rbuilder-runtime\"\n# Beside this.\npath = \"../r/crates/runtime\" # for now\n",
            "[dependencies.rbuilder]\npackage = \"rbuilder-runtime\"\n# Beside this.\ngit = \"https://git.example.com/r\" # for now\nrev = \"0123abc\"\nfeatures = [\"http2\"]\n",
        );
        check(
            "[dependencies]\nrbuilder.package = \"rbuilder-runtime\"\nrbuilder.path = \"../r/crates/runtime\"\n",
            "[dependencies]\nrbuilder.package = \"rbuilder-runtime\"\nrbuilder.git = \"https://git.example.com/r\"\nrbuilder.rev = \"0123abc\"\n",
        );
        check(
            "[dependencies]\noperator = { git = \"https://a.example.com/r\", branch = \"main\", package = \"rbuilder-runtime\" }\n",
            &format!("[dependencies]\noperator = {{ package = \"rbuilder-runtime\", {GIT} }}\n"),
        );
        check(
            "[workspace.dependencies]\nrbuilder = { package = \"rbuilder-runtime\", version = \"0.1\" }\n[dependencies]\nrbuilder = { workspace = true, features = [\"http2\"] }\n",
            &format!(
                "[workspace.dependencies]\nrbuilder = {{ package = \"rbuilder-runtime\", {GIT} }}\n[dependencies]\nrbuilder = {{ workspace = true, features = [\"http2\"] }}\n"
            ),
        );
    }

    #[test]
    fn moves_requirements_that_exclude_the_release() {
        let check = |before: &str, expected: &str| {
            let text = |line: &str| format!("[dependencies]\n{line} # mine\nserde = \"1\"\n");
            let moved = set_releases(&text(before), &[("kube", "5.0"), ("k8s-openapi", "0.29")]);
            assert_eq!(moved, Ok(text(expected)), "{before}");
        };
        let same = |line: &str| check(line, line);
        check("kube = \"4\"", "kube = \"5.0\"");
        check("kube = \"^4.2.1\"", "kube = \"5.0\"");
        check(
            "kube = { version = \"4.0\", default-features = false }",
            "kube = { version = \"5.0\", default-features = false }",
        );
        check(
            "k = { package = \"k8s-openapi\", version = \"0.28\", features = [\"v1_36\"] }",
            "k = { package = \"k8s-openapi\", version = \"0.29\", features = [\"v1_36\"] }",
        );
        same("kube = \"5\"");
        same("kube = \">=4, <6\"");
        same("kube = \"=4.2.1\"");
        same("kube = { version = \"5.1.2\", features = [\"ws\"] }");
        same("k8s-openapi = \"0.29.4\"");
        same("kube = { git = \"https://git.example.com/kube\", version = \"4\" }");
        same("kube.workspace = true");
        same("kube-runtime = \"4\"");
    }

    #[test]
    fn keeps_other_packages() {
        let text = "[dependencies]\nrbuilder = { package = \"mine\", path = \"../mine\" }\nserde = \"1\"\n";
        check(text, text);
    }

    #[test]
    fn new_version_keeps_the_registry() {
        let text = "[dependencies]\nrbuilder = { package = \"rbuilder-runtime\", version = \"0.1\", registry = \"ours\" }\n";
        let library = Library::version("0.2").expect("a version");
        assert_eq!(set_library(text, &library), Ok(text.replace("0.1", "0.2")));
    }

    #[test]
    fn rejects_invalid_tables() {
        assert!(set_library("[dependencies\n", &git()).is_err());
        assert!(set_library("[[dependencies.rbuilder]]\na = 1\n", &git()).is_err());
    }

    #[test]
    fn reads_sources() {
        let text = "[workspace]\nmembers = [\"api\"]\n[dependencies]\nrbuilder.workspace = true\n[dev-dependencies]\nrbuilder = { package = \"rbuilder-runtime\", git = \"u\", tag = \"v1\" }\n";
        let found = read_dependencies(text).expect("TOML");
        let source = Record {
            git: Some("u".into()),
            rev: Some("v1".into()),
            ..Record::default()
        };
        assert_eq!(
            found,
            Dependencies {
                sources: vec![source],
                inherits: true,
                members: vec!["api".into()]
            }
        );
    }
}
