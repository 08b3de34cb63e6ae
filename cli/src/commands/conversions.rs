//! Conversions of CRDs in a cluster with several deployments of the manager.
//!
//! All deployments share the CRDs, and the Service of one of them converts objects. Its name and
//! namespace depend on how that deployment was made, so only the cluster knows them.

use anyhow::Result;
use rbuilder_kubernetes::crd::{Crd, is_crd};
use serde_json::Value;

use crate::cluster::{Kubectl, qualified_name, to_list};
use crate::shell::Shell;

const CLIENT: &str = "/spec/conversion/webhook/clientConfig";

pub(super) fn is_converted(crd: &Value) -> bool {
    Crd::of(crd).has_webhook()
}

/// Keeps conversion clients in the cluster that call the Service of another deployment.
pub(super) fn keep_conversions(kubectl: &Kubectl, objects: &mut [Value], shell: &mut Shell) -> Result<()> {
    let present = read_converted(kubectl, objects)?;
    for crd in objects {
        let Some(kept) = present
            .iter()
            .find(|present| present["metadata"]["name"] == crd["metadata"]["name"])
        else {
            continue;
        };
        let (Some(service), Some(client)) = (find_service(kept), crd.pointer_mut(CLIENT)) else {
            continue;
        };
        // Don't keep a client whose Service is gone.
        if identify(service) == identify(&client["service"]) || !exists(kubectl, service)? {
            continue;
        }
        shell.note(&format!(
            "{} keeps its conversion by Service {} of another deployment\n",
            kept["metadata"]["name"].as_str().unwrap_or_default(),
            describe_service(service)
        ));
        // The CA bundle is left out, since it has its own field manager.
        client["service"] = service.clone();
    }
    Ok(())
}

pub(super) fn find_converted_by(
    kubectl: &Kubectl,
    crds: &[Value],
    services: &[Value],
) -> Result<Vec<String>> {
    let services = services.iter().filter(|object| object["kind"] == "Service");
    let services: Vec<_> = services.map(|service| identify(&service["metadata"])).collect();
    let calls_one =
        |crd: &&Value| find_service(crd).is_some_and(|service| services.contains(&identify(service)));
    let present = read_converted(kubectl, crds)?;
    Ok(present.iter().filter(calls_one).map(qualified_name).collect())
}

fn read_converted(kubectl: &Kubectl, objects: &[Value]) -> Result<Vec<Value>> {
    let converted = objects
        .iter()
        .filter(|object| is_crd(object) && is_converted(object));
    let converted: Vec<Value> = converted.cloned().collect();
    match converted.is_empty() {
        true => Ok(Vec::new()),
        false => kubectl.read_objects(&to_list(&converted)),
    }
}

fn find_service(crd: &Value) -> Option<&Value> {
    crd.pointer(CLIENT)?.get("service").filter(|_| is_converted(crd))
}

fn identify(service: &Value) -> [&Value; 2] {
    [&service["namespace"], &service["name"]]
}

fn describe_service(service: &Value) -> String {
    let [namespace, name] = identify(service).map(|value| value.as_str().unwrap_or_default());
    format!("{namespace}/{name}")
}

fn exists(kubectl: &Kubectl, service: &Value) -> Result<bool> {
    let [namespace, name] = identify(service).map(|value| value.as_str().unwrap_or_default());
    let found = kubectl.list(&["services", name, "--namespace", namespace])?;
    Ok(!found.is_empty())
}
