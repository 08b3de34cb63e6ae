//! Parser for pages of docs/ that readers can paste from top to bottom. A page is a list of steps.
//!
//! Each step is a fenced block. The sentence above the block tells the reader what to do with it,
//! and since we parse that same sentence, the test always does what the reader is told:
//!
//! | above the block | fence | step |
//! |---|---|---|
//! | anything | `sh` | run the commands |
//! | anything | `text` | compare with what the commands above have printed |
//! | … write `path` … | any other | make the block the content of the file |
//! | … change `path` … | `diff` | replace the `-` lines by the `+` lines, at the place that the other lines name |
//! | … `path` … | any other | find the block in the file |
//!
//! For `sh`, the fence may also contain `fails` (the commands must fail), `background` (they keep
//! running for the rest of the page) or `not-run: …` (the test isn't able to run them, with the
//! reason). When output is compared, `…` matches any text within a line, and a line with nothing
//! but `…` matches any number of lines.

mod edit;
mod seen;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::repo;
use edit::apply_diff;
pub use seen::find_difference;

#[derive(Debug)]
pub struct Page {
    pub steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the opening fence, starting from 1.
    pub line: usize,
    pub action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Run {
        script: String,
        how: How,
    },
    /// Compares the given text with the output of the last script.
    See(String),
    Write {
        path: String,
        content: String,
    },
    Change {
        path: String,
        diff: String,
    },
    Find {
        path: String,
        excerpt: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    Succeeds,
    Fails,
    Background,
    /// The script is not run. Contains the reason.
    NotRun(String),
}

impl Action {
    /// Returns the arguments of all `rbuilder` commands, provided that this is a script that must
    /// succeed.
    pub fn rbuilder_commands(&self) -> impl Iterator<Item = &str> {
        let script = match self {
            Self::Run {
                script,
                how: How::Succeeds,
            } => script.as_str(),
            _ => "",
        };
        script.lines().filter_map(|line| line.strip_prefix("rbuilder "))
    }

    /// Applies an action that writes or changes a file in `folder`, and returns the file's path.
    /// Returns `None` for all other actions.
    pub fn edit_file(&self, folder: &Path) -> Result<Option<&str>> {
        let (path, content) = match self {
            Self::Write { path, content } => (path, content.clone()),
            Self::Change { path, diff } => {
                let text = fs_err::read_to_string(folder.join(path))?;
                let changed = apply_diff(&text, diff).with_context(|| path.clone())?;
                (path, changed)
            }
            _ => return Ok(None),
        };
        let file = folder.join(path);
        fs_err::create_dir_all(file.parent().unwrap_or(folder))?;
        fs_err::write(file, content)?;
        Ok(Some(path))
    }
}

impl Page {
    pub fn read(path: &str) -> Result<Self> {
        let text = fs_err::read_to_string(repo::root().join(path))?;
        Self::parse(&text).with_context(|| path.to_owned())
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        let mut paragraph = String::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let Some(fence) = line.strip_prefix("```") else {
                match line.trim() {
                    "" => paragraph.push('\n'),
                    _ if paragraph.ends_with('\n') => paragraph = line.to_owned(),
                    _ => paragraph = format!("{paragraph} {line}"),
                }
                continue;
            };
            let mut content = String::new();
            let mut is_closed = false;
            for (line, _) in lines.by_ref() {
                if line == "```" {
                    is_closed = true;
                    break;
                }
                content.push_str(line);
                content.push('\n');
            }
            if !is_closed {
                bail!("line {number}: the block is not closed");
            }
            let action = read_action(fence, &paragraph, content).with_context(|| format!("line {number}"))?;
            steps.push(Step { line: number, action });
        }
        Ok(Self { steps })
    }
}

