//! `rbuilder adopt`: the report about the kinds of a repository, and what `manifests` does
//! afterwards.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use serde_json::Value;
use support::Folder;

fn kind(kind: &str, group: &str, field: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, schemars::JsonSchema)]\n\
         #[kube(group = \"{group}\", version = \"v1\", kind = \"{kind}\", namespaced)]\n\
         pub struct {kind}Spec {{\n    {field},\n}}\n"
    )
}

/// Each kind is in its own module.
fn package(kinds: &[(&str, &str)], files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n",
    );
    let mut lib = String::new();
    for (name, field) in kinds {
        let module = name.to_lowercase();
        lib.push_str(&format!("mod {module};\n"));
        folder.write(&format!("src/{module}.rs"), &kind(name, "x.io", field));
    }
    folder.write("src/lib.rs", &lib);
    files.iter().for_each(|(path, text)| folder.write(path, text));
    folder
}

/// `properties` are those of the spec.
fn crd(kind: &str, properties: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {plural}.x.io\nspec:\n  \
         group: x.io\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}, singular: {}}}\n  versions:\n  - \
         name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         required: [spec]\n        properties:\n          spec:\n            type: object\n            required: [size]\n            \
         properties: {properties}\n",
        kind.to_lowercase()
    )
}

const SIZE: &str = "{size: {type: integer, format: int32}}";

/// Also checks that a second run changes nothing.
#[track_caller]
fn check(folder: &Folder, said: &[&str]) {
    let before = folder.tree();
    let shown = folder.run("adopt --dry-run").ok();
    assert_eq!(folder.tree(), before);
    let ran = folder.run("adopt").ok();
    for part in said {
        assert!(
            ran.out.contains(part),
            "{part:?} is missing in\n{}{}",
            ran.out,
            ran.err
        );
        assert!(shown.out.contains(part), "{part:?} is missing in\n{}", shown.out);
    }
    let after = folder.tree();
    folder.run("adopt").ok();
    assert_eq!(folder.tree(), after, "the second run");
}

#[test]
fn crds_are_updated_in_place() {
    let folder = package(
        &[
            ("Cup", "pub size: i32"),
            ("Pot", "pub size: u8"),
            ("Can", "pub size: i32"),
            ("Jar", "pub size: i32"),
        ],
        &[
            ("charts/cafe/crds/cups.yaml", &crd("Cup", SIZE)),
            ("charts/cafe/crds/pots.yaml", &crd("Pot", SIZE)),
            (
                "deploy/can-definition.yaml",
                &crd("Can", "{size: {type: integer}, old: {type: string}}"),
            ),
        ],
    );
    check(
        &folder,
        &[
            "Cup  x.io/v1  same      charts/cafe/crds/cups.yaml\n",
            "Pot  x.io/v1  narrower  charts/cafe/crds/pots.yaml\n    `spec.size`: maximum 255\n",
            "Can  x.io/v1  narrower  deploy/can-definition.yaml\n    `spec.old`: removed",
            "Jar  x.io/v1  readable  no CRD is committed\n",
            "4 kinds, 4 readable",
        ],
    );
    let manifest = folder.tree()["Cargo.toml"].clone();
    let own = "[package.metadata.rbuilder]\ncrd-dir = \"charts/cafe/crds\"\ncrd-file = \"{plural}.yaml\"\ncrd-files = { \"cans.x.io\" = \"deploy/can-definition.yaml\" }\n";
    assert!(manifest.contains(own), "{manifest}");
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert!(tree["charts/cafe/crds/pots.yaml"].contains("maximum: 255"));
    assert!(tree["charts/cafe/crds/jars.yaml"].contains("kind: Jar"));
    assert!(!tree["deploy/can-definition.yaml"].contains("old"));
    assert!(
        !tree.keys().any(|path| path.starts_with("config/")),
        "{:?}",
        tree.keys()
    );
    folder.run("manifests --check").ok();
    // The flag wins over the settings.
    folder.run("manifests --crd-dir elsewhere").ok();
    assert!(folder.tree().contains_key("elsewhere/x.io_cans.yaml"));
}

