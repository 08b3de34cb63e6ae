//! Runs commands in temporary directories and checks what they write, reject and print.

use crate::support;

use support::{Folder, Ran};

const INIT: &str = "init --domain example.com --project-name shop --owner Shopkeepers";
const API: &str = "create api --group cache --version v1alpha1 --kind Memcached";

fn project() -> Folder {
    let folder = Folder::new();
    folder.run(INIT).ok();
    folder
}

fn with_api() -> Folder {
    let folder = project();
    folder.run(API).ok();
    folder
}

#[test]
fn scaffolds_the_golden_tree() {
    let folder = with_api();
    let listing: String = folder.tree().keys().map(|path| format!("{path}\n")).collect();
    support::golden("tree.txt", &listing);
    for path in [
        "src/controller/mod.rs",
        "src/api/v1alpha1/mod.rs",
        "config/crd/kustomization.yaml",
        "config/rbac/kustomization.yaml",
    ] {
        support::golden(path, &folder.tree()[path]);
    }
}

#[test]
fn running_a_command_twice_changes_nothing() {
    let folder = with_api();
    let before = folder.tree();
    for command in [INIT, "init", API, "manifests", "manifests --check"] {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
        assert_eq!(folder.tree(), before, "{command}");
    }
}

#[test]
fn dry_run_shows_a_diff_and_writes_nothing() {
    let folder = project();
    let before = folder.tree();
    let ran = folder.run(&format!("{API} --dry-run")).ok();
    assert!(
        ran.out
            .contains("--- a/src/controller/mod.rs\n+++ b/src/controller/mod.rs\n"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("--- /dev/null\n+++ b/src/api/v1alpha1/memcached.rs\n"),
        "{}",
        ran.out
    );
    assert_eq!(folder.tree(), before);
}

#[test]
fn json_output_is_a_single_document() {
    let folder = project();
    let ran = folder.run(&format!("{API} --output json --dry-run")).ok();
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["applied"], false);
    let changes = answer["changes"].as_array().expect("a list");
    let types = changes
        .iter()
        .find(|change| change["path"] == "src/api/v1alpha1/memcached.rs");
    assert_eq!(types.expect("the types are planned")["action"], "create");
    let ran = folder.run("create api --group cache --version one --kind Memcached --output json");
    assert_eq!(ran.code, 1);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert!(
        answer["error"]
            .as_str()
            .is_some_and(|error| error.contains("version `one`")),
        "{answer}"
    );
}

#[test]
fn bad_input_fails_with_one_error_and_writes_nothing() {
    let empty = Folder::new();
    for (command, expected) in [
        ("init --project-name shop", "--domain"),
        (
            "init --project-name shop --domain Example.com",
            "domain `Example.com`",
        ),
        (
            "init --project-name Shop_1 --domain example.com",
            "project name `Shop_1`",
        ),
        (API, "rbuilder init"),
        ("manifests", "no Cargo.toml"),
        ("adopt", "no Cargo.toml"),
    ] {
        refused(&empty, command, expected);
    }
    let folder = with_api();
    for (arguments, expected) in [
        ("--group Cache --version v1 --kind A", "group `Cache`"),
        ("--group cache --version 1 --kind A", "version `1`"),
        ("--group cache --version v1 --kind memcached", "kind `memcached`"),
        ("--group cache --version v1 --kind Option", "kind `Option`"),
        (
            "--group cache --version v1 --kind Cup --plural Cups",
            "plural `Cups`",
        ),
        (
            "--group cache --version v1 --kind Cup --plural memcacheds",
            "already has the plural `memcacheds`",
        ),
        (
            "--group cache --version v1 --kind MemcachedSpec",
            "would both define",
        ),
        (
            "--group cache --version v1 --kind MemCached",
            "same file or object names as kind `Memcached`",
        ),
        (
            "--group other --version v1 --kind Cup",
            "use group `cache` instead of `other`, or run `rbuilder edit --multigroup` first",
        ),
        (
            "--group cache --version v1 --kind Memcached --plural mcs",
            "already has the plural `memcacheds`",
        ),
        (
            "--group cache --version v1 --kind Memcached --namespaced=false",
            "must have the same scope",
        ),
        (
            "--group cache --version v1 --kind Memcached --controller",
            "already has a controller",
        ),
        (
            "--group cache --version v1 --kind Cup --resource=false",
            "kind `Cup` has no API types",
        ),
        (
            "--group cache --version v1 --kind Cup --resource=false --controller=false",
            "nothing to scaffold",
        ),
    ] {
        refused(&folder, &format!("create api {arguments}"), expected);
    }
    refused(
        &folder,
        "init --domain other.org",
        "already initialized as project `shop`",
    );
    refused(
        &folder,
        "init --multigroup",
        "run `rbuilder edit --multigroup=true`",
    );
    assert_eq!(folder.run("create api").code, 2);
}

