//! Rebuilds the scaffold of a project from PROJECT alone by running the same commands again on a
//! tree in memory.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use rbuilder_templates::Release;

use crate::commands::create_api::{plan_create_api_without_crd, types_path};
use crate::commands::edits::{edit_file, shown_version};
use crate::commands::places::ApiPlaces;
use crate::commands::scaffold::require_project;
use crate::commands::{init, plan_create_api, plan_create_webhook, webhooks};
use crate::edit::kustomization;
use crate::flags::{ApiFlags, ExternalFlags, ImageFlags, Output, PlanFlags, WebhookFlags};
use crate::plan::Plan;
use crate::project::{ATTRIBUTES, FILE, Image, Project, RECORD, Resource, ScaffoldedFiles};
use crate::tree::Tree;

/// The files of a scaffold as written by the commands, without generated manifests.
#[derive(Debug)]
pub(in crate::commands) struct Scaffold {
    /// Texts by path.
    pub(in crate::commands) files: BTreeMap<String, String>,
    /// The files that belong to a single command.
    pub(in crate::commands) record: ScaffoldedFiles,
}

impl Scaffold {
    /// Returns the paths of the files below a directory.
    pub(in crate::commands) fn find_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let is_below = move |path: &&String| {
            let rest = path.strip_prefix(folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.files.keys().filter(is_below).map(String::as_str)
    }

    /// Returns the command that restores a file, or the files in a directory; `None` if it is not
    /// scaffolded.
    pub(in crate::commands) fn restore_command(&self, path: &str) -> Option<String> {
        let is_scaffolded = self.files.contains_key(path) || self.find_below(path).next().is_some();
        is_scaffolded.then(|| format!("`rbuilder update --restore {path}`"))
    }
}

/// Rebuilds the scaffold of a project with the templates of a release; `None` means the templates
/// of this version.
///
/// All kinds come first, followed by all webhooks, whatever the original order was. So in files to
/// which several commands add, the order of lines may differ from the user's. It is the same in
/// every scaffold of the project, so merges are not affected.
///
/// # Errors
/// Fails if the commands reject an entry in PROJECT.
pub(in crate::commands) fn rebuild_scaffold(
    project: &Project,
    release: Option<&'static Release>,
) -> Result<Scaffold> {
    let text = project.without_resources().print();
    let mut tree = Tree::in_memory(BTreeMap::from([(FILE.to_owned(), text)]), release);
    tree = apply_step(tree, plan_init_again)?;
    let resources = &project.known.resources;
    for resource in resources {
        for flags in api_flags(resource) {
            let plan_api = match resource.is_imported() {
                true => plan_create_api_without_crd,
                false => plan_create_api,
            };
            tree = apply_step(tree, |tree| Ok(plan_api(tree, &flags)?.plan))
                .and_then(|tree| apply_step(tree, list_manifests))
                .with_context(|| cannot_rebuild(resource))?;
        }
    }
    for resource in resources {
        if let Some(flags) = webhook_flags(resource) {
            tree = apply_step(tree, |tree| Ok(plan_create_webhook(tree, &flags)?.plan))
                .and_then(|tree| apply_step(tree, list_manifests))
                .with_context(|| cannot_rebuild(resource))?;
        }
    }
    let stand_ins = init::render_stand_ins(project)?;
    let imported = files_of_crds(project);
    let mut files = tree.into_files();
    files.retain(|path, _| !imported.contains(path));
    files.retain(|path, _| stand_ins.iter().all(|file| file.path != *path));
    let record = ScaffoldedFiles::parse(files.get(RECORD).map_or("", String::as_str));
    files.retain(|path, _| ![FILE, RECORD, ATTRIBUTES].contains(&path.as_str()));
    Ok(Scaffold { files, record })
}

/// Returns the files of a project as scaffolded by a release, or by this version, without generated
/// manifests and PROJECT.
///
/// # Errors
/// Fails if the directory contains no project, or if the commands reject an entry in PROJECT.
pub fn rebuild_files(tree: &Tree, release: Option<&'static Release>) -> Result<BTreeMap<String, String>> {
    let Scaffold { mut files, record } = rebuild_scaffold(&require_project(tree)?, release)?;
    files.insert(RECORD.to_owned(), record.print());
    Ok(files)
}

/// Applies the plan of a command to a tree in memory.
///
/// # Errors
/// Fails for the same reasons as the command.
pub(in crate::commands) fn apply_step(tree: Tree, make: impl FnOnce(&Tree) -> Result<Plan>) -> Result<Tree> {
    let plan = make(&tree)?;
    plan.check_conflicts()?;
    let release = tree.release();
    let mut files = tree.into_files();
    for (path, change) in plan.changes() {
        match change.after() {
            Some(text) => files.insert(path.clone(), text.to_owned()),
            None => files.remove(path),
        };
    }
    Ok(Tree::in_memory(files, release))
}

/// Returns the files that `init` writes for the settings in PROJECT.
///
/// # Errors
/// Fails if files conflict.
pub(in crate::commands) fn plan_init_again(tree: &Tree) -> Result<Plan> {
    let mut project = require_project(tree)?;
    let mut plan = init::plan_files(tree, &mut project, false)?;
    for file in init::render_stand_ins(&project)? {
        plan.replace(tree, &file.path, &file.text)?;
    }
    plan.write_project(&project, tree)?;
    Ok(plan)
}

/// Returns the entries for generated manifests in the files that list them. `rbuilder manifests`
/// adds the same entries after each command.
///
/// # Errors
/// Fails if a list cannot be edited.
pub(in crate::commands) fn list_manifests(tree: &Tree) -> Result<Plan> {
    let project = require_project(tree)?;
    let mut entries = Vec::new();
    for resource in &project.known.resources {
        let crd = ApiPlaces::of(&project, resource).context().crd_file;
        if let (Some(_), Some(entry)) = (&resource.api, crd.strip_prefix("config/crd/")) {
            entries.push(("config/crd/kustomization.yaml", entry.to_owned()));
        }
        let webhooks = resource.webhooks.as_ref();
        if webhooks.is_some_and(|webhooks| webhooks.defaulting || webhooks.validation) {
            entries.push((
                "config/webhook/kustomization.yaml",
                webhooks::MANIFESTS.to_owned(),
            ));
        }
    }
    let mut plan = Plan::default();
    for (list, entry) in entries {
        let lines = format!("resources:\n- {entry}");
        edit_file(&mut plan, tree, list, &lines, |text| {
            kustomization::add_resource(text, &entry)
        })?;
    }
    Ok(plan)
}

/// Returns the files whose text comes from a CRD, which templates do not change.
fn files_of_crds(project: &Project) -> BTreeSet<String> {
    let resources = project.known.resources.iter();
    let imported = resources.filter(|resource| resource.is_imported());
    let files = imported.flat_map(|resource| {
        let api = ApiPlaces::of(project, resource).context();
        [types_path(&api), api.sample_file]
    });
    files.collect()
}

fn cannot_rebuild(resource: &Resource) -> String {
    format!(
        "cannot rebuild the scaffold of kind `{}` of {} in {FILE}",
        resource.kind,
        shown_version(&resource.qualified_group(), &resource.version)
    )
}

const PLAN_FLAGS: PlanFlags = PlanFlags {
    dry_run: false,
    output: Output::Text,
};

/// Returns the flags of each `create api` that created a resource. There is one per controller, and
/// the first one also created the types.
fn api_flags(resource: &Resource) -> Vec<ApiFlags> {
    let names = resource.controller_names();
    let first = names.first().cloned();
    if first.is_none() && resource.api.is_none() {
        return Vec::new();
    }
    let mut all = vec![api_flags_of(resource, first.as_ref(), resource.api.is_some())];
    all.extend(
        names
            .iter()
            .skip(1)
            .map(|name| api_flags_of(resource, Some(name), false)),
    );
    all
}

fn api_flags_of(resource: &Resource, controller: Option<&String>, has_types: bool) -> ApiFlags {
    ApiFlags {
        group: resource.group.clone(),
        api_domain: own_domain(resource),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        plural: Some(resource.plural.clone()).filter(|plural| !plural.is_empty()),
        namespaced: resource.api.as_ref().map(|api| api.namespaced),
        resource: Some(has_types),
        controller: Some(controller.is_some()),
        from_crd: None,
        controller_name: controller.filter(|_| !resource.controllers.is_empty()).cloned(),
        external: ExternalFlags::default(),
        image: match has_types {
            true => resource.image.as_ref().map(Image::flags).unwrap_or_default(),
            false => ImageFlags::default(),
        },
        manifests: false,
        force: false,
        plan: PLAN_FLAGS,
    }
}

/// Returns the recorded domain of a kind in the project.
fn own_domain(resource: &Resource) -> Option<String> {
    let is_own = resource.api.is_some() && !resource.domain.is_empty();
    is_own.then(|| resource.domain.clone())
}

/// Returns the flags of the `create webhook` that created the webhooks of a resource; `None` if it
/// has no webhooks.
fn webhook_flags(resource: &Resource) -> Option<WebhookFlags> {
    let webhooks = resource.webhooks.as_ref()?;
    let has_any = webhooks.defaulting || webhooks.validation || webhooks.conversion;
    has_any.then(|| WebhookFlags {
        group: resource.group.clone(),
        api_domain: own_domain(resource),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        defaulting: webhooks.defaulting,
        validation: webhooks.validation,
        conversion: webhooks.conversion,
        spoke: webhooks.spoke.clone(),
        defaulting_path: Some(webhooks.defaulting_path.clone()).filter(|path| !path.is_empty()),
        validation_path: Some(webhooks.validation_path.clone()).filter(|path| !path.is_empty()),
        plural: None,
        external: ExternalFlags::default(),
        manifests: false,
        force: false,
        plan: PLAN_FLAGS,
    })
}