/// A plain copy in the documentation wins over a chart template, but a copy for tests doesn't.
#[test]
fn documentation_copy_precedes_template() {
    let template = |kind: &str| format!("{{{{- if .Values.crds }}}}\n{}{{{{- end }}}}\n", crd(kind, SIZE));
    let kinds = [("Cup", "pub size: i32"), ("Pot", "pub size: i32")];
    let folder = package(
        &kinds,
        &[
            ("charts/cafe/templates/cup.yaml", &template("Cup")),
            ("charts/cafe/templates/pot.yaml", &template("Pot")),
            ("docs/crds/cup.yaml", &crd("Cup", SIZE)),
            ("tests/crds/pot.yaml", &crd("Pot", SIZE)),
        ],
    );
    check(
        &folder,
        &[
            "Cup  x.io/v1  same  docs/crds/cup.yaml\n    also in charts/cafe/templates/cup.yaml, which is not written\n",
            "Pot  x.io/v1  same  charts/cafe/templates/pot.yaml\n    compared without template expressions\n    also in tests/crds/pot.yaml, which is not written\n",
        ],
    );
    let manifest = folder.tree()["Cargo.toml"].clone();
    let files = "crd-dir = \"docs/crds\"\n\n[package.metadata.rbuilder.crd-files]\n\"cups.x.io\" = \"docs/crds/cup.yaml\"\n\"pots.x.io\" = \"charts/cafe/templates/pot.yaml\"\n";
    assert!(manifest.contains(files), "{manifest}");
    let again = folder.run("adopt").ok().out;
    assert!(again.contains("2 kinds, 2 readable\n"), "{again}");
    assert_eq!(folder.run("manifests --check").code, 1);
}

/// `--check` should warn if all kinds are skipped, because it compared nothing then.
#[test]
fn check_warns_if_all_kinds_are_skipped() {
    let template = crd("Cup", SIZE).replace("scope: Namespaced", "scope: {{ .Values.scope }}");
    let folder = package(
        &[("Cup", "pub size: i32")],
        &[("charts/cafe/templates/cup.yaml", &template)],
    );
    folder.run("adopt").ok();
    assert_eq!(folder.run("manifests --check").code, 1);
    for line in [
        "manifests --check --allow-empty",
        "manifests",
        "manifests --stdout",
    ] {
        let ran = folder.run(line).ok();
        for part in [
            "warning[RB1006]: no manifests are generated or compared: all kinds are excluded (`Cup`: `skip` in Cargo.toml lists it)",
            "remove a kind from `skip`",
        ] {
            assert!(ran.err.contains(part), "{line}: {}", ran.err);
        }
    }
    assert_eq!(folder.run("manifests --check --kind Cup").code, 1);
}

fn list(crd: &str) -> String {
    let item = crd.trim_end().replace('\n', "\n  ");
    format!("kind: List\nitems:\n- {item}\n")
}

#[test]
fn irreplaceable_crd_is_not_written_elsewhere() {
    let template = crd("Can", SIZE).replace("scope: Namespaced", "scope: {{ .Values.scope }}");
    let folder = package(
        &[
            ("Cup", "pub size: i32"),
            ("Pot", "pub size: i32"),
            ("Can", "pub size: i32"),
        ],
        &[
            ("crds/cups.yaml", &crd("Cup", SIZE)),
            ("deploy/all.yaml", &list(&crd("Pot", SIZE))),
            ("charts/cafe/templates/crd.yaml", &template),
        ],
    );
    check(
        &folder,
        &[
            "it is in a list (deploy/all.yaml)",
            "its `spec` contains template expressions",
        ],
    );
    let before = folder.tree();
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    let after = folder.tree();
    let changed: Vec<&String> = after
        .keys()
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert_eq!(changed, ["crds/cups.yaml"]);
}

#[test]
fn kinds_that_cannot_be_read_are_skipped_with_the_reason() {
    let folder = package(
        &[("Cup", "pub size: i32"), ("Pot", "pub size: (u8, u8)")],
        &[
            ("crds/cups.yaml", &crd("Cup", SIZE)),
            ("crds/pots.yaml", &crd("Pot", SIZE)),
        ],
    );
    check(
        &folder,
        &[
            "unreadable",
            "src/pot.rs:4:15: a tuple has no structural schema",
            "  help: use a struct",
        ],
    );
    let manifest = folder.tree()["Cargo.toml"].clone();
    assert!(manifest.contains("    # src/pot.rs:4:15: a tuple"), "{manifest}");
    assert!(!manifest.contains("keep-going"), "{manifest}");
    let pots = folder.tree()["crds/pots.yaml"].clone();
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    assert_eq!(folder.tree()["crds/pots.yaml"], pots);
}

