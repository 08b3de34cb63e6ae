//! Files that the user names on the command line, anywhere on disk. Unlike project files, they may
//! be symlinks.

use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::{LARGEST, with_slashes};
use crate::disk::{Given, open_given, read_bounded, too_large};

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

/// Reads a file or a pipe, such as `<(kustomize build .)` of a shell.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let shown = shown(path);
    let cannot_read = || format!("cannot read {shown}");
    let bytes = match open_given(path).with_context(cannot_read)? {
        Given::File(file) => read_bounded(file, LARGEST).with_context(cannot_read)?,
        Given::Pipe(mut pipe) => read_pipe(&mut pipe).with_context(cannot_read)?,
        Given::Other => bail!("{shown} is neither a file nor a pipe"),
    };
    let Some(bytes) = bytes else {
        bail!("{shown} {}", too_large(LARGEST));
    };
    String::from_utf8(bytes).with_context(|| format!("{shown} is not valid UTF-8"))
}

fn read_pipe(pipe: &mut dyn Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    pipe.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

/// Opens a file or a pipe from the command line for reading, whatever its size.
///
/// # Errors
/// Fails if the path can't be opened, is a directory or a device, or is a pipe to which nothing
/// writes.
pub fn open_given_file(path: &Path) -> Result<Box<dyn Read>> {
    let shown = shown(path);
    match open_given(path).with_context(|| format!("cannot open {shown}"))? {
        Given::File(file) => Ok(Box::new(file)),
        Given::Pipe(pipe) => Ok(pipe),
        Given::Other => bail!("{shown} is neither a file nor a pipe"),
    }
}

fn shown(path: &Path) -> String {
    let shown = with_slashes(&path.display().to_string());
    shown.strip_prefix("./").unwrap_or(&shown).to_owned()
}
