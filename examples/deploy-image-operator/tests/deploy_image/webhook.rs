// SPDX-License-Identifier: Apache-2.0

//! The responses of the webhook, which the API server calls before it stores a Memcached.

use kube::api::{PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Config};
use rbuilder::envtest::Environment;
use serde_json::{Value, json};

use crate::support::{Fixture, from_json, merge};

#[rbuilder::envtest::test]
async fn webhook_defaults_the_size_to_three(env: Environment) {
    let fixture = Fixture::new(env).await;
    let (_server, running) = fixture.webhook().await;
    for (size, stored) in [(0, 3), (2, 2)] {
        let created = fixture.create(&format!("size-{size}"), size).await;
        assert_eq!(created.spec.size, stored);
    }
    let absent = merge(json!({"spec": {"size": null}}));
    let params = PatchParams::default();
    let patched = fixture.memcacheds().patch("size-2", &params, &absent).await;
    assert_eq!(patched.unwrap().spec.size, 3);
    let refused = fixture.try_create("size-6", 6).await;
    assert!(refused.is_err(), "the schema is asked afterwards");
    running.stop().await;
}

#[rbuilder::envtest::test]
async fn webhook_changes_only_the_size(env: Environment) {
    let fixture = Fixture::new(env).await;
    let (server, running) = fixture.webhook().await;
    let mut config = Config::new(server.url("").parse().unwrap());
    config.accept_invalid_certs = true;
    let client = Client::try_from(config).unwrap();
    let ask = async |spec: Value| -> Option<Value> {
        let review = review(&spec);
        let request = Request::new("/mutate-cache-example-com-v1alpha1-memcached")
            .create(&PostParams::default(), review.to_string().into_bytes());
        let answer: Value = client.request(request.unwrap()).await.unwrap();
        assert_eq!(answer.pointer("/response/allowed"), Some(&json!(true)));
        let patch = answer.pointer("/response/patch")?.as_str()?.to_owned();
        let patch: k8s_openapi::ByteString = from_json(json!(patch));
        Some(serde_json::from_slice(&patch.0).unwrap())
    };

    let zero = json!({"size": 0, "unknown": "kept"});
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 3}]);
    assert_eq!(ask(zero).await, Some(patch));
    let absent = json!({"containerPort": 11211});
    let patch = json!([{"op": "add", "path": "/spec/size", "value": 3}]);
    assert_eq!(ask(absent).await, Some(patch));
    assert_eq!(ask(json!({"size": 2})).await, None);
    running.stop().await;
}

/// Returns the review that the API server sends when a Memcached with this spec is created.
fn review(spec: &Value) -> Value {
    let kind = json!({"group": "cache.example.com", "version": "v1alpha1", "kind": "Memcached"});
    let resource =
        json!({"group": "cache.example.com", "version": "v1alpha1", "resource": "memcacheds"});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": kind, "resource": resource, "operation": "CREATE",
            "name": "asked", "namespace": "default", "userInfo": {}, "dryRun": false,
            "object": {
                "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
                "metadata": {"name": "asked", "namespace": "default"},
                "spec": spec,
            },
        },
    })
}