fn refused(folder: &Folder, command: &str, expected: &str) {
    let before = folder.tree();
    let Ran { code, err, .. } = folder.run(command);
    assert_eq!(code, 1, "{command}: {err}");
    assert!(
        err.starts_with("error: ") && err.contains(expected),
        "{command}: {err}"
    );
    assert_eq!(folder.tree(), before, "{command}");
}

#[test]
fn user_changes_are_not_overwritten() {
    // The user has changed a scaffolded file since, and the command has nothing to change.
    let folder = with_api();
    let path = "src/api/v1alpha1/memcached.rs";
    let scaffolded = folder.tree()[path].clone();
    let changed = scaffolded.replace("pub foo:", "/// Mine.\n    pub foo:");
    folder.write(path, &changed);
    folder.write(
        "src/lib.rs",
        &folder.tree()["src/lib.rs"].replace("//! ", "//! Mine. "),
    );
    folder.run(API).ok();
    assert_eq!(folder.tree()[path], changed);
    // `--force` replaces the command's own files, but nothing else.
    folder.run(&format!("{API} --force")).ok();
    assert_eq!(folder.tree()[path], scaffolded);
    assert!(folder.tree()["src/lib.rs"].contains("Mine."));

    // A file that existed before the command is a conflict unless `--force` is set.
    let folder = project();
    folder.write("src/controller/memcached.rs", "// mine\n");
    refused(&folder, API, "src/controller/memcached.rs");
    folder.run(&format!("{API} --force")).ok();
    assert!(folder.tree()["src/controller/memcached.rs"].contains("pub async fn reconcile"));
}

#[test]
fn unrecognised_file_fails_with_the_lines_to_add() {
    let folder = project();
    folder.write("src/controller/mod.rs", "pub fn start() {}\n");
    refused(&folder, API, "manager.controller(memcached::controller())");
    let folder = project();
    folder.write("config/samples/kustomization.yaml", "resources: none\n");
    refused(&folder, API, "- cache_v1alpha1_memcached.yaml");
}

#[test]
fn further_version_is_served_and_not_stored() {
    let folder = with_api();
    folder
        .run("create api --group cache --version v1 --kind Memcached")
        .ok();
    let tree = folder.tree();
    assert!(tree["src/api/v1/memcached.rs"].contains("storage = false"));
    let crd = &tree["config/crd/bases/cache.example.com_memcacheds.yaml"];
    assert_eq!(crd.matches("storage: true").count(), 1, "{crd}");
    assert_eq!(crd.matches("storage: false").count(), 1, "{crd}");
    assert!(tree["src/api/mod.rs"].contains("pub mod v1;\npub mod v1alpha1;\n"));
    assert!(tree.contains_key("tests/memcached_v1.rs"));
    folder
        .run("create api --group cache --version v1 --kind Memcached")
        .ok();
    folder.run(API).ok();
    assert_eq!(folder.tree(), tree);
}

#[test]
fn each_group_has_its_own_directory() {
    let folder = Folder::new();
    folder.run(&format!("{INIT} --multigroup")).ok();
    for group in ["cache", "store-front"] {
        folder
            .run(&format!("create api --group {group} --version v1 --kind Cup"))
            .ok();
    }
    let tree = folder.tree();
    for path in [
        "src/api/cache/v1/cup.rs",
        "src/api/store_front/v1/mod.rs",
        "src/controller/cache/cup.rs",
        "tests/store_front_cup.rs",
    ] {
        assert!(tree.contains_key(path), "{path} in {:?}", tree.keys());
    }
    assert!(tree["src/controller/mod.rs"].contains("store_front::cup::controller()"));
    assert!(tree["config/crd/bases/store-front.example.com_cups.yaml"].contains("kind: Cup"));
}

