//! Saved failing histories, replayed as regression tests.

use std::io::ErrorKind;
use std::path::Path;

use crate::history::History;

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) history: History,
    pub(crate) outcome: KeptOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptOutcome {
    /// Still fails.
    Fails,
    Passes,
    /// Outdated: the operator no longer sends any of the disturbed requests.
    NotReached,
    /// Skipped, because the operator fails even without perturbations.
    NotRun,
}

impl KeptOutcome {
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

/// Reads a file with one history per line. A missing file is treated as empty. Errors contain the
/// path and line number.
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
    fn rejects_lines_that_do_not_fit_the_test() {
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
