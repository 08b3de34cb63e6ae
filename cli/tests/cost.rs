//! Limits how much memory `rbuilder manifests` allocates, which grows with its CPU time but does not
//! depend on the machine. `cargo xtask bench` measures everything else.
//!
//! There is a limit for each state of the manifests on disk. The common one is after an edit.
//!
//! This is a single test because all tests in a program share the counting allocator.

#![allow(clippy::disallowed_methods)] // writes the project to measure

use std::alloc::System;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rbuilder_cli::shell::Shell;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KINDS: usize = 12;
const FIELDS: usize = 60;

/// All limits are relative to a run with manifests that are up to date. Without manifests, the
/// command also keeps the generated texts in memory until it writes them.
const LIMIT_WITHOUT_MANIFESTS: f64 = 1.2;
/// Each changed manifest is parsed twice, as it was and as it will be, for the warnings about
/// breaking changes.
const LIMIT_IF_ALL_CHANGE: f64 = 2.5;
/// Only one manifest of twelve is parsed.
const LIMIT_IF_ONE_CHANGES: f64 = 1.25;

#[test]
fn cost_of_manifests_is_bounded() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let folder = folder.path();
    fs::create_dir(folder.join("src")).expect("a directory");
    fs::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"costs\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    )
    .expect("a file");
    let modules: String = (0..KINDS).map(|kind| format!("pub mod kind{kind};\n")).collect();
    fs::write(folder.join("src/lib.rs"), modules).expect("a file");
    let write = |kinds: std::ops::Range<usize>, word: &str| {
        for kind in kinds {
            fs::write(folder.join(format!("src/kind{kind}.rs")), source(kind, word)).expect("a file");
        }
    };

    write(0..KINDS, "an");
    // The first run writes the manifests, and the second one fills the remaining caches.
    manifests(folder);
    manifests(folder);
    let present = manifests(folder);
    fs::remove_dir_all(folder.join("config")).expect("there are manifests");
    let absent = manifests(folder);
    write(0..1, "another");
    let one_changed = manifests(folder);
    write(0..KINDS, "a third");
    let all_changed = manifests(folder);

    for (state, cost, limit) in [
        ("without manifests", absent, LIMIT_WITHOUT_MANIFESTS),
        ("if one changes", one_changed, LIMIT_IF_ONE_CHANGES),
        ("if all change", all_changed, LIMIT_IF_ALL_CHANGE),
    ] {
        let ratio = cost as f64 / present as f64;
        assert!(
            ratio < limit,
            "{state}: {cost} bytes, {ratio:.2} times the {present} bytes for manifests that are up to date"
        );
    }
}

/// Returns the number of bytes that the command allocates, including those it frees.
fn manifests(folder: &Path) -> usize {
    let mut shell = Shell::to(Box::new(std::io::sink()), Box::new(std::io::sink()));
    let region = Region::new(ALLOCATOR);
    let folder = folder.to_str().expect("a plain path");
    let code = rbuilder_cli::run(["rbuilder", "-C", folder, "manifests"], &mut shell);
    let change = region.change();
    assert_eq!(code, 0);
    change.bytes_allocated
}

fn source(kind: usize, word: &str) -> String {
    let mut fields = String::new();
    for field in 0..FIELDS {
        let _ = write!(
            fields,
            "    /// Field {field} is {word} example of a field with a description of usual length.\n    \
             #[crd(validation(minimum = 0, maximum = 100))]\n    pub field{field}: i32,\n"
        );
    }
    format!(
        "//! Kind {kind}.\n\n/// What kind {kind} should be.\n\
         #[derive(CustomResource, CrdSchema, Clone, Debug, Serialize, Deserialize)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Kind{kind}\", namespaced)]\n\
         pub struct Kind{kind}Spec {{\n{fields}}}\n"
    )
}
