//! Files that the user names on the command line, anywhere on disk. Unlike project files, they may
//! be symlinks.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::{LARGEST, with_slashes};
use crate::disk::{read_bounded, too_large};

/// Reads a file, or those files in a directory whose names `is_wanted` accepts, in sorted order.
/// Returns each text with its path for messages.
///
/// # Errors
/// Fails if the path does not exist, or if a file is not valid UTF-8 of at most 64 MiB.
pub fn read_given_file(path: &Path, is_wanted: fn(&str) -> bool) -> Result<Vec<(String, String)>> {
    let shown = shown(path);
    if !is_given_directory(path, &shown)? {
        return Ok(vec![(shown, read_text(path)?)]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if is_file && path.to_str().is_some_and(is_wanted) {
            files.push(path);
        }
    }
    files.sort();
    files
        .iter()
        .map(|path| Ok((self::shown(path), read_text(path)?)))
        .collect()
}

/// Whether a path from the command line is a directory. `shown` is the path for error messages.
pub(super) fn is_given_directory(path: &Path, shown: &str) -> Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{shown} does not exist"),
        Err(error) => bail!("cannot read {shown}: {}", error.kind()),
    }
}

pub(super) fn read_text(path: &Path) -> Result<String> {
    let shown = shown(path);
    let file = fs::File::open(path)?;
    let Some(bytes) = read_bounded(file.into_parts().0, LARGEST)? else {
        bail!("{shown} is not a regular file, or it {}", too_large(LARGEST));
    };
    String::from_utf8(bytes).with_context(|| format!("{shown} is not valid UTF-8"))
}

fn shown(path: &Path) -> String {
    let shown = with_slashes(&path.display().to_string());
    shown.strip_prefix("./").unwrap_or(&shown).to_owned()
}
