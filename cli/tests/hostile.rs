//! A project directory may contain files from a repository, an archive or another program. Commands
//! must not act on them, must not change or show anything outside of the directory, and must not
//! block on them.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // the tests create the input

#[path = "hostile/output.rs"]
mod output;
#[path = "hostile/source.rs"]
mod source;
use crate::support;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rbuilder_project::plan::apply::JOURNAL;
use support::{Folder, Ran};

const API: &str = "create api --group cache --version v1 --kind Cup";
const READS: [&str; 4] = [
    "manifests --check",
    "manifests --dry-run",
    "manifests --stdout",
    "create api --group cache --version v1 --kind Cup --dry-run",
];
const WRITES: [&str; 3] = ["manifests", API, "init"];

type MakeAt<'a> = &'a dyn Fn(&Path);

fn project() -> Folder {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder
}

/// No command may access this directory.
struct Outside(Folder);

impl Outside {
    fn new() -> Outside {
        let folder = Folder::new();
        folder.write("secret", "secret: hunter2\n");
        folder.write("inner/lib.rs", "pub struct hunter2\n");
        Outside(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[track_caller]
    fn check(&self, what: &str) {
        let tree = self.0.tree();
        let names: Vec<&str> = tree.keys().map(String::as_str).collect();
        assert_eq!(names, ["inner/lib.rs", "secret"], "{what}");
        assert_eq!(tree["secret"], "secret: hunter2\n", "{what}");
    }
}

/// Fails if the command takes too long.
#[track_caller]
fn quickly(folder: &Folder, line: &str) -> Ran {
    let started = Instant::now();
    let ran = folder.run(line);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{line} took {:?}",
        started.elapsed()
    );
    ran
}

/// Commands that write must reject the journal for this reason. Commands that read must report it
/// and go on. Either way, nothing changes.
#[track_caller]
fn refused(folder: &Folder, outside: &Outside, reason: &str) {
    let look = || {
        let mut command = Command::new("find");
        let ran = command
            .arg(folder.path())
            .args(["-printf", "%P %y %i %s %m %l\n"])
            .output()
            .expect("find");
        let mut lines: Vec<String> = String::from_utf8_lossy(&ran.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let before = look();
    for line in WRITES {
        let ran = quickly(folder, line);
        assert_eq!(ran.code, 1, "{reason}: {line}: {}", ran.err);
        assert!(
            ran.err.contains(JOURNAL) && ran.err.contains(reason) && ran.err.contains("remove it"),
            "{reason}: {line}: {}",
            ran.err
        );
    }
    for line in READS {
        let ran = quickly(folder, line).ok();
        assert!(
            ran.err.contains("warning: ") && ran.err.contains(reason),
            "{reason}: {line}: {}",
            ran.err
        );
    }
    assert_eq!(look(), before, "{reason}");
    outside.check(reason);
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).expect("it is there").ino()
}

/// The journal has what its author can't know, namely its own inode and the inode of the directory.
fn forge(folder: &Folder, folders: &str, entries: &str, rest: &str) {
    let journal = folder.path().join(JOURNAL);
    File::create(&journal).expect("a file");
    let text = format!(
        "{{\"begin\":{{\"format\":3,\"journal\":{},\"root\":{},\"folders\":[{folders}],\"entries\":[{entries}]}}}}\n{rest}",
        inode(&journal),
        inode(folder.path())
    );
    fs::write(journal, text).expect("a file");
}

fn create_entry(path: &str, text: &str) -> String {
    let (length, checksum) = (text.len(), crc32fast::hash(text.as_bytes()));
    format!(
        "{{\"path\":\"{path}\",\"action\":\"create\",\"before\":null,\"after\":{{\"length\":{length},\"checksum\":{checksum}}}}}"
    )
}

#[test]
fn rejects_files_that_cannot_be_a_journal() {
    let outside = Outside::new();
    let secret = outside.path("secret");
    let fifo = |path: &Path| {
        let ran = Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(ran.success());
    };
    let cases: [(&str, MakeAt); 11] = [
        ("it is a symbolic link", &|path| symlink(&secret, path).unwrap()),
        ("it is a symbolic link", &|path| symlink("nowhere", path).unwrap()),
        ("it is a symbolic link", &|path| {
            symlink("/dev/zero", path).unwrap()
        }),
        ("it is a symbolic link", &|path| symlink(JOURNAL, path).unwrap()),
        ("it is a directory", &|path| fs::create_dir(path).unwrap()),
        ("it is a pipe, a socket or a device", &|path| fifo(path)),
        ("it is a pipe, a socket or a device", &|path| {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }),
        ("it has more than one hard link", &|path| {
            fs::write(path.with_file_name("other"), "").unwrap();
            fs::hard_link(path.with_file_name("other"), path).unwrap();
        }),
        ("it is too large", &|path| {
            File::create(path).unwrap().set_len(1 << 40).unwrap()
        }),
        ("line 1 is invalid", &|path| fs::write(path, "[]\n").unwrap()),
        ("it is not valid UTF-8", &|path| {
            fs::write(path, b"\xff\xfe\n").unwrap()
        }),
    ];
    for (reason, make) in cases {
        let folder = project();
        make(&folder.path().join(JOURNAL));
        refused(&folder, &outside, reason);
    }
}

/// In the format of an earlier rbuilder, the journal itself listed what to rename and remove.
#[test]
fn rejects_journals_in_an_older_format() {
    let outside = Outside::new();
    let secret = outside.path("secret").display().to_string();
    for (path, staged, backup) in [
        (secret.as_str(), "gone", "gone"),
        (".git/hooks/pre-commit", "gone", "payload"),
        ("PROJECT", "gone", secret.as_str()),
        ("link/secret", "gone", "gone"),
    ] {
        let folder = project();
        folder.write("payload", "#!/bin/sh\n");
        symlink(outside.path(""), folder.path().join("link")).unwrap();
        for action in ["create", "write", "delete"] {
            let entry = format!(
                "{{\"path\":\"{path}\",\"action\":\"{action}\",\"staged\":\"{staged}\",\"backup\":\"{backup}\",\"hash\":\"0\"}}"
            );
            folder.write(
                JOURNAL,
                &format!("{{\"folders\":[],\"entries\":[{entry}]}}\nstaged\nrenamed\n"),
            );
            refused(&folder, &outside, "line 1 is invalid");
        }
    }
}

#[test]
fn rejects_journals_with_forbidden_paths() {
    let outside = Outside::new();
    for path in [
        outside.path("secret").to_str().unwrap(),
        "../secret",
        "a/../../secret",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/config",
        ".cargo/config.toml",
        ".rbuilder-journal",
    ] {
        let folder = project();
        forge(
            &folder,
            "",
            &create_entry(path, "secret: hunter2\n"),
            "{\"staged\":[{\"staged\":1,\"backup\":0}]}\n",
        );
        refused(&folder, &outside, "which no command writes");
    }
}

/// Even if the inodes in a journal are right, it must not lead out of the directory, or remove a
/// file that was not staged.
#[test]
fn forged_journal_cannot_leave_the_directory() {
    let outside = Outside::new();
    let text = "secret: hunter2\n";
    let staged = |inode: u64| format!("{{\"staged\":[{{\"staged\":{inode},\"backup\":0}}]}}\n");

    // Go through a directory that is a link.
    let folder = project();
    symlink(outside.path(""), folder.path().join("link")).unwrap();
    forge(
        &folder,
        "",
        &create_entry("link/secret", text),
        &staged(inode(&outside.path("secret"))),
    );
    for line in WRITES {
        let ran = quickly(&folder, line);
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("`link`") || ran.err.contains("link is a symbolic link"),
            "{}",
            ran.err
        );
    }
    outside.check("a link to a folder");

    // Now the target, the staged file and the backup are symbolic links, or additional hard links
    // to a foreign file.
    for name in ["a.yaml", ".a.yaml.rbuilder-new", ".a.yaml.rbuilder-old"] {
        let secret = outside.path("secret");
        let links: [&dyn Fn(&Path); 2] = [&|path| symlink(&secret, path).unwrap(), &|path| {
            fs::hard_link(&secret, path).unwrap();
        }];
        for link in links {
            let folder = project();
            link(&folder.path().join(name));
            forge(
                &folder,
                "",
                &create_entry("a.yaml", text),
                &staged(inode(&secret)),
            );
            let _ = quickly(&folder, "manifests");
            outside.check(name);
            for entry in fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                assert!(
                    !entry.file_name().to_string_lossy().starts_with(name) || inode(&entry.path()) != 0,
                    "{name} is gone"
                );
            }
            let left = fs::read_dir(folder.path()).unwrap().filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().contains("a.yaml")
            });
            assert_eq!(left.count(), 1, "{name} was removed");
        }
    }

    // This file has the expected text, but no command staged it.
    let folder = project();
    folder.write("a.yaml", text);
    forge(&folder, "", &create_entry("a.yaml", text), &staged(1));
    let ran = quickly(&folder, "manifests").ok();
    assert!(ran.err.contains("`a.yaml.rbuilder-kept`"), "{}", ran.err);
    assert_eq!(folder.tree()["a.yaml.rbuilder-kept"], text);
}

