//! Grafana dashboards and Prometheus rules for an operator, as files.
//!
//! The panels and the rules are tables ([`panels`], [`rules`]) over the metrics that the library serves, which
//! docs/metrics.md lists: tests hold the tables and the library to that page. Panels of the operator's own metrics come from a file that the user
//! writes ([`custom`]). Nothing here reads the dashboards that are there; `commands/grafana` merges.

mod custom;
mod dashboard;
mod panels;
mod rules;

use std::collections::BTreeMap;

use rbuilder_generator::yaml;

use self::custom::CustomPanel;
pub(crate) use self::custom::{CUSTOM_METRICS, CustomMetrics};
use self::dashboard::{Dashboard, Section};
use crate::hash::fnv1a_32;

/// The rules, where the component `prometheus` deploys them.
pub(crate) const RULES: &str = "config/prometheus/rules.yaml";

/// The list of custom metrics of a project that has none yet.
const EMPTY_CUSTOM_METRICS: &str = include_str!("custom-metrics.yaml");

/// Returns the text of each file by its path in the project: the dashboards, the rules, and the list of custom metrics as it
/// is before the user writes it.
pub(crate) fn make_files(project: &str, custom: &CustomMetrics) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        (
            "grafana/controller-runtime-metrics.json".to_owned(),
            dashboard(project, "runtime", "controllers", panels::RUNTIME).print(),
        ),
        (
            "grafana/controller-resources-metrics.json".to_owned(),
            dashboard(project, "resources", "resources", panels::RESOURCES).print(),
        ),
        (CUSTOM_METRICS.to_owned(), EMPTY_CUSTOM_METRICS.to_owned()),
        (
            RULES.to_owned(),
            format!(
                "# Recording rules and alerts of the operator. Merged by `rbuilder grafana` with your changes.\n{}",
                yaml::to_string(&rules::make_rules(project))
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
            dashboard(project, "custom", "custom metrics", &sections).print(),
        );
    }
    files
}

fn dashboard<'a>(project: &str, id: &str, subject: &str, sections: &'a [Section<'a>]) -> Dashboard<'a> {
    Dashboard {
        // Of the same length for every name: Grafana takes 40 characters at most.
        uid: format!("rbuilder-{}-{id}", fnv1a_32(project.as_bytes())),
        title: format!("{project} / {subject}"),
        tag: project.to_owned(),
        job: job_name(project),
        sections,
    }
}

/// Returns the label `job` of the manager's metrics: the name of their Service, as `config/default` prefixes it.
fn job_name(project: &str) -> String {
    format!("{project}-controller-manager-metrics-service")
}

#[cfg(test)]
mod tests;
