//! The storage version of a converted kind, which is its hub: every version is converted to and from the hub, so storing
//! another one would convert each request twice.

use anyhow::Result;
use rbuilder_templates::ApiContext;

use super::find_types;
use crate::commands::Outcome;
use crate::commands::create_api::ApiPlaces;
use crate::edit::version::Definition;
use crate::plan::Plan;
use crate::project::{Project, Resource};
use crate::tree::Tree;

/// The change of the storage version to the hub.
#[derive(Debug, Default)]
pub(in crate::commands) struct StorageChange {
    /// The types that were changed.
    changed: Vec<String>,
    /// Types that could not be changed, with the reason.
    problems: Vec<(String, String)>,
}

impl StorageChange {
    /// Makes the hub the storage version. Types in an unusual form are left as they are.
    ///
    /// # Errors
    /// Fails as [`Plan::replace`] does.
    pub(in crate::commands) fn add_to_plan(
        plan: &mut Plan,
        tree: &Tree,
        project: &Project,
        hub: &Resource,
    ) -> Result<StorageChange> {
        let mut found = StorageChange::default();
        let mut texts = Vec::new();
        let versions = project.known.resources.iter();
        for version in versions.filter(|version| version.same_kind(hub) && version.api.is_some()) {
            let api = ApiPlaces::of(project, version).context();
            let path = find_types(plan, tree, &api)?;
            let Some(text) = plan.read(tree, &path)? else {
                continue;
            };
            let changed = Definition::find(&text, &version.kind, &version.version)
                .and_then(|definition| definition.with_storage(version.version == hub.version));
            match changed {
                Ok(None) => {}
                Ok(Some(text)) => texts.push((path, text)),
                Err(reason) => found.problems.push((path, reason)),
            }
        }
        // Half of a change would leave no storage version, or two.
        if found.problems.is_empty() {
            for (path, text) in texts {
                plan.replace(tree, &path, &text)?;
                found.changed.push(path);
            }
        }
        Ok(found)
    }

    /// Warns about the change back to the first version, when the conversion is gone.
    pub(in crate::commands) fn warn_of_first(&self, first: &ApiContext, outcome: &mut Outcome) {
        let (kind, version) = (&first.kind, &first.version);
        if !self.changed.is_empty() {
            outcome.warn(
                &format!("version `{version}` of `{kind}` is the storage version again"),
                "objects in a cluster stay stored as they are; without a conversion all versions must have the same fields",
            );
        }
        self.warn_of_problems(kind, version, "", outcome);
    }

    /// Warns about the change, which affects stored objects, and about types that could not be changed.
    pub(super) fn warn(&self, hub: &ApiContext, outcome: &mut Outcome) {
        let (kind, version) = (&hub.kind, &hub.version);
        if !self.changed.is_empty() {
            outcome.warn(
                &format!("version `{version}` of `{kind}` is now the storage version, as the hub of the conversion"),
                "objects in a cluster stay stored as they are until they are written again; keep all versions until then",
            );
        }
        self.warn_of_problems(kind, version, "the hub ", outcome);
    }

    fn warn_of_problems(&self, kind: &str, version: &str, role: &str, outcome: &mut Outcome) {
        for (path, reason) in &self.problems {
            outcome.warn(
                &format!("the storage version of `{kind}` was not changed to {role}`{version}`, because {path} has an unsupported form: {reason}"),
                &format!("set `storage = false` in the `#[kube(…)]` of every version but `{version}`"),
            );
        }
    }
}
