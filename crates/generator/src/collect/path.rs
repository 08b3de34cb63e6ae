//! Paths of module files.

use rbuilder_reader::Attribute;

pub(super) use crate::sources::{join, parent};

pub(super) struct Found {
    pub(super) path: String,
    pub(super) folder: String,
}

/// Finds the file of `mod name;`. On failure, returns the paths that were tried.
pub(super) fn find_file(
    is_file: impl Fn(&str) -> bool,
    folder: &str,
    name: &str,
    written: Option<String>,
) -> Result<Found, String> {
    if let Some(path) = written {
        let folder = parent(&path).to_owned();
        return if is_file(&path) {
            Ok(Found { path, folder })
        } else {
            Err(format!("`{path}`"))
        };
    }
    let folder = join(folder, name);
    let (flat, nested) = (format!("{folder}.rs"), format!("{folder}/mod.rs"));
    if is_file(&flat) {
        return Ok(Found { path: flat, folder });
    }
    if is_file(&nested) {
        return Ok(Found { path: nested, folder });
    }
    Err(format!("`{flat}` or `{nested}`"))
}

pub(super) fn path_attribute(attrs: &[Attribute<'_>]) -> Option<String> {
    let attr = attrs.iter().find(|attr| attr.is("path"))?;
    attr.value_text().map(|text| text.into_owned())
}

/// The folders that the `mod` declarations of a file are relative to.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Where the files of child modules are.
    pub(super) folder: String,
    /// What `#[path]` is relative to: the folder of the file, or of the inline module.
    pub(super) path_folder: String,
}
