//! Runs the tests in a binary and measures the duration of each test.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Why `#[rbuilder::envtest::test]` has ignored a test.
const IGNORED: &str = "ignored, needs a control plane: set KUBEBUILDER_ASSETS";

#[derive(Debug)]
pub(super) struct TestBinary {
    /// The name, e.g. `rbuilder-cli/tests/commands`. For unit tests it is `rbuilder-cli/src`.
    pub(super) name: String,
    executable: PathBuf,
    folder: PathBuf,
    /// Whether this uses the harness from libtest, i.e. it supports `--list` and `--ignored`.
    pub(super) has_libtest: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) ignored: usize,
    /// Tests that were ignored, but not because of the missing server.
    pub(super) ignored_otherwise: Vec<String>,
    pub(super) times: Vec<(String, Duration)>,
}

impl TestBinary {
    /// Reads the messages of `cargo test --no-run --message-format json` and returns the test
    /// binaries.
    pub(super) fn read_all(messages: &str) -> Result<Vec<Self>> {
        let mut binaries = Vec::new();
        for line in messages.lines().filter(|line| line.starts_with('{')) {
            let message: Value = serde_json::from_str(line)?;
            if message["reason"] == "compiler-artifact" && message["profile"]["test"] == true {
                binaries.extend(TestBinary::read(&message)?);
            }
        }
        ensure!(!binaries.is_empty(), "cargo built no tests");
        Ok(binaries)
    }

    fn read(message: &Value) -> Result<Option<Self>> {
        let Some(executable) = message["executable"].as_str() else {
            return Ok(None);
        };
        let manifest = message["manifest_path"]
            .as_str()
            .context("a message has no manifest")?;
        let folder = Path::new(manifest).parent().context("a manifest has no folder")?;
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_unit = message["target"]["kind"][0] != "test";
        Ok(Some(TestBinary {
            name: match is_unit {
                true if message["target"]["kind"][0] == "bin" => format!("{package}/src ({target})"),
                true => format!("{package}/src"),
                false => format!("{package}/tests/{target}"),
            },
            executable: executable.into(),
            folder: folder.to_owned(),
            has_libtest: is_unit || !names_own_harness(&fs_err::read_to_string(manifest)?, target),
        }))
    }

    /// Returns the names of all tests, in the order in which they will start.
    pub(super) fn list(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let output = self
            .command(None)
            .args(["--list", "--format", "terse"])
            .args(arguments)
            .output()
            .with_context(|| format!("cannot list the tests of {}", self.name))?;
        ensure!(output.status.success(), "{} does not list its tests", self.name);
        let text = String::from_utf8(output.stdout)?;
        Ok(text
            .lines()
            .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
            .collect())
    }

    /// Runs the tests and prints the output when they have finished. `KUBEBUILDER_ASSETS` is set to
    /// `assets` (unset if this is `None`).
    pub(super) fn run(&self, arguments: &[&str], assets: Option<&Path>) -> Result<Outcome> {
        let order = match self.has_libtest {
            true => self.list(arguments)?,
            false => Vec::new(),
        };
        let (reader, writer) = std::io::pipe().context("no pipe for the output")?;
        let mut command = self.command(assets);
        command
            .args(arguments)
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .stdin(Stdio::null());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", self.executable.display()))?;
        // The command holds the write end of the pipe. If we didn't drop it, the reader would wait
        // forever.
        drop(command);
        let mut lines = Vec::new();
        for line in BufReader::new(reader).split(b'\n') {
            lines.push((started.elapsed(), String::from_utf8_lossy(&line?).into_owned()));
        }
        let status = child.wait()?;
        let text: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
        println!(
            "\n     Running {} {}\n{}",
            self.name,
            arguments.join(" "),
            text.join("\n")
        );
        ensure!(status.success(), "tests of {} failed", self.name);
        Ok(Outcome::read(&lines, &order, thread_count()))
    }

    /// Returns the same command that cargo would use. If `assets` is `None`, tests can't find a
    /// server.
    fn command(&self, assets: Option<&Path>) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        for name in super::test_run::SERVER_VARIABLES {
            command.env_remove(name);
        }
        if let Some(assets) = assets {
            command.env("KUBEBUILDER_ASSETS", assets);
        }
        command
    }
}

