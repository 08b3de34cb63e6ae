//! Runs all commands in random project directories with links, pipes, journals, strange names and
//! broken manifests. In each of them, a command must terminate with a message, must not change
//! anything outside of the directory, and must not change anything at all if it only reads.
//!
//! Each round is determined by its seed. The ordinary run uses fixed seeds. A longer run tries new
//! seeds until its time is up, and prints the seed of a failure:
//!
//! ```text
//! RBUILDER_FUZZ_SECONDS=600 cargo test --release -p rbuilder-cli --test suite fuzz_trees::
//! RBUILDER_FUZZ_SEED=12345 cargo test -p rbuilder-cli --test suite fuzz_trees::
//! ```
//!
//! A process that dies at once, from lack of memory or stack, cannot print its seed. It is in
//! `target/tmp/fuzz_trees.seed`.
#![cfg(unix)]
// The test creates files, reads the clock and chooses seeds.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

#[path = "fuzz_trees/damage.rs"]
mod damage;
use crate::random;
use crate::support;
#[path = "fuzz_trees/watch.rs"]
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use random::Random;
use support::Folder;
use watch::Watch;

/// An ordinary run has this many rounds.
const ROUNDS: u64 = 120;

/// Debug builds on a busy machine need this long.
const LONGEST: Duration = Duration::from_secs(60);

/// Every file outside of the project contains this.
const SECRET: &str = "hunter2";

/// The flag says that a command only reads.
const COMMANDS: [(&str, bool); 21] = [
    ("docs", false),
    ("docs --check", true),
    ("docs --stdout", true),
    ("manifests", false),
    ("manifests", false),
    ("helm", false),
    ("bundle", false),
    ("manifests --check", true),
    ("manifests --stdout", true),
    ("manifests --dry-run", true),
    ("manifests --dry-run --output json", true),
    ("manifests --stdout --message-format json", true),
    ("manifests --config-dir deploy --no-version-annotation", false),
    ("init --domain example.com", false),
    ("init --domain example.com --force", false),
    ("init --domain example.com --dry-run", true),
    ("create api --group cache --version v1 --kind Mug", false),
    (
        "create api --group cache --version v1alpha1 --kind Cup --force",
        false,
    ),
    ("create api --group cache --version v2 --kind Cup --dry-run", true),
    (
        "create webhook --group cache --version v1alpha1 --kind Cup --defaulting --validation",
        false,
    ),
    (
        "create webhook --group cache --version v1alpha1 --kind Cup --validation --force",
        false,
    ),
];

#[test]
fn commands_survive_damaged_projects() {
    let bases = bases();
    let watch = Watch::start(LONGEST);
    let mut answers: BTreeMap<u8, usize> = BTreeMap::new();
    let mut round = |seed: u64| {
        watch.begin(seed);
        let started = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| check(&bases, &mut Random::new(seed)))) {
            Ok(codes) => codes
                .into_iter()
                .for_each(|code| *answers.entry(code).or_default() += 1),
            Err(panic) => {
                eprintln!("RBUILDER_FUZZ_SEED={seed} shows it again");
                resume_unwind(panic);
            }
        }
        watch.end();
        started.elapsed()
    };
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect(name))
    };
    if let Some(seed) = number("RBUILDER_FUZZ_SEED") {
        round(seed);
        return;
    }
    match number("RBUILDER_FUZZ_SECONDS") {
        None => (0..ROUNDS).for_each(|seed| {
            round(seed);
        }),
        Some(seconds) => {
            let (started, mut slowest, mut seed) = (Instant::now(), (Duration::ZERO, 0), ROUNDS);
            while started.elapsed() < Duration::from_secs(seconds) {
                slowest = slowest.max((round(seed), seed));
                seed += 1;
            }
            eprintln!(
                "{} rounds; the slowest, {}, took {:?}",
                seed - ROUNDS,
                slowest.1,
                slowest.0
            );
        }
    }
    // If the damage never matters, or always does, we test nothing.
    let count = |code: u8| answers.get(&code).copied().unwrap_or_default();
    assert!(count(0) > 20 && count(1) > 20, "{answers:?}");
}

