//! Records what selectors select.
//!
//! crates/kubernetes/tests/selectors.jsonl begins with objects that have a name and labels. Each of
//! the other lines has a selector and is answered by the names of the selected objects, or an error:
//!
//! - `labels` and `fields`: the text in a list of ConfigMaps.
//! - `selector`: the selector of Deployments whose Pods have the labels of the objects. Such a line
//!   also gets the `text` that the subresource `scale` shows. The answer is `null` if the selector is
//!   invalid.
//!
//! To add a case, add a line without an answer.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cel::{Client, causes};
use crate::committed::{Check, update_file};
use crate::repo;
use crate::value::text;

const RECORDED: &str = "crates/kubernetes/tests/selectors.jsonl";

const NAMESPACE: &str = "selectors";

pub(super) fn record(client: &Client, args: &Check) -> Result<()> {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    create(client, "/api/v1/namespaces", &namespace)?;
    let table = fs_err::read_to_string(repo::root().join(RECORDED))?;
    let mut cases: Vec<Value> = table
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let objects: Vec<Value> = cases
        .iter()
        .filter_map(|case| case.get("object").cloned())
        .collect();
    for object in &objects {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": object });
        create(client, &config_maps(), &map)?;
    }
    let mut lines = String::new();
    for case in &mut cases {
        if let Some(selector) = case.get("selector").cloned() {
            let (selected, text) = select_pods(client, &selector, &objects)?;
            case["answer"] = selected.into();
            case["text"] = text.into();
        }
        for (kind, parameter) in [("labels", "labelSelector"), ("fields", "fieldSelector")] {
            if let Some(selector) = case[kind].as_str() {
                case["answer"] = list(client, parameter, selector)?;
            }
        }
        let fields = case.as_object_mut().context("expected an object")?;
        fields.retain(|name, value| name == "answer" || !value.is_null());
        lines.push_str(&format!("{case}\n"));
    }
    update_file(RECORDED, lines.as_bytes(), args.check, "kubernetes")
}

fn config_maps() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let created = client.send("POST", path, object)?;
    ensure!(created["kind"] == object["kind"], "{object}: {created}");
    Ok(())
}

/// Returns the names of the selected ConfigMaps, or the error.
fn list(client: &Client, parameter: &str, selector: &str) -> Result<Value> {
    let path = format!("{}?{parameter}={}", config_maps(), encode(selector));
    let answer = client.send("GET", &path, &Value::Null)?;
    let Some(items) = answer["items"].as_array() else {
        return Ok(answer["message"].clone());
    };
    Ok(items
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect())
}

/// Percent-encodes a parameter.
fn encode(parameter: &str) -> String {
    let encoded = parameter.bytes().map(|byte| format!("%{byte:02X}"));
    encoded.collect()
}

/// Returns the names of the objects whose labels the selector of a Deployment matches, and its text.
fn select_pods(
    client: &Client,
    selector: &Value,
    objects: &[Value],
) -> Result<(Option<Vec<String>>, Option<String>)> {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let (mut names, mut shown) = (Vec::new(), None);
    for object in objects {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "case" },
            "spec": {
                "selector": selector,
                "template": {
                    "metadata": { "labels": object["labels"] },
                    "spec": { "containers": [{ "name": "case", "image": "case" }] },
                },
            },
        });
        let answer = client.send("POST", &path, &deployment)?;
        if answer["kind"] == "Deployment" {
            names.push(text(object, "/name").to_owned());
            let scale = client.send("GET", &format!("{path}/case/scale"), &Value::Null)?;
            shown = Some(text(&scale, "/status/selector").to_owned());
            client.send("DELETE", &format!("{path}/case"), &Value::Null)?;
            continue;
        }
        let causes = causes(&answer);
        ensure!(!causes.is_empty(), "{selector}: {answer}");
        if causes
            .iter()
            .any(|cause| cause.field.starts_with("spec.selector"))
        {
            return Ok((None, None));
        }
    }
    Ok((Some(names), shown))
}
