//! Determines where manifests are written, and removes stale ones.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow};
use rbuilder_generator::{OutputFile, Product};
use rbuilder_yaml::is_yaml;
use serde_json::json;

use super::Request;
use super::crd_place::CrdPlace;
use super::replaced::{HEADER, check_replaced, is_ours};
use super::settings::Settings;
use crate::commands::webhooks;
use crate::crd_file::{CrdFile, is_rendered};
use crate::edit::{Unrecognised, kustomization};
use crate::flags::TargetFlags;
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::tree::{Tree, check_relative, typed_path};

#[derive(Clone)]
pub(in crate::commands) struct Layout {
    /// Directory with the kustomizations.
    config: String,
    crds: CrdPlace,
    /// Second location for CRDs, in addition to the one from which the project is deployed.
    copies: Option<CrdPlace>,
    is_typed: bool,
    pub(super) roles: String,
    pub(super) webhooks: String,
    /// Whether to remove CRDs of kinds that no longer exist.
    pub(super) prunes: bool,
    /// Whether flags exclude packages or targets, in which case missing manifests aren't stale.
    pub(super) is_partial: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::within("config")
    }
}

impl Layout {
    fn within(config: &str) -> Layout {
        Layout {
            config: config.to_owned(),
            crds: CrdPlace::within(format!("{config}/crd/bases")),
            copies: None,
            is_typed: false,
            roles: format!("{config}/rbac"),
            webhooks: format!("{config}/webhook"),
            prunes: true,
            is_partial: false,
        }
    }

    pub(super) fn new(flags: &TargetFlags) -> Result<Layout> {
        let config = flags.config_dir.as_deref().unwrap_or("config");
        let mut layout = Layout::within(&folder("--config-dir", config)?);
        layout.is_typed = flags.config_dir.is_some() || flags.crd_dir.is_some();
        if let Some(wanted) = &flags.crd_dir {
            layout.crds = CrdPlace::within(folder("--crd-dir", wanted)?);
        }
        for (flag, wanted, place) in [
            ("--rbac-dir", &flags.rbac_dir, &mut layout.roles),
            ("--webhook-dir", &flags.webhook_dir, &mut layout.webhooks),
        ] {
            if let Some(wanted) = wanted {
                *place = folder(flag, wanted)?;
            }
        }
        layout.prunes = !flags.no_prune;
        Ok(layout)
    }

    pub(super) fn apply_settings(&mut self, settings: &Settings, is_deployed: bool) {
        if self.is_typed {
            return;
        }
        if !is_deployed {
            self.crds = self.crds.clone().with(settings);
            return;
        }
        // If a project is deployed from `config/`, its CRDs are always written there as well.
        let (inside, outside) = settings.split(&format!("{}/crd/", self.config));
        self.crds = self.crds.clone().with(&inside);
        self.copies = Some(CrdPlace::nowhere().with(&outside));
    }

    /// Location of CRDs that aren't deployed from `config/`.
    pub(super) fn known_place(&self) -> &CrdPlace {
        self.copies.as_ref().unwrap_or(&self.crds)
    }

    /// All locations of CRDs, starting with the one used for deployment.
    pub(super) fn crd_places(&self) -> impl Iterator<Item = &CrdPlace> {
        std::iter::once(&self.crds).chain(&self.copies)
    }

    /// The paths of a CRD, sorted.
    pub(super) fn crd_paths(&self, group: &str, plural: &str) -> BTreeSet<String> {
        let paths = self.crd_places().filter_map(|place| place.path(group, plural));
        paths.collect()
    }

    pub(super) fn shared_files(&self) -> BTreeSet<String> {
        self.crd_places().flat_map(CrdPlace::shared_files).collect()
    }

    fn path(&self, manifest: &str) -> String {
        for (prefix, folder) in [("rbac/", &self.roles), ("webhook/", &self.webhooks)] {
            if let Some(name) = manifest.strip_prefix(prefix) {
                return format!("{folder}/{name}");
            }
        }
        format!("{}/{manifest}", self.config)
    }

    /// Whether a path belongs to a CRD, not counting copies.
    pub(super) fn holds_crd(&self, path: &str) -> bool {
        self.crds.holds(path) && !self.is_role(path)
    }

    /// Lists the paths of all existing CRDs except for copies, sorted.
    pub(super) fn list_crds(&self, tree: &Tree) -> Result<Vec<String>> {
        let mut paths = self.crds.list(tree)?;
        paths.retain(|path| self.holds_crd(path));
        Ok(paths)
    }

