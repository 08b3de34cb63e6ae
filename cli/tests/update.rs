//! `rbuilder update` on projects of an invented older version. We test what it changes, keeps,
//! merges, rejects and prints.

use crate::hand_edit;
use crate::older;
use crate::support;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hand_edit::{HandEdit, apply, hand_edit};
use older::{ADDED, OLDER, REMOVED, age, update};
use proptest::prelude::*;
use rbuilder_project::edit::merge::find_markers;
use rbuilder_project::project::ScaffoldBase;
use rbuilder_templates::{Archive, Release, Template, TemplateSet};
use support::{Folder, Saved};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const RECORD: &str = ".rbuilder/files.sum";
const BASE: &str = ".rbuilder/scaffold.base";

fn project(commands: &[&str]) -> Folder {
    let folder = Folder::new();
    for command in commands {
        folder.run(command).ok();
    }
    folder
}

const PLAIN: &[&str] = &[
    concat!(
        "init --domain example.com --project-name shop --owner Shopkeepers --library version --library-version ",
        env!("CARGO_PKG_VERSION")
    ),
    "create api --group cache --version v1 --kind Cup",
];

const WEBHOOKS: &[&str] = &[
    "init --domain example.com --project-name shop --license none",
    "create api --group cache --version v1 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --defaulting",
    "create api --group cache --version v2 --kind Cup",
    "create webhook --group cache --version v2 --kind Cup --conversion --spoke v1 --validation",
    "create api --group cache --version v1 --kind Mug --namespaced=false --controller=false --plural mugs",
];

/// Has foreign kinds, and several controllers for one kind.
const FOREIGN: &[&str] = &[
    "init --domain example.com --project-name shop --namespaced",
    "create api --group crew --version v1 --kind Captain",
    "create api --group crew --version v1 --kind Captain --controller-name captain-backup",
    "create api --group apps --version v1 --kind ReplicaSet --controller",
    "create api --version v1 --kind Node --resource=false --controller-name node-labels",
    "create api --group gateway.networking.k8s.io --version v1 --kind Gateway --external-crate gateway-api@0.22 --external-path gateway_api::apis::standard::gateways::Gateway",
    "create webhook --group gateway.networking.k8s.io --version v1 --kind Gateway --validation",
    "create webhook --version v1 --kind Pod --defaulting --defaulting-path /mutate/pods",
];

const MULTIGROUP: &[&str] = &[
    "init --domain example.com --project-name shop --multigroup --namespaced",
    "create api --group cache --version v1 --kind Cup",
    "create api --group tea-time --version v1alpha1 --kind Pot",
    "create webhook --group tea-time --version v1alpha1 --kind Pot --validation",
];

/// Two kinds have the same name, and the built-in one is created last.
const NAMESAKES: &[&str] = &[
    "init --domain example.com --project-name shop --multigroup",
    "create api --group shop --version v1 --kind Deployment",
    "create api --group apps --version v1 --kind Deployment --resource=false",
];

const IMAGE: &[&str] = &[
    "init --domain example.com --project-name shop --license mit --owner Us",
    "create api --group cache --version v1 --kind Cup --image registry.example.com:5000/cup:1.6 --image-container-port 11211 --run-as-user 1001",
    "create webhook --group cache --version v1 --kind Cup --validation",
];

/// The older version would have created the simple project like this.
static OLD: LazyLock<Saved> = LazyLock::new(|| {
    let folder = project(PLAIN);
    age(&folder);
    folder.save()
});