/// Returns true if `harness = false` is set for a test in the Cargo.toml.
fn names_own_harness(manifest: &str, target: &str) -> bool {
    let tables = manifest.split("[[test]]").skip(1);
    tables
        .map(|table| table.split("\n[").next().unwrap_or_default())
        .any(|table| table.contains(&format!("name = \"{target}\"")) && table.contains("harness = false"))
}

/// Returns the number of tests run in parallel by libtest.
fn thread_count() -> usize {
    let asked = std::env::var("RUST_TEST_THREADS")
        .ok()
        .and_then(|count| count.parse().ok());
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Outcome {
    /// Reads the output of a run. For each line we also need the time at which it was printed.
    ///
    /// How long a test took is only printed by libtest on nightly. On stable we only know when each
    /// test has ended. But since tests are started in order, and each one starts as soon as an
    /// earlier one has ended, we can determine when they started. For example, say there are two
    /// threads and three tests called a, b and c. If b ends after 1 s and a ends after 3 s, then c
    /// must have started after 1 s.
    fn read(lines: &[(Duration, String)], order: &[String], threads: usize) -> Self {
        let mut outcome = Outcome::default();
        let mut ends: Vec<(&str, Duration)> = Vec::new();
        for (at, line) in lines {
            if let Some(summary) = line.strip_prefix("test result: ") {
                outcome.passed += count_of(summary, "passed");
                outcome.ignored += count_of(summary, "ignored");
            } else if let Some((name, verdict)) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... "))
            {
                let name = name.strip_suffix(" - should panic").unwrap_or(name);
                if verdict.starts_with("ignored") && verdict != IGNORED {
                    outcome.ignored_otherwise.push(name.to_owned());
                }
                ends.push((name, *at));
            }
        }
        let starts: BTreeMap<&str, Duration> = order
            .iter()
            .enumerate()
            .filter_map(|(index, name)| match index.checked_sub(threads) {
                None => Some((name.as_str(), Duration::ZERO)),
                Some(ended) => ends.get(ended).map(|(_, at)| (name.as_str(), *at)),
            })
            .collect();
        outcome.times = ends
            .iter()
            .filter_map(|(name, end)| Some(((*name).to_owned(), end.saturating_sub(*starts.get(name)?))))
            .collect();
        outcome
    }
}

/// Returns the number in front of a word in the summary. For example, it is 3 in
/// `3 passed; 0 failed`.
fn count_of(summary: &str, word: &str) -> usize {
    let before = summary
        .split([';', '.'])
        .find_map(|part| part.trim().strip_suffix(word));
    before
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn test_starts_when_earlier_one_ends() {
        let lines = [
            (0, "running 4 tests"),
            (1, "test b ... ok"),
            (3, "test a - should panic ... ok"),
            (4, "test d ... ignored, needs a control plane: set KUBEBUILDER_ASSETS"),
            (7, "test c ... ok"),
            (7, "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 7.00s"),
        ]
        .map(|(at, line)| (seconds(at), line.to_owned()));
        let order = ["a", "b", "c", "d"].map(str::to_owned);
        let outcome = Outcome::read(&lines, &order, 2);
        let expected = [("b", 1), ("a", 3), ("d", 1), ("c", 6)];
        assert_eq!(
            outcome,
            Outcome {
                passed: 3,
                ignored: 1,
                ignored_otherwise: Vec::new(),
                times: expected
                    .map(|(name, took)| (name.to_owned(), seconds(took)))
                    .into(),
            }
        );
    }

    #[test]
    fn reports_tests_ignored_for_other_reasons() {
        let lines = [(seconds(0), "test a ... ignored".to_owned())];
        assert_eq!(Outcome::read(&lines, &[], 2).ignored_otherwise, ["a"]);
    }

    #[test]
    fn harness_key_only_applies_to_its_test() {
        let manifest = "[[test]]\nname = \"crash\"\nharness = false\n\n[dependencies]\nname = \"other\"\n\n[[test]]\nname = \"plain\"\n";
        assert!(names_own_harness(manifest, "crash"));
        assert!(!names_own_harness(manifest, "plain"));
        assert!(!names_own_harness(manifest, "other"));
    }
}