#[test]
fn newly_readable_kinds_are_unskipped() {
    let folder = package(
        &[
            ("Cup", "pub size: i32"),
            ("Pot", "pub size: (u8, u8)"),
            ("Can", "pub size: i32"),
        ],
        &[
            ("crds/cups.yaml", &crd("Cup", SIZE)),
            ("crds/pots.yaml", &crd("Pot", SIZE)),
        ],
    );
    let manifest = folder.tree()["Cargo.toml"].clone();
    let skip = "\n[package.metadata.rbuilder]\nskip = [\n    # Anna's\n    \"Can\",\n]\n";
    folder.write("Cargo.toml", &format!("{manifest}{skip}"));
    check(
        &folder,
        &[
            "Can  x.io/v1  skipped",
            "    the kind is readable: to write its CRD, remove it from `skip`\n",
        ],
    );
    assert!(folder.tree()["Cargo.toml"].contains("\"Pot.x.io\""));
    // A kind stays skipped as long as it is unreadable.
    check(
        &folder,
        &["Pot  x.io/v1  skipped  crds/pots.yaml\n    `skip` in Cargo.toml lists it\n"],
    );
    folder.write("src/pot.rs", &kind("Pot", "x.io", "pub size: i32"));
    let shown = folder.run("adopt --dry-run").ok();
    assert!(shown.out.contains("    now readable: "), "{}", shown.out);
    assert!(folder.tree()["Cargo.toml"].contains("\"Pot.x.io\""));
    let ran = folder.run("adopt").ok();
    assert!(ran.out.contains("Pot  x.io/v1  same"), "{}", ran.out);
    assert!(ran.out.contains("    now readable: "), "{}", ran.out);
    let adopted = folder.tree();
    let manifest = &adopted["Cargo.toml"];
    assert!(
        manifest.contains("skip = [\n    # Anna's\n    \"Can\",\n]\n"),
        "{manifest}"
    );
    assert!(!manifest.contains("Pot"), "{manifest}");
    let again = folder.run("adopt").ok();
    assert!(!again.out.contains("now readable"), "{}", again.out);
    assert_eq!(folder.tree(), adopted, "the second run");
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    assert!(folder.tree()["crds/pots.yaml"].contains("rbuilder.dev/version"));
}

#[test]
fn kind_in_a_list_stays_skipped() {
    let folder = package(
        &[("Cup", "pub size: i32"), ("Pot", "pub size: (u8, u8)")],
        &[
            ("crds/cups.yaml", &crd("Cup", SIZE)),
            ("deploy/all.yaml", &list(&crd("Pot", SIZE))),
        ],
    );
    folder.run("adopt").ok();
    folder.write("src/pot.rs", &kind("Pot", "x.io", "pub size: i32"));
    folder.run("adopt").ok();
    let manifest = folder.tree()["Cargo.toml"].clone();
    assert!(
        manifest.contains("    # it is in a list (deploy/all.yaml)"),
        "{manifest}"
    );
    check(&folder, &["Pot  x.io/v1  skipped"]);
    assert_eq!(folder.tree()["Cargo.toml"], manifest);
}

#[test]
fn errors_outside_of_kinds_keep_going() {
    let folder = package(&[("Cup", "pub size: i32")], &[]);
    let hidden = kind("Pot", "x.io", "pub size: i32");
    let lib = format!("mod cup;\nhidden! {{\n{hidden}}}\n");
    folder.write("src/lib.rs", &lib);
    check(
        &folder,
        &["errors that belong to no kind:\n    src/lib.rs:3:16: this kind is inside a macro"],
    );
    assert!(folder.tree()["Cargo.toml"].contains("keep-going = true"));
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 1);
    assert!(folder.tree().contains_key("config/crd/bases/x.io_cups.yaml"));
}

