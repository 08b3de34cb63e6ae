//! Directories and files that only the current user can access, whatever the umask. Everything that
//! contains a key, a token or a kubeconfig is written through this module.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::TempDir;

/// Creates a directory in the system's directory for temporary files, with mode 0700 on Unix.
///
/// `tempfile` on its own leaves the mode of directories to the umask.
///
/// # Errors
///
/// Returns an error if the directory can't be created.
pub fn private_folder(prefix: &str) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

/// Writes a file, with mode 0600 on Unix. An existing file gets the mode before its new contents.
///
/// # Errors
///
/// Returns an error if the file can't be created or written.
pub fn write_private(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    create_private(path)?.write_all(contents.as_ref())
}

/// Creates or truncates a file for writing, with mode 0600 on Unix.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    open_private(path, &mut options)
}

/// Opens a file with mode 0600 on Unix.
pub(crate) fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let file = options.mode(0o600).open(path)?;
        // The mode in `options` only applies to new files.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;
    use crate::workspace::Workspace;

    const CHILD: &str = "RBUILDER_TEST_WITHOUT_UMASK";

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn check_modes(folder: &Path) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }

    /// The umask belongs to the whole process, so a child process runs the test.
    #[test]
    fn modes_do_not_depend_on_umask() {
        if std::env::var_os(CHILD).is_some() {
            return check_modes_of_written_files();
        }
        let ran = Command::new("/bin/sh")
            .args(["-c", r#"umask 0 && exec "$@""#, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "private::tests::modes_do_not_depend_on_umask"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }

    fn check_modes_of_written_files() {
        let workspace = Workspace::create().unwrap();
        fs::write(workspace.path().join("open"), "").unwrap();
        assert_eq!(mode(&workspace.path().join("open")), 0o666, "the umask is not 0");
        workspace.write("open", "secret").unwrap();
        workspace.write("kubeconfig", "secret").unwrap();
        check_modes(workspace.path());
        assert!(workspace.path().join("processes").is_file());

        let folder = private_folder("rbuilder-test-").unwrap();
        write_private(&folder.path().join("tls.key"), "secret").unwrap();
        check_modes(folder.path());
    }
}
