//! Checks that a chart's values have the expected effect on the objects.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Helm, parse};

/// Values of the chart and what we expect from them. Each expectation consists of the kind and an
/// object's name (without prefix), a field's path, and the value of the field as JSON.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str, &'static str, &'static str)],
);

const MANAGER: &str = "controller-manager";
const POD: &str = "/spec/template/spec";
const METRICS_SERVICE: &str = "controller-manager-metrics-service";
const MUTATING: &str = "mutating-webhook-configuration";

const CASES: &[Case] = &[
    (
        "metrics.port=9000,metrics.secure=false,metrics.serviceMonitor.enabled=true,networkPolicy.enabled=true",
        &[
            ("Service", METRICS_SERVICE, "/spec/ports/0/targetPort", "9000"),
            ("Service", METRICS_SERVICE, "/spec/ports/0/name", "\"http\""),
            (
                "ServiceMonitor",
                "controller-manager-metrics-monitor",
                "/spec/endpoints/0/scheme",
                "\"http\"",
            ),
            (
                "ServiceMonitor",
                "controller-manager-metrics-monitor",
                "/spec/endpoints/0/port",
                "\"http\"",
            ),
            (
                "ServiceMonitor",
                "controller-manager-metrics-monitor",
                "/spec/endpoints/0/tlsConfig",
                "null",
            ),
            (
                "NetworkPolicy",
                "allow-metrics-traffic",
                "/spec/ingress/0/ports/0/port",
                "9000",
            ),
        ],
    ),
    (
        "webhooks.port=9001,networkPolicy.enabled=true",
        &[
            ("Service", "webhook-service", "/spec/ports/0/targetPort", "9001"),
            ("Service", "webhook-service", "/spec/ports/0/port", "443"),
            (
                "NetworkPolicy",
                "allow-webhook-traffic",
                "/spec/ingress/0/ports/0/port",
                "9001",
            ),
        ],
    ),
    (
        "webhooks.failurePolicy=Ignore,webhooks.timeoutSeconds=3,webhooks.namespaceSelector.matchLabels.a=b",
        &[
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/0/failurePolicy",
                "\"Ignore\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/failurePolicy",
                "\"Ignore\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/0/timeoutSeconds",
                "3",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/0/namespaceSelector/matchLabels/a",
                "\"b\"",
            ),
        ],
    ),
    // The webhook for Pods must still ignore the Pods of its own manager.
    (
        "nameOverride=other,webhooks.objectSelector.matchLabels.a=b,webhooks.objectSelector.matchExpressions[0].key=c,\
         webhooks.objectSelector.matchExpressions[0].operator=Exists",
        &[
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/0/objectSelector/matchLabels/a",
                "\"b\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/objectSelector/matchLabels/a",
                "\"b\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/objectSelector/matchExpressions/0/values/0",
                "\"other\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/objectSelector/matchExpressions/1/key",
                "\"c\"",
            ),
        ],
    ),
    (
        "watchNamespaces={a,b}",
        &[
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/0/matchConditions/0/expression",
                "\"request.namespace == '' || request.namespace in ['a', 'b']\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/matchConditions/0/expression",
                "\"!(request.namespace in ['shop-system', 'kube-system'])\"",
            ),
            (
                "MutatingWebhookConfiguration",
                MUTATING,
                "/webhooks/1/matchConditions/1/name",
                "\"watched-namespaces\"",
            ),
        ],
    ),
    (
        "hostNetwork=true,dnsPolicy=ClusterFirstWithHostNet,deploymentAnnotations.a=b",
        &[
            ("Deployment", MANAGER, "/metadata/annotations/a", "\"b\""),
            ("Deployment", MANAGER, "/spec/template/spec/hostNetwork", "true"),
            (
                "Deployment",
                MANAGER,
                "/spec/template/spec/dnsPolicy",
                "\"ClusterFirstWithHostNet\"",
            ),
        ],
    ),
    (
        "sharding.enabled=true,sharding.replicas=3,sharding.strategy.type=RollingUpdate,args={--a,--leader-elect=true},\
         topologySpreadConstraints[0].topologyKey=rack,podDisruptionBudget.enabled=true",
        &[
            ("Deployment", MANAGER, "/spec/replicas", "3"),
            ("Deployment", MANAGER, "/spec/strategy/type", "\"RollingUpdate\""),
            (
                "Deployment",
                MANAGER,
                "/spec/template/spec/containers/0/args/1",
                "\"--leader-elect=false\"",
            ),
            (
                "Deployment",
                MANAGER,
                "/spec/template/spec/topologySpreadConstraints",
                "[{\"topologyKey\":\"rack\"}]",
            ),
            ("PodDisruptionBudget", MANAGER, "/spec/minAvailable", "1"),
        ],
    ),
    (
        "sharding.enabled=true,sharding.replicas=null",
        &[
            ("Deployment", MANAGER, "/spec/replicas", "null"),
            ("PodDisruptionBudget", MANAGER, "/spec/maxUnavailable", "1"),
        ],
    ),
];

