//! Names in the manifests rendered by `config/default`.

use serde_json::{Map, Value};

// As scaffolded. The webhook port has no name.
const METRICS_PORT: &str = "https";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) namespace: String,
    pub(super) account: String,
    /// Label selector for the manager's Pods, in the form `a=b,c=d`.
    pub(super) selector: String,
    /// `None` if `config/default` doesn't expose metrics.
    pub(super) metrics: Option<MetricsService>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetricsService {
    pub(super) name: String,
    pub(super) port: u64,
    pub(super) reader_role: String,
}

impl Rendered {
    #[track_caller]
    pub(super) fn read(text: &str) -> Self {
        let objects: Vec<Value> = serde_saphyr::from_multiple(text)
            .unwrap_or_else(|error| panic!("config/default renders invalid YAML: {error}"));
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        // There may be other Deployments next to the manager, so check the container names.
        let manager = of_kind("Deployment")
            .find(|deployment| has_manager(deployment))
            .or_else(|| of_kind("Deployment").next())
            .expect("config/default has a Deployment");
        let pod = &manager["spec"]["template"];
        let labels = pod["metadata"]["labels"].as_object();
        let selector = manager["spec"]["selector"]["matchLabels"].as_object();
        let service = of_kind("Service")
            .filter(|service| selects(service, labels))
            .find_map(metrics_port);
        let reader = of_kind("ClusterRole").find(|role| reads_metrics(role));
        let metrics = service.zip(reader).map(|((name, port), role)| MetricsService {
            name,
            port,
            reader_role: name_of(role),
        });
        Self {
            namespace: manager["metadata"]["namespace"]
                .as_str()
                .expect("the Deployment in config/default has a namespace")
                .to_owned(),
            account: pod["spec"]["serviceAccountName"]
                .as_str()
                .unwrap_or("default")
                .to_owned(),
            selector: selector.map(print_selector).unwrap_or_default(),
            metrics,
        }
    }
}

fn has_manager(deployment: &Value) -> bool {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    containers
        .into_iter()
        .flatten()
        .any(|container| container["name"] == "manager")
}

fn selects(service: &Value, labels: Option<&Map<String, Value>>) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector
        .zip(labels)
        .is_some_and(|(selector, labels)| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

fn metrics_port(service: &Value) -> Option<(String, u64)> {
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    let port = ports.find(|port| port["name"] == METRICS_PORT)?;
    Some((name_of(service), port["port"].as_u64()?))
}

fn reads_metrics(role: &Value) -> bool {
    let rules = role["rules"].as_array().map(Vec::as_slice);
    // Compare rules rather than names, which kustomize changes.
    matches!(rules, Some([rule]) if rule["nonResourceURLs"] == serde_json::json!(["/metrics"]))
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn print_selector(labels: &Map<String, Value>) -> String {
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "
kind: Deployment
metadata: {name: other, namespace: shop}
spec: {template: {spec: {containers: [{name: cache}]}}}
---
kind: Deployment
metadata: {name: shop-manager, namespace: shop}
spec:
  selector: {matchLabels: {app: shop, control-plane: manager}}
  template:
    metadata: {labels: {app: shop, control-plane: manager, team: tea}}
    spec: {serviceAccountName: shop-barista, containers: [{name: manager}]}
";
    const METRICS: &str = "
---
kind: Service
metadata: {name: shop-webhook}
spec: {ports: [{port: 443}], selector: {app: shop}}
---
kind: Service
metadata: {name: other-metrics}
spec: {ports: [{name: https, port: 1}], selector: {app: other}}
---
kind: Service
metadata: {name: shop-metrics}
spec: {ports: [{name: https, port: 8443}], selector: {app: shop}}
---
kind: ClusterRole
metadata: {name: shop-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
";

    fn expected(metrics: Option<MetricsService>) -> Rendered {
        Rendered {
            namespace: "shop".to_owned(),
            account: "shop-barista".to_owned(),
            selector: "app=shop,control-plane=manager".to_owned(),
            metrics,
        }
    }

    #[test]
    fn manager_is_found_beside_other_deployments() {
        assert_eq!(Rendered::read(MANAGER), expected(None));
    }

    #[test]
    fn metrics_service_is_found_by_selector_and_port() {
        let metrics = MetricsService {
            name: "shop-metrics".to_owned(),
            port: 8443,
            reader_role: "shop-reader".to_owned(),
        };
        let rendered = Rendered::read(&format!("{MANAGER}{METRICS}"));
        assert_eq!(rendered, expected(Some(metrics)));
    }

    #[test]
    #[should_panic(expected = "config/default has a Deployment")]
    fn manifests_without_a_deployment_are_rejected() {
        Rendered::read("kind: Service\n");
    }
}
