//! Directories for keys and kubeconfigs.

use anyhow::Result;
use tempfile::TempDir;

/// Creates a temporary directory that only the current user can access, whatever the umask.
pub(crate) fn private_folder(prefix: &str) -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    Ok(builder.tempdir()?)
}
