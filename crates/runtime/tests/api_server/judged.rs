//! What the server rejects, completes and warns about: rules, field validation, types of applied
//! fields, and versions with different schemas.

use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, apply, refusal, refused};

on_both_servers!(
    rules_patterns_and_formats_are_checked,
    transition_rules_compare_with_the_stored_object,
    unchanged_violations_are_ratcheted,
    status_is_validated,
    unknown_and_repeated_fields_cause_warnings,
    strict_validation_names_all_fields,
    strict_patches_are_refused_with_the_patched_object,
    applied_fields_have_the_types_of_the_schema,
    applied_objects_need_a_name_when_they_are_new,
    applied_items_need_distinct_keys,
    defaulted_keys_identify_applied_items,
    selectable_fields_are_compared_as_text,
    versions_have_schemas_of_their_own,
    changed_schema_applies_to_stored_objects,
    metadata_of_all_kinds_is_validated,
    scale_cannot_be_negative,
);

const LAMPS: &str = "/apis/apiserver.example.com/v1/namespaces/{ns}/lamps";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn lamps(place: &Place, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiserver.example.com", version, "Lamp");
    let kind = ApiResource::from_gvk_with_plural(&kind, "lamps");
    Api::namespaced_with(place.client.clone(), &place.namespace, &kind)
}

fn lamp(version: &str, name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": format!("apiserver.example.com/{version}"), "kind": "Lamp",
        "metadata": { "name": name }, "spec": spec,
    }))
    .unwrap()
}

async fn create(place: &Place, spec: Value) -> kube::Result<DynamicObject> {
    let lamp = lamp("v1", "a", spec);
    lamps(place, "v1").create(&PostParams::default(), &lamp).await
}

/// Asserts that a write is rejected because of these causes, sorted since the server checks fields
/// in random order.
#[track_caller]
fn check_causes(answer: kube::Result<DynamicObject>, expected: &[&str]) {
    let status = refusal(answer);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let details = status.details.unwrap();
    assert_eq!(
        (&*details.name, &*details.group, &*details.kind),
        ("a", "apiserver.example.com", "Lamp")
    );
    let causes = details.causes.iter();
    let mut causes: Vec<String> = causes
        .map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message))
        .collect();
    causes.sort();
    assert_eq!(causes, expected);
}

async fn rules_patterns_and_formats_are_checked(server: Server) {
    let place = Place::new(server).await;
    check_causes(
        create(&place, json!({ "host": "attic", "watts": 120 })).await,
        &["FieldValueForbidden spec.watts: Forbidden: a lamp at attic is too bright"],
    );
    check_causes(
        create(&place, json!({ "host": "no_host" })).await,
        &[
            "FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation",
            "FieldValueInvalid spec.host: Invalid value: \"no_host\": spec.host in body should match '^[a-z]+$'",
            "FieldValueTypeInvalid spec.host: Invalid value: \"no_host\": spec.host in body must be of type \
             hostname: \"no_host\"",
        ],
    );
    check_causes(
        create(&place, json!({ "watts": "many", "host": "attic" })).await,
        &[
            "FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation",
            "FieldValueTypeInvalid spec.watts: Invalid value: \"string\": spec.watts in body must be of type \
             integer: \"string\"",
        ],
    );
    let made = create(&place, json!({ "host": "attic" })).await.unwrap();
    assert_eq!(made.data["spec"], json!({ "host": "attic", "watts": 40 }));
}

async fn transition_rules_compare_with_the_stored_object(server: Server) {
    let place = Place::new(server).await;
    let mut made = create(&place, json!({})).await.unwrap();
    made.data["spec"]["watts"] = 20.into();
    let expected = ["FieldValueInvalid spec.watts: Invalid value: 20: lamps never become dimmer"];
    let lamps = lamps(&place, "v1");
    check_causes(lamps.replace("a", &PostParams::default(), &made).await, &expected);
    let patch = Patch::Merge(json!({ "spec": { "watts": 20 } }));
    check_causes(lamps.patch("a", &PatchParams::default(), &patch).await, &expected);
    let applied =
        json!({ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "spec": { "watts": 20 } });
    let force = PatchParams::apply("m").force();
    check_causes(lamps.patch("a", &force, &Patch::Apply(&applied)).await, &expected);
    let patch = Patch::Merge(json!({ "spec": { "watts": 60 } }));
    lamps.patch("a", &PatchParams::default(), &patch).await.unwrap();
}

