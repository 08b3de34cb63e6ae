//! Tests the alerts of a chart in releases with other names than the project.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::helm::Helm;
use crate::sh::Cmd;
use crate::value::{find_kind, text};

/// The releases to test: names, namespaces and values. The name is the same as the project's, starts
/// or ends with it, doesn't contain it, or gets truncated because it's too long.
const RELEASES: &[(&str, &str, &str)] = &[
    ("shop", "shop-system", ""),
    ("shop-prod", "prod", ""),
    ("workshop", "tools", ""),
    ("prod", "prod", ",fullnameOverride=front"),
    (
        "a-name-of-a-release-that-is-as-long-as-helm-allows-it",
        "long",
        "",
    ),
];

/// Service for the project's metrics, and its namespace. The tests of the alerts use these names.
const SERVICE: &str = "shop-controller-manager-metrics-service";
const NAMESPACE: &str = "shop-system";
/// The Service with a prefix in its name. Rules which are not in a chart can't know the prefix, so
/// they must match it as well.
const PREFIXED: &str = "blue-shop-controller-manager-metrics-service";

/// Runs the tests of the alerts for each release, using its names. The same alerts must
/// fire as before, but they must not be caused by series of another release.
pub(super) fn check_releases(
    (promtool, helm): (&Path, &Helm),
    chart: &Path,
    tests: &str,
    folder: &Path,
) -> Result<()> {
    let mut other = None;
    for (name, namespace, values) in RELEASES {
        let values = format!("metrics.prometheusRule.enabled=true{values}");
        let objects = helm.render_in(namespace, chart, name, &values)?;
        // This is also the `job` label of all series.
        let service = text(find_kind(&objects, "Service")?, "/metadata/name").to_owned();
        ensure!(
            other.as_ref() != Some(&service),
            "two releases have a Service `{service}`"
        );
        let rules = &find_kind(&objects, "PrometheusRule")?["spec"];
        fs_err::write(folder.join("rules.yaml"), rules.to_string())?;
        let tests = tests
            .replace(PREFIXED, SERVICE)
            .replace(SERVICE, &service)
            .replace(NAMESPACE, namespace);
        let run = |tests: &str| {
            let file = folder.join("release.yaml");
            fs_err::write(&file, tests)?;
            Cmd::program(promtool).words("test rules").arg(file).run()
        };
        run(&tests).with_context(|| format!("the alerts of release {name} are wrong"))?;
        if let Some(other) = other.replace(service) {
            run(&test_with_another(&other).to_string())
                .with_context(|| format!("release {name} takes `{other}` for its own"))?;
        }
    }
    println!("the alerts fire as they should in {} releases", RELEASES.len());
    Ok(())
}

/// Returns a test in which all series are from another release. In this case the operator counts as
/// down.
fn test_with_another(service: &str) -> Value {
    json!({
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [{ "series": format!("up{{job=\"{service}\", namespace=\"other\"}}"), "values": "1x30" }],
            "promql_expr_test": [{
                "expr": "count by (alertname) (ALERTS{alertstate=\"firing\"})",
                "eval_time": "20m",
                "exp_samples": [{ "labels": "{alertname=\"OperatorDown\"}", "value": 1 }],
            }],
        }],
    })
}
