//! Paths in messages, relative to the directory in which the user runs a command.
//!
//! Commands identify files by their path in the project, both in messages and in JSON. A
//! [`Viewpoint`] rewrites these paths before a message is printed, so that commands need not know
//! the current directory:
//!
//! ```text
//!  --> src/api/v1/cup.rs:3:5        in src/api/v1:   --> cup.rs:3:5
//! Next: edit src/main.rs, then run:                 Next: edit ../../main.rs, then run:
//!   make manifests                                    make -C ../../.. manifests
//! ```
//!
//! A word counts as a project path if the file exists. Messages may also name missing files, so a
//! word with a slash and an extension counts as well if it starts with a directory of the project.
//! Quoted text is code to paste, so it stays unchanged, and so do the source lines of a diagnostic.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use super::archives::is_archived;
use crate::color::color_sequence;

/// The directory below a project that paths in messages are relative to.
#[derive(Debug)]
pub struct Viewpoint {
    project: PathBuf,
    /// The directories that lead from the project to the current directory.
    below: Vec<String>,
}

impl Viewpoint {
    /// The viewpoint of a directory in a project. `None` for the project directory itself and for
    /// directories outside the project.
    pub fn new(project: &Path, dir: &Path) -> Option<Viewpoint> {
        let project = plain_absolute(project)?;
        let dir = plain_absolute(dir)?;
        let below = dir.strip_prefix(&project).ok()?;
        let below: Vec<String> = below
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        (!below.is_empty()).then_some(Viewpoint { project, below })
    }

    /// Makes the path of a project file relative to the viewpoint.
    pub fn show_path(&self, path: &str) -> String {
        if is_absolute(path) || is_archived(path) {
            return path.to_owned();
        }
        let folder_end = path.len() - path.trim_end_matches('/').len();
        let names: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let common = self
            .below
            .iter()
            .zip(&names)
            .take_while(|(below, name)| below == *name)
            .count();
        let up = std::iter::repeat_n("..", self.below.len() - common);
        let shown: Vec<&str> = up.chain(names[common..].iter().copied()).collect();
        let shown = match shown.is_empty() {
            true => ".".to_owned(),
            false => shown.join("/"),
        };
        shown + &path[path.len() - folder_end..]
    }

    /// Makes the paths in a message relative to the viewpoint, and `make` run in the project
    /// directory.
    pub fn show_message(&self, text: &str) -> String {
        text.split_inclusive('\n')
            .map(|line| self.show_line(line))
            .collect()
    }

    fn show_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let plain = without_colors(line);
        let plain = plain.trim_start();
        if plain
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start()
            .starts_with('|')
        {
            return Cow::Borrowed(line);
        }
        if plain.starts_with("--> ")
            && let Some(shown) = self.show_place(line)
        {
            return Cow::Owned(shown);
        }
        Cow::Owned(self.show_words(line))
    }

    /// Rewrites the location line of a diagnostic, e.g. ` --> src/lib.rs:3:5`. The path may contain
    /// spaces.
    fn show_place(&self, line: &str) -> Option<String> {
        let mut start = line.find("--> ")? + "--> ".len();
        while let Some(length) = color_sequence(&line[start..]) {
            start += length;
        }
        let place = line[start..].trim_end();
        let (rest, _) = place.rsplit_once(':')?;
        let (path, _) = rest.rsplit_once(':')?;
        let end = start + path.len();
        Some(format!(
            "{}{}{}",
            &line[..start],
            self.show_path(path),
            &line[end..]
        ))
    }

    fn show_words(&self, line: &str) -> String {
        let mut shown = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let length = color_sequence(rest).unwrap_or(0);
            let word = word_length(&rest[length..]);
            let (skipped, after) = rest.split_at(length);
            let (word, after) = after.split_at(word);
            let before = line.len() - rest.len() + skipped.len();
            shown.push_str(skipped);
            shown.push_str(&self.show_word(word, &line[..before], after));
            rest = after;
            if word.is_empty() && skipped.is_empty() {
                let c = rest.chars().next().unwrap_or_default();
                shown.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        shown
    }

    /// Rewrites a word of a message. `before` and `after` are the rest of its line.
    fn show_word<'a>(&self, word: &'a str, before: &str, after: &str) -> Cow<'a, str> {
        let starts_command = before.ends_with('`') || before.trim().is_empty() && before.len() > 1;
        if word == "make" && starts_command && after.starts_with(' ') {
            return Cow::Owned(format!("make -C {}", vec![".."; self.below.len()].join("/")));
        }
        let path = word.trim_end_matches('.');
        if before.ends_with('"') || !self.is_path(path) {
            return Cow::Borrowed(word);
        }
        Cow::Owned(self.show_path(path) + &word[path.len()..])
    }

    fn is_path(&self, word: &str) -> bool {
        let Some((first, rest)) = word.split_once('/') else {
            // A single component may be an ordinary word, e.g. `tests`.
            let is_name = word.contains('.') || word.starts_with(|c: char| c.is_ascii_uppercase());
            return is_name && self.project.join(word).is_file();
        };
        if matches!(first, "" | "." | "..") {
            return false;
        }
        let has_extension = rest.rsplit('/').next().is_some_and(|name| name.contains('.'));
        self.project.join(word).exists()
            || (has_extension || rest.ends_with('/')) && self.project.join(first).is_dir()
    }
}

