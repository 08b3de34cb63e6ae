//! Runs kubectl, which renders kustomizations and reads and writes objects.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
#[cfg(feature = "control-plane")]
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use crate::programs::{LIMIT, ask, neutral_folder, program_in};
use crate::shell::Shell;

/// Timeout for the API server to serve new CRDs.
#[cfg(feature = "control-plane")]
const ESTABLISHED: Duration = Duration::from_secs(30);

/// Error of `kubectl wait` for an object without conditions.
#[cfg(feature = "control-plane")]
const NO_CONDITIONS: &str = ".status.conditions accessor error";

#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterChoice {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    program: PathBuf,
    /// Arguments before all others, e.g. for `microk8s kubectl`.
    prefix: Vec<OsString>,
    /// Command that renders a directory, or `None` for `kubectl kustomize`.
    kustomize: Option<(PathBuf, Vec<OsString>)>,
    /// Flags for commands that connect to the cluster.
    target: Vec<OsString>,
    folder: PathBuf,
}

impl Kubectl {
    /// Finds kubectl on the `PATH`, next to the test environment's binaries, or with `installed`,
    /// which looks for a kubectl installed by rbuilder. As in a project's Makefile, the variables
    /// `KUBECTL` and `KUSTOMIZE` override `kubectl` and `kubectl kustomize`. Fails if they name a
    /// missing program.
    pub(crate) fn find(
        folder: &Path,
        cluster: &ClusterChoice,
        installed: impl FnOnce() -> Option<PathBuf>,
    ) -> Result<Kubectl> {
        let var = |name: &str| std::env::var_os(name);
        let (name, prefix) = read_command("KUBECTL")?.unwrap_or_else(|| ("kubectl".to_owned(), Vec::new()));
        let program = find_program(&name, var, installed).ok_or_else(|| match &*name {
            "kubectl" => anyhow!(
                "kubectl was not found: install it (https://kubernetes.io/docs/tasks/tools) and put its directory on the \
                 PATH, or run `rbuilder envtest install`, which includes it"
            ),
            name => anyhow!("KUBECTL names `{name}`, which was not found on the PATH"),
        })?;
        let kustomize = match read_command("KUSTOMIZE")? {
            // The Makefile's default; same as if unset.
            Some((command, words))
                if words.last().is_some_and(|word| word == "kustomize") && command == name =>
            {
                None
            }
            Some((command, words)) => {
                let found = find_program(&command, var, || None);
                let found = found
                    .ok_or_else(|| anyhow!("KUSTOMIZE names `{command}`, which was not found on the PATH"))?;
                Some((found, words))
            }
            None => None,
        };
        let mut target = Vec::new();
        if let Some(kubeconfig) = &cluster.kubeconfig {
            target.push(OsString::from("--kubeconfig"));
            // kubectl runs in the project directory, so make the path absolute.
            target.push(std::path::absolute(kubeconfig)?.into());
        }
        if let Some(context) = &cluster.context {
            target.extend(["--context".into(), OsString::from(context)]);
        }
        Ok(Kubectl {
            program,
            prefix,
            kustomize,
            target,
            folder: folder.to_owned(),
        })
    }