#[test]
fn unchanged_project_becomes_the_new_scaffold() {
    let all = [PLAIN, WEBHOOKS, MULTIGROUP, IMAGE].into_iter();
    for (commands, is_unrecorded) in all.flat_map(|commands| [(commands, false), (commands, true)]) {
        let folder = project(commands);
        let today = folder.tree();
        let ran = update(&folder, "update").ok();
        assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
        assert_eq!(folder.tree(), today);

        age(&folder);
        assert!(folder.tree()["Makefile"].contains("OLD ?= 1"));
        if is_unrecorded {
            folder.remove(BASE);
        }
        let aged = folder.tree();
        let dry = update(&folder, "update --dry-run").ok();
        assert!(dry.out.contains("-OLD ?= 1\n"), "{}", dry.out);
        assert_eq!(folder.tree(), aged);
        let ran = update(&folder, "update").ok();
        assert!(ran.out.contains("  replace Makefile\n"), "{}", ran.out);
        let tree = folder.tree();
        for (path, text) in today.iter().filter(|(path, _)| *path != RECORD) {
            assert_eq!(Some(text), tree.get(path), "{path}");
        }
        assert!(tree.keys().eq(today.keys()));
        let again = update(&folder, "update").ok();
        assert!(again.out.starts_with("unchanged"), "{}", again.out);
    }
}

#[test]
fn rebuilds_the_scaffold_from_project_alone() {
    for commands in [PLAIN, WEBHOOKS, MULTIGROUP, IMAGE, FOREIGN, NAMESAKES] {
        let folder = project(commands);
        let tree = rbuilder_project::tree::Tree::new(folder.path());
        let rebuilt = rbuilder_cli::commands::rebuild_files(&tree, None).expect("it can be rebuilt");
        let there = folder.tree();
        for (path, text) in &rebuilt {
            let is_record = path == RECORD;
            assert!(
                is_record || there.get(path) == Some(text),
                "{path}: {:?}\nwas rebuilt as\n{text}",
                there.get(path)
            );
        }
        let generated = |path: &&String| !rebuilt.contains_key(*path);
        let generated: Vec<&String> = there.keys().filter(generated).collect();
        for path in &generated {
            assert!(
                path.contains("config/crd/bases/")
                    || path.ends_with("role.yaml")
                    || path.ends_with("manifests.yaml")
                    || ["PROJECT", ".rbuilder/.gitattributes", BASE].contains(&path.as_str()),
                "{path} is made by no command that `update` runs again"
            );
        }
    }
}

#[test]
fn merges_changes_of_both_sides() {
    let folder = OLD.copy();
    let edit = |path: &str, from: &str, to: &str| {
        let text = folder.tree()[path].clone();
        assert!(text.contains(from), "{path}: {text}");
        folder.write(path, &text.replacen(from, to, 1));
    };
    edit(
        "Makefile",
        "ENVTEST_K8S_VERSION ?=\n",
        "ENVTEST_K8S_VERSION ?= 1.36\n",
    );
    edit(
        "Cargo.toml",
        "serde_json = \"1\"\n",
        "serde_json = \"1\"\nurl = \"2\"\n",
    );
    edit(
        "src/main.rs",
        "let args = Args::parse();",
        "let args = Args::parse();\n    drop(1);",
    );
    edit(
        "src/api/v1/cup.rs",
        "pub foo: Option<String>",
        "pub size: Option<String>",
    );
    folder.remove("config/prometheus/monitor.yaml");
    let ran = update(&folder, "update").ok();
    let tree = folder.tree();
    for (path, kept, new) in [
        ("Makefile", "ENVTEST_K8S_VERSION ?= 1.36\n", "docker or podman"),
        ("Cargo.toml", "url = \"2\"\n", "lto = \"thin\"\n"),
        ("Cargo.toml", "url = \"2\"\n", "rust-version = \"1."),
        ("src/main.rs", "    drop(1);\n", "for leader election.\n"),
        (
            "src/api/v1/cup.rs",
            "pub size:",
            "Add the fields of the desired state",
        ),
        (
            "src/controller/mod.rs",
            "cup::controller()",
            "needs to create events",
        ),
    ] {
        assert!(
            tree[path].contains(kept) && tree[path].contains(new),
            "{path}: {}",
            tree[path]
        );
    }
    assert!(!tree["Cargo.toml"].contains("kube = { version = \"4.0\""));
    assert!(tree["config/crd/bases/cache.example.com_cups.yaml"].contains("size:"));
    assert!(tree.contains_key(ADDED) && !tree.contains_key(REMOVED));
    assert!(!tree.contains_key("config/prometheus/monitor.yaml"));
    assert!(tree["PROJECT"].contains(&format!("cliVersion: {VERSION}\n")));
    assert!(ran.err.contains("make manifests test"), "{}", ran.err);
    // The commands that scaffold the same files have nothing to do.
    for command in PLAIN {
        let ran = folder.run(command).ok();
        assert!(!ran.out.contains("replace Makefile"), "{}", ran.out);
    }
}

