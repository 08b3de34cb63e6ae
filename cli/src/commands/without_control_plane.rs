//! Stubs for the commands missing from a build without the feature `control-plane`.

use anyhow::{Error, anyhow};

fn lack(command: &str) -> Error {
    anyhow!(
        "this build of rbuilder has no `rbuilder {command}`: it was compiled without the feature `control-plane`, \
         which is on by default"
    )
}

pub(super) mod dev {
    use std::path::Path;

    use anyhow::Result;

    use crate::flags::DevFlags;
    use crate::shell::Shell;

    pub(crate) fn run(_: &Path, _: &DevFlags, _: &mut Shell) -> Result<u8> {
        Err(super::lack("dev"))
    }
}

pub(super) mod envtest {
    use std::path::{Path, PathBuf};

    use anyhow::Result;

    use crate::flags::Envtest;
    use crate::shell::Shell;

    pub(crate) fn run(_: &Path, _: &Envtest, _: &mut Shell) -> Result<u8> {
        Err(super::lack("envtest"))
    }

    /// Always `None`: such a build has no test environments, which would include a kubectl.
    pub(crate) fn find_installed(_: &Path) -> Option<PathBuf> {
        None
    }
}
