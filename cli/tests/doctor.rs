//! `rbuilder doctor`: its findings about projects. It must never change a project. Findings about
//! tools depend on the machine.
#![allow(clippy::disallowed_methods)] // the tests make the programs and files that doctor finds

use crate::support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::Folder;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns status, message and help by the name of the finding.
fn examine(folder: &Folder) -> (u8, BTreeMap<String, (String, String, String)>) {
    let before = folder.tree();
    let ran = folder.run("doctor --output json");
    assert_eq!(folder.tree(), before, "it changed the folder");
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let findings = answer["findings"].as_array().expect("a list").iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let about = findings.map(|finding| {
        let content = ["status", "message", "help"].map(|key| text(finding, key));
        (text(finding, "check"), content.into())
    });
    (ran.code, about.collect())
}

/// Changes a project, then checks one finding about it.
#[track_caller]
fn check(change: impl Fn(&Folder), name: &str, status: &str, message: &str, help: &str) {
    let folder = Folder::with_cup();
    change(&folder);
    let (code, findings) = examine(&folder);
    let found = &findings[name];
    assert_eq!(found.0, status, "{found:?}");
    assert!(found.1.contains(message) && found.2.contains(help), "{found:?}");
    assert!(status != "error" || code == 1);
    // The text output has to say the same.
    let text = folder.run("doctor").out;
    let heading = text
        .split_once(&format!(" {name}: {}\n", found.1))
        .and_then(|(before, _)| before.lines().last());
    assert!(
        heading.is_some_and(|heading| heading.trim_start().starts_with(status)),
        "{text}"
    );
}

fn edit(path: &'static str, from: &'static str, to: &'static str) -> impl Fn(&Folder) {
    move |folder| {
        let text = folder.tree()[path].clone();
        assert!(text.contains(from), "{path}: {text}");
        folder.write(path, &text.replace(from, to));
    }
}

/// Groups of Kubernetes end with such a domain, too.
#[test]
fn roles_for_kubernetes_are_no_finding() {
    for domain in ["io", "k8s.io"] {
        let folder = Folder::new();
        folder
            .run(&format!("init --domain {domain} --project-name shop"))
            .ok();
        folder
            .run("create api --group cache --version v1 --kind Cup")
            .ok();
        let (_, findings) = examine(&folder);
        assert!(
            !findings.contains_key("roles"),
            "{domain}: {:?}",
            findings.get("roles")
        );
    }
    check(
        edit("config/rbac/cup_viewer_role.yaml", "- cups", "- mugs"),
        "roles",
        "warning",
        "this role is for `mugs` of cache.example.com",
        "update the groups",
    );
}

#[test]
fn overlong_scaffold_base_is_an_error() {
    use base64::Engine as _;
    let packed = miniz_oxide::deflate::compress_to_vec(&vec![b' '; 1 << 20], 10);
    let packed = base64::prelude::BASE64_STANDARD.encode(packed);
    let base: String = (0..33).map(|n| format!("file-{n} {packed}\n")).collect();
    check(
        move |folder: &Folder| folder.write(".rbuilder/scaffold.base", &base),
        "scaffold",
        "error",
        ".rbuilder/scaffold.base has more text than scaffolds have",
        "",
    );
}

#[test]
fn new_project_has_no_findings() {
    let (_, findings) = examine(&Folder::with_cup());
    for name in ["project", "library", "scaffold", "manifests", "rust"] {
        assert_eq!(findings[name].0, "ok", "{:?}", findings[name]);
    }
    assert!(findings.contains_key("kubectl") && findings.contains_key("envtest"));
    assert!(findings["rust"].1.starts_with("rustc 1."), "{findings:?}");
}

#[test]
fn outdated_tools_are_errors() {
    let newer = |folder: &Folder| {
        let text = folder.tree()["Cargo.toml"].clone();
        let line = text
            .lines()
            .find(|line| line.starts_with("rust-version"))
            .expect("a line");
        folder.write("Cargo.toml", &text.replace(line, "rust-version = \"1.9999\""));
    };
    check(
        newer,
        "rust",
        "error",
        "the project needs 1.9999",
        "rustup update",
    );
}

