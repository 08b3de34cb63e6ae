//! `rbuilder simulate`: runs the simulations in a project's tests with a larger budget, keeps the
//! failing histories, and writes a page about them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rbuilder_control_plane::Workspace;
use rbuilder_products::simulation::{MARK, Report, render_page};

use super::envtest::find_installed;
use super::run::NO_CARGO;
use super::{Mode, Outcome, execute};
use crate::cluster::{Interrupt, run_in_foreground};
use crate::engine::Output;
use crate::flags::SimulateFlags;
use crate::plan::Plan;
use crate::programs::find_program;
use crate::project::Project;
use crate::shell::Shell;
use crate::tree::{Tree, display_root, read_given_file, typed_path};

/// Environment variables of `rbuilder::simulation`, see docs/simulation.md.
const HISTORY: &str = "RBUILDER_SIMULATION";
const HISTORIES: &str = "RBUILDER_SIMULATION_HISTORIES";
const SECONDS: &str = "RBUILDER_SIMULATION_SECONDS";
const REPORTS: &str = "RBUILDER_SIMULATION_REPORTS";
const NO_SIMULATION: &str = "no test has run a simulation: see `rbuilder::simulation`, and that `rbuilder library` shows a release that has it";
const SERVER: &str = "RBUILDER_SIMULATION_SERVER";

/// Variable with the directory of etcd and kube-apiserver.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Path prefix of files with kept histories.
const KEPT: &str = "simulations/";

pub(super) fn run(dir: &Path, typed_in: &Path, flags: &SimulateFlags, shell: &mut Shell) -> Result<u8> {
    if flags.on_server {
        return run_on_server(dir, flags, shell);
    }
    // Fail here rather than after minutes of tests.
    page_path(&Tree::new(dir), flags)?;
    let Some(folder) = &flags.from else {
        return run_tests(dir, flags, shell);
    };
    let reports = read_reports(&typed_in.join(folder))?;
    if reports.is_empty() {
        bail!(
            "{} has no reports (*.json)",
            typed_path(&folder.to_string_lossy())
        );
    }
    write(dir, flags, &reports, false, shell)
}

fn run_tests(dir: &Path, flags: &SimulateFlags, shell: &mut Shell) -> Result<u8> {
    let interrupt = Interrupt::install()?;
    let workspace = Workspace::create()?;
    let mut command = cargo_test(dir, flags, shell)?;
    match flags.seconds {
        Some(seconds) => command.env(SECONDS, seconds.to_string()),
        None => command.env(HISTORIES, flags.histories.to_string()),
    };
    command.env(REPORTS, workspace.path());
    let status = run_in_foreground(&mut command, &interrupt)?;
    if interrupt.is_asked() {
        bail!("interrupted: nothing was written");
    }
    let reports = read_reports(workspace.path())?;
    match (reports.is_empty(), status.success()) {
        (true, false) => bail!("`cargo test` failed, and no simulation has ended"),
        (true, true) => bail!(NO_SIMULATION),
        (false, _) => {}
    }
    let code = write(dir, flags, &reports, true, shell)?;
    if code == 0 && !status.success() {
        bail!("no simulation has failed, but `cargo test` has");
    }
    Ok(code)
}

fn cargo_test(dir: &Path, flags: &SimulateFlags, shell: &mut Shell) -> Result<Command> {
    let mut command = Command::new(find_program("cargo").context(NO_CARGO)?);
    command.args(["test", "--tests", "--no-fail-fast"]);
    command.args(&flags.arguments).args(&flags.test);
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    shell.note(&format!("cargo {}\n", words.join(" ")));
    for variable in [HISTORY, HISTORIES, SECONDS, REPORTS, SERVER] {
        command.env_remove(variable);
    }
    command.current_dir(dir);
    Ok(command)
}

