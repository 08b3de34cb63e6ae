//! Files that users have edited: what commands add to them, what they keep, and where they stop.

use crate::support;

use support::{Folder, Ran};

const INIT: &str = "init --domain example.com --project-name shop";
const HANDLERS: &str = "src/webhook/v1/cup.rs";

fn webhook(flags: &str) -> String {
    format!("create webhook --group cache --version v1 --kind Cup {flags}")
}

fn api(version: &str, kind: &str) -> String {
    format!("create api --group cache --version {version} --kind {kind}")
}

fn project() -> Folder {
    let folder = Folder::new();
    folder.run(INIT).ok();
    folder.run(&api("v1", "Cup")).ok();
    folder.run(&api("v2", "Cup")).ok();
    folder
}

fn text(folder: &Folder, path: &str) -> String {
    folder.tree().get(path).cloned().unwrap_or_default()
}

#[track_caller]
fn refused(folder: &Folder, command: &str, expected: &[&str]) -> String {
    let before = folder.tree();
    let Ran { code, err, .. } = folder.run(command);
    assert_eq!(code, 1, "{command}: {err}");
    for part in expected {
        assert!(err.contains(part), "{command}: {part:?} is missing in\n{err}");
    }
    assert_eq!(folder.tree(), before, "{command}");
    err
}

/// Also checks that a second run has nothing to do.
#[track_caller]
fn serves(folder: &Folder, flags: &[&str]) {
    let tree = folder.tree();
    let manifests = tree
        .get("config/webhook/manifests.yaml")
        .cloned()
        .unwrap_or_default();
    let crd = &tree["config/crd/bases/cache.example.com_cups.yaml"];
    for flag in flags {
        let (is_served, call) = match *flag {
            "--defaulting" => (manifests.contains("name: mcup-v1.kb.io"), ".defaulter"),
            "--programmatic-validation" => (manifests.contains("name: vcup-v1.kb.io"), ".validator"),
            _ => (crd.contains("strategy: Webhook"), ".spoke::<"),
        };
        assert!(is_served, "{flag}:\n{}\n{manifests}", tree[HANDLERS]);
        assert!(tree[HANDLERS].contains(call), "{flag}:\n{}", tree[HANDLERS]);
        let ran = folder.run(&webhook(flag)).ok();
        assert_eq!(folder.tree(), tree, "{flag}: {}", ran.out);
    }
    folder.run("manifests --check").ok();
}

const FLAGS: [&str; 3] = [
    "--defaulting",
    "--programmatic-validation",
    "--conversion --spoke v2",
];

#[test]
fn adds_to_edited_handlers_in_every_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let folder = project();
        let mut asked = Vec::new();
        for (step, flag) in order.into_iter().map(|at| FLAGS[at]).enumerate() {
            folder.run(&webhook(flag)).ok();
            asked.push(flag);
            serves(&folder, &asked);
            let handlers = text(&folder, HANDLERS);
            let mark = format!("// Step {step}.\n");
            folder.write(HANDLERS, &format!("{mark}{handlers}"));
        }
        let handlers = text(&folder, HANDLERS);
        for part in [
            "// Step 0.\n",
            "// Step 1.\n",
            "fn default(",
            "fn validate(",
            ".spoke::<crate::api::v2::Cup>()",
        ] {
            assert_eq!(handlers.matches(part).count(), 1, "{order:?}: {part}\n{handlers}");
        }
    }
}