#[test]
fn kinds_of_other_projects_are_not_written() {
    let folder = package(
        &[("Cup", "pub size: i32")],
        &[("crds/cups.yaml", &crd("Cup", SIZE))],
    );
    let lib = format!("mod cup;\n{}", kind("Cloud", "iam.example.com", "pub a: i32"));
    folder.write("src/lib.rs", &lib);
    check(&folder, &["no CRD of the group `iam.example.com` is committed"]);
    folder.run("manifests").ok();
    assert!(!folder.tree().keys().any(|path| path.contains("cloud")));
}

#[test]
fn workspace_settings_are_in_the_workspace_table() {
    let folder = Folder::new();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"api\"]\n");
    folder.write(
        "api/Cargo.toml",
        "[package]\nname = \"api\"\nedition = \"2024\"\n",
    );
    let lib = format!(
        "{}{}",
        kind("Cup", "x.io", "pub size: i32"),
        kind("Pot", "x.io", "pub a: (i32, i32)")
    );
    folder.write("api/src/lib.rs", &lib);
    folder.write("crds/cups.yaml", &crd("Cup", SIZE));
    check(&folder, &["2 kinds, 1 readable"]);
    let tree = folder.tree();
    assert!(tree["Cargo.toml"].contains("[workspace.metadata.rbuilder]\ncrd-dir = \"crds\"\n"));
    assert!(tree["api/Cargo.toml"].contains("\"Pot.x.io\","));
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    assert!(folder.tree()["crds/cups.yaml"].contains("rbuilder.dev/version"));
}

#[test]
fn json_output_contains_the_table() {
    let folder = package(&[("Cup", "pub size: u8")], &[("crd.yaml", &crd("Cup", SIZE))]);
    let ran = folder.run("adopt --dry-run --output json").ok();
    let table: Value = serde_json::from_str(&ran.out).expect("JSON");
    let cup = &table["kinds"][0];
    assert_eq!(cup["verdict"], "narrower");
    assert_eq!(cup["committed"][0]["path"], "crd.yaml");
    assert!(
        cup["differences"][0]
            .as_str()
            .expect("words")
            .contains("maximum 255")
    );
}

const SCAFFOLD: &str = "domain: x.io\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: cafe\nversion: \"3\"\n";

#[test]
fn scaffolded_projects_cannot_be_adopted() {
    let folder = package(&[("Cup", "pub size: i32")], &[("PROJECT", SCAFFOLD)]);
    let ran = folder.run("adopt");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("PROJECT"), "{}", ran.err);
}

#[test]
fn settings_do_not_lead_out_of_the_project() {
    for line in [
        "crd-dir = \"../out\"",
        "crd-files = { \"cups.x.io\" = \"/tmp/a.yaml\" }",
    ] {
        let folder = package(&[("Cup", "pub size: i32")], &[]);
        let text = folder.tree()["Cargo.toml"].clone();
        folder.write(
            "Cargo.toml",
            &format!("{text}\n[package.metadata.rbuilder]\n{line}\n"),
        );
        let ran = folder.run("manifests");
        assert_eq!(ran.code, 1, "{line}");
        assert!(ran.err.contains("within the project"), "{}", ran.err);
    }
}

#[test]
fn reports_crd_changes_at_run_time() {
    let folder = package(
        &[("Cup", "pub size: i32"), ("Pot", "pub size: i32")],
        &[
            ("crds/cups.yaml", &crd("Cup", SIZE)),
            ("crds/pots.yaml", &crd("Pot", SIZE)),
        ],
    );
    folder.write(
        "src/main.rs",
        "mod cup;\nuse kube::CustomResourceExt;\nfn main() {\n    let mut crd = cup::Cup::crd();\n    crd.spec.scope = scope();\n}\n",
    );
    let change = "src/main.rs:5:5: the program changes the CRD of `Cup` here; the generated CRD does not have this change";
    check(
        &folder,
        &[&format!(
            "Cup  x.io/v1  same  crds/cups.yaml\n    {change}\nPot  "
        )],
    );
    let shown = folder.run("adopt --dry-run --output json").ok();
    let json: Value = serde_json::from_str(&shown.out).expect("JSON");
    let kinds = &json["kinds"];
    assert_eq!(
        kinds[0]["programChanges"],
        serde_json::json!([change]),
        "{json:#}"
    );
    assert_eq!(kinds[1]["programChanges"], serde_json::json!([]), "{json:#}");
    let warned = folder.run("manifests --dry-run").ok();
    assert!(
        warned.err.contains("the program changes the CRD of `Cup` here"),
        "{}",
        warned.err
    );
}