#[test]
fn keeps_features_enabled_or_disabled() {
    const DEPLOYMENT: &str = "config/default/kustomization.yaml";
    for flags in [
        "--enable prometheus,network-policy,cert-manager",
        "--disable metrics,network-policy",
        "--disable webhooks --enable prometheus,sharding",
    ] {
        let converts = |command: &&str| !command.contains("--conversion");
        let commands: Vec<&str> = WEBHOOKS.iter().copied().filter(converts).collect();
        let expected = project(&commands);
        expected.run(&format!("edit {flags}")).ok();

        let folder = project(&commands);
        age(&folder);
        folder.run(&format!("edit {flags}")).ok();
        let aged = folder.tree()[DEPLOYMENT].clone();
        assert!(!aged.contains("`rbuilder edit --enable`"), "{aged}");
        update(&folder, "update --no-conflicts").ok();
        assert_eq!(folder.tree()[DEPLOYMENT], expected.tree()[DEPLOYMENT], "{flags}");
    }
}

/// When this project is updated, each kind of message is printed.
fn troubled() -> Folder {
    let folder = OLD.copy();
    let text = folder.tree()["Makefile"].replace("# Container tool.", "# Our container tool.");
    folder.write("Makefile", &text.replace("OLD ?= 1\n", "OLD ?= 2\n"));
    folder.write(ADDED, "name: ours\n");
    folder.write(REMOVED, "kind: Obsolete\nours: true\n");
    folder.remove("src/main.rs");
    folder
}

#[test]
fn marks_and_lists_conflicts() {
    let folder = troubled();
    let before = folder.tree();
    let refused = update(&folder, "update --no-conflicts");
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert_eq!(folder.tree(), before);

    let dry = update(&folder, "update --dry-run --output json");
    let json: serde_json::Value = serde_json::from_str(&dry.out).expect("JSON");
    assert_eq!(dry.code, 1);
    assert_eq!(json["applied"], false);
    let errors = json["diagnostics"].as_array().into_iter().flatten();
    let errors: Vec<String> = errors
        .filter(|diagnostic| diagnostic["severity"] == "error")
        .map(|diagnostic| {
            format!(
                "{}:{}",
                diagnostic["path"].as_str().unwrap_or_default(),
                diagnostic["start"]["line"]
            )
        })
        .collect();
    assert_eq!(folder.tree(), before);

    let ran = update(&folder, "update");
    assert_eq!(ran.code, 1);
    for place in &errors {
        assert!(
            ran.err.contains(&format!("\n  {place}\n")),
            "{place}: {}",
            ran.err
        );
    }
    let tree = folder.tree();
    let shown: String = ["Makefile", ADDED]
        .iter()
        .map(|path| format!("--- {path}\n{}", excerpt(&tree[*path])))
        .collect();
    let shown = format!("{}{}{}{shown}", refused.err, ran.out, ran.err);
    support::golden("update.txt", &shown.replace(VERSION, "VERSION"));
    assert!(!tree.contains_key("src/main.rs"));
    assert_eq!(tree[REMOVED], before[REMOVED]);

    // As long as there are conflicts, no other update may run.
    let again = update(&folder, "update");
    assert_eq!(again.code, 1);
    assert!(again.err.contains("  Makefile:5\n"), "{}", again.err);
    assert!(again.err.contains(&format!("  {ADDED}:1\n")), "{}", again.err);
    assert_eq!(folder.tree(), tree);
    for path in ["Makefile", ADDED] {
        folder.write(path, &before[path]);
    }
    update(&folder, "update").ok();
}

