//! Edits `[package.metadata.rbuilder]` or `[workspace.metadata.rbuilder]` in Cargo.toml. Everything
//! else is preserved.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value, value};

use super::Obstacle;

/// A kind to skip, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// `Kind.group`.
    pub kind: String,
    /// Reason, added as a comment.
    pub reason: String,
}

/// The output locations of CRDs.
#[derive(Clone, Debug, Default)]
pub struct OutputSettings<'a> {
    /// The directory.
    pub crd_dir: Option<&'a str>,
    /// The file name pattern.
    pub crd_file: Option<&'a str>,
    /// CRD files located elsewhere, by CRD name. Merged with existing entries.
    pub crd_files: Option<&'a BTreeMap<String, String>>,
    /// Whether an error only blocks the affected manifests.
    pub keep_going: bool,
}

/// Whether a package has an `only` list. False if `text` is not valid TOML.
pub fn has_only(text: &str) -> bool {
    let Ok(document) = toml_edit::Document::parse(text) else {
        return false;
    };
    let own = document
        .get("package")
        .and_then(|package| package.get("metadata"))
        .and_then(|metadata| metadata.get("rbuilder"));
    own.is_some_and(|own| own.get("only").is_some())
}

/// Adds missing settings, either to the package in a `Cargo.toml` or to the workspace if the
/// manifest has no package.
///
/// # Errors
/// Returns an error if `text` is not valid TOML, or if a parent table has another type.
pub fn set_output(text: &str, settings: &OutputSettings<'_>) -> Result<String, Obstacle> {
    let values = [
        ("crd-dir", settings.crd_dir.map(value)),
        ("crd-file", settings.crd_file.map(value)),
        ("keep-going", settings.keep_going.then(|| value(true))),
    ];
    let files = settings.crd_files.filter(|files| !files.is_empty());
    if values.iter().all(|(_, item)| item.is_none()) && files.is_none() {
        return Ok(text.to_owned());
    }
    let mut document = parse(text)?;
    let part = if document.contains_key("package") {
        "package"
    } else {
        "workspace"
    };
    let own = own_table(&mut document, part)?;
    for (key, item) in values {
        if let Some(item) = item
            && !own.contains_key(key)
        {
            own.insert(key, item);
        }
    }
    if let Some(files) = files {
        add_files(own, files)?;
    }
    Ok(document.to_string())
}

/// Sets the files of CRDs: inline for a single file, as a table for several.
fn add_files(own: &mut dyn TableLike, files: &BTreeMap<String, String>) -> Result<(), Obstacle> {
    if !own.contains_key("crd-files") {
        let item = match files.len() {
            1 => Item::Value(Value::InlineTable(InlineTable::new())),
            _ => Item::Table(Table::new()),
        };
        own.insert("crd-files", item);
    }
    let Some(table) = own.get_mut("crd-files").and_then(Item::as_table_like_mut) else {
        return Err(Obstacle::new("`crd-files` is not a table"));
    };
    for (crd, path) in files {
        if table.get(crd).and_then(Item::as_str) != Some(path) {
            table.insert(crd, value(path));
        }
    }
    Ok(())
}

/// Adds kinds to a package's `skip` list, each with its reason as a comment.
///
/// # Errors
/// Returns an error if `text` is not valid TOML, or if `skip` is not a list.
pub fn skip_kinds(text: &str, skips: &[Skip]) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    let own = own_table(&mut document, "package")?;
    let item = own.entry("skip").or_insert_with(|| value(Array::new()));
    let Some(list) = item.as_array_mut() else {
        return Err(Obstacle::new("`skip` is not a list"));
    };
    let known: Vec<String> = list
        .iter()
        .filter_map(|kind| kind.as_str().map(str::to_owned))
        .collect();
    let mut is_edited = false;
    for Skip { kind, reason } in skips {
        // An item without a group skips the kind in every group.
        let plain = kind.split('.').next().unwrap_or(kind);
        if known.iter().any(|known| known == kind || known == plain) {
            continue;
        }
        let mut entry = Value::from(kind.as_str());
        entry
            .decor_mut()
            .set_prefix(format!("\n    # {}\n    ", one_line(reason)));
        list.push_formatted(entry);
        is_edited = true;
    }
    if !is_edited {
        return Ok(text.to_owned());
    }
    list.set_trailing_comma(true);
    list.set_trailing("\n");
    Ok(document.to_string())
}

