//! Edits of files that belong to the user. Each edit is a function from text to text that changes
//! only the necessary lines and is idempotent.
//!
//! If we no longer recognize a file, the command fails before it writes anything, and prints the
//! lines to add. Once the user has added them, the command continues.

pub mod dependency;
pub mod kustomization;
pub mod library;
pub mod merge;
pub mod rust;
pub mod selection;
pub mod version;
pub mod workspace;

use crate::project::{FILE, Project};

/// The error for an edit that must be made by hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot edit {path}: {reason}; no files were written\n{instruction} by hand and run the command again:\n{lines}"
)]
pub struct Unrecognised {
    /// The file.
    pub path: String,
    /// Why the edit cannot be made, as a phrase.
    pub reason: String,
    /// What to do by hand, e.g. `add these lines`.
    pub instruction: &'static str,
    /// The lines, indented.
    pub lines: String,
}

/// The reason why an edit cannot be made. It may come with its own instruction for an edit by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    reason: String,
    by_hand: Option<(&'static str, String)>,
}

impl Obstacle {
    /// Creates an obstacle without an instruction of its own, so that [`in_file`](Self::in_file)
    /// uses the caller's.
    pub fn new(reason: impl Into<String>) -> Obstacle {
        Obstacle {
            reason: reason.into(),
            by_hand: None,
        }
    }

    /// Creates the obstacle for a list from which an entry cannot be removed.
    pub fn unlisted(reason: String, entry: &str) -> Obstacle {
        Obstacle::new(reason).with_lines("remove this entry", format!("- {entry}"))
    }

    /// Sets the instruction, as in [`Unrecognised::instruction`], and its lines.
    #[must_use]
    pub fn with_lines(self, instruction: &'static str, lines: impl Into<String>) -> Obstacle {
        Obstacle {
            by_hand: Some((instruction, lines.into())),
            ..self
        }
    }

    /// Turns the obstacle into an error for a file. `lines` are the lines to add if the obstacle
    /// has no instruction of its own.
    pub fn in_file(self, path: &str, lines: &str) -> Unrecognised {
        let (instruction, lines) = self.by_hand.unwrap_or(("add these lines", lines.to_owned()));
        Unrecognised {
            path: path.to_owned(),
            reason: self.reason,
            instruction,
            lines: format!("  {}", lines.trim_end().replace('\n', "\n  ")),
        }
    }
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Obstacle {
        Obstacle::new(reason)
    }
}

impl From<&str> for Obstacle {
    fn from(reason: &str) -> Obstacle {
        Obstacle::new(reason)
    }
}

/// Checks that an edited file parses. The file name determines the parser. For a Rust file we also
/// check that all of its previous text is still there.
///
/// # Errors
/// Fails with the reason why the edited text is invalid.
pub fn verify_edit(path: &str, before: &str, after: &str) -> Result<(), String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        _ if name == FILE => Project::parse(after).map(drop).map_err(|error| error.to_string()),
        "rs" => rust::verify_rust_edit(before, after),
        "yaml" | "yml" => rbuilder_yaml::parse_values(after)
            .map(drop)
            .map_err(|error| error.to_string()),
        "toml" => after
            .parse::<toml_edit::DocumentMut>()
            .map(drop)
            .map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

/// Checks a file from which lines were removed, as [`verify_edit`] does for added ones.
///
/// # Errors
/// Fails with the reason why the text is invalid, or if it contains text that was not in the file.
pub fn verify_cut(path: &str, before: &str, after: &str) -> Result<(), String> {
    if !path.ends_with(".rs") {
        return verify_edit(path, before, after);
    }
    rust::parse_file(after)?;
    if rust::has_only_lost(before, after) {
        Ok(())
    } else {
        Err("it would get text that it did not have".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_edits_that_break_the_file() {
        for (path, before, after) in [
            ("src/lib.rs", "mod a;\n", "mod a;\nmod b\n"),
            ("src/lib.rs", "mod a;\n", "mod b;\n"),
            ("PROJECT", "", "version: 2\n"),
            ("config/kustomization.yaml", "", "a: [\n"),
            ("Cargo.toml", "", "a = \n"),
        ] {
            assert!(verify_edit(path, before, after).is_err(), "{path}: {after}");
        }
        assert_eq!(verify_edit("src/lib.rs", "mod a;\n", "mod a;\nmod b;\n"), Ok(()));
        assert_eq!(verify_edit("a.yaml", "", "a: 1\n---\nb: 1\n"), Ok(()));
    }
}
