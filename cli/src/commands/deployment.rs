//! Faults of `config/default`, which is built in memory: what kustomize would refuse, and references
//! to objects that are not deployed.

use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_products::kustomize::{Fault, find_each};

use crate::overlay::DEPLOYMENT;
use crate::plan::Plan;
use crate::tree::Tree;

/// A package may keep its role, which is bound like a generated one.
const ROLE: &str = "config/rbac/role.yaml";

/// Finds the faults of the project's deployment after a plan. None if the project has no
/// deployment, or one that it had before the scaffold.
pub(super) fn find_deployment_faults(plan: &Plan, tree: &Tree) -> Vec<Fault> {
    // If PROJECT can't be read, the command reports that.
    let Ok(Some(project)) = plan.read_project(tree) else {
        return Vec::new();
    };
    let package = project.known.rbuilder.package.as_ref();
    let is_left_out = package.is_some_and(|package| package.leaves_out(DEPLOYMENT));
    let is_there = matches!(plan.read(tree, DEPLOYMENT), Ok(Some(_)));
    if !project.is_scaffolded() || is_left_out || !is_there {
        return Vec::new();
    }
    let (mut faults, mut references) = find_each(&|path| plan.read(tree, path));
    // A package that keeps manifests of its own may deploy the missing objects in another way.
    let is_config = |path: &String| path.starts_with("config/") && path != ROLE;
    if package.is_some_and(|package| package.left_out.iter().any(is_config)) {
        for fault in &mut references {
            fault.is_error = false;
        }
    }
    faults.append(&mut references);
    faults
}

/// The faults as diagnostics.
pub(super) fn to_diagnostics(faults: Vec<Fault>) -> impl Iterator<Item = Diagnostic> {
    faults.into_iter().map(|fault| {
        let place = FileRange::new(&fault.path, 0..0);
        let diagnostic = match fault.is_error {
            true => Diagnostic::error(place, fault.message),
            false => Diagnostic::warning(place, fault.message),
        };
        diagnostic.help(fault.help)
    })
}
