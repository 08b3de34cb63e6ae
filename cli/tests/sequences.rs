//! Random sequences of commands with manual edits in between. After each command, either nothing
//! has changed and the message helps, or every Rust file parses, the manifests are up to date and
//! the same command has nothing left to do.
//!
//! Each round is determined by its seed. The ordinary run uses fixed seeds. A longer run tries new
//! seeds until its time is up:
//!
//! ```text
//! RBUILDER_FUZZ_SECONDS=600 cargo test --release -p rbuilder-cli --test suite sequences::
//! RBUILDER_FUZZ_SEED=12345 cargo test -p rbuilder-cli --test suite sequences::
//! ```
//!
//! `cargo xtask scaffold` compiles the results of some of these sequences.
// The test creates files, reads the clock and chooses seeds.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use crate::hand_edit;
use crate::random;
#[path = "support/sequence.rs"]
mod sequence;
use crate::support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use random::Random;
use support::{Folder, Ran};

/// An ordinary run has this many rounds.
const ROUNDS: u64 = 24;

/// Counts the commands that succeeded and those that failed.
#[derive(Debug, Default)]
struct Counts {
    done: usize,
    refused: usize,
}

#[test]
fn random_sequences_leave_a_valid_project() {
    let mut counts = Counts::default();
    let mut round = |seed: u64| {
        let ran = catch_unwind(AssertUnwindSafe(|| check_sequence(seed, &mut counts)));
        if let Err(panic) = ran {
            eprintln!("RBUILDER_FUZZ_SEED={seed} shows it again");
            resume_unwind(panic);
        }
    };
    let number = |name: &str| {
        let text = std::env::var(name).ok();
        text.map(|text| text.parse::<u64>().expect(name))
    };
    if let Some(seed) = number("RBUILDER_FUZZ_SEED") {
        return round(seed);
    }
    match number("RBUILDER_FUZZ_SECONDS") {
        None => (0..ROUNDS).for_each(round),
        Some(seconds) => {
            let (started, mut seed) = (Instant::now(), ROUNDS);
            while started.elapsed() < Duration::from_secs(seconds) {
                round(seed);
                seed += 1;
            }
            eprintln!("{} rounds", seed - ROUNDS);
        }
    }
    // If no command fails, or all do, we test nothing.
    assert!(counts.done > 50 && counts.refused > 20, "{counts:?}");
}

fn check_sequence(seed: u64, counts: &mut Counts) {
    let random = &mut Random::new(seed);
    let folder = Folder::new();
    let mut log = Vec::new();
    for command in sequence::sequence(random) {
        log.push(command.clone());
        let before = folder.tree();
        let ran = folder.run(&command);
        let after = folder.tree();
        let context = || format!("{}\n{}{}", log.join("\n"), ran.out, ran.err);
        if ran.code == 0 {
            counts.done += 1;
            check_project(&folder, &command, &context());
        } else if ran.err.contains("conflicts to resolve:") {
            check_conflicts(&after, &ran.err, &context());
            restore(&folder, &before);
        } else {
            counts.refused += 1;
            assert_eq!(changed(&before, &after), [""; 0], "{}", context());
            assert!(is_helpful(&command, &ran), "{}", context());
        }
        if random.once_in(3) {
            log.extend(edit_by_hand(&folder, random));
        }
        if random.once_in(6) {
            log.extend(rename_by_hand(&folder, random));
        }
    }
}

/// The last command has succeeded.
fn check_project(folder: &Folder, command: &str, context: &str) {
    let tree = folder.tree();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        if let Err(error) = syn::parse_file(text) {
            panic!("{path}: {error}\n{text}\n{context}");
        }
    }
    // With `--manifests=false`, the manifests are left to the next command.
    if command.contains("--manifests=false") {
        folder.run("manifests").ok();
    }
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 0, "{}{}\n{context}", ran.out, ran.err);
    let tree = folder.tree();
    if command.starts_with("create") || command.starts_with("edit") {
        let ran = folder.run(command);
        assert_eq!(ran.code, 0, "again: {}\n{context}", ran.err);
        assert_eq!(changed(&tree, &folder.tree()), [""; 0], "again\n{context}");
    }
}

/// A merge has to leave markers where its message says.
fn check_conflicts(after: &BTreeMap<String, String>, said: &str, context: &str) {
    let places = said
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.rsplit_once(':'));
    let places: Vec<(&str, usize)> = places
        .filter_map(|(path, line)| Some((path, line.parse().ok()?)))
        .collect();
    assert!(!places.is_empty(), "{context}");
    for (path, line) in places {
        let found = after[path].lines().nth(line - 1).unwrap_or_default();
        assert!(found.starts_with("<<<<<<<"), "{path}:{line}: {found}\n{context}");
    }
}

