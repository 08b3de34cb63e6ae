//! Tests with hand-written roles. `rbuilder adopt` suggests markers for them, and `rbuilder init
//! --in-package` derives a role from them.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use serde_json::Value;
use support::Folder;

const MAIN: &str = "use kube::runtime::Controller;\n\n#[derive(kube::CustomResource, schemars::JsonSchema)]\n#[kube(group = \"shop.example.com\", version = \"v1\", kind = \"Cup\", namespaced)]\npub struct CupSpec {\n    pub size: i32,\n}\n\nfn main() {}\n";

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cafe\nrules:\n- apiGroups: [shop.example.com]\n  resources: [cups, cups/status]\n  verbs: [get, list, watch, patch]\n- apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [get]\n";

const BINDING: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: cafe\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cafe}\nsubjects:\n- {kind: ServiceAccount, name: cafe, namespace: cafe}\n";

const MARKERS: [&str; 2] = [
    "#[rbac(\n    groups = \"shop.example.com\",\n    resources = \"cups;cups/status\",\n    verbs = \"get;list;watch;patch\"\n)]",
    "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get\")]",
];

fn package(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nrbuilder = { package = \"rbuilder-runtime\", version = \"0.1.0\" }\nschemars = \"1\"\n",
    );
    folder.write("src/main.rs", MAIN);
    files.iter().for_each(|(path, text)| folder.write(path, text));
    folder
}

/// Returns the roles for which `adopt` suggests markers.
#[track_caller]
fn offered(folder: &Folder) -> Vec<Value> {
    let ran = folder.run("adopt --dry-run --output json").ok();
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    answer["roles"].as_array().cloned().expect("a list")
}

#[test]
fn equivalent_markers_are_suggested_until_the_source_has_them() {
    let folder = package(&[("deploy/rbac.yaml", &format!("{ROLE}---\n{BINDING}"))]);
    let said = folder.run("adopt").ok().out;
    let expected = format!(
        "\nClusterRole `cafe` in deploy/rbac.yaml: these markers grant the same permissions; write them above the reconcile function, with `use rbuilder::rbac;`\n    {}\n    {}\n",
        MARKERS[0].replace('\n', "\n    "),
        MARKERS[1]
    );
    assert!(said.contains(&expected), "{said}");
    let marked = |markers: &[&str]| {
        format!(
            "use rbuilder::rbac;\n{MAIN}{}\nfn reconcile() {{}}\n",
            markers.join("\n")
        )
    };
    folder.write("src/main.rs", &marked(&MARKERS[..1]));
    let roles = offered(&folder);
    assert_eq!(roles[0]["markers"], serde_json::json!([MARKERS[1]]), "{roles:?}");
    // A role that is generated from the markers isn't hand-written anymore.
    folder.write("src/main.rs", &marked(&MARKERS));
    folder.run("manifests").ok();
    assert_eq!(offered(&folder), [Value::Null; 0]);
}

/// kube-apiserver grants no URL for a wildcard of resources, but URLs for one that ends in `*`.
#[test]
fn markers_of_urls_are_suggested_until_the_source_grants_them() {
    let role = format!("{ROLE}- nonResourceURLs: [/metrics]\n  verbs: [get]\n");
    let folder = package(&[("deploy/rbac.yaml", &format!("{role}---\n{BINDING}"))]);
    let marked = |markers: &str| format!("use rbuilder::rbac;\n{MAIN}{markers}\nfn reconcile() {{}}\n");
    let all = r#"#[rbac(groups = "*", resources = "*", verbs = "*")]"#;
    let own = r#"#[rbac(urls = "/metrics", verbs = "get")]"#;
    folder.write("src/main.rs", &marked(all));
    assert_eq!(offered(&folder)[0]["markers"], serde_json::json!([own]));
    for urls in [own, r#"#[rbac(urls = "/met*", verbs = "get")]"#] {
        folder.write("src/main.rs", &marked(&format!("{all}\n{urls}")));
        assert_eq!(offered(&folder), [Value::Null; 0], "{urls}");
    }
}

