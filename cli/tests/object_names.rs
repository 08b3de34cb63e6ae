//! Names of the manager's objects that `init` did not choose: those of an imported project, and those
//! that a user has given. Later commands have to refer to the same objects.

use std::collections::BTreeMap;

use rbuilder_cli::commands::rebuild_files;
use rbuilder_project::project::ScaffoldedFiles;
use rbuilder_project::tree::Tree;
use serde_json::Value;

use crate::import::{import, original};
use crate::older;
use crate::support::Folder;

const DEFAULT: &str = "config/default/kustomization.yaml";
const MANAGER: &str = "config/manager/manager.yaml";

/// A Go project whose manager has names of its own, in the form of a published one.
struct GoProject {
    deployment: &'static str,
    container: &'static str,
    /// Name of the ServiceAccount.
    account: &'static str,
    /// The line of the Deployment that names it.
    account_line: &'static str,
    /// The selector, as a flow map.
    selector: &'static str,
    prefix: &'static str,
}

const PROJECTS: &[GoProject] = &[
    // The form of OT-CONTAINER-KIT/redis-operator.
    GoProject {
        deployment: "redis-operator",
        container: "operator",
        account: "redis-operator",
        account_line: "serviceAccountName: redis-operator",
        selector: "{control-plane: redis-operator}",
        prefix: "ot-",
    },
    // The form of grafana/k6-operator.
    GoProject {
        deployment: "controller-manager",
        container: "manager",
        account: "controller",
        account_line: "serviceAccount: k6-operator-controller",
        selector: "{control-plane: controller-manager}",
        prefix: "k6-operator-",
    },
    // Labels with other keys.
    GoProject {
        deployment: "keycloak-operator",
        container: "manager",
        account: "keycloak",
        account_line: "serviceAccountName: keycloak",
        selector: "{name: keycloak-operator, tier: control}",
        prefix: "",
    },
];

impl GoProject {
    fn write(&self) -> Folder {
        let folder = original();
        folder.remove("config/webhook/manifests.yaml");
        let project = folder.tree()["PROJECT"].clone();
        let webhooks = "  webhooks:\n    defaulting: true\n    webhookVersion: v1\n";
        folder.write("PROJECT", &project.replace(webhooks, ""));
        let prefix = match self.prefix {
            "" => String::new(),
            prefix => format!("namePrefix: {prefix}\n"),
        };
        folder.write(
            DEFAULT,
            &format!("namespace: kitchen\n{prefix}resources:\n- ../crd\n- ../rbac\n- ../manager\n- metrics_service.yaml\n"),
        );
        folder.write(
            MANAGER,
            &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {}\n  namespace: system\n  labels: {}\nspec:\n  replicas: 2\n  \
                 selector:\n    matchLabels: {}\n  template:\n    metadata:\n      labels: {}\n    spec:\n      containers:\n      - name: {}\n        \
                 image: controller:latest\n        args: [--leader-elect]\n        env:\n        - name: CUP_IMAGE\n          value: example.com/cup:v1\n      \
                 {}\n",
                self.deployment, self.selector, self.selector, self.selector, self.container, self.account_line
            ),
        );
        folder.write(
            "config/rbac/service_account.yaml",
            &format!(
                "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {}\n  namespace: system\n",
                self.account
            ),
        );
        folder
    }
}

fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

/// What identifies the manager in a cluster, and its environment.
fn identity(folder: &Folder) -> Vec<Value> {
    let tree = folder.tree();
    let objects = yaml(&tree[MANAGER]);
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .expect("a Deployment");
    let pod = &deployment["spec"]["template"];
    let kustomization = &yaml(&tree[DEFAULT])[0];
    vec![
        deployment["metadata"]["name"].clone(),
        deployment["spec"]["selector"].clone(),
        pod["metadata"]["labels"].clone(),
        pod["spec"]["serviceAccountName"].clone(),
        pod["spec"]["containers"][0]["name"].clone(),
        pod["spec"]["containers"][0]["env"].clone(),
        kustomization["namespace"].clone(),
        kustomization["namePrefix"].clone(),
    ]
}

