//! References between the objects of a kustomization: subjects, roles, selectors, Services and
//! service accounts. kustomize and the API server accept a reference to nothing.

use serde_json::{Map, Value};

use super::{Fault, Object, ROOT, WORKLOADS, list_names};

/// Stands for the namespace of the manager.
const PLACEHOLDER: &str = "system";
/// ClusterRoles that every cluster has, besides those with a colon in their name.
const BUILT_IN_ROLES: [&str; 4] = ["admin", "cluster-admin", "edit", "view"];
/// Environment variable with the name of the Service for webhooks.
const SERVICE_VARIABLE: &str = "WEBHOOK_CERT_SERVICE";

pub(super) fn check(objects: &[Object], prefix: &str, namespace: Option<&str>, faults: &mut Vec<Fault>) {
    let mut check = Check {
        objects,
        prefix,
        namespace,
        faults,
    };
    for object in objects {
        match object.kind() {
            "RoleBinding" | "ClusterRoleBinding" => check.binding(object),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                let webhooks = object.value["webhooks"].as_array().into_iter().flatten();
                webhooks.for_each(|webhook| check.service(object, &webhook["clientConfig"]["service"]));
            }
            "CustomResourceDefinition" => {
                let conversion = &object.value["spec"]["conversion"]["webhook"];
                check.service(object, &conversion["clientConfig"]["service"]);
            }
            "APIService" => check.service(object, &object.value["spec"]["service"]),
            "Certificate" => check.host_names(object),
            "Service" => check.selector(object, &object.value["spec"]["selector"]),
            "NetworkPolicy" => check.selector(object, &object.value["spec"]["podSelector"]["matchLabels"]),
            "PodDisruptionBudget" => check.selector(object, &object.value["spec"]["selector"]["matchLabels"]),
            "ServiceMonitor" => check.monitor(object),
            "HorizontalPodAutoscaler" => check.scaled(object),
            kind if WORKLOADS.contains(&kind) => check.workload(object),
            _ => {}
        }
    }
}

struct Check<'a> {
    objects: &'a [Object],
    prefix: &'a str,
    namespace: Option<&'a str>,
    faults: &'a mut Vec<Fault>,
}