/// Uses a version with a more permissive schema to create an object that violates the schema of the
/// other one.
async fn violating(place: &Place) -> DynamicObject {
    let lamp = lamp("v1beta1", "a", json!({ "host": "UPPER", "watts": 40 }));
    let made = lamps(place, "v1beta1")
        .create(&PostParams::default(), &lamp)
        .await;
    made.unwrap();
    lamps(place, "v1").get("a").await.unwrap()
}

async fn unchanged_violations_are_ratcheted(server: Server) {
    let place = Place::new(server).await;
    let mut stored = violating(&place).await;
    stored.data["spec"]["watts"] = 50.into();
    let lamps = lamps(&place, "v1");
    let updated = lamps.replace("a", &PostParams::default(), &stored).await.unwrap();
    assert_eq!(
        (&updated.data["spec"]["host"], updated.metadata.generation),
        (&json!("UPPER"), Some(2))
    );
    let patch = Patch::Merge(json!({ "spec": { "host": "LOUDER" } }));
    check_causes(
        lamps.patch("a", &PatchParams::default(), &patch).await,
        &[
            "FieldValueInvalid spec.host: Invalid value: \"LOUDER\": spec.host in body should match '^[a-z]+$'",
        ],
    );
}

async fn status_is_validated(server: Server) {
    let place = Place::new(server).await;
    let mut stored = violating(&place).await;
    let lamps = lamps(&place, "v1");
    stored.data["status"] = json!({ "hours": 9, "days": 1 });
    let expected =
        "FieldValueInvalid status.hours: Invalid value: 9: hours in body should be less than or equal to 5";
    check_causes(
        lamps.replace_status("a", &PostParams::default(), &stored).await,
        &[expected],
    );
    let patch = Patch::Merge(json!({ "status": { "hours": 9 } }));
    check_causes(
        lamps.patch_status("a", &PatchParams::default(), &patch).await,
        &[expected],
    );
    // The rest of the object isn't validated.
    stored.data["status"] = json!({ "hours": 2, "days": 1 });
    let written = lamps
        .replace_status("a", &PostParams::default(), &stored)
        .await
        .unwrap();
    assert_eq!(written.data["status"], json!({ "hours": 2 }));
}

async fn unknown_and_repeated_fields_cause_warnings(server: Server) {
    let place = Place::new(server).await;
    let body = r#"{ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "metadata": { "name": "a", "nick": 1 },
        "spec": { "sockets": [{ "name": "x", "colour": 1 }], "watts": 1, "watts": 2, "typo": 1 } }"#;
    let post = async |parameters: &str, body: &str| {
        let path = format!("{LAMPS}?dryRun=All{parameters}");
        let (code, warnings, text) = place.raw_with_warnings("POST", &path, &JSON, body).await;
        assert_eq!(code, 201, "{text}");
        warnings
    };
    let expected = [
        r#"299 - "duplicate field \"spec.watts\"""#,
        r#"299 - "unknown field \"metadata.nick\"""#,
        r#"299 - "unknown field \"spec.sockets[0].colour\"""#,
        r#"299 - "unknown field \"spec.typo\"""#,
    ];
    assert_eq!(post("", body).await, expected);
    assert_eq!(post("&fieldValidation=Warn", body).await, expected);
    assert!(post("&fieldValidation=Ignore", body).await.is_empty());
    let finalizer = r#"{ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp",
        "metadata": { "name": "a", "finalizers": ["mine"] } }"#;
    assert_eq!(
        post("", finalizer).await,
        [
            "299 - \"metadata.finalizers: \\\"mine\\\": prefer a domain-qualified finalizer name to avoid accidental \
          conflicts with other finalizer writers\""
        ]
    );
}

