//! Crash tests. `create api` fails or dies at each of its steps. So do `update`, an `init` that
//! joins a workspace, `edit --multigroup`, which moves files, and the recovery itself. After
//! recovery, the tree must be either the old or the new one, and must still contain what the user
//! has written in the meantime.
//!
//! This target has no test harness, because it starts itself as the process that dies.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // a test program prints and accesses the disk

#[path = "support/older.rs"]
mod older;
#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use rbuilder_cli::commands::{plan_create_api, plan_edit, plan_init, plan_update};
use rbuilder_cli::flags::{Cli, Command as Typed, Create};
use rbuilder_project::plan::apply::{Faults, JOURNAL, apply, recover, recover_with};
use rbuilder_project::tree::Tree;
use rbuilder_templates::Archive;
use support::Folder;

const API: &str = "rbuilder create api --group cache --version v1alpha1 --kind Memcached";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, folder, step] = arguments.as_slice() {
        let faults = Faults {
            at: Some(step.parse().expect("a number")),
            abort: true,
        };
        let _ = match word.as_str() {
            "die" => create_api(Path::new(folder), faults),
            "update" => update(Path::new(folder), faults),
            "join" => join(Path::new(folder), faults),
            "edit" => edit(Path::new(folder), faults),
            "recover" => recover_with(Path::new(folder), faults).map(|(_, steps)| steps),
            word => unreachable!("{word}"),
        };
        return;
    }
    let before = Folder::new();
    before.run("init --domain example.com --project-name shop").ok();
    let done = before.copy();
    let steps = create_api(done.path(), Faults::default()).expect("it works without faults");
    assert!(steps > 30, "{steps} steps are too few to mean anything");

    let mut new = 0;
    for at in 0..steps {
        failing(&before, &done, at);
        new += usize::from(dying(&before, &done, at));
    }
    // The journal decides. After a death behind the last rename we must get the new tree, and after
    // an early death the old one.
    assert!(
        new > 0 && new < steps,
        "{new} of {steps} deaths left the new tree"
    );
    edits_are_kept(&before, &done, steps);
    recoveries_die_too(&before, &done, steps);
    updates_die_too(&done);
    joins_die_too();
    moves_die_too(&done);
    println!("test create_api_at_each_of_{steps}_steps ... ok ({new} deaths left the new tree)");
}

fn create_api(folder: &Path, faults: Faults) -> anyhow::Result<usize> {
    let cli = Cli::parse_from(API.split(' '));
    let Typed::Create(Create::Api(flags)) = cli.command else {
        unreachable!("it is typed above")
    };
    let tree = Tree::new(folder);
    let outcome = plan_create_api(&tree, &flags.into())?;
    apply(&tree, &outcome.plan, faults)
}

/// If a write fails, the command undoes the rest itself. If only the cleanup fails, it succeeds.
fn failing(before: &Folder, done: &Folder, at: usize) {
    let folder = before.copy();
    if create_api(
        folder.path(),
        Faults {
            at: Some(at),
            abort: false,
        },
    )
    .is_err()
    {
        let tree = folder.tree();
        assert!(
            tree == before.tree() || tree == done.tree(),
            "step {at} failed and left {:?}",
            tree.keys()
        );
    }
    again(&folder, done, at);
}

/// The process is killed, and the next command recovers. Returns true if we get the new tree.
fn dying(before: &Folder, done: &Folder, at: usize) -> bool {
    let folder = before.copy();
    kill(&folder, "die", at);
    only_looking(&folder);
    recover(folder.path()).expect("it can be settled");
    let tree = folder.tree();
    let new = tree == done.tree();
    assert!(
        new || tree == before.tree(),
        "dying at step {at} left {:?}",
        tree.keys()
    );
    again(&folder, done, at);
    new
}

/// Whatever happened, the command can be run again.
fn again(folder: &Folder, done: &Folder, at: usize) {
    recover(folder.path()).expect("it can be settled");
    create_api(folder.path(), Faults::default()).expect("it works afterwards");
    assert!(folder.tree() == done.tree(), "after step {at}");
}

/// Starts this program again, which dies at the given step.
fn kill(folder: &Folder, word: &str, at: usize) {
    let died = Command::new(std::env::current_exe().expect("this program"))
        .args([word, &folder.path().to_string_lossy(), &at.to_string()])
        .stderr(Stdio::null())
        .status()
        .expect("it starts");
    assert!(!died.success(), "step {at} was survived");
}