/// The calls need other permissions than `ROLE` grants.
const CALLS: &str = "use k8s_openapi::api::core::v1::{ConfigMap, Secret};\nuse kube::{Api, Client};\n\nasync fn read(client: Client) {\n    let cups: Api<Cup> = Api::all(client.clone());\n    cups.list(&p).await;\n    let secrets: Api<Secret> = Api::all(client.clone());\n    secrets.get(\"a\").await;\n    let maps: Api<ConfigMap> = Api::all(client.clone());\n    maps.get(\"a\").await;\n    maps.get(\"b\").await;\n    elsewhere::sweep(client);\n}\n";

#[test]
fn role_is_drafted_from_calls_and_compared_with_the_one_by_hand() {
    let folder = package(&[
        ("deploy/rbac.yaml", &format!("{ROLE}---\n{BINDING}")),
        ("src/main.rs", &format!("{MAIN}{CALLS}")),
    ]);
    folder.replace(
        "Cargo.toml",
        "kube = \"3\"\n",
        "kube = \"3\"\nk8s-openapi = \"0.27\"\n",
    );
    let before = folder.tree();
    let said = folder.run("adopt --role").ok().out;
    let expected = "\
the calls in the source need these permissions; write the markers above the reconcile function, with `use rbuilder::rbac;`
    #[rbac(groups = \"\", resources = \"configmaps\", verbs = [\"get\"])]
        // `get` at src/main.rs:19:10 and 1 more place
    #[rbac(groups = \"\", resources = \"secrets\", verbs = [\"get\"])]
        // `get` at src/main.rs:17:13
    #[rbac(groups = \"shop.example.com\", resources = \"cups\", verbs = [\"list\"])]
        // `list` at src/main.rs:15:10

not followed, so permissions may be missing above:
    src/main.rs:21:16: `sweep` receives a client and is not followed

ClusterRole `cafe` in deploy/rbac.yaml does not grant:
    get: configmaps

ClusterRole `cafe` in deploy/rbac.yaml grants without a call for it:
    patch, watch: cups.shop.example.com
    get, list, patch, watch: cups.shop.example.com/status
";
    assert_eq!(said, expected);
    assert_eq!(folder.tree(), before, "files were written");
    let ran = folder.run("adopt --role --output json").ok();
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let first = &answer["markers"][0];
    assert_eq!(first["resource"], "configmaps");
    assert_eq!(
        first["calls"][1],
        serde_json::json!({ "name": "get", "place": { "path": "src/main.rs", "line": 20, "column": 10 } })
    );
    assert_eq!(answer["notFollowed"][0]["place"]["line"], 21);
    assert_eq!(answer["notGranted"], serde_json::json!({ "configmaps": ["get"] }));
}

/// Markers decide which markers are missing, but not which permissions of a role have a call.
#[test]
fn role_is_compared_with_calls_although_markers_grant_them() {
    let sweeps = "    elsewhere::sweep(client.clone());\n".repeat(3);
    let calls = CALLS.replace("    elsewhere", &format!("{sweeps}    elsewhere"));
    let markers = MARKERS.join("\n");
    let folder = package(&[
        ("deploy/rbac.yaml", &format!("{ROLE}---\n{BINDING}")),
        (
            "src/main.rs",
            &format!("use rbuilder::rbac;\n{MAIN}{calls}{markers}\nfn reconcile() {{}}\n"),
        ),
    ]);
    folder.replace(
        "Cargo.toml",
        "kube = \"3\"\n",
        "kube = \"3\"\nk8s-openapi = \"0.27\"\n",
    );
    let said = folder.run("adopt --role").ok().out;
    let expected = "\
the calls in the source need these permissions; write the markers above the reconcile function, with `use rbuilder::rbac;`
    #[rbac(groups = \"\", resources = \"configmaps\", verbs = [\"get\"])]
        // `get` at src/main.rs:20:10 and 1 more place

4 calls not followed, so permissions may be missing above; `--verbose` lists them

ClusterRole `cafe` in deploy/rbac.yaml does not grant:
    get: configmaps

ClusterRole `cafe` in deploy/rbac.yaml grants without a call for it:
    patch, watch: cups.shop.example.com
    get, list, patch, watch: cups.shop.example.com/status
";
    assert_eq!(said, expected);
    let said = folder.run("adopt --role --verbose").ok().out;
    assert_eq!(
        said.matches("receives a client and is not followed").count(),
        4,
        "{said}"
    );
}

