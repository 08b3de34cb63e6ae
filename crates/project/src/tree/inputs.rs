//! Documents named on the command line: files, directories, and the standard input.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;

use super::LARGEST;
use super::given::{is_given_directory, read_text};

const MOST_FILES: usize = 20_000;

/// Path shown for the standard input.
pub const STANDARD_INPUT: &str = "standard input";

/// An input file and its text.
#[derive(Debug)]
pub struct InputFile {
    /// The path as typed, or a path below the directory that was typed.
    pub path: String,
    /// The content.
    pub text: String,
    /// Whether the user named the file itself rather than a directory above it.
    pub is_named: bool,
}

/// Reads a file, all YAML and JSON files below a directory, or the standard input for `-`. Symlinks
/// in directories are not followed.
///
/// # Errors
/// Fails if an input cannot be read, is larger than [`LARGEST`] or is not UTF-8, or if there are
/// too many files.
pub fn read_inputs(dir: &Path, typed: &Path) -> Result<Vec<InputFile>> {
    if typed == Path::new("-") {
        let text = read_stream(&mut std::io::stdin().lock()).context("cannot read the standard input")?;
        return Ok(vec![named(STANDARD_INPUT, text)]);
    }
    let path = dir.join(typed);
    if !is_given_directory(&path, &typed.to_string_lossy())? {
        return Ok(vec![named(&typed.to_string_lossy(), read_text(&path)?)]);
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(&path).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot list {}", typed.display()))?;
        let has_documents = entry
            .path()
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if !entry.file_type().is_file() || !has_documents {
            continue;
        }
        if files.len() == MOST_FILES {
            bail!(
                "{} has more than {MOST_FILES} files: pass a directory with fewer",
                typed.display()
            );
        }
        let below = entry.path().strip_prefix(&path).unwrap_or(entry.path());
        files.push(InputFile {
            path: typed.join(below).to_string_lossy().into_owned(),
            text: read_text(entry.path())?,
            is_named: false,
        });
    }
    Ok(files)
}

fn named(path: &str, text: String) -> InputFile {
    InputFile {
        path: path.to_owned(),
        text,
        is_named: true,
    }
}

fn read_stream(source: &mut dyn std::io::Read) -> Result<String> {
    let mut text = String::new();
    source.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        bail!("it is larger than {} MiB", LARGEST >> 20);
    }
    Ok(text)
}
