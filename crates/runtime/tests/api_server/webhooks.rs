//! Admission webhooks, called over HTTPS by kube-apiserver, and within the process by the fake
//! server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::admission::AdmissionResponse;
use rbuilder::testing::{Running, eventually, run};
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Manager, ManagerArgs};
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, map, refused};

on_both_servers!(
    denials_have_the_words_of_the_server,
    reviews_describe_the_request,
    rules_select_operations_resources_and_scopes,
    selectors_and_conditions_select_objects,
    failure_policies_decide_about_failed_calls,
    mutations_are_ordered_and_repeated_if_needed,
    mutated_objects_are_defaulted_pruned_and_judged,
    other_versions_are_converted_for_equivalent_rules,
    deletions_cannot_be_changed,
);

const SOON: Duration = Duration::from_secs(20);
const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const JARS: &str = "/apis/apiserver.example.com/v1/namespaces/{ns}/jars";

/// The webhooks of an operator. A real server also needs a manager.
struct Hooks {
    place: Place,
    running: Option<Running>,
}

/// Registers webhooks that do what their path says.
fn operator(place: &Place, args: ManagerArgs) -> Manager {
    let ready = |phase: &'static str| {
        move |request: AdmissionRequest| {
            let mut response = AdmissionResponse::from(&request);
            response.warnings = Some(vec![format!("{phase} ready")]);
            std::future::ready(response)
        }
    };
    Manager::with_client("webhooks", place.client.clone(), args)
        .raw_webhook("/mutating-ready", ready("mutating"))
        .raw_webhook("/validating-ready", ready("validating"))
        .raw_webhook("/deny", async |request| deny(&request))
        .raw_webhook("/describe", async |request| describe(&request))
        .raw_webhook("/panic", async |_| panic!("on request"))
        .raw_webhook("/sleep", async |request| {
            tokio::time::sleep(Duration::from_secs(3)).await;
            AdmissionResponse::from(&request)
        })
        .raw_webhook("/a", async |request| append(&request, "a"))
        .raw_webhook("/b", async |request| append(&request, "b"))
        .raw_webhook("/c", async |request| append(&request, "c"))
        .raw_webhook("/patch", async |request| patch(&request))
}

/// Reads the annotation that determines the response.
fn wish(request: &AdmissionRequest, name: &str) -> Option<Value> {
    let object = request.object.as_ref().or(request.old_object.as_ref())?;
    serde_json::from_str(object.annotations().get(name)?).ok()
}

/// Denies the request with the status in the annotation.
fn deny(request: &AdmissionRequest) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    if let Some(status) = wish(request, "deny") {
        response.allowed = false;
        response.result = serde_json::from_value(status).unwrap();
    }
    response
}

/// Returns a warning that describes the request.
fn describe(request: &AdmissionRequest) -> AdmissionResponse {
    let object = |object: &Option<kube::api::DynamicObject>| match object {
        None => "-".to_owned(),
        Some(object) => {
            let metadata = &object.metadata;
            let has = |is: bool, name: &'static str| if is { name } else { "" };
            format!(
                "{}{}{}{}",
                object.types.as_ref().map_or("?", |types| &types.kind),
                has(metadata.name.is_some(), "+name"),
                has(metadata.uid.is_some(), "+uid"),
                has(metadata.resource_version.is_some(), "+version"),
            )
        }
    };
    let options = request
        .options
        .as_ref()
        .map(|options| serde_json::to_value(options).unwrap());
    let mut options = options.unwrap_or_default();
    options.as_object_mut().unwrap().remove("apiVersion");
    let text = format!(
        "{:?} {}/{} {} {}{} dry:{} {} {} {}",
        request.operation,
        request.resource.resource,
        request.sub_resource.as_deref().unwrap_or_default(),
        request.kind.kind,
        request.namespace.as_ref().map_or("", |_| "ns/"),
        request.name,
        request.dry_run,
        object(&request.object),
        object(&request.old_object),
        options,
    );
    let mut response = AdmissionResponse::from(request);
    response.warnings = Some(vec![text.replace('"', "")]);
    response
}

