//! `cargo xtask dev-loop`: tests `rbuilder dev` in a project that has just been scaffolded.
//!
//! The project has a webhook that sets defaults, and a conversion. We change the defaulter while
//! the operator is running: first it should set another value, and then it doesn't compile anymore.
//! There must be no processes and folders left when everything has been stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::kubectl::Kubectl;
use crate::project::{edit, scaffold};
use crate::run::Running;
use crate::sh::Cmd;
use crate::{assets, repo};

const COMMANDS: &[&str] = &[
    "init --domain example.com --project-name crew",
    "create api --group crew --version v1 --kind Mate",
    "create webhook --group crew --version v1 --kind Mate --defaulting",
    "create api --group crew --version v2 --kind Mate",
    "create webhook --group crew --version v1 --kind Mate --conversion --spoke v2",
];

const HANDLERS: &str = "src/webhook/v1/mate.rs";

/// The line of the scaffold that we replace.
const PLACE: &str = "    // Set defaults that depend on other fields here.";

/// The dependencies must be compiled first, so this is quite long.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// This is what the command prints at the end of each cycle.
const RUNNING: &str = "the manager is running\n";

pub(crate) fn follow_loop() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let temp = tempfile::Builder::new().prefix("rbuilder-dev-loop-").tempdir()?;
    let folder = temp.path().join("crew");
    scaffold(&bin, &folder, COMMANDS)?;
    let handlers = fs_err::read_to_string(folder.join(HANDLERS))?;
    // Changes the defaulter so that it sets this value.
    let set_default = |value: &str| {
        let annotations = "object.metadata.annotations.get_or_insert_default()";
        let statement = format!("    {annotations}.insert(\"edited\".into(), \"{value}\".into());\n{PLACE}");
        fs_err::write(folder.join(HANDLERS), &handlers)?;
        edit(&folder.join(HANDLERS), PLACE, &statement)
    };
    // We use a folder of our own for temporary files. This allows us to see if anything is left
    // there.
    let scratch = temp.path().join("tmp");
    fs_err::create_dir(&scratch)?;
    set_default("first")?;
    let mut dev = Dev::start(&folder, &bin, &scratch, &temp.path().join("log"))?;
    dev.wait_for(RUNNING, 1)?;
    let cluster = Cluster {
        kubectl: Kubectl::find(&dev.kubeconfig()?)?,
        manifest: temp.path().join("mate.json"),
    };
    ensure!(cluster.create("a")? == "first", "the defaulter was not called");
    set_default("second")?;
    dev.wait_for(RUNNING, 2)?;
    ensure!(cluster.create("b")? == "second", "the edit was not taken over");
    set_default("\" mistake")?;
    dev.wait_for("the previous build keeps running", 1)?;
    let value = cluster.create("c")?;
    ensure!(value == "second", "a mistake has stopped the operator");
    dev.terminate()?;
    check_nothing_left(&scratch)?;
    println!("`rbuilder dev` defaulted, converted, followed edits, and left nothing");
    Ok(())
}

/// The command while it's running. If it is killed, that also ends all processes it has started.
struct Dev {
    process: Running,
    log: PathBuf,
}

impl Dev {
    fn start(project: &Path, bin: &Path, scratch: &Path, log: &Path) -> Result<Dev> {
        let mut command = repo::project_command(project, "rbuilder dev")
            .env("KUBEBUILDER_ASSETS", assets::ensure_assets()?)
            .env("TMPDIR", scratch)
            .path_first(bin)?;
        if let Some(kubectl) = assets::ensure_kubectl()? {
            command = command.path_first(&kubectl)?;
        }
        Ok(Dev {
            process: Running::start(command.without_input(), log)?,
            log: log.to_owned(),
        })
    }

    fn printed(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs_err::read(&self.log)?).into_owned())
    }

    fn wait_for(&mut self, text: &str, times: usize) -> Result<()> {
        let log = self.log.clone();
        let is_printed = || Ok(fs_err::read_to_string(&log)?.matches(text).count() >= times);
        let waited = self
            .process
            .wait_until(TIMEOUT, "the text is missing", is_printed);
        waited.with_context(|| format!("no `{}` in\n{}", text.trim(), self.printed().unwrap_or_default()))
    }

    fn kubeconfig(&self) -> Result<PathBuf> {
        let printed = self.printed()?;
        let path = printed.lines().find_map(|line| line.strip_prefix("kubeconfig: "));
        Ok(path.context("no kubeconfig was printed")?.into())
    }

    /// Sends SIGTERM to the command, and waits until it has exited.
    fn terminate(&mut self) -> Result<()> {
        Cmd::new(&format!("kill -TERM {}", self.process.0.id())).run()?;
        let status = self.process.wait(TIMEOUT)?;
        let printed = self.printed()?;
        ensure!(status.success(), "`rbuilder dev` ended with {status}:\n{printed}");
        Ok(())
    }
}

struct Cluster {
    kubectl: Kubectl,
    manifest: PathBuf,
}

impl Cluster {
    /// Creates an object in one version, and reads it in another. Returns the value set by the
    /// defaulter.
    fn create(&self, name: &str) -> Result<String> {
        let manifest = json!({
            "apiVersion": "crew.example.com/v1",
            "kind": "Mate",
            "metadata": { "name": name },
            "spec": {},
        });
        fs_err::write(&self.manifest, manifest.to_string())?;
        self.kubectl.command("create -f")?.arg(&self.manifest).run()?;
        let column = "-o=jsonpath={.apiVersion} {.metadata.annotations.edited}";
        let get = self.kubectl.command("get mates.v2.crew.example.com")?;
        let found = get.args([name, column]).read()?;
        let edited = found.strip_prefix("crew.example.com/v2 ").map(str::to_owned);
        edited.with_context(|| format!("{name} is not shown in v2: {found}"))
    }
}

/// Checks that the folder is empty, and that it doesn't occur in the command line of any process.
fn check_nothing_left(scratch: &Path) -> Result<()> {
    let left: Vec<_> = fs_err::read_dir(scratch)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    ensure!(left.is_empty(), "these are left: {left:?}");
    // This only has an effect on systems with /proc.
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let is_here = arguments.contains(&*scratch.to_string_lossy());
        ensure!(!is_here, "{} is left: {arguments}", process.path().display());
    }
    Ok(())
}
