//! `rbuilder import`: converts a kubebuilder project in Go to a Rust project that makes no
//! difference to a cluster.

use crate::support;

use support::Folder;

/// The project has one kind and a webhook, as kubebuilder scaffolds it. The columns are a path and
/// a text.
const PROJECT: &[(&str, &str)] = &[
    ("PROJECT", include_str!("import/PROJECT.yaml")),
    (
        "internal/controller/cup_controller.go",
        include_str!("import/cup_controller.go.txt"),
    ),
    ("cmd/main.go", include_str!("import/main.go.txt")),
    (
        "config/crd/bases/crew.example.com_cups.yaml",
        include_str!("import/crd.yaml"),
    ),
    ("config/rbac/role.yaml", include_str!("import/role.yaml")),
    (
        "config/webhook/manifests.yaml",
        include_str!("import/webhooks.yaml"),
    ),
    (
        "config/default/kustomization.yaml",
        "namespace: kitchen\nnamePrefix: cups-\nresources:\n- ../crd\n- ../rbac\n- ../manager\n- metrics_service.yaml\n",
    ),
    ("config/manager/manager.yaml", include_str!("import/manager.yaml")),
    (
        "config/rbac/service_account.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: kitchen\n",
    ),
    (
        "config/default/metrics_service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: metrics\n",
    ),
    (
        "config/samples/crew_v1_cup.yaml",
        "apiVersion: crew.example.com/v1\nkind: Cup\nmetadata:\n  name: espresso\nspec:\n  size: 3\n",
    ),
];

pub(crate) fn original() -> Folder {
    let folder = Folder::new();
    for (path, text) in PROJECT {
        folder.write(path, text);
    }
    folder
}

pub(crate) fn import(original: &Folder) -> (Folder, support::Ran) {
    let folder = Folder::new();
    let ran = folder.run(&format!("import {}", original.path().display()));
    (folder, ran)
}

#[test]
fn imported_project_keeps_its_names() {
    let (folder, ran) = import(&original());
    let ran = ran.ok();
    for row in [
        "CRD cups.crew.example.com ",
        "webhook mcup.kb.io ",
        "webhook vcup.kb.io ",
        "webhook vcupdelete.kb.io ",
        "selector of the Deployment ",
        "resources of the manager ",
        "name of the Deployment ",
        "service account ",
    ] {
        let line = ran.out.lines().find(|line| line.starts_with(row)).expect(row);
        assert!(line.trim_end().ends_with("same"), "{line}");
    }
    assert!(!ran.out.contains("missing: "), "{}", ran.out);
    let tree = folder.tree();
    for (path, expected) in [
        (
            "src/main.rs",
            "const LEADER_ELECTION_ID: &str = \"cups.example.com\";",
        ),
        (
            "config/default/kustomization.yaml",
            "namespace: kitchen\nnamePrefix: cups-\n",
        ),
        (
            "config/manager/manager.yaml",
            "    matchLabels:\n      control-plane: cups\n  template:",
        ),
        ("config/metrics/metrics_service.yaml", "    control-plane: cups\n"),
        ("config/samples/crew_v1_cup.yaml", "  name: espresso\n"),
        (
            "src/controller/cup.rs",
            "use k8s_openapi::api::apps::v1::Deployment;\nuse k8s_openapi::api::core::v1::Secret;\nuse kube::ResourceExt;",
        ),
        (
            "src/controller/cup.rs",
            "        .filter(rbuilder::predicate::generation_changed())\n        .owns::<Deployment>()\n        .watches(map_secret)\n        .concurrency(3)\n",
        ),
        (
            "src/controller/cup.rs",
            "fn map_secret(_object: &Secret, _ctx: &Ctx<State>) -> Vec<ObjectRef<Cup>> {\n    // Port `cupsOf` of internal/controller/cup_controller.go here.",
        ),
        (
            "src/controller/cup.rs",
            "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get;list;watch\")]",
        ),
        (
            "src/controller/mod.rs",
            "#[rbac(groups = \"\", resources = \"nodes\", verbs = \"get\")]\npub fn register(",
        ),
        (
            "src/webhook/v1/cup.rs",
            "#[webhook(\n    mutating,\n    operations = \"create\",\n    name = \"mcup.kb.io\",\n    failure_policy = \"Ignore\",\n    timeout_seconds = 5\n)]",
        ),
        (
            "src/webhook/v1/cup.rs",
            "#[webhook(validating, name = \"vcup.kb.io\")]\n#[webhook(\n    validating,\n    operations = \"delete\",\n    name = \"vcupdelete.kb.io\",\n    failure_policy = \"Ignore\"\n)]\n",
        ),
        (
            "MIGRATION.md",
            "- [ ] port cupsOf (Secret) to `map_secret`\n- [ ] functions of one statement, as needed: `CupReconciler.Reconcile` (line 16), `CupReconciler.cupsOf` (line 31)\n",
        ),
        (
            "MIGRATION.md",
            "- [ ] add the flag `--brew-time` (line 8) to `Args` in src/main.rs\n",
        ),
        (
            "MIGRATION.md",
            "`WatchesRawSource` at internal/controller/cup_controller.go:27",
        ),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }
    assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
}

