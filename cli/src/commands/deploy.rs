//! `rbuilder deploy` and `rbuilder undeploy`: applies and deletes the manager with all that it needs, as the targets of
//! the project's Makefile do, without make and a shell.

use std::path::Path;

use anyhow::{Result, bail};

use super::install::{APPLY, delete};
use super::{find_kubectl, manifests};
use crate::cluster::{PLACEHOLDER, find_placeholder, parse_documents, set_image, to_list};
use crate::flags::{DeleteFlags, DeployFlags};
use crate::shell::Shell;

/// The directory that is rendered.
const ALL: &str = "config/default";

pub(super) fn deploy(dir: &Path, flags: &DeployFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster)?;
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let rendered = kubectl.render(ALL)?;
    let objects = with_image(&rendered, flags.image.as_deref())?;
    if let Some(image) = &flags.image {
        shell.note(&format!("image `{PLACEHOLDER}` is {image}\n"));
    }
    kubectl.show_pipe(ALL, &APPLY, shell);
    kubectl.run(&APPLY, &objects, shell)?;
    Ok(0)
}

/// Puts the image in its place in rendered manifests.
///
/// # Errors
/// Fails if there is no place for it, or no image for the place.
fn with_image(rendered: &str, image: Option<&str>) -> Result<String> {
    let mut objects = parse_documents(rendered)?;
    match image {
        Some(image) if set_image(&mut objects, image) > 0 => Ok(to_list(&objects)),
        Some(image) => bail!(
            "no container in {ALL} has the image `{PLACEHOLDER}`, which `--image {image}` replaces: write \
             `image: {PLACEHOLDER}:latest` in config/manager/manager.yaml, or leave out `--image`"
        ),
        None => match find_placeholder(&mut objects) {
            None => Ok(rendered.to_owned()),
            Some(found) => bail!(
                "the image `{found}` in config/manager/manager.yaml only stands for the manager's: pass \
                 `--image REGISTRY/NAME:TAG`"
            ),
        },
    }
}

pub(super) fn undeploy(dir: &Path, flags: &DeleteFlags, shell: &mut Shell) -> Result<u8> {
    delete(ALL, dir, flags, shell)
}
