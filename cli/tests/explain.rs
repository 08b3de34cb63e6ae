//! Codes of messages: `rbuilder explain`, codes in JSON, and levels.

use crate::support::Folder;

use serde_json::Value;

fn types(folder: &Folder) -> (String, String) {
    let is_types =
        |(path, text): &(String, String)| path.ends_with(".rs") && text.contains("max_length = 63");
    let found = folder.tree().into_iter().find(is_types);
    found.expect("the types of the kind")
}

/// The warning is about a format that the API server doesn't know.
fn project_with_warning() -> Folder {
    let folder = Folder::with_cup();
    let (path, text) = types(&folder);
    folder.write(
        &path,
        &text.replacen("max_length = 63", "max_length = 63, format = \"phone\"", 1),
    );
    folder
}

#[test]
fn codes_and_messages_are_explained() {
    let folder = Folder::new();
    let ran = folder.run("explain rb0306").ok();
    for part in ["RB0306: Unknown format (warning)\n", "Wrong:", "Right:", "phone"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let of_message = folder.run("explain warning: unknown format `x`").ok();
    assert_eq!(of_message.out, ran.out);
    for printed in [
        "warning[RB0306]",
        "[RB0306]",
        "warning[RB0306]: unknown format `x`",
    ] {
        let explained = folder.run(&format!("explain {printed}")).ok();
        assert_eq!(explained.out, ran.out, "{printed}");
    }
    let list = folder.run("explain").ok().out;
    assert!(
        list.starts_with("RB0101 error   The source does not parse\n"),
        "{list}"
    );
    let ran = folder.run("explain RB0306 --output json").ok();
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["codes"][0]["severity"], "warning");
    let ran = folder.run("explain RB9999");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no code or message `RB9999`"), "{}", ran.err);
}

#[test]
fn json_has_the_code() {
    let folder = project_with_warning();
    let ran = folder.run("manifests --message-format json").ok();
    let line = ran
        .err
        .lines()
        .chain(ran.out.lines())
        .find(|line| line.contains("unknown format"));
    let message: Value = serde_json::from_str(line.expect("a diagnostic")).expect("JSON");
    assert_eq!(message["code"]["code"], "RB0306");
    let explanation = message["code"]["explanation"].as_str().expect("a text");
    assert!(explanation.contains("Right:"), "{explanation}");
    let ran = folder.run("manifests --stdout --output json").ok();
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["diagnostics"][0]["code"], "RB0306");
}

#[test]
fn denied_warnings_write_nothing() {
    let folder = project_with_warning();
    let before = folder.tree();
    for deny in ["warnings", "RB0306", "RB0201,rb0306"] {
        let ran = folder.run(&format!("manifests --deny {deny}"));
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("error[RB0306]: unknown format `phone`"),
            "{}",
            ran.err
        );
        assert_eq!(folder.tree(), before);
    }
    let ran = folder.run("manifests --deny RB0201").ok();
    assert!(
        ran.err.contains("warning[RB0306]: unknown format `phone`"),
        "{}",
        ran.err
    );
    let ran = folder.run("manifests --allow RB0306 --deny warnings").ok();
    assert_eq!(ran.err, "");
    let ran = folder.run("manifests --allow RB0666");
    assert!(
        ran.err
            .contains("`--allow`: unknown code `RB0666`: did you mean `RB0606`?"),
        "{}",
        ran.err
    );
}

#[test]
fn levels_of_the_project_apply_to_all_commands() {
    let folder = project_with_warning();
    let manifest = folder.tree()["Cargo.toml"].clone();
    let set = |line: &str| {
        folder.write(
            "Cargo.toml",
            &format!("{manifest}\n[package.metadata.rbuilder]\n{line}\n"),
        )
    };
    set("deny = [\"RB0306\"]");
    let ran = folder.run("manifests");
    assert!(
        ran.err.contains("error[RB0306]: unknown format `phone`"),
        "{}",
        ran.err
    );
    assert_eq!(folder.run("manifests --allow RB0306").ok().err, "");
    set("allow = [\"RB0306\"]");
    assert_eq!(folder.run("manifests").ok().err, "");
    assert_eq!(folder.run("manifests --deny RB0306").code, 1);
    set("allow = [\"RB0666\"]");
    let ran = folder.run("manifests");
    assert!(ran.err.contains("unknown code `RB0666`"), "{}", ran.err);
}

/// `allow(…)` in the source also applies to warnings of the command, but not to other fields.
#[test]
fn markers_allow_warnings_about_changes() {
    let folder = Folder::with_cup();
    folder.run("manifests").ok();
    let (path, text) = types(&folder);
    folder.git("init -q");
    folder.git("add -A");
    let change = |allow: &str| {
        let changed = text.replacen("max_length = 63)", &format!("max_length = 9){allow}"), 1);
        folder.write(&path, &changed);
    };
    change("");
    let ran = folder.run("manifests --dry-run").ok();
    assert!(ran.err.contains("changes in version `v1`"), "{}", ran.err);
    change(", allow(RB0803)");
    let ran = folder.run("manifests --dry-run").ok();
    assert_eq!(ran.err.matches("changes in version").count(), 0, "{}", ran.err);
    folder.run("manifests").ok();
    // The next run sees no change, so there is nothing to allow.
    let ran = folder.run("manifests --check").ok();
    assert!(!ran.err.contains("RB0803"), "{}", ran.err);
}