async fn strict_validation_names_all_fields(server: Server) {
    let place = Place::new(server).await;
    let path = format!("{LAMPS}?fieldValidation=Strict");
    let unknown = lamp(
        "v1",
        "a",
        json!({ "sockets": [{ "name": "x", "colour": 1 }], "typo": 1 }),
    );
    let body = serde_json::to_string(&unknown).unwrap();
    let (code, text) = place.raw("POST", &path, &JSON, &body).await;
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert_eq!(
        status["message"],
        "Lamp in version \"v1\" cannot be handled as a Lamp: strict decoding error: unknown field \
         \"spec.sockets[0].colour\", unknown field \"spec.typo\""
    );
    let body = r#"{ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "metadata": { "name": "a" },
        "spec": { "watts": 1, "watts": 2 } }"#;
    let (code, text) = place.raw("POST", &path, &JSON, body).await;
    assert_eq!(code, 400);
    assert!(text.contains("strict decoding error: duplicate field"), "{text}");
}

async fn strict_patches_are_refused_with_the_patched_object(server: Server) {
    let place = Place::new(server).await;
    create(&place, json!({})).await.unwrap();
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "spec": { "typo": 1 } }));
    let status = refusal(lamps(&place, "v1").patch("a", &params, &patch).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let message = &status.message;
    assert!(
        message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"),
        "{message}"
    );
    assert!(
        message.ends_with("}\": strict decoding error: unknown field \"spec.typo\""),
        "{message}"
    );
    let causes = status.details.unwrap().causes;
    assert_eq!((causes.len(), &*causes[0].field), (1, "patch"));
}

async fn check_apply(place: &Place, spec: Value, expected: &str) {
    let object = json!({ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "metadata": { "name": "a" },
        "spec": spec });
    let status = refusal(apply(&lamps(place, "v1"), "a", "m", object).await);
    let message =
        format!("failed to create typed patch object (/a; apiserver.example.com/v1, Kind=Lamp): {expected}");
    assert_eq!((status.code, status.message), (500, message));
}