#[test]
fn check_finds_stale_manifests_and_manifests_updates_them() {
    let folder = with_api();
    let crd = "config/crd/bases/cache.example.com_memcacheds.yaml";
    let types = "src/api/v1alpha1/memcached.rs";
    folder.write(
        types,
        &folder.tree()[types].replace("max_length = 63", "max_length = 64"),
    );
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out
            .contains("-                maxLength: 63\n+                maxLength: 64\n"),
        "{}",
        ran.out
    );
    assert!(folder.tree()[crd].contains("maxLength: 63"));
    folder.run("manifests").ok();
    assert!(folder.tree()[crd].contains("maxLength: 64"));
    assert!(
        folder
            .run("manifests --stdout")
            .ok()
            .out
            .contains("maxLength: 64")
    );

    // A mistake is reported with its location, and nothing is written.
    folder.write(
        types,
        &folder.tree()[types].replace("max_length = 64", "max_lenght = 64"),
    );
    let before = folder.tree();
    let ran = folder.run("manifests");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("--> src/api/v1alpha1/memcached.rs:") && ran.err.contains("max_lenght"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree(), before);
}

#[test]
fn removes_crd_without_a_kind() {
    let folder = with_api();
    let theirs = "config/crd/bases/theirs.yaml";
    folder.write(theirs, "kind: CustomResourceDefinition\n");
    for path in ["src/api/mod.rs", "src/controller/mod.rs"] {
        let text = folder.tree()[path].clone();
        folder.write(
            path,
            &text
                .replace("pub mod v1alpha1;", "")
                .replace("pub mod memcached;", "")
                .replace(".controller(memcached::controller())", ""),
        );
    }
    for path in [
        "src/api/v1alpha1/mod.rs",
        "src/api/v1alpha1/memcached.rs",
        "src/controller/memcached.rs",
    ] {
        folder.remove(path);
    }
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert!(!tree.contains_key("config/crd/bases/cache.example.com_memcacheds.yaml"));
    assert!(tree["config/crd/kustomization.yaml"].contains("resources: []"));
    assert!(tree.contains_key(theirs));
}

const WEBHOOK: &str = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting";

#[test]
fn scaffolds_and_registers_webhooks() {
    let folder = with_api();
    let before = folder.tree();
    folder.run(WEBHOOK).ok();
    let tree = folder.tree();
    let listing: String = tree
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(text))
        .map(|(path, _)| format!("{path}\n"))
        .collect();
    support::golden("webhook.txt", &listing);
    for path in ["src/webhook/mod.rs", "src/webhook/v1alpha1/memcached.rs"] {
        support::golden(path, &tree[path]);
    }
    assert!(
        tree["src/main.rs"]
            .contains("    let manager = webhook::register(manager);\n    controller::register(")
    );
    assert!(tree["src/main.rs"].contains("use shop::{controller, webhook};"));
    assert!(tree["config/webhook/manifests.yaml"].contains("/mutate-cache-example-com-v1alpha1-memcached"));
    assert!(tree["config/webhook/kustomization.yaml"].contains("- manifests.yaml\n"));
    assert!(tree["config/default/kustomization.yaml"].contains("- ../webhook\n"));
    let ran = folder.run(WEBHOOK).ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    assert_eq!(folder.tree(), tree);
}

#[test]
fn adds_webhooks_to_edited_files() {
    let folder = with_api();
    folder.run(WEBHOOK).ok();
    let path = "src/webhook/v1alpha1/memcached.rs";
    let more = WEBHOOK.replace("--defaulting", "--programmatic-validation");
    folder.run(&more).ok();
    let tree = folder.tree();
    assert!(tree[path].contains("Webhook::new().defaulter(default).validator(validate)"));
    assert!(tree["config/webhook/manifests.yaml"].contains("ValidatingWebhookConfiguration"));
    assert!(
        tree["PROJECT"].contains("    defaulting: true\n    validation: true\n"),
        "{}",
        tree["PROJECT"]
    );

    let folder = with_api();
    folder.run(WEBHOOK).ok();
    folder.write(path, &folder.tree()[path].replace("\"defaulting\"", "\"mine\""));
    folder.run(&more).ok();
    let tree = folder.tree();
    for expected in [
        "\"mine\"",
        "Webhook::new().defaulter(default).validator(validate)",
        "#[webhook(validating)]\nfn validate(\n",
    ] {
        assert!(tree[path].contains(expected), "{expected}:\n{}", tree[path]);
    }
    assert!(tree["config/webhook/manifests.yaml"].contains("ValidatingWebhookConfiguration"));
    for command in [WEBHOOK, &more] {
        folder.run(command).ok();
        assert_eq!(folder.tree(), tree, "{command}");
    }
}

