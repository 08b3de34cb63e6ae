//! Commands that connect to a cluster, run with a fake kubectl that records how it is called.
#![cfg(unix)]
#![allow(clippy::disallowed_methods)] // the tests create the programs that the command starts

use std::path::Path;
use std::process::Command;

use crate::support;

use support::Folder;

/// Prints the file for a rendered directory or for the objects of a resource. Any other call is
/// recorded with its input. A file `conflict` names a kind whose objects can only be applied by
/// force.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1" = kustomize ]; then cat "$here/$(echo "$2" | tr / -).yaml"; exit; fi
case "$*" in
get*)
    resource=$4
    [ ! -e "$here/$resource.json" ] || cat "$here/$resource.json"
    # Objects are gone once they were asked for twice.
    if [ -e "$here/$resource.then" ]; then mv "$here/$resource.then" "$here/$resource.json"; fi
    exit ;;
api-resources*) printf 'configmaps\nevents\n'; exit ;;
esac
input=$(cat)
echo "$@" >> "$here/calls"
if [ -e "$here/refuses" ]; then cat "$here/refuses" >&2; exit 1; fi
printf %s "$input" >> "$here/input"
case "$*" in
*--force-conflicts*) ;;
apply*)
    if [ -e "$here/conflict" ] && echo "$input" | grep -q "\"kind\":\"$(cat "$here/conflict")\""; then
        cat "$here/conflict.message" >&2
        exit 1
    fi ;;
esac
echo "done by the cluster"
[ ! -e "$here/fails" ]
"#;

const CARGO: &str = "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/calls\"\necho \"config $KUBECONFIG\" >> \"$(dirname \"$0\")/calls\"\n[ \"$1\" != run ] || exit 7\n";

const CONTROLLER: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"app.kubernetes.io/name":"shop","control-plane":"controller-manager"},"name":"shop-controller-manager","namespace":"shop-system"},"spec":{"template":{"spec":{"containers":[{"image":"controller:latest","name":"manager"}]}}}}"#;
const NAMESPACE: &str = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop-system"}}"#;
const CRD: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cups.g.example.com"},"spec":{}}"#;

fn documents(objects: &[&str]) -> String {
    objects.join("\n---\n")
}

/// Same format as what we pass to kubectl.
fn list(objects: &[&str]) -> String {
    format!(
        r#"{{"apiVersion":"v1","items":[{}],"kind":"List"}}"#,
        objects.join(",")
    )
}

/// `rbuilder deploy` and `make deploy` both print this.
const NO_MANAGER: &str =
    "config/default has no Deployment with the label control-plane=controller-manager: no image was set";

struct Scene {
    project: Folder,
    /// Has the programs and what they recorded.
    bin: Folder,
}

impl Scene {
    fn new() -> Scene {
        let (project, bin) = (Folder::new(), Folder::new());
        project.run("init --domain example.com --project-name shop").ok();
        for (name, text) in [("kubectl", KUBECTL), ("cargo", CARGO)] {
            bin.write_program(name, text);
        }
        bin.write("config-crd.yaml", CRD);
        bin.write("config-default.yaml", &documents(&[NAMESPACE, CRD, CONTROLLER]));
        Scene { project, bin }
    }

    /// The text is what the command prints, with its errors.
    fn run(&self, line: &str) -> (Option<i32>, String) {
        self.run_with(line, &self.path(), &[])
    }

    fn path(&self) -> String {
        format!("{}:/bin:/usr/bin", self.bin.path().display())
    }

