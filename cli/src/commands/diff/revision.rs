//! Reads files at a git revision.
//!
//! A repository's configuration can make git run other programs, so we only run commands that read
//! objects: `rev-parse`, `merge-base`, `ls-tree` and `cat-file` run no hooks, filters, pagers or
//! file system monitors. They could only start the transport with which a partial clone fetches
//! missing objects, and we allow no transport.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use rbuilder_yaml::is_yaml;

use crate::programs::{Answer, LIMIT, ask_for, find_program, git_command, neutral_folder};
use crate::tree::{LARGEST, resolve_path, with_slashes};

/// Names of main branches in lookup order.
const MAIN: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

pub(super) struct Repository {
    git: PathBuf,
    /// Canonical path of the work tree.
    top: PathBuf,
}

impl Repository {
    /// Finds the repository that contains a directory. Fails if there is one but git isn't
    /// installed.
    pub(super) fn find(dir: &Path) -> Result<Option<Repository>> {
        let dir = resolve_path(dir);
        let Some(top) = dir.ancestors().find(|top| top.join(".git").exists()) else {
            return Ok(None);
        };
        let git = find_program("git").context("git was not found on the PATH")?;
        Ok(Some(Repository {
            git,
            top: top.to_owned(),
        }))
    }

    /// Resolves a revision to a commit, or returns `None` if it doesn't exist.
    pub(super) fn resolve(&self, revision: &str) -> Result<Option<String>> {
        // git would parse it as a flag.
        if revision.starts_with('-') {
            return Ok(None);
        }
        let answer = self.run(&[
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{revision}^{{commit}}"),
        ])?;
        Ok(answer.status.success().then(|| text(&answer.out)))
    }

    /// Finds the name of the main branch, and the merge base with the current branch.
    pub(super) fn find_merge_base(&self) -> Result<(String, String)> {
        for name in MAIN {
            let reference = match name.starts_with("origin/") {
                true => format!("refs/remotes/{name}"),
                false => format!("refs/heads/{name}"),
            };
            let Some(main) = self.resolve(&reference)? else {
                continue;
            };
            let answer = self.run(&["merge-base", "HEAD", &main])?;
            if !answer.status.success() {
                bail!(
                    "HEAD and `{name}` have no common commit in this clone: fetch the whole history \
                     (`git fetch --unshallow`, or `fetch-depth: 0` in a workflow), or pass BASE"
                );
            }
            return Ok((name.to_owned(), text(&answer.out)));
        }
        bail!(
            "expected BASE, because the repository has none of the branches {}",
            MAIN.join(", ")
        )
    }

    /// Reads the YAML files at these places in the work tree, as of a commit.
    pub(super) fn read_files(&self, commit: &str, places: &[PathBuf]) -> Result<Vec<(String, String)>> {
        let places = places
            .iter()
            .map(|place| self.place(place))
            .collect::<Result<Vec<_>>>()?;
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        // The work tree itself has no path.
        if !places.iter().any(String::is_empty) {
            arguments.extend(places.iter().map(String::as_str));
        }
        self.read_listed(&self.read(&arguments)?, is_yaml)
    }

    /// Reads the YAML files with one of these names, in all directories, as of a commit.
    pub(super) fn read_files_named(
        &self,
        commit: &str,
        names: &BTreeSet<String>,
    ) -> Result<Vec<(String, String)>> {
        let listed = self.read(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
        let has_name = |path: &str| path.rsplit('/').next().is_some_and(|name| names.contains(name));
        self.read_listed(&listed, |path| is_yaml(path) && has_name(path))
    }

    /// Reads files from the output of `git ls-tree -z`.
    fn read_listed(&self, listed: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, String)>> {
        let mut files = Vec::new();
        for entry in listed.split('\0').filter(|entry| !entry.is_empty()) {
            let Some((facts, path)) = entry.split_once('\t') else {
                continue;
            };
            // Skip symlinks, which have the mode 120000.
            let is_file = facts.starts_with("100644 blob ") || facts.starts_with("100755 blob ");
            if let Some(id) = facts.split(' ').nth(2).filter(|_| is_file && is_wanted(path)) {
                files.push((path.to_owned(), self.read(&["cat-file", "blob", id])?));
            }
        }
        Ok(files)
    }

    fn place(&self, place: &Path) -> Result<String> {
        let below = place.strip_prefix(&self.top).map_err(|_| {
            anyhow!(
                "{} is outside of the git repository {}",
                place.display(),
                self.top.display()
            )
        })?;
        Ok(with_slashes(&below.to_string_lossy()))
    }

    fn read(&self, arguments: &[&str]) -> Result<String> {
        let answer = self.run(arguments)?;
        let shown = arguments[..arguments.len().min(3)].join(" ");
        if !answer.status.success() {
            bail!("`git {shown}` failed: {}", text(&answer.err));
        }
        if answer.out.len() as u64 >= LARGEST {
            bail!("the output of `git {shown}` is larger than {} MiB", LARGEST >> 20);
        }
        String::from_utf8(answer.out).map_err(|_| anyhow!("the output of `git {shown}` is not valid UTF-8"))
    }

    fn run(&self, arguments: &[&str]) -> Result<Answer> {
        let mut git = git_command(&self.git);
        git.current_dir(neutral_folder(&self.git))
            .arg("--no-pager")
            .arg("--git-dir")
            .arg(self.top.join(".git"))
            .args(arguments)
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1");
        ask_for(&mut git, LIMIT, LARGEST).context("cannot run git")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
