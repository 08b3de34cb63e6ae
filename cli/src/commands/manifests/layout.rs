//! Which manifest goes where, and what of an earlier run goes away.

use anyhow::{Context, Result};
use rbuilder_generator::{OutputFile, Product};
use serde_json::json;

use super::Request;
use super::replaced::check_replaced;
use crate::commands::webhooks;
use crate::edit::{Unrecognised, kustomization};
use crate::flags::TargetFlags;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::tree::{Tree, check_relative};

/// Folders for the manifests, within the project.
pub(in crate::commands) struct Layout {
    /// What kustomizations are looked for in.
    config: String,
    crds: String,
    roles: String,
    webhooks: String,
    /// Whether CRDs that no kind stands for any more are removed.
    pub(super) prunes: bool,
    /// Whether some packages or targets are left out by choice: what only they ask for is not stale.
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
            roles: format!("{config}/rbac"),
            webhooks: format!("{config}/webhook"),
            prunes: true,
            is_partial: false,
        }
    }

    /// The layout that was asked for.
    pub(super) fn new(flags: &TargetFlags) -> Result<Layout> {
        let mut layout = Layout::within(&folder("--config-dir", &flags.config_dir)?);
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

    /// Where a manifest goes.
    fn path(&self, manifest: &str) -> String {
        for (prefix, folder) in [
            ("crd/bases/", &self.crds),
            ("rbac/", &self.roles),
            ("webhook/", &self.webhooks),
        ] {
            if let Some(name) = manifest.strip_prefix(prefix) {
                return format!("{folder}/{name}");
            }
        }
        format!("{}/{manifest}", self.config)
    }

    /// Whether a CRD may be at a path.
    pub(super) fn holds_crd(&self, path: &str) -> bool {
        let name = path
            .strip_prefix(&self.crds)
            .and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/') && name.ends_with(".yaml") && !self.is_role(path))
    }

    /// Whether the roles are at a path.
    pub(super) fn is_role(&self, path: &str) -> bool {
        path == self.path("rbac/role.yaml")
    }

    /// Whether the webhook configurations are at a path.
    pub(super) fn is_webhooks(&self, path: &str) -> bool {
        path == self.path("webhook/manifests.yaml")
    }

    /// A CRD as the kustomization beside its folder names it.
    fn entry(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(&self.config)?.strip_prefix("/crd/")?;
        Some(name.to_owned())
    }
}

/// A folder within the project, as typed: `./deploy/` is `deploy`.
fn folder(flag: &str, typed: &str) -> Result<String> {
    let parts: Vec<&str> = typed.split('/').filter(|part| *part != ".").collect();
    let folder = parts.join("/");
    let folder = folder.trim_end_matches('/');
    check_relative(folder).with_context(|| {
        format!(
            "{flag}: run this in a folder that holds both the source and the manifests, or use `--stdout`"
        )
    })?;
    Ok(folder.to_owned())
}

/// First line of a CRD without the version annotation: by one of the two a later run knows what an earlier
/// one wrote, and only that is removed.
const HEADER: &str = "# Written by rbuilder from the Rust source. Not meant to be edited by hand.\n";

/// What was generated, by the manifests' own paths.
#[derive(Default)]
pub(super) struct Made {
    /// Where the CRDs are.
    crds: Vec<String>,
    roles: bool,
    webhooks: bool,
}

impl Made {
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

    /// Whether nothing was generated.
    pub(super) fn is_empty(&self) -> bool {
        self.crds.is_empty() && !self.roles && !self.webhooks
    }

    /// Adds what follows from all of them: what is generated no more goes, and lists are kept in step.
    pub(super) fn settle(&self, plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
        let layout = &request.layout;
        if request.makes(Product::Crds) {
            let stale = if layout.prunes && !layout.is_partial {
                prune(plan, tree, layout, &self.crds)?
            } else {
                Vec::new()
            };
            wire(plan, tree, layout, &self.crds, &stale)?;
        }
        if request.makes(Product::Webhooks)
            && (self.webhooks || !layout.is_partial)
            && layout.webhooks == format!("{}/webhook", layout.config)
        {
            webhooks::keep_in_step(plan, tree, &layout.config, self.webhooks)?;
        }
        if request.makes(Product::Roles) && !self.roles && !layout.is_partial {
            empty_role(plan, tree, request)?;
        }
        Ok(())
    }
}

/// Removes CRDs that an earlier run wrote and no kind stands for any more.
fn prune(plan: &mut Plan, tree: &Tree, layout: &Layout, crds: &[String]) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for path in tree.list(&layout.crds)? {
        if !path.ends_with(".yaml") || crds.contains(&path) {
            continue;
        }
        if tree.read(&path)?.is_some_and(|text| is_ours(&text)) {
            plan.delete(tree, &path)?;
            stale.push(path);
        }
    }
    Ok(stale)
}

/// Whether the generator wrote this CRD.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(HEADER)
        || text
            .lines()
            .any(|line| line.trim_start().starts_with("rbuilder.dev/version:"))
}

/// Keeps the list of CRDs in step with the files, where there is one.
fn wire(plan: &mut Plan, tree: &Tree, layout: &Layout, crds: &[String], stale: &[String]) -> Result<()> {
    let path = format!("{}/crd/kustomization.yaml", layout.config);
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(());
    };
    let mut edited = text.clone();
    let problem = |reason, deed, name: &str| Unrecognised {
        path: path.clone(),
        reason,
        deed,
        lines: format!("  resources:\n  - {name}"),
    };
    let entries = crds.iter().filter_map(|path| layout.entry(path)).collect();
    for name in kustomization::find_missing(&text, entries) {
        edited =
            kustomization::add(&edited, &name).map_err(|reason| problem(reason, "add these lines", &name))?;
    }
    for name in stale.iter().filter_map(|path| layout.entry(path)) {
        edited = kustomization::remove(&edited, &name)
            .map_err(|reason| problem(reason, "remove this entry", &name))?;
    }
    if edited != text {
        plan.edit(tree, &path, &edited)?;
    }
    Ok(())
}

/// A role that no marker asks for any more keeps its kind and name, which its binding refers to, and loses its
/// permissions. Without PROJECT the file may be somebody else's, and stays.
fn empty_role(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let path = request.layout.path("rbac/role.yaml");
    if plan.read(tree, &path)?.is_none() {
        return Ok(());
    }
    let Some(project) = plan.read(tree, FILE)? else {
        return Ok(());
    };
    let known = Project::parse(&project)?.known;
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