    fn run_with(&self, line: &str, path: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
        command
            .args(line.split_whitespace())
            .current_dir(self.project.path());
        command
            .env("PATH", path)
            .env_remove("KUBEBUILDER_ASSETS")
            .env_remove("KUBECONFIG")
            .env_remove("KUBECTL")
            .env_remove("KUSTOMIZE")
            .envs(variables.iter().copied())
            // Use a home directory without an installed test environment.
            .env("HOME", self.bin.path())
            .env("XDG_DATA_HOME", self.bin.path());
        let output = command.output().expect("the command runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("text"))
    }

    /// Also deletes the record.
    fn take(&self, name: &str) -> String {
        let path = self.bin.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text
    }
}

#[test]
fn cluster_commands_render_and_call_kubectl() {
    let scene = Scene::new();
    let apply = "apply --server-side -f -";
    let check = |line: &str, calls: &[&str], input: &str| {
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(0), "{line}: {said}");
        assert!(said.contains("done by the cluster\n"), "{said}");
        let expected: String = calls.iter().map(|call| format!("{call}\n")).collect();
        assert_eq!(scene.take("calls"), expected, "{line}");
        assert_eq!(scene.take("input"), input, "{line}");
    };
    let crds = list(&[CRD]);
    check("install", &[apply], &crds);
    check(
        "install --context kind-a",
        &[&format!("--context kind-a {apply}")],
        &crds,
    );
    check(
        "install --kubeconfig /a/config",
        &[&format!("--kubeconfig /a/config {apply}")],
        &crds,
    );
    check("uninstall", &["delete --ignore-not-found=false -f -"], &crds);
    check(
        "undeploy --ignore-not-found",
        &["delete --ignore-not-found=true -f -"],
        &list(&[CONTROLLER, CRD]),
    );
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"rbuilder.dev/created-by":"rbuilder deploy"},"name":"shop-system"}}"#;
    let deployed = list(&[
        CRD,
        &CONTROLLER.replace("controller:latest", "example.com/shop:1"),
    ]);
    check(
        "deploy --image example.com/shop:1",
        // The namespace may exist already, and have labels from others.
        &["create -f -", apply, apply],
        &format!("{namespace}{NAMESPACE}{deployed}"),
    );
}

const CONFLICT: &str = "Apply failed with 2 conflicts: conflicts with \"kubectl-scale\" with subresource \"scale\" using apps/v1:
- .spec.replicas
conflicts with \"platform\":
- .spec.paused
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
";

#[test]
fn deploy_names_fields_that_it_takes_over() {
    let scene = Scene::new();
    scene.bin.write("conflict", "Deployment");
    scene.bin.write("conflict.message", CONFLICT);
    let (code, said) = scene.run("deploy --image a:1");
    assert_eq!(code, Some(0), "{said}");
    let note = "taking over fields from other managers:\n  Deployment shop-system/shop-controller-manager\n    \
        .spec.replicas from `kubectl-scale` with subresource `scale`\n    .spec.paused from `platform`\n  = help: ";
    assert!(said.contains(note), "{said}");
    assert!(!said.contains("Please review"), "{said}");
    let apply = "apply --server-side -f -\n";
    assert_eq!(
        scene.take("calls"),
        format!("create -f -\n{apply}{apply}{apply}{apply}apply --server-side -f - --force-conflicts\n")
    );
    // Only force the object that has conflicts.
    let manager = CONTROLLER.replace("controller:latest", "a:1");
    let input = scene.take("input");
    assert!(
        input.ends_with(&format!("{manager}{}", list(&[&manager]))),
        "{input}"
    );
    // Any other failure is reported as kubectl does.
    scene.bin.write("fails", "");
    let (code, said) = scene.run("install");
    assert_eq!(code, Some(1));
    assert!(!said.contains("taking over"), "{said}");
}