    #[cfg(feature = "control-plane")]
    pub(crate) fn for_kubeconfig(&self, kubeconfig: &Path) -> Kubectl {
        Kubectl {
            target: vec!["--kubeconfig".into(), kubeconfig.into()],
            ..self.clone()
        }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn connection_arguments(&self) -> impl Iterator<Item = &OsString> {
        self.prefix.iter().chain(&self.target)
    }

    /// Reads the kubeconfig of the selected context as self-contained text, including credentials.
    pub(crate) fn read_kubeconfig(&self) -> Result<String> {
        self.read(&["config", "view", "--raw", "--minify", "--flatten"], "")
    }

    /// Returns the output of `kubectl version` as JSON. Runs outside of the project, with a
    /// timeout.
    pub(crate) fn read_version(&self) -> Result<String> {
        let arguments = ["version", "--client", "--output=json"];
        let mut command = Command::new(&self.program);
        command
            .args(&self.prefix)
            .args(arguments)
            .current_dir(neutral_folder(&self.program))
            // The client's version needs no cluster, and the kubeconfig may come from the project.
            .env_remove("KUBECONFIG");
        self.ask(command, &arguments)
    }

    /// Queries the cluster in the user's kubeconfig. Runs outside of the project, with a timeout.
    pub(crate) fn ask_cluster(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.prefix)
            .args(arguments)
            .arg("--request-timeout=5s")
            .current_dir(neutral_folder(&self.program));
        if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
            let folder = std::fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
            // A kubeconfig can name a program to run, so ignore one from the project.
            let is_own = |path: &PathBuf| {
                let path = std::fs::canonicalize(self.folder.join(path));
                path.is_ok_and(|path| path.starts_with(&folder))
            };
            let others: Vec<PathBuf> = std::env::split_paths(&paths)
                .filter(|path| path.is_absolute() && !is_own(path))
                .collect();
            if others.is_empty() {
                bail!("KUBECONFIG names no file outside of the project");
            }
            command.env("KUBECONFIG", std::env::join_paths(others)?);
        }
        self.ask(command, arguments)
    }

    fn ask(&self, mut command: Command, arguments: &[&str]) -> Result<String> {
        let answer =
            ask(&mut command, LIMIT).with_context(|| format!("cannot run {}", self.program.display()))?;
        let output = Output {
            status: answer.status,
            stdout: answer.out,
            stderr: answer.err,
        };
        self.checked(arguments, output)
    }

    pub(crate) fn render(&self, folder: &str) -> Result<String> {
        if !self.folder.join(folder).is_dir() {
            bail!(
                "{folder} does not exist: run this command in a project that was initialized with `rbuilder init`, or \
                 pass its directory with `-C <dir>`"
            );
        }
        let Some((program, words)) = &self.kustomize else {
            let output = self.start(&[], &["kustomize", folder], "")?;
            return self.checked(&["kustomize", folder], output);
        };
        let mut command = Command::new(program);
        command.args(words).arg(folder);
        let output = self.start_command(command, "")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`{} {folder}` failed: {}", program.display(), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Lists the objects that `kubectl get` finds with these arguments. Missing objects are not an
    /// error.
    pub(crate) fn list(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        self.get(arguments, "")
    }

    /// Reads the current state of the given objects, skipping those that don't exist. `objects` is
    /// a document for kubectl.
    pub(crate) fn read_objects(&self, objects: &str) -> Result<Vec<Value>> {
        self.get(&["-f", "-"], objects)
    }

    fn get(&self, arguments: &[&str], input: &str) -> Result<Vec<Value>> {
        let get = ["get", "--ignore-not-found", "--output=json"];
        let text = self.read(&[&get[..], arguments].concat(), input)?;
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Value = serde_json::from_str(&text)
            .with_context(|| format!("the output of `kubectl get {}` is not JSON", arguments.join(" ")))?;
        Ok(match found["items"].take() {
            Value::Array(items) => items,
            _ => vec![found],
        })
    }

    /// Fails if `KUBECONFIG` names only missing files. kubectl treats them like empty ones and
    /// connects to `localhost:8080`.
    pub(super) fn check_kubeconfig(&self) -> Result<()> {
        let names = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let files: Vec<PathBuf> = std::env::split_paths(&names)
            .filter(|file| !file.as_os_str().is_empty())
            .collect();
        let is_overridden = self.target.iter().any(|word| word == "--kubeconfig");
        if is_overridden || files.is_empty() || files.iter().any(|file| self.folder.join(file).exists()) {
            return Ok(());
        }
        bail!(
            "KUBECONFIG names {}, which does not exist: correct the variable, or pass `--kubeconfig`",
            names.to_string_lossy()
        )
    }

    /// Prints the equivalent of a [`Kubectl::run`] as a pipeline, with the rendered manifests as
    /// input.
    pub(crate) fn show_pipe(&self, folder: &str, arguments: &[&str], shell: &mut Shell) {
        let words = self.target.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.chain(arguments.iter().map(|word| (*word).into())).collect();
        shell.note(&format!(
            "kubectl kustomize {folder} | kubectl {}\n",
            words.join(" ")
        ));
    }

    /// Runs kubectl with an input and prints its output. On failure, kubectl's error messages were
    /// already printed.
    pub(crate) fn run(&self, arguments: &[&str], input: &str, shell: &mut Shell) -> Result<()> {
        self.attempt(arguments, input, shell)?.finish(shell)
    }

    /// Runs kubectl with an input. Printing the output and failing is left to the caller.
    pub(super) fn attempt(&self, arguments: &[&str], input: &str, shell: &mut Shell) -> Result<Attempt> {
        self.check_kubeconfig()?;
        let line = arguments.join(" ");
        shell.detail(&format!("kubectl {line}\n"));
        let output = self.start(&self.target, arguments, input)?;
        Ok(Attempt {
            line,
            is_success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs kubectl with an input and returns its output. The error contains kubectl's standard
    /// error.
    pub(crate) fn read(&self, arguments: &[&str], input: &str) -> Result<String> {
        self.check_kubeconfig()?;
        let output = self.start(&self.target, arguments, input)?;
        self.checked(arguments, output)
    }

    /// Waits until the API server serves the CRDs, up to [`ESTABLISHED`].
    #[cfg(feature = "control-plane")]
    pub(crate) fn wait_until_established(&self, crds: &str) -> Result<()> {
        let timeout = format!("--timeout={}s", ESTABLISHED.as_secs());
        let wait = ["wait", "--for=condition=Established", &timeout, "-f", "-"];
        let deadline = Instant::now() + ESTABLISHED;
        loop {
            match self.read(&wait, crds) {
                // Retry: `kubectl wait` fails immediately on a CRD without conditions, i.e. shortly
                // after its creation.
                Err(error) if error.to_string().contains(NO_CONDITIONS) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                result => return result.map(drop),
            }
        }
    }

    fn checked(&self, arguments: &[&str], output: Output) -> Result<String> {
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let advice = advise_cluster(&said);
            bail!(
                "`kubectl {}` failed: {}{advice}",
                arguments.join(" "),
                said.trim()
            );
        }
        String::from_utf8(output.stdout).map_err(|_| {
            anyhow!(
                "the output of `kubectl {}` is not valid UTF-8",
                arguments.join(" ")
            )
        })
    }

    fn start(&self, target: &[OsString], arguments: &[&str], input: &str) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(&self.prefix).args(target).args(arguments);
        self.start_command(command, input)
    }

    fn start_command(&self, mut command: Command, input: &str) -> Result<Output> {
        let program = command.get_program().to_string_lossy().into_owned();
        let context = || format!("cannot run {program}");
        command.current_dir(&self.folder);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().with_context(context)?;
        let stdin = child.stdin.take();
        // Write in a second thread while reading, or both pipes could fill up.
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A failed kubectl doesn't read its input. Rely on the exit status.
                let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
            });
            child.wait_with_output()
        })
        .with_context(context)
    }
}

