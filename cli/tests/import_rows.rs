//! The result and the reason in each row of `rbuilder import` must be true of the manifests of both
//! projects.

use crate::import::{has_row, import, original};
use crate::support::{Folder, Ran};

const CRD: &str = "config/crd/bases/crew.example.com_cups.yaml";
const WEBHOOKS: &str = "config/webhook/manifests.yaml";
const PROJECT: &str = include_str!("import/PROJECT.yaml");

fn row_of(ran: &Ran, begin: &str) -> String {
    let mut lines = ran.out.lines();
    let line = lines.find(|line| line.starts_with(begin));
    line.unwrap_or_else(|| panic!("no row `{begin}`:\n{}", ran.out))
        .to_owned()
}

fn cluster_role(name: &str, resource: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n- apiGroups: [crew.example.com]\n  resources: [{resource}]\n  verbs: [get, list]\n"
    )
}

fn binding(name: &str, role: &str, account: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\nsubjects:\n- kind: ServiceAccount\n  name: {account}\n  namespace: system\n"
    )
}

fn with_rbac(files: &[(&str, &str)]) -> Folder {
    let original = original();
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let list = format!("resources:\n- role.yaml\n- {}\n", names.join("\n- "));
    original.write("config/rbac/kustomization.yaml", &list);
    for (name, text) in files {
        original.write(&format!("config/rbac/{name}"), text);
    }
    original
}

/// If another account lacks permissions, those of the manager don't make up for it.
#[test]
fn roles_of_other_accounts_have_no_counterpart() {
    for (account, expected) in [("agent", "by hand"), ("kitchen", "better")] {
        let role = cluster_role("cup-counter", "cups");
        let bound = binding("cup-counter-binding", "cup-counter", account);
        let ran = import(&with_rbac(&[("counter.yaml", &role), ("bound.yaml", &bound)]))
            .1
            .ok();
        for row in [
            "ClusterRole cup-counter ",
            "ClusterRoleBinding cup-counter-binding ",
        ] {
            assert!(has_row(&ran, row, expected), "{account}: {}", ran.out);
        }
        assert!(!row_of(&ran, "ClusterRole cup-counter ").contains("viewer"));
    }
}

#[test]
fn objects_with_the_same_name_are_compared() {
    let role = cluster_role("cup-viewer-role", "mugs");
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: kitchen\n  annotations: {eks.amazonaws.com/role-arn: brew}\n";
    let bound = binding("manager-rolebinding", "manager-role", "agent");
    let ran = import(&with_rbac(&[
        ("viewer.yaml", &role),
        ("service_account.yaml", account),
        ("role_binding.yaml", &bound),
    ]))
    .1
    .ok();
    for (row, expected) in [
        (
            "ClusterRole cup-viewer-role ",
            "by hand  missing: get crew.example.com/mugs; list crew.example.com/mugs",
        ),
        ("ServiceAccount kitchen ", "by hand  `metadata.annotations`: "),
        ("ClusterRoleBinding manager-rolebinding ", "by hand  `subjects`: "),
    ] {
        assert!(has_row(&ran, row, expected), "{row}: {}", ran.out);
    }
}

/// In Go, leader election may also use ConfigMaps. The library never does.
#[test]
fn unused_leader_election_permissions_are_not_missing() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: leader-election-role\n  namespace: system\nrules:\n- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [get, list, watch, create, update, patch, delete]\n- apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  verbs: [get, list, watch, create, update, patch, delete]\n- apiGroups: [\"\"]\n  resources: [events]\n  verbs: [create, patch]\n";
    let check = |role: &str, expected: &str| {
        let ran = import(&with_rbac(&[("leader_election_role.yaml", role)])).1.ok();
        let row = "Role leader-election-role ";
        assert!(has_row(&ran, row, expected), "{expected}: {}", ran.out);
    };
    check(role, "better   ");
    check(
        &role.replace("resources: [events]", "resources: [events, secrets]"),
        "by hand  missing: create secrets in kitchen; patch secrets in kitchen",
    );
}

const FAKES: &str = "package fakes\n\nimport appsv1 \"k8s.io/api/apps/v1\"\n\nfunc (r *StatefulSetReconciler) SetupWithManager(mgr ctrl.Manager) error {\n\treturn ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).Complete(r)\n}\n";
const MAIN: &str = "package main\n\nimport (\n\tctrl \"sigs.k8s.io/controller-runtime\"\n\n\t\"example.com/cups/internal/setup\"\n)\n\nfunc main() {\n\tsetup.Run(ctrl.NewManager())\n}\n";

