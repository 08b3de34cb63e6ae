//! `cargo xtask tutorials`: follows the tutorials in docs/ like a reader would do.
//!
//! We start each page in an empty folder which is not in the checkout. All of its commands are run,
//! and its files are written and changed. If there is any output on the page, it is compared with
//! what was really printed.
//!
//! The cluster is a local control plane (see `crates/runtime/examples/control_plane.rs`). Depending
//! on the page it has either real controllers and nodes, or just stand-ins for those controllers
//! that the page needs. There are blocks which need something else. Their fence says so, and we
//! list them instead of running them. As in `cargo xtask scaffold`, projects have a common build
//! folder and use the Cargo.lock of this workspace.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::control_plane::ControlPlane;
use crate::page::{Action, How, Page, Step, find_difference};
use crate::run::wait_until;
use crate::sh::Cmd;
use crate::{assets, repo};

const PAGES: &[&str] = &[
    "docs/tutorial.md",
    "docs/cronjob.md",
    "docs/adopting.md",
    "docs/several-versions.md",
    "docs/sample-controller.md",
    "docs/compatibility.md",
    "docs/day-two.md",
];
/// These pages need real controllers and nodes, i.e. it isn't possible to use stand-ins.
const PAGES_WITH_NODES: &[&str] = &["docs/replicasets.md"];

/// Timeout for one block. This is so long because the dependencies have to be built.
const LONGEST: Duration = Duration::from_secs(30 * 60);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the pages whose path contains this
    filter: Option<String>,
}

