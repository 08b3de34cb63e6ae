//! `rbuilder manifests` for source that rbuilder did not scaffold: packages, workspaces, path
//! dependencies, and the flags for input and output.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use serde_json::Value;
use support::Folder;

fn package(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{rest}")
}

fn kind(kind: &str, fields: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"{kind}\", namespaced)]\n\
         pub struct {kind}Spec {{\n    {fields}\n}}\n"
    )
}

const RULE: &str =
    "#[rbuilder::rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\npub fn f() {}\n";

/// Has an operator, its API, and a tool with a kind of its own.
fn workspace() -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"operator\", \"libs/*\"]\n",
    );
    folder.write(
        "operator/Cargo.toml",
        &package("operator", "[dependencies]\napi = { path = \"../libs/api\" }\n"),
    );
    folder.write(
        "operator/src/main.rs",
        &format!("{}{RULE}fn main() {{}}\n", kind("Cup", "pub size: api::Size,")),
    );
    folder.write("libs/api/Cargo.toml", &package("api", ""));
    folder.write(
        "libs/api/src/lib.rs",
        "#[derive(rbuilder::CrdSchema)]\npub struct Size {\n    pub cm: u8,\n}\n",
    );
    folder.write("libs/tool/Cargo.toml", &package("tool", ""));
    folder.write("libs/tool/src/lib.rs", &kind("Tool", "pub a: bool,"));
    folder
}

fn made(before: &Folder, after: &Folder) -> Vec<String> {
    let known = before.tree();
    let tree = after.tree();
    tree.into_keys()
        .filter(|path| !known.contains_key(path))
        .collect()
}

#[test]
fn workspace_has_one_manifest_directory() {
    let folder = workspace();
    let before = folder.copy();
    folder.run("manifests").ok();
    assert_eq!(
        made(&before, &folder),
        [
            "config/crd/bases/x.io_cups.yaml",
            "config/crd/bases/x.io_tools.yaml",
            "config/rbac/role.yaml"
        ]
    );
    assert!(folder.tree()["config/crd/bases/x.io_cups.yaml"].contains("maximum: 255"));
    folder.run("manifests --check").ok();
}

#[test]
fn selecting_a_package_keeps_manifests_of_others() {
    let folder = workspace();
    let before = folder.copy();
    folder.run("manifests -p operator").ok();
    let chosen = ["config/crd/bases/x.io_cups.yaml", "config/rbac/role.yaml"];
    assert_eq!(made(&before, &folder), chosen);
    folder.run("manifests --package tool").ok();
    assert_eq!(made(&before, &folder).len(), 3, "the cup stays");
    let ran = folder.run("manifests -p tol");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("the workspace has no package `tol`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("did you mean `tool`?"), "{}", ran.err);
}

#[test]
fn member_uses_paths_relative_to_itself() {
    let folder = workspace();
    let member = folder.inside("operator");
    member.run("manifests").ok();
    let tree = folder.tree();
    assert!(tree.contains_key("operator/config/crd/bases/x.io_cups.yaml"));
    assert!(!tree.keys().any(|path| path.contains("tools.yaml")));
    folder.write(
        "libs/api/src/lib.rs",
        "#[derive(rbuilder::CrdSchema)]\npub struct Size {\n    pub cm: (u8, u8),\n}\n",
    );
    let ran = member.run("manifests");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("--> ../libs/api/src/lib.rs:3:13"), "{}", ran.err);
}

/// The manifests inherit from a workspace two directories up, and the path dependency is a link.
#[cfg(unix)]
#[test]
fn path_dependency_can_be_a_link() {
    let elsewhere = Folder::new();
    elsewhere.write("shared/Cargo.toml", &package("shared", ""));
    elsewhere.write("shared/src/lib.rs", "mod inner;\npub use inner::*;\n");
    elsewhere.write(
        "shared/src/inner.rs",
        "#[derive(rbuilder::CrdSchema)]\npub struct Inner {\n    pub text: String,\n}\n",
    );
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"crates/*\"]\n[workspace.package]\nedition = \"2024\"\n\
         [workspace.dependencies]\nshared = { path = \"vendor/shared\" }\n",
    );
    folder.write(
        "crates/op/Cargo.toml",
        "[package]\nname = \"op\"\nedition.workspace = true\n[dependencies]\nshared.workspace = true\n",
    );
    folder.write("crates/op/src/lib.rs", &kind("Cup", "pub inner: shared::Inner,"));
    std::fs::create_dir(folder.path().join("vendor")).expect("a folder");
    std::os::unix::fs::symlink(
        elsewhere.path().join("shared"),
        folder.path().join("vendor/shared"),
    )
    .expect("a link");
    let ran = folder.inside("crates/op").run("manifests --stdout").ok();
    assert!(ran.out.contains("text:\n"), "{}", ran.out);
}

