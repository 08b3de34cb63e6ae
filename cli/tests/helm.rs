//! `rbuilder helm`: the chart follows config/ and preserves the user's edits. `cargo xtask helm`
//! runs Helm itself.

use crate::support;

use std::sync::LazyLock;

use support::{Folder, Saved};

const COMMANDS: [&str; 5] = [
    "init --domain example.com --project-name shop",
    "create api --group cache --version v1 --kind Cup",
    "create api --group cache --version v2 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --defaulting --validation --conversion --spoke v2",
    "helm",
];

const VALUES: &str = "charts/shop/values.yaml";
const MANAGER: &str = "charts/shop/templates/manager/manager.yaml";
const ROLE: &str = "charts/shop/templates/rbac/role.yaml";

/// The project has every kind of webhook, and a chart.
fn project() -> Folder {
    static PROJECT: LazyLock<Saved> = LazyLock::new(|| {
        let folder = Folder::new();
        for command in COMMANDS {
            folder.run(command).ok();
        }
        folder.save()
    });
    PROJECT.copy()
}

#[test]
fn chart_has_the_expected_files() {
    let folder = project();
    let tree = folder.tree();
    let files = tree
        .iter()
        .filter_map(|(path, text)| Some((path.strip_prefix("charts/shop/")?, text)));
    for (path, text) in files {
        support::golden(&format!("helm/{path}"), text);
    }
    folder.check_unchanged("helm");
}

#[test]
fn chart_follows_later_commands() {
    let folder = project();
    folder
        .run("create api --group cache --version v1 --kind Pot")
        .ok();
    assert_eq!(folder.run("helm --check").code, 1);
    folder.run("helm").ok();
    let tree = folder.tree();
    assert!(tree.contains_key("charts/shop/templates/crd/cache.example.com_pots.yaml"));
    assert!(tree["charts/shop/templates/rbac/role.yaml"].contains("- pots/status"));
    folder.check_unchanged("helm");

    folder
        .run("delete api --group cache --version v1 --kind Pot")
        .ok();
    folder.run("helm").ok();
    assert_eq!(
        folder.tree().keys().collect::<Vec<_>>(),
        project().tree().keys().collect::<Vec<_>>()
    );
}

/// Users write names that kustomize doesn't update when the name or the namespace of the project
/// changes.
#[test]
fn names_in_selectors_and_queries_follow_the_release() {
    let folder = project();
    folder
        .run("create webhook --group core --version v1 --kind Pod --defaulting")
        .ok();
    folder.replace(
        "src/webhook/v1/pod.rs",
        "    match_condition(",
        "    match_condition(\n        name = \"others\",\n        expression = \"request.userInfo.username != \
         'system:serviceaccount:shop-system:shop-controller-manager'\"\n    ),\n    match_condition(",
    );
    folder.run("grafana").ok();
    folder.run("edit --enable prometheus").ok();
    folder.run("helm").ok();
    let tree = folder.tree();
    let chart = tree
        .iter()
        .filter(|(path, _)| path.starts_with("charts/shop/templates/"));
    let chart: String = chart.map(|(_, text)| text.as_str()).collect();
    for expected in [
        "  - expression: '!(request.namespace in [''{{ .Release.Namespace }}'', ''kube-system''])'\n",
        "  - expression: 'request.userInfo.username != ''system:serviceaccount:{{ .Release.Namespace }}:{{ \
         include \"shop.serviceAccountName\" . }}'''\n",
        "    - key: app.kubernetes.io/name\n      operator: NotIn\n      values:\n      - {{ include \"shop.name\" . | quote }}\n",
    ] {
        assert!(chart.contains(expected), "not in the chart: {expected}");
    }
    assert!(
        !chart.contains("shop-system"),
        "the namespace of the project is in a template"
    );
    let service =
        "'absent(up{job=~\"{{ include \"shop.fullname\" . }}-controller-manager-metrics-service\"} == 1)'";
    assert!(chart.contains(service), "the query is not {service}");
    assert!(
        !chart.contains("shop-controller-manager-metrics-service"),
        "a template has the name of a Service of the project"
    );
}