    pub(super) fn list_crd_names(&self, tree: &Tree) -> Result<Vec<String>> {
        let names = self.crd_places().map(|place| place.list_names(tree));
        Ok(names.collect::<Result<Vec<_>>>()?.concat())
    }

    pub(super) fn is_role(&self, path: &str) -> bool {
        path == self.role_path()
    }

    pub(super) fn role_path(&self) -> String {
        self.path("rbac/role.yaml")
    }

    pub(super) fn is_webhooks(&self, path: &str) -> bool {
        path == self.path("webhook/manifests.yaml")
    }

    /// Entry for a CRD in the kustomization of config/crd.
    fn entry(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(&self.config)?.strip_prefix("/crd/")?;
        Some(name.to_owned())
    }
}

fn split_manifest(manifest: &str) -> (&str, &str) {
    manifest
        .strip_suffix(".yaml")
        .and_then(|name| name.split_once('_'))
        .unwrap_or(("", manifest))
}

fn folder(flag: &str, typed: &str) -> Result<String> {
    let typed = typed_path(typed);
    let parts: Vec<&str> = typed.split('/').filter(|part| *part != ".").collect();
    let folder = parts.join("/");
    let folder = folder.trim_end_matches('/');
    check_relative(folder).with_context(|| {
        format!("{flag} must be a directory within the project; to write elsewhere, use `--stdout`")
    })?;
    Ok(folder.to_owned())
}

#[derive(Default)]
pub(super) struct Generated {
    crds: Vec<String>,
    /// CRDs by name, for files with more than one object.
    shared: BTreeMap<String, BTreeMap<String, String>>,
    roles: bool,
    webhooks: bool,
}

impl Generated {
    pub(super) fn put(
        &mut self,
        plan: &mut Plan,
        tree: &Tree,
        request: &Request,
        file: &OutputFile,
    ) -> Result<()> {
        let Some(name) = file.path.strip_prefix("crd/bases/") else {
            let path = request.layout.path(&file.path);
            self.roles |= file.path == "rbac/role.yaml";
            self.webhooks |= file.path == "webhook/manifests.yaml";
            plan.replace(tree, &path, &file.text)?;
            return check_replaced(plan, &path, &file.path);
        };
        let (group, plural) = split_manifest(name);
        for path in request.layout.crd_paths(group, plural) {
            let is_shared = request.layout.crd_places().any(|place| place.is_shared(&path));
            if is_shared || is_rendered(tree, &path)? {
                let crds = self.shared.entry(path.clone()).or_default();
                crds.insert(format!("{plural}.{group}"), file.text.clone());
            } else if request.options.version.is_some() {
                plan.replace(tree, &path, &file.text)?;
            } else {
                // Without a version annotation, the header marks the file as ours.
                plan.replace(tree, &path, &format!("{HEADER}{}", file.text))?;
            }
            check_replaced(plan, &path, &file.path)?;
            self.crds.push(path);
        }
        Ok(())
    }

