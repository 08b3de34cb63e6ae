//! A parsed `Cargo.toml` and errors that point into it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use toml_edit::{Document, Item, Table, TableLike};

use crate::sources::{Sources, join};
use crate::{Diagnostic, FileRange};

pub(super) struct File {
    pub(super) folder: String,
    pub(super) path: String,
    document: Document<Arc<str>>,
}

/// Caches parsed manifests: every member of a workspace looks up the workspace's manifest.
pub(super) struct Files<'a> {
    sources: &'a dyn Sources,
    read: BTreeMap<String, Option<Rc<File>>>,
}

impl<'a> Files<'a> {
    pub(super) fn new(sources: &'a dyn Sources) -> Self {
        Files {
            sources,
            read: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, folder: &str) -> Result<Option<Rc<File>>, Diagnostic> {
        if let Some(known) = self.read.get(folder) {
            return Ok(known.clone());
        }
        let file = File::read(self.sources, folder)?.map(Rc::new);
        self.read.insert(folder.to_owned(), file.clone());
        Ok(file)
    }
}

impl File {
    fn read(sources: &dyn Sources, folder: &str) -> Result<Option<File>, Diagnostic> {
        let path = join(folder, "Cargo.toml");
        let text = match sources.text(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(reason) => {
                return Err(manifest_error(
                    &path,
                    0..0,
                    format!("failed to read `{path}`: {reason}"),
                ));
            }
        };
        match Document::parse(text) {
            Ok(document) => Ok(Some(File {
                folder: folder.to_owned(),
                path,
                document,
            })),
            Err(problem) => {
                let range = problem.span().unwrap_or(0..0);
                let message = format!("failed to parse `{path}` as TOML: {}", problem.message());
                Err(manifest_error(&path, range, message))
            }
        }
    }

    pub(super) fn root(&self) -> &Table {
        self.document.as_table()
    }

    pub(super) fn table(&self, key: &str) -> Option<&dyn TableLike> {
        table_at(self.root(), key)
    }

    /// Creates an error that points at `at`, or that concerns the file as a whole.
    pub(super) fn error(&self, at: Option<&Item>, message: impl Into<String>, help: &str) -> Diagnostic {
        let range = at.and_then(Item::span).unwrap_or(0..0);
        manifest_error(&self.path, range, message).maybe_help((!help.is_empty()).then(|| help.to_owned()))
    }
}

pub(super) fn manifest_error(path: &str, range: Range<usize>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(FileRange::new(path, range), message)
}

pub(super) fn table_at<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a dyn TableLike> {
    table.get(key)?.as_table_like()
}

pub(super) fn string_at<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

pub(super) fn bool_at(table: &dyn TableLike, key: &str) -> Option<bool> {
    table.get(key)?.as_bool()
}

pub(super) fn strings_at<'a>(table: &'a dyn TableLike, key: &str) -> impl Iterator<Item = &'a str> {
    let list = table.get(key).and_then(Item::as_array);
    list.into_iter().flatten().filter_map(|value| value.as_str())
}
