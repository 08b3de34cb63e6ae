//! Defaults that kube-apiserver sets in code for built-in kinds, unlike those in their schemas.
//!
//! An operator that compares the desired object with the one that the server returned takes these
//! fields for changes, and writes the object in a hot loop. Simulations have to show this.
//!
//! Follows `pkg/apis/*/*/defaults.go` of Kubernetes, and Go's encoder, which drops empty optional
//! fields (such as the `value` of an environment variable) and keeps empty structs (such as
//! `resources: {}`). Covers the fields that operators commonly write. What the server allocates for
//! Services is not a default, and neither are priorities and tolerations, which admission plugins
//! add to Pods.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Sets the defaults of an object. The server does this each time that it decodes one, so an update
/// that removes a field sets its default again.
pub(crate) fn set_defaults(group: &str, kind: &str, object: &mut Value) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    match (group, kind) {
        ("", "ConfigMap") => encode_bytes_again(object.get_mut("binaryData")),
        ("", "Secret") => set_secret_defaults(object),
        ("", "Pod") => at(object, "spec", set_defaults_of_pod),
        ("", "PodTemplate") => at(object, "template", set_template_defaults),
        ("", "ReplicationController") => set_replication_controller_defaults(object),
        ("", "Service") => at(object, "spec", set_service_defaults),
        ("", "PersistentVolumeClaim") => at(object, "spec", set_claim_defaults),
        ("apps", "Deployment") => at(object, "spec", set_deployment_defaults),
        ("apps", "ReplicaSet") => at(object, "spec", |spec| {
            set(spec, "replicas", 1);
            at(spec, "template", set_template_defaults);
        }),
        ("apps", "DaemonSet") => at(object, "spec", set_daemon_set_defaults),
        ("apps", "StatefulSet") => at(object, "spec", set_stateful_set_defaults),
        ("batch", "Job") => set_job_defaults(object),
        ("batch", "CronJob") => at(object, "spec", set_cron_job_defaults),
        ("autoscaling", "HorizontalPodAutoscaler") => at(object, "spec", set_autoscaler_defaults),
        ("", "LimitRange") => at(object, "spec", |spec| each(spec, "limits", set_limit_defaults)),
        ("scheduling.k8s.io", "PriorityClass") => set(object, "preemptionPolicy", "PreemptLowerPriority"),
        ("networking.k8s.io", "NetworkPolicy") => at(object, "spec", set_network_policy_defaults),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => set_binding_defaults(object),
        _ => {}
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

type Fields = Map<String, Value>;

/// Calls a function with the object in a field, if there is one.
fn at(parent: &mut Fields, name: &str, change: impl FnOnce(&mut Fields)) {
    if let Some(Value::Object(fields)) = parent.get_mut(name) {
        change(fields);
    }
}

/// Calls a function with each object in a list.
fn each(parent: &mut Fields, name: &str, mut change: impl FnMut(&mut Fields)) {
    let items = parent.get_mut(name).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Some(fields) = item.as_object_mut() {
            change(fields);
        }
    }
}

/// Sets a field that is absent or, like Go sees it, empty.
fn set(fields: &mut Fields, name: &str, default: impl Into<Value>) {
    let is_empty = match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_empty {
        fields.insert(name.to_owned(), default.into());
    }
}

/// Sets a number whose zero means that it's absent, because it isn't a pointer in Go.
fn set_count(fields: &mut Fields, name: &str, default: u64) {
    if fields.get(name).and_then(Value::as_u64) == Some(0) {
        fields.remove(name);
    }
    set(fields, name, default);
}

/// Calls a function with the object in a field, which is created if it's absent.
fn at_new(fields: &mut Fields, name: &str, change: impl FnOnce(&mut Fields)) {
    set(fields, name, json!({}));
    at(fields, name, change);
}

/// Removes fields with an empty value, which Go doesn't encode.
fn remove_empty(fields: &mut Fields, names: &[&str]) {
    for name in names {
        let is_empty = match fields.get(*name) {
            Some(Value::String(text)) => text.is_empty(),
            Some(value) => *value == false,
            None => false,
        };
        if is_empty {
            fields.remove(*name);
        }
    }
}

fn text<'f>(fields: &'f Fields, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn has_items(fields: &Fields, name: &str) -> bool {
    let items = fields.get(name).and_then(Value::as_array);
    items.is_some_and(|items| !items.is_empty())
}

fn set_secret_defaults(secret: &mut Fields) {
    set(secret, "type", "Opaque");
    encode_bytes_again(secret.get_mut("data"));
    // `stringData` is write-only. It overwrites keys that are also in `data`.
    let Some(Value::Object(given)) = secret.remove("stringData") else {
        return;
    };
    if given.is_empty() {
        return;
    }
    at_new(secret, "data", |data| {
        for (name, text) in given {
            let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(name, encoded.into());
        }
    });
}

/// Removes line breaks from base64, because they don't survive a round trip through Go: it ignores
/// them when decoding and doesn't emit any when encoding.
fn encode_bytes_again(data: Option<&mut Value>) {
    for value in data
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if let Value::String(text) = value
            && text.contains(['\r', '\n'])
        {
            text.retain(|letter| !matches!(letter, '\r' | '\n'));
        }
    }
}