async fn applied_fields_have_the_types_of_the_schema(server: Server) {
    let place = Place::new(server).await;
    for (spec, expected) in [
        (
            json!({ "watts": "many" }),
            ".spec.watts: expected numeric (int or float), got string",
        ),
        (
            json!({ "watts": [1] }),
            ".spec.watts: expected numeric (int or float), got []interface {}",
        ),
        (json!({ "on": "yes" }), ".spec.on: expected boolean, got &{yes}"),
        (
            json!({ "host": ["a"] }),
            ".spec.host: expected any scalar, got &{[a]}",
        ),
        (
            json!({ "maker": 1 }),
            ".spec.maker: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({ "maker": { "a": ["b", true] } }),
            ".spec.maker: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":[]interface \
             {}{\"b\", true}}}",
        ),
        (
            json!({ "sockets": "none" }),
            ".spec.sockets: expected list, got &{none}",
        ),
        (
            json!({ "sockets": { "a": 1 } }),
            ".spec.sockets: expected list, got &{map[a:1]}",
        ),
        (json!({ "typo": 1 }), ".spec.typo: field not declared in schema"),
        (json!([1]), ".spec: expected map, got &{[1]}"),
        (
            json!({ "sockets": [{ "name": "x", "volts": "high" }] }),
            ".spec.sockets[name=\"x\",side=\"left\"].volts: expected numeric (int or float), got string",
        ),
    ] {
        check_apply(&place, spec, expected).await;
    }
}

async fn applied_objects_need_a_name_when_they_are_new(server: Server) {
    let place = Place::new(server).await;
    let nameless =
        || json!({ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "spec": { "watts": 1 } });
    let lamps = lamps(&place, "v1");
    refused(
        apply(&lamps, "a", "m", nameless()).await,
        400,
        "BadRequest",
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    );
    create(&place, json!({ "watts": 1 })).await.unwrap();
    apply(&lamps, "a", "m", nameless()).await.unwrap();
}

async fn applied_items_need_distinct_keys(server: Server) {
    let place = Place::new(server).await;
    for (spec, expected) in [
        (
            json!({ "sockets": [{ "name": "x" }, { "name": "x", "side": "left" }] }),
            ".spec.sockets: duplicate entries for key [name=\"x\",side=\"left\"]",
        ),
        (
            json!({ "sockets": [1] }),
            ".spec.sockets: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({ "sockets": [null] }),
            ".spec.sockets: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({ "colours": ["red", "red"] }),
            ".spec.colours: duplicate entries for key [=\"red\"]",
        ),
        (
            json!({ "colours": [{}] }),
            ".spec.colours: element 0: associative list without keys has an element that's a map type",
        ),
    ] {
        check_apply(&place, spec, expected).await;
    }
    let object = json!({ "apiVersion": "apiserver.example.com/v1", "kind": "Jar", "metadata": { "name": "a" },
        "spec": { "lids": [{ "fits": true }] } });
    let status = refusal(apply(&place.jars(), "a", "m", object).await);
    assert_eq!(
        status.message,
        "failed to create typed patch object (/a; apiserver.example.com/v1, Kind=Jar): .spec.lids: element 0: \
         associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default \
         values for any key fields)"
    );
}

async fn defaulted_keys_identify_applied_items(server: Server) {
    let place = Place::new(server).await;
    let object = |sockets: Value| {
        json!({ "apiVersion": "apiserver.example.com/v1", "kind": "Lamp", "metadata": { "name": "a" },
            "spec": { "sockets": sockets } })
    };
    let lamps = lamps(&place, "v1");
    let sockets = json!([{ "name": "x", "volts": 1 }, { "name": "x", "side": "right" }]);
    apply(&lamps, "a", "one", object(sockets)).await.unwrap();
    let sockets = json!([{ "name": "x", "side": "left", "volts": 1 }]);
    let shared = apply(&lamps, "a", "two", object(sockets)).await.unwrap();
    assert_eq!(
        shared.data["spec"]["sockets"],
        json!([{ "name": "x", "side": "left", "volts": 1 }, { "name": "x", "side": "right" }])
    );
    let conflict = apply(&lamps, "a", "two", object(json!([{ "name": "x", "volts": 2 }]))).await;
    refused(
        conflict,
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"one\": .spec.sockets[name=\"x\",side=\"left\"].volts",
    );
}

async fn selectable_fields_are_compared_as_text(server: Server) {
    let place = Place::new(server).await;
    let lamps = lamps(&place, "v1");
    for (name, spec) in [
        ("a", json!({})),
        ("b", json!({ "watts": 60, "on": true })),
        ("c", json!({ "watts": 60, "on": false })),
    ] {
        lamps
            .create(&PostParams::default(), &lamp("v1", name, spec))
            .await
            .unwrap();
    }
    for (selector, expected) in [
        ("spec.watts=60", &["b", "c"][..]),
        ("spec.watts=40", &["a"]),
        ("spec.watts!=40,spec.on=true", &["b"]),
        ("spec.on=", &["a"]),
    ] {
        let list = lamps.list(&ListParams::default().fields(selector)).await.unwrap();
        let names: Vec<String> = list
            .items
            .iter()
            .filter_map(|lamp| lamp.metadata.name.clone())
            .collect();
        assert_eq!(names, expected, "{selector}");
    }
    let answer = self::lamps(&place, "v1beta1")
        .list(&ListParams::default().fields("spec.watts=60"))
        .await;
    refused(answer, 400, "BadRequest", "field label not supported: spec.watts");
}

async fn versions_have_schemas_of_their_own(server: Server) {
    let place = Place::new(server).await;
    let (old, new) = (lamps(&place, "v1beta1"), lamps(&place, "v1"));
    let made = old
        .create(
            &PostParams::default(),
            &lamp("v1beta1", "a", json!({ "vendor": "m", "host": "h", "extra": 1 })),
        )
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"],
        json!({ "host": "h", "on": true, "watts": 40 }),
        "stored as v1"
    );
    let read = new.get("a").await.unwrap();
    assert_eq!(read.data["spec"], json!({ "host": "h", "on": true, "watts": 40 }));
    // Each version has its own bounds and rules.
    let bright = lamp("v1", "b", json!({ "watts": 80 }));
    let made = new.create(&PostParams::default(), &bright).await.unwrap();
    assert_eq!(made.data["spec"], json!({ "watts": 80 }));
    let read = old.get("b").await.unwrap();
    assert_eq!(
        read.data["spec"],
        json!({ "watts": 80 }),
        "not defaulted by v1beta1"
    );
    let dimmer = Patch::Merge(json!({ "spec": { "watts": 70 } }));
    let status = refusal(old.patch("b", &PatchParams::default(), &dimmer).await);
    assert_eq!(status.code, 422, "{}", status.message);
    let dimmer = Patch::Merge(json!({ "spec": { "watts": 50 } }));
    let patched = old.patch("b", &PatchParams::default(), &dimmer).await.unwrap();
    assert_eq!(patched.data["spec"]["watts"], 50);
    let list = old.list(&ListParams::default()).await.unwrap();
    assert!(
        list.items
            .iter()
            .all(|lamp| lamp.data["spec"].get("vendor").is_none())
    );
}