#[test]
fn scaffolds_conversions_through_a_hub() {
    let folder = with_api();
    let convert = "create webhook --group cache --version v1alpha1 --kind Memcached --conversion --spoke v1";
    refused(
        &folder,
        convert,
        "kind `Memcached` has no API types in cache/v1: scaffold them with `rbuilder create api",
    );
    folder
        .run("create api --group cache --version v1 --kind Memcached")
        .ok();
    folder.run(convert).ok();
    let tree = folder.tree();
    let crd = &tree["config/crd/bases/cache.example.com_memcacheds.yaml"];
    assert!(crd.contains("    strategy: Webhook\n"), "{crd}");
    assert!(
        tree["src/webhook/v1alpha1/memcached.rs"]
            .contains("Webhook::new().spoke::<crate::api::v1::Memcached>()")
    );
    assert!(tree["src/api/v1/memcached_conversion.rs"].contains("impl TryFrom<Hub> for Memcached"));
    assert!(tree["src/api/v1/mod.rs"].contains("mod memcached_conversion;\n"));
    assert!(!tree.contains_key("config/webhook/manifests.yaml"));
    refused(
        &folder,
        "create webhook --group cache --version v1 --kind Memcached --conversion --spoke v1alpha1",
        "the hub version of `Memcached` is `v1alpha1`",
    );
}

#[test]
fn rejects_webhooks_without_a_kind() {
    let folder = with_api();
    for (arguments, expected) in [
        ("--version v1alpha1 --kind Memcached", "no webhook requested"),
        (
            "--version v1 --kind Memcached --defaulting",
            "kind `Memcached` has no API types in cache/v1",
        ),
        (
            "--version v1alpha1 --kind Cup --validation",
            "kind `Cup` has no API types",
        ),
        ("--version alpha --kind Memcached --validation", "version `alpha`"),
        (
            "--version v1alpha1 --kind Memcached --conversion --spoke v1alpha1",
            "cannot be hub and spoke",
        ),
    ] {
        refused(
            &folder,
            &format!("create webhook --group cache {arguments}"),
            expected,
        );
    }
    folder.write("src/webhook.rs", "// mine\n");
    refused(&folder, WEBHOOK, "src/webhook.rs exists");
    folder.remove("src/webhook.rs");
    folder.write("src/main.rs", "fn main() {}\n");
    refused(
        &folder,
        WEBHOOK,
        "let manager = shop::webhook::register(manager);",
    );
    assert_eq!(
        folder
            .run("create webhook --group cache --version v1 --kind A --conversion")
            .code,
        2
    );
}

#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods)] // the test replaces a directory with a link
fn links_are_not_written_through() {
    let folder = project();
    let outside = Folder::new();
    outside.write("x", "");
    std::fs::remove_dir_all(folder.path().join("tests")).expect("it is there");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("tests")).expect("a link");
    let ran = folder.run(API);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("symbolic link"), "{}", ran.err);
    assert_eq!(outside.tree().len(), 1);
}

#[cfg(unix)]
#[test]
fn modes_of_new_files_follow_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let folder = Folder::new();
        let script = format!(
            "umask {umask} && exec \"$0\" init --domain example.com --project-name shop --library path"
        );
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_rbuilder")])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.expect("sh").success(), "{umask}");
        for file in ["Makefile", "PROJECT", "src/main.rs"] {
            let found = std::fs::metadata(folder.path().join(file)).expect(file);
            assert_eq!(
                found.permissions().mode() & 0o777,
                expected,
                "{file} with umask {umask}"
            );
        }
    }
}

