//! Runs commands on files with random manual edits. A command either adds each requested part
//! exactly once and keeps every existing byte, or it fails and changes nothing.

use crate::hand_edit;
use crate::support;

use std::sync::LazyLock;

use hand_edit::{HandEdit, apply, hand_edit};
use proc_macro2::{TokenStream, TokenTree};
use proptest::prelude::*;
use support::{Folder, Saved};

/// The code is on a single line, has no comments, and its literals are replaced.
fn code(text: &str) -> String {
    fn plain(tokens: TokenStream) -> TokenStream {
        let each = |token| match token {
            TokenTree::Literal(_) => {
                TokenTree::Ident(proc_macro2::Ident::new("_x", proc_macro2::Span::call_site()))
            }
            TokenTree::Group(group) => {
                proc_macro2::Group::new(group.delimiter(), plain(group.stream())).into()
            }
            token => token,
        };
        tokens.into_iter().map(each).collect()
    }
    let mut file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    remove_macros(&mut file.items);
    let tokens: TokenStream = quote::quote!(#file);
    plain(tokens).to_string().replace(' ', "")
}

/// Code that a macro would generate doesn't exist yet, so we ignore macros.
fn remove_macros(items: &mut Vec<syn::Item>) {
    items.retain(|item| !matches!(item, syn::Item::Macro(_)));
    for item in items {
        if let syn::Item::Mod(module) = item
            && let Some((_, inner)) = &mut module.content
        {
            remove_macros(inner);
        }
    }
}

#[test]
fn removes_macros_from_code() {
    let text =
        "mod tests { macro_rules! m { () => { mod mug; } } mod cup; } macro_rules! n { () => { mod mug; } }";
    assert_eq!(code(text), "modtests{modcup;}");
}

fn is_kept(before: &str, after: &str) -> bool {
    let mut left = after.bytes();
    before.bytes().all(|byte| left.any(|other| other == byte))
}

/// Has the kind `Cup` with handlers.
static PROJECT: LazyLock<Saved> = LazyLock::new(|| {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder
        .run("create api --group cache --version v1 --kind Cup")
        .ok();
    folder.save()
});

static WITH_WEBHOOK: LazyLock<Saved> = LazyLock::new(|| {
    let folder = PROJECT.copy();
    folder
        .run("create webhook --group cache --version v1 --kind Cup --defaulting")
        .ok();
    folder.save()
});

/// Only one file was edited by hand, and we check this file.
fn check(
    project: &Saved,
    path: &str,
    edits: &[HandEdit],
    command: &str,
    once: &[&str],
) -> Result<bool, TestCaseError> {
    let folder = project.copy();
    let mut text = folder.tree()[path].clone();
    for edit in edits {
        text = apply(&text, edit);
    }
    folder.write(path, &text);
    let before = folder.tree();
    let ran = folder.run(command);
    let after = folder.tree();
    if ran.code != 0 {
        prop_assert!(ran.err.contains("error: "), "{}", ran.err);
        prop_assert!(before == after, "{}", ran.err);
        return Ok(false);
    }
    let made = &after[path];
    prop_assert!(is_kept(&text, made), "{}\nbecame\n{}", text, made);
    let code = code(made);
    for part in once {
        prop_assert_eq!(
            code.matches(part).count(),
            1,
            "{} in\n{}\nbecame\n{}",
            part,
            &text,
            made
        );
    }
    if text.replace("\r\n", "").contains('\n') == text.contains("\r\n") {
        // The line endings were mixed before, so they may stay that way.
    } else {
        let mixed = made.replace("\r\n", "").contains('\n') && made.contains("\r\n");
        prop_assert!(!mixed, "{:?}\nbecame\n{:?}", text, made);
    }
    let again = folder.run(command);
    prop_assert_eq!(again.code, 0, "{}", again.err);
    for (path, text) in folder.tree() {
        prop_assert_eq!(
            Some(&text),
            after.get(&path),
            "{} again, {:?}",
            path,
            before.get(&path)
        );
    }
    Ok(true)
}

/// Moves a project with one edited file to a layout with groups and back. The file must be the same
/// afterwards, unless one of the commands failed and changed nothing.
fn check_move(path: &str, edits: &[HandEdit]) -> Result<bool, TestCaseError> {
    let folder = WITH_WEBHOOK.copy();
    let mut text = folder.tree()[path].clone();
    for edit in edits {
        text = apply(&text, edit);
    }
    folder.write(path, &text);
    for command in [
        "edit --multigroup --no-conflicts",
        "edit --multigroup=false --no-conflicts",
    ] {
        let before = folder.tree();
        let ran = folder.run(command);
        if ran.code != 0 {
            prop_assert!(ran.err.contains("error: "), "{}", ran.err);
            prop_assert!(before == folder.tree(), "{}", ran.err);
            return Ok(false);
        }
        for (path, text) in folder.tree().iter().filter(|(path, _)| path.ends_with(".rs")) {
            prop_assert!(syn::parse_file(text).is_ok(), "{}\n{}", path, text);
        }
        let again = folder.tree();
        let ran = folder.run(command);
        prop_assert_eq!(ran.code, 0, "{}", ran.err);
        prop_assert!(again == folder.tree(), "{}", ran.out);
    }
    prop_assert_eq!(&folder.tree()[path], &text);
    Ok(true)
}

/// Some of the cases must succeed, since otherwise we test nothing.
fn check_all(project: &Saved, path: &str, command: &str, once: &[&str]) {
    run_cases(path, 48, |edits| check(project, path, edits, command, once));
}

/// One in eight of the cases must succeed. `HAND_EDITS` overrides the number of cases.
fn run_cases(path: &str, cases: u32, case: impl Fn(&[HandEdit]) -> Result<bool, TestCaseError>) {
    let cases = std::env::var("HAND_EDITS")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(cases);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let edits = proptest::collection::vec(hand_edit(), 1..4);
    let done = std::cell::Cell::new(0);
    let ran = runner.run(&edits, |edits| {
        done.set(done.get() + u32::from(case(&edits)?));
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{path}: {error}");
    }
    assert!(
        done.get() > cases / 8,
        "{path}: the command went through in {} of {cases} cases",
        done.get()
    );
}

const MUG: &str = "create api --group cache --version v1 --kind Mug";

#[test]
fn registers_controllers_once() {
    check_all(
        &PROJECT,
        "src/controller/mod.rs",
        MUG,
        &["pubmodmug;", ".controller(mug::controller())"],
    );
}

#[test]
fn lists_kinds_once() {
    check_all(&PROJECT, "src/api/v1/mod.rs", MUG, &["modmug;", "pubusemug::*;"]);
}

#[test]
fn lists_versions_once() {
    let command = "create api --group cache --version v2 --kind Mug";
    check_all(&PROJECT, "src/api/mod.rs", command, &["pubmodv2;"]);
}

#[test]
fn registers_webhooks_once() {
    let command = "create webhook --group cache --version v1 --kind Cup --defaulting";
    check_all(&PROJECT, "src/main.rs", command, &["webhook::register("]);
    check_all(&PROJECT, "src/lib.rs", command, &["pubmodwebhook;"]);
}

#[test]
fn adds_handlers_once() {
    let command = "create webhook --group cache --version v1 --kind Cup --programmatic-validation";
    check_all(
        &WITH_WEBHOOK,
        "src/webhook/v1/cup.rs",
        command,
        &[".validator(validate)", "fnvalidate("],
    );
}

#[test]
fn moving_there_and_back_changes_nothing() {
    for path in [
        "src/controller/mod.rs",
        "src/controller/cup.rs",
        "src/webhook/v1/cup.rs",
        "tests/cup.rs",
    ] {
        run_cases(path, 12, |edits| check_move(path, edits));
    }
}