#[test]
fn deploy_replaces_a_rolling_update() {
    let scene = Scene::new();
    let with = |strategy: &str| {
        let spec = format!("\"spec\":{{\"strategy\":{strategy},\"template\":");
        CONTROLLER.replacen("\"spec\":{\"template\":", &spec, 1)
    };
    let recreated = with(r#"{"type":"Recreate"}"#);
    scene
        .bin
        .write("config-default.yaml", &documents(&[NAMESPACE, &recreated]));
    let patch = "patch deployment shop-controller-manager --namespace shop-system --type=merge --patch \
        {\"spec\":{\"strategy\":{\"rollingUpdate\":null,\"type\":\"Recreate\"}}}\n";
    // The namespace comes first, before the other objects.
    let apply = "apply --server-side -f -\n";
    let rolling = with(r#"{"rollingUpdate":{"maxSurge":"25%"},"type":"RollingUpdate"}"#);
    for (present, expected) in [("", ""), (&*rolling, patch), (&*recreated, "")] {
        scene.bin.write("-f.json", present);
        let (code, said) = scene.run("deploy --image a:1");
        assert_eq!(code, Some(0), "{said}");
        let calls = format!("create -f -\n{apply}{expected}{apply}");
        assert_eq!(scene.take("calls"), calls);
    }
    // If the Deployment has no strategy, we don't need to ask.
    scene
        .bin
        .write("config-default.yaml", &documents(&[NAMESPACE, CONTROLLER]));
    scene.bin.write("-f.json", &rolling);
    scene.run("deploy --image a:1");
    assert_eq!(scene.take("calls"), format!("create -f -\n{apply}{apply}"));
}

#[test]
fn conversions_by_another_deployment_are_kept() {
    let converted = |namespace: &str| {
        let service =
            format!("{{\"name\":\"webhook-service\",\"namespace\":\"{namespace}\",\"path\":\"/convert\"}}");
        CRD.replace(
            "{}",
            &format!("{{\"conversion\":{{\"strategy\":\"Webhook\",\"webhook\":{{\"clientConfig\":{{\"service\":{service}}}}}}}}}"),
        )
    };
    let service = |namespace: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{{\"name\":\"webhook-service\",\"namespace\":\"{namespace}\"}}}}"
        )
    };
    let scene = Scene::new();
    let ours = converted("shop-system");
    scene.bin.write("config-crd.yaml", &ours);
    scene.bin.write(
        "config-default.yaml",
        &documents(&[&ours, &service("shop-system"), CONTROLLER]),
    );
    let check = |present: &str, services: &str, applied: &str| {
        scene.bin.write("-f.json", present);
        scene.bin.write("services.json", services);
        for line in ["install", "deploy --image a:1"] {
            let (code, said) = scene.run(line);
            assert_eq!(code, Some(0), "{line}: {said}");
            let input = scene.take("input");
            assert!(input.contains(applied), "{line}: {input}");
            assert_eq!(
                said.contains("keeps its conversion by Service other/webhook-service"),
                applied != ours,
                "{said}"
            );
        }
    };
    let other = converted("other");
    check("", "", &ours);
    check(&ours, "", &ours);
    check(&other, &service("other"), &other);
    // A Service that is gone, or was never deployed, converts nothing.
    check(&other, "", &ours);

    let mine = CONTROLLER.replace("shop-controller-manager", "mine-controller-manager");
    scene.bin.write(
        "deployments.apps.json",
        &format!("{{\"items\":[{CONTROLLER},{mine}]}}"),
    );
    let warns = |present: &str| {
        scene.bin.write("-f.json", present);
        let (code, said) = scene.run("undeploy");
        assert_eq!(code, Some(0), "{said}");
        let warning = "warning: the Service that converts cups.g.example.com is deleted with this deployment";
        said.contains(warning)
            && said.contains("help: deploy Deployment shop-system/mine-controller-manager again")
    };
    assert!(warns(&ours));
    assert!(!warns(&other));
}

#[test]
fn install_renders_conversions_as_deployed() {
    let scene = Scene::new();
    let converted = |service: &str| {
        CRD.replace(
            "\"spec\":{}",
            &format!("\"spec\":{{\"conversion\":\"{service}\"}}"),
        )
    };
    scene.bin.write("config-crd.yaml", &converted("webhook-service"));
    let deployed = converted("shop-webhook-service");
    scene
        .bin
        .write("config-default.yaml", &documents(&[&deployed, CONTROLLER]));
    assert_eq!(scene.run("install").0, Some(0));
    assert_eq!(scene.take("input"), list(&[&deployed]));
    // If the deployment has no CRDs, they come from config/crd.
    scene.bin.write("config-default.yaml", CONTROLLER);
    assert_eq!(scene.run("install").0, Some(0));
    assert_eq!(scene.take("input"), list(&[&converted("webhook-service")]));
}

/// Only one of the two has a finalizer.
const CUPS: &str = r#"{"items":[
{"apiVersion":"g.example.com/v1","kind":"Cup","metadata":{"name":"a","namespace":"team","finalizers":["g.example.com/clean-up"]}},
{"apiVersion":"g.example.com/v1","kind":"Cup","metadata":{"name":"b","namespace":"team"}}]}"#;

#[test]
fn undeploy_deletes_objects_before_the_manager() {
    let scene = Scene::new();
    scene.bin.write(
        "customresourcedefinitions.json",
        &format!("{{\"items\":[{CRD}]}}"),
    );
    scene.bin.write("cups.g.example.com.json", CUPS);
    scene.bin.write("cups.g.example.com.then", "");
    let (code, said) = scene.run("undeploy");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("deleting 2 cups.g.example.com\n"), "{said}");
    assert!(
        said.contains(
            "waiting for 2 objects to end: Cup team/a (finalizer g.example.com/clean-up), Cup team/b\n"
        ),
        "{said}"
    );
    assert_eq!(
        scene.take("calls"),
        "delete cups.g.example.com --all --all-namespaces --wait=false\ndelete --ignore-not-found=false -f -\n"
    );
}