/// Adds a Cargo feature to enable when reading the package.
///
/// # Errors
/// Returns an error if `text` is not valid TOML, or if `features` is not a list.
pub fn add_feature(text: &str, feature: &str) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    let own = own_table(&mut document, "package")?;
    let item = own.entry("features").or_insert_with(|| value(Array::new()));
    let Some(list) = item.as_array_mut() else {
        return Err(Obstacle::new("`features` is not a list"));
    };
    if list.iter().any(|known| known.as_str() == Some(feature)) {
        return Ok(text.to_owned());
    }
    list.push(feature);
    Ok(document.to_string())
}

/// An item in the `skip` list of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedKind {
    /// The item, e.g. `Kind`, `Kind.group` or `*.group`.
    pub kind: String,
    /// Reason from the comment above the item, if `adopt` wrote that comment.
    pub reason: Option<SkipReason>,
}

/// Why `adopt` added a kind to `skip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The kind could not be read.
    Unreadable,
    /// The committed CRD couldn't be replaced with a generated one.
    Hindered,
}

/// The end of the comment on a CRD that cannot be replaced.
pub const RUN_AGAIN: &str = "run `rbuilder adopt` again";

/// Returns the items in a package's `skip` list. Empty if `text` is not valid TOML.
pub fn list_skipped(text: &str) -> Vec<SkippedKind> {
    let Ok(mut document) = parse(text) else {
        return Vec::new();
    };
    let own = find_own_table(&mut document);
    let Some(list) = own.and_then(|own| own.get("skip")?.as_array()) else {
        return Vec::new();
    };
    let skipped = |(position, item): (usize, &Value)| {
        Some(SkippedKind {
            kind: item.as_str()?.to_owned(),
            reason: find_reason(list, position),
        })
    };
    list.iter().enumerate().filter_map(skipped).collect()
}

/// Removes kinds that `adopt` added to a package's `skip` list, along with the reasons. Other
/// comments, and items without a reason from `adopt`, are kept.
///
/// # Errors
/// Returns an error if `text` is not valid TOML.
pub fn unskip_kinds(text: &str, kinds: &[String]) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    let Some(own) = find_own_table(&mut document) else {
        return Ok(text.to_owned());
    };
    let Some(list) = own.get_mut("skip").and_then(Item::as_array_mut) else {
        return Ok(text.to_owned());
    };
    let mut is_edited = false;
    // Backwards, so that the remaining positions stay valid.
    for position in (0..list.len()).rev() {
        let is_named = list
            .get(position)
            .and_then(Value::as_str)
            .is_some_and(|kind| kinds.iter().any(|named| named == kind));
        if is_named && find_reason(list, position).is_some() {
            remove_item(list, position);
            is_edited = true;
        }
    }
    if !is_edited {
        return Ok(text.to_owned());
    }
    // Keep a list that the user commented on.
    let is_empty = list.is_empty() && !has_comment(list.trailing());
    let key = own.key("skip");
    let is_explained = key.is_some_and(|key| key.leaf_decor().prefix().is_some_and(has_comment));
    if is_empty && !is_explained {
        own.remove("skip");
    }
    Ok(document.to_string())
}

/// Why `adopt` added an item. The item's only comment must be on a line above it in `adopt`'s
/// format, i.e. it starts with a source location or ends with [`RUN_AGAIN`].
fn find_reason(list: &Array, position: usize) -> Option<SkipReason> {
    let item = list.get(position)?;
    let (_, reason) = split_reason(prefix(item));
    // TOML attaches a trailing comment of this item to the next item's prefix.
    let behind = match list.get(position + 1) {
        Some(next) => prefix(next),
        None => raw(list.trailing()),
    };
    let is_explained = behind.lines().next().is_some_and(|line| line.contains('#'));
    if is_explained || item.decor().suffix().is_some_and(has_comment) {
        return None;
    }
    let reason = reason?;
    // With any other comment, assume that the user has a reason to skip the kind.
    if begins_with_place(reason) {
        Some(SkipReason::Unreadable)
    } else {
        reason.ends_with(RUN_AGAIN).then_some(SkipReason::Hindered)
    }
}

