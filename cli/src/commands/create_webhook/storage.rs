//! The storage version of a kind with a conversion. It should be the hub: every version converts to
//! and from the hub, so with any other storage version each request would convert twice.
//!
//! We only change the storage version while no cluster can contain objects of the kind. Otherwise,
//! the API server would call the conversion for every request in the old version, and these
//! requests would fail until the operator with the conversion is deployed. In that case the storage
//! version stays, and we explain how to change it once every replica converts.
//!
//! Clusters may contain objects if git tracks the CRD with a different storage version. An
//! untracked CRD has only been used by its author and was not released.

use anyhow::Result;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_templates::ApiContext;

use crate::commands::Outcome;
use crate::commands::edits::find_types;
use crate::edit::version::Definition;
use crate::plan::{Plan, check_path_untracked};
use crate::project::{Project, Resource};
use crate::render::ApiPlaces;
use crate::tree::Tree;

#[derive(Debug, Default)]
pub(in crate::commands) struct StorageChange {
    changed: Vec<String>,
    /// Files whose types could not be changed, with the reason.
    problems: Vec<(String, String)>,
    /// The change left to the user because clusters may contain objects.
    left: Option<LeftChange>,
}

/// A change of the storage version that the user must make once every replica converts.
#[derive(Debug)]
struct LeftChange {
    /// The version that remains the storage version.
    stored: String,
    /// Why objects may be stored in it.
    reason: String,
    /// The file of each version to change, and whether this version becomes the storage version.
    files: Vec<(String, bool)>,
}

impl StorageChange {
    /// Makes a version the storage version, unless clusters may contain objects in a different one.
    /// Types of an unsupported form are left alone.
    pub(in crate::commands) fn to(
        plan: &mut Plan,
        tree: &Tree,
        project: &Project,
        wanted: &Resource,
    ) -> Result<StorageChange> {
        let Some((stored, reason)) = find_released(tree, project, wanted)? else {
            return StorageChange::add_to_plan(plan, tree, project, wanted);
        };
        let (found, texts) = StorageChange::find(plan, tree, project, wanted)?;
        let files: Vec<(String, bool)> = texts
            .into_iter()
            .map(|text| (text.path, text.becomes_stored))
            .collect();
        let left = (!files.is_empty()).then_some(LeftChange {
            stored,
            reason,
            files,
        });
        Ok(StorageChange { left, ..found })
    }

    /// Makes a version the storage version. Types of an unsupported form are left alone.
    fn add_to_plan(
        plan: &mut Plan,
        tree: &Tree,
        project: &Project,
        stored: &Resource,
    ) -> Result<StorageChange> {
        let (mut found, texts) = StorageChange::find(plan, tree, project, stored)?;
        // A partial change would leave two storage versions, or none.
        if found.problems.is_empty() {
            for StoredText { path, text, .. } in texts {
                plan.replace(tree, &path, &text)?;
                found.changed.push(path);
            }
        }
        Ok(found)
    }

    /// Finds the types to change with their new text, and the types that can't be changed.
    fn find(
        plan: &Plan,
        tree: &Tree,
        project: &Project,
        stored: &Resource,
    ) -> Result<(StorageChange, Vec<StoredText>)> {
        let mut found = StorageChange::default();
        let mut texts = Vec::new();
        let versions = project.known.resources.iter();
        for version in versions.filter(|version| version.same_kind(stored) && version.api.is_some()) {
            let api = ApiPlaces::of(project, version).context();
            let path = find_types(plan, tree, &api)?;
            let Some(text) = plan.read(tree, &path)? else {
                continue;
            };
            let becomes_stored = version.version == stored.version;
            let changed = Definition::find(&text, &version.kind, &version.version)
                .and_then(|definition| definition.with_storage(becomes_stored));
            match changed {
                Ok(None) => {}
                Ok(Some(text)) => texts.push(StoredText {
                    path,
                    text,
                    becomes_stored,
                }),
                Err(reason) => found.problems.push((path, reason)),
            }
        }
        Ok((found, texts))
    }

    /// Warns that the first version is the storage version again after the conversion was deleted.
    pub(in crate::commands) fn warn_of_first(&self, first: &ApiContext, outcome: &mut Outcome) {
        let (kind, version) = (&first.kind, &first.version);
        if !self.changed.is_empty() {
            outcome.warn(
                &format!("version `{version}` of `{kind}` is the storage version again"),
                "objects in a cluster stay stored as they are; without a conversion all versions must have the same fields",
            );
        }
        if let Some(left) = &self.left {
            outcome.warn(
                &left.explain(kind),
                "without a conversion all versions must have the same fields",
            );
        }
        self.warn_of_problems(kind, version, "", outcome);
    }

    /// Warns about the changed storage version, which affects stored objects, and about types that
    /// could not be changed.
    pub(super) fn warn(&self, hub: &ApiContext, outcome: &mut Outcome) {
        let (kind, version) = (&hub.kind, &hub.version);
        if !self.changed.is_empty() {
            outcome.warn(
                &format!("version `{version}` of `{kind}` is now the storage version, as the hub of the conversion"),
                "objects in a cluster stay stored as they are until they are written again; keep all versions until then",
            );
        }
        if let Some(left) = &self.left {
            left.warn(hub, outcome);
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

impl LeftChange {
    fn explain(&self, kind: &str) -> String {
        format!(
            "version `{}` of `{kind}` stays the storage version, because clusters may store objects in it: {}",
            self.stored, self.reason
        )
    }

    /// Warns that the storage version stays, and shows how to change it.
    fn warn(&self, hub: &ApiContext, outcome: &mut Outcome) {
        let (kind, version) = (&hub.kind, &hub.version);
        let lines: Vec<String> = self
            .files
            .iter()
            .map(|(path, becomes_stored)| match becomes_stored {
                true => format!("remove `storage = false` from `#[kube(…)]` in {path}"),
                false => format!("add `storage = false` to `#[kube(…)]` in {path}"),
            })
            .collect();
        outcome.warn(
            &self.explain(kind),
            &format!(
                "deploy the conversion first; to store the hub `{version}` when every replica converts, {}, run `rbuilder manifests` and deploy again; then write every stored object again: `rbuilder migrate-storage {}.{}`",
                lines.join(", "),
                hub.plural,
                hub.qualified_group
            ),
        );
    }
}

struct StoredText {
    path: String,
    text: String,
    becomes_stored: bool,
}

/// Finds a version other than `wanted` in which clusters may contain objects, with the reason: the
/// CRD's storage version if git tracks the CRD, or may track it.
fn find_released(tree: &Tree, project: &Project, wanted: &Resource) -> Result<Option<(String, String)>> {
    let crd = ApiPlaces::of(project, wanted).context().crd_file;
    let Some(text) = tree.read(&crd)? else {
        return Ok(None);
    };
    let Some(stored) = find_stored(&text).filter(|stored| *stored != wanted.version) else {
        return Ok(None);
    };
    // This tree is on disk; a rebuilt scaffold has no manifests.
    Ok(match check_path_untracked(tree.root(), &crd) {
        Ok(()) => None,
        Err(reason) => Some((
            stored,
            format!("it is the storage version in {crd}, and {reason}"),
        )),
    })
}

fn find_stored(crd: &str) -> Option<String> {
    let crd = rbuilder_yaml::parse_value(crd).ok()?;
    Some(Crd::of(&crd).storage()?.name.to_owned())
}