    fn put_shared(
        &self,
        plan: &mut Plan,
        tree: &Tree,
        layout: &Layout,
        is_stale: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let nothing = BTreeMap::new();
        let mut paths = layout.shared_files();
        paths.extend(self.shared.keys().cloned());
        for path in paths {
            let crds = self.shared.get(&path).unwrap_or(&nothing);
            let before = plan.read(tree, &path)?;
            if crds.is_empty() && before.is_none() {
                continue;
            }
            let before = before.unwrap_or_default();
            let file = CrdFile::parse(&before, is_rendered(tree, &path)?);
            let text = file.write(crds, is_stale).map_err(|reason| {
                anyhow!("failed to write CRDs to {path}; no files were written: {reason}")
            })?;
            // None of the CRDs in this file are ours.
            if crds.is_empty() && text == file.text() {
                continue;
            }
            if text.trim().is_empty() {
                plan.delete(tree, &path)?;
            } else if file.has_other_content() {
                // The rest of the file belongs to the user.
                plan.merge(tree, &path, &text)?;
            } else {
                plan.replace(tree, &path, &text)?;
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.crds.is_empty() && !self.roles && !self.webhooks
    }

    /// Finishes once all manifests are known: removes stale ones and updates kustomizations. CRDs
    /// in `kept` are never stale.
    pub(super) fn finish(
        &self,
        plan: &mut Plan,
        tree: &Tree,
        request: &Request,
        is_complete: bool,
        kept: &BTreeSet<String>,
    ) -> Result<()> {
        let layout = &request.layout;
        // Errors in the source may be the reason for missing manifests.
        let is_whole = is_complete && !layout.is_partial;
        if request.makes(Product::Crds) {
            let removes = layout.prunes && is_whole;
            let is_stale = |name: &str| removes && !kept.contains(name);
            self.put_shared(plan, tree, layout, &is_stale)?;
            let stale = match removes {
                true => prune(plan, tree, layout, &self.crds, &is_stale)?,
                false => Vec::new(),
            };
            update_crd_kustomization(plan, tree, layout, &self.crds, &stale)?;
        }
        if request.makes(Product::Webhooks)
            && (self.webhooks || is_whole)
            && layout.webhooks == format!("{}/webhook", layout.config)
        {
            webhooks::update_kustomization(plan, tree, &layout.config, self.webhooks)?;
        }
        if request.makes(Product::Roles) && !self.roles && is_whole {
            empty_role(plan, tree, request)?;
        }
        Ok(())
    }
}

fn prune(
    plan: &mut Plan,
    tree: &Tree,
    layout: &Layout,
    crds: &[String],
    is_stale: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    let shared = layout.shared_files();
    let folders = layout.crd_places().filter_map(|place| place.folder.as_ref());
    let paths: Vec<Vec<String>> = folders.map(|folder| tree.list(folder)).collect::<Result<_>>()?;
    for path in paths.into_iter().flatten() {
        // `put_shared` already removed stale CRDs from shared files.
        if !is_yaml(&path) || crds.contains(&path) || shared.contains(&path) {
            continue;
        }
        let text = tree.read(&path)?.filter(|text| is_ours(text));
        let is_kept = |text: &str| {
            let crds = CrdFile::parse(text, false).list_crds();
            crds.iter().any(|crd| !is_stale(&crd.name))
        };
        if text.is_some_and(|text| !is_kept(&text)) {
            plan.delete(tree, &path)?;
            stale.push(path);
        }
    }
    Ok(stale)
}

fn update_crd_kustomization(
    plan: &mut Plan,
    tree: &Tree,
    layout: &Layout,
    crds: &[String],
    stale: &[String],
) -> Result<()> {
    let path = format!("{}/crd/kustomization.yaml", layout.config);
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(());
    };
    let mut edited = text.clone();
    let problem = |reason, instruction, name: &str| Unrecognised {
        path: path.clone(),
        reason,
        instruction,
        lines: format!("  resources:\n  - {name}"),
    };
    let entries = crds.iter().filter_map(|path| layout.entry(path)).collect();
    for name in kustomization::find_missing(&text, entries) {
        edited = kustomization::add_resource(&edited, &name)
            .map_err(|reason| problem(reason, "add these lines", &name))?;
    }
    for name in stale.iter().filter_map(|path| layout.entry(path)) {
        edited = kustomization::remove_resource(&edited, &name)
            .map_err(|reason| problem(reason, "remove this entry", &name))?;
    }
    if edited != text {
        plan.edit(tree, &path, &edited)?;
    }
    Ok(())
}

fn is_printed(text: &str) -> bool {
    let Ok(documents) = rbuilder_yaml::parse_values(text) else {
        return false;
    };
    let print = |document| format!("---\n{}", rbuilder_generator::yaml::to_string(document));
    is_same_text(&documents.iter().map(print).collect::<String>(), text)
}

/// Removes all rules of a role that is no longer requested by any marker.
fn empty_role(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let path = request.layout.path("rbac/role.yaml");
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(());
    };
    // Without PROJECT, the file may not be ours.
    let Some(project) = plan.read(tree, FILE)? else {
        return Ok(());
    };
    // The operator was created by another tool, or the role is hand-written.
    let project = Project::parse_own(&project)?.filter(Project::is_scaffolded);
    let Some(Project { known, .. }) = project else {
        return Ok(());
    };
    let adopted = known.rbuilder.package.as_ref();
    if adopted.is_some_and(|package| package.leaves_out(&path) || !is_printed(&text)) {
        return Ok(());
    }
    let mut metadata = json!({ "name": request.options.role_name });
    if known.namespaced {
        metadata["namespace"] = format!("{}-system", known.project_name).into();
    }
    // Keep the role itself, because a binding refers to it.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if known.namespaced { "Role" } else { "ClusterRole" },
        "metadata": metadata,
        "rules": [],
    });
    let text = format!("---\n{}", rbuilder_generator::yaml::to_string(&role));
    plan.replace(tree, &path, &text)
}
