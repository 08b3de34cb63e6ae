//! A directory in which to run commands, with helpers for tests.
#![allow(dead_code, clippy::disallowed_methods, clippy::disallowed_macros)] // the tests access the disk

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rbuilder_cli::shell::Shell;
use walkdir::WalkDir;

pub(crate) struct Folder(tempfile::TempDir);

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Fails the test if the command has failed.
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }
}

impl Folder {
    /// Creates the directory in memory if possible. On disk, tests of the command would mostly wait
    /// for I/O.
    pub(crate) fn new() -> Folder {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Folder(folder.expect("a temporary folder"))
    }

    /// The project is `shop`, and the kind is `Cup`.
    pub(crate) fn with_cup() -> Folder {
        Folder::with_api("shop", "--group cache --version v1 --kind Cup")
    }

    /// `api` has the flags of `create api`.
    pub(crate) fn with_api(project: &str, api: &str) -> Folder {
        let folder = Folder::new();
        folder
            .run(&format!("init --domain example.com --project-name {project}"))
            .ok();
        folder.run(&format!("create api {api}")).ok();
        folder
    }

    /// `line` has the arguments of git, with spaces between them.
    pub(crate) fn git(&self, line: &str) {
        let ran = std::process::Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(line.split(' '))
            .output()
            .expect("git runs");
        assert!(ran.status.success(), "{line}: {ran:?}");
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        run(self.path(), line)
    }

    pub(crate) fn inside(&self, path: &str) -> Inside {
        Inside(self.path().join(path))
    }

    /// Hidden files are included.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        tree(self.path())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("within the folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    #[cfg(unix)]
    pub(crate) fn write_program(&self, path: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(path, text);
        fs::set_permissions(self.path().join(path), fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// The file must contain the text, and only the first occurrence is replaced.
    #[track_caller]
    pub(crate) fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.tree()[path].clone();
        assert!(text.contains(from), "{path}:\n{text}");
        self.write(path, &text.replacen(from, to, 1));
    }

    /// Fails the test if a command would write something, or if its `--check` reports something.
    #[track_caller]
    pub(crate) fn check_unchanged(&self, command: &str) {
        for line in [command.to_owned(), format!("{command} --check")] {
            let ran = self.run(&line).ok();
            assert!(ran.out.starts_with("unchanged"), "{line}: {}", ran.out);
        }
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path().join(path)).expect("a file to remove");
    }

    /// The copy is next to the directory.
    pub(crate) fn copy(&self) -> Folder {
        let above = self.path().parent().expect("a temporary folder is in another");
        let copy = Folder(tempfile::tempdir_in(above).expect("a temporary folder"));
        copy.write_all(&self.tree());
        copy
    }

    pub(crate) fn save(&self) -> Saved {
        Saved(self.tree())
    }

    fn write_all(&self, files: &BTreeMap<String, String>) {
        for (path, text) in files {
            self.write(path, text);
        }
    }
}

/// For use in a `static`. Since statics are never dropped, a [`Folder`] in one would stay behind
/// after the test.
pub(crate) struct Saved(BTreeMap<String, String>);

impl Saved {
    pub(crate) fn copy(&self) -> Folder {
        let folder = Folder::new();
        folder.write_all(&self.0);
        folder
    }
}

pub(crate) struct Inside(PathBuf);

impl Inside {
    pub(crate) fn run(&self, line: &str) -> Ran {
        run(&self.0, line)
    }
}

fn run(folder: &Path, line: &str) -> Ran {
    let (out, err) = (Sink::default(), Sink::default());
    let mut shell = Shell::to(Box::new(out.clone()), Box::new(err.clone()));
    let folder = folder.to_str().expect("a plain path");
    let words = ["rbuilder", "-C", folder]
        .into_iter()
        .chain(line.split_whitespace());
    let code = rbuilder_cli::run(words, &mut shell);
    Ran {
        code,
        out: out.text(),
        err: err.text(),
    }
}

/// An empty directory has a trailing `/` and no text.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut tree = BTreeMap::new();
    for entry in WalkDir::new(root) {
        let entry = entry.expect("a readable folder");
        let path = entry
            .path()
            .strip_prefix(root)
            .expect("within the root")
            .to_string_lossy()
            .replace('\\', "/");
        if entry.file_type().is_file() {
            tree.insert(path, fs::read_to_string(entry.path()).expect("text"));
        } else if entry.file_type().is_dir() && fs::read_dir(entry.path()).expect("a folder").next().is_none()
        {
            tree.insert(format!("{path}/"), String::new());
        }
    }
    tree
}

/// Compares the text with a committed file, or writes the file if `SNAPSHOTS=overwrite` is set.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, expected,
        "{name} differs; `SNAPSHOTS=overwrite cargo test` accepts it"
    );
}

#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("text")
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
