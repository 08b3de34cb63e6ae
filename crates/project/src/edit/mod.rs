//! Edits of files that belong to the user. Each edit is a function from text to text that is
//! idempotent and only changes the lines it has to.
//!
//! If we no longer recognize a file, the command fails before it writes anything, and prints the
//! lines to add by hand. It can then be run again.

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

/// Reason why an edit cannot be made, optionally with its own instruction for an edit by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    reason: String,
    by_hand: Option<(&'static str, String)>,
}

impl Obstacle {
    /// Creates an obstacle without its own instruction, so that [`in_file`](Self::in_file) uses the
    /// caller's.
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

    /// Sets the instruction and its lines, as in [`Unrecognised::instruction`].
    #[must_use]
    pub fn with_lines(self, instruction: &'static str, lines: impl Into<String>) -> Obstacle {
        Obstacle {
            by_hand: Some((instruction, lines.into())),
            ..self
        }
    }

    /// Converts the obstacle to an error about `path`. `lines` are the lines to add if the obstacle
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

/// Checks that an edited file parses, with a parser for its extension. A Rust file must also still
/// contain all of its previous text.
///
/// # Errors
/// Fails with a phrase that says what is wrong with `after`.
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

/// Counterpart of [`verify_edit`] for removed lines.
///
/// # Errors
/// Fails with a phrase if `after` is invalid or contains text that `before` lacks.
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
