//! Runs kubectl with a given kubeconfig.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::assets;
use crate::sh::Cmd;

pub(crate) struct Kubectl {
    /// If we had to build kubectl, this is the folder that contains it.
    folder: Option<PathBuf>,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn find(kubeconfig: &Path) -> Result<Self> {
        Ok(Kubectl {
            folder: assets::ensure_kubectl()?,
            kubeconfig: kubeconfig.to_owned(),
        })
    }

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
