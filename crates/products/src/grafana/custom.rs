//! The list of an operator's custom metrics, in the format of kubebuilder's plugin, and panels for
//! them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::dashboard::{Panel, Query};
use rbuilder_yaml::describe_failure;

/// Path of the user's list of custom metrics.
pub const CUSTOM_METRICS: &str = "grafana/custom-metrics/config.yaml";

/// More metrics would make an unusable dashboard.
const MOST_METRICS: usize = 200;

/// Custom metrics listed by the user.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomMetrics {
    /// May be `null`, which is how kubebuilder writes an empty list.
    #[serde(default)]
    custom_metrics: Option<Vec<CustomMetric>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CustomMetric {
    metric: String,
    r#type: MetricType,
    /// Query of the panel. The default depends on the type.
    #[serde(default)]
    expr: String,
    /// Grafana unit. The default depends on the suffix of the name.
    #[serde(default)]
    unit: String,
    /// The title of the panel. Defaults to the name of the metric.
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

pub(super) struct CustomPanel {
    title: String,
    description: String,
    unit: String,
    /// Expressions and their legends.
    queries: Vec<(String, String)>,
}

impl CustomMetrics {
    /// Parses the list.
    ///
    /// # Errors
    /// Fails with line and column if `text` isn't such a list, or with the name of an invalid or
    /// duplicate metric.
    pub fn parse(text: &str) -> Result<CustomMetrics> {
        let parsed: Result<Option<CustomMetrics>, _> = rbuilder_yaml::parse(text);
        let list = match parsed {
            Ok(list) => list.unwrap_or_default(),
            Err(error) => return Err(describe_failure(CUSTOM_METRICS, text, &error)),
        };
        let mut names = BTreeSet::new();
        for CustomMetric { metric, .. } in list.metrics() {
            if !is_metric_name(metric) {
                bail!(
                    "{CUSTOM_METRICS}: expected the name of a metric, such as `backups_total`, found `{}`",
                    metric.escape_debug()
                );
            }
            if !names.insert(metric) {
                bail!("{CUSTOM_METRICS}: the metric `{metric}` is listed twice: remove one of the entries");
            }
        }
        if names.len() > MOST_METRICS {
            bail!(
                "{CUSTOM_METRICS}: expected {MOST_METRICS} metrics at most, found {}",
                names.len()
            );
        }
        Ok(list)
    }

    fn metrics(&self) -> &[CustomMetric] {
        self.custom_metrics.as_deref().unwrap_or_default()
    }

    pub(super) fn panels(&self) -> Vec<CustomPanel> {
        self.metrics().iter().map(CustomMetric::panel).collect()
    }
}

impl CustomMetric {
    fn panel(&self) -> CustomPanel {
        let or = |given: &str, default: &str| match given.trim() {
            "" => default.to_owned(),
            given => given.to_owned(),
        };
        CustomPanel {
            title: or(&self.title, &self.metric),
            description: or(&self.description, &self.r#type.describe(&self.metric)),
            unit: or(&self.unit, self.default_unit()),
            queries: self.queries(),
        }
    }

    fn queries(&self) -> Vec<(String, String)> {
        const LEGEND: &str = "{{instance}}";
        const MATCHERS: &str = r#"job="$job", namespace="$namespace", instance=~"$instance""#;
        let metric = &self.metric;
        if !self.expr.trim().is_empty() {
            return vec![(self.expr.trim().to_owned(), String::new())];
        }
        match self.r#type {
            MetricType::Counter => vec![(
                format!("sum by (instance) (rate({metric}{{{MATCHERS}}}[$__rate_interval]))"),
                LEGEND.to_owned(),
            )],
            MetricType::Gauge => vec![(
                format!("sum by (instance) ({metric}{{{MATCHERS}}})"),
                LEGEND.to_owned(),
            )],
            MetricType::Histogram => [("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99")]
                .map(|(quantile, legend)| {
                    let rate = format!("rate({metric}_bucket{{{MATCHERS}}}[$__rate_interval])");
                    (
                        format!("histogram_quantile({quantile}, sum by (le) ({rate}))"),
                        legend.to_owned(),
                    )
                })
                .into(),
        }
    }

    /// Unit suggested by the name. Counters are shown as rates, i.e. per second.
    fn default_unit(&self) -> &'static str {
        let name = self.metric.trim_end_matches("_total");
        let unit = |ending: &str| name.ends_with(ending);
        match self.r#type {
            MetricType::Counter if unit("_bytes") => "Bps",
            MetricType::Counter if unit("_seconds") => "short",
            MetricType::Counter => "ops",
            _ if unit("_seconds") => "s",
            _ if unit("_bytes") => "bytes",
            _ if unit("_ratio") => "percentunit",
            _ => "short",
        }
    }
}

impl MetricType {
    fn describe(self, metric: &str) -> String {
        match self {
            MetricType::Counter => format!("Rate of `{metric}` per second."),
            MetricType::Gauge => format!("Value of `{metric}`."),
            MetricType::Histogram => format!("Quantiles of `{metric}`."),
        }
    }
}

impl CustomPanel {
    pub(super) fn queries(&self) -> Vec<Query<'_>> {
        self.queries
            .iter()
            .map(|(expr, legend)| Query(expr, legend))
            .collect()
    }

    pub(super) fn panel<'a>(&'a self, queries: &'a [Query<'a>]) -> Panel<'a> {
        Panel {
            title: &self.title,
            description: &self.description,
            unit: &self.unit,
            width: 12,
            queries,
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}