/// A package belongs to a program if `main` imports it, even indirectly.
#[test]
fn reconcilers_in_unlinked_packages_are_not_imported() {
    for (imports, is_controller) in [
        ("\t_ \"example.com/cups/internal/controller\"\n", false),
        ("\t_ \"example.com/cups/internal/fakes\"\n", true),
    ] {
        let original = original();
        original.write("cmd/main.go", MAIN);
        let setup = format!("package setup\n\nimport (\n{imports})\n\nfunc Run() {{}}\n");
        original.write("internal/setup/setup.go", &setup);
        original.write("internal/fakes/statefulset.go", FAKES);
        let (folder, ran) = import(&original);
        let ran = ran.ok();
        let tree = folder.tree();
        let path = "src/controller/stateful_set.rs";
        assert_eq!(
            tree.contains_key(path),
            is_controller,
            "{imports}: {:?}",
            tree.keys()
        );
        let row = "controller at internal/fakes/statefulset.go:6 ";
        let reason = "by hand  no program of the Go project imports its package";
        assert_eq!(has_row(&ran, row, reason), !is_controller, "{}", ran.out);
        // This controller is in PROJECT.
        assert!(tree.contains_key("src/controller/cup.rs"));
        let has_permission = tree["config/rbac/role.yaml"].contains("statefulsets");
        assert_eq!(has_permission, is_controller, "{}", ran.out);
    }
}

/// Sometimes only generated source imports a package, e.g. that of wire.
#[test]
fn imports_in_generated_source_count() {
    let original = original();
    original.write("cmd/main.go", MAIN);
    original.write(
        "internal/setup/wire_gen.go",
        "// Code generated by Wire. DO NOT EDIT.\n\npackage setup\n\nimport \"example.com/cups/internal/fakes\"\n",
    );
    original.write("internal/fakes/statefulset.go", FAKES);
    let (folder, ran) = import(&original);
    ran.ok();
    assert!(folder.tree().contains_key("src/controller/stateful_set.rs"));
}

#[test]
fn webhooks_absent_from_manifests_are_not_created() {
    let original = original();
    let webhooks = original.tree()[WEBHOOKS].clone();
    let (_, validating) = webhooks.split_once("---\n").expect("two configurations");
    original.write(WEBHOOKS, validating);
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    let handler = &folder.tree()["src/webhook/v1/cup.rs"];
    assert!(!handler.contains("mutating"), "{handler}");
    assert!(!ran.out.contains("mcup"), "{}", ran.out);
    let reason = "by hand  PROJECT lists it, and the manifests of the Go project do not have it: if it is served, add it with `rbuilder create webhook --group crew --version v1 --kind Cup --defaulting`";
    assert!(
        has_row(&ran, "mutating webhook of `Cup` in v1 ", reason),
        "{}",
        ran.out
    );
}

fn with_two_versions(webhooks: &str) -> Folder {
    let original = original();
    let crd = original.tree()[CRD].clone();
    let version = &crd[crd.find("  - name: v1\n").expect("a version")..];
    let second =
        version
            .replacen("name: v1\n", "name: v1beta1\n", 1)
            .replacen("storage: true", "storage: false", 1);
    original.write(CRD, &format!("{crd}{second}"));
    original.write(WEBHOOKS, webhooks);
    original
}

#[test]
fn webhook_for_two_versions_is_imported_once() {
    for path in ["/validate-cup", "/validate-crew-example-com-v1-cup", "/judge"] {
        let webhooks = include_str!("import/webhooks.yaml")
            .replace(
                "    - v1\n    operations",
                "    - v1beta1\n    - v1\n    operations",
            )
            .replace("/validate-crew-example-com-v1-cup", path)
            .replace("/mutate-crew-example-com-v1-cup", "/mutate-cup");
        let (folder, ran) = import(&with_two_versions(&webhooks));
        let ran = ran.ok();
        for name in ["mcup", "vcup", "vcupdelete"] {
            let row = row_of(&ran, &format!("webhook {name}.kb.io "));
            assert!(row.trim_end().ends_with("same"), "{path}: {row}");
        }
        let rows = ran
            .out
            .lines()
            .filter(|line| line.starts_with("webhook "))
            .count();
        assert_eq!(rows, 3, "{path}: {}", ran.out);
        let tree = folder.tree();
        let handler = &tree["src/webhook/v1/cup.rs"];
        assert!(handler.contains("versions = \"v1beta1;v1\""), "{handler}");
        assert!(!tree.contains_key("src/webhook/v1beta1/cup.rs"), "{path}");
        assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
    }
}

