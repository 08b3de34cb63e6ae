//! `rbuilder helm`: makes a Helm chart of the manifests in `config/`, and merges it with the one that is there.

use std::path::Path;

use anyhow::Result;

use super::generated_merge::{GeneratedMerge, Product, check_product};
use super::{Outcome, execute, scaffold};
use crate::chart::{ChartOptions, make_chart};
use crate::flags::ProductFlags;
use crate::plan::Plan;
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) const CHART: Product = Product {
    noun: "chart",
    command: "helm",
    base: ".rbuilder/chart.txt",
};

pub(super) fn run(dir: &Path, flags: &ProductFlags, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_helm(tree, flags);
    match flags.merge.check {
        true => check_product(CHART, dir, flags.merge.plan.output, shell, make),
        false => execute("helm", dir, flags.merge.plan, shell, make),
    }
}

/// Returns the changes that make or update the chart. Its exit code is 1 if there are conflicts.
///
/// # Errors
/// Fails if the source has errors, if `config/` cannot be read, if conflicts of an earlier run are unresolved, or with
/// `--no-conflicts` if there are any.
pub fn plan_helm(tree: &Tree, flags: &ProductFlags) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let context = scaffold::project_context(&project);
    let mut plan = Plan::default();
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let options = ChartOptions {
        folder: format!("charts/{}", context.name),
        name: context.name,
        is_namespaced: context.namespaced,
        is_ours: context.manager,
    };
    let chart = make_chart(&plan, tree, &options)?;
    let folder = &options.folder;
    let files = chart
        .files
        .into_iter()
        .map(|(path, text)| (format!("{folder}/{path}"), text));
    let mut merge = GeneratedMerge::read(CHART, &plan, tree, flags.merge.force)?;
    merge.add(&mut plan, tree, files.collect())?;
    merge.finish(&mut plan, tree)?;
    merge.check(flags.merge.no_conflicts)?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in chart.warnings {
        outcome.warn(&message, &help);
    }
    let next = format!("set the image in {folder}/values.yaml");
    merge.report(&mut outcome, &next, &format!("helm lint --strict {folder}"));
    Ok(outcome)
}
