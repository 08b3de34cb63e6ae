//! Tests with output that can't be written, and names that can't be used for files.

use std::fs::File;
use std::process::Stdio;

use super::{API, program, project};

/// Each of these prints something.
const PRINTS: [&[&str]; 13] = [
    &["version"],
    &["--version"],
    &["--help"],
    &["manifests", "--help"],
    &["completion", "bash"],
    &["completion", "zsh"],
    &["man"],
    &["man", "create", "api"],
    &["manifests", "--stdout"],
    &["manifests", "--stdout", "--output", "json"],
    &["manifests", "--check"],
    &["init", "--dry-run"],
    &[
        "create",
        "api",
        "--group",
        "g",
        "--version",
        "v1",
        "--kind",
        "K",
        "--dry-run",
        "--output",
        "json",
    ],
];

#[test]
fn unwritable_output_is_an_error() {
    let folder = project();
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full disk")
    };
    for words in PRINTS {
        let ran = program(&folder, words).stdout(full()).output().expect("it runs");
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_ne!(ran.status.code(), Some(0), "{words:?}");
        assert!(
            err.contains("error: cannot write to standard output: No space left"),
            "{words:?}: {err}"
        );

        // A read-only stream doesn't accept output either.
        let ran = program(&folder, words)
            .stdout(File::open("/dev/null").unwrap())
            .output()
            .expect("it runs");
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_ne!(ran.status.code(), Some(0), "{words:?}");
        assert!(
            err.contains("error: cannot write to standard output: Bad file"),
            "{words:?}: {err}"
        );

        // It isn't an error if a reader closes the pipe.
        let mut child = program(&folder, words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = child.wait_with_output().expect("it runs");
        assert_eq!(
            ran.status.code(),
            Some(0),
            "{words:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        assert!(
            !String::from_utf8_lossy(&ran.stderr).contains("cannot write"),
            "{words:?}"
        );
    }
    // Error messages are output, too.
    for words in [
        &["frobnicate"][..],
        &["manifests", "--nonsense"],
        &["create"],
        &["manifests", "-p", "nobody"],
    ] {
        let ran = program(&folder, words).stderr(full()).output().expect("it runs");
        assert_ne!(ran.status.code(), Some(0), "{words:?}");
    }
    // A note is lost here, but the product is written.
    let ran = program(&folder, &["init", "--dry-run", "--owner", "Somebody", "--force"])
        .stderr(full())
        .output();
    assert_eq!(ran.expect("it runs").status.code(), Some(1));
    // This prints messages and their summary.
    folder.write("src/lib.rs", "pub struct {\n");
    let words = ["manifests", "--message-format", "json"];
    let ran = program(&folder, &words).stdout(full()).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(1));
}

#[test]
fn rejects_overlong_names() {
    let folder = project();
    let long = "x".repeat(300);
    for line in [
        format!("manifests --config-dir {long}"),
        format!("manifests --crd-dir a/{long}/b"),
        format!("init {long} --domain example.com"),
        format!("create api --group {long} --version v1 --kind Cup"),
        format!("create api --group g --version v1 --kind C{long}"),
    ] {
        let ran = folder.run(&line);
        assert_eq!(ran.code, 1, "{line}");
        assert!(!ran.err.contains("os error"), "{line}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
    for path in [long.clone(), "d/".repeat(5000)] {
        for line in ["manifests", "init --domain example.com", "manifests --check", API] {
            let ran = folder.inside(&path).run(line);
            assert_eq!(ran.code, 1, "{line}");
            assert!(
                ran.err.contains("too long") && !ran.err.contains("os error"),
                "{}",
                ran.err
            );
        }
    }
    // The name itself fits, but the names of its temporary files would be too long.
    let path = format!("{}/{}", "a/b", "y".repeat(250));
    folder.run(&format!("manifests --config-dir {path}")).ok();
    assert!(folder.path().join(path).join("rbac/role.yaml").is_file());
}