#[test]
fn rejects_copied_and_tracked_journals() {
    let outside = Outside::new();
    let folder = project();
    forge(&folder, "", &create_entry("a.yaml", ""), "");
    let copy = project();
    copy.write(JOURNAL, &folder.tree()[JOURNAL]);
    refused(&copy, &outside, "it was copied from elsewhere");

    // The journal is tracked by git in the repository of the project, so its content doesn't
    // matter.
    for around in [false, true] {
        let repository = Folder::new();
        let below = if around { "op" } else { "." };
        let inner = repository.path().join(below);
        fs::create_dir_all(&inner).unwrap();
        let run = |line: &str| repository.inside(below).run(line);
        run("init --domain example.com --project-name shop").ok();
        fs::write(inner.join(JOURNAL), "").unwrap();
        for words in [vec!["init", "-q"], vec!["add", "-f", "."]] {
            let git = Command::new("git")
                .arg("-C")
                .arg(repository.path())
                .args(words)
                .status();
            assert!(git.unwrap().success());
        }
        for line in WRITES {
            let ran = run(line);
            assert_eq!(ran.code, 1);
            assert!(ran.err.contains("git tracks it"), "{}", ran.err);
        }
        assert!(inner.join(JOURNAL).is_file() && !inner.join("src/api/v1").exists());
        fs::remove_file(inner.join(JOURNAL)).unwrap();
        run("manifests").ok();
    }
}