fn set_replication_controller_defaults(object: &mut Fields) {
    let labels = template_labels(object);
    at(object, "spec", |spec| {
        set(spec, "replicas", 1);
        if let Some(labels) = labels.clone() {
            set(spec, "selector", labels);
        }
        at(spec, "template", set_template_defaults);
    });
    set_labels(object, labels);
}

/// Returns the labels of the template, if it has any.
fn template_labels(object: &Fields) -> Option<Value> {
    let labels = object.get("spec")?.pointer("/template/metadata/labels")?;
    labels.as_object().filter(|labels| !labels.is_empty())?;
    Some(labels.clone())
}

/// Gives an object without labels the labels of its template.
fn set_labels(object: &mut Fields, labels: Option<Value>) {
    at(object, "metadata", |metadata| {
        if let Some(labels) = labels {
            set(metadata, "labels", labels);
        }
    });
}

fn set_service_defaults(spec: &mut Fields) {
    set(spec, "sessionAffinity", "None");
    set(spec, "type", "ClusterIP");
    if text(spec, "sessionAffinity") == "ClientIP" {
        at_new(spec, "sessionAffinityConfig", |config| {
            at_new(config, "clientIP", |client| set(client, "timeoutSeconds", 10800));
        });
    }
    each(spec, "ports", |port| {
        set(port, "protocol", "TCP");
        if let Some(number) = port.get("port").and_then(Value::as_u64) {
            set_count(port, "targetPort", number);
        }
    });
    let kind = text(spec, "type").to_owned();
    if matches!(&*kind, "NodePort" | "LoadBalancer") || kind == "ClusterIP" && has_items(spec, "externalIPs")
    {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn set_claim_defaults(spec: &mut Fields) {
    set(spec, "volumeMode", "Filesystem");
}

fn set_deployment_defaults(spec: &mut Fields) {
    remove_empty(spec, &["paused"]);
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
    at_new(spec, "strategy", |strategy| {
        set(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            at_new(strategy, "rollingUpdate", |update| {
                set(update, "maxUnavailable", "25%");
                set(update, "maxSurge", "25%");
            });
        }
    });
    at(spec, "template", set_template_defaults);
}

fn set_daemon_set_defaults(spec: &mut Fields) {
    set(spec, "revisionHistoryLimit", 10);
    at_new(spec, "updateStrategy", |strategy| {
        set(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            at_new(strategy, "rollingUpdate", |update| {
                set(update, "maxUnavailable", 1);
                set(update, "maxSurge", 0);
            });
        }
    });
    at(spec, "template", set_template_defaults);
}

fn set_stateful_set_defaults(spec: &mut Fields) {
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "serviceName", "");
    set(spec, "podManagementPolicy", "OrderedReady");
    at_new(spec, "updateStrategy", |strategy| {
        if text(strategy, "type").is_empty() {
            set(strategy, "type", "RollingUpdate");
            set(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate" {
            at(strategy, "rollingUpdate", |update| {
                set(update, "partition", 0);
                set(update, "maxUnavailable", 1);
            });
        }
    });
    at_new(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
        set(policy, "whenDeleted", "Retain");
        set(policy, "whenScaled", "Retain");
    });
    at(spec, "template", set_template_defaults);
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
        at(claim, "spec", set_claim_defaults);
        at_new(claim, "status", |status| set(status, "phase", "Pending"));
    });
}

