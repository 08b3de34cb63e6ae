//! Text to text: additions to files that a person owns. Only the lines that must change do, and adding what is
//! there already changes nothing.

pub mod kustomization;
pub mod rust;
pub mod version;

use crate::project::{FILE, Project};

/// A file is not laid out as an edit needs it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path} is not laid out as rbuilder knows it ({reason}); nothing was written\n{deed} by hand and run the command again:\n{lines}"
)]
pub struct Unrecognised {
    /// The file.
    pub path: String,
    /// What was not found.
    pub reason: String,
    /// What a person must do instead: `add these lines`.
    pub deed: &'static str,
    /// The lines, indented.
    pub lines: String,
}

/// The reason why an edit cannot be made, and what to write by hand where the edit knows better than its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    reason: String,
    by_hand: Option<(&'static str, String)>,
}

impl Obstacle {
    /// An obstacle for which the caller knows the lines.
    pub fn new(reason: impl Into<String>) -> Obstacle {
        Obstacle {
            reason: reason.into(),
            by_hand: None,
        }
    }

    /// The same with an instruction, as in [`Unrecognised::deed`], and the lines that it is about.
    #[must_use]
    pub fn with_lines(self, deed: &'static str, lines: impl Into<String>) -> Obstacle {
        Obstacle {
            by_hand: Some((deed, lines.into())),
            ..self
        }
    }

    /// The error about a file; `lines` are those to add when the edit does not know better.
    pub fn in_file(self, path: &str, lines: &str) -> Unrecognised {
        let (deed, lines) = self.by_hand.unwrap_or(("add these lines", lines.to_owned()));
        Unrecognised {
            path: path.to_owned(),
            reason: self.reason,
            deed,
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

/// Reads a file as its name says that it will be read, after an edit and before anything is written. A Rust file must
/// also have kept everything that it had.
///
/// # Errors
/// Says what is wrong with the edited text.
pub fn verify(path: &str, before: &str, after: &str) -> Result<(), String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        _ if name == FILE => Project::parse(after).map(drop).map_err(|error| error.to_string()),
        "rs" => rust::verify(before, after),
        "yaml" | "yml" => serde_saphyr::from_multiple::<serde_json::Value>(after)
            .map(drop)
            .map_err(|error| error.to_string()),
        "toml" => after
            .parse::<toml_edit::DocumentMut>()
            .map(drop)
            .map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_edit_broke_is_found() {
        for (path, before, after) in [
            ("src/lib.rs", "mod a;\n", "mod a;\nmod b\n"),
            ("src/lib.rs", "mod a;\n", "mod b;\n"),
            ("PROJECT", "", "version: 2\n"),
            ("config/kustomization.yaml", "", "a: [\n"),
            ("Cargo.toml", "", "a = \n"),
        ] {
            assert!(verify(path, before, after).is_err(), "{path}: {after}");
        }
        assert_eq!(verify("src/lib.rs", "mod a;\n", "mod a;\nmod b;\n"), Ok(()));
        assert_eq!(verify("a.yaml", "", "a: 1\n---\nb: 1\n"), Ok(()));
    }
}