impl<'a> Check<'a> {
    fn of_kind<'k>(&self, kind: &'k str) -> impl Iterator<Item = &'a Object> + use<'a, 'k> {
        let objects = self.objects.iter();
        objects.filter(move |object| object.kind() == kind)
    }

    /// Whether there is an object. kustomize adds the prefix to its name and to references, but not
    /// to a reference that has it already.
    fn has(&self, kind: &str, name: &str) -> bool {
        let mut objects = self.of_kind(kind);
        let short = name.strip_prefix(self.prefix);
        objects.any(|object| object.name() == name || Some(object.name()) == short)
    }

    fn is_own_namespace(&self, namespace: Option<&str>) -> bool {
        namespace.is_none_or(|namespace| namespace == PLACEHOLDER || Some(namespace) == self.namespace)
    }

    fn report(&mut self, object: &Object, message: String, help: String, is_error: bool) {
        let fault = Fault {
            path: object.path.clone(),
            message: format!("{} `{}` {message}", object.kind(), object.name()),
            help,
            is_error,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn advise(&self, kind: &str) -> String {
        let others: Vec<&Object> = self.of_kind(kind).collect();
        match others.as_slice() {
            [] => format!("list the {kind} in a kustomization, or correct the name"),
            others => format!("correct the name: {ROOT} has {}", list_names(others)),
        }
    }

    fn binding(&mut self, object: &Object) {
        let subjects = object.value["subjects"].as_array().into_iter().flatten();
        for subject in subjects.filter(|subject| subject["kind"] == "ServiceAccount") {
            let (name, namespace) = (subject["name"].as_str(), subject["namespace"].as_str());
            let Some(name) = name.filter(|name| *name != "default") else {
                continue;
            };
            if !self.is_own_namespace(namespace) || self.has("ServiceAccount", name) {
                continue;
            }
            let message = format!(
                "grants its role to ServiceAccount `{name}`, which {ROOT} does not have: the manager lacks these permissions"
            );
            self.report(object, message, self.advise("ServiceAccount"), true);
        }
        let own = object.value["metadata"]["namespace"].as_str();
        if object.kind() == "RoleBinding" && !self.is_own_namespace(own) {
            return;
        }
        let role = &object.value["roleRef"];
        let (Some(kind), Some(name)) = (role["kind"].as_str(), role["name"].as_str()) else {
            return;
        };
        let is_built_in = kind == "ClusterRole" && (BUILT_IN_ROLES.contains(&name) || name.contains(':'));
        if is_built_in || self.has(kind, name) {
            return;
        }
        let other = if kind == "Role" { "ClusterRole" } else { "Role" };
        let is_other = self.has(other, name);
        let help = match is_other {
            true => format!("{ROOT} has {other} `{name}`: correct `kind` of `roleRef`"),
            false => self.advise(kind),
        };
        let message = format!("refers to {kind} `{name}`, which {ROOT} does not have: it grants nothing");
        // A ClusterRole may be another project's.
        self.report(object, message, help, kind == "Role" || is_other);
    }

    fn service(&mut self, object: &Object, service: &Value) {
        let Some(name) = service["name"].as_str() else {
            return;
        };
        if !self.is_own_namespace(service["namespace"].as_str()) || self.has("Service", name) {
            return;
        }
        let message = format!("calls Service `{name}`, which {ROOT} does not have");
        self.report(object, message, self.advise("Service"), true);
    }

    fn host_names(&mut self, object: &Object) {
        let names = object.value["spec"]["dnsNames"].as_array().into_iter().flatten();
        for name in names.filter_map(Value::as_str) {
            let mut parts = name.split('.');
            let (Some(service), Some(namespace), Some("svc")) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if self.is_own_namespace(Some(namespace)) && !self.has("Service", service) {
                let message = format!("is for Service `{service}`, which {ROOT} does not have");
                self.report(object, message, self.advise("Service"), true);
            }
        }
    }

    /// Checks that a selector selects the pods of a workload.
    fn selector(&mut self, object: &Object, selector: &Value) {
        let Some(labels) = selector.as_object().filter(|labels| !labels.is_empty()) else {
            return;
        };
        let mut workloads = self
            .objects
            .iter()
            .filter(|object| WORKLOADS.contains(&object.kind()))
            .peekable();
        if workloads.peek().is_none() {
            return;
        }
        if workloads.any(|workload| selects(labels, pod_labels(workload))) {
            return;
        }
        let message = format!(
            "selects pods with {}, which no workload of {ROOT} has",
            print_labels(labels)
        );
        let deployments = self.of_kind("Deployment");
        let shown = deployments.filter_map(|deployment| {
            let labels = pod_labels(deployment).as_object()?;
            Some(format!(
                "the pods of Deployment `{}` have {}",
                deployment.name(),
                print_labels(labels)
            ))
        });
        let shown: Vec<String> = shown.take(3).collect();
        let help = match shown.is_empty() {
            true => "correct the selector".to_owned(),
            false => format!("correct the selector: {}", shown.join("; ")),
        };
        // The operator may create the pods, unless it is the webhooks of the manager.
        let is_called = object.kind() == "Service" && self.is_called(object.name());
        self.report(object, message, help, is_called);
    }

    /// Whether the API server calls a Service.
    fn is_called(&self, service: &str) -> bool {
        self.objects.iter().any(|object| {
            let webhooks = object.value["webhooks"].as_array().into_iter().flatten();
            let conversion = &object.value["spec"]["conversion"]["webhook"];
            let mut clients = webhooks.chain([conversion]);
            clients.any(|client| client["clientConfig"]["service"]["name"] == service)
        })
    }

    fn monitor(&mut self, object: &Object) {
        let selector = object.value["spec"]["selector"]["matchLabels"].as_object();
        let Some(labels) = selector.filter(|labels| !labels.is_empty()) else {
            return;
        };
        let mut services = self.of_kind("Service");
        if services.any(|service| selects(labels, &service.value["metadata"]["labels"])) {
            return;
        }
        let message = format!(
            "selects Services with {}, which {ROOT} does not have",
            print_labels(labels)
        );
        self.report(
            object,
            message,
            "correct the selector, or list the Service in a kustomization".to_owned(),
            false,
        );
    }

    fn scaled(&mut self, object: &Object) {
        let target = &object.value["spec"]["scaleTargetRef"];
        let (Some(kind), Some(name)) = (target["kind"].as_str(), target["name"].as_str()) else {
            return;
        };
        if WORKLOADS.contains(&kind) && !self.has(kind, name) {
            let message = format!("scales {kind} `{name}`, which {ROOT} does not have");
            self.report(object, message, self.advise(kind), true);
        }
    }

    fn workload(&mut self, object: &Object) {
        let selector = object.value["spec"]["selector"]["matchLabels"].as_object();
        if let Some(labels) = selector.filter(|labels| !selects(labels, pod_labels(object))) {
            let message = format!(
                "selects pods with {}, which its own pods do not have: the API server refuses it",
                print_labels(labels)
            );
            let help = "give `template.metadata.labels` the labels of the selector".to_owned();
            self.report(object, message, help, true);
        }
        let pod = &template_of(object)["spec"];
        let account = pod["serviceAccountName"]
            .as_str()
            .or(pod["serviceAccount"].as_str());
        if let Some(name) = account.filter(|name| *name != "default")
            && !self.has("ServiceAccount", name)
        {
            let message =
                format!("runs as ServiceAccount `{name}`, which {ROOT} does not have: no pod is created");
            self.report(object, message, self.advise("ServiceAccount"), true);
        }
        let containers = pod["containers"].as_array().into_iter().flatten();
        let variables = containers.flat_map(|container| container["env"].as_array().into_iter().flatten());
        for variable in variables.filter(|variable| variable["name"] == SERVICE_VARIABLE) {
            let service = serde_json::json!({ "name": variable["value"] });
            self.service(object, &service);
        }
    }
}

fn template_of(workload: &Object) -> &Value {
    match workload.kind() {
        "Pod" => &workload.value,
        "CronJob" => &workload.value["spec"]["jobTemplate"]["spec"]["template"],
        _ => &workload.value["spec"]["template"],
    }
}

fn pod_labels(workload: &Object) -> &Value {
    &template_of(workload)["metadata"]["labels"]
}

fn selects(selector: &Map<String, Value>, labels: &Value) -> bool {
    selector.iter().all(|(key, value)| labels[key] == *value)
}

fn print_labels(labels: &Map<String, Value>) -> String {
    let labels = labels
        .iter()
        .map(|(key, value)| format!("`{key}: {}`", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(", ")
}