#[test]
fn only_roles_of_the_operator_get_suggestions() {
    let check = |files: &[(&str, String)], expected: &[&str]| {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let found = offered(&package(&files));
        let found: Vec<&str> = found.iter().filter_map(|role| role["name"].as_str()).collect();
        assert_eq!(found, expected, "{files:?}");
    };
    let named = |name: &str| ROLE.replace("name: cafe", &format!("name: {name}"));
    let leases = "kind: Role\nmetadata: {name: lease}\nrules:\n- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}\n";
    let bind_lease = BINDING
        .replace("ClusterRole", "Role")
        .replace("kind: Role, name: cafe", "kind: Role, name: lease");
    check(&[("a.yaml", named("cafe"))], &["cafe"]);
    check(
        &[
            ("a.yaml", named("cup-editor-role")),
            ("b.yaml", named("cafe-viewer")),
        ],
        &[],
    );
    check(
        &[(
            "a.yaml",
            named("users").replace(
                "rules:",
                "  labels: {rbac.authorization.k8s.io/aggregate-to-edit: \"true\"}\nrules:",
            ),
        )],
        &[],
    );
    check(
        &[("a.yaml", named("cafe").replace("shop.example.com", "example.org"))],
        &[],
    );
    check(&[("tests/a.yaml", named("cafe"))], &[]);
    // A bound role counts, and so does any other role that is bound to the same account. A copy
    // doesn't.
    check(
        &[
            (
                "deploy/a.yaml",
                format!("{}---\n{}---\n{BINDING}", named("cafe"), named("other")),
            ),
            ("deploy/b.yaml", format!("{leases}---\n{bind_lease}")),
            ("docs/a.yaml", format!("{}---\n{BINDING}", named("cafe"))),
        ],
        &["cafe", "lease"],
    );
}