fn read_action(fence: &str, paragraph: &str, content: String) -> Result<Action> {
    let (language, options) = fence.split_once(' ').unwrap_or((fence, ""));
    match language {
        "sh" => Ok(Action::Run {
            script: content,
            how: read_how(options)?,
        }),
        "text" => Ok(Action::See(content)),
        "diff" => {
            let path = path_after(paragraph, "change")
                .context("the sentence above a `diff` block says “change `path`”")?;
            Ok(Action::Change { path, diff: content })
        }
        _ => {
            if let Some(path) = path_after(paragraph, "write") {
                return Ok(Action::Write { path, content });
            }
            let path = first_path(paragraph).context("the sentence above the block names no file")?;
            Ok(Action::Find {
                path,
                excerpt: content,
            })
        }
    }
}

fn read_how(options: &str) -> Result<How> {
    match options {
        "" => Ok(How::Succeeds),
        "fails" => Ok(How::Fails),
        "background" => Ok(How::Background),
        _ => match options.strip_prefix("not-run: ") {
            Some(reason) => Ok(How::NotRun(reason.to_owned())),
            None => bail!("expected `fails`, `background` or `not-run: …` after `sh`, found `{options}`"),
        },
    }
}

fn path_after(paragraph: &str, verb: &str) -> Option<String> {
    let start = paragraph.to_lowercase().rfind(&format!("{verb} `"))?;
    // In theory, `to_lowercase` could move the position (some letters have a different length), but
    // there are no such letters in our pages.
    first_path(paragraph.get(start..)?)
}

/// Returns the first text in backticks that looks like a path, i.e. it contains a slash or a dot
/// but no spaces.
fn first_path(paragraph: &str) -> Option<String> {
    let quoted = paragraph.split('`').skip(1).step_by(2);
    let mut paths = quoted.filter(|text| text.contains(['/', '.']) && !text.contains([' ', '(', ':']));
    paths.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_above_block_determines_action() {
        let check = |page: &str, expected: Action| {
            let page = Page::parse(page).unwrap();
            assert_eq!(page.steps.into_iter().next_back().unwrap().action, expected);
        };
        let run = |how| Action::Run {
            script: "ls\n".to_owned(),
            how,
        };
        check("Look:\n\n```sh\nls\n```\n", run(How::Succeeds));
        check("```sh fails\nls\n```\n", run(How::Fails));
        check("```sh background\nls\n```\n", run(How::Background));
        let reason = How::NotRun("needs a registry".to_owned());
        check("```sh not-run: needs a registry\nls\n```\n", run(reason));
        check("prints\n\n```text\na\n…\n```\n", Action::See("a\n…\n".to_owned()));
        let (path, content) = ("src/a.rs".to_owned(), "fn a() {}\n".to_owned());
        check(
            "An old `b.rs`.\n\nIn place of it\nwrite `src/a.rs`:\n\n```rust\nfn a() {}\n```\n",
            Action::Write { path, content },
        );
        let (path, diff) = ("Cargo.toml".to_owned(), "+a\n".to_owned());
        check(
            "Change `Cargo.toml`:\n\n```diff\n+a\n```\n",
            Action::Change { path, diff },
        );
        let (path, excerpt) = ("config/x.yaml".to_owned(), "a: 1\n".to_owned());
        check(
            "The field `a` is in `config/x.yaml`:\n\n```yaml\na: 1\n```\n",
            Action::Find { path, excerpt },
        );
    }

    #[test]
    fn block_without_target_is_error() {
        let check = |page: &str, expected: &str| {
            let error = format!("{:#}", Page::parse(page).unwrap_err());
            assert_eq!(error, expected);
        };
        check(
            "Like this:\n\n```rust\nfn a() {}\n```\n",
            "line 3: the sentence above the block names no file",
        );
        check("```sh\nls\n", "line 1: the block is not closed");
        check(
            "```sh sometimes\nls\n```\n",
            "line 1: expected `fails`, `background` or `not-run: …` after `sh`, found `sometimes`",
        );
    }
}