#[test]
fn recognizes_handlers_written_by_users() {
    let own = "use crate::api::v1::Cup as Mug;\nuse crate::api::v2;\nuse rbuilder::{self as rb, Webhook as W};\n\n\
        #[rb::webhook(mutating)]\nfn fill(mug: &mut Mug, _: &rb::webhook::AdmissionRequest) {}\n\n\
        #[rb::webhook(validating)]\nasync fn test(mug: std::sync::Arc<Mug>) {}\n\n\
        pub fn webhook() -> W<Mug> {\n    let served = W::new().defaulter(fill).spoke::<v2::Cup>();\n    served.validator_async(test)\n}\n";
    let folder = project();
    folder.write(HANDLERS, own);
    for flag in FLAGS {
        folder.run(&webhook(flag)).ok();
        assert_eq!(text(&folder, HANDLERS), own, "{flag}");
    }
    // Handlers that aren't served yet have to be served now.
    let idle = own
        .replace(".defaulter(fill).spoke::<v2::Cup>()", "")
        .replace("served.validator_async(test)", "served");
    let folder = project();
    folder.write(HANDLERS, &idle);
    for flag in FLAGS {
        folder.run(&webhook(flag)).ok();
    }
    let made = text(&folder, HANDLERS);
    let calls = "served\n        .defaulter(fill)\n        .validator_async(test)\n        .spoke::<crate::api::v2::Cup>()\n}\n";
    assert!(made.ends_with(calls), "{made}");
    serves(&folder, &FLAGS);
}

#[test]
fn adds_missing_webhook_function() {
    for own in [
        "",
        "//! Mine.\n",
        "fn default() {}\nconst A: u8 = 1; // x",
        "#[cfg(test)]\nmod tests {}\n",
    ] {
        let folder = project();
        folder.write(HANDLERS, own);
        folder
            .run(&webhook("--defaulting --programmatic-validation"))
            .ok();
        let made = text(&folder, HANDLERS);
        for line in own.lines() {
            assert!(made.contains(line), "{made}");
        }
        assert!(
            made.contains("pub fn webhook() -> rbuilder::Webhook<crate::api::v1::Cup> {\n"),
            "{made}"
        );
        let name = if own.contains("fn default()") {
            "default_cup"
        } else {
            "default"
        };
        assert!(
            made.contains(&format!("fn {name}(object: &mut crate::api::v1::Cup, ")),
            "{made}"
        );
        serves(&folder, &FLAGS[..2]);
    }
}

#[test]
fn adds_missing_marker_to_served_function() {
    let folder = project();
    let own = "use crate::api::v1::Cup;\npub fn webhook() -> rbuilder::Webhook<Cup> {\n    rbuilder::Webhook::new().defaulter(fill)\n}\n\
        /// Mine.\n#[allow(unused)]\npub(crate) fn fill(cup: &mut Cup, _: &rbuilder::webhook::AdmissionRequest) {}\n";
    folder.write(HANDLERS, own);
    folder.run(&webhook("--defaulting")).ok();
    let expected = own.replace("pub(crate) fn", "#[rbuilder::webhook(mutating)]\npub(crate) fn");
    assert_eq!(text(&folder, HANDLERS), expected);
    serves(&folder, &FLAGS[..1]);
}

/// Returns the lines that the message tells the user to add.
fn lines_to_add(err: &str) -> String {
    let (_, lines) = err.split_once("run the command again:\n").expect(err);
    lines
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line)))
        .collect()
}

