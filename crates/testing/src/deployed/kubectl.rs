//! Runs kubectl and other programs.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rbuilder_kubernetes::gvk;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Kubectl {
    program: String,
}

impl Kubectl {
    pub(super) fn from_environment() -> Self {
        let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        Self { program }
    }

    pub(super) fn command(&self, namespace: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--namespace", namespace]);
        command
    }

    pub(super) fn command_for(&self, object: &Value) -> Command {
        let namespace = object["metadata"]["namespace"].as_str();
        match namespace {
            Some(namespace) => self.command(namespace),
            None => Command::new(&self.program),
        }
    }

    #[track_caller]
    pub(super) fn kustomize(&self, folder: &str) -> String {
        read(Command::new(&self.program).args(["kustomize", folder]))
    }

    #[track_caller]
    pub(super) fn apply(&self, object: &Value) {
        let mut command = Command::new(&self.program);
        command.args([
            "apply",
            "--server-side",
            "--field-manager=test-e2e",
            "--filename=-",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut input = child.stdin.take().expect("the input is a pipe");
        input
            .write_all(object.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Close the pipe before waiting, as kubectl reads its input until EOF.
        drop(input);
        let status = child.wait().expect("a child process can be awaited");
        assert!(status.success(), "{command:?}: {status}");
    }
}

/// Formats the object's name as a kubectl argument, e.g. `Deployment.v1.apps/manager`.
pub(super) fn resource_name(object: &Value) -> String {
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (part(&object["kind"]), part(&object["metadata"]["name"]));
    format!("{}/{name}", gvk::argument(&kind, &part(&object["apiVersion"])))
}

#[track_caller]
pub(super) fn has_resources(folder: &str) -> bool {
    let path = Path::new(folder).join("kustomization.yaml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kustomization: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    kustomization["resources"]
        .as_array()
        // kubectl fails on a kustomization without resources, i.e. before the first
        // `rbuilder create api`.
        .is_some_and(|resources| !resources.is_empty())
}

#[track_caller]
pub(super) fn run(command: &mut Command) {
    print(&format!("{command:?}"));
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?}: {status}"),
        Err(error) => panic!("{command:?}: {error}"),
    }
}

#[track_caller]
pub(super) fn read(command: &mut Command) -> String {
    output(command).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`read`], but returns stderr instead of panicking.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?}: {}: {errors}", output.status))
        }
    }
}

/// Prints to the test's output, which `cargo test` shows on failure or with `--nocapture`.
#[allow(clippy::disallowed_macros)] // tests have no subscriber
pub(super) fn print(line: &str) {
    println!("{line}");
}
