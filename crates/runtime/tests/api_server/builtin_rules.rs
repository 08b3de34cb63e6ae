//! Rules for built-in kinds that the server implements in code: immutable fields, selectors that do not
//! match their Pod template, and the containers of Pods.

use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(
    immutable_fields_of_workloads_are_kept,
    immutable_fields_of_other_kinds_are_kept,
    immutable_config_is_kept,
    data_has_a_limit,
    selector_must_match_the_template,
    pods_need_containers_with_images,
);

/// Creates an object and sends each merge patch as a dry run. The server must reject the patch with
/// the given message, or accept it if the message is empty. A trailing `…` stands for any text.
async fn check(place: &Place, api: &str, plural: &str, object: Value, patches: &[(Value, &str)]) {
    let folder = format!("/{api}/namespaces/{{ns}}/{plural}");
    let headers = [("content-type", "application/json")];
    let (code, answer) = place.raw("POST", &folder, &headers, &object.to_string()).await;
    assert_eq!(code, 201, "{answer}");
    for (patch, expected) in patches {
        let path = format!("{folder}/a?dryRun=All");
        let headers = [("content-type", "application/merge-patch+json")];
        let (code, answer) = place.raw("PATCH", &path, &headers, &patch.to_string()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let message = answer["message"].as_str().unwrap_or_default();
        let wanted_code = if expected.is_empty() { 200 } else { 422 };
        assert_eq!(code, wanted_code, "{plural} {patch}: {message}");
        match expected.strip_suffix('…') {
            Some(beginning) => assert!(message.starts_with(beginning), "{plural} {patch}: {message}"),
            None => assert_eq!(message, *expected, "{plural} {patch}"),
        }
    }
}

fn template(labels: &Value) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    })
}

fn workload(kind: &str) -> Value {
    let labels = json!({ "app": "a" });
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "a" },
        "spec": { "selector": { "matchLabels": labels }, "template": template(&labels) },
    })
}

fn image(image: &str) -> Value {
    json!({ "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } })
}

async fn immutable_fields_of_workloads_are_kept(server: Server) {
    let place = Place::new(server).await;
    let labels = json!({ "app": "b" });
    let selector = json!({ "spec": {
        "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } },
    } });
    for (kind, plural) in [
        ("Deployment", "deployments"),
        ("ReplicaSet", "replicasets"),
        ("DaemonSet", "daemonsets"),
    ] {
        let message = format!(
            "{kind}.apps \"a\" is invalid: spec.selector: Invalid value: {{\"matchLabels\":{{\"app\":\"b\"}}}}: field is \
             immutable"
        );
        let patches = [
            (selector.clone(), &*message),
            (json!({ "spec": { "selector": { "matchExpressions": [] } } }), ""),
            (json!({ "spec": image("b") }), ""),
            (json!({ "spec": { "minReadySeconds": 1 } }), ""),
        ];
        check(&place, "apis/apps/v1", plural, workload(kind), &patches).await;
    }
    let invalid = |field: &str, value: Value| {
        format!("StatefulSet.apps \"a\" is invalid: spec.{field}: Invalid value: {value}: field is immutable")
    };
    let service = invalid("serviceName", "b".into());
    let policy = invalid("podManagementPolicy", "Parallel".into());
    let patches = [
        (json!({ "spec": { "serviceName": "b" } }), &*service),
        (json!({ "spec": { "podManagementPolicy": "Parallel" } }), &*policy),
        (json!({ "spec": { "podManagementPolicy": "OrderedReady" } }), ""),
        (json!({ "spec": { "replicas": 2, "minReadySeconds": 1 } }), ""),
        (json!({ "spec": image("b") }), ""),
    ];
    let mut set = workload("StatefulSet");
    set["spec"]["serviceName"] = "a".into();
    check(&place, "apis/apps/v1", "statefulsets", set, &patches).await;

    let mut template = template(&json!({}));
    template["spec"]["restartPolicy"] = "Never".into();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" }, "spec": { "template": template },
    });
    let patches = [
        (
            json!({ "spec": image("b") }),
            "Job.batch \"a\" is invalid: spec.template: Invalid value: …",
        ),
        (
            json!({ "spec": { "completions": 2 } }),
            "Job.batch \"a\" is invalid: spec.completions: Invalid value: 2: field is immutable",
        ),
        (json!({ "spec": { "parallelism": 2, "suspend": true } }), ""),
    ];
    check(&place, "apis/batch/v1", "jobs", job, &patches).await;
}

