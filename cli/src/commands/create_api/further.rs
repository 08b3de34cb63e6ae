//! Further versions of a kind: shared files, and warnings about them.

use anyhow::Result;
use rbuilder_templates::{ApiContext, Rendered};

use crate::commands::Outcome;
use crate::plan::Plan;
use crate::project::{Project, Resource};
use crate::render::{CopiedParts, types_path};
use crate::tree::Tree;

/// Whether all versions of a kind share a scaffolded file, e.g. roles and the script for Argo CD.
fn is_shared_by_versions(path: &str) -> bool {
    path.starts_with("config/rbac/") || path.starts_with("config/argocd/")
}

/// Keeps existing files that all versions share, and files of a version already listed in PROJECT.
/// Returns the files to write.
pub(super) fn keep_existing_files(
    plan: &mut Plan,
    tree: &Tree,
    files: &[Rendered],
    api: &ApiContext,
    known: bool,
) -> Result<Vec<Rendered>> {
    let test = format!("tests/{}.rs", api.test_module);
    let own = [types_path(api), api.sample_file.clone(), test];
    let mut wanted = Vec::new();
    for file in files {
        let is_kept = is_shared_by_versions(&file.path) || (known && own.contains(&file.path));
        if is_kept && tree.read(&file.path)?.is_some() {
            plan.keep(&file.path);
        } else {
            wanted.push(file.clone());
        }
    }
    Ok(wanted)
}

pub(super) fn warn_unconverted(project: &Project, resource: &Resource, outcome: &mut Outcome) {
    let hubs = project.known.resources.iter().filter(|hub| {
        let webhooks = hub.webhooks.as_ref();
        hub.same_kind(resource)
            && hub.version != resource.version
            && webhooks
                .is_some_and(|webhooks| webhooks.conversion && !webhooks.spoke.contains(&resource.version))
    });
    for hub in hubs {
        outcome.warn(
            &format!(
                "version `{}` of `{}` has no conversion to the hub version `{}`",
                resource.version, hub.kind, hub.version
            ),
            &format!(
                "run `rbuilder create webhook {} --conversion --spoke {}`",
                hub.naming_flags(),
                resource.version
            ),
        );
    }
}

pub(super) fn warn_uncopied(taken: &CopiedParts, api: &ApiContext, outcome: &mut Outcome) {
    let (Some((path, reason)), types) = (&taken.problem, types_path(api)) else {
        return;
    };
    if outcome.plan.changes().contains_key(&types) {
        outcome.warn(
            &format!(
                "{types} does not have the fields of the previous version, because {path} cannot be copied: {reason}"
            ),
            "copy fields, printer columns, subresources and the spec of the sample by hand",
        );
    }
}