#[test]
fn names_in_data_follow_the_release_and_names_in_values_are_a_warning() {
    let folder = project();
    folder.replace(
        "config/manager/manager.yaml",
        "        - --leader-elect\n",
        "        - --leader-elect\n        - --address=shop-webhook-service.shop-system.svc\n",
    );
    folder.replace(
        "config/manager/kustomization.yaml",
        "- manager.yaml\n",
        "- manager.yaml\n- settings.yaml\n",
    );
    folder.write(
        "config/manager/settings.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: 'https://shop-webhook-service.shop-system.svc'\n  b: plain\n",
    );
    let ran = folder.run("helm").ok();
    let expected = "`args` in values.yaml has `--address=shop-webhook-service.shop-system.svc`, which is the same in every release";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let settings = &folder.tree()["charts/shop/templates/manager/settings.yaml"];
    let expected = "data:\n  a: 'https://{{ include \"shop.fullname\" . }}-webhook-service.{{ .Release.Namespace }}.svc'\n  b: plain\n";
    assert!(settings.contains(expected), "{settings}");
}

/// Helm stores a release in a Secret, which can only hold 1 MiB.
#[test]
fn warns_if_helm_cannot_store_the_chart() {
    let folder = project();
    let crd = "config/crd/bases/cache.example.com_cups.yaml";
    // Use text that barely compresses.
    let text: String = (0..200_000_u64)
        .map(|number| format!("{:x} ", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    folder.replace(
        crd,
        "description: CupSpec",
        &format!("description: {text} CupSpec"),
    );
    let ran = folder.run("helm --manifests=false").ok();
    for expected in [
        "and Helm can store 1024 KiB: templates/crd/cache.example.com_cups.yaml has ",
        "`crds.enabled`",
    ] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
    let ran = folder
        .run("bundle --image example.com/shop:1 --manifests=false")
        .ok();
    let expected = "the Operator Lifecycle Manager can unpack 1024 KiB: bundle/manifests/cache.example.com_cups.yaml has ";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn user_edits_and_manifest_changes_are_merged() {
    let folder = project();
    folder.replace(
        VALUES,
        "repository: controller",
        "repository: registry.example.com/shop",
    );
    folder.replace(VALUES, "extraObjects: []", "extraObjects: []\n\n# Ours.\nours: 1");
    folder.replace(
        MANAGER,
        "    spec:\n      containers:",
        "    spec:\n      hostNetwork: true\n      containers:",
    );
    folder.write("charts/shop/templates/ours.yaml", "# Ours.\n");
    // Update the table in the README, which follows values.yaml.
    folder.run("helm").ok();
    folder.check_unchanged("helm");

    folder.replace("config/manager/manager.yaml", "memory: 128Mi", "memory: 256Mi");
    folder.replace(
        "config/manager/manager.yaml",
        "      serviceAccountName:",
        "      hostAliases: []\n      serviceAccountName:",
    );
    folder.run("helm").ok();
    let tree = folder.tree();
    for expected in [
        "memory: 256Mi",
        "repository: registry.example.com/shop",
        "ours: 1",
    ] {
        assert!(tree[VALUES].contains(expected), "{}", tree[VALUES]);
    }
    for expected in ["hostNetwork: true", "hostAliases: []"] {
        assert!(tree[MANAGER].contains(expected), "{}", tree[MANAGER]);
    }
    assert_eq!(tree["charts/shop/templates/ours.yaml"], "# Ours.\n");
    folder.check_unchanged("helm");
}

#[test]
fn changes_to_the_same_lines_are_conflicts() {
    let folder = project();
    folder.replace(VALUES, "memory: 128Mi", "memory: 512Mi");
    folder.replace("config/manager/manager.yaml", "memory: 128Mi", "memory: 256Mi");
    let before = folder.tree();
    let ran = folder.run("helm --no-conflicts");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the chart has conflicts"), "{}", ran.err);
    assert_eq!(folder.tree(), before);

    let ran = folder.run("helm");
    assert_eq!(ran.code, 1);
    let values = &folder.tree()[VALUES];
    let conflict = "<<<<<<< this project\n    memory: 512Mi\n||||||| rbuilder helm, before\n    memory: 128Mi\n=======\n    memory: \
                    256Mi\n>>>>>>> rbuilder helm\n";
    assert!(values.contains(conflict), "{values}");
    let ran = folder.run("helm");
    assert!(ran.err.contains("unresolved") && ran.code == 1, "{}", ran.err);
    folder.write(VALUES, &values.replace(conflict, "    memory: 512Mi\n"));
    // Update the table in the README, which follows values.yaml.
    folder.run("helm").ok();
    folder.check_unchanged("helm");
}

#[test]
fn deleted_template_stays_deleted() {
    let folder = project();
    folder.remove(ROLE);
    folder.check_unchanged("helm");
    folder
        .run("create api --group cache --version v1 --kind Pot")
        .ok();
    let ran = folder.run("helm").ok();
    assert!(ran.err.contains(&format!("{ROLE} was deleted")), "{}", ran.err);
    assert!(!folder.tree().contains_key(ROLE));
    folder.check_unchanged("helm");
}

#[test]
fn edited_template_survives_its_manifest() {
    let folder = project();
    folder
        .run("create api --group cache --version v1 --kind Pot")
        .ok();
    folder.run("helm").ok();
    let path = "charts/shop/templates/rbac/pot_viewer_role.yaml";
    folder.replace(path, "- get", "- get\n  # Ours.");
    folder
        .run("delete api --group cache --version v1 --kind Pot")
        .ok();
    let ran = folder.run("helm").ok();
    assert!(
        ran.err
            .contains(&format!("{path} is no longer part of the chart")),
        "{}",
        ran.err
    );
    assert!(folder.tree()[path].contains("# Ours."));
}

#[test]
fn foreign_chart_is_not_overwritten() {
    let folder = Folder::new();
    folder.run(COMMANDS[0]).ok();
    folder.write(VALUES, "ours: 1\n");
    let ran = folder.run("helm");
    assert!(ran.code == 1 && ran.err.contains(VALUES), "{}", ran.err);
    assert_eq!(folder.tree()[VALUES], "ours: 1\n");
    folder.run("helm --force").ok();
    folder.check_unchanged("helm");
}

#[test]
fn roles_in_other_namespaces_keep_their_namespace() {
    let folder = project();
    let marker = "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get\", namespace = \"infra\")]\npub async fn reconcile";
    folder.replace("src/controller/cup.rs", "pub async fn reconcile", marker);
    let ran = folder.run("helm").ok();
    assert!(!ran.err.contains("transformers"), "{}", ran.err);
    let tree = folder.tree();
    let binding = &tree["charts/shop/templates/rbac/namespace_role_bindings.yaml"];
    for expected in [
        "  name: {{ include \"shop.fullname\" . }}-manager-role-infra-binding\n  namespace: infra\n",
        "  kind: Role\n  name: {{ include \"shop.fullname\" . }}-manager-role-infra\n",
        "  name: {{ include \"shop.serviceAccountName\" . }}\n  namespace: {{ .Release.Namespace",
    ] {
        assert!(binding.contains(expected), "{expected}\n{binding}");
    }
    assert!(tree[ROLE].contains("  namespace: infra\n"), "{}", tree[ROLE]);
    folder.check_unchanged("helm");
}

#[test]
fn warns_of_unsupported_kustomize_features() {
    let kustomization = "config/default/kustomization.yaml";
    for (added, expected) in [
        (
            "images:\n- name: controller\n  newTag: v1\n",
            "`images` in config/default/kustomization.yaml is not part",
        ),
        (
            "patches:\n- target:\n    kind: Deployment\n  patch: '[{op: move, from: /spec/a, path: /spec/b}]'\n",
            "a patch in config/default/kustomization.yaml",
        ),
    ] {
        let folder = Folder::new();
        folder.run(COMMANDS[0]).ok();
        let text = folder.tree()[kustomization].clone();
        folder.write(kustomization, &format!("{text}{added}"));
        let ran = folder.run("helm").ok();
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn patch_of_the_manager_changes_the_defaults() {
    let folder = Folder::new();
    folder.run(COMMANDS[0]).ok();
    let kustomization = "config/default/kustomization.yaml";
    let text = folder.tree()[kustomization].clone();
    let patch = "patches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: controller-manager\n    \
                 spec:\n      replicas: 3\n      template:\n        spec:\n          containers:\n          - name: manager\n            env:\n            \
                 - name: COLOR\n              value: red\n";
    folder.write(kustomization, &format!("{text}{patch}"));
    let ran = folder.run("helm").ok();
    assert!(!ran.err.contains("patch"), "{}", ran.err);
    let values = &folder.tree()[VALUES];
    for expected in ["\nreplicas: 3\n", "\nenv:\n- name: COLOR\n  value: red\n"] {
        assert!(values.contains(expected), "{values}");
    }
}

/// `$patch: replace` drops the other items and is not part of the result, as in kustomize.
#[test]
fn patch_can_replace_a_list() {
    let folder = project();
    let patch = "patches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: controller-manager\n    \
                 spec:\n      template:\n        spec:\n          containers:\n          - name: manager\n            ports:\n            \
                 - $patch: replace\n            - containerPort: 9090\n              name: extra\n";
    let kustomization = "config/default/kustomization.yaml";
    let text = folder.tree()[kustomization].clone();
    folder.write(kustomization, &format!("{text}{patch}"));
    folder.run("helm").ok();
    let manager = &folder.tree()["charts/shop/templates/manager/manager.yaml"];
    // Those of features stay, because values turn them on.
    let expected = "        ports:\n        - containerPort: 9090\n          name: extra\n        {{- if .Values.metrics.enabled }}\n";
    assert!(manager.contains(expected), "{manager}");
    assert!(!manager.contains("$patch"), "{manager}");
}

#[test]
fn unreadable_manifests_are_reported() {
    for (path, text, expected) in [
        (
            "config/manager/manager.yaml",
            "a: [",
            "cannot parse config/manager/manager.yaml",
        ),
        (
            "config/manager/manager.yaml",
            "a: 1\n",
            "expected objects with `kind`",
        ),
        (
            "config/manager/kustomization.yaml",
            "resources: []\n",
            "found no Deployment in config/",
        ),
        (
            "config/rbac/kustomization.yaml",
            "resources:\n- gone.yaml\n",
            "config/rbac/gone.yaml does not exist",
        ),
        (
            "config/manager/kustomization.yaml",
            "resources:\n- ../manager\n- ../rbac\n",
            "found no Deployment",
        ),
        (
            ".rbuilder/chart.txt",
            "a\n x\n<<<<<<< HEAD\n",
            ".rbuilder/chart.txt:3 has a Git merge conflict",
        ),
        (
            ".rbuilder/chart.txt",
            "../../x\n y\n",
            "is not a path within the project",
        ),
    ] {
        let folder = Folder::new();
        folder.run(COMMANDS[0]).ok();
        folder.write(path, text);
        let before = folder.tree();
        let ran = folder.run("helm --manifests=false");
        assert!(ran.code == 1 && ran.err.contains(expected), "{path}: {}", ran.err);
        assert_eq!(folder.tree(), before);
    }
}

/// The table shows the defaults from values.yaml, because the user may have edited them.
#[test]
fn table_shows_the_defaults_in_values() {
    let folder = project();
    folder.replace(
        VALUES,
        "repository: controller",
        "repository: ghcr.io/shop/operator",
    );
    folder.replace(VALUES, "replicas: 1", "replicas: 2");
    assert_eq!(folder.run("helm --check").code, 1);
    let ran = folder.run("helm").ok();
    // Since values.yaml has an image now, the next steps don't ask for one.
    assert!(
        ran.err
            .contains("Next: review the changes of charts/shop, then run:\n  helm lint"),
        "{}",
        ran.err
    );
    let readme = folder.tree()["charts/shop/README.md"].clone();
    for row in [
        "| `image.repository` | Image of the manager, without tag. | `\"ghcr.io/shop/operator\"` |",
        "all replicas serve webhooks. | `2` |",
    ] {
        assert!(readme.contains(row), "{readme}");
    }
    folder.check_unchanged("helm");
    // If there is no values.yaml, the table shows rbuilder's defaults.
    folder.remove(VALUES);
    folder.run("helm").ok();
    let readme = folder.tree()["charts/shop/README.md"].clone();
    assert!(
        readme.contains("all replicas serve webhooks. | `1` |"),
        "{readme}"
    );
}

/// Helm rejects such files as well, but its messages help less.
#[test]
fn unparsable_chart_files_are_errors() {
    for (path, from, to, said) in [
        (
            VALUES,
            "replicas: 1",
            "replicas: [",
            "error: cannot parse charts/shop/values.yaml:",
        ),
        (
            "charts/shop/Chart.yaml",
            "type: application",
            "type: {",
            "error: cannot parse charts/shop/Chart.yaml:",
        ),
        (
            "charts/shop/values.schema.json",
            "\"$schema\":",
            "$schema:",
            "error: cannot parse charts/shop/values.schema.json:2:3: key must be a string\n",
        ),
    ] {
        let folder = project();
        folder.replace(path, from, to);
        let before = folder.tree();
        for line in ["helm", "helm --check"] {
            let ran = folder.run(line);
            assert_eq!(ran.code, 1, "{path}");
            assert!(ran.err.contains(said), "{}", ran.err);
        }
        assert_eq!(folder.tree(), before);
    }
}