#[test]
fn quiet_commands_print_warnings_and_results_only() {
    let folder = Folder::new();
    let ran = folder.run(&format!("{INIT} --quiet")).ok();
    assert_eq!(ran.out, "");
    assert!(
        ran.err.starts_with("warning: ") && !ran.err.contains("Next"),
        "{}",
        ran.err
    );
    let ran = folder.run("manifests --check --quiet").ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    let ran = folder.run("create api --quiet --version v1 --kind shop");
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    let ran = folder.run(&format!("{API} --quiet --dry-run")).ok();
    assert!(ran.out.starts_with("--- a/src/"), "{}", ran.out);
    assert_eq!(ran.err, "");
    assert_eq!(folder.run("version --quiet --verbose").code, 2);
}

#[test]
fn verbose_commands_list_what_stays_as_it_is() {
    let folder = project();
    let ran = folder.run(&format!("{API} --verbose")).ok();
    assert!(ran.out.contains("\nunchanged "), "{}", ran.out);
    assert!(!project().run(API).ok().out.contains("\nunchanged "));
}

#[test]
fn color_flag_is_respected() {
    let folder = Folder::new();
    for (line, has_color) in [
        ("--color=always create api --version v1 --kind shop", true),
        ("create api --version v1 --kind shop --color always", true),
        ("--color=never create api --version v1 --kind shop", false),
        ("create api --version v1 --kind shop", false),
        ("--color=always crate", true),
        ("crate", false),
        ("--color=always --help", true),
    ] {
        let ran = folder.run(line);
        let text = format!("{}{}", ran.out, ran.err);
        assert_eq!(text.contains('\u{1b}'), has_color, "{line}: {text}");
    }
}

#[test]
fn version_prints_the_commit() {
    let out = Folder::new().run("version").ok().out;
    assert!(out.lines().any(|line| line.starts_with("commit ")), "{out}");
}

#[test]
fn dry_run_starts_with_the_list_of_files_and_the_code() {
    let folder = Folder::new();
    let ran = folder.run(&format!("{INIT} --dry-run")).ok();
    let (list, _) = ran.err.split_once("dry run: ").unwrap_or_default();
    assert!(list.contains("   create src/main.rs\n"), "{}", ran.err);
    assert!(
        ran.err.ends_with("dry run: no files were written\n"),
        "{}",
        ran.err
    );
    let files = ran.out.lines().filter_map(|line| line.strip_prefix("+++ b/"));
    let files: Vec<&str> = files.collect();
    assert!(files[0].starts_with("src/"), "{files:?}");
    assert!(
        files.last().is_some_and(|file| file.starts_with('.')),
        "{files:?}"
    );
}

#[test]
fn help_lists_subcommands() {
    let folder = Folder::new();
    assert!(folder.run("completion bash").ok().out.contains("rbuilder"));
    assert!(folder.run("man create api").ok().out.contains("rbuilder"));
    assert!(folder.run("version").ok().out.contains(env!("CARGO_PKG_VERSION")));
}

/// We store the hashes of scaffolded files in a file that merges line by line, because branches
/// change them more often than anything else.
#[test]
fn hashes_move_out_of_an_old_project_file() {
    let folder = with_api();
    let tree = folder.tree();
    assert!(tree["PROJECT"].lines().count() < 30, "{}", tree["PROJECT"]);
    let record = &tree[".rbuilder/files.sum"];
    let line = |path: &str| {
        let line = record.lines().find(|line| line.ends_with(&format!("  {path}")));
        line.expect(path)[..16].to_owned()
    };
    assert_eq!(
        tree[".rbuilder/.gitattributes"],
        "files.sum merge=union\nscaffold.base merge=union -diff linguist-generated\n"
    );

    // Use the format of early versions, and change a file as a user would.
    folder.remove(".rbuilder/files.sum");
    folder.remove(".rbuilder/.gitattributes");
    let files: String = record
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once("  "))
        .map(|(hash, path)| format!("    {path}: {hash:?}\n"))
        .collect();
    let old = tree["PROJECT"].replace("rbuilder:\n", &format!("rbuilder:\n  files:\n{files}"));
    folder.write("PROJECT", &old);
    let path = "src/controller/memcached.rs";
    folder.write(path, &format!("{}// Mine.\n", tree[path]));
    folder.run(API).ok();
    let moved = folder.tree();
    assert_eq!(moved["PROJECT"], tree["PROJECT"]);
    assert_eq!(&moved[".rbuilder/files.sum"], record);
    assert!(moved[path].ends_with("// Mine.\n"));
    assert_eq!(line(path).len(), 16);
}

