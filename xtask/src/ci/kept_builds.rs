//! Tests `.ci/keep-builds` by building clones of a small package.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::repo;
use crate::sh::Cmd;

/// Folder with the clones. Also contains the target folder that they share.
struct Places {
    folder: TempDir,
}

impl Places {
    fn new() -> Self {
        Places {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    /// Creates a clone. If there's already one with this name, it is replaced.
    fn clone_to(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let clone = self.folder.path().join(name);
        if clone.exists() {
            fs_err::remove_dir_all(&clone).unwrap();
        }
        let manifest = "[package]\nname = \"sample\"\nedition = \"2024\"\n\n[workspace]\n";
        write(&clone, "Cargo.toml", manifest);
        for (path, text) in files {
            write(&clone, path, text);
        }
        Cmd::new("git init --quiet").dir(&clone).run().unwrap();
        clone
    }

    /// Runs the script, then cargo. Returns the program's output, and whether the package has been
    /// compiled.
    fn build(&self, clone: &Path) -> (bool, String) {
        // Wait for a moment. If two files are written within a few milliseconds, they might have
        // the same modification time.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let in_clone = |command: Cmd| command.dir(clone).env("CARGO_TARGET_DIR", self.target());
        in_clone(Cmd::program(repo::root().join(".ci/keep-builds")))
            .run()
            .unwrap();
        let program = self.target().join("debug/sample");
        let compiled_at = || fs_err::metadata(&program).and_then(|data| data.modified()).ok();
        let before = compiled_at();
        in_clone(Cmd::new("cargo build --quiet --offline")).run().unwrap();
        let printed = Cmd::program(&program).read().unwrap();
        (compiled_at() != before, printed.trim().to_owned())
    }
}

fn write(clone: &Path, path: &str, text: &str) {
    let path = clone.join(path);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

const MAIN: &str = "mod greeting;\nfn main() {\n    println!(\"{}\", greeting::TEXT);\n}\n";
const MAIN_FILE: (&str, &str) = ("src/main.rs", MAIN);
const HELLO: (&str, &str) = ("src/greeting.rs", "pub const TEXT: &str = \"hello\";\n");
const GOODBYE: (&str, &str) = ("src/greeting.rs", "pub const TEXT: &str = \"goodbye\";\n");

fn compiled(text: &str) -> (bool, String) {
    (true, text.to_owned())
}

fn kept(text: &str) -> (bool, String) {
    (false, text.to_owned())
}

#[test]
fn new_clone_compiles_only_changes() {
    let places = Places::new();
    let build = |files: &[(&str, &str)]| places.build(&places.clone_to("here", files));
    assert_eq!(build(&[MAIN_FILE, HELLO]), compiled("hello"));
    assert_eq!(build(&[MAIN_FILE, HELLO]), kept("hello"));
    // An unrelated file doesn't make a difference, even if its name must be quoted.
    let other = ("a file's \"name\"", "");
    assert_eq!(build(&[MAIN_FILE, HELLO, other]), kept("hello"));
    assert_eq!(build(&[MAIN_FILE, GOODBYE]), compiled("goodbye"));
    assert_eq!(build(&[MAIN_FILE, HELLO]), compiled("hello"));
}

#[test]
fn older_clone_is_compiled() {
    let places = Places::new();
    let waiting = places.clone_to("waiting", &[MAIN_FILE, GOODBYE]);
    let here = places.clone_to("here", &[MAIN_FILE, HELLO]);
    assert_eq!(places.build(&here), compiled("hello"));
    fs_err::remove_dir_all(&here).unwrap();
    fs_err::rename(waiting, &here).unwrap();
    assert_eq!(places.build(&here), compiled("goodbye"));
}

#[test]
fn changes_are_compiled_after_run_without_build() {
    let places = Places::new();
    assert_eq!(
        places.build(&places.clone_to("here", &[MAIN_FILE, HELLO])),
        compiled("hello")
    );
    let broken = places.clone_to("here", &[MAIN_FILE, GOODBYE]);
    let script = Cmd::program(repo::root().join(".ci/keep-builds")).dir(&broken);
    script.env("CARGO_TARGET_DIR", places.target()).run().unwrap();
    assert_eq!(
        places.build(&places.clone_to("here", &[MAIN_FILE, GOODBYE])),
        compiled("goodbye")
    );
}

#[test]
fn clone_in_other_folder_is_compiled() {
    let places = Places::new();
    let here = places.clone_to("here", &[MAIN_FILE, HELLO]);
    let there = places.clone_to("there", &[MAIN_FILE, HELLO]);
    assert_eq!(places.build(&here), compiled("hello"));
    assert_eq!(places.build(&there), compiled("hello"));
    assert_eq!(places.build(&here), compiled("hello"));
}

#[test]
fn files_without_git_are_compiled() {
    let places = Places::new();
    let unpack = |files: &[(&str, &str)]| {
        let here = places.clone_to("here", files);
        fs_err::remove_dir_all(here.join(".git")).unwrap();
        here
    };
    assert_eq!(places.build(&unpack(&[MAIN_FILE, HELLO])), compiled("hello"));
    assert_eq!(places.build(&unpack(&[MAIN_FILE, HELLO])), compiled("hello"));
    // A clone doesn't reuse anything compiled from unpacked files, either.
    let clone = places.clone_to("here", &[MAIN_FILE, HELLO]);
    assert_eq!(places.build(&clone), compiled("hello"));
    let waiting = places.clone_to("waiting", &[MAIN_FILE, HELLO]);
    assert_eq!(places.build(&unpack(&[MAIN_FILE, GOODBYE])), compiled("goodbye"));
    fs_err::remove_dir_all(&clone).unwrap();
    fs_err::rename(waiting, &clone).unwrap();
    assert_eq!(places.build(&clone), compiled("hello"));
}

#[test]
fn reused_clone_keeps_modification_times() {
    let places = Places::new();
    let here = places.clone_to("here", &[MAIN_FILE, HELLO]);
    assert_eq!(places.build(&here), compiled("hello"));
    let file = here.join(HELLO.0);
    let modified = || fs_err::metadata(&file).unwrap().modified().unwrap();
    write(&here, GOODBYE.0, GOODBYE.1);
    let before = modified();
    assert_eq!(places.build(&here), compiled("goodbye"));
    assert_eq!(modified(), before);
    assert_eq!(places.build(&here), kept("goodbye"));

    // The modification times are also kept if a clone was built by hand, because cargo compares
    // them with the artifacts.
    let here = places.clone_to("here", &[MAIN_FILE, GOODBYE]);
    fs_err::create_dir(here.join("target")).unwrap();
    let before = modified();
    assert_eq!(places.build(&here), compiled("goodbye"));
    assert_eq!(modified(), before);
}