async fn changed_schema_applies_to_stored_objects(server: Server) {
    let place = Place::new(server).await;
    let schema = |properties: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("shades.{}.example.com", place.namespace) },
            "spec": {
                "group": format!("{}.example.com", place.namespace), "scope": "Namespaced",
                "names": { "kind": "Shade", "plural": "shades" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": properties } },
                } } }],
            },
        })
    };
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = format!(
        "{crds}/shades.{}.example.com?fieldManager=test&force=true",
        place.namespace
    );
    let install = async |properties: Value| {
        let apply = [("content-type", "application/apply-patch+yaml")];
        let (code, text) = place
            .raw("PATCH", &path, &apply, &schema(properties).to_string())
            .await;
        assert!(matches!(code, 200 | 201), "{text}");
    };
    install(json!({ "a": { "type": "string" }, "b": { "type": "string" } })).await;
    let kind = GroupVersionKind::gvk(&format!("{}.example.com", place.namespace), "v1", "Shade");
    let kind = ApiResource::from_gvk_with_plural(&kind, "shades");
    let shades: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &place.namespace, &kind);
    let soon = std::time::Duration::from_secs(20);
    let object = DynamicObject::new("a", &kind).data(json!({ "spec": { "a": "x", "b": "y" } }));
    let made = rbuilder::testing::eventually(soon, || async {
        shades.create(&PostParams::default(), &object).await
    })
    .await;
    install(json!({ "a": { "type": "string" }, "c": { "type": "string", "default": "z" } })).await;
    let expected = json!({ "a": "x", "c": "z" });
    let spec = async || {
        shades
            .get("a")
            .await
            .map(|object| object.data["spec"].clone())
            .ok()
    };
    rbuilder::testing::eventually_eq(soon, Some(expected), spec).await;
    // The object only looks different when read; the stored object is unchanged.
    let read = shades.get("a").await.unwrap();
    assert_eq!(read.metadata.resource_version, made.metadata.resource_version);
}

async fn metadata_of_all_kinds_is_validated(server: Server) {
    let place = Place::new(server).await;
    let maps = "/api/v1/namespaces/{ns}/configmaps?dryRun=All";
    let post = async |metadata: &str| {
        let body = format!(r#"{{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {metadata} }}"#);
        let (code, warnings, text) = place.raw_with_warnings("POST", maps, &JSON, &body).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        (code, warnings, message)
    };
    let (code, _, message) = post(r#"{ "name": "a", "labels": { "a b": "c d" } }"#).await;
    assert_eq!(code, 422);
    assert!(
        message.starts_with(
            "ConfigMap \"a\" is invalid: [metadata.labels: Invalid value: \"a b\": name part must consist of \
             alphanumeric characters"
        ),
        "{message}"
    );
    let (code, _, message) =
        post(r#"{ "name": "a", "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod" }] }"#).await;
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "ConfigMap \"a\" is invalid: [metadata.ownerReferences[0].name: Required value: must not be empty, \
         metadata.ownerReferences[0].uid: Required value: must not be empty]"
    );
    let (code, _, message) = post(r#"{ "name": "a", "labels": { "a": 1 } }"#).await;
    assert_eq!(code, 400, "{message}");
    assert!(
        message.starts_with(
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number"
        ),
        "{message}"
    );
    let (code, warnings, _) = post(r#"{ "name": "a", "nick": "b" }"#).await;
    assert_eq!(
        (code, warnings),
        (201, vec![r#"299 - "unknown field \"metadata.nick\"""#.to_owned()])
    );
}

async fn scale_cannot_be_negative(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({ "size": 1 })).await;
    let patch = Patch::Merge(json!({ "spec": { "replicas": -1 } }));
    let answer = place
        .jars()
        .patch_scale("a", &PatchParams::default(), &patch)
        .await;
    let status = refusal(answer);
    assert_eq!(status.code, 422);
    assert!(
        status
            .message
            .contains("spec.size: Invalid value: -1: should be a non-negative integer"),
        "{}",
        status.message
    );
}
