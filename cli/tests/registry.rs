//! Tests with types from registry crates, which are in the archives that `cargo fetch` leaves in
//! Cargo's cache, or vendored.
#![allow(clippy::disallowed_methods)] // the tests access the disk

use crate::support;

use std::fmt::Write;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use support::Folder;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// No other package has this type.
const SIZES: &str = "use serde::{Deserialize, Serialize};\n\n/// A size in bytes.\n\
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]\npub struct Size {\n    pub bytes: i64,\n}\n";

/// `cargo package` would create the same archive.
fn archive(package: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        builder
            .append_data(&mut header, format!("{package}/{path}"), text.as_bytes())
            .expect("a member");
    }
    let compressed = builder.into_inner().expect("an archive");
    compressed.finish().expect("an archive")
}

fn checksum(archive: &[u8]) -> String {
    let hash = hmac_sha256::Hash::hash(archive);
    hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

fn sizes(library: &str) -> Vec<u8> {
    let manifest = "[package]\nname = \"sizes\"\nversion = \"1.2.3\"\nedition = \"2021\"\n";
    archive(
        "sizes-1.2.3",
        &[("Cargo.toml", manifest), ("src/lib.rs", library)],
    )
}

/// `checksum` is in the lock file. The project is next to a directory for Cargo.
fn project(checksum: &str) -> Folder {
    let folder = Folder::new();
    folder.write(
        "op/Cargo.toml",
        "[package]\nname = \"op\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\nserde = \"1\"\nsizes = \"1\"\n",
    );
    folder.write(
        "op/Cargo.lock",
        &format!(
            "version = 4\n\n[[package]]\nname = \"op\"\nversion = \"0.1.0\"\ndependencies = [\n \"sizes\",\n]\n\n[[package]]\n\
             name = \"sizes\"\nversion = \"1.2.3\"\nsource = \"{CRATES_IO}\"\nchecksum = \"{checksum}\"\n"
        ),
    );
    folder.write(
        "op/src/main.rs",
        "#[derive(kube::CustomResource, schemars::JsonSchema, serde::Deserialize, serde::Serialize, Clone, Debug)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"Disk\")]\npub struct DiskSpec {\n    pub size: sizes::Size,\n}\n",
    );
    folder
}

fn cache(folder: &Folder, index: &str, archive: &[u8]) {
    let cache = folder.path().join("cargo/registry/cache").join(index);
    std::fs::create_dir_all(&cache).expect("a folder");
    std::fs::write(cache.join("sizes-1.2.3.crate"), archive).expect("a file");
}

/// Returns the output on both streams, and true if the command succeeded.
fn run(folder: &Folder, words: &[&str]) -> (String, bool) {
    run_in(folder, "op", words)
}

fn run_in(folder: &Folder, dir: &str, words: &[&str]) -> (String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
    command.args(words).current_dir(folder.path().join(dir));
    command.env("CARGO_HOME", folder.path().join("cargo"));
    let ran = command.output().expect("the command");
    let text = [ran.stdout, ran.stderr].concat();
    (String::from_utf8(text).expect("text"), ran.status.success())
}

const STDOUT: [&str; 4] = ["manifests", "--stdout", "--only", "crd"];

#[track_caller]
fn fails(folder: &Folder, parts: &[&str]) {
    let before = folder.path().join("op");
    let before = support::tree(&before);
    let (text, ok) = run(folder, &["manifests"]);
    assert!(!ok, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(support::tree(&folder.path().join("op")), before);
}

#[test]
fn finds_archives_by_checksum() {
    let good = sizes(SIZES);
    let folder = project(&checksum(&good));
    fails(
        &folder,
        &[
            "error[RB0106]: cannot read `sizes::Size`: the source of sizes 1.2.3 is not on this machine",
            " --> src/main.rs:4:15",
            "help: run `cargo fetch`",
            "run `cargo fetch` and then this command again: 1 of them needs a crate that is not on this machine",
        ],
    );
    let other = sizes("pub struct Size;");
    cache(&folder, "a.example.com-0123", &other);
    fails(
        &folder,
        &[
            "the archive of sizes 1.2.3 does not have the checksum in `Cargo.lock`",
            "a.example.com-0123/sizes-1.2.3.crate`, and run `cargo fetch`",
        ],
    );
    cache(&folder, "index.crates.io-0123", &good);
    let (text, ok) = run(&folder, &STDOUT);
    assert!(ok, "{text}");
    for part in ["description: A size in bytes.", "bytes:", "format: int64"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // Try the same package in the cache of another machine, and vendored in the repository.
    let elsewhere = project(&checksum(&good));
    cache(&elsewhere, "mirror", &good);
    assert_eq!(run(&elsewhere, &STDOUT), (text.clone(), true));
    let vendored = vendor(&checksum(&good), &checksum(&good));
    assert_eq!(run(&vendored, &STDOUT), (text, true));
    let (text, ok) = run(&folder, &["manifests"]);
    assert!(ok, "{text}");
    let (text, ok) = run(&folder, &["manifests", "--check"]);
    assert!(ok, "{text}");
}

/// The package is vendored, and there is no cache.
fn vendor(locked: &str, recorded: &str) -> Folder {
    let folder = project(locked);
    folder.write(
        "op/.cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n[source.vendored-sources]\ndirectory = \"vendor\"\n",
    );
    folder.write(
        "op/vendor/sizes/Cargo.toml",
        "[package]\nname = \"sizes\"\nversion = \"1.2.3\"\nedition = \"2021\"\n",
    );
    folder.write("op/vendor/sizes/src/lib.rs", SIZES);
    folder.write(
        "op/vendor/sizes/.cargo-checksum.json",
        &format!("{{\"files\":{{}},\"package\":\"{recorded}\"}}"),
    );
    folder
}

#[test]
fn vendored_package_must_match_the_lock_file() {
    let locked = checksum(&sizes(SIZES));
    fails(
        &vendor(&locked, &checksum(b"other")),
        &[
            "`vendor/sizes/.cargo-checksum.json` does not have the checksum of sizes 1.2.3 in `Cargo.lock`",
            "run `cargo vendor`",
        ],
    );
}

#[test]
fn error_in_a_package_shows_its_line() {
    let tuple = SIZES.replace("i64", "(u8, String)");
    let archive = sizes(&tuple);
    let folder = project(&checksum(&archive));
    cache(&folder, "index.crates.io-0123", &archive);
    fails(
        &folder,
        &[
            "error[RB0109]: a tuple has no structural schema",
            " --> <registry>/sizes-1.2.3/src/lib.rs:6:16",
            "pub bytes: (u8, String),",
            "describe the JSON on the field of yours that leads here",
        ],
    );
    let (text, ok) = run(&folder, &["adopt", "--dry-run"]);
    assert!(
        ok && text.contains("<registry>/sizes-1.2.3/src/lib.rs:6:16: a tuple"),
        "{text}"
    );
    // A path without a base directory stays as it is.
    folder.write("op/PROJECT", "domain: x.io\nprojectName: op\nversion: \"3\"\n");
    let (text, _) = run_in(&folder, "op/src", &["manifests"]);
    assert!(
        text.contains("--> <registry>/sizes-1.2.3/src/lib.rs:6:16"),
        "{text}"
    );
}

#[test]
fn rejects_hostile_archives() {
    let with = |path: &str| {
        archive(
            "sizes-1.2.3",
            &[("Cargo.toml", "[package]\nname = \"sizes\""), (path, "")],
        )
    };
    let other_folder = archive("other-1.2.3", &[("Cargo.toml", "[package]\nname = \"sizes\"")]);
    for (archive, expected) in [
        (
            b"not an archive".to_vec(),
            "failed to read the archive of sizes 1.2.3: it is not a gzip file",
        ),
        (
            other_folder,
            "expected files in `sizes-1.2.3`, found `other-1.2.3/Cargo.toml`",
        ),
        (with("src/main.rs"), "<registry>/sizes-1.2.3/src/lib.rs:1:1"),
        (
            archive("sizes-1.2.3", &[("src/lib.rs", "")]),
            "it has no `Cargo.toml`",
        ),
        (
            archive("sizes-1.2.3", &[("Cargo.toml", "[[")]),
            "the manifest of sizes 1.2.3 cannot be read",
        ),
        (
            archive("sizes-1.2.3", &[("Cargo.toml", "")]),
            "it has no `Cargo.toml` with a package",
        ),
    ] {
        let folder = project(&checksum(&archive));
        cache(&folder, "index.crates.io-0123", &archive);
        fails(&folder, &[expected]);
    }
}

/// A directory of the project must not pass for a package, and a name in the lock file must not
/// lead out of the cache.
#[test]
fn names_do_not_lead_out_of_the_cache() {
    let folder = project(&checksum(&sizes(SIZES)));
    folder.write(
        "op/<registry>/sizes-1.2.3/Cargo.toml",
        "[package]\nname = \"sizes\"\nversion = \"1.2.3\"\n",
    );
    folder.write("op/<registry>/sizes-1.2.3/src/lib.rs", SIZES);
    fails(&folder, &["the source of sizes 1.2.3 is not on this machine"]);

    let outside = sizes(SIZES);
    std::fs::write(folder.path().join("sizes-1.2.3.crate"), &outside).expect("a file");
    for path in ["op/Cargo.toml", "op/Cargo.lock"] {
        let text = std::fs::read_to_string(folder.path().join(path)).expect("a file");
        let text = text.replace("name = \"sizes\"", "name = \"../../../sizes\"");
        let text = text.replace("\n \"sizes\",", "\n \"../../../sizes\",");
        let text = text.replace(
            "sizes = \"1\"",
            "sizes = { package = \"../../../sizes\", version = \"1\" }",
        );
        folder.write(path, &text);
    }
    std::fs::create_dir_all(folder.path().join("cargo/registry/cache/index")).expect("a folder");
    fails(
        &folder,
        &["`Cargo.lock` has no valid name and version: `../../../sizes` and `1.2.3`"],
    );
}