#[test]
fn each_missing_webhook_has_its_own_reason() {
    let webhooks = include_str!("import/webhooks.yaml");
    for (changed, name, reason) in [
        (
            webhooks.replace("    - cups\n", "    - pots\n"),
            "mcup",
            "no kind that was imported has the resource `pots` of `crew.example.com`",
        ),
        (
            webhooks.replace("- v1\n    operations", "- v9\n    operations"),
            "mcup",
            "the CRD of `Cup` has no version `v9`",
        ),
        (
            webhooks.replacen(
                "path: /validate-crew-example-com-v1-cup\n  failurePolicy: Ignore",
                "path: /count\n  failurePolicy: Ignore",
                1,
            ),
            "vcupdelete",
            "its path `/count` is not `/validate-crew-example-com-v1-cup`, which the handler of `Cup` in `v1` serves",
        ),
    ] {
        let original = original();
        original.write(WEBHOOKS, &changed);
        let ran = import(&original).1.ok();
        let row = row_of(&ran, &format!("webhook {name}.kb.io "));
        assert!(row.contains("by hand") && row.contains(reason), "{row}");
    }
}

/// Don't look for a mutating webhook in a validating configuration.
#[test]
fn webhooks_are_compared_within_their_configuration() {
    let original = original();
    let webhooks = include_str!("import/webhooks.yaml");
    let (mutating, validating) = webhooks.split_once("---\n").expect("two configurations");
    let renamed = validating.replace("vcupdelete", "mcup");
    original.write(WEBHOOKS, &format!("{mutating}---\n{renamed}"));
    let ran = import(&original).1.ok();
    let rows: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.starts_with("webhook mcup.kb.io "))
        .collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(
        rows.iter().all(|row| row.trim_end().ends_with("same")),
        "{rows:?}"
    );
}

/// The group of the second kind is in another domain.
fn with_second_domain() -> Folder {
    let original = original();
    let other = |text: &str| {
        text.replace("crew.example.com", "bar.other.org")
            .replace("Cup", "Mug")
            .replace("cups", "mugs")
    };
    original.write(
        "config/crd/bases/bar.other.org_mugs.yaml",
        &other(include_str!("import/crd.yaml")),
    );
    let controller = other(include_str!("import/cup_controller.go.txt"));
    let controller = controller.replace("example.com/mugs/api/v1", "example.com/cups/api/bar/v1");
    original.write("internal/controller/mug_controller.go", &controller);
    original
}

#[test]
fn kinds_of_several_domains_are_imported() {
    let listed = PROJECT.replace(
        "version: \"3\"",
        "- api:\n    crdVersion: v1\n    namespaced: true\n  controller: true\n  domain: other.org\n  group: bar\n  kind: Mug\n  path: example.com/cups/api/bar/v1\n  version: v1\nversion: \"3\"",
    );
    let marker = "// +groupName=bar.other.org\npackage v1\n";
    for (project, source) in [(listed.as_str(), "package v1\n"), (PROJECT, marker)] {
        let original = with_second_domain();
        original.write("PROJECT", project);
        original.write("api/bar/v1/groupversion_info.go", source);
        let (folder, ran) = import(&original);
        let ran = ran.ok();
        for row in ["CRD cups.crew.example.com ", "CRD mugs.bar.other.org "] {
            assert!(has_row(&ran, row, "same"), "{}", ran.out);
        }
        assert!(!ran.out.contains("kind `Mug`"), "{}", ran.out);
        assert!(folder.tree().contains_key("src/controller/bar/mug.rs"));
        assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
    }
}

/// If a project only installs a CRD, e.g. for its tests, it belongs to another project.
#[test]
fn undeclared_group_is_left_to_the_user() {
    let ran = import(&with_second_domain()).1.ok();
    assert!(
        ran.out.contains("its group `bar.other.org` is not in the domain"),
        "{}",
        ran.out
    );
}

/// The API server ignores keys that don't apply to the type, so they make no difference.
#[test]
fn keys_of_other_types_are_ignored() {
    let original = original();
    let crd = original.tree()[CRD].clone();
    let idle = "              beans:\n                items:\n                  type: string\n                type: object\n              size:\n                minLength: 3\n";
    original.write(CRD, &crd.replacen("              size:\n", idle, 1));
    let ran = import(&original).1.ok();
    let row = row_of(&ran, "CRD cups.crew.example.com ");
    assert!(
        row.ends_with("better   `spec.beans`: `items` has no effect on an object, and is left out; `spec.size`: `minLength` has no effect on an integer, and is left out"),
        "{row}"
    );
}

#[test]
fn missing_role_is_not_compared() {
    let original = original();
    original.remove("config/rbac/role.yaml");
    let ran = import(&original).1.ok();
    let reason = "by hand  config/rbac/role.yaml of the Go project was not found";
    assert!(
        has_row(&ran, "permissions of the manager ", reason),
        "{}",
        ran.out
    );
}