/// As long as the first line is incomplete, no change was made, so the journal must not get in the
/// way.
#[test]
fn ignores_incomplete_journals() {
    for text in ["", "{\"begin\":{\"format\":3,"] {
        let folder = project();
        folder.write(JOURNAL, text);
        for line in READS {
            let ran = folder.run(line).ok();
            assert!(!ran.err.contains("warning"), "{}", ran.err);
        }
        assert_eq!(folder.tree()[JOURNAL], text);
        folder.run(API).ok();
        assert!(!folder.tree().contains_key(JOURNAL));
    }
}

/// While commands write, a directory is swapped with a link again and again. Nothing may be written
/// through the link.
#[test]
fn swapped_directories_are_not_written_through() {
    let outside = Outside::new();
    fs::create_dir(outside.path("crd")).unwrap();
    fs::write(outside.path("crd/kustomization.yaml"), "resources: []\n").unwrap();
    let folder = project();
    let config = folder.path().join("config");
    let away = folder.path().join("away");
    let stop = AtomicBool::new(false);
    let swaps = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                fs::rename(&config, &away).unwrap();
                symlink(outside.path(""), &config).unwrap();
                std::thread::yield_now();
                fs::remove_file(&config).unwrap();
                fs::rename(&away, &config).unwrap();
                std::thread::sleep(Duration::from_micros(300));
                swaps += 1;
            }
            swaps
        });
        let started = Instant::now();
        let mut kind = 0;
        while started.elapsed() < Duration::from_secs(3) {
            let _ = folder.run(&format!("create api --group cache --version v1 --kind Cup{kind}"));
            kind += 1;
        }
        stop.store(true, Ordering::Relaxed);
        swapping.join().unwrap()
    });
    assert!(swaps > 10, "{swaps}");
    fs::remove_file(outside.path("crd/kustomization.yaml")).unwrap();
    fs::remove_dir(outside.path("crd")).unwrap();
    outside.check("a swapped folder");
}

#[test]
fn concurrent_checks_see_a_consistent_state() {
    let folder = project();
    let stop = AtomicBool::new(false);
    let checks = AtomicUsize::new(0);
    let started = Instant::now();
    let is_in_time = || started.elapsed() < Duration::from_secs(60);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut kinds = 0;
            // Go on for a while, since starting a process takes long on a busy machine.
            let is_enough = |kinds| kinds >= 12 && checks.load(Ordering::Relaxed) > 3;
            while !stop.load(Ordering::Relaxed) && !is_enough(kinds) && is_in_time() {
                folder
                    .run(&format!(
                        "create api --group cache --version v1 --kind Cup{kinds}"
                    ))
                    .ok();
                kinds += 1;
                std::thread::sleep(Duration::from_millis(40));
            }
            kinds
        });
        while !writing.is_finished() && is_in_time() {
            // Use a separate process, like a hook or an editor would.
            let ran = program(&folder, &["manifests", "--check"])
                .output()
                .expect("it runs");
            let err = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(
                ran.status.success() || err.contains("is running in"),
                "{err}{}",
                String::from_utf8_lossy(&ran.stdout)
            );
            checks.fetch_add(1, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writing.join().unwrap() > 3);
        let checks = checks.load(Ordering::Relaxed);
        assert!(checks > 3, "{checks}");
    });
}

/// A command that reads has to wait for one that writes, but not forever.
#[test]
fn check_waits_for_a_running_command() {
    let folder = project();
    let before = folder.tree();
    let other = File::create(folder.path().join(JOURNAL)).unwrap();
    other.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            fs::remove_file(folder.path().join(JOURNAL)).unwrap();
            drop(other);
        });
        let started = Instant::now();
        folder.run("manifests --check").ok();
        assert!(started.elapsed() >= Duration::from_millis(200));
    });
    let other = File::create(folder.path().join(JOURNAL)).unwrap();
    other.lock().unwrap();
    let ran = quickly(&folder, "manifests --check");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("another rbuilder command is running in"),
        "{}",
        ran.err
    );
    drop(other);
    fs::remove_file(folder.path().join(JOURNAL)).unwrap();
    assert_eq!(folder.tree(), before);
}

fn program(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rbuilder"));
    command.arg("-C").arg(folder.path()).args(words);
    command
}