fn split_reason(prefix: &str) -> (&str, Option<&str>) {
    let trimmed = prefix.trim_end();
    match trimmed.rsplit_once('\n') {
        Some((before, line)) => (before, line.trim_start().strip_prefix("# ")),
        None => (trimmed, None),
    }
}

/// Whether a text starts with a location, e.g. `src/cup.rs:4:15: a tuple …`.
fn begins_with_place(text: &str) -> bool {
    let mut parts = text.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    let mut is_number = || {
        let part = parts.next();
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_number() && is_number() && (file.ends_with(".rs") || file.ends_with(".toml")) && parts.next().is_some()
}

/// Removes an item and the last comment line above it. Other comment lines move to the next item.
fn remove_item(list: &mut Array, position: usize) {
    let removed = list.remove(position);
    let kept = split_reason(prefix(&removed)).0.to_owned();
    if kept.trim().is_empty() {
        return;
    }
    match list.get_mut(position) {
        Some(next) => {
            let text = format!("{kept}{}", prefix(next));
            next.decor_mut().set_prefix(text);
        }
        None => {
            let text = format!("{kept}{}", raw(list.trailing()));
            list.set_trailing(text);
        }
    }
}

fn prefix(item: &Value) -> &str {
    item.decor().prefix().map(raw).unwrap_or_default()
}

fn raw(text: &RawString) -> &str {
    text.as_str().unwrap_or_default()
}

fn has_comment(text: &RawString) -> bool {
    raw(text).contains('#')
}

fn find_own_table(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    let package = document.get_mut("package")?.as_table_like_mut()?;
    let metadata = package.get_mut("metadata")?.as_table_like_mut()?;
    metadata.get_mut("rbuilder")?.as_table_like_mut()
}

/// Formats a reason as a comment, without line breaks and other characters that TOML comments can't
/// contain.
fn one_line(reason: &str) -> String {
    let clean: String = reason
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    clean.trim().to_owned()
}

fn own_table<'d>(document: &'d mut DocumentMut, part: &str) -> Result<&'d mut dyn TableLike, Obstacle> {
    let implicit = || {
        let mut table = Table::new();
        // An implicit table has no header, which avoids an empty `[package.metadata]`.
        table.set_implicit(true);
        Item::Table(table)
    };
    let not_a_table = |name: &str| Obstacle::new(format!("`{name}` is not a table"));
    let Some(part) = document.get_mut(part).and_then(Item::as_table_like_mut) else {
        return Err(not_a_table(part));
    };
    let metadata = part.entry("metadata").or_insert_with(implicit);
    let Some(metadata) = metadata.as_table_like_mut() else {
        return Err(not_a_table("metadata"));
    };
    let own = metadata
        .entry("rbuilder")
        .or_insert_with(|| Item::Table(Table::new()));
    own.as_table_like_mut().ok_or_else(|| not_a_table("rbuilder"))
}