/// A command that writes nothing must report the interrupted command, but not touch it.
fn only_looking(folder: &Folder) {
    let before = folder.tree();
    let interrupted = before.get(JOURNAL).is_some_and(|text| text.contains('\n'));
    for line in [
        "manifests --check",
        "manifests --dry-run",
        "manifests --stdout",
        "create api --group cache --version v1 --kind Cup --dry-run",
    ] {
        let ran = folder.run(line);
        assert_eq!(folder.tree(), before, "{line} changed the folder");
        assert_eq!(
            ran.err.contains("an interrupted rbuilder command"),
            interrupted,
            "{line}: {}",
            ran.err
        );
        // If the tree is inconsistent, commands give no answer.
        let between = ran.err.contains("in an inconsistent state");
        assert!(!between || ran.code == 1, "{line}: {}", ran.err);
    }
}

/// The user writes this after the kill and before the recovery.
const MINE: &str = "// mine\n";

fn edits_are_kept(before: &Folder, done: &Folder, steps: usize) {
    let (old, new) = (before.tree(), done.tree());
    let changed = |path: &&String| old.get(*path) != new.get(*path) && !path.ends_with('/');
    let mut files: Vec<&String> = new.keys().filter(changed).collect();
    assert!(files.len() > 5, "{files:?}");
    // Try a new file, an edited file, and the last file to be renamed.
    let created = files
        .iter()
        .position(|path| !old.contains_key(*path))
        .expect("one is new");
    let edited = files
        .iter()
        .position(|path| old.contains_key(*path))
        .expect("one is edited");
    files = vec![files[created], files[edited], files[files.len() - 1]];
    let mut kept = 0;
    for at in 0..steps {
        for (index, path) in files.iter().enumerate() {
            let folder = before.copy();
            kill(&folder, "die", at);
            write_mine(&folder, path, (at + index) % 2 == 0);
            let recovery = recover(folder.path()).expect("it can be settled");
            let mut tree = folder.tree();
            let aside = format!("{path}.rbuilder-kept");
            if tree.get(*path).is_some_and(|text| text == MINE) {
                // The text is in its place, so it's an edit of the old or the new file.
                let whole = if recovery.as_ref().is_none_or(|recovery| recovery.undone) {
                    &old
                } else {
                    &new
                };
                match whole.get(*path) {
                    Some(text) => tree.insert((*path).clone(), text.clone()),
                    None => tree.remove(*path),
                };
            } else {
                assert_eq!(
                    tree.remove(&aside).as_deref(),
                    Some(MINE),
                    "{path} at {at} is lost"
                );
                let recovery = recovery.expect("something was undone");
                assert_eq!(recovery.kept, [((*path).clone(), aside.clone())]);
                assert!(recovery.to_string().contains(&aside), "{recovery}");
                kept += 1;
            }
            without_empty_folders(&mut tree);
            assert!(
                tree == plain(&old) || tree == plain(&new),
                "{path} at {at} left {:?}",
                tree.keys()
            );
        }
    }
    assert!(kept > 10, "{kept} edits were in the way");
}

/// Editors either overwrite the text or replace the file.
fn write_mine(folder: &Folder, path: &str, in_place: bool) {
    if in_place {
        folder.write(path, MINE);
    } else {
        folder.write(&format!("{path}~"), MINE);
        std::fs::rename(folder.path().join(format!("{path}~")), folder.path().join(path)).expect("a rename");
    }
}

/// An edit may have created directories, which we ignore.
fn without_empty_folders(tree: &mut BTreeMap<String, String>) {
    tree.retain(|path, _| !path.ends_with('/'));
}

fn plain(tree: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tree = tree.clone();
    without_empty_folders(&mut tree);
    tree
}

/// If a recovery dies, the next one continues with the same result.
fn recoveries_die_too(before: &Folder, done: &Folder, steps: usize) {
    let (old, new) = (plain(&before.tree()), plain(&done.tree()));
    let last = new
        .keys()
        .find(|path| *path == "PROJECT")
        .expect("it is renamed last");
    let mut deaths = 0;
    // Die while files are staged, after some renames, before and after the last rename, and with an
    // edit in the way.
    for (at, edit) in [
        (8, None),
        (steps - 8, None),
        (steps - 5, Some("src/main.rs")),
        (steps - 1, None),
    ] {
        let interrupted = || {
            let folder = before.copy();
            kill(&folder, "die", at);
            if let Some(path) = edit {
                write_mine(&folder, path, true);
            }
            folder
        };
        let first = interrupted();
        let (recovery, taken) = recover_with(first.path(), Faults::default()).expect("it can be settled");
        let undone = recovery.expect("there is something to do").undone;
        let expected = plain(&first.tree());
        assert!(expected.contains_key(last));
        assert!(
            edit.is_some() || expected == *if undone { &old } else { &new },
            "{at}"
        );
        for step in 0..taken {
            let folder = interrupted();
            kill(&folder, "recover", step);
            recover(folder.path()).expect("it can be settled");
            assert!(
                plain(&folder.tree()) == expected,
                "a recovery of {at} that died at {step} left {:?}",
                folder.tree().keys()
            );
            deaths += 1;
        }
    }
    assert!(deaths > 50, "{deaths} deaths of recoveries");
}

