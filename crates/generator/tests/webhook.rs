//! Webhook configurations from markers, row by row as in controller-gen's own tests. All arguments
//! are explicit here. `cases/webhooks` tests what is derived from the type of the handler.

use rbuilder_generator::{Generated, Options, SourceSet, generate, yaml};
use serde_json::{Value, json};

const CARGO_TOML: &str =
    "[package]\nname = \"operator\"\nedition = \"2024\"\n\n[dependencies]\nrbuilder = \"0.1\"\n";

/// All markers in the rows have these arguments.
const RULE: &str = "groups = \"testdata.example.com\", versions = \"v1\", resources = \"cronjobs\"";

/// In the markers, `#` stands for [`RULE`].
fn handler(markers: &[&str]) -> String {
    let markers: String = markers
        .iter()
        .map(|marker| format!("#[webhook({})]\n", marker.replace('#', RULE)))
        .collect();
    format!("{markers}fn handler() {{}}\n")
}

fn run(files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    generate(&sources, &Options::default())
}

fn check_files(files: &[(&str, &str)], expected: &[Value]) {
    let generated = run(files);
    assert_eq!(generated.diagnostics, [], "{files:?}");
    let expected: String = expected
        .iter()
        .map(|document| format!("---\n{}", yaml::to_string(document)))
        .collect();
    let [made] = &generated.files[..] else {
        panic!("one file, not {:?}", generated.files);
    };
    assert_eq!(made.path, "webhook/manifests.yaml");
    assert_eq!(made.text, expected);
}

/// All markers are on one function.
fn check(markers: &[&str], expected: &[Value]) {
    check_files(&[("src/lib.rs", &handler(markers))], expected);
}

/// Diagnostics are given as message and source text. Nothing may be generated.
fn check_refused(markers: &[&str], expected: &[(&str, &str)]) {
    let source = handler(markers);
    let generated = run(&[("src/lib.rs", &source)]);
    let said: Vec<(&str, &str)> = generated
        .diagnostics
        .iter()
        .map(|said| (said.message.as_str(), &source[said.place.range.clone()]))
        .collect();
    assert_eq!(said, expected, "{markers:?}");
    assert_eq!(generated.files, [], "{markers:?}");
}

fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": { "name": name },
        "webhooks": webhooks,
    })
}

fn mutating(webhooks: &[Value]) -> Value {
    configuration("Mutating", "mutating-webhook-configuration", webhooks)
}

fn validating(webhooks: &[Value]) -> Value {
    configuration("Validating", "validating-webhook-configuration", webhooks)
}

/// `changes` are applied to the webhook that a marker in the rows results in.
fn webhook(name: &str, path: &str, changes: Value) -> Value {
    let mut webhook = json!({
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "name": "webhook-service", "namespace": "system", "path": path } },
        "failurePolicy": "Fail",
        "name": name,
        "rules": [{
            "apiGroups": ["testdata.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["cronjobs"],
        }],
        "sideEffects": "None",
    });
    for (key, value) in changes.as_object().expect("changes") {
        webhook[key] = value.clone();
    }
    webhook
}

/// Both kinds of webhook have each policy. Mutating ones come first, and each kind is sorted by
/// name.
#[test]
fn policies() {
    let policies = json!({
        "admissionReviewVersions": ["v1", "v1beta1"], "matchPolicy": "Equivalent", "timeoutSeconds": 10,
    });
    let with = |key: &str, value: &str| {
        let mut changes = policies.clone();
        changes[key] = value.into();
        changes
    };
    let common = "operations = \"create;update\", failure_policy = \"fail\", match_policy = \"Equivalent\", \
                  timeout_seconds = 10, admission_review_versions = \"v1;v1beta1\"";
    for reinvocation in ["IfNeeded", "Never"] {
        check(
            &[
                &format!(
                    "validating, #, {common}, name = \"v.c.example.com\", path = \"/validate\", side_effects = \"None\""
                ),
                // The example of controller-gen has the first name again, but the API server
                // rejects that.
                &format!(
                    "validating, #, {common}, name = \"w.c.example.com\", path = \"/validate\", side_effects = \"NoneOnDryRun\""
                ),
                &format!(
                    "mutating, #, {common}, name = \"m.c.example.com\", path = \"/mutate\", reinvocation_policy = \"{reinvocation}\""
                ),
            ],
            &[
                mutating(&[webhook(
                    "m.c.example.com",
                    "/mutate",
                    with("reinvocationPolicy", reinvocation),
                )]),
                validating(&[
                    webhook("v.c.example.com", "/validate", policies.clone()),
                    webhook(
                        "w.c.example.com",
                        "/validate",
                        with("sideEffects", "NoneOnDryRun"),
                    ),
                ]),
            ],
        );
    }
}