async fn immutable_fields_of_other_kinds_are_kept(server: Server) {
    let place = Place::new(server).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "a" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let patches = [
        (
            json!({ "spec": { "accessModes": ["ReadOnlyMany"] } }),
            "PersistentVolumeClaim \"a\" is invalid: spec: Forbidden: spec is immutable after creation except \
             resources.requests and volumeAttributesClassName for bound claims…",
        ),
        (json!({ "spec": { "storageClassName": "fast" } }), ""),
        (json!({ "metadata": { "labels": { "a": "b" } } }), ""),
    ];
    check(&place, "api/v1", "persistentvolumeclaims", claim, &patches).await;

    let mut pod = template(&json!({}));
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "a".into();
    let container = |fields: Value| {
        let mut container = json!({ "name": "main", "image": "a" });
        for (name, value) in fields.as_object().unwrap() {
            container[name] = value.clone();
        }
        json!({ "spec": { "containers": [container] } })
    };
    let forbidden = "Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields other than \
                     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                     `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
                     (allow it to be set to 1 if it was previously negative)…";
    let patches = [
        (
            container(json!({ "env": [{ "name": "A", "value": "b" }] })),
            forbidden,
        ),
        (
            json!({ "spec": { "terminationGracePeriodSeconds": 3 } }),
            forbidden,
        ),
        (json!({ "spec": { "activeDeadlineSeconds": 60 } }), ""),
        (json!({ "metadata": { "labels": { "a": "b" } } }), ""),
    ];
    check(&place, "api/v1", "pods", pod, &patches).await;

    let role = |name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "a" },
        "roleRef": role("a"),
    });
    let patches = [
        (
            json!({ "roleRef": role("b") }),
            "RoleBinding.rbac.authorization.k8s.io \"a\" is invalid: roleRef: Invalid value: \
             {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"b\"}: field is immutable",
        ),
        (
            json!({ "subjects": [{ "kind": "ServiceAccount", "name": "a", "namespace": "a" }] }),
            "",
        ),
    ];
    let api = "apis/rbac.authorization.k8s.io/v1";
    check(&place, api, "rolebindings", binding, &patches).await;

    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "type": "example.com/a" });
    let patches = [
        (
            json!({ "type": "example.com/b" }),
            "Secret \"a\" is invalid: type: Invalid value: \"example.com/b\": field is immutable",
        ),
        (json!({ "data": { "a": "Yg==" } }), ""),
    ];
    check(&place, "api/v1", "secrets", secret, &patches).await;
}

async fn data_has_a_limit(server: Server) {
    let place = Place::new(server).await;
    let text = |length: usize| "a".repeat(length);
    let message = |kind: &str, field: &str| {
        format!("{kind} \"a\" is invalid: {field}: Too long: may not be more than 1048576 bytes")
    };
    let half = 1 << 19;
    // 524,287 bytes.
    let encoded = "YWFh".repeat(174_762) + "YQ==";
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let refused = message("ConfigMap", "[]");
    let patches = [
        (json!({ "data": { "a": text(half), "b": text(half) } }), ""),
        (
            json!({ "data": { "a": text(half), "b": text(half + 1) } }),
            &*refused,
        ),
        (
            json!({ "data": { "a": text(half + 1) }, "binaryData": { "b": encoded } }),
            "",
        ),
        (
            json!({ "data": { "a": text(half + 2) }, "binaryData": { "b": encoded } }),
            &*refused,
        ),
    ];
    check(&place, "api/v1", "configmaps", config, &patches).await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
    let refused = message("Secret", "data");
    let patches = [
        (json!({ "data": { "a": encoded, "b": encoded } }), ""),
        (
            json!({ "data": { "a": encoded, "b": encoded, "c": "YWFhYQ==" } }),
            &*refused,
        ),
    ];
    check(&place, "api/v1", "secrets", secret, &patches).await;
}

async fn immutable_config_is_kept(server: Server) {
    let place = Place::new(server).await;
    for (kind, plural) in [("ConfigMap", "configmaps"), ("Secret", "secrets")] {
        let object = json!({
            "apiVersion": "v1", "kind": kind, "metadata": { "name": "a" }, "data": { "a": "Yg==" }, "immutable": true,
        });
        let data =
            format!("{kind} \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set");
        let immutable = format!(
            "{kind} \"a\" is invalid: immutable: Forbidden: field is immutable when `immutable` is set"
        );
        let patches = [
            (json!({ "data": { "a": "Yw==" } }), &*data),
            (json!({ "immutable": false }), &*immutable),
            (json!({ "immutable": null }), &*immutable),
            (json!({ "metadata": { "labels": { "a": "b" } } }), ""),
        ];
        check(&place, "api/v1", plural, object, &patches).await;
    }
}

