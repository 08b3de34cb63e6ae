//! `cargo xtask ci`: runs all checks that must pass before we merge a change. Each check is a step
//! that has a name.
//!
//! This task is started by `.ci/run`, which prepares the environment. The workflows in `.github/`
//! run the same script with the names of some of the steps, so there is no difference between CI
//! and a local run.
//!
//! There are three lanes:
//!
//! - The cargo lane. Its steps run one after the other, since cargo would lock the target folder
//!   anyway. It starts with the programs needed by the tests lane.
//! - The Go lane, which builds kube-apiserver while rustc is only using one core. We print a step's
//!   output when it has ended.
//! - The tests lane. It runs the test binaries that were built by the cargo lane, and tests
//!   projects with a server. Since it spends most of the time waiting for timers and servers, the
//!   cargo lane continues at a lower priority.
//!
//! Note that steps must not remove the build artifacts of a project (see
//! `steps::clean_checkout_projects`).
//!
//! If you want to add a step, add it to [`STEPS`], and add its name to one of the jobs in
//! `.github/workflows/ci.yml`.

#[cfg(all(test, unix))]
mod kept_builds;
mod public;
mod report;
mod steps;
mod test_binary;
mod test_run;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};

use self::report::Report;
use self::test_binary::TestBinary;
use crate::sh::Cmd;
use crate::{assets, repo};

struct Step {
    /// The name, which is used on the command line and in workflows.
    name: &'static str,
    /// Describes what we know after the step has passed.
    claim: &'static str,
    lane: Lane,
    work: Work,
    /// A step of another lane to wait for. Ignored if that step doesn't run.
    after: Option<&'static str>,
    /// Whether the step must be requested by name. This is for steps that take a long time, or that
    /// are part of another step.
    is_extra: bool,
}

/// The steps of a lane never run at the same time.
#[derive(Clone, Copy, PartialEq)]
enum Lane {
    Cargo,
    Go,
    Tests,
}

