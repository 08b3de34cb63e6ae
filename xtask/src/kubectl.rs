//! kubectl, from the path or built, for the cluster of a kubeconfig.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::assets;
use crate::sh::Cmd;

/// kubectl with a cluster.
pub(crate) struct Kubectl {
    /// The folder of the program if it was built.
    folder: Option<PathBuf>,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Finds kubectl, or builds it.
    ///
    /// # Errors
    ///
    /// As [`assets::ensure_kubectl`].
    pub(crate) fn find(kubeconfig: &Path) -> Result<Self> {
        Ok(Kubectl {
            folder: assets::ensure_kubectl()?,
            kubeconfig: kubeconfig.to_owned(),
        })
    }

    /// A kubectl command; the line is without `kubectl`.
    ///
    /// # Errors
    ///
    /// `PATH` cannot be extended.
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