#[test]
fn reports_inconsistent_versions() {
    let set = |to: &'static str| {
        move |folder: &Folder| {
            let text = folder.tree()["PROJECT"].clone();
            folder.write(
                "PROJECT",
                &text.replace(&format!("cliVersion: {VERSION}"), &format!("cliVersion: {to}")),
            );
        }
    };
    check(
        set("0.0.1"),
        "project",
        "warning",
        "by rbuilder 0.0.1",
        "rbuilder update",
    );
    check(
        set("99.0.0"),
        "project",
        "error",
        "newer than this command",
        "for example with `cargo install --locked --path ",
    );
    check(set("(devel)"), "project", "error", "`(devel)`", "set it");
    let version = |folder: &Folder| drop(folder.run("library --set version --version 0.0.1").ok());
    check(version, "library", "warning", "version 0.0.1", "rbuilder update");
    let git = |folder: &Folder| {
        drop(
            folder
                .run("library --set git --url https://git.example.com/r --rev abc")
                .ok(),
        );
    };
    check(git, "library", "ok", "https://git.example.com/r at `abc`", "");
    let away = |folder: &Folder| {
        for path in ["Cargo.toml", "PROJECT"] {
            let text = folder.tree()[path].replace("/crates/runtime", "/nowhere");
            folder.write(path, &text);
        }
    };
    check(
        away,
        "library",
        "error",
        "does not contain the library",
        "rbuilder library --set",
    );
}

#[test]
fn reports_stale_manifests_and_changed_files() {
    let field = edit(
        "src/api/v1/cup.rs",
        "pub foo: Option<String>",
        "pub size: Option<String>",
    );
    check(
        &field,
        "manifests",
        "warning",
        "config/crd/bases/cache.example.com_cups.yaml",
        "rbuilder manifests",
    );
    check(
        &field,
        "scaffold",
        "ok",
        "1 changed since (src/api/v1/cup.rs)",
        "",
    );
    let removed = |folder: &Folder| folder.remove("Dockerfile");
    check(removed, "scaffold", "ok", "1 deleted since (Dockerfile)", "");
    check(
        |folder: &Folder| folder.remove(".rbuilder/files.sum"),
        "scaffold",
        "warning",
        ".rbuilder/files.sum lists no files",
        "`git checkout HEAD -- .rbuilder/files.sum`",
    );
    let broken = edit("src/api/v1/cup.rs", "max_length = 63", "max_lenght = 63");
    check(broken, "manifests", "error", "src/api/v1/cup.rs:", "all errors");
    let conflict = edit(
        "Makefile",
        "KIND ?= kind\n",
        "<<<<<<< this project\nKIND ?= kind\n",
    );
    check(conflict, "conflicts", "error", "Makefile:", "edit the lines");
}

/// If a command changed a scaffolded file, that isn't a change of the user.
#[test]
fn edits_by_commands_do_not_count_as_changes() {
    let folder = Folder::with_cup();
    folder
        .run("create webhook --group cache --version v1 --kind Cup --defaulting --programmatic-validation")
        .ok();
    folder.run("edit --enable metrics").ok();
    let (_, findings) = examine(&folder);
    let said = &findings["scaffold"].1;
    assert!(!said.contains("changed since"), "{said}");
}

