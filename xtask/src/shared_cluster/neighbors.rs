//! Objects of other users in the cluster, which we must not change.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Cluster;

/// These namespaces exist already when the project is deployed.
pub(super) const NAMESPACES: [&str; 3] = ["green", "blue", "apps"];

/// Objects created in every namespace. The labels of the Deployment are the same as the ones of the
/// project's managers. It has 0 replicas, because its Pods would need a response from the webhook.
const NAMESPACED: &str = include_str!("neighbors.yaml");

/// Objects that don't have a namespace. There's nothing for which the webhook would be called.
const CLUSTER_SCOPED: &str = include_str!("neighbors_cluster.yaml");

/// Custom resource of another CRD. Its kind has the same name as the kind of our project.
const CUP: &str = "\
apiVersion: other.example.com/v1
kind: Cup
metadata: {name: cup, namespace: green}
";

/// The objects as they were before we deployed the project.
pub(super) struct Neighbors {
    manifest: String,
    before: Vec<Value>,
}

impl Neighbors {
    /// Creates all objects. The owner of the namespace `green` has set labels on it.
    pub(super) fn settle(cluster: &Cluster) -> Result<Self> {
        let mut manifest = String::new();
        for namespace in NAMESPACES {
            cluster.platform(&format!("create namespace {namespace}"))?;
            manifest += &NAMESPACED.replace("NAMESPACE", namespace);
        }
        cluster.platform("label namespace green team=green")?;
        manifest += CLUSTER_SCOPED;
        cluster.with_manifest("create -f", &manifest)?;
        cluster.platform("wait --for=condition=Established crd/cups.other.example.com")?;
        cluster.with_manifest("create -f", CUP)?;
        let manifest = format!("{manifest}---\n{CUP}");
        cluster.platform(
            "wait --for=jsonpath={.status.observedGeneration}=1 deployment --all --all-namespaces",
        )?;
        let before = read(cluster, &manifest)?;
        Ok(Self { manifest, before })
    }

    /// Checks that none of the objects has changed. This also compares their resource versions.
    pub(super) fn check(&self, cluster: &Cluster) -> Result<()> {
        let after = read(cluster, &self.manifest)?;
        for (before, after) in self.before.iter().zip(&after) {
            ensure!(
                before == after,
                "an object of others is now\n{after:#}\ninstead of\n{before:#}"
            );
        }
        Ok(())
    }
}

fn read(cluster: &Cluster, manifest: &str) -> Result<Vec<Value>> {
    let mut objects = cluster.read_objects(manifest)?;
    for namespace in NAMESPACES {
        let text = cluster.platform(&format!("get namespace {namespace} --output=json"))?;
        objects.push(serde_json::from_str(&text)?);
    }
    Ok(objects)
}
