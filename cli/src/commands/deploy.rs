//! `rbuilder deploy`: applies the manager with all that it needs, as `make deploy` does, without make
//! and a shell.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::install::{ALL, APPLY};
use super::removal::apply_namespaces;
use super::{find_kubectl, manifests};
use crate::cluster::{parse_documents, set_image, to_list};
use crate::flags::DeployFlags;
use crate::shell::Shell;

pub(super) fn deploy(dir: &Path, flags: &DeployFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster)?;
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let rendered = kubectl.render(ALL)?;
    let (namespaces, objects): (Vec<Value>, Vec<Value>) = with_image(&rendered, &flags.image)?
        .into_iter()
        .partition(|object| object["kind"] == "Namespace");
    shell.note(&format!("the image of the manager is {}\n", flags.image));
    kubectl.show_pipe(ALL, &APPLY, shell);
    apply_namespaces(&kubectl, &namespaces, shell)?;
    kubectl.run(&APPLY, &to_list(&objects), shell)?;
    Ok(0)
}

/// Sets the image of the manager in rendered manifests.
///
/// # Errors
/// Fails if there is no manager.
fn with_image(rendered: &str, image: &str) -> Result<Vec<Value>> {
    let mut objects = parse_documents(rendered)?;
    ensure!(
        set_image(&mut objects, image) > 0,
        "{ALL} has no Deployment with the label control-plane=controller-manager: no image was set"
    );
    Ok(objects)
}