#[test]
fn manager_objects_keep_their_names() {
    let (folder, ran) = import(&original());
    ran.ok();
    let tree = folder.tree();
    let config = tree.iter().filter(|(path, _)| path.starts_with("config/"));
    for (path, text) in config {
        let is_old = |line: &&str| {
            line.trim_start_matches([' ', '-'])
                .ends_with("ame: controller-manager")
        };
        let old: Vec<&str> = text.lines().filter(is_old).collect();
        assert!(old.is_empty(), "{path}: {old:?}");
    }
    for (path, expected) in [
        ("config/metrics/metrics_service.yaml", "\n  name: metrics\n"),
        ("config/metrics/manager_metrics_patch.yaml", "\n  name: barista\n"),
        ("config/webhook/manager_webhook_patch.yaml", "\n  name: barista\n"),
        (
            "config/webhook/disabled/kustomization.yaml",
            "\n      name: barista\n",
        ),
        ("config/rbac/service_account.yaml", "\n  name: kitchen\n"),
        (
            "config/rbac/role_binding.yaml",
            "- kind: ServiceAccount\n  name: kitchen\n",
        ),
        (
            "config/manager/manager.yaml",
            "      serviceAccountName: kitchen\n",
        ),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }
}

#[test]
fn metrics_certificate_becomes_a_feature() {
    let original = original();
    let path = "config/default/kustomization.yaml";
    let patch = "- path: cert_metrics_manager_patch.yaml\n  target:\n    kind: Deployment\n";
    let text = original.tree()[path].clone();
    let text = match text.contains("\npatches:\n") {
        true => text.replacen("\npatches:\n", &format!("\npatches:\n{patch}"), 1),
        false => format!("{text}\npatches:\n{patch}"),
    };
    original.write(path, &text);
    original.write(
        "config/default/cert_metrics_manager_patch.yaml",
        "- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: \
         --metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs\n- op: add\n  path: \
         /spec/template/spec/containers/0/volumeMounts/-\n  value: {mountPath: /tmp/k8s-metrics-server/metrics-certs, name: \
         metrics-certs, readOnly: true}\n- op: add\n  path: /spec/template/spec/volumes/-\n  value: {name: metrics-certs, \
         secret: {secretName: metrics-server-cert}}\n",
    );
    original.write(
        "config/manager/kustomization.yaml",
        "resources:\n- manager.yaml\n",
    );
    original.write(
        "config/prometheus/kustomization.yaml",
        "resources:\n- monitor.yaml\npatches:\n- path: monitor_tls_patch.yaml\n  target:\n    kind: ServiceMonitor\n",
    );
    original.write(
        "config/prometheus/monitor_tls_patch.yaml",
        "- op: replace\n  path: /spec/endpoints/0/tlsConfig\n  value:\n    insecureSkipVerify: false\n",
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    for patch in ["cert_metrics_manager_patch", "monitor_tls_patch"] {
        assert!(!ran.out.contains(patch), "{}", ran.out);
    }
    let tree = folder.tree();
    let deployed = &tree[path];
    assert!(deployed.contains("\n- ../metrics-certificate\n"), "{deployed}");
    assert!(
        deployed.contains("\n- ../metrics-certificate/names\n"),
        "{deployed}"
    );
    // The component mounts the certificates instead.
    assert!(!tree["config/manager/manager.yaml"].contains("metrics-certs"));
    // In this project, the Service has another name.
    let certificate = &tree["config/metrics-certificate/certificate.yaml"];
    assert!(
        certificate.contains("\n  - metrics.system.svc\n"),
        "{certificate}"
    );
    let names = &tree["config/metrics-certificate/names/replacements.yaml"];
    assert_eq!(
        names.matches("    kind: Service\n    name: metrics\n").count(),
        2,
        "{names}"
    );
}

#[test]
fn selector_labels_from_kustomize_are_left_to_the_user() {
    let original = original();
    let path = "config/default/kustomization.yaml";
    let text = original.tree()[path].clone();
    original.write(path, &format!("{text}commonLabels:\n  team: kitchen\n"));
    let ran = import(&original).1.ok();
    let row = "selector of the Deployment ";
    let line = ran.out.lines().find(|line| line.starts_with(row)).expect(row);
    assert!(line.contains("by hand"), "{line}");
}

/// kubebuilder 2 didn't record the name of a project, nor its layout. Version 3-alpha has both.
#[test]
fn imports_projects_of_older_versions() {
    let common = "domain: example.com\nrepo: example.com/cups\nresources:\n- group: crew\n  kind: Cup\n  version: v1\n";
    for (rest, name) in [
        ("version: \"2\"\n", "cups"),
        (
            "layout: go.kubebuilder.io/v2\nprojectName: kitchen\nversion: 3-alpha\nplugins:\n  go.operator-sdk.io/v2-alpha: {}\n",
            "kitchen",
        ),
    ] {
        let original = original();
        original.write("PROJECT", &format!("{common}{rest}"));
        let (folder, ran) = import(&original);
        let ran = ran.ok();
        assert!(has_row(&ran, "CRD cups.crew.example.com ", "same"), "{}", ran.out);
        let tree = folder.tree();
        let project = &tree["PROJECT"];
        assert!(project.contains(&format!("projectName: {name}\n")), "{project}");
        assert!(tree.contains_key("src/api/v1/cup.rs"));
    }
}

/// Some projects move the directories that kubebuilder scaffolds, and some only have their CRDs in
/// a chart.
#[test]
fn finds_manifests_in_other_directories() {
    const CRD: &str = "config/crd/bases/crew.example.com_cups.yaml";
    const ROLE: &str = "config/rbac/role.yaml";
    for (crd, role) in [
        (
            "config/components/crd/bases/cups.yaml",
            "config/components/rbac/role.yaml",
        ),
        ("charts/cups/crds/cups.yaml", ROLE),
    ] {
        let original = original();
        for (from, to) in [(CRD, crd), (ROLE, role)] {
            let text = original.tree()[from].clone();
            original.remove(from);
            original.write(to, &text);
        }
        let ran = import(&original).1.ok();
        assert!(
            has_row(&ran, "CRD cups.crew.example.com ", "same"),
            "{crd}: {}",
            ran.out
        );
        assert!(!ran.out.contains("missing: "), "{role}: {}", ran.out);
    }
}

/// Compare the permissions of roles, because projects rename the scaffolded ones.
#[test]
fn renamed_role_is_a_counterpart() {
    let original = original();
    original.write("config/rbac/kustomization.yaml", "resources:\n- viewer.yaml\n");
    let role = |resource: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cup-readers\nrules:\n- apiGroups: [crew.example.com]\n  resources: [{resource}]\n  verbs: [get, list, watch]\n"
        )
    };
    for (resource, expected) in [
        ("cups", "better   ClusterRole cup-viewer-role has its permissions"),
        ("mugs", "by hand"),
    ] {
        original.write("config/rbac/viewer.yaml", &role(resource));
        let ran = import(&original).1.ok();
        assert!(
            has_row(&ran, "ClusterRole cup-readers ", expected),
            "{resource}: {}",
            ran.out
        );
    }
}

