//! Histories that have failed before, which are tried first.

use std::io::ErrorKind;
use std::path::Path;

use crate::history::History;

/// A kept history and what it has shown.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) history: History,
    pub(crate) outcome: KeptOutcome,
}

/// What a kept history has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptOutcome {
    /// An oracle reports it.
    Fails,
    /// No oracle reports it.
    Passes,
    /// None of the requests that it disturbs is made.
    NotReached,
    /// The operator already fails without perturbations.
    NotRun,
}

impl KeptOutcome {
    /// Returns the name in report files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Passes => "passes",
            Self::NotReached => "not-reached",
            Self::NotRun => "not-run",
        }
    }
}

impl Kept {
    pub(crate) fn new(history: History, outcome: KeptOutcome) -> Self {
        Self { history, outcome }
    }
}

/// Reads a file with one history on each line. A missing file is empty.
///
/// # Errors
/// Fails with a message for people if the file cannot be read, or if a line is not a history of the
/// test's declarations.
pub(crate) fn read(file: &Path, declarations: usize) -> Result<Vec<History>, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| {
            let history = line.parse::<History>();
            let checked = history.and_then(|history| history.check(declarations).map(|()| history));
            checked.map_err(|error| {
                let place = format!("{}:{}", file.display(), number + 1);
                format!("{place}: {error}: correct the line, or remove it")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_empty() {
        assert_eq!(read(Path::new("no/such.jsonl"), 1), Ok(Vec::new()));
    }

    #[test]
    fn lines_that_do_not_fit_the_test_are_rejected() {
        let folder = std::env::temp_dir().join(format!("rbuilder-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.jsonl");
        for (line, expected) in [
            ("{}", "not a history: missing field `steps` at line 1 column 2"),
            (
                r#"{"steps":[{"apply":1}]}"#,
                "a step names declaration 1, but the test has 1, counted from 0",
            ),
        ] {
            std::fs::write(&file, format!("{{\"steps\":[{{\"apply\":0}}]}}\n{line}\n")).unwrap();
            let expected = format!("{}:2: {expected}: correct the line, or remove it", file.display());
            assert_eq!(read(&file, 1), Err(expected));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
