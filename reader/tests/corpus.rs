//! The readers of items against `syn`: in every file that `syn` takes for Rust they find the same items,
//! attributes, names and types.
//!
//! The files are those of this repository. `CORPUS=<folder>` reads those of another one instead, such as cargo's
//! registry with all the crates that were ever fetched.

// The test's own files are what it is about, and the folder is the caller's choice.
#![allow(clippy::disallowed_methods)]

#[path = "corpus/ours.rs"]
mod ours;
#[path = "corpus/theirs.rs"]
mod theirs;

use std::fs;
use std::path::{Path, PathBuf};

/// Stands for tokens with comments between, which `syn` does not have.
const COMMENTED: &str = " /* … */";

/// Deep nesting costs `syn` much of the stack.
const STACK: usize = 256 << 20;

#[test]
fn every_file_is_read_as_syn_reads_it() {
    let folder = std::env::var_os("CORPUS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
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
        // `syn` panics on a few files that no rustc would take.
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
        // Where nothing is nested as deep as this, `syn` has no limit of its own but the stack.
        Err(error) if !error.is_error() => return Ok(()),
        Err(error) => return Err(format!("{} at `{}`", error.message, &text[error.place.range()])),
    };
    if theirs.iter().any(|line| line == "verbatim") {
        // What `syn` only passes on can be read; as what, it does not say.
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

/// Text without anything that does not count.
fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}