#[test]
fn url_replaces_service() {
    let url = |url: &str| json!({ "clientConfig": { "url": url } });
    check(
        &[
            "validating, #, name = \"a.c.example.com\", url = \"https://one:9443/validate\"",
            "validating, #, name = \"b.c.example.com\", url = \"https://two:9443/validate\"",
            "mutating, #, name = \"m.c.example.com\", path = \"/mutate\"",
        ],
        &[
            mutating(&[webhook("m.c.example.com", "/mutate", json!({}))]),
            validating(&[
                webhook("a.c.example.com", "", url("https://one:9443/validate")),
                webhook("b.c.example.com", "", url("https://two:9443/validate")),
            ]),
        ],
    );
}

#[test]
fn service_with_another_name() {
    let service = |service: Value| json!({ "clientConfig": { "service": service } });
    check(
        &[
            "validating, #, name = \"a.c.example.com\", path = \"/v\", service_name = \"dead\", service_namespace = \"beef\", service_port = 1234",
            "validating, #, name = \"b.c.example.com\", path = \"/v\"",
            "mutating, #, name = \"m.c.example.com\", path = \"/m\", service_name = \"foo\"",
        ],
        &[
            mutating(&[webhook(
                "m.c.example.com",
                "",
                service(json!({ "name": "foo", "namespace": "system", "path": "/m" })),
            )]),
            validating(&[
                webhook(
                    "a.c.example.com",
                    "",
                    service(json!({ "name": "dead", "namespace": "beef", "path": "/v", "port": 1234 })),
                ),
                webhook("b.c.example.com", "/v", json!({})),
            ]),
        ],
    );
}

#[test]
fn configurations_with_another_name() {
    check(
        &[
            "validating, #, name = \"a.c.example.com\", path = \"/v\", configuration = \"bar\"",
            "validating, #, name = \"b.c.example.com\", path = \"/v\", configuration = \"bar\"",
            "mutating, #, name = \"m.c.example.com\", path = \"/m\", configuration = \"foo\"",
        ],
        &[
            configuration("Mutating", "foo", &[webhook("m.c.example.com", "/m", json!({}))]),
            configuration(
                "Validating",
                "bar",
                &[
                    webhook("a.c.example.com", "/v", json!({})),
                    webhook("b.c.example.com", "/v", json!({})),
                ],
            ),
        ],
    );
}

/// Two configurations may both have the same name, but controller-gen reports a duplicate.
#[test]
fn several_configurations_of_the_same_kind() {
    check(
        &[
            "mutating, #, name = \"a.c.example.com\", path = \"/a\", configuration = \"foo\"",
            "mutating, #, name = \"a.c.example.com\", path = \"/a\", configuration = \"bar\"",
        ],
        &[
            configuration("Mutating", "bar", &[webhook("a.c.example.com", "/a", json!({}))]),
            configuration("Mutating", "foo", &[webhook("a.c.example.com", "/a", json!({}))]),
        ],
    );
}

#[test]
fn webhooks_are_sorted_by_name() {
    let marker =
        |name: &str| format!("validating, #, name = \"{name}.testdata.example.com\", path = \"/{name}\"");
    let names = ["deployment", "cronjob", "cronjoblist"];
    let sorted = ["cronjob", "cronjoblist", "deployment"].map(|name| {
        let path = format!("/{name}");
        webhook(&format!("{name}.testdata.example.com"), &path, json!({}))
    });
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        let markers = order.map(|position| marker(names[position]));
        check(&markers.each_ref().map(String::as_str), &[validating(&sorted)]);
    }
    let (one, two) = (
        handler(&[&marker(names[0]), &marker(names[1])]),
        handler(&[&marker(names[2])]),
    );
    for lib in ["mod v1;\nmod v1alpha1;\n", "mod v1alpha1;\nmod v1;\n"] {
        let files = [
            ("src/lib.rs", lib),
            ("src/v1.rs", &one),
            ("src/v1alpha1.rs", &two),
        ];
        check_files(&files, &[validating(&sorted)]);
    }
}

/// Two targets include the module, but there is only one webhook.
#[test]
fn module_of_two_targets_has_one_webhook() {
    let shared = handler(&["validating, #, name = \"a.b.c\", path = \"/v\""]);
    let files = [
        ("src/lib.rs", "mod shared;"),
        ("src/main.rs", "mod shared;"),
        ("src/shared.rs", &shared),
    ];
    check_files(&files, &[validating(&[webhook("a.b.c", "/v", json!({}))])]);
}