#[test]
fn templated_rule_gets_no_marker() {
    let template = "kind: ClusterRole\nmetadata:\n  name: {{ include \"cafe.name\" . }}\nrules:\n- apiGroups: [shop.example.com]\n  resources: [cups]\n  verbs: [get]\n- apiGroups: [\"\"]\n  resources: [secrets]\n  resourceNames: [{{ .Values.secret }}]\n  verbs: [get]\n";
    let folder = package(&[
        ("charts/cafe/Chart.yaml", "name: cafe\n"),
        ("charts/cafe/templates/rbac.yaml", template),
    ]);
    let said = folder.run("adopt --dry-run").ok().out;
    for part in [
        "\nClusterRole in charts/cafe/templates/rbac.yaml: these markers",
        "    #[rbac(groups = \"shop.example.com\", resources = \"cups\", verbs = \"get\")]\n    no marker grants secrets: Helm fills in parts of the rule\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let made = folder.run("init --in-package").ok();
    let warning = "warning: the manager does not have those permissions of ClusterRole in charts/cafe/templates/rbac.yaml that Helm fills in";
    assert!(made.err.contains(warning), "{}", made.err);
    let role = folder.tree()["config/rbac/role.yaml"].clone();
    assert!(role.contains("  - cups\n") && !role.contains("secrets"), "{role}");
}

#[test]
fn project_copies_hand_written_role() {
    let folder = package(&[("deploy/rbac.yaml", &format!("{ROLE}---\n{BINDING}"))]);
    let made = folder.run("init --in-package").ok();
    assert!(!made.err.contains("warning"), "{}", made.err);
    assert!(
        made.err.contains("review its permissions in config/rbac/role.yaml, which are those of ClusterRole `cafe` in deploy/rbac.yaml"),
        "{}",
        made.err
    );
    let role = folder.tree()["config/rbac/role.yaml"].clone();
    let expected = "# Copied from ClusterRole `cafe` in deploy/rbac.yaml.\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: manager-role\nrules:\n- apiGroups:\n  - shop.example.com\n  resources:\n  - cups\n  - cups/status\n";
    assert!(role.contains(expected) && role.contains("secrets"), "{role}");
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    assert_eq!(folder.tree()["config/rbac/role.yaml"], role);
}

#[test]
fn warns_of_manager_without_permissions() {
    let folder = package(&[]);
    let made = folder.run("init --in-package").ok();
    let warning =
        "warning: config/rbac/role.yaml grants nothing: the manager would start without permissions";
    assert!(made.err.contains(warning), "{}", made.err);
    // Rules for one namespace must not become cluster-wide.
    let role = ROLE.replace("ClusterRole", "Role");
    let folder = package(&[("deploy/rbac.yaml", &role)]);
    let made = folder.run("init --in-package").ok();
    let warning = "the manager does not have the permissions of Role `cafe` in deploy/rbac.yaml, which are for one namespace";
    assert!(made.err.contains(warning), "{}", made.err);
    assert!(folder.tree()["config/rbac/role.yaml"].contains("rules: []"));
    let folder = package(&[("deploy/rbac.yaml", &role)]);
    folder.run("init --in-package --namespaced").ok();
    assert!(folder.tree()["config/rbac/role.yaml"].contains("- secrets"));
}

#[test]
fn guesses_domain_and_binary() {
    let folder = package(&[(
        "src/bin/crdgen.rs",
        "use kube::CustomResourceExt;\nfn main() {}\n",
    )]);
    let made = folder.run("init --in-package").ok();
    for note in [
        "The image runs the binary `cafe`; `--bin` chooses another one\n",
        "The domain is example.com, that of your kinds; `--domain` sets another one\n",
    ] {
        assert!(made.err.contains(note), "{}", made.err);
    }
    let tree = folder.tree();
    assert!(
        tree["PROJECT"].contains("domain: example.com\n"),
        "{}",
        tree["PROJECT"]
    );
    assert!(
        tree["Dockerfile"].contains("--bin cafe"),
        "{}",
        tree["Dockerfile"]
    );
    let again = folder.run("init").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    // The flag wins, and without kinds nothing is guessed.
    let folder = package(&[]);
    folder.run("init --in-package --domain example.org").ok();
    assert!(folder.tree()["PROJECT"].contains("domain: example.org\n"));
    let folder = package(&[]);
    folder.write("src/main.rs", "fn main() {}\n");
    let refused = folder.run("init --in-package");
    assert!(refused.err.contains("a domain is required"), "{}", refused.err);
    // If two programs run controllers, the one named like the package is the operator.
    const RUNS: &str = "use kube::runtime::Controller;\nfn main() {}\n";
    let folder = package(&[("src/bin/other.rs", RUNS)]);
    let made = folder.run("init --in-package").ok();
    assert!(
        made.err.contains("The image runs the binary `cafe`"),
        "{}",
        made.err
    );
    let folder = package(&[("src/bin/other.rs", RUNS), ("src/bin/another.rs", RUNS)]);
    folder.remove("src/main.rs");
    let refused = folder.run("init --in-package --domain example.com");
    assert!(
        refused
            .err
            .contains("name the one that the image runs with `--bin`"),
        "{}",
        refused.err
    );
}

#[test]
fn gitignore_belongs_to_the_user() {
    let folder = package(&[(".gitignore", "/target\n"), ("bin/run", "#!/bin/sh\n")]);
    folder.run("init --in-package").ok();
    let expected = "/target\n\n/dist/\n\n# Files of an interrupted rbuilder command; the next command removes them\n.rbuilder-journal\n.*.rbuilder-new\n.*.rbuilder-old\n";
    assert_eq!(folder.tree()[".gitignore"], expected);
    // If the user removes lines, no command adds them again.
    folder.write(".gitignore", "/target\n");
    for line in ["init", "manifests", "update"] {
        let ran = folder.run(line).ok();
        assert!(ran.out.starts_with("unchanged"), "{line}: {}", ran.out);
    }
    assert_eq!(folder.tree()[".gitignore"], "/target\n");
    folder.remove(".gitignore");
    let ran = folder.run("init").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    assert!(!folder.tree().contains_key(".gitignore"));
}