enum Work {
    /// Commands to run in the repository root. Use `xtask` for this program.
    Lines(&'static [&'static str]),
    Call(fn(&Context<'_>) -> Result<()>),
    /// Like `Lines`, but `KUBEBUILDER_ASSETS` is set to a folder with etcd, kube-apiserver and the
    /// controllers.
    WithServer(&'static str),
}

use Lane::{Cargo, Go, Tests};
use Work::{Call, Lines, WithServer};

const fn step(name: &'static str, claim: &'static str, lane: Lane, work: Work) -> Step {
    Step {
        name,
        claim,
        lane,
        work,
        after: None,
        is_extra: false,
    }
}

impl Step {
    const fn after(self, step: &'static str) -> Self {
        Self {
            after: Some(step),
            ..self
        }
    }
}

const fn extra_step(name: &'static str, claim: &'static str, lane: Lane, work: Work) -> Step {
    Step {
        is_extra: true,
        ..step(name, claim, lane, work)
    }
}

/// All of the steps in order. Those that fail quickly should come first.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    step("assets", "etcd, kube-apiserver and the controllers are there", Go, Lines(&["xtask assets"])),
    step("format", "the code is formatted", Cargo, Lines(&["cargo fmt --all --check"])),
    step("tidy", "conventions that no compiler checks are kept", Cargo, Lines(&["xtask tidy"])),
    step("workflows", "the workflows are valid, and zizmor finds no weakness in them", Go, Call(steps::check_workflows)),
    step("dockerfiles", "hadolint finds nothing in the Dockerfiles", Go, Call(steps::check_dockerfiles)),
    step("dependencies", "dependencies are used, licensed and old enough", Cargo, Call(steps::check_dependencies)),
    step("advisories", "no dependency has a known vulnerability", Cargo, Call(steps::check_advisories)),
    step("packages", "each package is complete", Cargo, Call(public::check_packages)),
    step("test-programs", "the tests compile", Cargo, Call(test_run::build_tests)),
    step("tests", "tests pass that need only Rust, and only those for a server are ignored", Tests, Call(test_run::run_rust_tests)).after("test-programs"),
    step("server-tests", "tests pass against kube-apiserver", Tests, Call(test_run::run_server_tests)),
    step("tour", "the first command of README.md works", Cargo, Call(steps::walk_tour)),
    // The examples come before the lints, so that the tests lane can already start with their
    // tests.
    step("examples", "the examples have no warning", Cargo, Call(steps::build_examples)),
    step("lints", "clippy has no warning", Cargo, Lines(&["cargo clippy --workspace --all-targets -- --deny warnings"])),
    step("features", "each feature of the library compiles alone, and profiles can be recorded", Cargo, Call(public::check_features)),
    step("documentation", "the documentation has no warning", Cargo, Call(steps::check_documentation)),
    step("doc-tests", "samples in the documentation compile", Cargo, Lines(&["cargo test --workspace --doc"])),
    step("minimum-rust", "the oldest Rust that Cargo.toml names is enough", Cargo, Call(public::check_minimum_rust)),
    step("public-api", "the public API breaks nobody within a version", Cargo, Call(public::check_public_api)),
    step("reference", "the reference pages and the pictures are what they are made of", Cargo, Lines(&["xtask docs --check", "xtask pictures --check"])),
    step("templates", "the templates of each release are recorded", Cargo, Lines(&["xtask templates --check"])),
    step("examples-made", "the examples are what the commands make", Cargo, Lines(&["xtask examples --check"])),
    step("patterns", "patterns are judged as Go judges them", Go, Lines(&["xtask patterns --check"])),
    step("oracle", "controller-gen makes what is recorded", Go, Lines(&["xtask oracle --check"])),
    step("formats", "the API server accepts the strings that are recorded", Go, Lines(&["xtask formats --check"])),
    step("yaml", "kubectl reads YAML as recorded", Go, Lines(&["xtask yaml --check"])),
    step("health", "GitOps tools judge the health of objects as recorded", Go, Lines(&["xtask health --check"])),
    step("cel", "the API server judges CEL rules as recorded", Go, Lines(&["xtask cel --check"])),
    step("builtin", "the API server judges built-in kinds as recorded", Go, Lines(&["xtask builtin --check"])),
    step("kubernetes", "the API server applies rules of roles as recorded", Go, Lines(&["xtask kubernetes --check"])),
    step("protobuf", "objects in protobuf are read and written as Go does", Go, Lines(&["xtask protobuf --check"])),
    step("tables", "objects are printed as kube-apiserver prints them", Go, Lines(&["xtask tables --check"])),
    step("catalogue", "the catalogue is what Kubernetes publishes", Go, Lines(&["xtask catalogue --check"])),
    step("helm-program", "Helm is there", Go, Lines(&["xtask helm --build"])),
    step("bundle-program", "the validators of bundles are there", Go, Lines(&["xtask bundle --build"])),
    step("grafana-programs", "promtool and Grafana's types are there", Go, Lines(&["xtask grafana --build"])),
    step("bench-go", "the measured operator in Go builds", Go, Call(steps::check_go_bench)),
    step("example-tests", "the examples pass their tests", Tests, Call(steps::test_examples)).after("examples"),
    extra_step("example-servers", "kube-apiserver leads the examples to the states of their simulations", Tests, Call(steps::replay_examples)),
    // These must come after the examples. The projects have the same names, so cargo would
    // overwrite the programs of the examples.
    step("tutorials", "the tutorials work when pasted", Tests, WithServer("xtask tutorials")),
    step("e2e", "the end-to-end test of a scaffold passes, and fails without a manager", Tests, WithServer("xtask e2e")),
    step("scaffold", "scaffolds compile and pass their tests after each command", Cargo, WithServer("xtask scaffold")),
    step("makefile", "the targets of a scaffold's Makefile do what they say", Tests, Lines(&["xtask makefile"])),
    step("helm", "charts are what kustomize renders, and Helm installs them", Tests, WithServer("xtask helm")).after("helm-program"),
    step("shared-cluster", "deployments in a cluster that others use write and remove only what is theirs", Tests, WithServer("xtask shared-cluster")).after("helm-program"),
    step("bundle", "bundles pass the validators of operator-framework, and kube-apiserver takes them", Tests, WithServer("xtask bundle")).after("bundle-program"),
    step("grafana", "rules pass promtool, and dashboards Grafana's types", Tests, Lines(&["xtask grafana"])).after("grafana-programs"),
    step("pages", "generated pages are readable in a browser, wide and narrow, light and dark", Tests, Lines(&["xtask pages"])),
    step("bench-rust", "the measured projects in Rust build", Tests, Call(steps::check_rust_bench)),
    step("advice", "the advice that is printed compiles with each kube that it is for", Tests, Lines(&["xtask advice"])),
    // Each of these needs minutes to compile kube again. In CI, they are separate jobs that run in
    // parallel.
    extra_step("project-workflows", "the workflows of a scaffold pass in a clean clone", Cargo, WithServer("xtask workflows")),
    extra_step("image", "the image of a scaffold builds, and its manager reconciles", Cargo, WithServer("xtask image")),
    extra_step("library", "scaffolds build with the library from git and from a path", Cargo, Lines(&["xtask library"])),
    extra_step("book", "the guide builds as a book, with the reference of the library", Cargo, Lines(&["xtask book"])),
    extra_step("release", "each package compiles as downloaded, and so does a scaffold on them", Cargo, Lines(&["xtask release --dry-run"])),
    extra_step("dev-loop", "the development loop follows edits and leaves nothing", Cargo, WithServer("xtask dev-loop")),
    extra_step("command", "the command passes its tests on this system; part of `tests`", Cargo, Call(steps::test_command)),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Steps to run, in the order of the table [default: all]
    steps: Vec<String>,
    /// Print the steps and what each holds
    #[arg(long)]
    list: bool,
    /// After a step failed, run the others as well
    #[arg(long)]
    keep_going: bool,
}

/// Marks a step as ended when it's dropped.
struct Settle<'a> {
    run: &'a Run,
    step: &'static str,
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        let mut settled = self.run.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.insert(self.step);
        drop(settled);
        self.run.settling.notify_all();
    }
}

