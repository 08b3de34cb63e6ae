//! The verbs that reach a cluster, with a kubectl that records how it was called.
#![cfg(unix)]
#![allow(clippy::disallowed_methods)] // the tests make the programs that the command starts

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support;

use support::Folder;

/// Prints the file that stands for a rendered directory, and records everything else with its input.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1" = kustomize ]; then cat "$here/$(echo "$2" | tr / -).yaml"; exit; fi
echo "$@" >> "$here/calls"
cat >> "$here/input"
echo "done by the cluster"
[ ! -e "$here/fails" ]
"#;

/// Records how it was called.
const CARGO: &str = "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/calls\"\necho \"config $KUBECONFIG\" >> \"$(dirname \"$0\")/calls\"\n[ \"$1\" != run ] || exit 7\n";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, labels: {control-plane: controller-manager}}
spec: {template: {spec: {containers: [{name: manager, image: 'controller:latest'}]}}}
";

/// Said by `rbuilder deploy` and by `make deploy`.
const NO_MANAGER: &str =
    "config/default has no Deployment with the label control-plane=controller-manager: no image was set";

struct Scene {
    project: Folder,
    /// The programs, and what they record.
    bin: Folder,
}

impl Scene {
    fn new() -> Scene {
        let (project, bin) = (Folder::new(), Folder::new());
        project.run("init --domain example.com --project-name shop").ok();
        for (name, text) in [("kubectl", KUBECTL), ("cargo", CARGO)] {
            bin.write(name, text);
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(bin.path().join(name), mode).expect("a mode");
        }
        bin.write("config-crd.yaml", "kind: CustomResourceDefinition\n");
        bin.write("config-default.yaml", DEPLOYMENT);
        Scene { project, bin }
    }

    /// Runs a command line. Returns its exit code, and its output and errors together.
    fn run(&self, line: &str) -> (Option<i32>, String) {
        self.run_with_path(line, &format!("{}:/bin:/usr/bin", self.bin.path().display()))
    }

    fn run_with_path(&self, line: &str, path: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
        command
            .args(line.split_whitespace())
            .current_dir(self.project.path());
        command
            .env("PATH", path)
            .env_remove("KUBEBUILDER_ASSETS")
            .env_remove("KUBECONFIG")
            // Nothing is installed there.
            .env("HOME", self.bin.path())
            .env("XDG_DATA_HOME", self.bin.path());
        let output = command.output().expect("the command runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("text"))
    }

    /// Returns what was recorded in a file, and forgets it.
    fn take(&self, name: &str) -> String {
        let path = self.bin.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text
    }
}

#[test]
fn verbs_render_and_hand_over() {
    let scene = Scene::new();
    let crds = "kind: CustomResourceDefinition\n";
    let apply = "apply --server-side --force-conflicts -f -";
    let check = |line: &str, folder: &str, call: &str, input: &str| {
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(0), "{line}: {said}");
        assert!(
            said.contains(&format!("kubectl kustomize {folder} | kubectl {call}\n")),
            "{said}"
        );
        assert!(said.contains("done by the cluster\n"), "{said}");
        assert_eq!(scene.take("calls"), format!("{call}\n"), "{line}");
        assert_eq!(scene.take("input"), input, "{line}");
    };
    check("install", "config/crd", apply, crds);
    check(
        "install --context kind-a",
        "config/crd",
        &format!("--context kind-a {apply}"),
        crds,
    );
    check(
        "install --kubeconfig /a/config",
        "config/crd",
        &format!("--kubeconfig /a/config {apply}"),
        crds,
    );
    check(
        "uninstall",
        "config/crd",
        "delete --ignore-not-found=false -f -",
        crds,
    );
    check(
        "undeploy --ignore-not-found",
        "config/default",
        "delete --ignore-not-found=true -f -",
        DEPLOYMENT,
    );
    let deployed = r#"{"apiVersion":"v1","items":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"control-plane":"controller-manager"},"name":"manager"},"spec":{"template":{"spec":{"containers":[{"image":"example.com/shop:1","name":"manager"}]}}}}],"kind":"List"}"#;
    check(
        "deploy --image example.com/shop:1",
        "config/default",
        apply,
        deployed,
    );
}

#[test]
fn an_image_has_a_place_and_a_place_has_an_image() {
    let scene = Scene::new();
    let (code, said) = scene.run("deploy");
    assert_eq!(code, Some(2));
    assert!(said.contains("--image <IMAGE>"), "{said}");
    scene.bin.write(
        "config-default.yaml",
        &DEPLOYMENT.replace("controller-manager", "other"),
    );
    let (code, said) = scene.run("deploy --image example.com/shop:1");
    assert_eq!(code, Some(1));
    assert!(said.contains(NO_MANAGER), "{said}");
    assert_eq!(scene.take("calls"), "");
}

#[test]
fn nothing_is_installed_where_nothing_is_rendered() {
    let scene = Scene::new();
    scene.bin.write("config-crd.yaml", "");
    let (code, said) = scene.run("install");
    assert_eq!((code, scene.take("calls").as_str()), (Some(0), ""));
    assert!(said.contains("no CRDs to install"), "{said}");
}

#[test]
fn a_refusal_of_the_cluster_is_the_commands() {
    let scene = Scene::new();
    scene.bin.write("fails", "");
    let (code, said) = scene.run("install");
    assert_eq!(code, Some(1));
    assert!(
        said.ends_with("error: `kubectl apply --server-side --force-conflicts -f -` failed\n"),
        "{said}"
    );
}

#[test]
fn kubectl_is_named_when_it_is_missing() {
    let scene = Scene::new();
    let nowhere = Folder::new();
    let (code, said) = scene.run_with_path("install", &nowhere.path().display().to_string());
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("error: kubectl was not found: install it"),
        "{said}"
    );
}

#[test]
fn the_manager_runs_with_the_chosen_cluster_and_its_own_exit_code() {
    let scene = Scene::new();
    let (code, said) = scene.run("run --kubeconfig /a/config -- --leader-elect");
    assert_eq!(code, Some(7), "{said}");
    assert!(
        said.contains("cargo run --bin manager -- --leader-elect\n"),
        "{said}"
    );
    let calls = scene.take("calls");
    assert!(
        calls.ends_with("run --bin manager -- --leader-elect\nconfig /a/config\n"),
        "{calls}"
    );

    let (code, _) = scene.run("run --context kind-a");
    assert_eq!(code, Some(7));
    let calls = scene.take("calls");
    assert!(
        calls.contains("--context kind-a config view --raw --minify --flatten\n"),
        "{calls}"
    );
    let kubeconfig = calls
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("config "))
        .expect("a file");
    assert!(
        kubeconfig.starts_with('/') && !Path::new(kubeconfig).exists(),
        "{kubeconfig}"
    );
}
