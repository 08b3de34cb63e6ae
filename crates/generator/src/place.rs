//! Places in the files of a run.

use std::collections::BTreeMap;

use rbuilder_reader::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) file: FileId,
    pub(crate) span: Span,
}

/// A path has a single index, even if two targets include the file.
#[derive(Debug, Default)]
pub(crate) struct Files {
    paths: Vec<String>,
    ids: BTreeMap<String, FileId>,
}

impl Files {
    pub(crate) fn add(&mut self, path: &str) -> FileId {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let id = FileId(self.paths.len());
        self.paths.push(path.to_owned());
        self.ids.insert(path.to_owned(), id);
        id
    }

    pub(crate) fn path(&self, id: FileId) -> &str {
        &self.paths[id.0]
    }
}