/// The deployment can be built, every reference in it has an object, and nothing is left to update.
#[track_caller]
fn check_consistent(folder: &Folder, label: &str) {
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 0, "{label}: {}{}", ran.out, ran.err);
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{label}: {}", ran.out);
}

const COMMANDS: &[&str] = &[
    "create webhook --group crew --version v1 --kind Cup --defaulting --programmatic-validation",
    "create api --group crew --version v2 --kind Cup --controller=false",
    "create webhook --group crew --version v1 --kind Cup --conversion --spoke v2",
    "edit --enable metrics,prometheus,cert-manager,network-policy,sharding",
];

#[test]
fn commands_after_import_keep_the_names() {
    for project in PROJECTS {
        let (folder, ran) = import(&project.write());
        ran.ok();
        let label = format!("{} after import", project.deployment);
        check_consistent(&folder, &label);
        let before = identity(&folder);
        assert_eq!(before[0], project.deployment);
        assert_eq!(before[3], project.account);
        assert_eq!(before[4], project.container);
        for command in COMMANDS {
            folder.run(command).ok();
            check_consistent(&folder, &format!("{} after {command}", project.deployment));
            assert_eq!(identity(&folder), before, "{command}");
        }
    }
}

#[test]
fn a_new_project_name_keeps_the_names() {
    for project in PROJECTS {
        let (folder, ran) = import(&project.write());
        ran.ok();
        let before = identity(&folder);
        let ran = folder.run("edit --project-name tableware").ok();
        assert!(!ran.err.contains("conflict"), "{}", ran.err);
        check_consistent(&folder, &format!("{} renamed", project.deployment));
        let after = identity(&folder);
        for part in [0, 3, 4, 6] {
            assert_eq!(after[part], before[part], "{}", project.deployment);
        }
    }
}

/// As a user does with sed.
fn rename(folder: &Folder, renames: &[(&str, &str)]) {
    for (path, text) in folder.tree() {
        if path.starts_with("config/") || path == "Makefile" || path.starts_with("tests/") {
            let renamed = renames
                .iter()
                .fold(text.clone(), |text, (from, to)| text.replace(from, to));
            if renamed != text {
                folder.write(&path, &renamed);
            }
        }
    }
}

#[test]
fn names_that_a_user_has_given_are_followed() {
    let all: &[(&str, &str)] = &[("controller-manager", "till"), ("webhook-service", "till-hooks")];
    // The container alone, in each file that names it.
    let container: &[(&str, &str)] = &[
        ("- name: manager\n", "- name: operator\n"),
        ("[name=manager]", "[name=operator]"),
        ("default-container: manager", "default-container: operator"),
    ];
    for renames in [all, container] {
        let folder = Folder::new();
        folder.run("init --domain example.com --project-name shop").ok();
        folder.run("create api --group crew --version v1 --kind Cup").ok();
        rename(&folder, renames);
        folder.run("manifests --check").ok();
        // Records the names in PROJECT.
        folder.run("update").ok();
        check_consistent(&folder, "renamed");
        let before = identity(&folder);
        for command in COMMANDS {
            folder.run(command).ok();
            check_consistent(&folder, command);
            assert_eq!(identity(&folder), before, "{command}");
        }
        // The Service for webhooks is newer than the first renaming.
        rename(&folder, renames);
        folder.run("update").ok();
        check_consistent(&folder, "renamed again");
    }
}