/// The row starts with `row` and then has this result.
pub(crate) fn has_row(ran: &support::Ran, row: &str, result: &str) -> bool {
    let mut lines = ran.out.lines();
    lines.any(|line| line.starts_with(row) && line[row.len()..].trim_start().starts_with(result))
}

#[test]
fn uninstalled_crd_is_left_to_the_user() {
    let path = "config/crd/bases/crew.example.com_cups.yaml";
    for (listed, expected) in [
        ("- bases/other.yaml\n", true),
        ("- bases/crew.example.com_cups.yaml\n", false),
        ("- bases\n", false),
        ("", false),
    ] {
        let original = original();
        let other = original.tree()[path].replace("Cup", "Mug").replace("cup", "mug");
        original.write("config/crd/bases/other.yaml", &other);
        original.write("config/crd/kustomization.yaml", &format!("resources:\n{listed}"));
        let ran = import(&original).1.ok();
        assert_eq!(
            ran.out.contains("CRD of `Cup` is installed"),
            expected,
            "{listed}: {}",
            ran.out
        );
    }
}

#[test]
fn advice_for_an_unmarked_built_in_kind_works() {
    let original = original();
    let text = original.tree()["PROJECT"].clone();
    let pod = "- controller: true\n  domain: example.com\n  kind: Pod\n  version: v1\nversion: \"3\"\n";
    original.write("PROJECT", &text.replace("version: \"3\"\n", pod));
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    let command = "create api --group core --version v1 --kind Pod";
    assert!(ran.out.contains(&format!("`rbuilder {command}`")), "{}", ran.out);
    folder.run("edit --multigroup").ok();
    folder.run(command).ok();
}

