//! `create api` failing and dying at each of its steps: the old tree or the new one is left, nothing between.
//!
//! This target has no test harness: it starts itself as the process that dies.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // a test program prints and looks at the disk

#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use rbuilder_cli::commands::plan_create_api;
use rbuilder_cli::flags::{Cli, Command as Typed, Create};
use rbuilder_cli::plan::apply::{Faults, apply, recover};
use rbuilder_cli::tree::Tree;
use support::Folder;

const API: &str = "rbuilder create api --group cache --version v1alpha1 --kind Memcached";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, folder, step] = arguments.as_slice()
        && word == "die"
    {
        let at = step.parse().expect("a number");
        let _ = create_api(
            Path::new(folder),
            Faults {
                at: Some(at),
                abort: true,
            },
        );
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
    // The journal decides: dying after the last rename must leave the new tree, dying at first the old one.
    assert!(
        new > 0 && new < steps,
        "{new} of {steps} deaths left the new tree"
    );
    println!("test create_api_at_each_of_{steps}_steps ... ok ({new} deaths left the new tree)");
}

fn create_api(folder: &Path, faults: Faults) -> anyhow::Result<usize> {
    let cli = Cli::parse_from(API.split(' '));
    let Typed::Create(Create::Api(flags)) = cli.command else {
        unreachable!("it is typed above")
    };
    let tree = Tree::new(folder);
    let outcome = plan_create_api(&tree, &flags)?;
    apply(&tree, &outcome.plan, faults)
}

/// A write that fails: the command undoes the rest itself. Where all that is left is sweeping it has worked.
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

/// A process that is killed: the next command settles it. Returns whether the new tree stands.
fn dying(before: &Folder, done: &Folder, at: usize) -> bool {
    let folder = before.copy();
    let died = Command::new(std::env::current_exe().expect("this program"))
        .args(["die", &folder.path().to_string_lossy(), &at.to_string()])
        .stderr(Stdio::null())
        .status()
        .expect("it starts");
    assert!(!died.success(), "step {at} was survived");
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