#[derive(Debug)]
pub(super) struct Attempt {
    line: String,
    is_success: bool,
    stdout: String,
    pub(super) stderr: String,
}

impl Attempt {
    pub(super) fn finish(self, shell: &mut Shell) -> Result<()> {
        shell.out(&self.stdout);
        shell.note_always(&self.stderr);
        match self.is_success {
            true => Ok(()),
            false => bail!("`kubectl {}` failed{}", self.line, advise_cluster(&self.stderr)),
        }
    }
}

/// kubectl only says that it cannot connect to `localhost:8080` if there is no kubeconfig.
fn advise_cluster(said: &str) -> &'static str {
    match said.contains("localhost:8080") {
        true => {
            "\n  = help: kubectl has found no kubeconfig that names a cluster: set KUBECONFIG, or pass `--kubeconfig` \
             and `--context`"
        }
        false => "",
    }
}

fn read_command(variable: &str) -> Result<Option<(String, Vec<OsString>)>> {
    let Some(text) = std::env::var_os(variable) else {
        return Ok(None);
    };
    let text = text
        .to_str()
        .with_context(|| format!("{variable} is not valid UTF-8"))?;
    let mut words = text.split_whitespace();
    let command = words
        .next()
        .map(|name| (name.to_owned(), words.map(OsString::from).collect()));
    Ok(command)
}

