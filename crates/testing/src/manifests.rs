//! Reads manifests from files.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

/// Parses the YAML documents in a file or in all manifests of a directory, each with the path of
/// its file.
pub(crate) fn read_documents(path: &Path) -> io::Result<Vec<(PathBuf, Value)>> {
    let mut found = Vec::new();
    for file in manifest_files(path)? {
        let text = fs::read_to_string(&file).map_err(|err| read_error(&file, err))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|err| read_error(&file, err))?;
        found.extend(documents.into_iter().map(|document| (file.clone(), document)));
    }
    Ok(found)
}

// Not recursive.
fn manifest_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let read = |err| read_error(path, err);
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

fn read_error(path: &Path, cause: impl Display) -> io::Error {
    io::Error::other(format!("cannot read {}: {cause}", path.display()))
}