/// In Go, you need to patch the manifest for these fields.
#[test]
fn selectors() {
    let rows = [
        (
            "namespace_selector(match_labels = { \"webhook-enabled\": \"true\" })",
            json!({ "namespaceSelector": { "matchLabels": { "webhook-enabled": "true" } } }),
        ),
        (
            "object_selector(match_labels = { \"managed-by\": \"myoperator\" })",
            json!({ "objectSelector": { "matchLabels": { "managed-by": "myoperator" } } }),
        ),
        (
            "namespace_selector(match_expression(key = \"environment\", operator = \"In\", values = [\"dev\", \"staging\", \"prod\"]))",
            json!({ "namespaceSelector": { "matchExpressions": [
                { "key": "environment", "operator": "In", "values": ["dev", "staging", "prod"] },
            ] } }),
        ),
        (
            "object_selector(match_labels = { \"managed-by\": \"controller\" }, match_expression(key = \"tier\", operator = \"in\", values = [\"frontend\", \"backend\"]), match_expression(key = \"old\", operator = \"DoesNotExist\"))",
            json!({ "objectSelector": {
                "matchExpressions": [
                    { "key": "tier", "operator": "In", "values": ["frontend", "backend"] },
                    { "key": "old", "operator": "DoesNotExist" },
                ],
                "matchLabels": { "managed-by": "controller" },
            } }),
        ),
        (
            "match_condition(name = \"b\", expression = \"true\"), match_condition(name = \"a\", expression = \"request.dryRun\")",
            json!({ "matchConditions": [
                { "expression": "true", "name": "b" },
                { "expression": "request.dryRun", "name": "a" },
            ] }),
        ),
    ];
    for (marker, changes) in rows {
        for kind in ["mutating", "validating"] {
            let marker = format!("{kind}, #, name = \"a.b.c\", path = \"/p\", {marker}");
            let made = [webhook("a.b.c", "/p", changes.clone())];
            let expected = if kind == "mutating" {
                mutating(&made)
            } else {
                validating(&made)
            };
            check(&[&marker], &[expected]);
        }
    }
}

#[test]
fn mistakes() {
    let right = "validating, #, name = \"a.b.c\", path = \"/p\"";
    for (argument, message, place) in [
        (
            "side_effects = \"Some\"",
            "the API server rejects a webhook with `side_effects = \"Some\"`",
            "\"Some\"",
        ),
        (
            "timeout_seconds = 40",
            "expected a timeout from 1 to 30 seconds, found 40",
            "40",
        ),
        (
            "timeout_seconds = -1",
            "expected a timeout from 1 to 30 seconds, found -1",
            "-1",
        ),
        (
            "url = \"https://another:9443/validate\"",
            "`path` and `url` are mutually exclusive",
            "path",
        ),
        (
            "webhook_versions = \"v1beta1\"",
            "unknown argument `webhook_versions` of `webhook`",
            "webhook_versions",
        ),
        (
            "admission_review_versions = []",
            "the handler supports AdmissionReview v1 only",
            "[]",
        ),
    ] {
        // The marker next to it is valid, but isn't generated either.
        check_refused(
            &[
                &format!("{right}, {argument}"),
                "mutating, #, name = \"m.b.c\", path = \"/m\"",
            ],
            &[(message, place)],
        );
    }
    check_refused(
        &[right, right],
        &[("duplicate webhook name `a.b.c`", "\"a.b.c\"")],
    );
    check_refused(
        &["validating, #"],
        &[("no parameter of this handler is a known kind", "handler")],
    );
}

#[test]
fn suggests_import_of_existing_kind() {
    let cup = "#[derive(kube::CustomResource, rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)]\n\
               #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Cup\")]\n\
               pub struct CupSpec { pub size: i32 }\n";
    let webhook = "use crate::api::Cup;\n\n#[rbuilder::webhook(mutating)]\nfn default(cup: &mut Cup) {}\n";
    let generated = run(&[
        ("src/lib.rs", "mod api;\nmod webhook;\n"),
        ("src/api/mod.rs", "mod cup;\n"),
        ("src/api/cup.rs", cup),
        ("src/webhook.rs", webhook),
    ]);
    let said: Vec<_> = generated
        .diagnostics
        .iter()
        .map(|said| (said.message.as_str(), said.help.as_deref().unwrap_or_default()))
        .collect();
    let expected = (
        "cannot find type `Cup`",
        "import it from the module that declares it, or re-export it there with `pub use`, or add `groups`, `versions`, \
         `resources`, `name`, `path` to the marker",
    );
    assert_eq!(said, [expected]);
}

/// kustomize selects configurations by the annotation, and fails if there is nothing to replace.
#[test]
fn annotates_conditions_on_manager_namespace() {
    let annotation = |conditions: &[(&str, &str)]| -> Value {
        let conditions = conditions.iter().map(|(name, expression)| {
            format!("match_condition(name = \"{name}\", expression = \"{expression}\")")
        });
        let conditions: Vec<String> = conditions.collect();
        let marker = format!(
            "mutating, name = \"a.b.c\", path = \"/a\", #, {}",
            conditions.join(", ")
        );
        let generated = run(&[("src/lib.rs", &handler(&[&marker]))]);
        assert_eq!(generated.diagnostics, [], "{marker}");
        let object: Value = serde_saphyr::from_str(&generated.files[0].text).expect("YAML");
        object["metadata"]["annotations"].clone()
    };
    let own = ("manager-namespace", "request.namespace in ['system']");
    let expected = json!({ "rbuilder.dev/manager-namespace": "matchConditions" });
    assert_eq!(annotation(&[own]), expected);
    assert_eq!(
        annotation(&[("other", "request.name == 'system'"), own]),
        expected
    );
    assert_eq!(annotation(&[("other", "request.name == 'system'")]), Value::Null);
    assert_eq!(
        annotation(&[("manager-namespace", "request.namespace.size() > 3")]),
        Value::Null
    );
}