async fn selector_must_match_the_template(server: Server) {
    let place = Place::new(server).await;
    let headers = [("content-type", "application/json")];
    for (kind, plural) in [
        ("Deployment", "deployments"),
        ("ReplicaSet", "replicasets"),
        ("DaemonSet", "daemonsets"),
        ("StatefulSet", "statefulsets"),
    ] {
        let path = format!("/apis/apps/v1/namespaces/{{ns}}/{plural}?dryRun=All");
        let create = async |spec: Value| {
            let mut object = workload(kind);
            object["spec"]["serviceName"] = match kind {
                "StatefulSet" => "a".into(),
                _ => Value::Null,
            };
            for (name, value) in spec.as_object().unwrap() {
                object["spec"][name] = value.clone();
            }
            let (code, answer) = place.raw("POST", &path, &headers, &object.to_string()).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let message = answer["message"].as_str().unwrap_or_default().to_owned();
            (code, message)
        };
        assert_eq!(
            create(json!({ "template": template(&json!({ "app": "b" })) })).await,
            (
                422,
                format!(
                    "{kind}.apps \"a\" is invalid: spec.template.metadata.labels: Invalid value: {{\"app\":\"b\"}}: \
                     `selector` does not match template `labels`"
                )
            )
        );
        let kind_in_message = match kind {
            "ReplicaSet" => "deployment".to_owned(),
            kind => kind.to_lowercase(),
        };
        assert_eq!(
            create(json!({ "selector": {} })).await,
            (
                422,
                format!(
                    "{kind}.apps \"a\" is invalid: spec.selector: Invalid value: {{}}: empty selector is invalid for \
                     {kind_in_message}"
                )
            ),
        );
        for (operator, values, expected) in [
            ("In", json!(["a", "b"]), 201),
            ("NotIn", json!(["b"]), 201),
            ("Exists", Value::Null, 201),
            ("In", json!(["b"]), 422),
            ("NotIn", json!(["a", "b"]), 422),
            ("DoesNotExist", Value::Null, 422),
        ] {
            let mut expression = json!({ "key": "app", "operator": operator });
            if !values.is_null() {
                expression["values"] = values;
            }
            let (code, message) = create(json!({ "selector": { "matchExpressions": [expression] } })).await;
            assert_eq!(code, expected, "{kind} {operator}: {message}");
        }
    }
}

async fn pods_need_containers_with_images(server: Server) {
    let place = Place::new(server).await;
    let headers = [("content-type", "application/json")];
    let job = |template: &Value| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" }, "spec": { "template": template },
        })
    };
    let plain = template(&json!({ "app": "a" }));
    let mut pod = plain.clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "a".into();
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "a" },
        "spec": { "schedule": "* * * * *", "jobTemplate": job(&plain) },
    });
    for (folder, object, path) in [
        ("api/v1", pod, "spec"),
        ("apis/apps/v1", workload("Deployment"), "spec.template.spec"),
        ("apis/batch/v1", job(&plain), "spec.template.spec"),
        ("apis/batch/v1", cron_job, "spec.jobTemplate.spec.template.spec"),
    ] {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let group = folder
            .strip_prefix("apis/")
            .and_then(|folder| folder.split('/').next());
        let is_job = group == Some("batch");
        let create = async |fields: Value| {
            let mut object = object.clone();
            let spec = object
                .pointer_mut(&format!("/{}", path.replace('.', "/")))
                .unwrap();
            spec["restartPolicy"] = if is_job { "Never" } else { "Always" }.into();
            for (name, value) in fields.as_object().unwrap() {
                spec[name] = value.clone();
            }
            let plural = format!("{}s", kind.to_lowercase());
            let url = format!("/{folder}/namespaces/{{ns}}/{plural}?dryRun=All");
            let (code, answer) = place.raw("POST", &url, &headers, &object.to_string()).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            (code, answer["message"].as_str().unwrap_or_default().to_owned())
        };
        let invalid = |violation: &str| {
            let group = group.map(|group| format!(".{group}")).unwrap_or_default();
            (422, format!("{kind}{group} \"a\" is invalid: {path}.{violation}"))
        };
        assert_eq!(
            create(json!({ "containers": [] })).await,
            invalid("containers: Required value")
        );
        let nameless = json!([{ "name": "a" }]);
        assert_eq!(
            create(json!({ "containers": nameless })).await,
            invalid("containers[0].image: Required value")
        );
        assert_eq!(
            create(json!({ "initContainers": nameless })).await,
            invalid("initContainers[0].image: Required value")
        );
        let (policy, expected) = match is_job {
            true => (
                "Always",
                Some("restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""),
            ),
            false if kind == "Pod" => ("Never", None),
            false => (
                "Never",
                Some("restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""),
            ),
        };
        let expected = expected.map_or((201, String::new()), invalid);
        assert_eq!(
            create(json!({ "restartPolicy": policy })).await,
            expected,
            "{kind}"
        );
    }
}
