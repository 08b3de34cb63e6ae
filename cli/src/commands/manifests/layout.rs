//! The paths of manifests, and the removal of stale ones.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use rbuilder_generator::{OutputFile, Product};
use serde_json::{Value, json};

use super::Request;
use super::replaced::{HEADER, check_replaced, is_ours};
use super::settings::{DEFAULT_FILE, Settings};
use crate::commands::webhooks;
use crate::edit::{Unrecognised, kustomization};
use crate::flags::TargetFlags;
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::tree::{Tree, check_relative, typed_path};
use crate::yaml_stream::is_yaml;

/// Output directories, relative to the project directory.
#[derive(Clone)]
pub(in crate::commands) struct Layout {
    /// Directory in which kustomizations are looked for.
    config: String,
    crds: String,
    /// Name of the file of a CRD, with `{group}` and `{plural}`.
    crd_file: String,
    /// The files of CRDs that are elsewhere, by the name of the CRD.
    crd_files: BTreeMap<String, String>,
    /// True if a flag says where CRDs are written.
    is_typed: bool,
    roles: String,
    webhooks: String,
    /// True if CRDs of kinds that no longer exist are removed.
    pub(super) prunes: bool,
    /// True if flags exclude packages or targets, whose manifests are not stale then.
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
            crds: format!("{config}/crd/bases"),
            crd_file: DEFAULT_FILE.to_owned(),
            crd_files: BTreeMap::new(),
            is_typed: false,
            roles: format!("{config}/rbac"),
            webhooks: format!("{config}/webhook"),
            prunes: true,
            is_partial: false,
        }
    }

    /// Returns the layout that the flags request.
    pub(super) fn new(flags: &TargetFlags) -> Result<Layout> {
        let config = flags.config_dir.as_deref().unwrap_or("config");
        let mut layout = Layout::within(&folder("--config-dir", config)?);
        layout.is_typed = flags.config_dir.is_some() || flags.crd_dir.is_some();
        for (flag, wanted, place) in [
            ("--crd-dir", &flags.crd_dir, &mut layout.crds),
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

    /// Takes over what `Cargo.toml` says, unless a flag says where CRDs are written.
    pub(super) fn apply_settings(&mut self, settings: &Settings) {
        if self.is_typed {
            return;
        }
        if let Some(folder) = &settings.crd_dir {
            self.crds.clone_from(folder);
        }
        if let Some(name) = &settings.crd_file {
            self.crd_file.clone_from(name);
        }
        self.crd_files.clone_from(&settings.crd_files);
    }

    /// Returns the path of a CRD from that of its manifest.
    fn crd_path(&self, manifest: &str) -> String {
        let (group, plural) = manifest
            .strip_suffix(".yaml")
            .and_then(|name| name.split_once('_'))
            .unwrap_or(("", manifest));
        match self.crd_files.get(&format!("{plural}.{group}")) {
            Some(path) => path.clone(),
            None => {
                let name = self
                    .crd_file
                    .replace("{group}", group)
                    .replace("{plural}", plural);
                format!("{}/{name}", self.crds)
            }
        }
    }

    /// Returns the path of a manifest.
    fn path(&self, manifest: &str) -> String {
        if let Some(name) = manifest.strip_prefix("crd/bases/") {
            return self.crd_path(name);
        }
        for (prefix, folder) in [("rbac/", &self.roles), ("webhook/", &self.webhooks)] {
            if let Some(name) = manifest.strip_prefix(prefix) {
                return format!("{folder}/{name}");
            }
        }
        format!("{}/{manifest}", self.config)
    }

    /// Returns whether a path is that of a CRD.
    pub(super) fn holds_crd(&self, path: &str) -> bool {
        if self.crd_files.values().any(|file| file == path) {
            return true;
        }
        let name = path
            .strip_prefix(&self.crds)
            .and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/') && is_yaml(name) && !self.is_role(path))
    }

    /// Returns the paths of the CRDs that are there, sorted.
    ///
    /// # Errors
    /// Fails if their directory cannot be read.
    pub(super) fn list_crds(&self, tree: &Tree) -> Result<Vec<String>> {
        let mut paths = tree.list(&self.crds)?;
        paths.extend(self.crd_files.values().cloned());
        paths.retain(|path| self.holds_crd(path));
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the names of the CRDs that are there, such as `cups.example.com`.
    ///
    /// # Errors
    /// Fails as [`Layout::list_crds`], or if a file cannot be read.
    pub(super) fn list_crd_names(&self, tree: &Tree) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.crd_files.keys().cloned().collect();
        for path in self.list_crds(tree)? {
            if let Some(text) = tree.read(&path)? {
                let in_metadata = text.lines().skip_while(|line| *line != "metadata:");
                let mut found = in_metadata.filter_map(|line| line.strip_prefix("  name: "));
                names.extend(found.next().map(str::to_owned));
            }
        }
        Ok(names)
    }

    /// Returns whether a path is that of the roles.
    pub(super) fn is_role(&self, path: &str) -> bool {
        path == self.role_path()
    }

    /// Returns the path of the roles.
    pub(super) fn role_path(&self) -> String {
        self.path("rbac/role.yaml")
    }

    /// Returns whether a path is that of the webhook configurations.
    pub(super) fn is_webhooks(&self, path: &str) -> bool {
        path == self.path("webhook/manifests.yaml")
    }

    /// Returns the entry of a CRD in the kustomization of config/crd.
    fn entry(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(&self.config)?.strip_prefix("/crd/")?;
        Some(name.to_owned())
    }
}

/// Normalizes a directory within the project: `./deploy/` is `deploy`.
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

/// The generated manifests.
#[derive(Default)]
pub(super) struct Generated {
    /// Paths of the CRDs.
    crds: Vec<String>,
    roles: bool,
    webhooks: bool,
}

impl Generated {
    /// Adds a manifest to the plan.
    pub(super) fn put(
        &mut self,
        plan: &mut Plan,
        tree: &Tree,
        request: &Request,
        file: &OutputFile,
    ) -> Result<()> {
        let path = request.layout.path(&file.path);
        if !file.path.starts_with("crd/") {
            self.roles |= file.path == "rbac/role.yaml";
            self.webhooks |= file.path == "webhook/manifests.yaml";
            plan.replace(tree, &path, &file.text)?;
            return check_replaced(plan, &path, &file.path);
        }
        if request.options.version.is_some() {
            plan.replace(tree, &path, &file.text)?;
        } else {
            plan.replace(tree, &path, &format!("{HEADER}{}", file.text))?;
        }
        check_replaced(plan, &path, &file.path)?;
        self.crds.push(path);
        Ok(())
    }

    /// Returns whether nothing was generated.
    pub(super) fn is_empty(&self) -> bool {
        self.crds.is_empty() && !self.roles && !self.webhooks
    }

    /// Adds the changes that depend on all manifests: removes stale ones and updates kustomizations.
    /// After errors in the source, which hold back an unknown part of the manifests, nothing is stale.
    pub(super) fn finish(
        &self,
        plan: &mut Plan,
        tree: &Tree,
        request: &Request,
        is_complete: bool,
    ) -> Result<()> {
        let layout = &request.layout;
        let is_whole = is_complete && !layout.is_partial;
        if request.makes(Product::Crds) {
            let stale = if layout.prunes && is_whole {
                prune(plan, tree, layout, &self.crds)?
            } else {
                Vec::new()
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

/// Removes generated CRDs whose kinds no longer exist.
fn prune(plan: &mut Plan, tree: &Tree, layout: &Layout, crds: &[String]) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for path in tree.list(&layout.crds)? {
        if !is_yaml(&path) || crds.contains(&path) {
            continue;
        }
        if tree.read(&path)?.is_some_and(|text| is_ours(&text)) {
            plan.delete(tree, &path)?;
            stale.push(path);
        }
    }
    Ok(stale)
}

/// Updates the kustomization that lists the CRDs, if there is one.
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

/// Returns whether a file is in exactly the form that the generator prints.
fn is_printed(text: &str) -> bool {
    let Ok(documents) = crate::yaml_stream::parse_all::<Value>(text) else {
        return false;
    };
    let print = |document| format!("---\n{}", rbuilder_generator::yaml::to_string(document));
    is_same_text(&documents.iter().map(print).collect::<String>(), text)
}

/// Removes all rules from a role that no marker requests any more. Its kind and name stay, because the binding refers
/// to them. Without PROJECT the file may belong to somebody else, and is kept; so is one that was written by hand in an
/// adopted package.
fn empty_role(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let path = request.layout.path("rbac/role.yaml");
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(());
    };
    let Some(project) = plan.read(tree, FILE)? else {
        return Ok(());
    };
    let project = Project::parse(&project)?;
    // The role is that of an operator which another tool has created, or somebody by hand.
    if !project.is_scaffolded() {
        return Ok(());
    }
    let known = project.known;
    let adopted = known.rbuilder.package.as_ref();
    if adopted.is_some_and(|package| package.leaves_out(&path) || !is_printed(&text)) {
        return Ok(());
    }
    let mut metadata = json!({ "name": request.options.role_name });
    if known.namespaced {
        metadata["namespace"] = format!("{}-system", known.project_name).into();
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if known.namespaced { "Role" } else { "ClusterRole" },
        "metadata": metadata,
        "rules": [],
    });
    let text = format!("---\n{}", rbuilder_generator::yaml::to_string(&role));
    plan.replace(tree, &path, &text)
}
