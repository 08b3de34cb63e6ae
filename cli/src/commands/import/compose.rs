//! Composes the Rust project in memory. Runs the commands that a user would run, then applies
//! everything specific to the original.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_generator::{CsvMarkers, find_kubernetes_kind};
use serde_json::Value;

use super::composed::{Composed, webhook_key};
use super::kinds::{Kind, Leftover, find_kinds};
use super::{controllers, csv, deployment, samples, webhooks};
use crate::commands::create_api::{import_crd, plan_create_imported};
use crate::commands::edits::add_lines;
use crate::commands::{Outcome, plan_create_api, plan_create_webhook};
use crate::edit::rust;
use crate::plan::Plan;
use crate::project::{
    ATTRIBUTES, ATTRIBUTES_TEXT, FILE, Project, RECORD, Resource, ScaffoldedFiles, Webhooks,
};
use crate::render::{ApiPlaces, Scaffold, generated_lines, render};
use crate::request::{ApiRequest, WebhookRequest};
use crate::tree::Tree;
use rbuilder_go_project::GoProject;

const NO_CRD: &str = "PROJECT lists it, but the Go project has no CRD for it: run `make manifests` there and import it again, unless it was removed or is not an API, such as the configuration of the manager";

/// Composes the Rust project for an original. `project` contains the settings and no kinds. Fails
/// if the settings can't be scaffolded; kinds that can't be scaffolded are left to the user.
pub(super) fn compose<'a>(original: &'a GoProject, project: &Project) -> Result<Composed<'a>> {
    let mut left = Vec::new();
    let kinds = find_kinds(original, &mut left);
    let Scaffold { mut files, record } = render(project, None)?;
    let own = [
        (FILE, project.print()),
        (RECORD, record.print()),
        (ATTRIBUTES, ATTRIBUTES_TEXT.to_owned()),
    ];
    files.extend(own.map(|(path, text)| (path.to_owned(), text)));
    let mut project = project.clone();
    project.set_scaffolded_files(record);
    let mut composed = Composed {
        files,
        project,
        kinds: Vec::new(),
        ported: Vec::new(),
        webhook_files: BTreeMap::new(),
        served_paths: BTreeMap::new(),
        webhook_paths: BTreeSet::new(),
        left,
        better: Vec::new(),
        entries: Vec::new(),
    };
    for kind in &kinds {
        composed.add_kind(original, kind, &kinds)?;
    }
    for kind in &kinds {
        composed.add_webhooks(original, kind)?;
        webhooks::leave_unpublished(original, kind, &mut composed.left);
    }
    composed.kinds = kinds;
    controllers::port(original, &mut composed)?;
    webhooks::port(original, &mut composed);
    samples::port(original, &mut composed)?;
    deployment::port(original, &mut composed)?;
    csv::port(original, &mut composed);
    for (path, reason) in &original.unread {
        composed
            .left
            .push(Leftover::new(path, format!("it was not read: {reason}")));
    }
    for unfollowed in &original.unfollowed {
        composed
            .left
            .push(Leftover::new(&unfollowed.what, &unfollowed.reason));
    }
    composed.record_files();
    Ok(composed)
}

impl<'a> Composed<'a> {
    /// Records both the imported files and what a command would have scaffolded, so that neither
    /// counts as an edit by the user. Two texts of a file tell that one isn't a template's.
    fn record_files(&mut self) {
        let mut record = ScaffoldedFiles::parse(self.files.get(RECORD).map_or("", String::as_str));
        for (path, text) in self.files.iter().filter(|(path, _)| *path != RECORD) {
            if record.has(path) {
                record.add(path, text);
            }
        }
        self.files.insert(RECORD.to_owned(), record.print());
    }

    fn apply(&mut self, make: impl FnOnce(&Tree) -> Result<Plan>) -> Result<()> {
        let tree = Tree::in_memory(self.files.clone());
        let mut plan = make(&tree)?;
        plan.check_conflicts()?;
        let text = plan.read(&tree, FILE)?.unwrap_or_default();
        for resource in &Project::parse(&text)?.known.resources {
            add_lines(&mut plan, &tree, &generated_lines(&self.project, resource))?;
        }
        let mut files = tree.into_files();
        for (path, change) in plan.changes() {
            match change.after() {
                Some(text) => files.insert(path.clone(), text.to_owned()),
                None => files.remove(path),
            };
        }
        self.files = files;
        if let Some(project) = Project::read(&Tree::in_memory(self.files.clone()))? {
            self.project = project;
        }
        Ok(())
    }