#[test]
fn undeployable_config_is_an_error() {
    check(
        |_| {},
        "config",
        "ok",
        "kustomizations; all their files exist",
        "",
    );
    check(
        edit("config/default/kustomization.yaml", "- ../rbac\n", "- ../rbacz\n"),
        "config",
        "error",
        "names `../rbacz`, but config/rbacz does not exist",
        "correct the entry",
    );
    let unreferenced = |folder: &Folder| folder.remove("config/manager/manager.yaml");
    check(
        unreferenced,
        "config",
        "error",
        "config/manager/kustomization.yaml:4 names `manager.yaml`, but config/manager/manager.yaml does not exist",
        "correct the entry, or run `rbuilder update --restore config/manager/manager.yaml`",
    );
    check(
        edit(
            "config/manager/kustomization.yaml",
            "- manager.yaml\n",
            "- manager.yaml\n- mine.yaml\n",
        ),
        "config",
        "error",
        "config/manager/mine.yaml does not exist",
        "correct the entry, or remove it",
    );
    check(
        |folder| folder.remove("config/manager/kustomization.yaml"),
        "config",
        "error",
        "names `../manager`, but config/manager has no kustomization",
        "run `rbuilder update --restore config/manager`",
    );
    let without_root = |folder: &Folder| folder.remove("config/default/kustomization.yaml");
    check(
        without_root,
        "config",
        "error",
        "config/default/kustomization.yaml does not exist",
        "rbuilder update --restore config/default/kustomization.yaml",
    );
    check(
        edit(
            "config/default/kustomization.yaml",
            "resources:\n",
            "resources: [\n",
        ),
        "config",
        "error",
        "cannot parse config/default/kustomization.yaml:",
        "correct the file",
    );
    let remote = edit(
        "config/default/kustomization.yaml",
        "- ../rbac\n",
        "- ../rbac\n- https://example.com/x.yaml\n- github.com/a/b//config\n",
    );
    check(remote, "config", "ok", "", "");
}

/// kustomize follows links, so a linked file counts as existing.
#[cfg(unix)]
#[test]
fn linked_config_files_exist() {
    let folder = Folder::with_cup();
    let path = folder.path().join("config/manager/manager.yaml");
    folder.write("manager.yaml", &folder.tree()["config/manager/manager.yaml"]);
    folder.remove("config/manager/manager.yaml");
    std::os::unix::fs::symlink(folder.path().join("manager.yaml"), path).expect("a link");
    let text = folder.run("doctor").out;
    assert!(text.contains("ok config: "), "{text}");
}

/// Git for Windows checks out files with other line endings. That isn't a change, not even in files
/// that several commands have edited.
#[test]
fn line_endings_do_not_count_as_changes() {
    let folder = Folder::with_cup();
    for (path, text) in folder.tree() {
        if !path.starts_with(".rbuilder/") {
            folder.write(&path, &text.replace('\n', "\r\n"));
        }
    }
    let (_, findings) = examine(&folder);
    let said = &findings["scaffold"].1;
    assert!(!said.contains("changed since"), "{said}");
}

#[test]
fn conflicts_in_products_are_errors() {
    let chart = |folder: &Folder| {
        folder.run("helm").ok();
        let text = folder.tree()["charts/shop/values.yaml"].clone();
        folder.write(
            "charts/shop/values.yaml",
            &format!("<<<<<<< HEAD\n{text}=======\n>>>>>>> other\n"),
        );
    };
    check(
        chart,
        "conflicts",
        "error",
        "unresolved: charts/shop/values.yaml:1",
        "edit the lines",
    );
    let base = |folder: &Folder| {
        folder.run("helm").ok();
        let text = folder.tree()[".rbuilder/chart.txt"].clone();
        folder.write(".rbuilder/chart.txt", &format!("<<<<<<< HEAD\n{text}"));
    };
    check(
        base,
        "conflicts",
        "error",
        "unresolved: .rbuilder/chart.txt:1",
        "edit the lines",
    );
    // This line only looks like a conflict marker.
    check(
        edit("Makefile", "KIND ?= kind\n", "# <<<<<<< HEAD\nKIND ?= kind\n"),
        "scaffold",
        "ok",
        "1 changed since (Makefile)",
        "",
    );
}

#[test]
fn unreadable_project_file_has_specific_help() {
    let conflict = |folder: &Folder| {
        let text = folder.tree()["PROJECT"].clone();
        folder.write("PROJECT", &format!("<<<<<<< HEAD\n{text}"));
    };
    check(
        conflict,
        "project",
        "error",
        "PROJECT:1",
        "`git checkout HEAD -- PROJECT`",
    );
}

