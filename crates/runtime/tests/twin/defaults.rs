//! Compares the recorded verdicts on defaults with a real API server, for the CRD and for objects.

use std::time::Duration;

use http::Request;
use kube::Client;
use rbuilder::envtest::{Environment, eventually};
use serde_json::{Value, json};

use super::server::{create, post};

/// A default and its recorded verdict, from the tests of the schema crate.
#[derive(serde::Deserialize)]
struct Recorded {
    schema: Value,
    default: Value,
    refused: Option<String>,
}

/// Sends each default as part of a CRD, and as the value of an object. The tests of the schema
/// crate rely on these verdicts.
#[rbuilder::envtest::test]
async fn recorded_default_verdicts_match_the_server(env: Environment) {
    const RECORDED: &str = include_str!("../../../schema/tests/defaults.jsonl");
    let recorded: Vec<Recorded> = RECORDED
        .lines()
        .map(|line| serde_json::from_str(line).expect("a default"))
        .collect();
    let mut wrong = Vec::new();
    let mut holders = serde_json::Map::new();
    for (
        position,
        Recorded {
            schema,
            default,
            refused,
        },
    ) in recorded.iter().enumerate()
    {
        let mut schema = schema.clone();
        schema["default"] = default.clone();
        let holder = json!({"type": "object", "properties": {"v": schema}});
        let said = post(&env.client(), &defaulted(json!({"c": holder})), "?dryRun=All").await;
        let is_refused = said.iter().any(|said| said.contains("422"));
        if is_refused != (refused.as_deref() == Some("definition")) {
            wrong.push(format!("{default} by {schema}: {said:?}"));
        } else if !is_refused {
            holders.insert(format!("c{position}"), holder);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    post(&env.client(), &defaulted(Value::Object(holders.clone())), "").await;
    let collection = "/apis/defaults.example.com/v1/defaulteds";
    for (
        position,
        Recorded {
            schema,
            default,
            refused,
        },
    ) in recorded.iter().enumerate()
    {
        let name = format!("c{position}");
        if !holders.contains_key(&name) {
            continue;
        }
        let object = json!({
            "apiVersion": "defaults.example.com/v1", "kind": "Defaulted", "metadata": {"name": "a"}, "spec": { name: {} },
        });
        let answer = answered(&env.client(), collection, &object).await;
        if answer.is_err() != refused.is_some() {
            wrong.push(format!("{default} by {schema}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Retries while the kind isn't served yet.
async fn answered(client: &Client, collection: &str, object: &Value) -> Result<(), String> {
    eventually(Duration::from_secs(20), || async {
        let request = Request::get(collection).body(Vec::new()).expect("a request");
        client.request::<Value>(request).await.map(drop)
    })
    .await;
    create(client, collection, object).await
}

fn defaulted(fields: Value) -> Value {
    let spec = json!({"type": "object", "properties": fields});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "defaulteds.defaults.example.com"},
        "spec": {
            "group": "defaults.example.com", "scope": "Cluster",
            "names": {"kind": "Defaulted", "plural": "defaulteds"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}
