//! Runs kubectl on the cluster in a kubeconfig.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::assets;
use crate::sh::Cmd;

/// kubectl for a cluster.
pub(crate) struct Kubectl {
    /// The folder of the binary, if it was built.
    folder: Option<PathBuf>,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Finds or builds kubectl.
    ///
    /// # Errors
    ///
    /// Same as [`assets::ensure_kubectl`].
    pub(crate) fn find(kubeconfig: &Path) -> Result<Self> {
        Ok(Kubectl {
            folder: assets::ensure_kubectl()?,
            kubeconfig: kubeconfig.to_owned(),
        })
    }

    /// Returns a kubectl command. `line` contains its arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if `PATH` cannot be extended.
    pub(crate) fn command(&self, line: &str) -> Result<Cmd> {
        let command = Cmd::new("kubectl")
            .words(line)
            .env("KUBECONFIG", &self.kubeconfig);
        match &self.folder {
            Some(folder) => command.path_first(folder),
            None => Ok(command),
        }
    }
}
