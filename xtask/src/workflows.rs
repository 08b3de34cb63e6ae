//! `cargo xtask workflows`: runs the workflows of a scaffold in a clean clone.
//!
//! We run one script after the other, in the same way as GitHub's runner. Between the scripts there
//! are actions, which just fetch files, so we can replace them: the checkout is a clone, and the
//! caches contain the command and the test binaries. Scripts for end-to-end tests and releases are
//! skipped, since they need a cluster and a registry.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::project::{commit_all, scaffold};
use crate::sh::{Cmd, write_program};
use crate::value::items;
use crate::{assets, repo};

const WORKFLOWS: &[&str] = &["api.yml", "lint.yml", "test.yml"];
const BRANCH: &str = "main";

pub(crate) fn run_steps() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-workflows-").tempdir()?;
    let project = folder.path().join("memcached-operator");
    commit_scaffold(&project, &bin)?;
    let clone = folder.path().join("clone");
    Cmd::new("git branch --quiet --move")
        .arg(BRANCH)
        .dir(&project)
        .run()?;
    Cmd::new("git clone --quiet").arg(&project).arg(&clone).run()?;
    let runner = Runner::new(folder.path(), &clone, &bin)?;
    for workflow in WORKFLOWS {
        let text = fs_err::read_to_string(clone.join(".github/workflows").join(workflow))?;
        let scripts = read_scripts(&text)?;
        ensure!(!scripts.is_empty(), "{workflow} has no steps");
        for script in scripts {
            println!("\n{workflow}: {}", script.trim_end());
            runner
                .run(&script)
                .with_context(|| format!("a step of {workflow} failed"))?;
        }
    }
    let summary = fs_err::read_to_string(runner.summary())?;
    ensure!(
        summary.contains("No changes of CRDs"),
        "the job summary is:\n{summary}"
    );
    let changed = Cmd::new("git status --porcelain").dir(&clone).read()?;
    ensure!(changed.is_empty(), "the steps changed the clone:\n{changed}");
    Ok(())
}

/// Creates a project. It is then committed, like its author would do.
fn commit_scaffold(project: &Path, bin: &Path) -> Result<()> {
    let commands = [
        "init --domain example.com --library path",
        "create api --group cache --version v1alpha1 --kind Memcached",
        "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --validation",
    ];
    scaffold(bin, project, &commands)?;
    repo::project_command(project, "cargo metadata --quiet --format-version 1").read()?;
    commit_all(project).map(drop)
}

/// The environment in which the steps of a job are run.
struct Runner {
    clone: PathBuf,
    programs: PathBuf,
    /// In this file, a step can set variables for the next steps.
    variables: PathBuf,
    /// The data directory, which contains the test binaries as if it came from a cache.
    data: PathBuf,
}

impl Runner {
    fn new(folder: &Path, clone: &Path, bin: &Path) -> Result<Self> {
        let runner = Runner {
            clone: clone.to_owned(),
            programs: folder.join("programs"),
            variables: folder.join("variables"),
            data: folder.join("data"),
        };
        fs_err::write(&runner.variables, "")?;
        fs_err::create_dir_all(&runner.programs)?;
        // We have to use the toolchain of this machine for the tests.
        write_program(&runner.programs.join("rustup"), "#!/bin/sh\n")?;
        fs_err::create_dir(clone.join("bin"))?;
        fs_err::copy(bin.join("rbuilder"), clone.join("bin/rbuilder"))?;
        runner.restore_assets(&assets::ensure_assets()?)?;
        Ok(runner)
    }

    /// Copies etcd and kube-apiserver. They need to be in the folder to which `make setup-envtest`
    /// would download them, and the folder name is the version.
    fn restore_assets(&self, assets: &Path) -> Result<()> {
        let store = self.data.join("kubebuilder-envtest/k8s");
        fs_err::create_dir_all(&store)?;
        let name = assets.file_name().context("the assets have no folder")?;
        Cmd::new("cp -RL").arg(assets).arg(store.join(name)).run()
    }

    fn summary(&self) -> PathBuf {
        self.programs.join("summary")
    }

    /// Runs a script as one of the steps. It stops as soon as a command fails.
    fn run(&self, script: &str) -> Result<()> {
        let step = self.programs.join("step");
        fs_err::write(&step, script)?;
        let mut command = repo::project_command(&self.clone, "bash -e")
            .arg(&step)
            .path_first(&self.programs)?
            .env("CI", "true")
            .env("GITHUB_BASE_REF", BRANCH)
            .env("GITHUB_ENV", &self.variables)
            .env("GITHUB_STEP_SUMMARY", self.summary())
            .env("XDG_DATA_HOME", &self.data)
            .without("KUBEBUILDER_ASSETS")
            .without("CARGO");
        let variables = fs_err::read_to_string(&self.variables)?;
        for (name, value) in variables.lines().filter_map(|line| line.split_once('=')) {
            command = command.env(name, value);
        }
        command.run()
    }
}

/// Returns all scripts in a workflow. The jobs are in alphabetical order.
fn read_scripts(workflow: &str) -> Result<Vec<String>> {
    let workflow: Value = serde_saphyr::from_str(workflow)?;
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    let steps = jobs.flat_map(|(_, job)| items(job, "/steps"));
    let scripts = steps.filter_map(|step| step["run"].as_str());
    Ok(scripts.map(str::to_owned).collect())
}