    /// Applies a command to the files. On failure, returns false and leaves the step to the user.
    fn try_apply(&mut self, what: &str, help: &str, make: impl FnOnce(&Tree) -> Result<Outcome>) -> bool {
        match self.apply(|tree| Ok(make(tree)?.plan)) {
            Ok(()) => true,
            Err(error) => {
                let reason = first_sentence(&format!("{error:#}"));
                self.left.push(Leftover::new(what, format!("{reason}{help}")));
                false
            }
        }
    }

    fn add_kind(&mut self, original: &'a GoProject, kind: &Kind<'_>, all: &[Kind<'_>]) -> Result<()> {
        let resource = &kind.resource;
        let what = format!("kind `{}`", resource.kind);
        if resource.external {
            let group = resource.qualified_group();
            if !kind.controllers.is_empty() || resource.webhooks.is_some() {
                let command = format!(
                    "rbuilder create api --group {group} --version {} --kind {} --external-crate <crate>@<version> --external-path <type>",
                    resource.version, resource.kind
                );
                self.left.push(Leftover::new(what, format!("its Go types belong to another project: find a crate that defines them, or generate them with `rbuilder types`, then run `{command}`")));
            }
            return Ok(());
        }
        if resource.core {
            for controller in &kind.controllers {
                let request = api_request(resource, controller.name.as_ref(), (false, true));
                self.try_apply(&what, "", |tree| plan_create_api(tree, &request));
            }
            return Ok(());
        }
        let Some((_, crd)) = kind.crd else {
            // PROJECT may list a built-in kind as one of the project's kinds. Go by the type in the
            // source.
            let is_meant = |other: &Kind<'_>| {
                other.resource.core && other.resource.kind == resource.kind && !other.controllers.is_empty()
            };
            if resource.api.is_none() && all.iter().any(is_meant) {
                return Ok(());
            }
            let is_built_in = resource.group.is_empty()
                && find_kubernetes_kind(None, "", &resource.version, &resource.kind).is_some();
            let reason = match is_built_in {
                true => self.describe_unmarked(resource),
                false => NO_CRD.to_owned(),
            };
            if resource.api.is_some() || !kind.controllers.is_empty() {
                self.left.push(Leftover::new(what, reason));
            }
            return Ok(());
        };
        let first = kind.controllers.first();
        let mut request = api_request(
            resource,
            first.and_then(|first| first.name.as_ref()),
            (true, first.is_some()),
        );
        // All versions of the CRD are scaffolded.
        request.version.clear();
        let crd = without_conversion(crd, kind);
        let entries = csv::read_entries(original, &crd);
        let markers: Vec<CsvMarkers> = entries.iter().map(|entry| entry.markers.clone()).collect();
        let mut versions = Vec::new();
        let is_added = self.try_apply(&what, "", |tree| {
            let kind = import_crd(&crd, tree, &markers)?;
            let outcome = plan_create_imported(tree, &request, &kind)?;
            versions = kind.versions;
            Ok(outcome)
        });
        if !is_added {
            return Ok(());
        }
        for entry in entries {
            let version = versions
                .iter_mut()
                .find(|version| version.name == entry.markers.version);
            let unplaced = version.map(|version| std::mem::take(&mut version.unplaced));
            self.entries.push((entry, unplaced.unwrap_or_default()));
        }
        let stored = self.stored_resource(resource).unwrap_or_else(|| resource.clone());
        for controller in kind.controllers.iter().skip(1) {
            let request = api_request(&stored, controller.name.as_ref(), (false, true));
            self.try_apply(&what, "", |tree| plan_create_api(tree, &request));
        }
        Ok(())
    }

    fn describe_unmarked(&self, resource: &Resource) -> String {
        let first = match self.project.known.multigroup {
            true => "",
            false => "`rbuilder edit --multigroup`, and then ",
        };
        format!(
            "PROJECT does not say that it is a kind of Kubernetes: run {first}`rbuilder create api --group core --version {} --kind {}`",
            resource.version, resource.kind
        )
    }