#[test]
fn flags_set_the_directory_of_each_manifest() {
    let folder = workspace();
    let before = folder.copy();
    folder
        .run("manifests --crd-dir charts/crds --rbac-dir ./deploy/ --output-dir other")
        .ok();
    let files = [
        "charts/crds/x.io_cups.yaml",
        "charts/crds/x.io_tools.yaml",
        "deploy/role.yaml",
    ];
    assert_eq!(made(&before, &folder), files);
    for flag in ["--crd-dir", "--rbac-dir", "--webhook-dir", "--config-dir"] {
        let ran = folder.run(&format!("manifests {flag} ../out"));
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains(flag) && ran.err.contains("--stdout"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn errors_in_excluded_source_are_ignored() {
    let folder = workspace();
    folder.write(
        "operator/src/main.rs",
        &format!("{}{RULE}", kind("Cup", "pub size: other::Unknown,")),
    );
    assert_eq!(folder.run("manifests --only crd").code, 1);
    let before = folder.copy();
    folder.run("manifests --only rbac,webhook").ok();
    assert_eq!(made(&before, &folder), ["config/rbac/role.yaml"]);
    assert_eq!(folder.run("manifests").code, 1);
}

#[test]
fn stale_generated_manifests_are_removed() {
    for flags in ["", "--no-version-annotation"] {
        let folder = workspace();
        folder.write("config/crd/bases/theirs.yaml", "kind: CustomResourceDefinition\n");
        folder.run(&format!("manifests {flags}")).ok();
        let tools = "config/crd/bases/x.io_tools.yaml";
        assert_eq!(
            folder.tree()[tools].contains("rbuilder.dev/version"),
            flags.is_empty(),
            "{flags}"
        );
        folder.run(&format!("manifests --check {flags}")).ok();
        folder.write("libs/tool/src/lib.rs", "");
        folder.run(&format!("manifests {flags} --no-prune")).ok();
        assert!(folder.tree().contains_key(tools), "{flags}");
        // The manifests of packages that were not read must be kept.
        folder.run(&format!("manifests {flags} -p operator")).ok();
        assert!(folder.tree().contains_key(tools), "{flags}");
        folder.run(&format!("manifests {flags}")).ok();
        let tree = folder.tree();
        assert!(!tree.contains_key(tools), "{flags}");
        assert!(tree.contains_key("config/crd/bases/theirs.yaml"), "{flags}");
        assert!(tree.contains_key("config/crd/bases/x.io_cups.yaml"), "{flags}");
    }
}

#[test]
fn example_replaces_other_targets() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        &package(
            "shop",
            "[dev-dependencies]\nkube = \"5\"\n[features]\nextra = []\n",
        ),
    );
    folder.write(
        "src/lib.rs",
        &format!("{}pub type Size = u8;\n", kind("Library", "")),
    );
    folder.write(
        "examples/cup.rs",
        &kind(
            "Cup",
            "pub size: shop::Size, #[cfg(feature = \"extra\")] pub extra: bool,",
        ),
    );
    let shown = |flags: &str| folder.run(&format!("manifests --stdout {flags}")).ok().out;
    assert!(shown("").contains("kind: Library") && !shown("").contains("kind: Cup"));
    let example = shown("--example cup");
    assert!(
        example.contains("kind: Cup") && !example.contains("kind: Library"),
        "{example}"
    );
    assert!(!example.contains("extra:"));
    for flags in ["--features extra", "-F shop/extra", "--all-features"] {
        assert!(
            shown(&format!("--example cup {flags}")).contains("extra:"),
            "{flags}"
        );
    }
    let ran = folder.run("manifests --example mug");
    assert!(ran.err.contains("no package has an example `mug`"), "{}", ran.err);
}

#[test]
fn json_messages_follow_rustc() {
    let folder = workspace();
    folder.write(
        "operator/src/main.rs",
        &kind("Cup", "pub ä: (u8, u8), pub b: other::Unknown,"),
    );
    let ran = folder.run("manifests --message-format json");
    assert_eq!(ran.code, 1);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.len(), 3, "{}", ran.out);
    assert_eq!(
        lines[2]["message"],
        "found 2 errors in the source; these manifests were left as they are: 1 of 2 kinds\n  Cup (x.io): operator/src/main.rs:4:12: a tuple has no \
         structural schema; the items of a list in a CRD have one type (and 1 more error)"
    );
    let message = &lines[0];
    assert_eq!(message["$message_type"], "diagnostic");
    assert_eq!(message["level"], "error");
    assert_eq!(message["children"][0]["level"], "help");
    assert!(
        message["rendered"]
            .as_str()
            .is_some_and(|text| text.contains("--> operator/src/main.rs:4:12"))
    );
    let span = &message["spans"][0];
    assert_eq!(span["file_name"], "operator/src/main.rs");
    assert_eq!([&span["line_start"], &span["line_end"]], [4, 4]);
    assert_eq!([&span["column_start"], &span["column_end"]], [12, 20]);
    let text = &folder.tree()["operator/src/main.rs"];
    let bytes = |key: &str| usize::try_from(span[key].as_u64().expect("a number")).expect("small");
    assert_eq!(&text[bytes("byte_start")..bytes("byte_end")], "(u8, u8)");
    assert_eq!(span["text"][0]["highlight_end"], 20);
    assert_eq!(ran.err, "   create config/crd/bases/x.io_tools.yaml\n");

    let ran = folder.run("manifests --message-format json --stdout");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("kind: Tool") && !ran.out.contains("kind: Cup"),
        "{}",
        ran.out
    );
    let told: Vec<Value> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(told[..2], lines[..2]);
    let left_out = told[2]["message"].as_str().expect("a message");
    assert!(
        left_out.contains("these were left out: 1 of 2 kinds"),
        "{left_out}"
    );
}

