//! Records which defaults the API server gives to CRDs, and how it merges patches.
//!
//! Each line of crates/kubernetes/tests/definitions.jsonl has the `spec` of a CRD. The answer is what
//! the server makes of it, without the schemas, or its error. Each line of
//! crates/kubernetes/tests/merges.jsonl has a value, a JSON merge patch and the result.
//!
//! To add a case, add a line without an answer.

use std::time::Duration;

use anyhow::{Result, ensure};
use rbuilder_kubernetes::crd::{Crd, versions_mut};
use serde_json::{Value, json};

use crate::cel::Client;
use crate::committed::{Check, update_file};
use crate::repo;
use crate::run::wait_until;

const DEFINITIONS: &str = "crates/kubernetes/tests/definitions.jsonl";
const MERGES: &str = "crates/kubernetes/tests/merges.jsonl";

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// A custom resource whose values have no schema.
const OPEN: &str = "/apis/merges.example.com/v1/opens";

pub(super) fn record(client: &Client, args: &Check) -> Result<()> {
    record_lines(DEFINITIONS, args, |case| define(client, &case["spec"]))?;
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "value": open } });
    let spec = json!({
        "group": "merges.example.com", "scope": "Cluster", "names": { "kind": "Open", "plural": "opens" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
    });
    let created = client.send("POST", PATH, &definition(&spec))?;
    ensure!(created["kind"] == "CustomResourceDefinition", "{created}");
    wait_until(Duration::from_secs(30), "the kind is not served", || {
        Ok(client.send("GET", OPEN, &Value::Null)?["items"].is_array())
    })?;
    record_lines(MERGES, args, |case| merge(client, case))
}

fn record_lines(path: &str, args: &Check, answer: impl Fn(&Value) -> Result<Value>) -> Result<()> {
    let table = fs_err::read_to_string(repo::root().join(path))?;
    let mut lines = String::new();
    for line in table.lines() {
        let mut case: Value = serde_json::from_str(line)?;
        case["answer"] = answer(&case)?;
        lines.push_str(&format!("{case}\n"));
    }
    update_file(path, lines.as_bytes(), args.check, "kubernetes")
}

fn definition(spec: &Value) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec,
    });
    definition["metadata"]["name"] = Crd::of(&definition).expected_name().into();
    definition
}

/// Creates a CRD and returns its `spec` without schemas, or the error.
fn define(client: &Client, spec: &Value) -> Result<Value> {
    let path = format!("{PATH}?dryRun=All");
    let mut answer = client.send("POST", &path, &definition(spec))?;
    if answer["kind"] == "Status" {
        return Ok(answer["message"].take());
    }
    for version in versions_mut(&mut answer).filter_map(Value::as_object_mut) {
        version.remove("schema");
    }
    Ok(answer["spec"].take())
}

/// Returns what a patch makes of a value.
fn merge(client: &Client, case: &Value) -> Result<Value> {
    let object = |value: &Value| json!({ "apiVersion": "merges.example.com/v1", "kind": "Open", "metadata": { "name": "case" }, "value": value });
    let path = format!("{OPEN}/case");
    let created = client.send("POST", OPEN, &object(&case["value"]))?;
    ensure!(created["kind"] == "Open", "{created}");
    let patch = json!({ "value": case["patch"] });
    let mut patched = client.send_as("application/merge-patch+json", "PATCH", &path, &patch)?;
    ensure!(patched["kind"] == "Open", "{patched}");
    client.send("DELETE", &path, &Value::Null)?;
    Ok(patched["value"].take())
}