    fn add_webhooks(&mut self, original: &GoProject, kind: &Kind<'_>) -> Result<()> {
        for version in &kind.versions {
            let recorded = kind.webhooks(version).unwrap_or_default();
            let mut asked = webhooks::with_configurations(original, kind, version, recorded);
            let known = &self.project.known.resources;
            let is_there = version.core || known.iter().any(|known| known.same(version));
            if version.external || !is_there || !(asked.defaulting || asked.validation || asked.conversion) {
                continue;
            }
            // A handler serves one kind. If several kinds share a path, the first one keeps it.
            for path in [&mut asked.defaulting_path, &mut asked.validation_path] {
                if !path.is_empty() && !self.webhook_paths.insert(path.clone()) {
                    path.clear();
                }
            }
            let what = format!("webhooks of `{}` in {}", version.kind, version.version);
            let types = self.type_files(version);
            let before: Vec<(String, String)> = types
                .iter()
                .filter_map(|path| Some((path.clone(), self.files.get(path)?.clone())))
                .collect();
            let request = webhook_request(version, &asked);
            if !self.try_apply(&what, "", |tree| plan_create_webhook(tree, &request)) {
                continue;
            }
            if asked.conversion {
                self.keep_storage(version, before);
            }
            let module = self.places(version).context();
            let file = format!(
                "src/webhook/{}/{}.rs",
                module.version_path.replace("::", "/"),
                module.module
            );
            self.webhook_files.insert(webhook_key(version), file);
        }
        Ok(())
    }

    /// Restores the original storage version, in which clusters store objects. `create webhook`
    /// made the hub the storage version.
    fn keep_storage(&mut self, hub: &Resource, before: Vec<(String, String)>) {
        for (path, text) in before {
            let text = match rust::defines_kind(&text, &hub.kind) && self.is_types_of(&path, hub) {
                true => rust::add_conversion(&text, &hub.kind).unwrap_or(text),
                false => text,
            };
            self.files.insert(path, text);
        }
    }

    fn is_types_of(&self, path: &str, resource: &Resource) -> bool {
        let api = self.places(resource).context();
        path == format!("src/{}/{}.rs", api.api_path.replace("::", "/"), api.module)
    }

    fn type_files(&self, resource: &Resource) -> Vec<String> {
        let known = self
            .project
            .known
            .resources
            .iter()
            .filter(|known| known.same_kind(resource));
        known
            .map(|known| {
                let api = ApiPlaces::of(&self.project, known).context();
                format!("src/{}/{}.rs", api.api_path.replace("::", "/"), api.module)
            })
            .collect()
    }
}

/// First line of an error, and the list that it introduces.
fn first_sentence(error: &str) -> String {
    let mut lines = error.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    match first.ends_with(':') {
        true => format!("{first} {}", lines.collect::<Vec<_>>().join("; ")),
        false => first.to_owned(),
    }
}

/// The CRD, without its conversion if the project gets a conversion webhook.
fn without_conversion(crd: &Value, kind: &Kind<'_>) -> Value {
    let mut crd = crd.clone();
    let converts = kind
        .versions
        .iter()
        .any(|version| kind.webhooks(version).is_some_and(|webhooks| webhooks.conversion));
    if let Some(spec) = crd["spec"].as_object_mut().filter(|_| converts) {
        spec.remove("conversion");
    }
    crd
}

fn api_request(
    resource: &Resource,
    name: Option<&String>,
    (has_types, has_controller): (bool, bool),
) -> ApiRequest {
    ApiRequest {
        group: resource.group.clone(),
        api_domain: own_domain(resource),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        resource: Some(has_types),
        controller: Some(has_controller),
        controller_name: name.cloned(),
        ..ApiRequest::default()
    }
}

fn own_domain(resource: &Resource) -> Option<String> {
    let is_own = !resource.is_foreign() && !resource.domain.is_empty();
    is_own.then(|| resource.domain.clone())
}

fn webhook_request(resource: &Resource, asked: &Webhooks) -> WebhookRequest {
    let path = |path: &String| Some(path.clone()).filter(|path| !path.is_empty());
    WebhookRequest {
        group: resource.group.clone(),
        api_domain: own_domain(resource),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        defaulting: asked.defaulting,
        validation: asked.validation,
        conversion: asked.conversion,
        spoke: asked.spoke.clone(),
        defaulting_path: path(&asked.defaulting_path).filter(|_| asked.defaulting),
        validation_path: path(&asked.validation_path).filter(|_| asked.validation),
        ..WebhookRequest::default()
    }
}