/// A directory's absolute path without `..`, which [`std::path::absolute`] keeps on Unix.
fn plain_absolute(dir: &Path) -> Option<PathBuf> {
    // Resolve symlinks, because the OS also resolves them before it applies a `..` in the printed
    // path.
    if let Ok(resolved) = std::fs::canonicalize(dir) {
        return Some(resolved);
    }
    let mut plain = PathBuf::new();
    for part in std::path::absolute(dir).ok()?.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// Whether a path does not depend on the project directory, e.g. `/a`, `\\server\share` or `C:\a`.
fn is_absolute(path: &str) -> bool {
    let has_drive = || path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    path.starts_with(['/', '\\']) || has_drive()
}

/// Length of the word that `text` starts with. A word consists of characters that are common in
/// paths.
fn word_length(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '~' | '$');
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn without_colors(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[color_sequence(rest).unwrap_or(1)..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("a temporary folder");
        for path in [
            "PROJECT",
            "Cargo.toml",
            "Makefile",
            "src/main.rs",
            "src/api/v1/cup.rs",
            "config/crd/bases/cups.yaml",
            "apps/README",
            "tests/x.rs",
        ] {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "").expect("a file");
        }
        top
    }

    fn viewpoint(top: &tempfile::TempDir, dir: &str) -> Viewpoint {
        Viewpoint::new(top.path(), &top.path().join(dir)).expect("a directory below the project")
    }

    #[test]
    fn paths_are_relative_to_the_current_directory() {
        let top = project();
        for (dir, path, expected) in [
            ("src", "src/main.rs", "main.rs"),
            ("src", "Cargo.toml", "../Cargo.toml"),
            ("src", "src", "."),
            ("src", "src/", "./"),
            ("src/api", "src/main.rs", "../main.rs"),
            ("src/api/v1", "src/api/v1/cup.rs", "cup.rs"),
            ("src/api/v1", "src/api/v2/cup.rs", "../v2/cup.rs"),
            ("src/api/v1", "config/crd/bases/", "../../../config/crd/bases/"),
            ("src/api/v1", "src/api", ".."),
            (
                "src/api/v1",
                "../library/src/a b.rs",
                "../../../../library/src/a b.rs",
            ),
            ("src/api/v1", "/etc/x.rs", "/etc/x.rs"),
            ("src/api/v1", "C:\\library\\x.rs", "C:\\library\\x.rs"),
            ("src/api/v1", "\\\\server\\x.rs", "\\\\server\\x.rs"),
        ] {
            assert_eq!(viewpoint(&top, dir).show_path(path), expected, "{path} in {dir}");
        }
    }

    #[test]
    fn rewrites_paths_in_messages() {
        let top = project();
        for (dir, text, expected) in [
            ("src/api/v1", " --> src/api/v1/cup.rs:3:5\n", " --> cup.rs:3:5\n"),
            (
                "src",
                " --> ../my library/a.rs:3:5\n",
                " --> ../../my library/a.rs:3:5\n",
            ),
            (
                "src",
                "\x1b[1m\x1b[94m--> \x1b[0msrc/main.rs:3:5",
                "\x1b[1m\x1b[94m--> \x1b[0mmain.rs:3:5",
            ),
            ("src", "2 | // see src/main.rs\n", "2 | // see src/main.rs\n"),
            (
                "src",
                "\x1b[94m12 |\x1b[0m src/main.rs",
                "\x1b[94m12 |\x1b[0m src/main.rs",
            ),
            (
                "src/api",
                "Next: edit src/main.rs and `src/api/v1/cup.rs`, then run:\n  make manifests test\n",
                "Next: edit ../main.rs and `v1/cup.rs`, then run:\n  make -C ../.. manifests test\n",
            ),
            ("src", "run `make manifests`.", "run `make -C .. manifests`."),
            ("src", "make it so, and make sure", "make it so, and make sure"),
            (
                "config/crd",
                "in PROJECT: src/main.rs:7.",
                "in ../../PROJECT: ../../src/main.rs:7.",
            ),
            // Missing files that would belong to the project.
            (
                "config",
                "expected src/lib.rs, src/api/v2/",
                "expected ../src/lib.rs, ../src/api/v2/",
            ),
            // Neither words nor API groups are paths, even if directories of that name exist.
            (
                "src",
                "the tests and config of apps/v1",
                "the tests and config of apps/v1",
            ),
            ("src", "apps/README", "../apps/README"),
            (
                "src",
                "https://example.com/src/main.rs",
                "https://example.com/src/main.rs",
            ),
            (
                "src",
                "/tmp/src/main.rs ../src/main.rs",
                "/tmp/src/main.rs ../src/main.rs",
            ),
            // Code to copy and paste.
            ("src", "  path = \"src/main.rs\"", "  path = \"src/main.rs\""),
            (
                "src",
                "  - bases/cups.yaml\n  - ../webhook",
                "  - bases/cups.yaml\n  - ../webhook",
            ),
        ] {
            assert_eq!(viewpoint(&top, dir).show_message(text), expected, "in {dir}");
        }
    }

    #[test]
    fn project_directory_has_no_viewpoint() {
        let top = project();
        assert!(Viewpoint::new(top.path(), top.path()).is_none());
        assert!(Viewpoint::new(&top.path().join("src"), top.path()).is_none());
        let dir = top.path().join("src/../config");
        assert_eq!(Viewpoint::new(top.path(), &dir).expect("below").below, ["config"]);
    }
}