pub(crate) fn follow_pages(args: &Args) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let assets = assets::ensure_assets()?;
    let kubectl = assets::ensure_kubectl()?;
    let mut failed = Vec::new();
    for (pages, needs_nodes) in [(PAGES, false), (PAGES_WITH_NODES, true)] {
        let asks = |page: &&&str| args.filter.as_ref().is_none_or(|filter| page.contains(filter));
        let pages: Vec<&str> = pages.iter().filter(asks).copied().collect();
        if pages.is_empty() {
            continue;
        }
        let plane = match needs_nodes {
            true => ControlPlane::start_with_nodes(&assets::ensure_controllers()?)?,
            false => ControlPlane::start(&assets)?,
        };
        for page in pages {
            let shell = Shell::open(&bin, kubectl.as_deref(), &assets, plane.kubeconfig())?;
            // Don't stop here. If the failures of other pages have another reason, we want to see
            // them as well.
            if let Err(error) = follow_page(page, shell) {
                eprintln!("{page} does not work as written: {error:#}");
                failed.push(page);
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "pages that do not work as written: {}",
        failed.join(", ")
    );
    Ok(())
}

fn follow_page(path: &str, mut shell: Shell) -> Result<()> {
    let page = Page::read(path)?;
    let mut seen = String::new();
    let mut not_run = Vec::new();
    for step in &page.steps {
        let place = format!("{path}:{}", step.line);
        if let Action::Run {
            how: How::NotRun(reason),
            ..
        } = &step.action
        {
            not_run.push(format!("{place} is not run: {reason}"));
            continue;
        }
        take_step(step, &mut shell, &mut seen).with_context(|| place)?;
    }
    println!(
        "{path}: {} of {} blocks hold",
        page.steps.len() - not_run.len(),
        page.steps.len()
    );
    not_run.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn take_step(step: &Step, shell: &mut Shell, seen: &mut String) -> Result<()> {
    match &step.action {
        Action::Run { script, how } => {
            println!("$ {}", script.trim_end().replace('\n', "\n$ "));
            *seen = shell.run(script, how)?;
            shell.lock_dependencies()
        }
        Action::See(expected) => match find_difference(expected, seen) {
            Some(difference) => bail!("{difference}\n--- expected\n{expected}--- seen\n{seen}"),
            None => Ok(()),
        },
        Action::Find { path, excerpt } => {
            let text = fs_err::read_to_string(shell.folder()?.join(path))?;
            match find_difference(&format!("…\n{excerpt}…\n"), &text) {
                Some(difference) => bail!("{path}: {difference}"),
                None => Ok(()),
            }
        }
        Action::Write { .. } | Action::Change { .. } => step.action.edit_file(&shell.folder()?).map(drop),
    }
}

/// The terminal of the reader. A script starts in the same folder, and with the same variables, in
/// which the previous one has ended.
struct Shell {
    home: tempfile::TempDir,
    background: Vec<Child>,
}

impl Shell {
    fn open(bin: &Path, kubectl: Option<&Path>, assets: &Path, kubeconfig: &str) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("rbuilder-tutorial-").tempdir()?;
        let folder = home.path().join("work");
        fs_err::create_dir(&folder)?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin).chain(kubectl).map(Path::to_owned);
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)))?;
        let (target, build) = (home.path().join("target"), repo::project_build_folder());
        let variables = [
            ("PATH", path.to_string_lossy().into_owned()),
            ("KUBECONFIG", kubeconfig.to_owned()),
            ("KUBEBUILDER_ASSETS", assets.display().to_string()),
            ("CARGO_TARGET_DIR", target.display().to_string()),
            ("CARGO_BUILD_BUILD_DIR", build.display().to_string()),
            ("CARGO_TERM_COLOR", "never".to_owned()),
            (repo::KUBERNETES, repo::default_kubernetes()),
        ];
        let exports = variables.map(|(name, value)| format!("export {name}='{value}'\n"));
        fs_err::write(home.path().join("variables"), exports.concat())?;
        fs_err::write(home.path().join("folder"), folder.display().to_string())?;
        Ok(Self {
            home,
            background: Vec::new(),
        })
    }

    fn folder(&self) -> Result<PathBuf> {
        let folder = fs_err::read_to_string(self.home.path().join("folder"))?;
        Ok(PathBuf::from(folder.trim_end()))
    }

    /// Locks the dependencies of a project that has just been created, to the versions of this
    /// workspace. We don't want a page to fail on the same day as there is a new release of some
    /// dependency.
    fn lock_dependencies(&self) -> Result<()> {
        let (folder, lock) = (self.folder()?, repo::root().join("Cargo.lock"));
        if folder.join("Cargo.toml").exists() && !folder.join("Cargo.lock").exists() {
            fs_err::copy(lock, folder.join("Cargo.lock"))?;
        }
        Ok(())
    }

    fn run(&mut self, script: &str, how: &How) -> Result<String> {
        let home = self.home.path().display();
        let leave = match how {
            How::Background => String::new(),
            _ => format!("trap 'pwd > {home}/folder; export -p > {home}/variables' EXIT\n"),
        };
        let script = format!(". {home}/variables\ncd \"$(cat {home}/folder)\"\n{leave}set -e\n{script}");
        let printed = self
            .home
            .path()
            .join(format!("printed-{}", self.background.len()));
        let output = fs_err::File::create(&printed)?.into_parts().0;
        let (mut command, _) = Cmd::new("bash -c").arg(script).into_parts();
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        lead_group(&mut command);
        let mut child = command.spawn()?;
        if *how == How::Background {
            self.background.push(child);
            return Ok(String::new());
        }
        let mut status = None;
        let waited = wait_until(LONGEST, "it is not done", || {
            status = child.try_wait()?;
            Ok(status.is_some())
        });
        let printed = fs_err::read_to_string(&printed)?;
        let Some(status) = status else {
            stop(&mut child);
            return waited.context(printed).map(|()| String::new());
        };
        if status.success() != (*how == How::Succeeds) {
            bail!("{status}:\n{printed}{}", self.background_output());
        }
        Ok(printed)
    }

    /// Returns everything printed by programs in the background. If something fails, it may help to
    /// find the reason.
    fn background_output(&self) -> String {
        let outputs = (0..self.background.len()).map(|index| {
            let path = self.home.path().join(format!("printed-{index}"));
            let text = fs_err::read_to_string(path).unwrap_or_default();
            format!("--- printed in the background\n{text}")
        });
        outputs.collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.background.iter_mut().for_each(stop);
    }
}

/// Makes the script the leader of a process group, which allows [`stop`] to terminate the entire
/// group.
#[cfg(unix)]
fn lead_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// xtask must compile everywhere because of its other tasks, but this one only works on Unix.
#[cfg(not(unix))]
fn lead_group(_: &mut Command) {}

/// Terminates a script and all other processes in its group.
fn stop(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
    let _ = child.wait();
}
