//! Grafana dashboards and Prometheus rules for an operator, as files.
//!
//! The panels and rules are tables (`panels`, `rules`) over the library's metrics listed in
//! docs/metrics.md. Tests check both the tables and the library against that page. Panels for the
//! operator's own metrics come from a file maintained by the user (`custom`). Existing dashboards
//! aren't read here; `commands/grafana` merges with them.

mod custom;
mod dashboard;
mod panels;
mod rules;

use std::collections::BTreeMap;

use rbuilder_generator::yaml;

use self::custom::CustomPanel;
pub use self::custom::{CUSTOM_METRICS, CustomMetrics};
use self::dashboard::{Dashboard, Section};
use rbuilder_project::hash::fnv1a_32;

/// File with the rules, deployed by the `prometheus` component.
pub const RULES: &str = "config/prometheus/rules.yaml";

const EMPTY_CUSTOM_METRICS: &str = include_str!("custom-metrics.yaml");

/// Renders all files by path in the project: the dashboards, the rules, and an initial list of
/// custom metrics. `job` is the `job` label of the manager's metrics, i.e. the name of their Service
/// in the cluster.
pub fn make_files(project: &str, job: &str, custom: &CustomMetrics) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        (
            "grafana/controller-runtime-metrics.json".to_owned(),
            dashboard((project, job), "runtime", "controllers", panels::RUNTIME).print(),
        ),
        (
            "grafana/controller-resources-metrics.json".to_owned(),
            dashboard((project, job), "resources", "resources", panels::RESOURCES).print(),
        ),
        (CUSTOM_METRICS.to_owned(), EMPTY_CUSTOM_METRICS.to_owned()),
        (
            RULES.to_owned(),
            format!(
                "# Recording rules and alerts of the operator. Merged by `rbuilder grafana` with your changes.\n{}",
                yaml::to_string(&rules::make_rules(project, job))
            ),
        ),
    ]);
    let custom = custom.panels();
    if !custom.is_empty() {
        let queries: Vec<_> = custom.iter().map(CustomPanel::queries).collect();
        let panels: Vec<_> = custom
            .iter()
            .zip(&queries)
            .map(|(panel, queries)| panel.panel(queries))
            .collect();
        let sections = [Section {
            title: "",
            panels: &panels,
        }];
        files.insert(
            "grafana/custom-metrics/custom-metrics-dashboard.json".to_owned(),
            dashboard((project, job), "custom", "custom metrics", &sections).print(),
        );
    }
    files
}

fn dashboard<'a>(
    (project, job): (&str, &str),
    id: &str,
    subject: &str,
    sections: &'a [Section<'a>],
) -> Dashboard<'a> {
    Dashboard {
        // Hash the project name: Grafana limits UIDs to 40 characters.
        uid: format!("rbuilder-{}-{id}", fnv1a_32(project.as_bytes())),
        title: format!("{project} / {subject}"),
        tag: project.to_owned(),
        job: job.to_owned(),
        sections,
    }
}

#[cfg(test)]
mod tests;
