//! Edits of Cargo.toml: the table `[package.metadata.rbuilder]`, or that of the workspace. What is there stays.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use super::Obstacle;

/// A kind that is not written, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// `Kind.group`.
    pub kind: String,
    /// The reason, which becomes a comment.
    pub reason: String,
}

/// The folder and the files that CRDs are written to.
#[derive(Clone, Debug, Default)]
pub struct OutputSettings<'a> {
    /// The directory.
    pub crd_dir: Option<&'a str>,
    /// The pattern of file names.
    pub crd_file: Option<&'a str>,
    /// The files of CRDs that lie elsewhere, by the name of the CRD.
    pub crd_files: Option<&'a BTreeMap<String, String>>,
    /// True if errors hold back only what they concern.
    pub keep_going: bool,
}

/// Returns whether a package lists the kinds that are written; false for text that is not TOML.
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

/// Adds settings that are not there: to the package of a `Cargo.toml`, or to the workspace if there is none.
///
/// # Errors
/// Fails if the text is not TOML, or a table on the way has another form.
pub fn set_output(text: &str, settings: &OutputSettings<'_>) -> Result<String, Obstacle> {
    let files = settings.crd_files.filter(|files| !files.is_empty());
    let values = [
        ("crd-dir", settings.crd_dir.map(value)),
        ("crd-file", settings.crd_file.map(value)),
        ("keep-going", settings.keep_going.then(|| value(true))),
        (
            "crd-files",
            files.map(|files| {
                let entries = files.iter().map(|(crd, path)| (crd.as_str(), path.as_str()));
                Item::Value(Value::InlineTable(entries.collect::<InlineTable>()))
            }),
        ),
    ];
    if values.iter().all(|(_, item)| item.is_none()) {
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
    Ok(document.to_string())
}

/// Adds kinds to `skip` of a package, each with its reason in a comment.
///
/// # Errors
/// Fails if the text is not TOML, or `skip` is not a list.
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

/// A reason as a comment: without line ends and other characters that TOML refuses there.
fn one_line(reason: &str) -> String {
    let clean: String = reason
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    clean.trim().to_owned()
}

/// The table of rbuilder in the metadata, which is made if it does not exist.
fn own_table<'d>(
    document: &'d mut DocumentMut,
    part: &str,
) -> Result<&'d mut dyn toml_edit::TableLike, Obstacle> {
    let implicit = || {
        let mut table = Table::new();
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
    fn settings_are_added_and_what_is_there_stays() {
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
}
