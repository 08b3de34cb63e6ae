//! `rbuilder helm`: generates a Helm chart from the manifests in `config/`, and merges it with the
//! existing chart.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_yaml::describe_failure;
use serde_json::Value;

use super::generated_merge::{CHART, GeneratedMerge, check_product};
use super::{Outcome, execute, scaffold};
use crate::chart::{ChartOptions, README, has_image, make_chart};
use crate::plan::Plan;
use crate::render;
use crate::request::ProductRequest;
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, requested: &ProductRequest, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_helm(tree, requested);
    match requested.merge.check {
        true => check_product(CHART, dir, requested.merge.mode.output, shell, make),
        false => execute("helm", dir, requested.merge.mode, shell, make),
    }
}

/// Plans to create or update the chart. The exit code is 1 on conflicts.
///
/// # Errors
/// Returns an error if the source has errors, if `config/` cannot be read, if Chart.yaml,
/// values.yaml or the schema cannot be parsed, or if conflicts of an earlier run are unresolved.
/// With `--no-conflicts`, conflicts are errors.
pub fn plan_helm(tree: &Tree, requested: &ProductRequest) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let context = render::project_context(&project);
    let mut plan = Plan::default();
    let found = scaffold::add_manifests(&mut plan, tree, requested.manifests)?;
    let options = ChartOptions {
        folder: format!("charts/{}", context.name),
        name: context.name,
        is_namespaced: context.namespaced,
        is_ours: context.manager,
    };
    let mut chart = make_chart(&plan, tree, &options)?;
    let folder = &options.folder;
    let in_folder = |path: &str| format!("{folder}/{path}");
    let files = std::mem::take(&mut chart.files).into_iter();
    let files = files.map(|(path, text)| (in_folder(&path), text));
    let mut merge = GeneratedMerge::read(CHART, &plan, tree, requested.merge.force)?;
    merge.add(&mut plan, tree, files.collect())?;
    check_json(&plan, tree, &merge, &in_folder("values.schema.json"))?;
    read_yaml(&plan, tree, &merge, &in_folder("Chart.yaml"))?;
    let values = read_yaml(&plan, tree, &merge, &in_folder("values.yaml"))?;
    let readme = (in_folder(README), chart.print_readme(&values));
    merge.add(&mut plan, tree, BTreeMap::from([readme]))?;
    merge.finish(&mut plan, tree)?;
    merge.check(requested.merge.no_conflicts)?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in chart.warnings {
        outcome.warn(&message, &help);
    }
    let next = match has_image(&values) {
        true => format!("review the changes of {folder}"),
        false => format!("set the image in {folder}/values.yaml"),
    };
    merge.report(&mut outcome, &next, &format!("helm lint --strict {folder}"));
    Ok(outcome)
}

/// Reads a YAML file of the chart with the changes in `plan`. Null if the file is missing or has
/// conflicts.
fn read_yaml(plan: &Plan, tree: &Tree, merge: &GeneratedMerge, path: &str) -> Result<Value> {
    let text = plan.read(tree, path)?.unwrap_or_default();
    if merge.has_conflict(path) || text.trim().is_empty() {
        return Ok(Value::Null);
    }
    // Helm rejects a chart in which this isn't valid YAML.
    rbuilder_yaml::parse(&text).map_err(|error| describe_failure(path, &text, &error))
}

/// Checks a JSON file of the chart with the changes in `plan`, unless it has conflicts.
fn check_json(plan: &Plan, tree: &Tree, merge: &GeneratedMerge, path: &str) -> Result<()> {
    let Some(text) = plan.read(tree, path)?.filter(|_| !merge.has_conflict(path)) else {
        return Ok(());
    };
    let parsed: Result<Value, serde_json::Error> = serde_json::from_str(&text);
    match parsed {
        Ok(_) => Ok(()),
        Err(error) => bail!(
            "cannot parse {path}:{}:{}: {}",
            error.line(),
            error.column(),
            describe_json(&error)
        ),
    }
}

/// Strips the location that the JSON parser appends to its errors.
fn describe_json(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => message,
    }
}
