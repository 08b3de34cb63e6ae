//! Compares the generator with controller-gen by running both in turn on the same API.
//!
//! Each measured run has to do the entire job: find the types and the markers, generate the CRDs
//! and the role, and update the files on disk. In a third of the runs there are no manifests at the
//! beginning. In another third they're up to date already, since a previous run has generated them.
//! In the rest, all descriptions in the source have been edited since then. Go's build cache has
//! the dependencies when controller-gen runs. rbuilder does not have a cache.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use walkdir::WalkDir;

use super::cost::{Cost, run_measured};
use super::{Args, go, manifests, rust};
use crate::sh::Cmd;
use crate::tools;

const MANIFESTS: &str = "config";

pub(super) fn measure_both(rbuilder: &Path, folder: &Path, args: &Args) -> Result<()> {
    let controller_gen = tools::ensure_tool("controller-gen")?;
    println!(
        "CPU time, user and system, and peak memory; the least of {} runs by turns",
        args.runs
    );
    println!(
        "controller-gen {}: crd and rbac, Go's build cache warm\n",
        tools::version_of("controller-gen")?
    );
    println!(
        "{:>10} {:>10} {:>16} {:>14} {:>8} {:>16} {:>14} {:>8}",
        "API", "manifests", "controller-gen", "rbuilder", "CPU", "controller-gen", "rbuilder", "memory"
    );
    for &kinds in &args.kinds {
        let pair = Pair::new(folder, &kinds.to_string());
        rust::write_kinds(&pair.rust, kinds)?;
        go::write_kinds(&pair.go, kinds)?;
        pair.measure(&format!("{kinds} kinds"), rbuilder, &controller_gen, args.runs)?;
    }
    let pair = Pair::new(folder, "cronjob");
    rust::write_cron_job(&pair.rust)?;
    go::write_cron_job(&pair.go)?;
    pair.measure("CronJob", rbuilder, &controller_gen, args.runs)
}

/// An API that we have in both languages.
struct Pair {
    rust: PathBuf,
    go: PathBuf,
}

impl Pair {
    fn new(folder: &Path, name: &str) -> Pair {
        Pair {
            rust: folder.join(format!("rust-{name}")),
            go: folder.join(format!("go-{name}")),
        }
    }

    fn measure(&self, name: &str, rbuilder: &Path, controller_gen: &Path, runs: usize) -> Result<()> {
        go::load_dependencies(&self.go)?;
        let commands = || {
            [
                (&self.go, generate(controller_gen, &self.go)),
                (&self.rust, manifests(rbuilder, &self.rust)),
            ]
        };
        for (_, command) in commands() {
            run_measured(command)?;
        }
        self.check()?;
        for state in [State::Absent, State::Present, State::Edited] {
            let mut costs = [Cost::default(); 2];
            for _ in 0..runs {
                for (cost, (folder, command)) in costs.iter_mut().zip(commands()) {
                    state.prepare(folder)?;
                    cost.add(command)?;
                }
            }
            print_row(name, state, &costs);
        }
        Ok(())
    }

    /// Makes sure that both have generated the same number of manifests. If not, the comparison
    /// would be unfair.
    fn check(&self) -> Result<()> {
        let count = |folder: &Path| -> Result<usize> {
            let crds = fs_err::read_dir(folder.join(MANIFESTS).join("crd/bases"))?.count();
            let role = folder.join(MANIFESTS).join("rbac/role.yaml").is_file();
            Ok(crds + usize::from(role))
        };
        let (go, rust) = (count(&self.go)?, count(&self.rust)?);
        if go != rust {
            bail!("controller-gen made {go} manifests and rbuilder {rust}");
        }
        Ok(())
    }
}

/// The state of the manifests before a run.
#[derive(Clone, Copy)]
enum State {
    Absent,
    Present,
    /// Generated before the source was edited.
    Edited,
}

impl State {
    fn prepare(self, folder: &Path) -> Result<()> {
        match self {
            State::Absent => Ok(fs_err::remove_dir_all(folder.join(MANIFESTS))?),
            State::Present => Ok(()),
            State::Edited => edit_descriptions(folder),
        }
    }

    fn name(self) -> &'static str {
        match self {
            State::Absent => "absent",
            State::Present => "present",
            State::Edited => "edited",
        }
    }
}

const EDIT: &str = " (edited).";

/// Changes every comment that ends with a period, or undoes the change.
fn edit_descriptions(folder: &Path) -> Result<()> {
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        let path = entry.path();
        if !path.extension().is_some_and(|end| end == "rs" || end == "go") {
            continue;
        }
        let text = fs_err::read_to_string(path)?;
        let edited: String = match text.contains(EDIT) {
            true => text.replace(EDIT, "."),
            false => text.split_inclusive('\n').map(edit_comment).collect(),
        };
        fs_err::write(path, edited)?;
    }
    Ok(())
}

fn edit_comment(line: &str) -> String {
    match line.strip_suffix(".\n") {
        Some(sentence) if sentence.trim_start().starts_with("//") => format!("{sentence}{EDIT}\n"),
        _ => line.to_owned(),
    }
}

fn print_row(name: &str, state: State, [theirs, ours]: &[Cost; 2]) {
    println!(
        "{name:>10} {:>10} {:>13.0} ms {:>11.1} ms {:>6.0} x {:>13.1} MB {:>11.1} MB {:>6.1} x",
        state.name(),
        theirs.milliseconds(),
        ours.milliseconds(),
        theirs.milliseconds() / ours.milliseconds(),
        theirs.megabytes(),
        ours.megabytes(),
        theirs.megabytes() / ours.megabytes(),
    );
}

fn generate(controller_gen: &Path, folder: &Path) -> Cmd {
    Cmd::program(controller_gen)
        .args(["crd", "rbac:roleName=manager-role", "paths=./..."])
        .args([
            "output:crd:artifacts:config=config/crd/bases",
            "output:rbac:artifacts:config=config/rbac",
        ])
        // CI turns off Go's garbage collector. Users don't.
        .without("GOGC")
        .without("GOMEMLIMIT")
        .dir(folder)
}