#[test]
fn webhook_restrictions_become_part_of_the_marker() {
    let original = original();
    let webhooks = include_str!("import/webhooks.yaml");
    let restricted = "  name: mcup.kb.io\n  matchConditions:\n  - name: not-hot\n    expression: object.spec.size < 5\n  namespaceSelector:\n    matchExpressions:\n    - key: team\n      operator: In\n      values: [a, b]\n    - key: old\n      operator: DoesNotExist\n  objectSelector:\n    matchLabels:\n      cup: \"yes\"\n";
    assert!(webhooks.contains("  name: mcup.kb.io\n"));
    original.write(
        "config/webhook/manifests.yaml",
        &webhooks.replacen("  name: mcup.kb.io\n", restricted, 1),
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    let row = "webhook mcup.kb.io ";
    let line = ran.out.lines().find(|line| line.starts_with(row)).expect(row);
    assert!(line.trim_end().ends_with("same"), "{line}");
    assert!(!ran.out.contains("Selector` of the webhook"), "{}", ran.out);
    assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
}

#[test]
fn webhooks_for_missing_versions_are_not_created() {
    let original = original();
    let webhooks =
        include_str!("import/webhooks.yaml").replace("- v1\n    operations", "- v9\n    operations");
    original.write(
        "config/webhook/manifests.yaml",
        &webhooks.replace("-v1-cup", "-v9-cup"),
    );
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    assert!(!tree.contains_key("src/webhook/v1/cup.rs"), "{:?}", tree.keys());
}

/// Scaffolded tests read a single object from the sample of a kind. If the file has more, or an
/// unrelated file has the same name, they go to a separate file.
#[test]
fn additional_objects_in_samples_are_imported() {
    let original = original();
    let path = "config/samples/crew_v1_cup.yaml";
    let sample = original.tree()[path].clone();
    let more = "---\n# The second.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beans}\n";
    original.write(path, &format!("{more}---\n{sample}"));
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    assert_eq!(tree[path], sample);
    assert_eq!(tree["config/samples/crew_v1_cup_2.yaml"], more);
    let list = &tree["config/samples/kustomization.yaml"];
    assert!(list.contains("- crew_v1_cup_2.yaml\n"), "{list}");
    original.write(path, more);
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    assert!(tree[path].contains("kind: Cup\n"));
    assert_eq!(tree["config/samples/crew_v1_cup_2.yaml"], more);
}

#[test]
fn sample_with_another_file_name_replaces_the_scaffolded_one() {
    let original = original();
    let path = "config/samples/crew_v1_cup.yaml";
    let sample = original.tree()[path].clone();
    original.write("config/samples/cup.yaml", &sample);
    original.write("config/samples/more.yaml", &sample.replace("espresso", "more"));
    // A sample without fields doesn't count, although it comes first.
    original.write(
        "config/samples/a.yaml",
        &sample.replace("  size: 3\n", "").replace("spec:\n", "spec: {}\n"),
    );
    original.remove(path);
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    assert!(tree[path].contains("name: espresso"), "{}", tree[path]);
    assert!(!tree.contains_key("config/samples/cup.yaml"));
    let list = &tree["config/samples/kustomization.yaml"];
    let listed: Vec<&str> = list.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(
        listed,
        ["- crew_v1_cup.yaml", "- a.yaml", "- more.yaml"],
        "{list}"
    );
}

/// E.g. in mariadb-operator, the user gave kubebuilder the project's group for a built-in kind.
#[test]
fn built_in_kind_recorded_in_the_project_group_is_recognized() {
    let original = original();
    let text = original.tree()["PROJECT"].clone();
    let pod = "- controller: true\n  domain: example.com\n  group: crew\n  kind: Pod\n  version: v1\nversion: \"3\"\n";
    original.write("PROJECT", &text.replace("version: \"3\"\n", pod));
    let without = import(&original).1.ok().out;
    assert!(without.contains("kind `Pod` "), "{without}");
    original.write(
        "internal/controller/pod_controller.go",
        "package controller\n\nimport corev1 \"k8s.io/api/core/v1\"\n\nfunc (r *PodReconciler) SetupWithManager(mgr ctrl.Manager) error {\n\treturn ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(r)\n}\n",
    );
    let (folder, ran) = import(&original);
    let out = ran.ok().out;
    assert!(!out.contains("kind `Pod` "), "{out}");
    assert!(folder.tree().contains_key("src/controller/pod.rs"), "{out}");
}

/// PROJECT records webhooks for the first version, but `make manifests` generates them for the
/// current one.
#[test]
fn webhook_versions_come_from_the_configurations() {
    let original = original();
    let crd = include_str!("import/crd.yaml");
    let version = &crd[crd.find("  - name: v1\n").expect("a version")..];
    let second =
        version
            .replacen("name: v1\n", "name: v2\n", 1)
            .replacen("storage: true", "storage: false", 1);
    original.write(
        "config/crd/bases/crew.example.com_cups.yaml",
        &format!("{crd}{second}"),
    );
    let webhooks =
        include_str!("import/webhooks.yaml").replace("- v1\n    operations", "- v2\n    operations");
    original.write(
        "config/webhook/manifests.yaml",
        &webhooks.replace("-v1-cup", "-v2-cup"),
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    for name in ["mcup", "vcup", "vcupdelete"] {
        let row = format!("webhook {name}.kb.io ");
        let line = ran.out.lines().find(|line| line.starts_with(&row)).expect(&row);
        assert!(line.trim_end().ends_with("same"), "{line}");
    }
    assert!(!ran.out.contains("cup-v1.kb.io"), "{}", ran.out);
    let tree = folder.tree();
    assert!(tree.contains_key("src/webhook/v2/cup.rs") && !tree.contains_key("src/webhook/v1/cup.rs"));
}

#[test]
fn imported_content_is_not_a_user_change() {
    let (folder, ran) = import(&original());
    ran.ok();
    let ran = folder.run("doctor");
    let line = ran.out.lines().find(|line| line.contains(" scaffold: "));
    assert!(
        line.is_some_and(|line| line.ends_with("files that rbuilder wrote")),
        "{}",
        ran.out
    );
    folder
        .run("delete webhook --group crew --version v1 --kind Cup")
        .ok();
    folder.run("delete api --group crew --version v1 --kind Cup").ok();
    assert!(!folder.tree().contains_key("src/controller/cup.rs"));
}

#[test]
fn importing_twice_changes_nothing() {
    let original = original();
    let before = original.tree();
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    let again = folder.run(&format!("import {}", original.path().display())).ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    assert_eq!(folder.tree(), tree);
    assert_eq!(original.tree(), before);
}

#[test]
fn dry_run_writes_nothing_and_json_contains_the_table() {
    let original = original();
    let folder = Folder::new();
    let line = format!("import {} --dry-run --output json", original.path().display());
    let ran = folder.run(&line).ok();
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let rows = answer["table"].as_array().expect("a table");
    let is_row =
        |row: &&serde_json::Value| row["what"] == "CRD cups.crew.example.com" && row["result"] == "same";
    assert!(rows.iter().any(|row| is_row(&row)), "{rows:?}");
    assert_eq!(folder.tree(), Folder::new().tree());
}

#[test]
fn existing_files_are_an_error() {
    let (original, folder) = (original(), Folder::new());
    folder.write("src/main.rs", "fn main() {}\n");
    let before = folder.tree();
    let ran = folder.run(&format!("import {}", original.path().display()));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("src/main.rs"), "{}", ran.err);
    assert_eq!(folder.tree(), before);
}

/// Each row changes a file, and has the message that we expect. `Ok` means that the command
/// succeeds and prints it, and `Err` that it fails with it and writes nothing.
#[test]
fn hostile_projects_are_rejected_or_left_to_the_user() {
    let bomb = {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 'b'..='k' {
            let before = char::from(level as u8 - 1);
            let items = format!("*{before}, ").repeat(9);
            text.push_str(&format!("{level}: &{level} [{items}]\n"));
        }
        format!("{text}{}", include_str!("import/PROJECT.yaml"))
    };
    let project = include_str!("import/PROJECT.yaml");
    let crd = include_str!("import/crd.yaml");
    let no_schema = crd.split("    schema:").next().unwrap_or_default().to_owned()
        + "    served: true\n    storage: true\n";
    let cases: &[(&str, String, Result<&str, &str>)] = &[
        ("PROJECT", bomb, Err("PROJECT")),
        ("PROJECT", String::new(), Err("PROJECT")),
        (
            "PROJECT",
            project.replace("go.kubebuilder.io/v4", "helm.sdk.operatorframework.io/v1"),
            Err("unsupported layout"),
        ),
        (
            "PROJECT",
            project.replace("projectName: cups", "projectName: ../cups"),
            Err("--project-name"),
        ),
        (
            "PROJECT",
            project.replace("version: v1\n", "version: ../v1\n"),
            Ok("webhook mcup.kb.io"),
        ),
        (
            "PROJECT",
            project.replace("kind: Cup", "kind: ../Cup"),
            Ok("the Go project has no CRD for it"),
        ),
        (
            "PROJECT",
            project.replace("kind: Cup", "kind: fn"),
            Ok("the Go project has no CRD for it"),
        ),
        (
            "config/crd/bases/crew.example.com_cups.yaml",
            no_schema,
            Ok("kind `Cup`"),
        ),
        (
            "config/crd/bases/crew.example.com_cups.yaml",
            "[".repeat(100_000),
            Ok("it was not read"),
        ),
        (
            "config/crd/bases/crew.example.com_cups.yaml",
            crd.replace("plural: cups", "plural: ../cups"),
            Ok("kind `Cup`"),
        ),
        (
            "config/crd/bases/other.yaml",
            crd.replace("crew.example.com", "x.other.org"),
            Ok("its group `x.other.org` is not in the domain"),
        ),
        (
            "config/default/kustomization.yaml",
            "namespace: \"a\\nb: c\"\nresources: [../../../etc, /etc, ..]\n".to_owned(),
            Ok("same"),
        ),
        (
            "config/samples/crew_v1_cup.yaml",
            "&a [*a]".to_owned(),
            Ok("config/samples/crew_v1_cup.yaml"),
        ),
        (
            "cmd/main.go",
            "func ( { NewControllerManagedBy( LeaderElectionID: \"a\\\"); evil\"".to_owned(),
            Ok("same"),
        ),
        (
            "internal/controller/cup_controller.go",
            "x".repeat(17 << 20),
            Ok("it is larger than 16 MiB"),
        ),
    ];
    for (number, (path, text, expected)) in cases.iter().enumerate() {
        let original = original();
        original.write(path, text);
        let (folder, ran) = import(&original);
        match expected {
            Ok(said) => {
                assert!(
                    ran.code == 0 && ran.out.contains(said),
                    "{number} {path}: {}\n{}",
                    ran.out,
                    ran.err
                );
                let check = folder.run("manifests --check").ok();
                assert!(
                    check.out.starts_with("unchanged"),
                    "{number} {path}: {}",
                    check.out
                );
            }
            Err(said) => {
                assert!(
                    ran.code != 0 && ran.err.contains(said),
                    "{number} {path}: {}\n{}",
                    ran.out,
                    ran.err
                );
                assert_eq!(folder.tree(), Folder::new().tree(), "{number} {path}");
            }
        }
    }
}

/// If a group only ends in the letters of the domain, it isn't in the domain. We must not import it
/// under a truncated name.
#[test]
fn groups_of_other_domains_are_left_to_the_user() {
    let project = include_str!("import/PROJECT.yaml");
    let crd = include_str!("import/crd.yaml").replace("crew.example.com", "fooexample.com");
    let saucer = crd.replace("Cup", "Saucer").replace("cups", "saucers");
    let controller = include_str!("import/cup_controller.go.txt")
        .replace(
            "corev1 \"k8s.io/api/core/v1\"",
            "foov1 \"example.com/cups/api/foo/v1\"",
        )
        .replace("corev1.Secret", "foov1.Saucer");
    let listed = project.replace("group: crew", "group: fooexample.com");
    let multigroup = format!("{project}multigroup: true\n");
    for files in [
        // Here PROJECT lists the kind.
        &[
            ("PROJECT", &listed),
            ("config/crd/bases/crew.example.com_cups.yaml", &crd),
        ][..],
        // Here a controller watches the kind.
        &[
            ("PROJECT", &multigroup),
            ("config/crd/bases/fooexample.com_saucers.yaml", &saucer),
            ("internal/controller/cup_controller.go", &controller),
        ],
    ] {
        let original = original();
        for (path, text) in files {
            original.write(path, text);
        }
        let (folder, ran) = import(&original);
        let out = ran.ok().out;
        let left = "its group `fooexample.com` is not in the domain `example.com` of PROJECT";
        assert!(out.contains(left), "{out}");
        for (path, text) in folder.tree() {
            let is_source = path.to_string().ends_with(".rs");
            assert!(
                !is_source || !text.contains("api::foo"),
                "{path}: a path into a module that is not there\n{text}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let original = original();
    let outside = Folder::new();
    outside.write(
        "crd.yaml",
        &include_str!("import/crd.yaml")
            .replace("cups", "spoons")
            .replace("Cup", "Spoon"),
    );
    std::os::unix::fs::symlink(outside.path(), original.path().join("config/crd/outside")).expect("a link");
    let (folder, ran) = import(&original);
    ran.ok();
    assert!(folder.tree().keys().all(|path| !path.contains("spoon")));
}

const BASE: &str = r#"apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: cups.v0.0.0
  annotations:
    capabilities: Seamless Upgrades
spec:
  customresourcedefinitions:
    owned:
    - name: cups.crew.example.com
      kind: Cup
      version: v1
      displayName: Cup of a shop
      resources:
      - {kind: Deployment, name: "", version: v1}
      - {kind: Cup, name: "", version: v1}
      specDescriptors:
      - path: size
        displayName: Millilitres
        x-descriptors: ["urn:alm:descriptor:com.tectonic.ui:number"]
      - {path: gone, displayName: Gone}
      - {path: gone.inner, displayName: Inner}
    - {name: mugs.crew.example.com, kind: Mug, version: v1, displayName: Mug}
  description: Cups and more.
  displayName: The cups
  replaces: cups.v0.0.9
"#;

#[test]
fn clusterserviceversion_base_becomes_markers() {
    let original = original();
    let path = "config/manifests/bases/cups.clusterserviceversion.yaml";
    original.write(path, BASE);
    original.write("config/manifests/bases/other.yaml", BASE);
    let (folder, ran) = import(&original);
    let out = ran.ok().out;
    for expected in [
        "`#[csv(…)]` describes 1 version of a kind and 1 field; `rbuilder bundle` reads the rest",
        "it describes fields that no CRD has, which are omitted: `spec.gone` in `v1` of `Cup`, `mugs.crew.example.com` in version `v1`",
        "pass `--replaces 0.0.9` to the first `rbuilder bundle`",
        "a project has one base",
    ] {
        assert!(out.contains(expected), "{expected}\n{out}");
    }
    let types = &folder.tree()["src/api/v1/cup.rs"];
    assert!(
        types.contains("    #[csv(display_name = \"Millilitres\")]\n"),
        "{types}"
    );
    let kind = "#[csv(display_name = \"Cup of a shop\")]\n#[csv(resource(kind = \"Deployment\", version = \"v1\"))]\n";
    assert!(types.contains(kind), "{types}");
    let base = &folder.tree()[path];
    assert!(!base.contains("owned"), "{base}");
    folder.run("bundle").ok();
    let csv = &folder.tree()["bundle/manifests/cups.clusterserviceversion.yaml"];
    for expected in [
        "Seamless Upgrades",
        "Cups and more.",
        "The cups",
        "Cup of a shop",
        "Millilitres",
    ] {
        assert!(csv.contains(expected), "{csv}");
    }
    assert!(folder.tree()["MIGRATION.md"].contains(path));
}