/// Returns the conflicts with one line of context.
fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let markers = find_markers(text);
    let (Some(first), Some(last)) = (markers.first(), markers.last()) else {
        return String::new();
    };
    let lines = &lines[first.saturating_sub(2)..lines.len().min(last + 1)];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn replaces_unchanged_files_of_another_release() {
    // The first lines are from the version in between, and touch a change in today's templates.
    let folder = OLD.copy();
    let tree = rbuilder_project::tree::Tree::new(folder.path());
    let between = older::ARCHIVE.find(older::BETWEEN);
    let files = rbuilder_cli::commands::rebuild_files(&tree, between).expect("it can be rebuilt");
    folder.write("Makefile", &files["Makefile"]);
    update(&folder, "update").ok();
    let today = project(PLAIN);
    assert_eq!(folder.tree()["Makefile"], today.tree()["Makefile"]);
}

#[test]
fn keeps_files_that_existed_before() {
    let folder = OLD.copy();
    let record = folder.tree()[RECORD].clone();
    let record: String = record
        .lines()
        .filter(|line| !line.ends_with("  Makefile"))
        .map(|line| format!("{line}\n"))
        .collect();
    folder.write(RECORD, &record);
    folder.remove(BASE);
    folder.write("Makefile", "all:\n\ttrue\n");
    update(&folder, "update").ok();
    assert_eq!(folder.tree()["Makefile"], "all:\n\ttrue\n");
    assert!(!folder.tree()[RECORD].contains("  Makefile"));
}

#[test]
fn library_follows_the_command() {
    let folder =
        project(&["init --domain example.com --project-name shop --library version --library-version 0.0.8"]);
    age(&folder);
    update(&folder, "update").ok();
    let tree = folder.tree();
    assert!(tree["Cargo.toml"].contains(&format!(
        "package = \"rbuilder-runtime\", version = \"{VERSION}\""
    )));
    assert!(
        tree["PROJECT"].contains(&format!("    version: {VERSION}\n")),
        "{}",
        tree["PROJECT"]
    );
    // If the user chose a version, it's kept.
    let folder =
        project(&["init --domain example.com --project-name shop --library version --library-version 0.0.7"]);
    age(&folder);
    let ran = update(&folder, "update").ok();
    assert!(folder.tree()["Cargo.toml"].contains("version = \"0.0.7\""));
    assert!(
        ran.err
            .contains("still gets the library from a registry, version 0.0.7"),
        "{}",
        ran.err
    );
}

#[test]
fn rejects_unsupported_versions() {
    for (version, expected) in [
        (
            "99.0.0",
            "for example with `cargo install --locked rbuilder-cli --version 99.0.0`",
        ),
        ("(devel)", "found `(devel)`"),
    ] {
        let folder = OLD.copy();
        let text = folder.tree()["PROJECT"].replace(OLDER, version);
        folder.write("PROJECT", &text);
        let before = folder.tree();
        let ran = update(&folder, "update");
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert_eq!(folder.tree(), before);
    }
    let folder = OLD.copy();
    let text = folder.tree()["PROJECT"].replace("rust.rbuilder.dev/v1", "go.kubebuilder.io/v4");
    folder.write("PROJECT", &text);
    let ran = update(&folder, "update");
    assert!(ran.err.contains("unsupported layout"), "{}", ran.err);
    let ran = update(&Folder::new(), "update");
    assert!(ran.err.contains("rbuilder init"), "{}", ran.err);
}

/// These change a project or a cluster. They have their required flags.
const CHANGING: &[&str] = &[
    "init --domain example.com",
    "create api --group cache --version v1 --kind Mug",
    "create webhook --group cache --version v1 --kind Cup --validation",
    "delete api --group cache --version v1 --kind Cup",
    "edit --owner Others",
    "library --set version",
    "update",
    "manifests",
    "helm",
    "bundle",
    "grafana",
    "simulate",
    "install",
    "uninstall",
    "deploy --image a",
    "undeploy",
];