#[test]
fn pasting_the_lines_lets_the_command_continue() {
    let broken = "use crate::api::v1::Cup;\n\npub fn webhook() -> rbuilder::Webhook<Cup> {\n    return rbuilder::Webhook::new();\n}\n";
    for flag in FLAGS {
        let folder = project();
        folder.write(HANDLERS, broken);
        let err = refused(
            &folder,
            &webhook(flag),
            &[HANDLERS, "does not end in method calls on a `Webhook`"],
        );
        let lines = lines_to_add(&err);
        let (calls, functions) = lines
            .split_once("// add next to `webhook()`:\n")
            .unwrap_or((&lines, ""));
        let calls = calls
            .strip_prefix("// append to the result of `webhook()`:\n")
            .expect(&err);
        let pasted = broken.replace("new();", &format!("new()\n{calls};"));
        folder.write(HANDLERS, &format!("{pasted}\n{functions}"));
        folder.run(&webhook(flag)).ok();
        assert_eq!(
            text(&folder, HANDLERS),
            format!("{pasted}\n{functions}"),
            "{flag}"
        );
        serves(&folder, &[flag]);
    }

    // Both kinds of modules have calls in `register`.
    for (path, command, missing) in [
        ("src/controller/mod.rs", api("v1", "Mug"), "mug::controller()"),
        (
            "src/webhook/mod.rs",
            webhook("--defaulting"),
            "v1::cup::webhook()",
        ),
    ] {
        for body in [
            "return manager;",
            "if true { manager } else { manager }",
            "match () { () => manager }",
        ] {
            let folder = project();
            let made = format!(
                "use rbuilder::Manager;\n\npub fn register(manager: Manager) -> Manager {{\n    {body}\n}}\n"
            );
            let modules = if path.contains("controller") {
                "pub mod cup;\n"
            } else {
                ""
            };
            folder.write(path, &format!("{modules}{made}"));
            let err = refused(
                &folder,
                &command,
                &[path, "add this line at the start of `register`", missing],
            );
            let line = lines_to_add(&err);
            let pasted = text(&folder, path).replace("    return", &format!("{line}    return"));
            let pasted = pasted.replace(&format!("{{\n    {body}"), &format!("{{\n{line}    {body}"));
            folder.write(path, &pasted);
            folder.run(&command).ok();
            assert_eq!(
                text(&folder, path).matches(missing).count(),
                1,
                "{}",
                text(&folder, path)
            );
        }
        let folder = project();
        let modules = if path.contains("controller") {
            "pub mod cup;\n\n"
        } else {
            ""
        };
        folder.write(path, modules);
        let err = refused(&folder, &command, &[path, "no function `register`", missing]);
        folder.write(path, &format!("{}{}", text(&folder, path), lines_to_add(&err)));
        folder.run(&command).ok();
        let both = "#[cfg(unix)]\npub fn register(m: Manager) -> Manager {\n    m\n}\n\
                    #[cfg(not(unix))]\npub fn register(m: Manager) -> Manager {\n    m\n}\n";
        let folder = project();
        folder.write(path, &format!("{modules}{both}"));
        let err = refused(&folder, &command, &["2 functions `register`", missing]);
        let pasted = both.replace("{\n", &format!("{{\n    {}", lines_to_add(&err)));
        folder.write(path, &format!("{modules}{pasted}"));
        folder.run(&command).ok();
        assert!(text(&folder, path).ends_with(&pasted));
    }

    let folder = project();
    let main = text(&folder, "src/main.rs").replace(
        "controller::register(manager)",
        "controller::register(with(manager))",
    );
    folder.write("src/main.rs", &main);
    let err = refused(
        &folder,
        &webhook("--defaulting"),
        &["src/main.rs", "is not a variable"],
    );
    let pasted = main.replace(
        "    controller::",
        &format!("    {}    controller::", lines_to_add(&err)),
    );
    folder.write("src/main.rs", &pasted);
    folder.run(&webhook("--defaulting")).ok();
    assert_eq!(text(&folder, "src/main.rs"), pasted);
}