#[test]
fn reports_project_file_that_update_cannot_use() {
    check(
        edit("PROJECT", "- api:\n", "- apis:\n"),
        "project",
        "warning",
        "`rbuilder update` cannot use PROJECT: cannot rebuild the scaffold of kind `Cup`",
        "`git diff PROJECT` shows what was changed by hand",
    );
}

#[test]
fn reports_unknown_keys_and_values_in_project_file() {
    for (from, to, message, help) in [
        (
            "  controller: true\n",
            "  controler: true\n",
            "unknown key `resources[0].controler` in PROJECT",
            "did you mean `controller`?",
        ),
        (
            "license: apache2\n",
            "license: gpl\n",
            "unknown license `gpl` in PROJECT",
            "choose one with `rbuilder edit --license`: `apache2`, `mit`, `none`",
        ),
    ] {
        let folder = Folder::with_cup();
        edit("PROJECT", from, to)(&folder);
        let text = folder.run("doctor").out;
        let expected = format!(" project: {message}");
        let mut lines = text.lines();
        assert!(
            lines.any(|line| line.starts_with("warning") && line.ends_with(&expected)),
            "{text}"
        );
        assert!(text.contains(help), "{text}");
    }
}

/// If a scaffolded file is deleted, it can be restored with everything that commands have added to
/// it.
#[test]
fn deleted_files_are_restored() {
    let folder = Folder::with_cup();
    let before = folder.tree();
    for path in ["src/main.rs", "config/manager/manager.yaml", "Dockerfile"] {
        folder.remove(path);
    }
    let (_, findings) = examine(&folder);
    let (status, said, help) = &findings["scaffold"];
    assert_eq!(
        (status.as_str(), said.as_str(), help.as_str()),
        (
            "error",
            "src/main.rs does not exist, and the binary `manager` is built from it",
            "restore it with `rbuilder update --restore src/main.rs`"
        )
    );
    folder
        .run("update --restore src/main.rs --restore ./config/manager/manager.yaml --restore Dockerfile")
        .ok();
    assert_eq!(folder.tree(), before);
    for path in ["config/manager/manager.yaml", "config/manager/kustomization.yaml"] {
        folder.remove(path);
    }
    folder.run("update --restore config/manager/").ok();
    assert_eq!(folder.tree(), before);
    for (line, said) in [
        ("update --restore Dockerfile", "it exists"),
        (
            "update --restore config/manager",
            "all files that were scaffolded in it exist",
        ),
        ("update --restore config/man", "it is not a scaffolded file"),
        ("update --restore nope.rs", "it is not a scaffolded file"),
        ("update --restore ../Dockerfile", "it is not a scaffolded file"),
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.code, 1, "{line}");
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
    assert_eq!(folder.tree(), before);
}

/// The help about a deleted file names the command that writes it again. When we run it, the
/// project has to be complete.
#[test]
fn help_for_deleted_source_restores_it() {
    let folder = Folder::with_cup();
    folder
        .run("create api --group cache --version v1 --kind Cup")
        .ok();
    let before = folder.tree();
    for (path, name, message) in [
        ("Cargo.toml", "library", "Cargo.toml does not exist"),
        ("src/lib.rs", "scaffold", "src/lib.rs does not exist"),
        ("src/api/v1/mod.rs", "manifests", "file not found for module `v1`"),
        (
            "src/api/v1/cup.rs",
            "manifests",
            "file not found for module `cup`",
        ),
        (
            "src/controller/mod.rs",
            "manifests",
            "file not found for module `controller`",
        ),
    ] {
        folder.remove(path);
        let (_, findings) = examine(&folder);
        let (status, said, help) = &findings[name];
        assert_eq!(status, "error", "{path}");
        assert!(said.contains(message), "{path}: {said}");
        assert!(
            help.contains(&format!("restore it with `rbuilder update --restore {path}`")),
            "{path}: {help}"
        );
        folder.run(&format!("update --restore {path}")).ok();
        assert_eq!(folder.tree(), before, "{path}");
    }
}

