//! `[package.metadata.rbuilder]`: selects kinds and enables features.

use rbuilder_diagnostic::suggest;
use toml_edit::{Item, TableLike};

use super::file::{File, table_at};
use crate::Diagnostic;
use std::ops::Range;

/// The first four are read here, the others by the command itself.
const KEYS: &[&str] = &[
    "only",
    "skip",
    "features",
    "serde-defaults",
    "crd-dir",
    "crd-file",
    "crd-files",
    "keep-going",
    "deny",
    "allow",
];

#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) only: Option<Vec<NamedKind>>,
    pub(crate) skip: Vec<NamedKind>,
    /// Enabled in addition to the default features.
    pub(crate) features: Vec<String>,
    /// True if serde's defaults become part of the schema even for types that derive schemars'
    /// `JsonSchema`.
    pub(crate) serde_defaults: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            only: None,
            skip: Vec::new(),
            features: Vec::new(),
            serde_defaults: true,
        }
    }
}

/// A kind in `only` or `skip`: `Kind`, `Kind.group` or `*.group`.
#[derive(Clone, Debug)]
pub(crate) struct NamedKind {
    pub(crate) name: String,
    path: String,
    range: Range<usize>,
}

impl NamedKind {
    pub(crate) fn problem(&self) -> Diagnostic {
        let message = format!("the package has no kind `{}`", self.name);
        super::file::manifest_error(&self.path, self.range.clone(), message)
    }
}

pub(super) fn read_selection(file: &File) -> Result<Selection, Diagnostic> {
    let Some(item) = file
        .table("package")
        .and_then(|package| table_at(package, "metadata"))
        .and_then(|metadata| metadata.get("rbuilder"))
    else {
        return Ok(Selection::default());
    };
    let Some(own) = item.as_table_like() else {
        let help = "write `[package.metadata.rbuilder]` with `only = […]` or `skip = […]` below it";
        return Err(file.error(Some(item), "expected a table for `rbuilder`", help));
    };
    if let Some((key, item)) = own.iter().find(|(key, _)| !KEYS.contains(key)) {
        let help = suggest::describe_candidates(key, KEYS.iter().copied());
        let message = format!("unknown key `{key}` in `[package.metadata.rbuilder]`");
        return Err(file.error(Some(item), message, &help));
    }
    let only = own.get("only").map(|_| names(own, "only", file)).transpose()?;
    let skip = names(own, "skip", file)?;
    let twice = skip
        .iter()
        .find(|skipped| only.iter().flatten().any(|named| named.name == skipped.name));
    if let Some(NamedKind { name, path, range }) = twice {
        let message = format!("`{name}` is in both `only` and `skip`");
        return Err(super::file::manifest_error(path, range.clone(), message));
    }
    let serde_defaults = match own.get("serde-defaults") {
        None => true,
        Some(item) => item.as_bool().ok_or_else(|| {
            let message = "expected a boolean for `serde-defaults`";
            file.error(Some(item), message, "write `serde-defaults = false`")
        })?,
    };
    Ok(Selection {
        only,
        skip,
        features: features(own, file)?,
        serde_defaults,
    })
}

fn features(own: &dyn TableLike, file: &File) -> Result<Vec<String>, Diagnostic> {
    let Some(item) = own.get("features") else {
        return Ok(Vec::new());
    };
    let names = item
        .as_array()
        .map(|list| list.iter().map(|name| Some(name.as_str()?.to_owned())));
    names.and_then(Iterator::collect).ok_or_else(|| {
        let message = "expected a list of features for `features`";
        file.error(Some(item), message, "write `features = [\"controller\"]`")
    })
}

fn names(own: &dyn TableLike, key: &str, file: &File) -> Result<Vec<NamedKind>, Diagnostic> {
    let Some(item) = own.get(key) else {
        return Ok(Vec::new());
    };
    let problem = |item: &Item| {
        let message = format!("expected a list of kinds for `{key}`");
        file.error(Some(item), message, &format!("write `{key} = [\"Memcached\"]`"))
    };
    let list = item.as_array().ok_or_else(|| problem(item))?;
    list.iter()
        .map(|value| {
            Ok(NamedKind {
                name: value.as_str().ok_or_else(|| problem(item))?.to_owned(),
                path: file.path.clone(),
                range: value.span().unwrap_or(0..0),
            })
        })
        .collect()
}
