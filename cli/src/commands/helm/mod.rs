//! `rbuilder helm`: makes a Helm chart of the manifests in `config/`, and merges it with the one that is there.

mod merge;

use std::path::Path;

use anyhow::{Result, anyhow};

use super::{Outcome, decide, execute, scaffold, show_outcome};
use crate::chart::{ChartOptions, make_chart};
use crate::flags::{HelmFlags, Output};
use crate::plan::{Plan, render_diff, render_json};
use crate::shell::Shell;
use crate::tree::Tree;

use merge::ChartMerge;

pub(super) fn run(dir: &Path, flags: &HelmFlags, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_helm(tree, flags);
    if !flags.check {
        return execute("helm", dir, flags.plan, shell, make);
    }
    let (_, outcome) = decide(dir, shell, make)?;
    outcome.plan.check_conflicts()?;
    if outcome.plan.is_empty() {
        show_outcome("helm", &outcome, flags.plan, shell);
        return Ok(0);
    }
    report_stale(&outcome, flags.plan.output, shell);
    Ok(1)
}

/// Returns the changes that make or update the chart. Its exit code is 1 if there are conflicts.
///
/// # Errors
/// Fails if the source has errors, if `config/` cannot be read, if conflicts of an earlier run are unresolved, or with
/// `--no-conflicts` if there are any.
pub fn plan_helm(tree: &Tree, flags: &HelmFlags) -> Result<Outcome> {
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
    let mut merge = ChartMerge::new(&options.folder, chart.files, flags.force);
    merge.add_to(&mut plan, tree)?;
    merge.check(flags.no_conflicts)?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in chart.warnings {
        outcome.warn(&message, &help);
    }
    merge.report(&mut outcome);
    Ok(outcome)
}

fn report_stale(outcome: &Outcome, output: Output, shell: &mut Shell) {
    shell.message(&outcome.warnings);
    if output == Output::Json {
        let mut answer = render_json(&outcome.plan, "helm", false);
        answer["diagnostics"] = outcome.diagnostics.clone().into();
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.diff(&render_diff(&outcome.plan));
    shell.error(&anyhow!("the chart is not up to date: run `rbuilder helm`"));
}