/// Appends a letter to `data.order`.
fn append(request: &AdmissionRequest, letter: &str) -> AdmissionResponse {
    let object = request.object.as_ref().unwrap();
    let order = object.data["data"]["order"].as_str().unwrap_or_default();
    respond(
        request,
        json!([{ "op": "add", "path": "/data/order", "value": format!("{order}{letter}") }]),
    )
}

/// Responds with the patch in the annotation.
fn patch(request: &AdmissionRequest) -> AdmissionResponse {
    respond(request, wish(request, "patch").unwrap_or(json!([])))
}

fn respond(request: &AdmissionRequest, patch: Value) -> AdmissionResponse {
    let response = AdmissionResponse::from(request);
    response
        .with_patch(serde_json::from_value(patch).unwrap())
        .unwrap()
}

/// Returns a webhook for ConfigMaps. `fields` override the defaults.
fn hook(path: &str, fields: Value) -> Value {
    let mut hook = json!({
        "name": format!("{}.example.com", path.trim_start_matches('/')),
        "clientConfig": { "service": { "name": "webhook-service", "namespace": "system", "path": path } },
        "rules": [rule("configmaps", &["*"])],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    hook.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    hook
}

fn rule(resource: &str, operations: &[&str]) -> Value {
    json!({ "apiGroups": ["*"], "apiVersions": ["v1"], "resources": [resource], "operations": operations })
}

impl Hooks {
    /// Installs two configurations, and waits until the server calls the webhooks.
    async fn install(server: Server, mutating: Vec<Value>, validating: Vec<Value>) -> Self {
        let place = Place::new(server).await;
        let probe =
            json!({ "matchConditions": [{ "name": "probe", "expression": "request.name == 'probe'" }] });
        let configuration = |kind: &str, mut hooks: Vec<Value>| {
            let phase = kind.split("Webhook").next().unwrap().to_lowercase();
            hooks.push(hook(&format!("/{phase}-ready"), probe.clone()));
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": phase }, "webhooks": hooks,
            })
        };
        let folder = tempfile::tempdir().unwrap();
        let documents = [
            configuration("MutatingWebhookConfiguration", mutating),
            configuration("ValidatingWebhookConfiguration", validating),
        ];
        for (number, document) in documents.iter().enumerate() {
            let path = folder.path().join(format!("{number}.yaml"));
            std::fs::write(path, document.to_string()).unwrap();
        }
        let running = match &place.server {
            Server::Fake(server) => {
                let mut manager = operator(&place, ManagerArgs::for_tests());
                server.install_webhooks(folder.path(), &mut manager).unwrap();
                None
            }
            Server::Real(environment) => {
                let installed = environment
                    .install_webhooks(folder.path(), &place.namespace)
                    .await;
                let webhooks = installed.unwrap();
                let running = run(operator(&place, webhooks.args(ManagerArgs::for_tests())));
                webhooks.wait_until_served().await.unwrap();
                Some(running)
            }
        };
        let hooks = Self { place, running };
        eventually(SOON, async || {
            let (_, warnings, _) = hooks.create(MAPS, "probe", json!({}), "?dryRun=All").await;
            let is_ready = |phase: &str| warnings.iter().any(|warning| warning.contains(phase));
            is_ready("mutating ready") && is_ready("validating ready")
        })
        .await;
        hooks
    }

    /// Creates an object with the given annotations. A ConfigMap also gets some data.
    async fn create(
        &self,
        path: &str,
        name: &str,
        annotations: Value,
        query: &str,
    ) -> (u16, Vec<String>, Value) {
        let mut object = json!({ "metadata": { "name": name, "annotations": annotations } });
        match path {
            JARS => {
                object["apiVersion"] = "apiserver.example.com/v1".into();
                object["kind"] = "Jar".into();
                object["spec"] = json!({ "size": 1 });
            }
            _ => object["data"] = json!({ "key": "value" }),
        }
        self.send("POST", &format!("{path}{query}"), object).await
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Vec<String>, Value) {
        let content = match method {
            "PATCH" if path.contains("force") => "application/apply-patch+yaml",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let headers = [("content-type", content), ("user-agent", "suite")];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (code, warnings, text) = self.place.raw_with_warnings(method, path, &headers, &body).await;
        let mut warnings: Vec<String> = warnings
            .iter()
            .map(|warning| warning.trim_start_matches("299 - ").trim_matches('"').to_owned())
            .collect();
        warnings.retain(|warning| !warning.contains("probe"));
        (code, warnings, serde_json::from_str(&text).unwrap())
    }

    async fn stop(self) {
        if let Some(running) = self.running {
            running.stop().await;
        }
    }
}

async fn denials_have_the_words_of_the_server(server: Server) {
    let hooks = Hooks::install(server, vec![], vec![hook("/deny", json!({}))]).await;
    let denied = "admission webhook \"deny.example.com\" denied the request";
    for (status, code, reason, message) in [
        (json!({}), 400, "", format!("{denied} without explanation")),
        (json!({ "message": "no" }), 400, "", format!("{denied}: no")),
        (
            json!({ "message": "no", "code": 200 }),
            400,
            "",
            format!("{denied}: no"),
        ),
        (
            json!({ "message": "no", "code": 403, "reason": "Forbidden" }),
            403,
            "Forbidden",
            format!("{denied}: no"),
        ),
        (
            json!({ "code": 422, "reason": "Odd" }),
            422,
            "Odd",
            format!("{denied}: Odd"),
        ),
        (
            json!({ "message": "no", "code": 409, "details": { "name": "x", "causes": [
                { "reason": "FieldValueInvalid", "message": "bad", "field": "data" } ] } }),
            409,
            "",
            format!("{denied}: no"),
        ),
    ] {
        let annotations = json!({ "deny": status.to_string() });
        let (found, _, answer) = hooks.create(MAPS, "a", annotations, "").await;
        assert_eq!((found, &answer["message"]), (code, &json!(message)), "{status}");
        assert_eq!(answer["reason"].as_str().unwrap_or_default(), reason, "{status}");
        assert_eq!(answer["status"], "Failure");
        assert_eq!(
            answer["details"]["causes"], status["details"]["causes"],
            "{status}"
        );
    }
    assert_eq!(hooks.place.maps().get_opt("a").await.unwrap(), None);
    hooks.create(MAPS, "a", json!({}), "").await;
    // The object already exists, but the denial precedes the conflict.
    let annotations = json!({ "deny": json!({ "message": "no" }).to_string() });
    let (code, ..) = hooks.create(MAPS, "a", annotations, "").await;
    assert_eq!(code, 400);
    hooks.stop().await;
}

async fn reviews_describe_the_request(server: Server) {
    let rules =
        json!({ "rules": [rule("jars", &["*"]), rule("jars/*", &["*"]), rule("configmaps", &["*"])] });
    let (mut first, mut second) = (hook("/describe", rules.clone()), hook("/describe", rules));
    first["name"] = "first.example.com".into();
    second["name"] = "second.example.com".into();
    let hooks = Hooks::install(server, vec![first], vec![second]).await;
    let jar = |name: Value| {
        let mut jar = json!({
            "apiVersion": "apiserver.example.com/v1", "kind": "Jar", "metadata": {}, "spec": { "size": 1 },
        });
        jar["metadata"]
            .as_object_mut()
            .unwrap()
            .extend(name.as_object().unwrap().clone());
        jar
    };
    let status = json!({ "status": { "size": 1 } });
    let one = format!("{JARS}/a");
    for (method, path, body, expected) in [
        (
            "POST",
            format!("{JARS}?fieldManager=m"),
            jar(json!({ "name": "a" })),
            vec![
                "Create jars/ Jar ns/a dry:false Jar+name - {fieldManager:m,kind:CreateOptions}",
                "Create jars/ Jar ns/a dry:false Jar+name+uid - {fieldManager:m,kind:CreateOptions}",
            ],
        ),
        (
            "POST",
            format!("{JARS}?dryRun=All"),
            jar(json!({ "generateName": "g-" })),
            vec![
                "Create jars/ Jar ns/ dry:true Jar - {dryRun:[All],kind:CreateOptions}",
                "Create jars/ Jar ns/g-xxxxx dry:true Jar+name+uid - {dryRun:[All],kind:CreateOptions}",
            ],
        ),
        (
            "PATCH",
            format!("{one}?fieldValidation=Strict"),
            json!({ "spec": { "size": 2 } }),
            vec![
                "Update jars/ Jar ns/a dry:false Jar+name+uid+version Jar+name+uid+version {fieldValidation:Strict,kind:UpdateOptions}",
            ],
        ),
        (
            "PATCH",
            format!("{one}/status"),
            status,
            vec![
                "Update jars/status Jar ns/a dry:false Jar+name+uid+version Jar+name+uid+version {kind:UpdateOptions}",
            ],
        ),
        (
            "PATCH",
            format!("{JARS}/b?fieldManager=m&force=true"),
            jar(json!({ "name": "b" })),
            vec![
                "Create jars/ Jar ns/b dry:false Jar+name - {fieldManager:m,kind:CreateOptions}",
                "Create jars/ Jar ns/b dry:false Jar+name+uid - {fieldManager:m,kind:CreateOptions}",
            ],
        ),
        (
            "DELETE",
            one,
            json!({ "propagationPolicy": "Background" }),
            vec![
                "Delete jars/ Jar ns/a dry:false - Jar+name+uid+version {kind:DeleteOptions,propagationPolicy:Background}",
            ],
        ),
    ] {
        let (code, warnings, answer) = hooks.send(method, &path, body).await;
        assert!(code < 300, "{path}: {answer}");
        let warnings: Vec<String> = warnings.iter().map(|text| without_suffix(text)).collect();
        assert_eq!(warnings, expected, "{method} {path}");
    }
    // When a collection is deleted, reviews don't contain a name.
    let (_, warnings, _) = hooks.send("DELETE", JARS, Value::Null).await;
    let expected = "Delete jars/ Jar ns/ dry:false - Jar+name+uid+version {kind:DeleteOptions}";
    assert_eq!(warnings, [expected]);
    hooks.stop().await;
}

/// Strips the random suffix of a generated name.
fn without_suffix(text: &str) -> String {
    match text.split_once("/g-") {
        Some((before, after)) => format!("{before}/g-xxxxx{}", &after[5..]),
        None => text.to_owned(),
    }
}

async fn rules_select_operations_resources_and_scopes(server: Server) {
    let named = |name: &str, rules: Value| {
        hook(
            "/describe",
            json!({ "name": format!("{name}.example.com"), "rules": rules }),
        )
    };
    let denying = |name: &str, rules: Value| {
        let mut hook = named(name, rules);
        hook["clientConfig"]["service"]["path"] = "/deny".into();
        hook
    };
    let with = |mut rule: Value, name: &str, value: Value| {
        rule[name] = value;
        rule
    };
    let hooks = Hooks::install(
        server,
        vec![],
        vec![
            denying(
                "other-operation",
                json!([rule("configmaps", &["UPDATE", "DELETE"])]),
            ),
            denying(
                "other-resource",
                json!([rule("secrets", &["*"]), rule("configmaps/status", &["*"])]),
            ),
            denying(
                "other-group",
                json!([with(rule("*", &["*"]), "apiGroups", json!(["apps"]))]),
            ),
            denying(
                "other-version",
                json!([with(rule("*", &["*"]), "apiVersions", json!(["v9"]))]),
            ),
            denying(
                "cluster",
                json!([with(rule("configmaps", &["*"]), "scope", json!("Cluster"))]),
            ),
            denying(
                "any",
                json!([with(rule("*/*", &["CREATE"]), "scope", json!("Namespaced"))]),
            ),
        ],
    )
    .await;
    let no = json!({ "deny": json!({ "message": "no", "code": 403 }).to_string() });
    let message = |answer: &Value| answer["message"].as_str().unwrap_or_default().to_owned();
    let denied = |name: &str| format!("admission webhook \"{name}.example.com\" denied the request: no");
    let (_, _, answer) = hooks.create(MAPS, "a", no.clone(), "").await;
    assert_eq!(message(&answer), denied("any"));
    let (_, _, answer) = hooks.create(JARS, "a", no.clone(), "").await;
    assert_eq!(message(&answer), denied("any"));
    let (code, ..) = hooks.create(MAPS, "a", json!({}), "").await;
    assert_eq!(code, 201);
    let update = json!({ "metadata": { "annotations": no } });
    let (_, _, answer) = hooks.send("PATCH", &format!("{MAPS}/a"), update).await;
    assert_eq!(message(&answer), denied("other-operation"));
    hooks.stop().await;
}

async fn selectors_and_conditions_select_objects(server: Server) {
    let denying = |name: &str, fields: Value| {
        let mut hook = hook("/deny", fields);
        hook["name"] = format!("{name}.example.com").into();
        hook
    };
    let condition = |expression: &str| json!([{ "name": "only", "expression": expression }]);
    let hooks = Hooks::install(
        server,
        vec![],
        vec![
            denying("label", json!({ "objectSelector": { "matchLabels": { "guarded": "yes" } } })),
            denying("tier", json!({ "objectSelector": { "matchExpressions": [
                { "key": "tier", "operator": "In", "values": ["front", "back"] },
                { "key": "free", "operator": "DoesNotExist" },
            ] } })),
            denying("namespace", json!({ "namespaceSelector": { "matchLabels": { "no": "such" } } })),
            denying("condition", json!({ "matchConditions": condition(
                "has(object.data) && object.data.?kind.orValue('') == 'guarded' && request.operation == 'CREATE'") })),
            denying("failing", json!({ "matchConditions": condition("object.data.absent == 'x' && object.data.probe == ''"),
                "objectSelector": { "matchLabels": { "fails": "yes" } } })),
            denying("ignored", json!({ "matchConditions": condition("object.data.absent == 'x'"), "failurePolicy": "Ignore",
                "objectSelector": { "matchLabels": { "ignored": "yes" } } })),
        ],
    )
    .await;
    let no = json!({ "message": "no", "code": 403, "reason": "Forbidden" }).to_string();
    for (labels, data, expected) in [
        (json!({}), json!({}), None),
        (json!({ "guarded": "no" }), json!({}), None),
        (json!({ "guarded": "yes" }), json!({}), Some("label")),
        (json!({ "tier": "back" }), json!({}), Some("tier")),
        (json!({ "tier": "back", "free": "" }), json!({}), None),
        (json!({ "tier": "middle" }), json!({}), None),
        (json!({}), json!({ "kind": "guarded" }), Some("condition")),
        (json!({}), json!({ "kind": "other" }), None),
        (json!({ "ignored": "yes" }), json!({ "a": "b" }), None),
    ] {
        let object = json!({ "metadata": { "name": "a", "labels": labels, "annotations": { "deny": no } }, "data": data });
        let (code, _, answer) = hooks.send("POST", &format!("{MAPS}?dryRun=All"), object).await;
        let message = answer["message"].as_str();
        let expected =
            expected.map(|name| format!("admission webhook \"{name}.example.com\" denied the request: no"));
        assert_eq!(message, expected.as_deref(), "{labels} {data}");
        assert_eq!(code, if expected.is_some() { 403 } else { 201 });
    }
    let object = json!({ "metadata": { "name": "a", "labels": { "fails": "yes" } }, "data": { "a": "b" } });
    let (code, _, answer) = hooks.send("POST", MAPS, object).await;
    assert_eq!((code, &answer["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        answer["message"],
        "configmaps \"a\" is forbidden: expression 'object.data.absent == 'x' && object.data.probe == ''' resulted in \
         error: no such key: absent"
    );
    // The server evaluates the selector for the old object as well, so removing the label can't
    // bypass the webhook.
    let create = json!({ "metadata": { "name": "b", "labels": { "guarded": "yes" } } });
    assert_eq!(hooks.send("POST", MAPS, create).await.0, 201);
    let escape = json!({ "metadata": { "labels": null, "annotations": { "deny": no } } });
    assert_eq!(hooks.send("PATCH", &format!("{MAPS}/b"), escape).await.0, 403);
    hooks.stop().await;
}

async fn failure_policies_decide_about_failed_calls(server: Server) {
    let selected = |path: &str, policy: &str, label: &str| {
        let mut hook = hook(
            path,
            json!({
                "failurePolicy": policy, "timeoutSeconds": 1,
                "objectSelector": { "matchLabels": { "for": label } },
            }),
        );
        hook["name"] = format!("{label}.example.com").into();
        hook
    };
    let mut hooks = Vec::new();
    for (path, name) in [("/panic", "panic"), ("/none", "none"), ("/sleep", "sleep")] {
        hooks.push(selected(path, "Fail", name));
        hooks.push(selected(path, "Ignore", &format!("{name}-ignored")));
    }
    let hooks = Hooks::install(server, hooks.clone(), hooks).await;
    for (label, expected) in [
        (
            "panic",
            Some("an error on the server (\"webhook panicked\") has prevented the request from succeeding"),
        ),
        ("none", Some("the server could not find the requested resource")),
        ("sleep", Some("context deadline exceeded")),
        ("panic-ignored", None),
        ("none-ignored", None),
        ("sleep-ignored", None),
    ] {
        let object = json!({ "metadata": { "name": label, "labels": { "for": label } } });
        let (code, _, answer) = hooks.send("POST", MAPS, object).await;
        let Some(expected) = expected else {
            assert_eq!(code, 201, "{answer}");
            continue;
        };
        let message = answer["message"].as_str().unwrap();
        let prefix = format!(
            "Internal error occurred: failed calling webhook \"{label}.example.com\": failed to call webhook: "
        );
        assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")));
        assert!(
            message.starts_with(&prefix) && message.ends_with(expected),
            "{message}"
        );
        let cause = message.trim_start_matches("Internal error occurred: ");
        assert_eq!(answer["details"], json!({ "causes": [{ "message": cause }] }));
    }
    hooks.stop().await;
}

async fn mutations_are_ordered_and_repeated_if_needed(server: Server) {
    let letter = |path: &str, policy: &str| {
        let rules = json!([rule("configmaps", &["CREATE", "UPDATE"])]);
        hook(path, json!({ "reinvocationPolicy": policy, "rules": rules }))
    };
    let hooks = vec![
        letter("/a", "IfNeeded"),
        letter("/b", "Never"),
        letter("/c", "IfNeeded"),
    ];
    let hooks = Hooks::install(server, hooks, vec![]).await;
    let maps = hooks.place.maps();
    let params = PostParams {
        field_manager: Some("creator".to_owned()),
        ..PostParams::default()
    };
    let created = maps
        .create(&params, &map("x", json!({ "order": "" })))
        .await
        .unwrap();
    let order = |map: &ConfigMap| map.data.as_ref().unwrap()["order"].clone();
    assert_eq!(order(&created), "abcac");
    // A field modified by a webhook is owned by the client that set it, or has no owner if there is
    // none.
    let managers: Vec<_> = created
        .managed_fields()
        .iter()
        .map(|entry| entry.manager.clone().unwrap())
        .collect();
    assert_eq!(managers, ["creator"]);
    let change = Patch::Merge(json!({ "data": { "order": "-" } }));
    let changed = maps.patch("x", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(order(&changed), "-abcac");
    let configuration = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" }, "data": { "order": "=" } });
    let applied = maps
        .patch(
            "x",
            &PatchParams::apply("m").force(),
            &Patch::Apply(configuration),
        )
        .await;
    assert_eq!(order(&applied.unwrap()), "=abcac");
    hooks.stop().await;
}

async fn mutated_objects_are_defaulted_pruned_and_judged(server: Server) {
    let rules = json!({ "rules": [rule("jars", &["CREATE", "UPDATE"])] });
    let hooks = Hooks::install(server, vec![hook("/patch", rules)], vec![]).await;
    let create = async |name: &str, patch: Value| {
        let (code, _, answer) = hooks
            .create(JARS, name, json!({ "patch": patch.to_string() }), "")
            .await;
        (code, answer)
    };
    let (code, jar) = create(
        "a",
        json!([
            { "op": "add", "path": "/spec/unknown", "value": 1 },
            { "op": "remove", "path": "/spec/size" },
            { "op": "add", "path": "/metadata/labels", "value": { "set": "yes" } },
        ]),
    )
    .await;
    assert_eq!(code, 201, "{jar}");
    assert_eq!(jar["spec"], json!({ "size": 1, "colour": "white" }));
    assert_eq!(jar["metadata"]["labels"], json!({ "set": "yes" }));
    assert_eq!(jar["metadata"]["generation"], 1);
    let (code, refusal) = create("b", json!([{ "op": "add", "path": "/spec/size", "value": 9 }])).await;
    assert_eq!(code, 422);
    assert_eq!(
        refusal["message"],
        "Jar.apiserver.example.com \"b\" is invalid: spec.size: Invalid value: 9: spec.size in body should be less than \
         or equal to 5"
    );
    // A null is either replaced by the default or rejected.
    let (_, jar) = create(
        "c",
        json!([{ "op": "add", "path": "/spec/colour", "value": null }]),
    )
    .await;
    assert_eq!(jar["spec"]["colour"], "white");
    let (code, refusal) = create(
        "d",
        json!([{ "op": "add", "path": "/spec/order", "value": null }]),
    )
    .await;
    assert_eq!(code, 422);
    assert_eq!(
        refusal["message"],
        "Jar.apiserver.example.com \"d\" is invalid: spec.order: Invalid value: \"null\": spec.order in body must be \
         of type array: \"null\""
    );
    // With a status subresource, webhooks can't set the status.
    let (code, jar) = create(
        "e",
        json!([{ "op": "add", "path": "/status", "value": { "size": 1 } }]),
    )
    .await;
    assert_eq!((code, &jar["status"]), (201, &Value::Null));
    hooks.stop().await;
}

async fn other_versions_are_converted_for_equivalent_rules(server: Server) {
    let named = |name: &str, fields: Value| {
        let mut hook = hook("/describe", json!({ "rules": [rule("jars", &["CREATE"])] }));
        hook["name"] = format!("{name}.example.com").into();
        hook.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        hook
    };
    let patching = |mut hook: Value| {
        hook["clientConfig"]["service"]["path"] = "/patch".into();
        hook
    };
    let mutating = vec![
        patching(named(
            "exact",
            json!({ "matchPolicy": "Exact", "matchConditions": [
            { "name": "never", "expression": "object.metadata.name == 'v1'" } ] }),
        )),
        patching(named(
            "equivalent",
            json!({ "matchPolicy": "Equivalent", "matchConditions": [
            { "name": "v1", "expression": "object.apiVersion == 'apiserver.example.com/v1' && request.requestKind.version == 'v2'" } ] }),
        )),
    ];
    let hooks = Hooks::install(server, mutating, vec![]).await;
    let path = JARS.replace("/v1/", "/v2/");
    let patch = json!([{ "op": "add", "path": "/spec/note", "value": "seen" }]).to_string();
    let object = json!({
        "apiVersion": "apiserver.example.com/v2", "kind": "Jar",
        "metadata": { "name": "a", "annotations": { "patch": patch } }, "spec": { "size": 2 },
    });
    let (code, _, answer) = hooks.send("POST", &path, object).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["apiVersion"], "apiserver.example.com/v2");
    assert_eq!(answer["spec"]["note"], "seen");
    hooks.stop().await;
}

async fn deletions_cannot_be_changed(server: Server) {
    let rules = json!({ "rules": [rule("configmaps", &["DELETE"])] });
    let hooks = Hooks::install(
        server,
        vec![hook("/patch", rules.clone())],
        vec![hook("/deny", rules)],
    )
    .await;
    let annotations = json!({ "patch": json!([{ "op": "add", "path": "/data", "value": {} }]).to_string() });
    hooks.create(MAPS, "a", annotations, "").await;
    let deleted = hooks.place.maps().delete("a", &DeleteParams::default()).await;
    refused(
        deleted,
        500,
        "InternalError",
        "Internal error occurred: admission webhook \"patch.example.com\" attempted to modify the object, which is not \
         supported for this operation",
    );
    let annotations =
        json!({ "deny": json!({ "message": "kept", "code": 403, "reason": "Forbidden" }).to_string() });
    hooks.create(MAPS, "b", annotations, "").await;
    let deleted = hooks.place.maps().delete("b", &DeleteParams::default()).await;
    refused(
        deleted,
        403,
        "Forbidden",
        "admission webhook \"deny.example.com\" denied the request: kept",
    );
    let (code, ..) = hooks.send("DELETE", MAPS, Value::Null).await;
    assert_eq!(
        code, 500,
        "the first object of a collection that cannot be deleted decides"
    );
    let left = hooks.place.maps().list(&ListParams::default()).await.unwrap();
    let names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
    assert!(
        names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()),
        "{names:?}"
    );
    hooks.stop().await;
}

/// Even though time passes, and other clients use names meanwhile.
#[tokio::test(start_paused = true)]
async fn slow_webhook_is_called_once_for_a_write() {
    let server = rbuilder::fake::ApiServer::new();
    let place = Place::new(Server::Fake(server.clone())).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let slow = move |request: AdmissionRequest| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            AdmissionResponse::from(&request)
        }
    };
    let manager = Manager::with_client("webhooks", server.client(), ManagerArgs::for_tests());
    let folder = tempfile::tempdir().unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "slow" },
        "webhooks": [hook("/slow", json!({ "objectSelector": { "matchLabels": { "slow": "yes" } } }))],
    });
    let path = folder.path().join("manifests.yaml");
    std::fs::write(&path, configuration.to_string()).unwrap();
    server
        .install_webhooks(path, &mut manager.raw_webhook("/slow", slow))
        .unwrap();

    let maps = place.maps();
    let generated = |labels: Value| -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "generateName": "g-", "labels": labels } })).unwrap()
    };
    let (params, slow, other) = (
        PostParams::default(),
        generated(json!({ "slow": "yes" })),
        generated(json!({})),
    );
    let others = async {
        let mut names = Vec::new();
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            names.push(maps.create(&params, &other).await.unwrap().name_any());
        }
        names
    };
    let (created, mut names) = tokio::join!(maps.create(&params, &slow), others);
    names.push(created.unwrap().name_any());
    names.sort();
    names.dedup();
    assert_eq!((calls.load(Ordering::Relaxed), names.len()), (1, 9));
}

#[tokio::test]
async fn folder_without_configurations_is_an_error() {
    let server = rbuilder::fake::ApiServer::new();
    let mut manager = Manager::with_client("webhooks", server.client(), ManagerArgs::for_tests());
    let error = server
        .install_webhooks("tests/api_server/crds", &mut manager)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no webhook configuration in tests/api_server/crds: run `rbuilder manifests` to generate the project's"
    );
}
