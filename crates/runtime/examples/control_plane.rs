//! Runs etcd and kube-apiserver until stdin is closed. You can use it to try out an operator.
//!
//! Prints the path of a kubeconfig. By default, there are neither kubelets nor any of the
//! controllers of Kubernetes. A stand-in reports the replicas of Deployments as ready, so it looks
//! like a real cluster to an operator. If you pass the argument `nodes`, the actual controllers are
//! started, with simulated nodes.
//!
//! ```sh
//! KUBEBUILDER_ASSETS=$(cargo xtask assets) cargo run --package rbuilder-runtime --features envtest --example control_plane
//! ```

// The user of an example wants to see its output.
#![allow(clippy::disallowed_macros)]

use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use rbuilder::envtest::Environment;
use serde_json::json;

/// Number of nodes if `nodes` is passed.
const NODES: usize = 3;

/// How often the stand-ins update objects.
const INTERVAL: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let has_nodes = std::env::args()
        .nth(1)
        .is_some_and(|argument| argument == "nodes");
    let environment = match has_nodes {
        true => Environment::builder().controllers().nodes(NODES).start().await?,
        false => Environment::builder().start().await?,
    };
    println!("{}", environment.kubeconfig_path().display());
    let stand_ins = (!has_nodes).then(|| tokio::spawn(run_stand_ins(environment.client())));
    // Wait until stdin is closed. The input doesn't matter.
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await?;
    stand_ins.inspect(tokio::task::JoinHandle::abort);
    Ok(environment.stop().await?)
}

async fn run_stand_ins(client: Client) {
    loop {
        if let Err(error) = look_after_deployments(&client).await {
            eprintln!("a stand-in failed: {error}");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Reports all replicas of Deployments as ready.
async fn look_after_deployments(client: &Client) -> Result<(), kube::Error> {
    let everywhere: Api<Deployment> = Api::all(client.clone());
    for deployment in everywhere.list(&ListParams::default()).await? {
        let (name, namespace) = (deployment.name_any(), deployment.namespace().unwrap_or_default());
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        let replicas = deployment.spec.replicas.unwrap_or(1);
        let status = json!({
            "observedGeneration": deployment.metadata.generation,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
        });
        let patch = Patch::Merge(json!({ "status": status }));
        let reported = deployments
            .patch_status(&name, &PatchParams::default(), &patch)
            .await;
        if let Err(error) = reported
            && !is_gone(&error)
        {
            return Err(error);
        }
    }
    Ok(())
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}