/// Most were created by the commands, and one wasn't.
fn bases() -> Vec<BTreeMap<String, String>> {
    let made = |lines: &[&str]| {
        let folder = Folder::new();
        for line in lines {
            folder.run(line).ok();
        }
        folder.tree()
    };
    let init = "init --domain example.com --project-name shop";
    let api = "create api --group cache --version v1alpha1 --kind Cup";
    let webhook = "create webhook --group cache --version v1alpha1 --kind Cup --defaulting";
    let own = Folder::new();
    own.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n",
    );
    for name in ["api", "operator"] {
        let dependency = if name == "operator" {
            "shop-api = { path = \"../api\" }\n"
        } else {
            ""
        };
        own.write(
            &format!("crates/{name}/Cargo.toml"),
            &format!("[package]\nname = \"shop-{name}\"\nedition = \"2024\"\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n{dependency}"),
        );
    }
    own.write("crates/api/src/lib.rs", "mod size;\npub use size::Size;\n");
    own.write(
        "crates/api/src/size.rs",
        "use rbuilder::CrdSchema;\n#[derive(CrdSchema)]\npub struct Size { pub width: i32 }\n",
    );
    own.write(
        "crates/operator/src/main.rs",
        "use kube::CustomResource; use rbuilder::CrdSchema; use shop_api::Size;\n\
         #[derive(CustomResource, CrdSchema)]\n#[kube(group = \"cache.example.com\", version = \"v1alpha1\", kind = \"Cup\")]\n\
         pub struct CupSpec { pub size: Size }\n#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\nfn main() {}\n",
    );
    own.run("manifests").ok();
    vec![
        made(&[init]),
        made(&[init, api]),
        made(&[init, api, webhook]),
        own.tree(),
    ]
}

/// Creates a directory with a secret next to it, damages the project, and runs commands. Returns
/// their exit codes.
fn check(bases: &[BTreeMap<String, String>], random: &mut Random) -> Vec<u8> {
    let top = Folder::new();
    let (project, outside) = (top.path().join("p"), top.path().join("out"));
    for (name, text) in [
        ("secret", "secret"),
        ("lib.rs", "pub struct"),
        ("deep/x.yaml", "kind:"),
        ("run.sh", "#!/bin/sh"),
    ] {
        top.write(&format!("out/{name}"), &format!("{text} {SECRET}\n"));
    }
    for (path, text) in random.one_of(bases) {
        if let Some(folder) = path.strip_suffix('/') {
            fs::create_dir_all(project.join(folder)).expect("a folder");
        } else {
            top.write(&format!("p/{path}"), text);
        }
    }
    let mut what = Vec::new();
    for _ in 0..=random.below(5) {
        what.push(damage::apply(&project, &outside, random));
    }
    let is_linked = what.iter().any(|what| what.starts_with("hard link"));
    let before = state(&outside);
    // If a forged journal is for the project directory itself, its temporary files are next to the
    // directory.
    let around = names_in(top.path());
    let mut codes = Vec::new();
    for _ in 0..=random.below(2) {
        let (line, only_reads) = *random.one_of(&COMMANDS);
        let inner = only_reads.then(|| state(&project));
        let started = Instant::now();
        let ran = top.inside("p").run(line);
        let told = || format!("{line}\n{what:#?}\n{}{}", ran.out, ran.err);
        assert!(started.elapsed() < LONGEST, "{:?}: {}", started.elapsed(), told());
        assert!(ran.code <= 1, "{}", told());
        assert!(
            ran.code == 0 || !ran.err.is_empty() || !ran.out.is_empty(),
            "no reason: {}",
            told()
        );
        // A file with a second hard link in the project belongs to the project, so it may be shown.
        assert!(
            is_linked || !format!("{}{}", ran.out, ran.err).contains(SECRET),
            "a secret is shown: {}",
            told()
        );
        assert_eq!(state(&outside), before, "{}", told());
        let names = names_in(top.path());
        assert_eq!(names, around, "beside the project: {}", told());
        if let Some(inner) = inner {
            assert_eq!(state(&project), inner, "{}", told());
        }
        codes.push(ran.code);
    }
    codes
}

fn names_in(folder: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect()
}

/// Returns everything that a command could change. We follow no links and only open regular files.
fn state(folder: &Path) -> BTreeMap<std::path::PathBuf, String> {
    use std::os::unix::fs::MetadataExt;
    let mut state = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder).into_iter().flatten() {
        let Ok(found) = entry.path().symlink_metadata() else {
            continue;
        };
        let content = if found.is_file() && found.len() < 1 << 20 {
            fs::read(entry.path())
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default()
        } else {
            format!("{:?}", fs::read_link(entry.path()).ok())
        };
        state.insert(
            entry.path().to_owned(),
            format!(
                "{} {:o} {} {}.{} {content}",
                found.ino(),
                found.mode(),
                found.len(),
                found.mtime(),
                found.mtime_nsec()
            ),
        );
    }
    state
}
