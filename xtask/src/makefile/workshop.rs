//! A scaffold whose Makefile calls stand-ins, which are on its `PATH`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::committed::{Files, read_tree};
use crate::repo;
use crate::sh::{Cmd, find_program, write_program};

/// The POSIX programs that may be used in Makefiles.
const POSIX: &[&str] = &[
    "awk", "cat", "cp", "grep", "head", "make", "mkdir", "mv", "rm", "sed", "sh",
];

/// The beginning of each stand-in. It adds the call to the file `calls`, which is next to the
/// project.
const NOTE: &str = "#!/bin/sh\necho \"${0##*/} $*\" >> \"$CALLS\"\n";

/// The stand-in for kubectl. It can render, but only records what it would send to a cluster.
const KUBECTL: &str = r#"case "$1" in
kustomize) exec "$KUBECTL_ITSELF" "$@" ;;
esac
for file; do :; done
case "$file" in
-) cat >> "$CALLS" ;;
*) cat "$file" >> "$CALLS" ;;
esac
"#;

/// A folder that contains a project and all programs on `PATH`.
pub(super) struct Workshop {
    folder: tempfile::TempDir,
}

/// Result of running make.
pub(super) struct Outcome {
    pub(super) is_success: bool,
    pub(super) printed: String,
    /// All calls to stand-ins, including their input.
    pub(super) calls: String,
}

impl Workshop {
    /// Scaffolds a project. It has one API.
    pub(super) fn scaffold(bin: &Path) -> Result<Self> {
        let workshop = Workshop::empty()?;
        let project = workshop.folder.path().join("project");
        fs_err::create_dir(&project)?;
        for line in [
            "init --domain example.com --project-name made-operator --library path",
            "create api --group cache --version v1alpha1 --kind Memcached",
        ] {
            repo::rbuilder_command(bin, &project, line)?.read()?;
        }
        fs_err::write(project.join("Cargo.lock"), "")?;
        workshop.write_programs()?;
        Ok(workshop)
    }

    fn empty() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("rbuilder-makefile-").tempdir()?;
        Ok(Workshop { folder })
    }

    fn write_programs(&self) -> Result<()> {
        fs_err::create_dir(self.folder.path().join("programs"))?;
        for name in POSIX {
            let program = find_program(name)?;
            let script = format!("#!/bin/sh\nexec {} \"$@\"\n", program.display());
            self.write_script(&format!("programs/{name}"), &script)?;
        }
        let version = fs_err::read_to_string(self.folder.path().join("project/PROJECT"))?;
        let version = version.lines().find_map(|line| line.strip_prefix("cliVersion: "));
        let version = version.context("PROJECT names no version")?;
        self.write_program("programs/rbuilder", &format!("echo 'rbuilder {version}'\n"))?;
        self.write_program("programs/kubectl", KUBECTL)?;
        for name in ["cargo", "docker", "podman"] {
            self.write_program(&format!("programs/{name}"), "")?;
        }
        Ok(())
    }

    /// Returns a copy of the folder, which a case is free to change.
    pub(super) fn copy(&self) -> Result<Self> {
        let copy = Workshop::empty()?;
        for name in ["project", "programs"] {
            Cmd::new("cp -R")
                .arg(self.folder.path().join(name))
                .arg(copy.folder.path())
                .run()?;
        }
        Ok(copy)
    }

    /// Writes a program which runs `script` after recording the call.
    pub(super) fn write_program(&self, path: &str, script: &str) -> Result<()> {
        self.write_script(path, &format!("{NOTE}{script}"))
    }

    fn write_script(&self, path: &str, script: &str) -> Result<()> {
        let path = self.folder.path().join(path);
        fs_err::create_dir_all(path.parent().context("a program has a folder")?)?;
        write_program(&path, script)
    }

    /// Writes a file to the project.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.folder.path().join("project").join(path);
        fs_err::create_dir_all(path.parent().context("a file has a folder")?)?;
        Ok(fs_err::write(path, text)?)
    }

    pub(super) fn remove(&self, path: &str) -> Result<()> {
        Ok(fs_err::remove_file(self.folder.path().join(path))?)
    }

    /// Replaces all lines of a file in the project that start with `start`.
    pub(super) fn edit_line(&self, path: &str, start: &str, new: &str) -> Result<()> {
        let path = self.folder.path().join("project").join(path);
        let text = fs_err::read_to_string(&path)?;
        let lines = text.lines().map(|line| match line.starts_with(start) {
            true => format!("{new}\n"),
            false => format!("{line}\n"),
        });
        let edited: String = lines.collect();
        ensure!(edited != text, "{} has no line `{start}…`", path.display());
        Ok(fs_err::write(path, edited)?)
    }

    /// Changes the library's source.
    pub(super) fn use_library(&self, source: &str) -> Result<()> {
        let line = format!("rbuilder = {{ package = \"rbuilder-runtime\", {source} }}");
        self.edit_line("Cargo.toml", "rbuilder = ", &line)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.folder.path().join("project").join(path).exists()
    }

    pub(super) fn read_config(&self) -> Result<Files> {
        read_tree(&self.folder.path().join("project/config"))
    }

    /// Runs make. Only the stand-ins and the POSIX programs are on `PATH`.
    pub(super) fn make(&self, arguments: &str) -> Result<Outcome> {
        let folder = self.folder.path();
        let kubectl = Cmd::new("sh -c 'command -v kubectl'").read()?;
        let printed = fs_err::File::create(folder.join("printed"))?.into_parts().0;
        let calls = folder.join("calls");
        fs_err::write(&calls, "")?;
        let is_success = Cmd::new("make")
            .words(arguments)
            .dir(&folder.join("project"))
            .env("PATH", folder.join("programs"))
            .env("CALLS", &calls)
            .env("KUBECTL_ITSELF", kubectl.trim_end())
            .without("MAKEFLAGS")
            // This is set by cargo for child processes. We must remove it, since the Makefile would
            // use it.
            .without("CARGO")
            .run_into(&printed)
            .is_ok();
        Ok(Outcome {
            is_success,
            printed: fs_err::read_to_string(folder.join("printed"))?,
            calls: fs_err::read_to_string(calls)?,
        })
    }
}