/// Checks a chart's values. The project must have webhooks.
pub(super) fn check_values(helm: &Helm, chart: &Path) -> Result<()> {
    for (values, expected) in CASES {
        let objects = helm.render(chart, "shop", values)?;
        for (kind, name, path, value) in *expected {
            let object = find(&objects, kind, name)?;
            let found = object.pointer(path).unwrap_or(&Value::Null);
            ensure!(
                *found == serde_json::from_str::<Value>(value)?,
                "with {values}, {path} of {kind} {name} is {found}, not {value}"
            );
        }
    }
    check_ports(helm, chart)?;
    check_budget(helm, chart)?;
    check_names(helm, chart)?;
    check_condition(helm, chart)
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Result<&'a Value> {
    let is_it = |object: &&Value| {
        let found = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == kind && found.ends_with(name)
    };
    let found = objects.iter().find(is_it);
    found.with_context(|| format!("the chart has no {kind} {name}"))
}

/// Checks that the values for ports change the arguments, variables and ports of the manager in the
/// same way.
fn check_ports(helm: &Helm, chart: &Path) -> Result<()> {
    let values = "healthProbe.port=9002,metrics.port=9000,metrics.secure=false,webhooks.port=9001,sharding.enabled=false";
    let objects = helm.render(chart, "shop", values)?;
    let container = find(&objects, "Deployment", MANAGER)?.pointer(&format!("{POD}/containers/0"));
    let container = container.context("the Deployment has no container")?;
    for (name, value) in [
        ("METRICS_BIND_ADDRESS", ":9000"),
        ("METRICS_SECURE", "false"),
        ("WEBHOOK_PORT", "9001"),
    ] {
        let variable = json!({ "name": name, "value": value });
        let variables = container["env"].as_array();
        ensure!(
            variables.is_some_and(|variables| variables.contains(&variable)),
            "the manager has no variable {variable}"
        );
    }
    for (values, expected) in [
        (
            values,
            json!(["--leader-elect", "--health-probe-bind-address=:9002"]),
        ),
        (
            "healthProbe.port=9002,args={--health-probe-bind-address=:9003}",
            json!(["--health-probe-bind-address=:9003"]),
        ),
    ] {
        let objects = helm.render(chart, "shop", values)?;
        let deployment = find(&objects, "Deployment", MANAGER)?;
        let arguments = deployment.pointer(&format!("{POD}/containers/0/args"));
        ensure!(
            arguments == Some(&expected),
            "with {values}, the arguments are {arguments:?}"
        );
    }
    for (name, port) in [("health", 9002), ("metrics", 9000), ("webhook-server", 9001)] {
        let port = json!({ "name": name, "containerPort": port, "protocol": "TCP" });
        let ports = container["ports"].as_array();
        ensure!(
            ports.is_some_and(|ports| ports.contains(&port)),
            "the manager has no port {port}"
        );
    }
    Ok(())
}

/// Checks that there is never more than one PodDisruptionBudget for the manager. Otherwise it would
/// not be possible to evict its Pods.
fn check_budget(helm: &Helm, chart: &Path) -> Result<()> {
    for (values, expected) in [
        ("sharding.enabled=false", 0),
        ("sharding.enabled=true", 1),
        ("sharding.enabled=false,podDisruptionBudget.enabled=true", 1),
        ("sharding.enabled=true,podDisruptionBudget.enabled=true", 1),
    ] {
        let objects = helm.render(chart, "shop", values)?;
        let budgets = objects
            .iter()
            .filter(|object| object["kind"] == "PodDisruptionBudget");
        ensure!(
            budgets.count() == expected,
            "with `{values}`, expected {expected} PodDisruptionBudgets"
        );
    }
    Ok(())
}

/// Checks that the names of Services are valid (i.e. DNS labels that start with a letter), no
/// matter what the release is called.
fn check_names(helm: &Helm, chart: &Path) -> Result<()> {
    for release in ["shop.v1", "a.b", "1shop", &"a.".repeat(26)] {
        let release = release.trim_end_matches('.');
        let objects = helm.render(chart, release, "")?;
        for object in objects.iter().filter(|object| object["kind"] == "Service") {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let is_label = name.len() <= 63
                && name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-');
            ensure!(is_label, "release {release} has a Service `{name}`");
        }
    }
    Ok(())
}

/// Checks that another chart can depend on this one with a condition.
fn check_condition(helm: &Helm, chart: &Path) -> Result<()> {
    let parent = tempfile::Builder::new().prefix("rbuilder-parent-").tempdir()?;
    let dependency = json!([{ "name": "shop", "version": "0.1.0", "condition": "shop.enabled" }]);
    let file =
        json!({ "apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": dependency });
    fs_err::write(parent.path().join("Chart.yaml"), file.to_string())?;
    fs_err::create_dir(parent.path().join("charts"))?;
    helm.command("package --destination")
        .arg(parent.path().join("charts"))
        .arg(chart)
        .read()?;
    for (enabled, is_there) in [("true", true), ("false", false)] {
        let set = format!("shop.enabled={enabled}");
        let rendered = helm
            .command("template a --set")
            .arg(set)
            .arg(parent.path())
            .read()?;
        let objects = parse(&rendered)?;
        ensure!(
            objects.is_empty() != is_there,
            "with `shop.enabled={enabled}`, the dependency has {} objects",
            objects.len()
        );
    }
    Ok(())
}