fn parse(text: &str) -> Result<DocumentMut, Obstacle> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Obstacle::new(format!("it does not parse ({})", error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(kind: &str) -> Skip {
        Skip {
            kind: format!("{kind}.x.io"),
            reason: "src/a.rs:1:2: cannot\nread".into(),
        }
    }

    #[test]
    fn adds_settings_and_keeps_existing_content() {
        let files = BTreeMap::from([("cups.x.io".to_owned(), "deploy/crd.yaml".to_owned())]);
        let settings = OutputSettings {
            crd_dir: Some("charts/crds"),
            crd_files: Some(&files),
            keep_going: true,
            ..OutputSettings::default()
        };
        let package = "[package]\nname = \"shop\" # ours\n\n[dependencies]\nkube = \"3\"\n";
        let edited = set_output(package, &settings).expect("TOML");
        let own = "[package.metadata.rbuilder]\ncrd-dir = \"charts/crds\"\nkeep-going = true\ncrd-files = { \"cups.x.io\" = \"deploy/crd.yaml\" }\n";
        assert!(edited.contains(own) && edited.contains("# ours"), "{edited}");
        assert_eq!(set_output(&edited, &settings).as_deref(), Ok(edited.as_str()));
        let other = OutputSettings {
            crd_dir: Some("elsewhere"),
            ..OutputSettings::default()
        };
        assert_eq!(set_output(&edited, &other).as_deref(), Ok(edited.as_str()));
        let workspace = set_output("[workspace]\nmembers = []\n", &other).expect("TOML");
        assert!(
            workspace.contains("[workspace.metadata.rbuilder]\ncrd-dir = \"elsewhere\"\n"),
            "{workspace}"
        );
        assert_eq!(
            set_output(package, &OutputSettings::default()).as_deref(),
            Ok(package)
        );
    }

    #[test]
    fn kinds_are_skipped_once() {
        let package = "[package]\nname = \"shop\"\n";
        let edited = skip_kinds(package, &[skip("Cup")]).expect("TOML");
        let own =
            "[package.metadata.rbuilder]\nskip = [\n    # src/a.rs:1:2: cannot read\n    \"Cup.x.io\",\n]\n";
        assert!(edited.contains(own), "{edited}");
        assert_eq!(
            skip_kinds(&edited, &[skip("Cup")]).as_deref(),
            Ok(edited.as_str())
        );
        let both = skip_kinds(&edited, &[skip("Cup"), skip("Pot")]).expect("TOML");
        assert!(
            both.contains("\"Cup.x.io\",\n    # src/a.rs:1:2: cannot read\n    \"Pot.x.io\",\n]"),
            "{both}"
        );
        let plain = "[package]\nmetadata.rbuilder.skip = [\"Cup\"]\n";
        assert_eq!(skip_kinds(plain, &[skip("Cup")]).as_deref(), Ok(plain));
        assert!(skip_kinds("[package]\nmetadata = 1\n", &[skip("Cup")]).is_err());
    }

    #[test]
    fn removes_only_items_with_a_reason_above() {
        let check = |list: &str, expected: &str| {
            let text = format!("[package.metadata.rbuilder]\ncrd-dir = \"crds\"\n{list}");
            let edited = unskip_kinds(&text, &["Cup.x.io".to_owned()]).expect("TOML");
            assert_eq!(
                edited,
                format!("[package.metadata.rbuilder]\ncrd-dir = \"crds\"\n{expected}")
            );
        };
        let same = |list: &str| check(list, list);
        let reason = "    # src/a.rs:1:2: cannot read\n";
        check(&format!("skip = [\n{reason}    \"Cup.x.io\",\n]\n"), "");
        check(
            &format!("skip = [\n    \"Pot\", # ours\n{reason}    \"Cup.x.io\",\n    \"Can\",\n]\n"),
            "skip = [\n    \"Pot\", # ours\n    \"Can\",\n]\n",
        );
        check(
            &format!("skip = [\n    \"Pot\",\n    # ours\n{reason}    \"Cup.x.io\",\n]\n"),
            "skip = [\n    \"Pot\",\n    # ours\n]\n",
        );
        check(
            &format!("# ours\nskip = [\n{reason}    \"Cup.x.io\",\n]\n"),
            "# ours\nskip = [\n]\n",
        );
        same("skip = [\"Cup.x.io\"]\n");
        same("skip = [\n    # it is Anna's\n    \"Cup.x.io\",\n]\n");
        same("skip = [\n    # no CRD of the group `x.io` is committed\n    \"Cup.x.io\",\n]\n");
        same(&format!("skip = [\n{reason}    \"Cup.x.io\", # still\n]\n"));
        same(&format!(
            "skip = [\n{reason}    \"Cup.x.io\", # still\n    \"Pot\",\n]\n"
        ));
        same(&format!("skip = [\n{reason}    \"Pot.x.io\",\n]\n"));
    }
}
