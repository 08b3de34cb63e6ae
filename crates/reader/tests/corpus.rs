//! Compares this crate with `syn`: every file that `syn` can parse must have the same items,
//! attributes, names and types.
//!
//! Reads the files of this repository. `CORPUS=<folder>` reads another folder instead, such as the
//! registry of cargo.

// The test reads its own source files, or a folder that the user chose.
#![allow(clippy::disallowed_methods)]

#[path = "corpus/ours.rs"]
mod ours;
#[path = "corpus/theirs.rs"]
mod theirs;

use std::fs;
use std::path::{Path, PathBuf};

/// A placeholder for source with comments, which `syn` does not preserve.
const COMMENTED: &str = " /* … */";

/// `syn` recurses deeply on nested code.
const STACK: usize = 256 << 20;

#[test]
fn reads_every_file_like_syn() {
    let folder = std::env::var_os("CORPUS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    assert!(files.len() > 100, "the files are missing");
    let comparing = std::thread::Builder::new().stack_size(STACK);
    let compared = comparing.spawn(move || compare_all(&files)).expect("a thread");
    let (read, problems) = compared.join().expect("the comparison ends");
    assert!(read > 100, "only {read} files are Rust");
    assert!(
        problems.is_empty(),
        "{} of {read} files differ:\n{}",
        problems.len(),
        problems.iter().take(100).cloned().collect::<Vec<_>>().join("\n")
    );
}

fn compare_all(files: &[PathBuf]) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut problems = Vec::new();
    for path in files {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        // `syn` panics on a few files that rustc rejects.
        let Ok(Some(theirs)) = std::panic::catch_unwind(|| theirs::outline(&text)) else {
            continue;
        };
        read += 1;
        if let Err(problem) = compare(&text, &theirs) {
            problems.push(format!("{}: {problem}", path.display()));
        }
    }
    (read, problems)
}

fn compare(text: &str, theirs: &[String]) -> Result<(), String> {
    let ours = match ours::outline(text) {
        Ok(ours) => ours,
        // Our reader limits the nesting, and `syn` does not.
        Err(error) if !error.is_error() => return Ok(()),
        Err(error) => return Err(format!("{} at `{}`", error.message, &text[error.place.range()])),
    };
    if theirs.iter().any(|line| line == "verbatim") {
        // `syn` does not say what it parsed.
        return Ok(());
    }
    let differ = |ours: &str, theirs: &str| match ours.strip_suffix(COMMENTED) {
        Some(known) => !theirs.starts_with(known),
        None => ours != theirs,
    };
    match ours
        .iter()
        .zip(theirs)
        .find(|(ours, theirs)| differ(ours, theirs))
    {
        Some((ours, theirs)) => Err(format!("\n  ours   {ours}\n  theirs {theirs}")),
        None if ours.len() == theirs.len() => Ok(()),
        None => Err(format!("{} lines, and syn has {}", ours.len(), theirs.len())),
    }
}

fn rust_files(folder: &Path, to: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with(".git") {
            rust_files(&path, to);
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
            to.push(path);
        }
    }
}

/// Removes white space.
fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}
