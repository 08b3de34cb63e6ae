//! The files that belong to each kind. A command for one kind must never overwrite another kind's
//! files.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use rbuilder_kubernetes::gvk;
use rbuilder_templates::{OnExists, Rendered};

use crate::project::{Project, Resource};
use crate::render::Parts;

/// Directories with files that serve the webhooks of all kinds.
const SERVING: [&str; 3] = ["config/certmanager/", "config/network-policy/", "config/webhook/"];

/// Checks that no file to write belongs to another kind in PROJECT. `--force` doesn't override this
/// check, because it only applies to files of the requested kind.
pub(super) fn check_file_owners(project: &Project, wanted: &Resource, files: &[Rendered]) -> Result<()> {
    let is_owned = |file: &&Rendered| file.on_exists == OnExists::Owned;
    let paths: BTreeSet<&str> = files
        .iter()
        .filter(is_owned)
        .map(|file| file.path.as_str())
        .collect();
    // The versions of a kind share its roles.
    for other in project
        .known
        .resources
        .iter()
        .filter(|other| !other.same_kind(wanted))
    {
        let theirs = owned_paths(project, other)?;
        if let Some(path) = theirs.iter().find(|path| paths.contains(path.as_str())) {
            bail!(
                "{path} belongs to kind `{}` of {}, and kind `{}` would use the same path; no files were written: {}",
                other.kind,
                gvk::api_version(&other.qualified_group(), &other.version),
                wanted.kind,
                if wanted.is_foreign() {
                    "choose another name for the controller (`--controller-name`)"
                } else {
                    "choose another kind or group"
                }
            );
        }
    }
    Ok(())
}

fn owned_paths(project: &Project, resource: &Resource) -> Result<BTreeSet<String>> {
    let files = Parts::of_kind(project, resource)?.files.into_iter();
    let owned = files.filter(|file| file.on_exists == OnExists::Owned);
    let own = owned.filter(|file| !SERVING.iter().any(|folder| file.path.starts_with(folder)));
    Ok(own.map(|file| file.path).collect())
}