#[test]
fn undeploy_with_a_dead_manager_tells_how_to_go_on() {
    let scene = Scene::new();
    scene.bin.write(
        "customresourcedefinitions.json",
        &format!("{{\"items\":[{CRD}]}}"),
    );
    scene.bin.write("cups.g.example.com.json", CUPS);
    scene.bin.write(
        "refuses",
        "Error from server (InternalError): Internal error occurred: failed calling webhook \"vcup.kb.io\": failed to call \
         webhook: Post \"https://shop-webhook-service.shop-system.svc:443/validate\": no endpoints available\n",
    );
    let help = "= help: to delete them without asking, delete the webhook configuration first: ";
    let (code, said) = scene.run("undeploy");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("start a manager that answers"), "{said}");
    assert!(
        said.contains(&format!("{help}the configuration that names it")),
        "{said}"
    );
    scene.bin.write(
        "validatingwebhookconfigurations,mutatingwebhookconfigurations.json",
        r#"{"items":[{"kind":"ValidatingWebhookConfiguration","metadata":{"name":"shop-validating"},"webhooks":[{"name":"vcup.kb.io"}]}]}"#,
    );
    let (_, said) = scene.run("undeploy");
    let command = "`kubectl delete validatingwebhookconfiguration shop-validating`";
    assert!(said.contains(&format!("{help}{command}")), "{said}");
}

/// While `rbuilder dev` runs, the API server rejects the project's own configurations.
#[test]
fn nothing_is_applied_beside_a_running_dev() {
    const WEBHOOKS: &str = r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"shop"}}"#;
    let converted = CRD.replace(
        "\"spec\":{}",
        r#""spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"s","namespace":"n"}}}}}"#,
    );
    let scene = Scene::new();
    scene.bin.write(
        "config-default.yaml",
        &documents(&[NAMESPACE, &converted, WEBHOOKS, CONTROLLER]),
    );
    scene.bin.write("config-crd.yaml", &converted);
    let local = r#""metadata":{"labels":{"rbuilder.dev/local":"true"},"name":"shop"}"#;
    let redirected = WEBHOOKS.replace(r#""metadata":{"name":"shop"}"#, local);
    let by_url = converted.replace(
        r#""service":{"name":"s","namespace":"n"}"#,
        r#""url":"https://127.0.0.1:1/convert""#,
    );
    for (line, present, advice) in [
        (
            "deploy --image a",
            &redirected,
            "`kubectl delete validatingwebhookconfiguration shop`",
        ),
        (
            "deploy --image a",
            &by_url,
            "`kubectl patch crd cups.g.example.com --type json ",
        ),
        (
            "install",
            &by_url,
            "`kubectl patch crd cups.g.example.com --type json ",
        ),
    ] {
        scene.bin.write("-f.json", present);
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(1), "{line}: {said}");
        assert!(
            said.contains("`rbuilder dev` runs against this cluster; nothing was applied"),
            "{said}"
        );
        assert!(said.contains(advice), "{said}");
        assert_eq!(scene.take("calls"), "", "{line}");
    }
    scene.bin.write("-f.json", WEBHOOKS);
    assert_eq!(scene.run("deploy --image a").0, Some(0));
}

#[test]
fn missing_kubeconfig_is_an_error_of_its_own() {
    let scene = Scene::new();
    for line in ["deploy --image a", "install", "undeploy", "uninstall"] {
        let (code, said) = scene.run_with(line, &scene.path(), &[("KUBECONFIG", "/nope")]);
        assert_eq!(code, Some(1), "{line}: {said}");
        assert!(
            said.contains("error: KUBECONFIG names /nope, which does not exist"),
            "{line}: {said}"
        );
        assert_eq!(scene.take("calls"), "", "{line}");
    }
    // kubectl skips missing files if another one exists.
    let some = format!("/nope:{}", scene.bin.path().join("kubectl").display());
    let (code, said) = scene.run_with("install", &scene.path(), &[("KUBECONFIG", &some)]);
    assert_eq!(code, Some(0), "{said}");
    scene.bin.write(
        "refuses",
        "The connection to the server localhost:8080 was refused\n",
    );
    let (_, said) = scene.run("install");
    assert!(said.contains("= help: kubectl has found no kubeconfig"), "{said}");
}

