//! Compares the generator with controller-gen by running both in turn on the same API.
//!
//! Each measured run has to do the entire job: find the types and the markers, generate the CRDs
//! and the role, and update the files on disk. In half of the runs there are no manifests at the
//! beginning. In the others they're up to date already, since a previous run has generated them.
//! Go's build cache is warm when controller-gen runs. rbuilder does not have a cache.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

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
        for absent in [true, false] {
            let mut costs = [Cost::default(); 2];
            for _ in 0..runs {
                for (cost, (folder, command)) in costs.iter_mut().zip(commands()) {
                    if absent {
                        fs_err::remove_dir_all(folder.join(MANIFESTS))?;
                    }
                    cost.add(command)?;
                }
            }
            print_row(name, absent, &costs);
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

fn print_row(name: &str, absent: bool, [theirs, ours]: &[Cost; 2]) {
    println!(
        "{name:>10} {:>10} {:>13.0} ms {:>11.1} ms {:>6.0} x {:>13.1} MB {:>11.1} MB {:>6.1} x",
        if absent { "absent" } else { "present" },
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
        .dir(folder)
}
