//! Generated roles without effect, because they have no binding or kustomize moves them to another
//! namespace.
//!
//! Markers define roles, but the project has to provide bindings. The scaffold binds the manager's
//! role, and `role_namespaces` binds roles in other namespaces. Roles with a `role_name` are up to
//! the user. In addition, config/default sets its namespace on all objects, unless a transformer
//! preserves it. We warn about roles without effect when they are added. `doctor` checks all roles.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_yaml::parse_documents;

use super::Request;
use super::layout::Layout;
use super::roles::{ENTRY, PLACEHOLDER, Role, find_namespace, is_config, is_kept, read_roles};
use crate::overlay::DEPLOYMENT;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::tree::Tree;

pub(super) fn find_new_unbound(plan: &Plan, tree: &Tree, layout: &Layout) -> Result<Vec<Diagnostic>> {
    let mut changes = plan.changes().iter();
    let Some((path, change)) = changes.find(|(path, _)| layout.is_role(path)) else {
        return Ok(Vec::new());
    };
    let before = read_roles(change.before());
    let mut added = read_roles(change.after().unwrap_or_default());
    added.retain(|role| !before.contains(role));
    check_roles(path, &added, plan, tree)
}

pub(in crate::commands) fn find_unbound_roles(tree: &Tree) -> Result<Vec<Diagnostic>> {
    let path = Request::default().with_settings(tree)?.layout.role_path();
    let roles = read_roles(&tree.read(&path)?.unwrap_or_default());
    check_roles(&path, &roles, &Plan::default(), tree)
}

/// Finds the generated roles whose last binding is removed. Returns the path of the manifest, and
/// the kind and name of each role.
pub(in crate::commands) fn find_losing_bindings(plan: &Plan, tree: &Tree) -> Result<(String, Vec<String>)> {
    let path = Request::default().with_settings(tree)?.layout.role_path();
    let roles = read_roles(&plan.read(tree, &path)?.unwrap_or_default());
    let (before, after) = (find_bound(&Plan::default(), tree)?, find_bound(plan, tree)?);
    let lost = roles
        .into_iter()
        .map(|role| (role.kind, role.name))
        .filter(|role| before.contains(role) && !after.contains(role))
        .map(|(kind, name)| format!("{kind} `{name}`"));
    Ok((path, lost.collect()))
}

fn check_roles(path: &str, roles: &BTreeSet<Role>, plan: &Plan, tree: &Tree) -> Result<Vec<Diagnostic>> {
    if roles.is_empty() {
        return Ok(Vec::new());
    }
    let Some(text) = plan.read(tree, FILE)? else {
        return Ok(Vec::new());
    };
    let Some(project) = Project::parse_own(&text)? else {
        return Ok(Vec::new());
    };
    let package = project.known.rbuilder.package.as_ref();
    // The bindings of other projects may be anywhere.
    if !project.is_scaffolded() || package.is_some_and(|package| package.leaves_out(path)) {
        return Ok(Vec::new());
    }
    let bound = find_bound(plan, tree)?;
    let own = format!("{}-system", project.known.project_name);
    let moved_to = plan
        .read(tree, DEPLOYMENT)?
        .and_then(|text| find_namespace(&text));
    let place = || FileRange::new(path, 0..0);
    let mut found = Vec::new();
    for role in roles {
        let Role {
            kind,
            name,
            namespace,
        } = role;
        if !bound.contains(&(kind.clone(), name.clone())) {
            found.push(
                Diagnostic::warning(
                    place(),
                    format!("no binding in config/ refers to {kind} `{name}`: it grants nothing"),
                )
                .help(
                    "add a binding to config/rbac, with an entry in its kustomization.yaml; config/rbac/role_binding.yaml is an \
                     example",
                ),
            );
        }
        let (Some(namespace), Some(moved_to)) = (namespace, &moved_to) else {
            continue;
        };
        let is_elsewhere = ![PLACEHOLDER, own.as_str(), moved_to.as_str()].contains(&namespace.as_str());
        if is_elsewhere && !is_kept(plan, tree, namespace)? {
            found.push(
                Diagnostic::warning(
                    place(),
                    format!(
                        "{DEPLOYMENT} moves Role `{name}` of namespace `{namespace}` to namespace `{moved_to}`"
                    ),
                )
                .help(format!(
                    "run `rbuilder manifests`, which lists `{ENTRY}` in `transformers` of {DEPLOYMENT}"
                )),
            );
        }
    }
    Ok(found)
}

/// Kind and name of all bound roles in the project. Skips files that can't be parsed.
fn find_bound(plan: &Plan, tree: &Tree) -> Result<BTreeSet<(String, String)>> {
    let mut paths: BTreeSet<String> = tree.find_files(is_config)?.into_iter().collect();
    paths.extend(plan.changes().keys().filter(|path| is_config(path)).cloned());
    let mut bound = BTreeSet::new();
    for path in paths {
        let text = plan.read(tree, &path)?.unwrap_or_default();
        if !text.contains("roleRef") {
            continue;
        }
        for binding in parse_documents(&text).unwrap_or_default() {
            let role = &binding["roleRef"];
            if let (Some(kind), Some(name)) = (role["kind"].as_str(), role["name"].as_str()) {
                bound.insert((kind.to_owned(), name.to_owned()));
            }
        }
    }
    Ok(bound)
}