#[test]
fn directory_without_project_is_named() {
    let scene = Scene::new();
    let empty = Folder::new();
    for line in [
        "dev",
        "deploy --image a --manifests=false",
        "install --manifests=false",
        "undeploy",
    ] {
        let line = format!("-C {} {line}", empty.path().display());
        let (code, said) = scene.run(&line);
        assert_eq!(code, Some(1), "{line}: {said}");
        assert!(
            said.contains("does not exist: run this command in a project"),
            "{line}: {said}"
        );
    }
}

#[test]
fn undeploy_keeps_the_manager_while_finalizers_are_left() {
    let scene = Scene::new();
    scene.bin.write(
        "customresourcedefinitions.json",
        &format!("{{\"items\":[{CRD}]}}"),
    );
    scene.bin.write("cups.g.example.com.json", CUPS);
    for line in ["undeploy --timeout 1", "uninstall --timeout 1"] {
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("error: 2 objects did not end within 1 s: Cup team/a (finalizer "),
            "{said}"
        );
        assert!(
            said.contains("`kubectl patch cup.v1.g.example.com --namespace team a "),
            "{said}"
        );
        assert!(
            !scene.take("calls").contains("delete --ignore-not-found"),
            "{line}"
        );
    }
}

#[test]
fn undeploy_keeps_what_another_deployment_uses() {
    const ROLE: &str = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"shop-manager-role"}}"#;
    fn webhooks(namespace: &str) -> String {
        format!(
            r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{{"name":"shop"}},"webhooks":[{{"clientConfig":{{"service":{{"namespace":"{namespace}"}}}}}}]}}"#
        )
    }
    let scene = Scene::new();
    let ours = webhooks("shop-system");
    scene.bin.write(
        "config-default.yaml",
        &documents(&[NAMESPACE, CRD, ROLE, &ours, CONTROLLER]),
    );
    scene.bin.write(
        "customresourcedefinitions.json",
        &format!("{{\"items\":[{CRD}]}}"),
    );
    scene.bin.write("cups.g.example.com.json", CUPS);
    let check = |other: &str, present: &str, deleted: &[&str], stay: &str| {
        scene.bin.write(
            "deployments.apps.json",
            &format!("{{\"items\":[{CONTROLLER},{other}]}}"),
        );
        scene
            .bin
            .write("-f.json", &format!("{{\"items\":[{ROLE},{present}]}}"));
        let (code, said) = scene.run("undeploy");
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(stay), "{said}");
        assert_eq!(scene.take("calls"), "delete --ignore-not-found=false -f -\n");
        assert_eq!(scene.take("input"), list(deleted));
    };
    // With another prefix, only the CRDs are shared.
    check(
        &CONTROLLER.replace("shop-controller-manager", "mine-controller-manager"),
        &ours,
        &[&ours, ROLE, CONTROLLER],
        "CustomResourceDefinition cups.g.example.com stay, because Deployment shop-system/mine-controller-manager uses them\n",
    );
    // Try the same prefix in another namespace, deployed before ours and after it.
    let other = CONTROLLER.replace("shop-system", "other");
    check(
        &other,
        &ours,
        &[&ours, CONTROLLER],
        "CustomResourceDefinition cups.g.example.com, ClusterRole shop-manager-role stay, because Deployment other/shop-controller-manager uses them\n",
    );
    check(
        &other,
        &webhooks("other"),
        &[CONTROLLER],
        "ValidatingWebhookConfiguration shop, ClusterRole shop-manager-role stay",
    );
}