/// Does what `git` would do to revert the changes.
fn restore(folder: &Folder, before: &BTreeMap<String, String>) {
    let after = folder.tree();
    for path in changed(before, &after) {
        match before.get(path) {
            Some(text) => folder.write(path, text),
            None => folder.remove(path),
        }
    }
}

fn is_helpful(command: &str, ran: &Ran) -> bool {
    let said = ran.err.split_once("error").map_or("", |(_, said)| said);
    let said = said.split_once(": ").map_or("", |(_, said)| said);
    let is_doctor = command == "doctor";
    let has_advice = said.contains(": ") || said.contains("; ") || said.contains("help:");
    is_doctor || (has_advice && !said.contains("panicked"))
}

/// The edit must not break the project. Returns its description.
fn edit_by_hand(folder: &Folder, random: &mut Random) -> Option<String> {
    let tree = folder.tree();
    let is_source = !random.once_in(4);
    let is_edited = |path: &str| match is_source {
        true => path.starts_with("src/") && path.ends_with(".rs"),
        false => path.ends_with("kustomization.yaml") || path == "Cargo.toml" || path == "PROJECT",
    };
    let paths: Vec<&String> = tree.keys().filter(|path| is_edited(path)).collect();
    if paths.is_empty() {
        return None;
    }
    let path = (*random.one_of(&paths)).clone();
    let before = &tree[&path];
    let text = match (is_source, random.once_in(3)) {
        (true, true) => hand_edit::apply(before, &wild_edit(random)),
        (true, false) => sequence::edit_rust(before, random),
        (false, _) => edit_settings(before, random),
    };
    folder.write(&path, &text);
    let parses = !is_source || syn::parse_file(&text).is_ok();
    if !parses || folder.run("manifests").code != 0 {
        restore(folder, &tree);
        return None;
    }
    Some(format!("(edits {path})"))
}

/// Renames objects of the manager in all manifests, as with sed. Returns a description.
fn rename_by_hand(folder: &Folder, random: &mut Random) -> Option<String> {
    const RENAMES: &[(&str, &str)] = &[
        ("controller-manager", "till"),
        ("webhook-service", "till-hooks"),
        (
            "serviceAccountName: controller-manager\n",
            "serviceAccountName: clerk\n",
        ),
        ("- name: manager\n", "- name: operator\n"),
        ("namePrefix: shop-\n", "namePrefix: corner-shop-\n"),
    ];
    let tree = folder.tree();
    let (from, to) = *random.one_of(RENAMES);
    for (path, text) in tree.iter().filter(|(path, _)| path.starts_with("config/")) {
        let mut renamed = text.replace(from, to);
        if to.ends_with("clerk\n") {
            let account = "kind: ServiceAccount\n  name: controller-manager\n";
            renamed = renamed.replace(account, "kind: ServiceAccount\n  name: clerk\n");
            if path == "config/rbac/service_account.yaml" {
                renamed = renamed.replace("  name: controller-manager\n", "  name: clerk\n");
            }
        }
        if to.contains("operator") {
            renamed = renamed.replace("[name=manager]", "[name=operator]");
        }
        if renamed != *text {
            folder.write(path, &renamed);
        }
    }
    if folder.run("manifests").code != 0 || folder.run("manifests --check").code != 0 {
        restore(folder, &tree);
        return None;
    }
    Some(format!("(renames `{}` to `{}`)", from.trim_end(), to.trim_end()))
}

/// The edit must not change the meaning of a YAML or TOML file.
fn edit_settings(text: &str, random: &mut Random) -> String {
    match random.below(5) {
        0 => format!("{text}# Kept in order.\n"),
        1 => format!("# Kept in order.\n\n{text}"),
        2 => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        3 => text.trim_end().to_owned(),
        _ => text.replacen("\nresources:\n", "\n# Everything.\nresources: # all\n", 1),
    }
}

/// We don't know what the edit does to the code.
fn wild_edit(random: &mut Random) -> hand_edit::HandEdit {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&random.bits().to_le_bytes());
    let numbers = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), numbers);
    let edit = hand_edit::hand_edit().new_tree(&mut runner);
    edit.expect("an edit").current()
}

fn changed<'t>(before: &'t BTreeMap<String, String>, after: &'t BTreeMap<String, String>) -> Vec<&'t str> {
    let paths = before.keys().chain(after.keys());
    let mut changed: Vec<&str> = paths
        .filter(|path| before.get(*path) != after.get(*path))
        .map(String::as_str)
        .collect();
    changed.sort_unstable();
    changed.dedup();
    changed
}
