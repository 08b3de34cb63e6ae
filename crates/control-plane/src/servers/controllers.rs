//! Programs that act on objects: kube-controller-manager, kube-scheduler, and kwok, which simulates
//! kubelets.
//!
//! We run the real scheduler because it's simpler than a loop that assigns `nodeName`, and because
//! it respects taints, selectors and resources. It takes 12 s of CPU to build once the controller
//! manager's packages are compiled.

use std::ffi::OsString;

use serde_json::{Value, json};

pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const SCHEDULER: &str = "kube-scheduler";
pub(crate) const KWOK: &str = "kwok";

/// Disables streaming lists, which kwok would use. etcd 3.4 lacks the progress reports that the API
/// server waits for in a streaming list, so it would take ten seconds to start a Pod and a minute
/// to delete it.
pub(crate) const API_SERVER_ARGUMENTS: [&str; 1] = ["--feature-gates=WatchList=false"];

/// Paths are relative to the directory with the kubeconfig and the keys, in which the controller
/// manager runs.
pub(crate) fn controller_manager_arguments() -> Vec<OsString> {
    [
        "--kubeconfig=kubeconfig",
        "--leader-elect=false",
        // Port 0 disables the HTTPS server, which would need certificates.
        "--secure-port=0",
        "--service-account-private-key-file=sa.key",
        "--root-ca-file=ca.crt",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        // The disabled controllers require node networks, volumes or a signing key, none of which
        // exist.
        "--controllers=*,-node-ipam-controller,-persistentvolume-binder-controller,\
         -persistentvolume-attach-detach-controller,-certificatesigningrequest-signing-controller",
    ]
    .map(OsString::from)
    .to_vec()
}

pub(crate) fn scheduler_arguments() -> Vec<OsString> {
    [
        "--kubeconfig=kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    .map(OsString::from)
    .to_vec()
}

/// Leases must be renewed, or the controller manager would consider the nodes dead.
pub(crate) fn kwok_arguments() -> Vec<OsString> {
    [
        "--kubeconfig=kubeconfig",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        "--node-ip=127.0.0.1",
        // The default range only has 254 Pod addresses.
        "--cidr=10.64.0.1/16",
    ]
    .map(OsString::from)
    .to_vec()
}

pub(crate) fn node_name(index: usize) -> String {
    format!("node-{index}")
}

/// A node without a status, which kwok will add.
pub(crate) fn node(index: usize) -> Value {
    let name = node_name(index);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "type": "kwok",
        }},
    })
}

pub(crate) fn is_ready(node: &str) -> bool {
    let node: Value = serde_json::from_str(node).unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array();
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    // The controller manager removes this taint shortly after the node becomes ready. Pods aren't
    // scheduled before that.
    let blocks = |taint: &Value| taint["key"] == "node.kubernetes.io/not-ready";
    conditions.is_some_and(|conditions| conditions.iter().any(is_ready))
        && !node["spec"]["taints"]
            .as_array()
            .is_some_and(|taints| taints.iter().any(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_ready_after_taint_is_removed() {
        let check = |status: &str, taints: Value, expected: bool| {
            let mut node = node(0);
            node["status"] = json!({ "conditions": [{ "type": "Ready", "status": status }] });
            node["spec"] = json!({ "taints": taints });
            assert_eq!(is_ready(&node.to_string()), expected, "{node}");
        };
        check("True", json!([]), true);
        check("True", json!([{ "key": "node.kubernetes.io/not-ready" }]), false);
        check("True", json!([{ "key": "mine" }]), true);
        check("False", json!([]), false);
        assert!(!is_ready("{}") && !is_ready(""));
    }
}
