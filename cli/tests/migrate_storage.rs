//! `rbuilder migrate-storage` on kube-apiserver.
//!
//! No request tells us in which version an object is stored. But once a version has gone from the
//! CRD, the API server can't read objects that are stored in it. [`Scene::drop_version`] makes use
//! of that.
#![cfg(unix)]
#![allow(clippy::disallowed_methods)] // the tests start processes themselves

#[path = "migrate_storage/conversion.rs"]
mod conversion;
#[path = "migrate_storage/converter.rs"]
mod converter;
#[path = "support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rbuilder_control_plane::{Assets, Cancel, ControlPlane, Settings};
use serde_json::{Value, json};
use support::Folder;

/// All tests share the servers, which end with this process.
static PLANE: LazyLock<ControlPlane> = LazyLock::new(|| {
    let assets = Assets::find(None).expect("the binaries of a control plane");
    let mut settings = Settings::from_env().expect("settings");
    settings.controllers = true;
    ControlPlane::start(&assets, &settings, &Cancel::default()).expect("a control plane")
});

/// The cluster may take this long for what it does on its own.
const PATIENCE: Duration = Duration::from_secs(120);

/// All objects of the CRD are stored in v1, although the storage version is v2.
struct Scene {
    plural: String,
    folder: Folder,
}

impl Scene {
    fn new(plural: &str, objects: usize) -> Scene {
        let scene = Scene {
            plural: plural.to_owned(),
            folder: Folder::new(),
        };
        // All tests share the API server, so each of them needs a kind of its own.
        let crd = scene.crd("v1").to_string();
        let ran = run("kubectl", &["create", "--save-config", "-f", "-"], &crd);
        assert!(ran.status.success(), "{}", text(&ran));
        // This fails as long as the CRD has no conditions.
        let wait = [
            "wait",
            "--for=condition=Established",
            &format!("crd/{}", scene.name()),
        ];
        wait_until("the CRD is established", || {
            run("kubectl", &wait, "").status.success()
        });
        let items: Vec<Value> = (0..objects).map(|at| scene.object(&format!("a{at}"))).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        // Retry, since discovery may not have the new kind yet.
        let create = || {
            run("kubectl", &["create", "-f", "-"], &list.to_string())
                .status
                .success()
        };
        wait_until("the kind is served", create);
        scene.apply(&scene.crd("v2"));
        wait_until("v2 is stored", || scene.stored_versions() == ["v1", "v2"]);
        scene
    }

    fn name(&self) -> String {
        format!("{}.g.example.com", self.plural)
    }

    fn crd(&self, storage: &str) -> Value {
        let kind = self.plural.to_uppercase();
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == storage,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "size": { "type": "integer" } },
                } },
            })
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name() },
            "spec": {
                "group": "g.example.com", "scope": "Namespaced",
                "names": { "kind": kind, "listKind": format!("{kind}LIST"), "plural": self.plural, "singular": self.plural },
                "versions": [version("v1"), version("v2")],
            },
        })
    }

    fn object(&self, name: &str) -> Value {
        json!({
            "apiVersion": "g.example.com/v1", "kind": self.plural.to_uppercase(),
            "metadata": { "name": name, "namespace": "default" }, "size": 1,
        })
    }

    fn apply(&self, object: &Value) {
        let ran = run("kubectl", &["apply", "-f", "-"], &object.to_string());
        assert!(ran.status.success(), "{object}: {}", text(&ran));
    }

    #[track_caller]
    fn kubectl(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = run("kubectl", &words, "");
        assert!(ran.status.success(), "{line}: {}", text(&ran));
        String::from_utf8(ran.stdout).expect("text")
    }

    fn read_crd(&self) -> Value {
        let crd = self.kubectl(&format!("get crd {} --output=json", self.name()));
        serde_json::from_str(&crd).expect("JSON")
    }

    fn stored_versions(&self) -> Vec<String> {
        let crd = self.read_crd();
        let versions = crd["status"]["storedVersions"].as_array().expect("a list");
        versions
            .iter()
            .map(|version| version.as_str().expect("a name").to_owned())
            .collect()
    }

    fn has_record(&self) -> bool {
        self.read_crd()["metadata"]["annotations"]["rbuilder.dev/storage-migration"].is_string()
    }

    fn metadata(&self) -> Vec<Value> {
        let list = self.kubectl(&format!(
            "get {} --output=json --show-managed-fields",
            self.resource()
        ));
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let items = list["items"].as_array().expect("a list");
        items.iter().map(|item| item["metadata"].clone()).collect()
    }

    fn resource(&self) -> String {
        format!("{}.v2.g.example.com", self.plural)
    }

    /// Without v1, the API server can't list objects that are stored in v1.
    fn drop_version(&self) {
        let mut crd = self.crd("v2");
        crd["spec"]["versions"].as_array_mut().expect("a list").remove(0);
        self.apply(&crd);
    }

    /// Returns true if the API server can decode all stored objects.
    fn is_readable(&self) -> bool {
        let words = ["get", "--raw", &format!("/apis/g.example.com/v2/{}", self.plural)];
        run("kubectl", &words, "").status.success()
    }

    fn command(&self, kubeconfig: &Path, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
        command
            .current_dir(self.folder.path())
            .args(["migrate-storage", &self.name()])
            .args(flags.split_whitespace())
            .arg("--kubeconfig")
            .arg(kubeconfig);
        command
    }

    fn migrate(&self, flags: &str) -> (Option<i32>, String) {
        let output = self.command(PLANE.kubeconfig_path(), flags).output();
        let output = output.expect("the command runs");
        (output.status.code(), text(&output))
    }

    /// Returns what the command says about the CRD.
    fn migrate_to_json(&self, flags: &str) -> Value {
        let mut command = self.command(PLANE.kubeconfig_path(), flags);
        let output = command.arg("--output=json").output().expect("the command runs");
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        report["definitions"][0].clone()
    }

    /// Waits until the first objects are written.
    fn start(&self, flags: &str) -> Child {
        let mut command = self.command(PLANE.kubeconfig_path(), flags);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the command runs");
        wait_until("the first objects are written", || {
            let record = &self.read_crd()["metadata"]["annotations"]["rbuilder.dev/storage-migration"];
            let Some(record) = record.as_str() else {
                return false;
            };
            let record: Value = serde_json::from_str(record).expect("JSON");
            let since = number(&record["since"]);
            let is_written = |object: &&Value| number(&object["resourceVersion"]) > since;
            self.metadata().iter().filter(is_written).count() > 5
        });
        child
    }

    #[track_caller]
    fn check_migrated(&self) {
        assert_eq!(self.stored_versions(), ["v2"]);
        assert!(!self.has_record());
        self.drop_version();
        wait_until("all objects are readable", || self.is_readable());
    }
}

