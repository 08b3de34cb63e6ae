//! Manifests from files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Error;

/// The YAML documents of a file, or of the manifests of a folder, in order; each with its file.
pub(super) fn documents(path: &Path) -> Result<Vec<(PathBuf, Value)>, Error> {
    let mut found = Vec::new();
    for file in files(path)? {
        let text = fs::read_to_string(&file).map_err(|err| Error::file("cannot read", &file, err))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|err| Error::file("cannot read", &file, err))?;
        found.extend(documents.into_iter().map(|document| (file.clone(), document)));
    }
    Ok(found)
}

/// The file itself, or the manifests of a folder by name; not those of its subfolders.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |err| Error::file("cannot read", path, err);
    if fs::metadata(path).map_err(read)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}
