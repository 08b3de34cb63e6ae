//! Builds the tests once, and then runs them in two parts. Tests that only need Rust come first,
//! then the ones that need an API server.
//!
//! `#[rbuilder::envtest::test]` determines at compile time if a test should be ignored. For this
//! reason, we make sure that the environment variables for a server aren't set when the tests are
//! compiled, so all tests that need a server are ignored. The first part proves that everything
//! else passes without a server. In the second part, we run the same binaries with a server and
//! `--ignored`. This way, each of the tests runs exactly once.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Context;
use super::test_binary::{Outcome, TestBinary};

/// Environment variables which `#[rbuilder::envtest::test]` and `rbuilder::envtest` use to find a
/// server.
pub(super) const SERVER_VARIABLES: [&str; 4] = [
    "KUBEBUILDER_ASSETS",
    "TEST_ASSET_ETCD",
    "TEST_ASSET_KUBE_APISERVER",
    "USE_EXISTING_CLUSTER",
];

/// Number of binaries to run in parallel. With two, one can work while the other is waiting for its
/// last test.
const AT_ONCE: usize = 2;

/// Number of binaries with an API server to run in parallel. All three together only use half a
/// core.
const SERVERS_AT_ONCE: usize = 3;

/// Number of project binaries to run in parallel. This can be large, because they are mostly
/// waiting for servers, controllers and nodes.
const PROJECTS_AT_ONCE: usize = 4;

pub(super) fn build_tests(context: &Context<'_>) -> Result<()> {
    build(context).map(drop)
}

/// Runs all tests that only need Rust. The other ones must be ignored, and the reason must be that
/// there is no server.
pub(super) fn run_rust_tests(context: &Context<'_>) -> Result<()> {
    let binaries = build(context)?;
    let outcomes = run_all(context, AT_ONCE, binaries.iter(), &[], None)?;
    let (mut passed, mut ignored) = (0, 0);
    for (binary, outcome) in binaries.iter().zip(&outcomes) {
        ensure!(
            outcome.ignored_otherwise.is_empty(),
            "{} ignores tests that need no server: {}",
            binary.name,
            outcome.ignored_otherwise.join(", ")
        );
        passed += outcome.passed;
        ignored += outcome.ignored;
    }
    context.say(&format!(
        "{passed} tests passed, and {ignored} need an API server"
    ));
    Ok(())
}

/// Runs the tests that were ignored in the first part.
pub(super) fn run_server_tests(context: &Context<'_>) -> Result<()> {
    let binaries = build(context)?;
    let mut chosen = Vec::new();
    let mut expected = 0;
    for binary in binaries.iter().filter(|binary| binary.has_libtest) {
        let ignored = binary.list(&["--ignored"])?.len();
        if ignored > 0 {
            chosen.push(binary);
            expected += ignored;
        }
    }
    ensure!(expected > 0, "no test needs an API server");
    let assets = context.assets()?;
    let outcomes = run_all(
        context,
        SERVERS_AT_ONCE,
        chosen.into_iter(),
        &["--ignored"],
        Some(&assets),
    )?;
    let passed: usize = outcomes.iter().map(|outcome| outcome.passed).sum();
    ensure!(
        passed == expected,
        "{expected} tests need an API server, and {passed} ran with it"
    );
    context.say(&format!("{passed} tests passed with an API server"));
    Ok(())
}

/// Runs all tests of projects. Since they were built with a server, no test may be ignored.
pub(super) fn run_every_test(context: &Context<'_>, binaries: &[TestBinary], assets: &Path) -> Result<()> {
    let outcomes = run_all(context, PROJECTS_AT_ONCE, binaries.iter(), &[], Some(assets))?;
    for (binary, outcome) in binaries.iter().zip(&outcomes) {
        ensure!(outcome.ignored == 0, "{} ignores tests", binary.name);
    }
    ensure!(
        outcomes.iter().any(|outcome| outcome.passed > 0),
        "the projects have no tests"
    );
    Ok(())
}

/// Returns the test binaries of the workspace. They are only built by the first call.
fn build<'a>(context: &'a Context<'_>) -> Result<&'a [TestBinary]> {
    if let Some(binaries) = context.run.binaries.get() {
        return Ok(binaries);
    }
    let line = "cargo test --workspace --no-run --message-format=json-render-diagnostics";
    let command = SERVER_VARIABLES
        .iter()
        .fold(context.command(line), |command, name| command.without(name));
    let binaries = TestBinary::read_all(&context.read_command(command)?)?;
    Ok(context.run.binaries.get_or_init(|| binaries))
}

/// Runs several binaries in parallel. The order of the outcomes is the same as the order of the
/// binaries.
fn run_all<'b>(
    context: &Context<'_>,
    at_once: usize,
    binaries: impl Iterator<Item = &'b TestBinary>,
    arguments: &[&str],
    assets: Option<&Path>,
) -> Result<Vec<Outcome>> {
    let binaries: Vec<_> = binaries.collect();
    let next = Mutex::new(0..binaries.len());
    let take_next = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let results: Vec<OnceLock<Result<Outcome>>> = binaries.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(index) = take_next() {
                    results[index].get_or_init(|| binaries[index].run(arguments, assets));
                }
            });
        }
    });
    let (mut outcomes, mut failures) = (Vec::new(), Vec::new());
    for (binary, result) in binaries.iter().zip(results) {
        match result.into_inner().context("a thread panicked")? {
            Ok(outcome) => {
                let name = |(test, took): &(String, Duration)| (format!("{} {test}", binary.name), *took);
                context.run.report.add_tests(outcome.times.iter().map(name));
                outcomes.push(outcome);
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(outcomes)
}