fn number(text: &Value) -> u64 {
    text.as_str()
        .and_then(|text| text.parse().ok())
        .expect("a number")
}

fn text(output: &Output) -> String {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8(text).expect("text")
}

fn run(program: &str, words: &[&str], input: &str) -> Output {
    use std::io::Write as _;
    let mut command = Command::new(program);
    command.args(words).env("KUBECONFIG", PLANE.kubeconfig_path());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("an input");
    stdin.write_all(input.as_bytes()).expect("the input is read");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn all_objects_are_stored_in_the_storage_version() {
    let scene = Scene::new("cups", 12);
    let before = scene.metadata();
    let (code, said) = scene.migrate("--dry-run");
    assert_eq!(code, Some(0), "{said}");
    let expected = "cups.g.example.com: the API server would store all objects in v2 (12 accepted); storedVersions: v1, v2 -> v2\n";
    assert_eq!(said, expected);
    assert_eq!(scene.metadata(), before, "a dry run changes nothing");
    assert!(!scene.has_record());
    assert_eq!(scene.stored_versions(), ["v1", "v2"]);

    let (code, said) = scene.migrate("--migrator rbuilder");
    assert_eq!(code, Some(0), "{said}");
    let expected =
        "cups.g.example.com: all objects are stored in v2 (12 written); storedVersions: v1, v2 -> v2\n";
    assert!(said.starts_with(expected), "{said}");
    for (before, after) in before.iter().zip(scene.metadata()) {
        assert!(number(&after["resourceVersion"]) > number(&before["resourceVersion"]));
        let managers = |metadata: &Value| metadata["managedFields"].as_array().expect("a list").len();
        assert_eq!(managers(&after), managers(before), "no field gets another owner");
        assert_eq!(after["generation"], before["generation"]);
    }
    let (code, said) = scene.migrate("");
    let expected = "cups.g.example.com: nothing to do, all objects are stored in v2\n";
    assert_eq!((code, said.as_str()), (Some(0), expected));
    scene.check_migrated();
}

/// If an object were not written, `check_migrated` would find it.
#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn objects_that_are_not_migrated_become_unreadable() {
    let scene = Scene::new("pots", 2);
    scene.kubectl(&format!(
        "patch crd {} --subresource=status --type=merge -p {{\"status\":{{\"storedVersions\":[\"v2\"]}}}}",
        scene.name()
    ));
    scene.drop_version();
    wait_until("the objects are unreadable", || !scene.is_readable());
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn killed_run_is_continued() {
    let scene = Scene::new("jugs", 120);
    let mut child = scene.start("--qps 10");
    child.kill().expect("a process");
    child.wait().expect("a process");
    assert_eq!(scene.stored_versions(), ["v1", "v2"]);
    let report = scene.migrate_to_json("--qps 0");
    assert_eq!(report["state"], "migrated", "{report}");
    let objects = &report["objects"];
    let earlier = objects["writtenEarlier"].as_u64().expect("a number");
    assert!((6..120).contains(&earlier), "{report}");
    assert_eq!(objects["written"], 120 - earlier, "{report}");
    scene.check_migrated();
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn interrupted_run_says_how_to_continue() {
    let scene = Scene::new("cans", 120);
    let child = scene.start("--qps 10");
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .expect("kill runs")
            .success()
    );
    let output = child.wait_with_output().expect("a process");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("cans.g.example.com: not migrated: interrupted\n"),
        "{said}"
    );
    assert!(
        said.contains("storedVersions: still v1, v2\n  run the command again"),
        "{said}"
    );
    assert!(scene.has_record());
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn refused_object_stops_no_others_and_keeps_the_versions() {
    let scene = Scene::new("tubs", 4);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "tubs" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["g.example.com"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["tubs"],
            }] },
            "validations": [{ "expression": "object.metadata.name != 'a1'", "message": "a1 stays" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "tubs" },
        "spec": { "policyName": "tubs", "validationActions": ["Deny"] },
    });
    scene.apply(&policy);
    scene.apply(&binding);
    wait_until("the policy is in force", || {
        let words = ["label", "--dry-run=server", &scene.resource(), "a1", "x=y"];
        !run("kubectl", &words, "").status.success()
    });
    let (code, said) = scene.migrate("--qps 0");
    assert_eq!(code, Some(1), "{said}");
    for expected in [
        "tubs.g.example.com: not migrated: 1 object could not be written\n  default/a1: ",
        "a1 stays\n  3 written of 4 objects; storedVersions: still v1, v2\n",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let report = scene.migrate_to_json("--qps 0");
    assert_eq!(report["state"], "incomplete");
    assert_eq!(report["objects"]["writtenEarlier"], 3);
    assert_eq!(report["failures"][0]["name"], "a1");
    scene.kubectl("delete validatingadmissionpolicybinding tubs");
    wait_until("the policy is gone", || {
        let words = ["label", "--dry-run=server", &scene.resource(), "a1", "x=y"];
        run("kubectl", &words, "").status.success()
    });
    let report = scene.migrate_to_json("--qps 0");
    assert_eq!(report["objects"]["written"], 1, "{report}");
    scene.check_migrated();
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn changed_crd_keeps_the_versions() {
    let scene = Scene::new("urns", 40);
    let child = scene.start("--qps 5");
    let mut crd = scene.crd("v2");
    crd["spec"]["names"]["shortNames"] = json!(["urn"]);
    scene.apply(&crd);
    let output = child.wait_with_output().expect("a process");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the CRD was changed meanwhile"), "{said}");
    assert_eq!(scene.stored_versions(), ["v1", "v2"]);
    // The record is about the state before.
    let report = scene.migrate_to_json("--qps 0");
    assert_eq!(report["objects"]["writtenEarlier"], 0, "{report}");
    assert_eq!(scene.stored_versions(), ["v2"]);
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn missing_permissions_are_named_before_anything_is_written() {
    let scene = Scene::new("mugs", 1);
    let mut kubeconfig = PLANE.kubeconfig().clone();
    kubeconfig["users"][0]["user"]["as"] = json!("reader");
    scene.folder.write("kubeconfig", &kubeconfig.to_string());
    scene.kubectl(
        "create clusterrole mugs-reader --verb=get --resource=customresourcedefinitions.apiextensions.k8s.io",
    );
    scene.kubectl("create clusterrolebinding mugs-reader --clusterrole=mugs-reader --user=reader");
    let path: PathBuf = scene.folder.path().join("kubeconfig");
    let output = scene
        .command(&path, "--qps 0")
        .output()
        .expect("the command runs");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for expected in [
        "mugs.g.example.com: not migrated: you lack permissions",
        "  - apiGroups: [\"g.example.com\"]\n    resources: [\"mugs\"]\n    verbs: [\"patch\"]\n",
        "    resources: [\"customresourcedefinitions/status\"]\n    verbs: [\"patch\"]\n",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!scene.has_record());
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn cluster_migrates_if_it_can() {
    let scene = Scene::new("vats", 12);
    let (code, said) = scene.migrate("--migrator cluster");
    assert_eq!(code, Some(0), "{said}");
    let expected = "vats.g.example.com: all objects are stored in v2 (written by the cluster); storedVersions: v1, v2 -> v2\n";
    assert!(said.starts_with(expected), "{said}");
    let left = scene.kubectl("get storageversionmigrations.storagemigration.k8s.io --output=name");
    assert_eq!(left, "");
    scene.check_migrated();
}

#[test]
fn wrong_command_lines_are_refused_before_a_request() {
    let folder = Folder::new();
    for (line, expected) in [
        ("migrate-storage", "expected a project, or the names of CRDs"),
        (
            "migrate-storage cups",
            "expected the name of a CRD, such as `cups.example.com`, found `cups`",
        ),
        (
            "migrate-storage cups.example.com --migrator cluster --qps 5",
            "expected `--qps` or `--migrator cluster`, found both",
        ),
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.code, 1, "{line}");
        assert!(ran.err.contains(expected), "{line}: {}", ran.err);
    }
}

#[test]
fn error_of_kubectl_is_shown() {
    let folder = Folder::new();
    folder.write_program(
        "kubectl",
        "#!/bin/sh\necho 'error: context \"x\" does not exist' >&2\nexit 1\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
    command
        .args(["migrate-storage", "cups.example.com"])
        .env("KUBECTL", folder.path().join("kubectl"));
    let output = command.output().expect("the command runs");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        said,
        "error: `kubectl proxy` does not serve: error: context \"x\" does not exist\n"
    );
}