/// The PROJECT file of a Go operator next to the package is ignored, so the role is kept.
#[test]
fn project_of_another_tool_is_ignored() {
    let current = "domain: coreos.com\nlayout:\n- go.kubebuilder.io/v4\nprojectName: cafe\nresources:\n- api:\n    crdVersion: v1\n  \
                   domain: coreos.com\n  group: monitoring\n  kind: PodMonitor\n  version: v1\nversion: \"3\"\n";
    let older = "domain: coreos.com\nrepo: example.com/cafe\nresources:\n- group: monitoring\n  kind: PodMonitor\n  version: v1\n\
                 version: 3-alpha\n";
    for (project, layout) in [
        (current, "unsupported layout `go.kubebuilder.io/v4`"),
        (older, "unsupported format"),
    ] {
        check_project_of_another_tool(project, layout);
    }
}

fn check_project_of_another_tool(project: &str, layout: &str) {
    let role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: manager-role\nrules:\n\
                - apiGroups:\n  - apps\n  resources:\n  - deployments\n  verbs:\n  - get\n";
    let folder = package(
        &[("Cup", "size: i32")],
        &[
            ("PROJECT", project),
            ("config/rbac/role.yaml", role),
            (
                "src/monitor.rs",
                &kind("PodMonitor", "monitoring.coreos.com", "size: i32"),
            ),
            ("src/lib.rs", "mod cup; mod monitor;"),
        ],
    );
    let said = folder.run("adopt --dry-run").ok().out;
    assert!(said.contains("belongs to Prometheus Operator"), "{said}");
    let ran = folder.run("manifests").ok();
    assert!(!ran.err.contains("PROJECT"), "{}", ran.err);
    let tree = folder.tree();
    assert_eq!(tree["config/rbac/role.yaml"], role);
    let crds: Vec<_> = tree.keys().filter(|path| path.contains("/crd/")).collect();
    assert_eq!(crds, ["config/crd/bases/x.io_cups.yaml"]);
    folder.run("manifests --check").ok();
    folder.run("docs").ok();
    // One broken kind doesn't hold back the others, as in every package without a scaffold.
    folder.write("src/monitor.rs", &kind("Pot", "x.io", "size: Unknown"));
    folder.replace("src/cup.rs", "size: i32", "size: i64");
    assert_eq!(folder.run("manifests").code, 1);
    assert!(folder.tree()["config/crd/bases/x.io_cups.yaml"].contains("int64"));
    // Other commands say what works beside the file.
    let before = folder.tree();
    for command in [
        "init --domain x.io",
        "init --in-package --domain x.io",
        "create api --group x --version v1 --kind Can",
        "update",
        "doctor",
    ] {
        let refused = folder.run(command);
        let said = format!("{}{}", refused.out, refused.err);
        for part in [
            layout,
            "`rbuilder adopt` and `rbuilder manifests`, which need no PROJECT",
        ] {
            assert!(said.contains(part), "{command}: {part:?} is missing in\n{said}");
        }
        assert!(!said.contains("correct PROJECT"), "{said}");
        assert_eq!((refused.code, folder.tree()), (1, before.clone()), "{command}");
    }
}

/// Some Rust operators have a PROJECT file for operator-sdk next to hand-written roles.
#[test]
fn hand_written_role_is_kept() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: manager-role\nrules:\n\
                - apiGroups:\n  - apps\n  resources:\n  - deployments\n  verbs:\n  - get\n";
    for role in [role.to_owned(), format!("---\n{role}")] {
        let folder = package(
            &[("Cup", "pub size: i32")],
            &[
                ("PROJECT", "domain: x.io\nprojectName: cafe\nversion: \"3\"\n"),
                ("config/rbac/role.yaml", &role),
                ("config/crd/bases/x.io_cups.yaml", &crd("Cup", SIZE)),
            ],
        );
        let said = folder.run("adopt").ok().out;
        assert!(
            said.contains("Cup  x.io/v1  same  config/crd/bases/x.io_cups.yaml\n"),
            "{said}"
        );
        folder.run("manifests").ok();
        assert_eq!(folder.tree()["config/rbac/role.yaml"], role);
    }
}

