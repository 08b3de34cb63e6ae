//! `cargo xtask builtin`: records what kube-apiserver says about objects of built-in kinds, which it
//! validates in code.
//!
//! Each line of crates/judge/tests/builtin.jsonl has an object, and the errors that the server reports
//! when the object is created (as a dry run). To add a case, add a line with an object.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::cel::{Client, causes};
use crate::committed::{Check, update_file};
use crate::control_plane::ControlPlane;
use crate::value::text;
use crate::{assets, repo};

const RECORDED: &str = "crates/judge/tests/builtin.jsonl";

pub(crate) fn record(args: &Check) -> Result<()> {
    let servers = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let client = Client::new(servers.kubeconfig())?;
    let (mut lines, mut paths) = (String::new(), BTreeMap::new());
    for line in fs_err::read_to_string(repo::root().join(RECORDED))?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let object = &case["object"];
        let kind = (
            text(object, "/apiVersion").to_owned(),
            text(object, "/kind").to_owned(),
        );
        let path = match paths.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(find_path(&client, object)?),
        };
        let recorded = ask(&client, path, object)?;
        lines.push_str(&format!("{recorded}\n"));
    }
    update_file(RECORDED, lines.as_bytes(), args.check, "builtin")
}

/// Creates an object as a dry run. Returns the line for the record.
fn ask(client: &Client, path: &str, object: &Value) -> Result<Value> {
    let path = format!("{path}?dryRun=All&fieldValidation=Strict");
    let response = client.send("POST", &path, object)?;
    let causes = causes(&response).into_iter();
    let mut causes: Vec<String> = causes
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    // The server reports the errors of maps in random order.
    causes.sort();
    if response["reason"] == "Invalid" {
        return Ok(json!({ "object": object, "causes": causes }));
    }
    if response["kind"] == object["kind"] {
        return Ok(json!({ "object": object }));
    }
    bail!("expected an object or errors about fields for {object}, found {response}")
}

/// Returns the path of an object's collection.
fn find_path(client: &Client, object: &Value) -> Result<String> {
    let version = text(object, "/apiVersion");
    let group = match version.contains('/') {
        true => format!("/apis/{version}"),
        false => format!("/api/{version}"),
    };
    let known = client.send("GET", &group, &Value::Null)?;
    let mut known = known["resources"].as_array().into_iter().flatten();
    let is_kind =
        |resource: &&Value| resource["kind"] == object["kind"] && !text(resource, "/name").contains('/');
    let Some(resource) = known.find(is_kind) else {
        bail!("the API server has no {} in {version}", object["kind"]);
    };
    let name = text(resource, "/name");
    Ok(match resource["namespaced"] == true {
        true => format!("{group}/namespaces/default/{name}"),
        false => format!("{group}/{name}"),
    })
}