#[test]
fn commands_work_in_subdirectories() {
    let folder = project();
    folder.inside("src/api").run(API).ok();
    assert_eq!(folder.tree(), with_api_of(&folder));
    let ran = folder.inside("config/crd").run("manifests --check").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);

    // A project inside a project is separate. So is a package, if the command needs no PROJECT
    // file.
    folder
        .inside("src")
        .run("init inner --domain example.com --project-name inner")
        .ok();
    assert!(folder.tree().contains_key("src/inner/PROJECT"));
    folder.write(
        "crates/a/Cargo.toml",
        "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    folder.write("crates/a/src/lib.rs", "");
    let before = folder.tree();
    let ran = folder.inside("crates/a").run("manifests").ok();
    assert!(ran.err.contains(" --> Cargo.toml:1:1\n"), "{}", ran.err);
    assert_eq!(folder.tree(), before);
}

/// Returns what the project would have after the same command in its own directory.
fn with_api_of(folder: &Folder) -> std::collections::BTreeMap<String, String> {
    let (there, mut tree) = (folder.tree(), with_api().tree());
    // The path of the library may depend on the directory.
    for path in ["Cargo.toml", "PROJECT"] {
        tree.insert(path.to_owned(), there[path].clone());
    }
    tree
}

/// The domain of the project is appended to the group, so a group that already ends with it must be
/// a mistake.
#[test]
fn rejects_group_that_contains_the_domain() {
    let folder = Folder::new();
    folder.run(INIT).ok();
    let before = folder.tree();
    for (group, said) in [
        (
            "cache.example.com",
            "error: the API group would be `cache.example.com.example.com`: the domain of the project is added to `--group`; pass `--group cache`\n",
        ),
        ("example.com", "pass `--group \"\"`"),
    ] {
        let ran = folder.run(&format!("create api --group {group} --version v1 --kind Cup"));
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert_eq!(folder.tree(), before);
    // A suffix that is only part of a label doesn't count as the domain.
    folder
        .run("create api --group myexample.com --version v1 --kind Cup")
        .ok();
}

/// The moved file is the user's: commands add lines to it, and nobody asks for the old one.
#[test]
fn main_file_may_be_moved() {
    const WEBHOOK: &str = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting";
    for (path, target) in [
        ("src/bin/manager.rs", Some("path = \"src/bin/manager.rs\"")),
        ("src/bin/manager.rs", None),
        ("src/bin/manager/main.rs", None),
        ("cmd/main.rs", Some("path = \"cmd/main.rs\"")),
    ] {
        let folder = with_api();
        let main = folder.tree()["src/main.rs"].clone();
        folder.remove("src/main.rs");
        folder.write(path, &main);
        let section = "[[bin]]\nname = \"manager\"\npath = \"src/main.rs\"\n";
        let moved = target.map_or(String::new(), |target| {
            section.replace("path = \"src/main.rs\"", target)
        });
        folder.replace("Cargo.toml", section, &moved);
        folder.run(WEBHOOK).ok();
        let tree = folder.tree();
        assert!(
            tree[path].contains("let manager = webhook::register(manager);"),
            "{}",
            tree[path]
        );
        for command in [WEBHOOK, "update", "manifests --check", "edit --multigroup"] {
            folder.run(command).ok();
        }
        assert!(!folder.tree().contains_key("src/main.rs"));
        let doctor = folder.run("doctor").out;
        assert!(!doctor.contains("src/main.rs"), "{doctor}");
    }
}

#[test]
fn deleted_scaffolded_file_is_restored_rather_than_edited() {
    let folder = with_api();
    let main = folder.tree()["src/main.rs"].clone();
    folder.remove("src/main.rs");
    let webhook = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting";
    let refused = folder.run(webhook);
    let advice = "the file does not exist; no files were written: restore it with `rbuilder update --restore src/main.rs`";
    assert!(refused.err.contains(advice), "{}", refused.err);
    folder.run("update --restore src/main.rs").ok();
    assert_eq!(folder.tree()["src/main.rs"], main);
    folder.run(webhook).ok();
}