/// The name is not recorded yet, and the command writes it to new files.
#[test]
fn a_name_given_just_before_a_command_is_followed() {
    let folder = Folder::with_cup();
    rename(&folder, &[("controller-manager", "till")]);
    folder
        .run("create webhook --group cache --version v1 --kind Cup --defaulting")
        .ok();
    for (path, text) in folder.tree() {
        let is_old = text.lines().any(|line| {
            line.trim_start_matches([' ', '-'])
                .ends_with("name: controller-manager")
        });
        assert!(!path.starts_with("config/") || !is_old, "{path}:\n{text}");
    }
    check_consistent(&folder, "after create webhook");
    let project = folder.tree()["PROJECT"].clone();
    assert!(
        project.contains("  names:\n    deployment: till\n    label: till\n"),
        "{project}"
    );
}

#[test]
fn a_partly_renamed_deployment_is_reported() {
    let folder = Folder::with_cup();
    folder.replace(
        MANAGER,
        "  name: controller-manager\n  namespace: system\nspec",
        "  name: till\n  namespace: system\nspec",
    );
    folder.replace(
        MANAGER,
        "serviceAccountName: controller-manager",
        "serviceAccountName: clerk",
    );
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 1, "{}", ran.err);
    for expected in [
        "config/metrics/manager_metrics_patch.yaml",
        "this patch is for Deployment `controller-manager`, which config/default does not have: kustomize fails",
        "config/default has Deployment `till`: correct the name",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    rename(
        &folder,
        &[(
            "name: controller-manager\n  namespace: system\nspec",
            "name: till\n  namespace: system\nspec",
        )],
    );
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("runs as ServiceAccount `clerk`"), "{}", ran.err);
    let ran = folder.run("doctor");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains(
            "error[RB1009] config: config/manager/manager.yaml: Deployment `till` runs as ServiceAccount `clerk`"
        ),
        "{}",
        ran.out
    );
}

/// Older commands recorded no scaffold, and both texts of a file that `import` had changed.
#[test]
fn project_imported_by_an_older_command_keeps_its_names() {
    for project in PROJECTS {
        let (folder, ran) = import(&project.write());
        ran.ok();
        let before = identity(&folder);
        let tree = folder.tree();
        let plain = plain_scaffold(&folder);
        let mut record = ScaffoldedFiles::parse("");
        for path in ScaffoldedFiles::parse(&tree[".rbuilder/files.sum"]).paths() {
            if let (Some(text), Some(own)) = (plain.get(path), tree.get(path)) {
                record.record(path, text);
                record.add(path, own);
            }
        }
        folder.write(".rbuilder/files.sum", &record.print());
        folder.remove(".rbuilder/scaffold.base");
        forget_names(&folder);
        folder.run("update").ok();
        assert_eq!(identity(&folder), before, "{}", project.deployment);
        check_consistent(&folder, project.deployment);
    }
}

