//! Tests the alerts of a chart in releases with other names than the project.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::sh::Cmd;

/// A release of the chart. It has a name, a namespace and values.
struct Release {
    name: &'static str,
    namespace: &'static str,
    values: &'static str,
}

/// The releases to test. Their name is the same as the project's, starts or ends with it, doesn't
/// contain it, or gets truncated because it's too long.
const RELEASES: &[Release] = &[
    Release {
        name: "shop",
        namespace: "shop-system",
        values: "",
    },
    Release {
        name: "shop-prod",
        namespace: "prod",
        values: "",
    },
    Release {
        name: "workshop",
        namespace: "tools",
        values: "",
    },
    Release {
        name: "prod",
        namespace: "prod",
        values: ",fullnameOverride=front",
    },
    Release {
        name: "a-name-of-a-release-that-is-as-long-as-helm-allows-it",
        namespace: "long",
        values: "",
    },
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
    (promtool, helm): (&Path, &Path),
    chart: &Path,
    tests: &str,
    folder: &Path,
) -> Result<()> {
    let mut other = None;
    for release in RELEASES {
        let rendered = Rendered::read(helm, chart, release)?;
        ensure!(
            other.as_ref() != Some(&rendered.service),
            "two releases have a Service `{}`",
            rendered.service
        );
        fs_err::write(folder.join("rules.yaml"), rendered.rules.to_string())?;
        let tests = tests
            .replace(PREFIXED, SERVICE)
            .replace(SERVICE, &rendered.service)
            .replace(NAMESPACE, release.namespace);
        let run = |tests: &str| {
            let file = folder.join("release.yaml");
            fs_err::write(&file, tests)?;
            Cmd::program(promtool).words("test rules").arg(file).run()
        };
        run(&tests).with_context(|| format!("the alerts of release {} are wrong", release.name))?;
        if let Some(other) = other.replace(rendered.service) {
            run(&test_with_another(&other).to_string())
                .with_context(|| format!("release {} takes `{other}` for its own", release.name))?;
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

/// The objects of a release that are about Prometheus.
struct Rendered {
    /// `spec` of the PrometheusRule.
    rules: Value,
    /// The name of the Service for metrics. This is also the `job` label of all its series.
    service: String,
}

impl Rendered {
    fn read(helm: &Path, chart: &Path, release: &Release) -> Result<Rendered> {
        let values = format!("metrics.prometheusRule.enabled=true{}", release.values);
        let text = Cmd::program(helm)
            .shown_as("helm")
            .words("template")
            .arg(release.name)
            .arg(chart)
            .args(["--namespace", release.namespace, "--set", &values])
            .read()?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|error| anyhow::anyhow!("{error}"))?;
        let find = |kind: &str| {
            let found = objects.iter().find(|object| object["kind"] == kind);
            found.with_context(|| format!("release {} has no {kind}", release.name))
        };
        let service = find("Service")?["metadata"]["name"].as_str().unwrap_or_default();
        Ok(Rendered {
            rules: find("PrometheusRule")?["spec"].clone(),
            service: service.to_owned(),
        })
    }
}