/// Looks for a program in `PATH`, then in `KUBEBUILDER_ASSETS`, then with `installed`.
fn find_program(
    name: &str,
    var: impl Fn(&str) -> Option<OsString>,
    installed: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        // A relative path could point to a program in the repository.
        return (path.is_absolute() && path.is_file()).then(|| path.to_owned());
    }
    let folders = var("PATH").unwrap_or_default();
    let assets = var("KUBEBUILDER_ASSETS").filter(|folder| folder != OsStr::new(""));
    let mut folders = std::env::split_paths(&folders).chain(assets.map(PathBuf::from));
    let find = |folder: PathBuf| program_in(&folder, name);
    folders.find_map(find).or_else(|| installed().and_then(find))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // the tests create the programs

    use super::*;

    fn write_program(path: &Path) {
        std::fs::write(path, "").expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("its owner");
        }
    }

    #[test]
    fn finds_kubectl_on_the_path_before_other_places() {
        let temp = tempfile::tempdir().expect("a temporary folder");
        let [first, second, installed] = ["first", "second", "installed"].map(|name| temp.path().join(name));
        for folder in [&first, &second, &installed] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let file = format!("kubectl{}", std::env::consts::EXE_SUFFIX);
        write_program(&second.join(&file));
        let find = |path: &[&Path], assets: Option<&Path>| {
            let var = |name: &str| match name {
                "PATH" => Some(std::env::join_paths(path).expect("paths")),
                _ => assets.map(OsString::from),
            };
            find_program("kubectl", var, || Some(installed.clone()))
        };
        assert_eq!(find(&[&first, &second], None), Some(second.join(&file)));
        assert_eq!(find(&[&first], Some(&second)), Some(second.join(&file)));
        assert_eq!(find(&[&first], Some(Path::new(""))), None);
        write_program(&first.join(&file));
        assert_eq!(find(&[&first, &second], None), Some(first.join(&file)));
        assert_eq!(find(&[Path::new("."), Path::new("")], None), None);
        write_program(&installed.join(&file));
        assert_eq!(find(&[Path::new(".")], None), Some(installed.join(&file)));
    }

    #[cfg(all(unix, feature = "control-plane"))]
    #[test]
    fn waits_for_a_crd_without_conditions() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = tempfile::tempdir().expect("a temporary folder");
        let program = temp.path().join("kubectl");
        let script = "#!/bin/sh\n\
            if [ -e asked ]; then echo established; exit; fi\n\
            touch asked\n\
            echo 'error: .status.conditions accessor error: <nil> is of the type <nil>' >&2\n\
            exit 1\n";
        std::fs::write(&program, script).expect("a file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let kubectl = Kubectl {
            program,
            prefix: Vec::new(),
            kustomize: None,
            target: Vec::new(),
            folder: temp.path().to_owned(),
        };
        kubectl.wait_until_established("").expect("established");
        std::fs::write(
            temp.path().join("kubectl"),
            "#!/bin/sh\necho timed out >&2\nexit 1\n",
        )
        .expect("a file");
        let error = kubectl
            .wait_until_established("")
            .expect_err("no other error is retried");
        assert!(error.to_string().ends_with("timed out"), "{error}");
    }
}
