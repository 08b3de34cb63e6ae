//! Rules that markers generate, on a real API server: unions and immutable fields.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use rbuilder::envtest::{Environment, eventually};
use serde_json::{Value, json};

use super::generated;
use super::oracle::apis::rules::Rule;

const GROUP: &str = "rules.example.com";

const DRY_RUN: PostParams = PostParams {
    dry_run: true,
    field_manager: None,
};

fn right() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Rule", "metadata": {"name": "sample"},
        "spec": {
            "low": 1, "high": 2, "stringWithEvenLength": "ab", "stringWithEvenLengthAndGoodPrefix": "good-a",
            "forbiddenInt": {}, "reasonRequired": 0, "reasonDuplicate": 0, "onlyAllowSettingOnUpdate": 0,
            "notOptional": 0, "unions": {"left": "a", "here": "a"}, "ordered": {"a": 1},
            "fixed": {
                "requiredString": "a", "requiredStruct": {"a": 1}, "requiredList": ["a"], "requiredMap": {"a": "b"},
            },
        },
    })
}

/// Sets or removes one field.
fn changed(object: &Value, place: &str, value: &Value) -> DynamicObject {
    let (parent, name) = place.rsplit_once('/').expect("a place");
    let mut object = object.clone();
    let fields = object
        .pointer_mut(parent)
        .and_then(Value::as_object_mut)
        .expect("the parent");
    match value {
        Value::Null => fields.remove(name),
        value => fields.insert(name.to_owned(), value.clone()),
    };
    serde_json::from_value(object).expect("an object")
}

async fn installed(env: &Environment) -> Api<DynamicObject> {
    let crds: Api<CustomResourceDefinition> = Api::all(env.client());
    // Use another group, since other tests install this CRD on the same server.
    let manifest = generated()["rules.oracle.example.com"].replace("oracle.example.com", GROUP);
    let crd = serde_saphyr::from_str(&manifest).expect("a CRD");
    crds.create(&PostParams::default(), &crd)
        .await
        .expect("the server takes it");
    let resource = ApiResource {
        group: GROUP.into(),
        api_version: format!("{GROUP}/v1"),
        ..ApiResource::erase::<Rule>(&())
    };
    let rules = Api::namespaced_with(env.client(), "default", &resource);
    eventually(Duration::from_secs(20), || async {
        rules.list(&Default::default()).await.map(drop)
    })
    .await;
    rules
}

#[rbuilder::envtest::test]
async fn server_enforces_generated_rules(env: Environment) {
    let rules = installed(&env).await;
    creating(&rules).await;
    updating(&rules).await;
}

async fn creating(rules: &Api<DynamicObject>) {
    for (place, value, accepted) in [
        ("/spec/unions", json!({"left": "a", "here": "a"}), true),
        (
            "/spec/unions",
            json!({"left": "a", "right": "a", "here": "a"}),
            false,
        ),
        ("/spec/unions", json!({"here": "a"}), false),
        ("/spec/unions", json!({"left": "a", "foo": "a"}), false),
        (
            "/spec/unions",
            json!({"left": "a", "there": "a", "foo": "a"}),
            true,
        ),
        ("/spec/unions", json!({"left": "a", "there": "a"}), false),
        (
            "/spec/unions",
            json!({"left": "a", "here": "a", "foo": "a", "bar": "a"}),
            false,
        ),
        ("/spec/maybeUnions", json!({}), false),
        ("/spec/ordered", json!({}), false),
        ("/spec/ordered", json!({"b": 1}), true),
        ("/spec/ordered", json!({"a": 1, "b": 1}), false),
        ("/spec/ordered", json!({"b": 1, "c": 1}), false),
        ("/spec/ordered", json!({"c": 1}), false),
        ("/spec/low", json!(3), false),
        ("/spec/stringWithEvenLength", json!("abc"), false),
        ("/spec/stringWithEvenLengthAndGoodPrefix", json!("bad-ab"), false),
        ("/spec/stringWithEvenLengthAndGoodPrefix", json!("good-ab"), false),
        ("/spec/forbiddenInt", json!({"forbidden": 1}), false),
        ("/spec/onlyAllowSettingOnUpdate", json!(1), false),
        ("/metadata/name", json!("a".repeat(40)), false),
    ] {
        let answer = rules.create(&DRY_RUN, &changed(&right(), place, &value)).await;
        assert_eq!(answer.is_ok(), accepted, "{place} = {value}: {answer:?}");
    }
}

async fn updating(rules: &Api<DynamicObject>) {
    let first = changed(&right(), "/spec/low", &json!(1));
    let kept = rules
        .create(&PostParams::default(), &first)
        .await
        .expect("created");
    let kept = serde_json::to_value(kept).expect("JSON");
    for (place, value, accepted) in [
        ("/spec/low", json!(2), true),
        ("/spec/onlyAllowSettingOnUpdate", json!(5), true),
        ("/spec/notOptional", json!(1), false),
        ("/spec/fixed/requiredString", json!("b"), false),
        ("/spec/fixed/requiredStruct", json!({"a": 2}), false),
        ("/spec/fixed/requiredList", json!(["a", "b"]), false),
        ("/spec/fixed/requiredMap", json!({}), false),
        ("/spec/fixed/optionalString", json!("a"), true),
        ("/spec/fixed/optionalStruct", json!({"a": 1}), true),
        ("/spec/fixed/optionalList", json!(["a"]), true),
        ("/spec/fixed/optionalMap", json!({"a": "b"}), true),
        ("/spec/fixed/free", json!("a"), true),
    ] {
        update(rules, &kept, place, &value, accepted).await;
    }
    let all = json!({
        "requiredString": "a", "requiredStruct": {"a": 1}, "requiredList": ["a"], "requiredMap": {"a": "b"},
        "optionalString": "a", "optionalStruct": {"a": 1}, "optionalList": ["a"], "optionalMap": {"a": "b"},
        "free": "a",
    });
    let full = changed(&kept, "/spec/fixed", &all);
    let full = rules
        .replace("sample", &PostParams::default(), &full)
        .await
        .expect("set once");
    let full = serde_json::to_value(full).expect("JSON");
    for (place, value, accepted) in [
        ("/spec/fixed/optionalString", json!("b"), false),
        ("/spec/fixed/optionalString", Value::Null, false),
        ("/spec/fixed/optionalStruct", json!({"a": 2}), false),
        ("/spec/fixed/optionalStruct", Value::Null, false),
        ("/spec/fixed/optionalList", Value::Null, false),
        ("/spec/fixed/optionalMap", json!({"a": "c"}), false),
        ("/spec/fixed/optionalMap", Value::Null, false),
        ("/spec/fixed/free", Value::Null, true),
    ] {
        update(rules, &full, place, &value, accepted).await;
    }
}

async fn update(rules: &Api<DynamicObject>, kept: &Value, place: &str, value: &Value, accepted: bool) {
    let answer = rules
        .replace("sample", &DRY_RUN, &changed(kept, place, value))
        .await;
    assert_eq!(answer.is_ok(), accepted, "{place} = {value}: {answer:?}");
}