#[test]
fn undeploy_keeps_shared_namespaces() {
    let scene = Scene::new();
    let check = |namespace: &str, objects: &str, line: &str, expected: &str| {
        scene.bin.write("namespaces.json", namespace);
        scene.bin.write("configmaps.json", objects);
        let (code, said) = scene.run(line);
        assert_eq!(code, Some(0), "{said}");
        let is_deleted = scene.take("calls").contains("delete namespace shop-system");
        assert_eq!(is_deleted, expected.is_empty(), "{line}: {said}");
        assert!(said.contains(expected), "{said}");
    };
    let created = r#"{"kind":"Namespace","metadata":{"name":"shop-system","annotations":{"rbuilder.dev/created-by":"rbuilder deploy"}}}"#;
    let default = r#"{"items":[{"kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","namespace":"shop-system"}}]}"#;
    let precious =
        r#"{"items":[{"kind":"ConfigMap","metadata":{"name":"precious","namespace":"shop-system"}}]}"#;
    check(created, default, "undeploy", "");
    check(
        created,
        precious,
        "undeploy",
        "namespace shop-system stays: it contains ConfigMap shop-system/precious\n",
    );
    check(
        NAMESPACE,
        default,
        "undeploy",
        "namespace shop-system stays: `rbuilder deploy` did not create it\n",
    );
    check(NAMESPACE, precious, "undeploy --delete-namespace", "");
    let deploy = |namespace: &str, expected: &str| {
        scene.bin.write("namespaces.json", namespace);
        let (code, said) = scene.run("deploy --image a:1");
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(scene.take("calls"), expected);
        said
    };
    let apply = "apply --server-side -f -\n";
    // The namespace isn't created again, and a namespace of others isn't changed.
    deploy(created, &format!("{apply}{apply}"));
    deploy(NAMESPACE, apply);
    scene.bin.write(
        "config-default.yaml",
        &documents(&[
            &NAMESPACE.replace("\"name\":", "\"labels\":{\"a\":\"b\"},\"name\":"),
            CONTROLLER,
        ]),
    );
    let said = deploy(NAMESPACE, apply);
    assert!(
        said.contains("because `rbuilder deploy` did not create it: it does not get a=b from its manifest\n"),
        "{said}"
    );
}

#[test]
fn variables_select_kubectl_and_kustomize() {
    let scene = Scene::new();
    let renamed = scene.bin.path().join("microk8s");
    std::fs::rename(scene.bin.path().join("kubectl"), &renamed).expect("a file");
    let script = format!("#!/bin/sh\nshift\nexec {} kustomize \"$@\"\n", renamed.display());
    scene.bin.write_program("kustomize", &script);
    let named = |kubectl: &str, kustomize: &str| {
        scene.run_with(
            "install",
            &scene.path(),
            &[("KUBECTL", kubectl), ("KUSTOMIZE", kustomize)],
        )
    };
    let (code, said) = named("microk8s --cluster a", "kustomize build");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(scene.take("calls"), "--cluster a apply --server-side -f -\n");
    for relative in ["./microk8s", "bin/microk8s"] {
        let (code, said) = named(relative, "kustomize build");
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.starts_with(&format!(
                "error: KUBECTL names `{relative}`, which was not found on the PATH"
            )),
            "{said}"
        );
    }
}

#[test]
fn deploy_requires_an_image_and_a_manager() {
    let scene = Scene::new();
    let (code, said) = scene.run("deploy");
    assert_eq!(code, Some(2));
    assert!(said.contains("--image <IMAGE>"), "{said}");
    scene.bin.write(
        "config-default.yaml",
        &CONTROLLER.replace(
            "\"control-plane\":\"controller-manager\"",
            "\"control-plane\":\"other\"",
        ),
    );
    let (code, said) = scene.run("deploy --image example.com/shop:1");
    assert_eq!(code, Some(1));
    assert!(said.contains(NO_MANAGER), "{said}");
    assert_eq!(scene.take("calls"), "");
}

#[test]
fn installs_nothing_without_rendered_objects() {
    let scene = Scene::new();
    scene.bin.write("config-crd.yaml", "");
    scene.bin.write("config-default.yaml", CONTROLLER);
    let (code, said) = scene.run("install");
    assert_eq!((code, scene.take("calls").as_str()), (Some(0), ""));
    assert!(said.contains("no CRDs to install"), "{said}");
}

#[test]
fn fails_if_the_cluster_rejects_objects() {
    let scene = Scene::new();
    scene.bin.write("fails", "");
    let (code, said) = scene.run("install");
    assert_eq!(code, Some(1));
    assert!(
        said.ends_with("error: `kubectl apply --server-side -f -` failed\n"),
        "{said}"
    );
}

#[test]
fn reports_missing_kubectl() {
    let scene = Scene::new();
    let nowhere = Folder::new();
    let (code, said) = scene.run_with("install", &nowhere.path().display().to_string(), &[]);
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("error: kubectl was not found: install it"),
        "{said}"
    );
}

#[test]
fn run_passes_on_the_cluster_and_the_exit_code() {
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
