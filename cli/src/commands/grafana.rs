//! `rbuilder grafana`: generates Grafana dashboards and Prometheus rules, and merges them with the
//! existing ones.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::generated_merge::{DASHBOARDS, GeneratedMerge, check_product};
use super::{Outcome, execute, scaffold};
use crate::edit::kustomization;
use crate::grafana::{CUSTOM_METRICS, CustomMetrics, RULES, make_files};
use crate::plan::Plan;
use crate::render;
use crate::request::ProductMergeRequest;
use crate::shell::Shell;
use crate::tree::Tree;

const KUSTOMIZATION: &str = "config/prometheus/kustomization.yaml";

pub(super) fn run(dir: &Path, requested: &ProductMergeRequest, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_grafana(tree, requested);
    match requested.check {
        true => check_product(DASHBOARDS, dir, requested.mode.output, shell, make),
        false => execute("grafana", dir, requested.mode, shell, make),
    }
}

/// Plans to create or update the dashboards and rules. The exit code is 1 on conflicts.
///
/// # Errors
/// Fails if the list of custom metrics is invalid, if conflicts of an earlier run are unresolved,
/// or if there are conflicts and `--no-conflicts` is set.
pub fn plan_grafana(tree: &Tree, requested: &ProductMergeRequest) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let context = render::project_context(&project);
    let custom = tree.read(CUSTOM_METRICS)?.unwrap_or_default();
    let service = project.known.rbuilder.names.metrics_service();
    let job = format!("{}{service}", project.name_prefix());
    let files = make_files(&context.name, &job, &CustomMetrics::parse(&custom)?);
    let mut plan = Plan::default();
    let mut merge = GeneratedMerge::read(DASHBOARDS, &plan, tree, requested.force)?;
    merge.add(&mut plan, tree, files)?;
    merge.finish(&mut plan, tree)?;
    merge.check(requested.no_conflicts)?;
    let is_listed = list_rules(&mut plan, tree)?;
    let mut outcome = Outcome {
        plan,
        ..Outcome::default()
    };
    if !is_listed {
        outcome.warn(
            &format!("{RULES} is not deployed: {KUSTOMIZATION} does not exist"),
            "list it in your own kustomization, or load its `spec` as a rule file of Prometheus",
        );
    }
    if !context.manager {
        outcome.warn(
            "this package does not use rbuilder's manager, so its metrics may have other names",
            "use `rbuilder::Manager`, or remove the panels and rules without data",
        );
    }
    let next =
        "import grafana/*.json into Grafana, and deploy the rules with `rbuilder edit --enable prometheus`";
    merge.report(&mut outcome, next, "make deploy IMG=<image>");
    Ok(outcome)
}

/// Lists new rules in the kustomization, so that they are deployed. Returns false if there is no
/// kustomization.
fn list_rules(plan: &mut Plan, tree: &Tree) -> Result<bool> {
    let is_new = tree.read(RULES)?.is_none() && plan.read(tree, RULES)?.is_some();
    let Some(text) = plan.read(tree, KUSTOMIZATION)? else {
        return Ok(!is_new);
    };
    // Existing rules that aren't listed may have been removed from the list by the user.
    if is_new {
        let edited = kustomization::add_resource(&text, "rules.yaml")
            .map_err(|reason| anyhow!("cannot add `rules.yaml` to {KUSTOMIZATION}: {reason}"))?;
        plan.edit(tree, KUSTOMIZATION, &edited)?;
    }
    Ok(true)
}
