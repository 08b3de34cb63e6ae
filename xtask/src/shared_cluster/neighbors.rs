//! Objects of other users in the cluster, which we must not change.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Cluster;

/// These namespaces exist already when the project is deployed.
pub(super) const NAMESPACES: [&str; 3] = ["green", "blue", "apps"];

/// Objects created in every namespace. The labels of the Deployment are the same as the ones of the
/// project's managers. It has 0 replicas, because its Pods would need a response from the webhook.
const NAMESPACED: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: precious, namespace: NAMESPACE, labels: {app.kubernetes.io/managed-by: Helm}}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: webhook-server-cert, namespace: NAMESPACE}
data: {}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: controller-manager, namespace: NAMESPACE}
---
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: NAMESPACE, labels: {app.kubernetes.io/name: shop}}
spec: {ports: [{port: 443}], selector: {app: other}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader-election-role, namespace: NAMESPACE}
rules: []
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller-manager, namespace: NAMESPACE, labels: {control-plane: controller-manager, app.kubernetes.io/name: other}}
spec:
  replicas: 0
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: manager, image: 'example.com/other:v1'}]}
---
";

/// Objects that don't have a namespace. There's nothing for which the webhook would be called.
const CLUSTER_SCOPED: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role, labels: {app.kubernetes.io/name: shop}}
rules: []
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.other.example.com}
spec:
  group: other.example.com
  scope: Namespaced
  names: {kind: Cup, plural: cups}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating-webhook-configuration}
webhooks:
- name: other.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook-service, namespace: blue}}
  rules: [{apiGroups: [other.example.com], apiVersions: [v1], operations: [DELETE], resources: [pots]}]
";

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
        cluster.create(&manifest)?;
        cluster.platform("wait --for=condition=Established crd/cups.other.example.com")?;
        cluster.create(CUP)?;
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

/// Gets the objects of a manifest and all namespaces.
fn read(cluster: &Cluster, manifest: &str) -> Result<Vec<Value>> {
    let mut objects = cluster.read_objects(manifest)?;
    for namespace in NAMESPACES {
        let text = cluster.platform(&format!("get namespace {namespace} --output=json"))?;
        objects.push(serde_json::from_str(&text)?);
    }
    Ok(objects)
}