/// If the plural differs from the source, it's a different CRD, which must not be replaced.
#[test]
fn crd_with_another_plural_is_not_written() {
    let folder = package(
        &[("Ops", "pub size: i32"), ("Cup", "pub size: i32")],
        &[
            ("crds/ops.yaml", &crd("Ops", SIZE).replace("opss", "ops")),
            ("crds/cups.yaml", &crd("Cup", SIZE)),
        ],
    );
    check(
        &folder,
        &[
            "    not written: the plural of the committed CRD is `ops` (crds/ops.yaml): add `plural = \"ops\"` to `#[kube(…)]` and run `rbuilder adopt` again\n",
        ],
    );
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    folder.write(
        "src/ops.rs",
        &kind("Ops", "x.io", "pub size: i32").replace("namespaced", "plural = \"ops\", namespaced"),
    );
    let said = folder.run("adopt").ok().out;
    assert!(said.contains("Ops  x.io/v1  same  crds/ops.yaml\n"), "{said}");
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
}

/// A kind in a group of another project may still belong to the package, namely if its CRD is
/// committed. Cluster API providers have such kinds.
#[test]
fn skipped_kind_with_committed_crd_gets_help() {
    let committed = crd("Cup", SIZE).replace("x.io", "addons.cluster.x-k8s.io");
    let folder = package(&[], &[("config/crds/cups.yaml", &committed)]);
    folder.write("src/lib.rs", &kind("Cup", "addons.cluster.x-k8s.io", "size: i32"));
    let said = folder.run("adopt").ok().out;
    let expected = "list it in Cargo.toml with the others that you write: `only = [\"Cup\", …]`";
    assert!(said.contains(expected), "{said}");
    let manifest = folder.tree()["Cargo.toml"].clone();
    let table = "[package.metadata.rbuilder]\n";
    let manifest = manifest.replace(table, "");
    folder.write("Cargo.toml", &format!("{manifest}\n{table}only = [\"Cup\"]\n"));
    let said = folder.run("adopt").ok().out;
    assert!(said.contains("same"), "{said}");
    folder.run("manifests").ok();
    assert!(folder.tree()["config/crds/cups.yaml"].contains("listKind: CupList"));
}

/// The package has several programs, and the one with the kind needs a feature.
#[test]
fn kinds_behind_a_feature_are_read_with_it() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nedition = \"2024\"\n\n[features]\ndefault = [\"agent\"]\nagent = []\ncontroller = [\"dep:kube\"]\n\n\
         [dependencies]\nkube = { version = \"3\", optional = true }\nschemars = \"1\"\n",
    );
    folder.write("src/lib.rs", "#[cfg(feature = \"controller\")]\nmod cup;\n");
    folder.write("src/cup.rs", &kind("Cup", "x.io", "pub size: i32"));
    folder.write("charts/cafe/crds/cups.yaml", &crd("Cup", SIZE));
    check(
        &folder,
        &[
            "Cup  x.io/v1  same  charts/cafe/crds/cups.yaml\n",
            "without the feature `controller` there are no kinds, so it is added to `features` in Cargo.toml\n",
        ],
    );
    let manifest = folder.tree()["Cargo.toml"].clone();
    assert!(manifest.contains("features = [\"controller\"]\n"), "{manifest}");
    folder.run("manifests").ok();
    folder.run("manifests --check").ok();
    folder.write(
        "Cargo.toml",
        &manifest.replace("[\"controller\"]", "[\"control\"]"),
    );
    let refused = folder.run("manifests");
    assert_eq!(refused.code, 1);
    assert!(
        refused
            .err
            .contains("the package has no feature `control`, which `features` names"),
        "{}",
        refused.err
    );
}

#[test]
fn reports_kinds_in_examples_only() {
    let folder = package(&[], &[("examples/cup.rs", &kind("Cup", "x.io", "size: i32"))]);
    let said = folder.run("adopt").ok().out;
    assert!(said.contains("`rbuilder manifests --example <name>`"), "{said}");
}