#[test]
fn stdout_contains_only_messages() {
    let folder = workspace();
    let ran = folder.run("manifests --message-format json").ok();
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("create config/rbac/role.yaml"), "{}", ran.err);
    folder.remove("config/rbac/role.yaml");
    let ran = folder.run("manifests --message-format json --check");
    assert_eq!(ran.code, 1);
    let message: Value = serde_json::from_str(&ran.out).expect("one line");
    assert_eq!(
        message["message"],
        "the manifests are not up to date: run `rbuilder manifests`"
    );
    assert!(ran.err.contains("+++ b/config/rbac/role.yaml"), "{}", ran.err);
    let ran = folder.run("manifests --message-format json --stdout").ok();
    assert!(ran.out.starts_with("---\n"), "{}", ran.out);
    let ran = Folder::new().run("manifests --message-format json");
    let message: Value = serde_json::from_str(&ran.out).expect("one line");
    assert_eq!(message["spans"], Value::Array(Vec::new()));
    assert!(
        message["message"]
            .as_str()
            .is_some_and(|text| text.contains("no Cargo.toml"))
    );
    assert_eq!(
        folder.run("manifests --message-format json --output json").code,
        2
    );
}

#[test]
fn reports_unreadable_files() {
    let folder = workspace();
    let main = folder.path().join("operator/src/main.rs");
    std::fs::write(&main, b"mod a; // \xff").expect("a file");
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("failed to read the file: it is not valid UTF-8"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("operator/src/main.rs"), "{}", ran.err);
}

#[test]
fn descriptions_are_cut_and_metadata_is_kept_by_flag() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        &package("operator", "[dependencies]\nk8s-openapi = \"0.29\"\n"),
    );
    let fields = "/// One sentence. Another one.\n    pub template: Template,";
    let template = "#[derive(rbuilder::CrdSchema)]\npub struct Template {\n    \
                    pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,\n}\n";
    folder.write("src/lib.rs", &format!("{}{template}", kind("Cup", fields)));
    let plain = folder.run("manifests --stdout").ok().out;
    assert!(
        plain.contains("Another one.") && !plain.contains("labels:"),
        "{plain}"
    );
    let reworked = folder
        .run("manifests --stdout --max-description-length 20 --embedded-object-meta")
        .ok()
        .out;
    assert!(
        reworked.contains("One sentence.\n") && !reworked.contains("Another one."),
        "{reworked}"
    );
    assert!(reworked.contains("labels:\n"), "{reworked}");
}

#[test]
fn read_only_groups_need_a_committed_crd() {
    let folder = Folder::new();
    folder.write(
        "operator/Cargo.toml",
        "[package]\nname = \"cafe\"\nedition = \"2024\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n",
    );
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    let theirs =
        |name: &str| kind(name, "pub size: i32,").replace("rbuilder::CrdSchema", "schemars::JsonSchema");
    let other = theirs("Pot").replace("x.io", "pots.x.io");
    folder.write(
        "operator/src/main.rs",
        &format!(
            "{}{other}async fn reconcile(cup: Arc<Cup>) {{}}\n",
            kind("Cup", "pub size: i32,")
        ),
    );
    let shown = || {
        folder
            .inside("operator")
            .run("manifests --stdout --only crd")
            .ok()
    };
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: pots.pots.x.io\n";
    folder.write("operator/tests/crds/pot.yaml", crd);
    let ran = shown();
    assert!(!ran.out.contains("kind: Pot"), "{}", ran.out);
    assert!(
        ran.err.contains("reconciles kinds of other groups"),
        "{}",
        ran.err
    );
    // A chart next to the package counts, too.
    folder.write("charts/cafe/templates/pot.yaml", crd);
    assert!(shown().out.contains("kind: Pot"));
}