fn set_job_defaults(job: &mut Fields) {
    let labels = template_labels(job);
    at(job, "spec", |spec| {
        // A Job with `parallelism` but without `completions` is a work queue.
        if !spec.contains_key("parallelism") {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
        let is_per_index = spec.contains_key("backoffLimitPerIndex");
        set(spec, "backoffLimit", if is_per_index { i32::MAX } else { 6 });
        set(spec, "completionMode", "NonIndexed");
        set(spec, "suspend", false);
        set(spec, "manualSelector", false);
        let has_policy = spec.contains_key("podFailurePolicy");
        let policy = if has_policy {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        set(spec, "podReplacementPolicy", policy);
        at(spec, "template", set_template_defaults);
    });
    set_labels(job, labels);
}

fn set_cron_job_defaults(spec: &mut Fields) {
    set(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
    // The Job gets its other defaults when it is created.
    at(spec, "jobTemplate", |job| {
        set(job, "metadata", json!({}));
        at(job, "spec", |spec| at(spec, "template", set_template_defaults));
    });
}

fn set_autoscaler_defaults(spec: &mut Fields) {
    set(spec, "minReplicas", 1);
    if !has_items(spec, "metrics") {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
        spec.insert("metrics".to_owned(), json!([metric]));
    }
}

/// Containers get the largest limits by default, and the requests of the limits.
fn set_limit_defaults(limit: &mut Fields) {
    if text(limit, "type") != "Container" {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let Some(Value::Object(quantities)) = limit.get(from).cloned() else {
            continue;
        };
        at_new(limit, to, |defaults| {
            for (name, quantity) in quantities {
                set(defaults, &name, quantity);
            }
        });
    }
}

fn set_network_policy_defaults(spec: &mut Fields) {
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| {
            each(rule, "ports", |port| set(port, "protocol", "TCP"))
        });
    }
    if !has_items(spec, "policyTypes") {
        let types: &[&str] = if has_items(spec, "egress") {
            &["Ingress", "Egress"]
        } else {
            &["Ingress"]
        };
        spec.insert("policyTypes".to_owned(), json!(types));
    }
}

fn set_binding_defaults(binding: &mut Fields) {
    at(binding, "roleRef", |role| set(role, "apiGroup", RBAC));
    each(binding, "subjects", |subject| match text(subject, "kind") {
        "User" | "Group" => set(subject, "apiGroup", RBAC),
        _ => remove_empty(subject, &["apiGroup"]),
    });
}

fn set_template_defaults(template: &mut Fields) {
    set(template, "metadata", json!({}));
    at(template, "spec", set_pod_spec_defaults);
}

/// Sets the defaults of Pods that their templates don't have.
fn set_defaults_of_pod(spec: &mut Fields) {
    set_pod_spec_defaults(spec);
    set(spec, "enableServiceLinks", true);
    let on_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for containers in ["initContainers", "containers"] {
        each(spec, containers, |container| {
            at(container, "resources", set_requests);
            if on_host_network {
                each(container, "ports", |port| {
                    if let Some(number) = port.get("containerPort").cloned() {
                        set(port, "hostPort", number);
                    }
                });
            }
        });
    }
}

/// Requests what is limited, unless there is a separate request.
fn set_requests(resources: &mut Fields) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    at_new(resources, "requests", |requests| {
        for (name, limit) in limits {
            set(requests, &name, limit);
        }
    });
}

fn set_pod_spec_defaults(spec: &mut Fields) {
    remove_empty(
        spec,
        &[
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "hostname",
            "nodeName",
            "subdomain",
        ],
    );
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount").to_owned(),
        account => account.to_owned(),
    };
    if account.is_empty() {
        remove_empty(spec, &["serviceAccountName", "serviceAccount"]);
    } else {
        // The former name is kept in sync.
        spec.insert("serviceAccount".to_owned(), account.clone().into());
        spec.insert("serviceAccountName".to_owned(), account.into());
    }
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "restartPolicy", "Always");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", 30);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, set_container_defaults);
    }
    each(spec, "volumes", set_volume_defaults);
}

fn set_container_defaults(container: &mut Fields) {
    remove_empty(container, &["stdin", "stdinOnce", "tty", "workingDir"]);
    let policy = if is_latest(text(container, "image")) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set(container, "imagePullPolicy", policy);
    set(container, "resources", json!({}));
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| set(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        remove_empty(variable, &["value"]);
        at(variable, "valueFrom", |source| {
            at(source, "fieldRef", |field| set(field, "apiVersion", "v1"))
        });
    });
    each(container, "volumeMounts", |mount| {
        remove_empty(mount, &["readOnly", "subPath"])
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        at(container, probe, |probe| {
            set_count(probe, "timeoutSeconds", 1);
            set_count(probe, "periodSeconds", 10);
            set_count(probe, "successThreshold", 1);
            set_count(probe, "failureThreshold", 3);
            at(probe, "httpGet", set_http_defaults);
            at(probe, "grpc", |grpc| set(grpc, "service", ""));
        });
    }
    at(container, "lifecycle", |lifecycle| {
        for event in ["postStart", "preStop"] {
            at(lifecycle, event, |handler| {
                at(handler, "httpGet", set_http_defaults)
            });
        }
    });
}

fn set_http_defaults(get: &mut Fields) {
    set(get, "path", "/");
    set(get, "scheme", "HTTP");
}

/// Returns whether an image has the tag `latest`, which it also has without a tag and a digest.
fn is_latest(image: &str) -> bool {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    // The registry may have a port.
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none(),
    }
}

/// The default of `defaultMode`: 0644.
const MODE: u64 = 0o644;

fn set_volume_defaults(volume: &mut Fields) {
    if volume.keys().all(|name| name == "name") {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        at(volume, source, |source| set(source, "defaultMode", MODE));
    }
    at(volume, "downwardAPI", set_downward_defaults);
    at(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            at(source, "serviceAccountToken", |token| {
                set(token, "expirationSeconds", 3600)
            });
            at(source, "downwardAPI", set_downward_defaults);
        });
    });
    at(volume, "hostPath", |path| set(path, "type", ""));
    at(volume, "ephemeral", |ephemeral| {
        at(ephemeral, "volumeClaimTemplate", |claim| {
            set(claim, "metadata", json!({}));
            at(claim, "spec", set_claim_defaults);
        });
    });
}

fn set_downward_defaults(source: &mut Fields) {
    each(source, "items", |item| {
        at(item, "fieldRef", |field| set(field, "apiVersion", "v1"))
    });
}