/// State shared between all steps of a run.
struct Run {
    /// A copy of this program. Unlike the original, it's not replaced by a build.
    xtask: PathBuf,
    /// The folder that contains the copy. It is removed on drop.
    _folder: tempfile::TempDir,
    report: Report,
    /// Test binaries of the workspace. They are built by the first step that uses them.
    binaries: OnceLock<Vec<TestBinary>>,
    /// Test binaries of the examples. They are built by the first step that uses them.
    example_binaries: OnceLock<Vec<TestBinary>>,
    /// Steps that are over, or that are not going to run.
    settled: Mutex<BTreeSet<&'static str>>,
    settling: Condvar,
    /// Whether the priority of the cargo lane is low, so that the tests lane gets the cores when it
    /// needs them.
    gives_way: bool,
    has_failed: AtomicBool,
    /// Whether the other steps run after one has failed.
    keeps_going: bool,
}

/// The run from the perspective of a step.
struct Context<'a> {
    run: &'a Run,
    /// Commands write their output to this file. If it is `None`, they use the output of this
    /// process.
    output: Option<File>,
    has_priority: bool,
}

/// Runs the requested steps. Stops when a step fails, unless the others should run as well.
pub(crate) fn run_steps(args: &Args) -> Result<()> {
    if args.list {
        for Step { name, claim, .. } in STEPS {
            println!("{name:14} {claim}");
        }
        return Ok(());
    }
    let steps = choose_steps(&args.steps)?;
    let run = Run::start(&steps, args.keep_going)?;
    if steps
        .iter()
        .any(|step| steps::CHECKOUT_PROJECTS.contains(&step.name))
    {
        steps::clean_checkout_projects()?;
    }
    let started = Instant::now();
    let result = run.run_lanes(&steps);
    run.report.print();
    result?;
    println!("\neverything passed in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Returns the steps with these names, but in the order of the table. Without any names, this
/// returns the default steps.
fn choose_steps(names: &[String]) -> Result<Vec<&'static Step>> {
    let is_unknown = |name: &&String| STEPS.iter().all(|step| step.name != **name);
    if let Some(unknown) = names.iter().find(is_unknown) {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`; there are {}", known.join(", "));
    }
    let is_chosen = |step: &&Step| match names.is_empty() {
        true => !step.is_extra,
        false => names.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(is_chosen).collect())
}

impl Run {
    fn start(steps: &[&Step], keeps_going: bool) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("rbuilder-ci-").tempdir()?;
        // When we build the tests, cargo replaces the binary of this program (the new one has other
        // features).
        let xtask = folder
            .path()
            .join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
        fs_err::copy(std::env::current_exe()?, &xtask)?;
        let is_chosen = |name: &str| steps.iter().any(|step| step.name == name);
        let names = STEPS.iter().map(|step| step.name);
        let settled = names.filter(|name| !is_chosen(name)).collect();
        Ok(Run {
            xtask,
            _folder: folder,
            report: Report::default(),
            binaries: OnceLock::new(),
            example_binaries: OnceLock::new(),
            settled: Mutex::new(settled),
            settling: Condvar::new(),
            gives_way: cfg!(unix) && steps.iter().any(|step| step.lane == Tests),
            has_failed: AtomicBool::new(false),
            keeps_going,
        })
    }

    /// Runs all lanes. If more than one fails, this returns the error of the cargo lane.
    fn run_lanes(&self, steps: &[&'static Step]) -> Result<()> {
        std::thread::scope(|scope| {
            let beside = [Go, Tests].map(|lane| scope.spawn(move || self.run_lane(lane, steps)));
            let cargo = self.run_lane(Cargo, steps);
            beside.into_iter().fold(cargo, |result, lane| {
                let ended = lane.join().unwrap_or_else(|_| Err(anyhow!("a lane panicked")));
                result.and(ended)
            })
        })
    }

    /// Runs the steps of one lane. Stops as soon as a step fails, no matter in which lane, or
    /// returns the first failure after all of them have run.
    fn run_lane(&self, lane: Lane, steps: &[&'static Step]) -> Result<()> {
        let own = steps.iter().filter(|step| step.lane == lane);
        // There is a guard for each step. It marks the step as ended when it's over, and also if we
        // don't get there because an earlier step fails or panics.
        let own: Vec<_> = own
            .map(|step| {
                (
                    *step,
                    Settle {
                        run: self,
                        step: step.name,
                    },
                )
            })
            .collect();
        let mut outcome = Ok(());
        for (step, _settle) in own {
            step.after.into_iter().for_each(|name| self.wait_for(name));
            if self.has_failed.load(Ordering::Relaxed) && !self.keeps_going {
                break;
            }
            let result = self
                .run_step(step)
                .with_context(|| format!("step `{}` failed", step.name));
            if let Err(error) = &result {
                self.has_failed.store(true, Ordering::Relaxed);
                if self.keeps_going {
                    println!("error: {error:#}");
                }
            }
            outcome = outcome.and(result);
        }
        outcome
    }

    /// Waits for a step to end. Returns immediately if we know that it isn't going to run.
    fn wait_for(&self, step: &str) {
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = self
            .settling
            .wait_while(settled, |settled| !settled.contains(step));
        drop(settled);
    }

    fn run_step(&self, step: &Step) -> Result<()> {
        let heading = format!("=== {}: {}", step.name, step.claim);
        let output = match step.lane {
            Cargo | Tests => {
                println!("\n{heading}");
                None
            }
            Go => Some(tempfile::tempfile().context("no file for the output")?),
        };
        let has_priority = step.lane != Cargo || !self.gives_way;
        let mut context = Context {
            run: self,
            output,
            has_priority,
        };
        let started = Instant::now();
        let result = match step.work {
            Lines(lines) => lines.iter().try_for_each(|line| context.run_line(line)),
            Call(function) => function(&context),
            WithServer(line) => context.run_with_server(line),
        };
        let took = started.elapsed();
        self.report.add_step(step.name, took);
        let printed = context.printed()?;
        match step.lane {
            Cargo | Tests => println!("=== {}: {} s", step.name, took.as_secs()),
            Go => println!(
                "\n{heading} (ran beside others)\n{printed}=== {}: {} s",
                step.name,
                took.as_secs()
            ),
        }
        result
    }
}

impl Context<'_> {
    /// Returns a command that runs in the repository root. Use `xtask` for this program.
    fn command(&self, line: &str) -> Cmd {
        let command = match line.strip_prefix("xtask ") {
            Some(arguments) => Cmd::program(&self.run.xtask)
                .shown_as("cargo xtask")
                .words(arguments),
            None => Cmd::new(line),
        };
        command.dir(repo::root())
    }

    fn run_line(&self, line: &str) -> Result<()> {
        self.run_command(self.command(line))
    }

    fn run_with_server(&self, line: &str) -> Result<()> {
        let command = self.command(line);
        self.run_command(command.env("KUBEBUILDER_ASSETS", self.assets()?))
    }

    /// Prints a command before it runs. Its priority is lowered if the tests lane should have
    /// precedence.
    fn prepare(&self, command: Cmd) -> Cmd {
        let command = match self.has_priority {
            true => command,
            false => command.with_low_priority(),
        };
        command.without_input().echo()
    }

    fn read_command(&self, command: Cmd) -> Result<String> {
        self.prepare(command).read()
    }

    /// Runs a command. Its output becomes part of the step's output.
    fn run_command(&self, command: Cmd) -> Result<()> {
        let command = self.prepare(command);
        match &self.output {
            Some(file) => command.run_into(file),
            None => command.run(),
        }
    }

    /// Waits for the step that builds etcd and kube-apiserver, and returns the folder that contains
    /// them.
    fn assets(&self) -> Result<PathBuf> {
        self.run.wait_for("assets");
        assets::ensure_controllers()
    }

    /// Returns everything that commands have written to the file of this step.
    fn printed(&mut self) -> Result<String> {
        let mut text = Vec::new();
        if let Some(file) = &mut self.output {
            file.rewind()?;
            file.read_to_end(&mut text)?;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn say(&self, line: &str) {
        use std::io::Write as _;
        match self.output.as_ref() {
            Some(mut file) => drop(writeln!(file, "{line}")),
            None => println!("{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_are_unique() {
        let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn rejects_unknown_step() {
        let error = choose_steps(&["lint".into()]).map(drop).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no step `lint`; there are assets, "),
            "{error}"
        );
    }

    /// Steps that were executed by the test below.
    static DONE: Mutex<Vec<&str>> = Mutex::new(Vec::new());

    fn note(done: &'static str) {
        DONE.lock().unwrap().push(done);
    }

    const BUILD: Step = step(
        "build",
        "…",
        Cargo,
        Call(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            note("build");
            Ok(())
        }),
    );
    const BREAK: Step = step("break", "…", Cargo, Call(|_| bail!("broken")));
    const ASK: Step = step(
        "ask",
        "…",
        Tests,
        Call(|_| {
            note("ask");
            Ok(())
        }),
    );

    #[test]
    fn step_waits_for_step_of_other_lane() {
        let run_all = |steps: &[&'static Step], keeps_going| {
            DONE.lock().unwrap().clear();
            let result = Run::start(steps, keeps_going).unwrap().run_lanes(steps);
            (result.is_ok(), DONE.lock().unwrap().clone())
        };
        let run = |steps: &[&'static Step]| run_all(steps, false);
        const AFTER_BUILD: &Step = &ASK.after("build");
        const AFTER_BREAK: &Step = &ASK.after("break");
        assert_eq!(run(&[&BUILD, AFTER_BUILD]), (true, vec!["build", "ask"]));
        // If a step fails or is never started, other steps no longer wait for it.
        assert_eq!(run(&[&BREAK, AFTER_BREAK]), (false, vec![]));
        assert_eq!(run(&[&BREAK, &BUILD, AFTER_BUILD]), (false, vec![]));
        assert_eq!(
            run_all(&[&BREAK, &BUILD, AFTER_BUILD], true),
            (false, vec!["build", "ask"])
        );
    }

    #[test]
    fn steps_only_wait_for_earlier_steps() {
        for (at, step) in STEPS.iter().enumerate() {
            let earlier = |name| {
                STEPS[..at]
                    .iter()
                    .any(|step| step.name == name && step.lane != STEPS[at].lane)
            };
            assert!(step.after.is_none_or(earlier), "{}", step.name);
        }
    }

    /// Returns the steps of a workflow, i.e. all words after `run: .ci/run`.
    fn steps_of(workflow: &str) -> Vec<String> {
        let lines = workflow
            .lines()
            .filter_map(|line| line.split_once("run: .ci/run "));
        lines
            .flat_map(|(_, words)| words.split_whitespace().map(str::to_owned))
            .collect()
    }

    #[test]
    fn workflows_run_exactly_all_steps() {
        let folder = repo::root().join(".github/workflows");
        let mut run = BTreeSet::new();
        for entry in fs_err::read_dir(folder).unwrap() {
            run.extend(steps_of(&fs_err::read_to_string(entry.unwrap().path()).unwrap()));
        }
        let known: BTreeSet<_> = STEPS.iter().map(|step| step.name.to_owned()).collect();
        assert_eq!(run, known);
    }
}
