//! Defaults of built-in kinds that the server sets in code.

use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(built_in_kinds_get_their_defaults, jobs_get_a_selector_and_labels);

/// Objects as they are sent, and as kube-apiserver returns them.
const OBJECTS: &str = include_str!("builtin_defaults.json");

async fn built_in_kinds_get_their_defaults(server: Server) {
    let place = Place::new(server).await;
    let cases: Vec<Value> = serde_json::from_str(OBJECTS).unwrap();
    for case in &cases {
        let folder = case["folder"].as_str().unwrap();
        let headers = [("content-type", "application/json")];
        let path = format!("{folder}?dryRun=All");
        let (code, answer) = place
            .raw("POST", &path, &headers, &case["sent"].to_string())
            .await;
        assert_eq!(code, 201, "{answer}");
        let mut found: Value = serde_json::from_str(&answer).unwrap();
        let fields = found.as_object_mut().unwrap();
        fields.remove("metadata");
        fields.remove("status");
        assert_eq!(found, case["returned"], "{}\nreturned: {found}", case["sent"]);
    }
}

async fn jobs_get_a_selector_and_labels(server: Server) {
    let place = Place::new(server).await;
    let template =
        json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "a" }] } });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" }, "spec": { "template": template },
    });
    let folder = "/apis/batch/v1/namespaces/{ns}/jobs";
    let headers = [("content-type", "application/json")];
    let (code, answer) = place.raw("POST", folder, &headers, &job.to_string()).await;
    assert_eq!(code, 201, "{answer}");
    let created: Value = serde_json::from_str(&answer).unwrap();
    let uid = &created["metadata"]["uid"];
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a", "controller-uid": uid,
        "job-name": "a",
    });
    let spec = &created["spec"];
    assert_eq!(spec["template"]["metadata"]["labels"], labels);
    let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    assert_eq!(spec["selector"], selector);
    let mut rest = spec.clone();
    for name in ["template", "selector"] {
        rest.as_object_mut().unwrap().remove(name);
    }
    let expected = json!({
        "backoffLimit": 6, "completionMode": "NonIndexed", "completions": 1, "manualSelector": false, "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed", "suspend": false,
    });
    assert_eq!(rest, expected);
    assert_eq!(created["metadata"]["labels"], labels);

    // An update without the generated labels would change the template.
    let path = format!("{folder}/a");
    let (code, answer) = place.raw("PUT", &path, &headers, &job.to_string()).await;
    assert_eq!(code, 422, "{answer}");
    let (code, answer) = place.raw("PUT", &path, &headers, &created.to_string()).await;
    assert_eq!(code, 200, "{answer}");
}