#[test]
fn never_overwrites_files_of_another_kind() {
    // A conversion of `Cup` would have the same path as the kind `CupConversion`.
    let folder = project();
    folder.run(&api("v2", "CupConversion")).ok();
    let convert = webhook("--conversion --spoke v2");
    for force in ["", " --force"] {
        let expected = ["v2/cup_conversion.rs belongs to kind `CupConversion` of cache.example.com/v2"];
        let err = refused(&folder, &format!("{convert}{force}"), &expected);
        assert!(!err.contains("--force"), "{err}");
    }
    let folder = project();
    folder.run(&convert).ok();
    for force in ["", " --force"] {
        let expected = ["v2/cup_conversion.rs belongs to kind `Cup` of cache.example.com/v1"];
        refused(
            &folder,
            &format!("{}{force}", api("v2", "CupConversion")),
            &expected,
        );
    }
    // Tests are named after the kind and its version.
    for (kind, file) in [
        ("CupV2", "tests/cup_v2.rs"),
        ("CupV1Webhook", "tests/cup_v1_webhook.rs"),
    ] {
        refused(
            &folder,
            &format!("{} --force", api("v1", kind)),
            &[file, "belongs to kind `Cup`"],
        );
    }

    let folder = Folder::new();
    folder.run(&format!("{INIT} --multigroup")).ok();
    folder.run("create api --group a-b --version v1 --kind Cup").ok();
    for (group, kind, part) in [
        ("a.b", "Cup", "would share the directory src/api/a_b/"),
        ("a.b", "Mug", "would share the directory src/api/a_b/"),
        (
            "a",
            "BCup",
            "tests/a_b_cup.rs belongs to kind `Cup` of a-b.example.com/v1",
        ),
    ] {
        for force in ["", " --force"] {
            let command = format!("create api --group {group} --version v1 --kind {kind}{force}");
            let err = refused(&folder, &command, &[part]);
            assert!(!err.contains("--force"), "{err}");
        }
    }
    folder.run("create api --group a --version v1 --kind Cup").ok();
}

#[test]
fn keeps_conversions_written_by_users() {
    let own = "use crate::api::v1;\nimpl From<v1::Cup> for super::Cup {\n    fn from(_: v1::Cup) -> Self {\n        todo!()\n    }\n}\n";
    let folder = project();
    let path = "src/api/v2/cup_conversion.rs";
    folder.write(path, own);
    folder.run(&webhook("--conversion --spoke v2")).ok();
    assert_eq!(text(&folder, path), own);
    assert!(text(&folder, "src/api/v2/mod.rs").contains("mod cup_conversion;\n"));
    let folder = project();
    folder.write(path, "// impl From<A> for B {}\n");
    refused(
        &folder,
        &webhook("--conversion --spoke v2"),
        &[path, "already exist with different content"],
    );
}

#[test]
fn keeps_configurations_written_by_users() {
    let folder = project();
    let path = "config/webhook/manifests.yaml";
    for own in [
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: mine\nwebhooks: []\n",
        "---\n# Mine.\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: validating-webhook-configuration\nwebhooks: []\n",
        "# nothing\n",
        "a: [\n",
    ] {
        folder.write(path, own);
        folder.run("manifests").ok();
        assert_eq!(text(&folder, path), own);
    }
}

#[test]
fn manifests_do_not_replace_foreign_objects() {
    let folder = project();
    for (path, own, part) in [
        (
            "config/crd/bases/cache.example.com_cups.yaml",
            "kind: ConfigMap\nmetadata:\n  name: mine\n",
            "the `ConfigMap` `mine`",
        ),
        (
            "config/rbac/role.yaml",
            "kind: Role\n---\nkind: RoleBinding\n",
            "a `RoleBinding`",
        ),
    ] {
        let made = text(&folder, path);
        folder.write(path, own);
        refused(&folder, "manifests", &[path, part]);
        folder.write(path, &made);
    }
}

#[test]
fn finds_moved_kinds() {
    let folder = project();
    let types = "src/api/v1/cup.rs";
    let moved = "src/api/v1/dishes.rs";
    folder.write(moved, &text(&folder, types));
    folder.write(types, "pub use super::dishes::*;\n");
    folder.write("src/api/v1/mod.rs", "mod cup;\nmod dishes;\n\npub use cup::*;\n");
    folder.run(&webhook("--conversion --spoke v2")).ok();
    assert!(text(&folder, moved).contains(")]\n#[crd(conversion)]\n"));
    assert_eq!(text(&folder, types), "pub use super::dishes::*;\n");
    serves(&folder, &FLAGS[2..]);
}