#[test]
fn directory_without_a_rust_project_is_an_error() {
    let (code, findings) = examine(&Folder::new());
    assert_eq!((code, findings["project"].0.as_str()), (1, "error"));
    let foreign = edit("PROJECT", "rust.rbuilder.dev/v1", "go.kubebuilder.io/v4");
    check(foreign, "project", "error", "unsupported layout", "");
}

/// These programs are in the repository, and record when they run.
#[cfg(unix)]
mod programs {
    use std::process::Command;

    use serde_json::Value;

    use crate::support::Folder;

    /// Acts like rustup's proxies, i.e. runs the programs that the toolchain file of its directory
    /// names, and reads Cargo's configuration.
    const PROXY: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ -n "$RUSTUP_TOOLCHAIN" ]; then echo "$(basename "$0") $RUSTUP_TOOLCHAIN.0 (x)"; exit; fi
path=$(sed -n 's/^path = "\(.*\)"/\1/p' rust-toolchain.toml 2>/dev/null)
[ -z "$path" ] || exec "$path/bin/$(basename "$0")" "$@"
[ ! -e .cargo/config.toml ] || cat .cargo/config.toml
echo "$(basename "$0") 1.99.0 (x)"
"#;

    /// The programs obey the files of the project. Returns the finding about Rust.
    fn examine(folder: &Folder) -> Value {
        examine_with(folder, PROXY, "")
    }

    /// Same, with another proxy and a toolchain that the user has selected.
    fn examine_with(folder: &Folder, proxy: &str, toolchain: &str) -> Value {
        let bin = Folder::new();
        for name in ["rustc", "cargo"] {
            bin.write_program(name, proxy);
        }
        // Put relative directories on the path, and one directory of the project.
        for name in ["rustc", "cargo", "kubectl", "git", "kube-apiserver", "etcd"] {
            let record = format!("#!/bin/sh\necho {name} >> '{}/ran'\n", folder.path().display());
            folder.write_program(&format!("tool/bin/{name}"), &record);
            folder.write_program(name, &record);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
        command
            .args(["doctor", "--output", "json"])
            .current_dir(folder.path());
        let path = format!(".:tool/bin::{}:/bin:/usr/bin", bin.path().display());
        command
            .env("PATH", path)
            .env("KUBEBUILDER_ASSETS", folder.path().join("tool/bin"))
            .env("RUSTUP_TOOLCHAIN", toolchain);
        let ran = command.output().expect("rbuilder runs");
        let answer: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        assert!(
            !folder.path().join("ran").exists(),
            "{:?}",
            folder.tree().get("ran")
        );
        let findings = answer["findings"].as_array().expect("a list");
        let rust = findings.iter().find(|finding| finding["check"] == "rust");
        rust.expect("a finding").clone()
    }

    fn add_toolchain_file(folder: &Folder) {
        let path = folder.path().join("tool");
        folder.write(
            "rust-toolchain.toml",
            &format!("[toolchain]\npath = \"{}\"\n", path.display()),
        );
    }

    #[test]
    fn toolchain_of_the_repository_is_not_run() {
        let folder = Folder::with_cup();
        assert_eq!(examine(&folder)["status"], "ok");
        add_toolchain_file(&folder);
        let found = examine(&folder);
        assert_eq!(found["status"], "warning");
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("rust-toolchain.toml names a toolchain by its path, which is not run"));
        assert!(message.ends_with("rustc 1.99.0 and cargo 1.99.0"), "{message}");
    }

    #[test]
    fn toolchain_file_with_a_release_is_obeyed() {
        let folder = Folder::with_cup();
        folder.write("rust-toolchain.toml", "[toolchain]\nchannel = \"1.98\"\n");
        let message = examine(&folder)["message"].clone();
        assert!(
            message
                .as_str()
                .is_some_and(|text| text.starts_with("rustc 1.98.0 and cargo 1.98.0"))
        );
    }

    /// rustup's proxies always exist, and print this error if the toolchain doesn't.
    #[test]
    fn toolchain_that_is_not_installed_is_named() {
        let proxy = |condition: &str| {
            format!(
                "#!/bin/sh\nif [ {condition} ]; then echo \"error: toolchain '$RUSTUP_TOOLCHAIN-x86_64' is not installed\" >&2; exit 1; fi\necho \"$(basename \"$0\") 1.99.0 (x)\"\n"
            )
        };
        let folder = Folder::with_cup();
        let check = |proxy: &str, message: &str, help: &str| {
            let found = examine_with(&folder, proxy, "1.70");
            assert_eq!(found["message"], message, "{found}");
            assert!(
                found["help"].as_str().is_some_and(|text| text.starts_with(help)),
                "{found}"
            );
        };
        check(
            &proxy("-n \"$RUSTUP_TOOLCHAIN\""),
            "the toolchain `1.70-x86_64`, which rustup would run, is not installed",
            "run `rustup toolchain install 1.70-x86_64`",
        );
        check(
            "#!/bin/sh\necho 'error: no default is configured' >&2; exit 1\n",
            "rustc does not run: no default is configured",
            "install Rust",
        );
        check("#!/bin/sh\nexit 1\n", "rustc does not run", "install Rust");
    }

    #[test]
    fn pipes_instead_of_settings_do_not_block() {
        let folder = Folder::with_cup();
        std::fs::create_dir_all(folder.path().join(".cargo")).expect("a folder");
        for name in [".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml"] {
            let made = Command::new("mkfifo").arg(folder.path().join(name)).status();
            assert!(made.expect("mkfifo runs").success());
        }
        let found = examine(&folder);
        let message = found["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with("rust-toolchain is not a regular file"),
            "{message}"
        );
    }
}

