//! `cargo xtask kubernetes`: records how kube-apiserver decides the cases of `rbuilder-kubernetes`.
//!
//! Each line of crates/kubernetes/tests/grants.jsonl has a rule of a role, the attributes of a
//! request, and whether the rule allows it. To add a case, add a line with any answer. The headers
//! of the modules below describe the other tables.

mod definitions;
mod selectors;

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::cel::Client;
use crate::committed::{Check, update_file};
use crate::control_plane::ControlPlane;
use crate::run::wait_until;
use crate::{assets, repo};

const RECORDED: &str = "crates/kubernetes/tests/grants.jsonl";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A resource that each user may get as soon as the server knows the role.
const READY: [&str; 3] = ["cases.example.com", "cases", "get"];

pub(crate) fn record(args: &Check) -> Result<()> {
    let servers = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let client = Client::new(servers.kubeconfig())?;
    selectors::record(&client, args)?;
    definitions::record(&client, args)?;
    let text = fs_err::read_to_string(repo::root().join(RECORDED))?;
    let cases: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    for (at, case) in cases.iter().enumerate() {
        grant(&client, &user(at), &case["rule"])?;
    }
    let mut lines = String::new();
    for (at, mut case) in cases.into_iter().enumerate() {
        wait_for_role(&client, &user(at))?;
        case["allowed"] = review(&client, &user(at), &case["review"])?.into();
        lines.push_str(&format!("{case}\n"));
    }
    update_file(RECORDED, lines.as_bytes(), args.check, "kubernetes")
}

fn user(at: usize) -> String {
    format!("case-{at}")
}

/// Creates a role for the user, who has no other.
fn grant(client: &Client, user: &str, rule: &Value) -> Result<()> {
    let [group, resource, verb] = READY;
    let is_ready = json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": user },
        "rules": [rule, is_ready],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": user },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let created = client.send("POST", &format!("{RBAC}/{resource}"), &object)?;
        ensure!(created["kind"] == object["kind"], "{object}: {created}");
    }
    Ok(())
}

/// The server's authorizer reads roles from a cache.
fn wait_for_role(client: &Client, user: &str) -> Result<()> {
    let [group, resource, verb] = READY;
    let request = json!({ "group": group, "resource": resource, "verb": verb });
    let otherwise = format!("the role of {user} has no effect");
    wait_until(Duration::from_secs(30), &otherwise, || {
        review(client, user, &request)
    })
}

/// Asks whether the user may make a request.
fn review(client: &Client, user: &str, request: &Value) -> Result<bool> {
    let attributes = match request["path"].is_string() {
        true => "nonResourceAttributes",
        false => "resourceAttributes",
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": { "user": user, attributes: request },
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = client.send("POST", path, &review)?;
    let allowed = answer["status"]["allowed"].as_bool();
    allowed.ok_or_else(|| anyhow::anyhow!("{review}: {answer}"))
}
