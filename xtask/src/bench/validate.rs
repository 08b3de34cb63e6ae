//! Compares `rbuilder validate` with kubectl-validate and with a dry run on kube-apiserver, for the
//! same objects.
//!
//! The objects are copies of the sample in the CronJob example, and each is in its own file. This
//! CRD contains a Pod template, so its schema is one of the largest. All of the commands must
//! accept all objects. For the dry run, we count the CPU time of kubectl, kube-apiserver and etcd
//! together. The servers have been started before, and have already served one such run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Args;
use super::cost::{Cost, run_measured};
use crate::control_plane::ControlPlane;
use crate::kubectl::Kubectl;
use crate::sh::Cmd;
use crate::{assets, repo, tools};

const EXAMPLE: &str = "examples/cronjob-operator";
const SAMPLE: &str = "config/samples/batch_v1_cronjob.yaml";
const CRDS: &str = "config/crd/bases";
/// The sample's name. Each copy gets a different name.
const NAME: &str = "cronjob-sample";

/// Measures all three commands and prints the results as a table.
pub(super) fn measure(rbuilder: &Path, folder: &Path, count: usize, args: &Args) -> Result<()> {
    let objects = write_objects(&folder.join("objects"), count)?;
    let crds = repo::root().join(EXAMPLE).join(CRDS);
    let kubectl_validate = tools::ensure_tool("kubectl-validate")?;
    let (mut ours, mut theirs) = (Cost::default(), Cost::default());
    for _ in 0..args.runs {
        let validate = Cmd::program(rbuilder).arg("validate").arg(&objects);
        ours.add(validate.arg("--crds").arg(&crds).dir(folder))?;
        let validate = Cmd::program(&kubectl_validate).arg(&objects);
        theirs.add(validate.arg("--local-crds").arg(&crds).dir(folder))?;
    }
    let dry_run = measure_dry_run(&objects, &crds, args.runs)?;
    println!(
        "CPU time of {count} objects, user and system; the least of {} runs\n",
        args.runs
    );
    let ours = ours.milliseconds();
    println!("rbuilder validate  {ours:>8.0} ms");
    for (name, milliseconds) in [
        ("kubectl-validate", theirs.milliseconds()),
        ("dry run", dry_run.as_secs_f64() * 1000.0),
    ] {
        println!("{name:<18} {milliseconds:>8.0} ms {:>5.1} x", milliseconds / ours);
    }
    Ok(())
}

/// Writes the copies of the sample to separate files. Returns the folder.
fn write_objects(folder: &Path, count: usize) -> Result<PathBuf> {
    let sample = fs_err::read_to_string(repo::root().join(EXAMPLE).join(SAMPLE))?;
    ensure!(sample.contains(NAME), "the sample is not called {NAME}");
    fs_err::create_dir_all(folder)?;
    for number in 0..count {
        let copy = sample.replace(NAME, &format!("cronjob-{number:05}"));
        fs_err::write(folder.join(format!("{number:05}.yaml")), copy)?;
    }
    Ok(folder.to_owned())
}

/// Returns the CPU time of a server-side dry run (lowest value).
fn measure_dry_run(objects: &Path, crds: &Path, runs: usize) -> Result<Duration> {
    let plane = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let kubectl = Kubectl::find(Path::new(plane.kubeconfig()))?;
    kubectl
        .command("apply --server-side --filename")?
        .arg(crds)
        .run()?;
    // This must come first, since `kubectl wait` fails for a CRD that has no conditions yet.
    for state in [
        "jsonpath={.status.acceptedNames.kind}=CronJob",
        "condition=Established",
    ] {
        kubectl.command("wait crd --all --for")?.arg(state).run()?;
    }
    let mut least = Duration::MAX;
    for run in 0..=runs {
        let before = plane.cpu_time()?;
        let apply = kubectl.command("apply --server-side --dry-run=server --filename")?;
        let usage = run_measured(apply.arg(objects))?;
        let cost = usage.utime + usage.stime + plane.cpu_time()?.saturating_sub(before);
        // Ignore the first run, which is there to warm up caches.
        if run > 0 {
            least = least.min(cost);
        }
    }
    Ok(least)
}