/// Features are settings that our own command made, so they are no edits of the user.
#[test]
fn features_of_an_older_scaffold_do_not_conflict() {
    let folder = Folder::new();
    for command in [
        "init --domain example.com --project-name shop --multigroup",
        "create api --group crew --version v1 --kind Cup",
        "create api --group bar --version v1 --kind Mug",
        "create webhook --group crew --version v1 --kind Cup --defaulting",
    ] {
        folder.run(command).ok();
    }
    older::age(&folder);
    folder
        .run("edit --enable metrics,prometheus,cert-manager,network-policy")
        .ok();
    folder.run("edit --disable metrics,prometheus").ok();
    folder.run("edit --enable metrics,prometheus").ok();
    let ran = older::update(&folder, "update").ok();
    assert!(!ran.err.contains("conflict"), "{}", ran.err);
    let text = folder.tree()[DEFAULT].clone();
    for expected in [
        "# A ServiceMonitor; requires the Prometheus Operator.\n- ../prometheus\n",
        "`metrics: enabled`.\n- ../network-policy\n",
        "\n- ../certmanager\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    check_consistent(&folder, "updated");
}

const PACKAGE: &str = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const ADOPT: &str = "init --in-package --domain example.com";

#[test]
fn adoption_names_the_file_in_the_way() {
    for (path, text, reason) in [
        (
            MANAGER,
            "placeholder",
            "expected objects with `kind` and `metadata.name`",
        ),
        (
            MANAGER,
            "kind: Service\nmetadata:\n  name: a\n",
            "this patch is for Deployment `controller-manager`",
        ),
        (
            "config/rbac/service_account.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: system\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: \
             controller-manager\n  namespace: system\n",
            "Namespace `system` is defined twice",
        ),
        (DEFAULT, "resources: []\n", "config/default has no Deployment"),
    ] {
        let folder = Folder::new();
        folder.write("Cargo.toml", PACKAGE);
        folder.write("src/main.rs", "fn main() {}\n");
        folder.write(path, text);
        let before = folder.tree();
        let ran = folder.run(ADOPT);
        // Without the manager of rbuilder, no component patches the Deployment.
        let reason = match reason {
            "this patch is for Deployment `controller-manager`" => "config/default has no Deployment",
            reason => reason,
        };
        assert_eq!(ran.code, 1, "{path}: {}", ran.err);
        let expected = format!("cannot adopt the package with its own {path}, because");
        assert!(
            ran.err.contains(&expected) && ran.err.contains(reason),
            "{path}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{path}");
    }
}

#[test]
fn adoption_refers_to_the_deployment_of_the_package() {
    let folder = Folder::new();
    folder.write("Cargo.toml", PACKAGE);
    folder.write("src/main.rs", "fn main() {}\n");
    folder.write(
        MANAGER,
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: till\n  namespace: system\nspec:\n  selector:\n    matchLabels: {app: \
         till}\n  template:\n    metadata:\n      labels: {app: till}\n    spec:\n      serviceAccountName: clerk\n      containers:\n      - \
         name: till\n        image: example.com/till\n",
    );
    folder.run(ADOPT).ok();
    folder.run("manifests --check").ok();
    let tree = folder.tree();
    assert!(tree["config/rbac/service_account.yaml"].contains("  name: clerk\n"));
    assert!(tree["config/rbac/role_binding.yaml"].contains("- kind: ServiceAccount\n  name: clerk\n"));
}

#[test]
fn a_project_name_edited_by_hand_renames_nothing() {
    let folder = Folder::with_cup();
    folder.replace("PROJECT", "projectName: shop\n", "projectName: store\n");
    let before = folder.tree();
    let expected = "`projectName` in PROJECT was changed by hand from `shop` to `store`, and the project still has the old name: set it \
                    back to `shop`, and run `rbuilder edit --project-name store`";
    let ran = folder.run("update");
    assert!(ran.code == 1 && ran.err.contains(expected), "{}", ran.err);
    let ran = folder.run("doctor");
    assert!(ran.code == 1 && ran.out.contains(expected), "{}", ran.out);
    assert_eq!(folder.tree(), before);
    // The advice works.
    folder.replace("PROJECT", "projectName: store\n", "projectName: shop\n");
    folder.run("edit --project-name store").ok();
    check_consistent(&folder, "renamed");
}

#[test]
fn a_broken_project_file_fails_every_command() {
    let folder = Folder::with_cup();
    folder.write("PROJECT", "projectName: [\n");
    for command in [
        "manifests",
        "manifests --check",
        "adopt",
        "update",
        "create api --group crew --version v1 --kind Mug",
        "create webhook --group cache --version v1 --kind Cup --defaulting",
        "delete api --group cache --version v1 --kind Cup",
        "edit --license mit",
        "library",
        "helm",
        "bundle",
        "grafana",
        "init --domain example.com",
        "types config/crd/bases/cache.example.com_cups.yaml",
    ] {
        let ran = folder.run(command);
        assert!(
            ran.code == 1 && ran.err.contains("error: cannot parse PROJECT:1:14"),
            "{command}: {}{}",
            ran.out,
            ran.err
        );
    }
    let ran = folder.run("doctor");
    assert!(
        ran.code == 1 && ran.out.contains("cannot parse PROJECT:1:14"),
        "{}",
        ran.out
    );
}

/// A list of CRDs as the API server returns it.
#[test]
fn a_list_of_crds_is_not_written_a_second_time() {
    let folder = Folder::new();
    folder.write("Cargo.toml", PACKAGE);
    folder.write(
        "src/lib.rs",
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n#[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", \
         namespaced)]\npub struct CupSpec {\n    pub size: i32,\n}\n",
    );
    let crd = folder.run("manifests --stdout").ok().out;
    let item: String = crd
        .trim_start_matches("---\n")
        .lines()
        .enumerate()
        .map(|(index, line)| format!("{}{line}\n", if index == 0 { "- " } else { "  " }))
        .collect();
    let list =
        format!("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems:\n{item}");
    folder.write("crds.yaml", &list);
    // The format of an old kubebuilder, which other tools still have in Rust repositories.
    folder.write("PROJECT", "domain: x.io\nrepo: x.io/cup\nversion: 3-alpha\n");
    folder.run("adopt").ok();
    folder.run("manifests").ok();
    let tree = folder.tree();
    let defining: Vec<&String> = tree
        .iter()
        .filter(|(_, text)| text.contains("kind: CustomResourceDefinition"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(defining, ["crds.yaml"]);
}

fn forget_names(folder: &Folder) {
    let text = folder.tree()["PROJECT"].clone();
    let mut is_inside = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        let indent = line.len() - line.trim_start().len();
        is_inside = *line == "  names:\n" || is_inside && indent > 2;
        !is_inside
    });
    let kept: String = kept.collect();
    folder.write("PROJECT", &kept);
}