/// Updates from the fictitious older version.
fn update(folder: &Path, faults: Faults) -> anyhow::Result<usize> {
    let tree = Tree::new(folder);
    let outcome = plan_update(&tree, &older::update_flags("update").into(), &older::ARCHIVE)?;
    apply(&tree, &outcome.plan, faults)
}

/// After a killed update, we have the old or the new tree, and PROJECT has the matching version.
/// The update continues when it is run again.
fn updates_die_too(project: &Folder) {
    let before = project.copy();
    older::age(&before);
    let mut makefile = before.tree()["Makefile"].clone();
    makefile.push_str("\nmine:\n\ttrue\n");
    before.write("Makefile", &makefile);
    let done = before.copy();
    let steps = update(done.path(), Faults::default()).expect("it works without faults");
    let (old, new) = (before.tree(), done.tree());
    assert!(new["Makefile"].ends_with("\nmine:\n\ttrue\n") && old["PROJECT"] != new["PROJECT"]);
    let mut updated = 0;
    for at in 0..steps {
        let folder = before.copy();
        kill(&folder, "update", at);
        recover(folder.path()).expect("it can be settled");
        let tree = folder.tree();
        assert!(
            tree == old || tree == new,
            "an update that died at {at} left {:?}",
            tree.keys()
        );
        updated += usize::from(tree == new);
        update(folder.path(), Faults::default()).expect("it works afterwards");
        assert!(folder.tree() == new, "after step {at}");
    }
    assert!(updated > 0 && updated < steps, "{updated} of {steps}");
}

fn join(workspace: &Path, faults: Faults) -> anyhow::Result<usize> {
    let line = "rbuilder init --domain example.com --library version --library-version 0.1.0";
    let Typed::Init(flags) = Cli::parse_from(line.split(' ')).command else {
        unreachable!("it is typed above")
    };
    let tree = Tree::new(workspace.join("crates/shop"));
    let outcome = plan_init(&tree, &flags)?;
    apply(&tree, &outcome.plan, faults)
}

/// After a killed `init`, the workspace has either both the member and its files, or neither.
fn joins_die_too() {
    let before = Folder::new();
    before.write("Cargo.toml", "[workspace]\nmembers = [\"tools/gen\"]\n");
    before.write("tools/gen/Cargo.toml", "[package]\nname = \"gen\"\n");
    let done = before.copy();
    let steps = join(done.path(), Faults::default()).expect("it works without faults");
    let (old, new) = (plain(&before.tree()), plain(&done.tree()));
    assert!(new["Cargo.toml"].contains("crates/shop") && new.contains_key("crates/shop/PROJECT"));
    let mut joined = 0;
    for at in 0..steps {
        let folder = before.copy();
        kill(&folder, "join", at);
        recover(&folder.path().join("crates/shop")).expect("it can be settled");
        let tree = plain(&folder.tree());
        assert!(
            tree == old || tree == new,
            "an init that died at {at} left {:?}",
            tree.keys()
        );
        joined += usize::from(tree == new);
        join(folder.path(), Faults::default()).expect("it works afterwards");
        assert!(plain(&folder.tree()) == new, "after step {at}");
    }
    assert!(joined > 0 && joined < steps, "{joined} of {steps}");
}

/// Files move into the directories of their groups.
fn edit(folder: &Path, faults: Faults) -> anyhow::Result<usize> {
    let cli = Cli::parse_from(["rbuilder", "edit", "--multigroup"]);
    let Typed::Edit(flags) = cli.command else {
        unreachable!("it is typed above")
    };
    let tree = Tree::new(folder);
    let outcome = plan_edit(&tree, &flags, Archive::embedded())?;
    apply(&tree, &outcome.plan, faults)
}

/// After a killed move, all files are at their old paths, or all are at their new ones.
fn moves_die_too(before: &Folder) {
    let done = before.copy();
    let steps = edit(done.path(), Faults::default()).expect("it works without faults");
    let (old, new) = (before.tree(), done.tree());
    assert!(new.contains_key("src/api/cache/v1alpha1/memcached.rs"));
    assert!(
        !new.keys().any(|path| path.starts_with("src/api/v1alpha1")),
        "{:?}",
        new.keys()
    );
    let mut moved = 0;
    for at in 0..steps {
        let folder = before.copy();
        kill(&folder, "edit", at);
        recover(folder.path()).expect("it can be settled");
        let tree = folder.tree();
        assert!(
            tree == old || tree == new,
            "a move that died at {at} left {:?}",
            tree.keys()
        );
        moved += usize::from(tree == new);
        edit(folder.path(), Faults::default()).expect("it works afterwards");
        assert!(folder.tree() == new, "after step {at}");
    }
    assert!(moved > 0 && moved < steps, "{moved} of {steps}");
}