/// All commands must reject the project with this message, and change nothing.
fn check_refused(folder: &Folder, expected: &str) {
    let before = folder.tree();
    for line in CHANGING {
        let ran = folder.run(line);
        assert_eq!(ran.code, 1, "{line}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{line}: {}", ran.err);
        assert_eq!(folder.tree(), before, "{line}");
    }
    let ran = folder.run("doctor");
    assert!(
        ran.code == 1 && ran.out.contains(expected),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn older_command_changes_nothing_in_a_newer_project() {
    let folder = project(PLAIN);
    folder.replace(
        "PROJECT",
        &format!("cliVersion: {VERSION}\n"),
        "cliVersion: 99.0.0\n",
    );
    check_refused(
        &folder,
        &format!("scaffolded by rbuilder 99.0.0, which is newer than this command ({VERSION})"),
    );
}

#[test]
fn reports_conflicting_and_deleted_project_files() {
    let folder = project(PLAIN);
    let text = folder.tree()["PROJECT"].clone();
    let entries = text.find("resources:\n").expect("resources") + "resources:\n".len();
    let (head, rest) = text.split_at(entries);
    folder.write(
        "PROJECT",
        &format!("{head}<<<<<<< HEAD\n{rest}=======\n{rest}>>>>>>> other\n"),
    );
    let line = head.lines().count() + 1;
    check_refused(&folder, &format!("PROJECT:{line} has a Git merge conflict"));
    folder.remove("PROJECT");
    check_refused(&folder, "PROJECT was deleted in ");
    folder.write("PROJECT", &text);
    folder.run("update").ok();
}

#[test]
fn later_build_updates_from_the_release() {
    static RELEASED: LazyLock<Archive> = LazyLock::new(|| {
        let older = older::ARCHIVE.find(OLDER).expect("it is in the archive").clone();
        let mut versions = older.versions;
        versions.rbuilder = VERSION.into();
        let rows: Vec<Template> = older.templates.rows().to_vec();
        Archive::new(vec![Release {
            versions,
            templates: TemplateSet::new(rows),
        }])
    });
    let folder = project(PLAIN);
    let today = folder.tree();
    age(&folder);
    folder.remove(BASE);
    folder.write("PROJECT", &today["PROJECT"]);
    let mut shell = rbuilder_cli::shell::Shell::to(Box::new(std::io::sink()), Box::new(std::io::sink()));
    let flags = older::update_flags("update");
    let code = rbuilder_cli::commands::run_update(
        folder.path(),
        flags.plan.mode(),
        &flags.into(),
        &RELEASED,
        &mut shell,
    );
    assert_eq!(code.expect("it works"), 0);
    assert_eq!(folder.tree(), today);
}

#[test]
fn recorded_text_takes_precedence_over_the_version() {
    // Another build of this version wrote a text that is in no template that we know.
    let folder = project(PLAIN);
    let today = folder.tree();
    let mut base = ScaffoldBase::parse(&today[BASE]).expect("a base");
    for path in ["Makefile", "Dockerfile", "src/controller/mod.rs"] {
        let other = today[path].replacen('\n', "\n\n# another build\n\n", 1);
        base.set(path, &other);
        folder.write(path, &other);
    }
    folder.write(BASE, &base.print());
    let doctor = folder.run("doctor");
    let expected = "which scaffolds other text: Dockerfile, Makefile, src/controller/mod.rs\n";
    assert!(doctor.out.contains(expected), "{}", doctor.out);
    folder.replace("Makefile", "KIND ?= kind\n", "KIND ?= other\n");
    let ran = update(&folder, "update --manifests=false").ok();
    assert!(
        ran.out.contains("edit Makefile\n") && ran.out.contains("replace Dockerfile\n"),
        "{}",
        ran.out
    );
    folder.replace("Makefile", "KIND ?= other\n", "KIND ?= kind\n");
    assert_eq!(folder.tree(), today);
    let doctor = folder.run("doctor");
    assert!(
        doctor
            .out
            .contains("the version of this command, and as it scaffolds today\n"),
        "{}",
        doctor.out
    );
}

/// A marker is part of the scaffold like any other line, so `update` merges it with the user's
/// edits.
#[test]
fn markers_of_existing_webhooks_are_updated() {
    let folder = project(&[
        "init --domain example.com --project-name shop",
        "create webhook --group core --version v1 --kind Pod --defaulting",
    ]);
    let path = "src/webhook/v1/pod.rs";
    let today = folder.tree();
    let condition = today[path]
        .find("    match_condition(")
        .expect("it excludes its manager");
    let end = condition + today[path][condition..].find("\n    )").expect("an end") + "\n    )".len();
    let former = format!(
        "{}{}",
        today[path][..condition].trim_end().trim_end_matches(','),
        &today[path][end..]
    );
    let mut base = ScaffoldBase::parse(&today[BASE]).expect("a base");
    base.set(path, &former);
    folder.write(BASE, &base.print());
    folder.write(path, &former);
    folder.replace(path, "    info!(", "    let _ = \"ours\";\n    info!(");
    update(&folder, "update").ok();
    let tree = folder.tree();
    assert_eq!(tree[path].replace("    let _ = \"ours\";\n", ""), today[path]);
    assert_eq!(
        tree["config/webhook/manifests.yaml"],
        today["config/webhook/manifests.yaml"]
    );
}

#[test]
fn reports_files_with_unknown_text() {
    // There's no record, and no template that we know.
    let folder = project(PLAIN);
    let today = folder.tree();
    age(&folder);
    folder.remove(BASE);
    let version = folder.tree()["PROJECT"].replace(OLDER, "0.0.1");
    folder.write("PROJECT", &version);
    folder.replace("Makefile", "OLD ?= 1\n", "OLD ?= 2\n");
    let edited = folder.tree()["Makefile"].clone();
    let ran = update(&folder, "update --manifests=false");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("error: these files were not brought up to date"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(":\n  Makefile\n  = help: "), "{}", ran.err);
    assert!(
        ran.err.contains("`rbuilder update --accept Makefile`"),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    assert_eq!(tree["Makefile"], edited);
    for path in ["Dockerfile", "Cargo.toml", "src/main.rs", "src/api/v1/cup.rs"] {
        assert_eq!(tree[path], today[path], "{path}");
    }
    // We report the file until the user settles it.
    let doctor = folder.run("doctor");
    assert!(
        doctor.out.contains("as what they were scaffolded: Makefile\n"),
        "{}",
        doctor.out
    );
    assert_eq!(update(&folder, "update").code, 1);
    let other = folder.copy();
    update(&folder, "update --accept Makefile").ok();
    assert_eq!(folder.tree()["Makefile"], edited);
    let again = update(&folder, "update").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);

    other.remove("Makefile");
    update(&other, "update --restore Makefile").ok();
    assert_eq!(other.tree()["Makefile"], today["Makefile"]);
    let ran = update(&other, "update --accept src/none.rs");
    assert!(ran.err.contains("it is not a scaffolded file"), "{}", ran.err);
}

const CREATE_MUG: &str = "create api --group cache --version v1 --kind Mug --manifests=false";
const CREATE_POT: &str = "create api --group cache --version v1 --kind Pot --manifests=false";

#[test]
fn git_merges_scaffolds_of_branches() {
    let folder = project(PLAIN);
    // Keep the git directory elsewhere, so that all files in the project are text.
    let repository = Folder::new();
    let place = repository.path().join("git");
    folder.git(&format!("init -q -b main --separate-git-dir {}", place.display()));
    folder.git("config user.email a@example.com");
    folder.git("config user.name a");
    let commit = |message: &str| {
        folder.git("add -A");
        folder.git(&format!("commit -q -m {message}"));
    };
    commit("one");
    folder.git("checkout -q -b other");
    folder.run(CREATE_MUG).ok();
    commit("mug");
    folder.git("checkout -q main");
    folder.run(CREATE_POT).ok();
    commit("pot");
    // Wherever both branches add a line, lists of kinds conflict.
    let _ = std::process::Command::new("git")
        .arg("-C")
        .arg(folder.path())
        .args(["merge", "-q", "other"])
        .output();
    let both = project(&[PLAIN[0], PLAIN[1], CREATE_POT, CREATE_MUG]);
    for (path, text) in folder.tree() {
        let is_marker = |line: &&str| {
            ["<<<<<<<", "=======", ">>>>>>>"]
                .iter()
                .any(|marker| line.starts_with(marker))
        };
        if text.lines().any(|line| is_marker(&line)) {
            assert!(path != BASE && path != RECORD, "{path} is in conflict");
            folder.write(&path, &both.tree()[&path]);
        }
    }
    let base = ScaffoldBase::parse(&folder.tree()[BASE]).expect("a base");
    for path in [
        "src/controller/mod.rs",
        "src/api/v1/mod.rs",
        "config/samples/kustomization.yaml",
    ] {
        let text = base.text(path).expect("recorded");
        assert!(text.contains("mug") && text.contains("pot"), "{path}: {text}");
    }
    // Both branches are up to date. So nothing is left to do, whatever the order of lines in lists
    // is.
    let before = folder.tree();
    folder.run("update --manifests=false").ok();
    let after = folder.tree();
    for (path, text) in before.iter().filter(|(path, _)| !path.starts_with(".rbuilder/")) {
        assert_eq!(after.get(path), Some(text), "{path}");
    }
}

/// The project is updated after the edit. Each line of the user must remain, either in its place or
/// in a conflict.
fn check_edit(path: &str, edits: &[HandEdit]) -> Result<bool, TestCaseError> {
    let folder = OLD.copy();
    let scaffolded = folder.tree()[path].clone();
    let mut text = scaffolded.clone();
    for edit in edits {
        text = apply(&text, edit);
    }
    folder.write(path, &text);
    let before = folder.tree();
    let ran = update(&folder, "update --manifests=false");
    let after = folder.tree();
    let made = &after[path];
    let has_markers = !find_markers(made).is_empty();
    prop_assert_eq!(ran.code == 1, has_markers, "{}", ran.err);
    prop_assert!(after["PROJECT"] != before["PROJECT"], "{}", ran.err);
    let known = count_lines(&scaffolded);
    let left = count_lines(made);
    for (line, count) in count_lines(&text) {
        let written = count.saturating_sub(known.get(&line).copied().unwrap_or(0));
        prop_assert!(
            left.get(&line).copied().unwrap_or(0) >= written,
            "{:?} is lost of\n{}\nwhich became\n{}",
            line,
            text,
            made
        );
    }
    let mixed = |text: &str| text.replace("\r\n", "").contains('\n') && text.contains("\r\n");
    prop_assert!(mixed(&text) || !mixed(made), "{:?} became {:?}", text, made);
    if has_markers {
        let again = update(&folder, "update");
        prop_assert!(again.code == 1 && folder.tree() == after);
    }
    Ok(!has_markers)
}

fn count_lines(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        *lines.entry(line.trim_end_matches('\r').to_owned()).or_default() += 1;
    }
    lines
}

#[test]
fn keeps_every_line_of_the_user() {
    for path in [
        "src/controller/mod.rs",
        "src/main.rs",
        "src/api/v1/cup.rs",
        "Makefile",
        "Cargo.toml",
    ] {
        let cases = std::env::var("HAND_EDITS").ok();
        let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(32);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let clean = std::cell::Cell::new(0);
        let ran = runner.run(&proptest::collection::vec(hand_edit(), 1..4), |edits| {
            clean.set(clean.get() + u32::from(check_edit(path, &edits)?));
            Ok(())
        });
        if let Err(error) = ran {
            panic!("{path}: {error}");
        }
        assert!(
            clean.get() > cases / 8,
            "{path}: {} of {cases} merges had no conflict",
            clean.get()
        );
    }
}