/// If a CRD refuses a sample, the command warns, not the generator.
#[test]
fn denied_warnings_include_samples() {
    let folder = project_with_warning();
    folder.replace("config/samples/cache_v1_cup.yaml", "spec:", "spek: 1\nspec:");
    let ran = folder.run("manifests --allow RB0306 --deny warnings");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("error[RB1001]: this sample is not a valid `Cup`"),
        "{}",
        ran.err
    );
}

/// Samples are validated even if their CRDs are up to date.
#[test]
fn edited_samples_are_reported() {
    let folder = Folder::with_cup();
    folder.run("manifests").ok();
    let ran = folder.run("manifests --check").ok();
    assert_eq!(ran.err, "");
    folder.replace("config/samples/cache_v1_cup.yaml", "spec:", "spek: 1\nspec:");
    for command in ["manifests", "manifests --check"] {
        let ran = folder.run(command).ok();
        let message = "warning[RB1001]: this sample is not a valid `Cup`";
        assert_eq!(ran.err.matches(message).count(), 1, "{command}: {}", ran.err);
    }
    assert_eq!(folder.run("manifests --check --deny warnings").code, 1);
}

/// Editors get the replacements in JSON, and `--fix` applies them.
#[test]
fn proposed_names_replace_wrong_ones() {
    let folder = Folder::with_cup();
    folder.run("manifests").ok();
    let (path, text) = types(&folder);
    let wrong = text.replacen("max_length = 63", "max_lenght = 63", 1);
    folder.write(&path, &wrong);
    let ran = folder.run("manifests --message-format json");
    let line = ran
        .err
        .lines()
        .chain(ran.out.lines())
        .find(|line| line.contains("max_lenght"));
    let message: Value = serde_json::from_str(line.expect("a diagnostic")).expect("JSON");
    let span = &message["children"][0]["spans"][0];
    assert_eq!(span["suggested_replacement"], "max_length");
    let at = |key: &str| usize::try_from(span[key].as_u64().expect("a number")).expect("a position");
    assert_eq!(&wrong[at("byte_start")..at("byte_end")], "max_lenght");
    folder.run("manifests --fix --dry-run").ok();
    assert_eq!(folder.tree()[&path], wrong);
    folder.run("manifests --fix").ok();
    assert_eq!(folder.tree()[&path], text);
    folder.run("manifests --check").ok();
}

#[test]
fn nothing_is_fixed_while_other_errors_remain() {
    let folder = Folder::with_cup();
    let (path, text) = types(&folder);
    folder.write(
        &path,
        &text.replacen("max_length = 63", "max_lenght = 63, pattern = \"(\"", 1),
    );
    let before = folder.tree();
    let ran = folder.run("manifests --fix");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no files were written"), "{}", ran.err);
    assert_eq!(folder.tree(), before);
}

/// There are several mistakes, in files with CRLF. One has a byte order mark.
#[test]
fn fixes_keep_line_ends_and_byte_order_marks() {
    let folder = Folder::with_cup();
    folder.run("manifests").ok();
    let (path, text) = types(&folder);
    let is_controller = |(_, text): &(String, String)| text.contains("resources = \"cups/status\"");
    let (controller, code) = folder.tree().into_iter().find(is_controller).expect("a role");
    let wrong = code.replacen("[\"get\", \"list\", \"watch\"]", "[\"get\", \"list,wacth\"]", 1);
    // Leave out the permission for the status.
    let start = wrong.find("#[rbac(\n    groups = \"cache.example.com\",\n    resources = \"cups/status\"");
    let start = start.expect("a marker for the status");
    let end = start + wrong[start..].find(")]\n").expect("its end") + 3;
    let wrong = format!("{}{}", &wrong[..start], &wrong[end..]);
    folder.write(&controller, &format!("\u{feff}{}", wrong.replace('\n', "\r\n")));
    let wrong = text.replacen("max_length = 63)", "max_lenght = 63), allow(RB0306)", 1);
    folder.write(&path, &wrong.replace('\n', "\r\n"));

    folder.run("manifests --fix").ok();
    assert_eq!(folder.tree()[&path], text.replace('\n', "\r\n"));
    let fixed = folder.tree()[&controller].clone();
    for part in [
        "[\"get\", \"list;watch\"]",
        "#[rbac(groups = \"cache.example.com\", resources = \"cups/status\", verbs = [\"patch\"])]\r\npub",
    ] {
        assert!(fixed.contains(part), "{part}\n{fixed}");
    }
    assert!(fixed.starts_with('\u{feff}'), "{fixed}");
    assert_eq!(
        fixed.matches('\n').count(),
        fixed.matches("\r\n").count(),
        "{fixed}"
    );
    folder.run("manifests --check").ok();
}

/// A rule that can't be read, or that has a wrong name, must not look as if it were missing.
#[test]
fn fixes_add_no_permission_twice() {
    let folder = Folder::with_cup();
    let is_controller = |(_, text): &(String, String)| text.contains("resources = \"cups/status\"");
    let (controller, code) = folder.tree().into_iter().find(is_controller).expect("a role");
    let wrong = code
        .replace(
            "\"list\", \"watch\", \"create\", \"patch\"]",
            "\"list,watch,craete,patch\"]",
        )
        .replace("\"cups/status\"", "\"cup/status\"");
    assert_ne!(wrong, code);
    folder.write(&controller, &wrong);
    let ran = folder.run("manifests");
    assert!(!ran.err.contains("configmaps"), "{}", ran.err);
    folder.run("manifests --fix").ok();
    let expected = code.replace(
        "\"list\", \"watch\", \"create\", \"patch\"]",
        "\"list;watch;create;patch\"]",
    );
    assert_eq!(folder.tree()[&controller], expected);
}