fn run_on_server(dir: &Path, flags: &SimulateFlags, shell: &mut Shell) -> Result<u8> {
    let given = std::env::var_os(ASSETS).filter(|folder| !folder.is_empty());
    let assets = given.map(PathBuf::from).or_else(|| find_installed(dir));
    let assets = assets.with_context(|| {
        format!("etcd and kube-apiserver are not installed: run `rbuilder envtest install`, or set {ASSETS}")
    })?;
    let interrupt = Interrupt::install()?;
    let workspace = Workspace::create()?;
    let mut command = cargo_test(dir, flags, shell)?;
    command.env(SERVER, "1").env(ASSETS, assets);
    command.env(REPORTS, workspace.path());
    let status = run_in_foreground(&mut command, &interrupt)?;
    match status.success() {
        true if read_given_file(workspace.path(), |path| path.ends_with(".json"))?.is_empty() => {
            bail!(NO_SIMULATION)
        }
        true => Ok(0),
        false if interrupt.is_asked() => bail!("interrupted"),
        false => bail!("`cargo test` failed: its output above shows the states that differ"),
    }
}

fn read_reports(folder: &Path) -> Result<Vec<Report>> {
    let files = read_given_file(folder, |path| path.ends_with(".json"))?;
    let parsed = files.iter().map(|(path, text)| {
        let report = Report::parse(text);
        report.map_err(|error| anyhow::anyhow!("cannot read the report {path}: {error}"))
    });
    parsed.collect()
}

/// Prints a line about each simulation, and writes the page. With `keeps`, also adds the failing
/// histories to those tried first. Returns 1 if a simulation failed.
fn write(
    dir: &Path,
    flags: &SimulateFlags,
    reports: &[Report],
    keeps: bool,
    shell: &mut Shell,
) -> Result<u8> {
    for report in reports {
        shell.out(&summary(report));
    }
    let has_failed = reports.iter().any(|report| !report.failures.is_empty());
    let make = &mut |tree: &Tree| {
        let mut plan = Plan::default();
        plan.replace(
            tree,
            &page_path(tree, flags)?,
            &render_page(&title(dir, tree), reports),
        )?;
        if keeps {
            for report in reports {
                keep_histories(&mut plan, tree, report)?;
            }
        }
        let outcome = Outcome {
            plan,
            exit_code: u8::from(has_failed),
            ..Outcome::default()
        };
        Ok(outcome.with_next(&format!("open {} in a browser\n", flags.file)))
    };
    let mode = Mode {
        dry_run: false,
        output: Output::Text,
    };
    execute("simulate", dir, mode, shell, make)
}

fn summary(report: &Report) -> String {
    let (writes, covered) = report.writes();
    let failures = match report.failures.len() {
        0 => "no failure".to_owned(),
        1 => "1 failure".to_owned(),
        count => format!("{count} failures"),
    };
    let oracles = report.failures.iter().map(|failure| failure.oracle.as_str());
    let oracles: Vec<&str> = oracles.collect();
    let oracles = match oracles.is_empty() {
        true => String::new(),
        false => format!(" ({})", oracles.join(", ")),
    };
    format!(
        "{}: {failures}{oracles} in {} histories, {covered} of {writes} writes covered\n",
        report.name, report.histories
    )
}

/// Path of the page. Only a page that we generated is overwritten.
fn page_path(tree: &Tree, flags: &SimulateFlags) -> Result<String> {
    let path = typed_path(&flags.file);
    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
    match tree.read(&path)? {
        Some(text) if !text.contains(MARK) => bail!(
            "{path} was not generated by `rbuilder simulate`; no files were written: move it away, or choose another file with `--file`"
        ),
        _ => Ok(path),
    }
}

fn title(dir: &Path, tree: &Tree) -> String {
    let project = Project::read(tree).ok().flatten();
    let name = project.map(|project| project.known.project_name.clone());
    name.or_else(|| tree.folder_name())
        .unwrap_or_else(|| display_root(dir))
}

fn keep_histories(plan: &mut Plan, tree: &Tree, report: &Report) -> Result<()> {
    let path = &report.kept_file;
    let name = path
        .strip_prefix(KEPT)
        .and_then(|name| name.strip_suffix(".jsonl"));
    if name.is_none_or(|name| name.is_empty() || name.contains(['/', '\\'])) {
        bail!(
            "the report of {} names {path} as the file of its histories, expected {KEPT}<name>.jsonl",
            report.name
        );
    }
    let before = plan.read(tree, path)?.unwrap_or_default();
    let mut text = before.clone();
    for failure in &report.failures {
        if text.lines().any(|line| line == failure.history) {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&failure.history);
        text.push('\n');
    }
    match text == before {
        true => Ok(()),
        false => plan.replace(tree, path, &text),
    }
}