#[test]
fn checks_the_shards_of_a_deployment() {
    const PATCH: &str = "config/sharding/manager_sharding_patch.yaml";
    const ROLE: &str = "config/sharding/sharding_role.yaml";
    const MANAGER: &str = "config/manager/manager.yaml";
    let (_, findings) = examine(&Folder::with_cup());
    assert!(!findings.contains_key("shards") && !findings.contains_key("cluster"));

    let enable = |folder: &Folder| drop(folder.run("edit --enable sharding").ok());
    check(enable, "shards", "ok", "`SHARDS=auto`: all replicas work", "");
    let both = |folder: &Folder| {
        enable(folder);
        let text = folder.tree()["config/sharding/kustomization.yaml"].clone();
        let (kept, _) = text.split_once("# Turns the argument").expect("the replacements");
        folder.write("config/sharding/kustomization.yaml", kept);
    };
    check(
        both,
        "shards",
        "error",
        "both `--leader-elect` and `SHARDS=auto`",
        "remove `--leader-elect`",
    );
    let no_argument = |folder: &Folder| {
        enable(folder);
        edit(MANAGER, "        - --leader-elect\n", "")(folder);
    };
    check(
        no_argument,
        "shards",
        "error",
        "expected `--leader-elect` in `args`",
        "kustomize fails",
    );
    let no_delete = |folder: &Folder| {
        enable(folder);
        edit(ROLE, "  - patch\n  - delete\n", "")(folder);
    };
    check(
        no_delete,
        "shards",
        "error",
        "no role allows it to patch, delete Leases",
        "config/sharding/sharding_role.yaml",
    );
    // Without the component, the manager only has the permissions for leader election.
    check(
        edit(MANAGER, "- --leader-elect\n", "- --shards=64\n"),
        "shards",
        "error",
        "`--shards=64`, but no role allows it to list, patch, delete Leases",
        "rbuilder edit --enable sharding",
    );
    let elsewhere = |folder: &Folder| {
        enable(folder);
        edit(
            PATCH,
            "        env:\n",
            "        env:\n        - name: LEADER_ELECTION_NAMESPACE\n          value: leases\n",
        )(folder);
    };
    check(elsewhere, "shards", "ok", "LEADER_ELECTION_NAMESPACE=leases", "");
}