/// The scaffold with the names that `init` chooses.
fn plain_scaffold(folder: &Folder) -> BTreeMap<String, String> {
    let copy = folder.copy();
    for path in folder.tree().keys().filter(|path| path.starts_with("config/")) {
        copy.remove(path);
    }
    forget_names(&copy);
    rebuild_files(&Tree::new(copy.path()), None).expect("it can be rebuilt")
}

/// The Deployment has other variables, and the markers other arguments, than those of the scaffold.
#[test]
fn imported_project_is_limited_to_its_namespace_and_back() {
    const CONDITION: &str = "name = \"manager-namespace\"";
    let folder = import(&original()).0;
    let before = folder.tree();
    folder.run("edit --namespaced=true").ok();
    let tree = folder.tree();
    let variables = "        env:\n        # Comma-separated list of namespaces to watch. By default the manager watches its own namespace.\n        \
                     - name: WATCH_NAMESPACE\n          valueFrom:\n            fieldRef:\n              fieldPath: metadata.namespace\n        \
                     - name: CUP_IMAGE\n          value: example.com/cup:v1\n        ports:\n";
    assert!(
        tree["config/manager/manager.yaml"].contains(variables),
        "{}",
        tree["config/manager/manager.yaml"]
    );
    let webhooks = &tree["src/webhook/v1/cup.rs"];
    assert_eq!(webhooks.matches("#[webhook(").count(), 3);
    assert_eq!(webhooks.matches(CONDITION).count(), 3, "{webhooks}");
    let rule = "    verbs = \"get;list;watch;update\",\n    namespace = \"cups-system\"\n)]\n";
    let controller = &tree["src/controller/cup.rs"];
    assert!(controller.contains(rule), "{controller}");
    folder.run("manifests --check").ok();
    let repeated = folder.run("edit --namespaced=true").ok();
    assert!(repeated.out.starts_with("unchanged"), "{}", repeated.out);
    folder.run("edit --namespaced=false").ok();
    let after = folder.tree();
    for path in [
        "config/manager/manager.yaml",
        "src/webhook/v1/cup.rs",
        "src/controller/cup.rs",
        "config/rbac/role.yaml",
        "config/rbac/role_binding.yaml",
    ] {
        assert_eq!(after[path], before[path], "{path}");
    }
}
