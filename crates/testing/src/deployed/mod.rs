//! An operator deployed to a real cluster, for end-to-end tests.
//!
//! Everything goes through `make` and `kubectl`, as it does for users. Tests that called the API
//! server directly wouldn't notice a broken Makefile.

mod kubectl;
mod metrics;
mod rendered;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use kubectl::{Kubectl, run};
use rendered::Rendered;

const MANIFESTS: &str = "config/default";
const SAMPLES: &str = "config/samples";
// Not used for the rollout, which has its own `--timeout`.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An operator deployed by `make deploy` to the cluster in the kubeconfig.
///
/// Used by the scaffolded test `tests/e2e.rs`. Names are taken from the rendered `config/default`,
/// so you're free to change them there. Set `KUBECTL` to use a binary other than `kubectl`.
///
/// All commands are printed as they run. If the test panics while this value is in scope, dropping
/// it prints the Deployments, Pods, logs and events of the operator's namespace, and leaves them in
/// the cluster.
///
/// ```no_run
/// use rbuilder::testing::DeployedOperator;
///
/// # async fn test() {
/// let operator = DeployedOperator::deploy();
/// operator.check_metrics().await;
/// let samples = operator.create_samples("default").await;
/// operator.await_status(&samples).await;
/// operator.delete(&samples);
/// operator.undeploy();
/// # }
/// ```
#[derive(Debug)]
pub struct DeployedOperator {
    rendered: Rendered,
    kubectl: Kubectl,
}

impl DeployedOperator {
    /// Deploys the image in `IMG` and waits up to five minutes for its Deployments to become
    /// available.
    ///
    /// The namespace enforces the Pod Security Standard "restricted".
    ///
    /// # Panics
    ///
    /// Panics if `IMG` is not set, if `config/default` renders no Deployment, or if a command
    /// fails.
    #[must_use]
    #[track_caller]
    pub fn deploy() -> Self {
        let image = std::env::var("IMG").expect("IMG names the image, as in `make test-e2e`");
        let kubectl = Kubectl::from_environment();
        let rendered = Rendered::read(&kubectl.kustomize(MANIFESTS));
        // Create the namespace ahead of `make deploy`, so that Pods are subject to the label from
        // the start.
        kubectl.apply(&json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": rendered.namespace,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        }));
        let operator = Self { rendered, kubectl };
        run(Command::new("make").args(["deploy", &format!("IMG={image}")]));
        run(operator
            .kubectl()
            .args(["rollout", "status", "deployment", "--timeout=5m"]));
        operator
    }

    /// Returns the operator's namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.rendered.namespace
    }

    /// A `kubectl` command for the operator's namespace, to be extended with arguments.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        self.kubectl.command(self.namespace())
    }

    /// Scrapes the metrics like Prometheus: over HTTPS, with the token of a service account that
    /// may read them. Also checks that clients without a token are rejected.
    ///
    /// No-op if `config/default` contains no metrics Service, e.g. after
    /// `rbuilder edit --disable metrics`.
    ///
    /// # Panics
    ///
    /// Panics if the metrics are public, or can't be read within two minutes.
    pub async fn check_metrics(&self) {
        let Some(service) = &self.rendered.metrics else {
            return;
        };
        let account = &self.rendered.account;
        self.kubectl.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{}-test-e2e", service.reader_role)},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": service.reader_role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace()}],
        }));
        let token = kubectl::read(self.kubectl().args(["create", "token", account]));
        metrics::check(self.kubectl(), service, token.trim()).await;
    }

    /// Creates the samples in `config/samples` and returns them as stored in the cluster. Samples
    /// without a namespace are created in `namespace`.
    ///
    /// Failed requests are retried for two minutes, because webhooks become reachable only shortly
    /// after the manager is ready.
    ///
    /// # Panics
    ///
    /// Panics if the samples can't be created.
    pub async fn create_samples(&self, namespace: &str) -> Vec<Value> {
        if !kubectl::has_resources(SAMPLES) {
            return Vec::new();
        }
        let created = eventually(TIMEOUT, || async {
            let apply = ["apply", "--kustomize", SAMPLES, "--output=json"];
            kubectl::output(self.kubectl.command(namespace).args(apply))
        });
        let created: Value = serde_json::from_str(&created.await).expect("kubectl prints JSON");
        match created["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![created],
        }
    }

    /// Waits up to two minutes for each object to get a status.
    ///
    /// Skips kinds for which, according to the PROJECT file, no controller of this project writes a
    /// status: kinds without a controller, and kinds imported from a CRD, whose scaffolded
    /// controller is a stub.
    ///
    /// # Panics
    ///
    /// Panics if an object doesn't get a status in time, or if PROJECT can't be read.
    pub async fn await_status(&self, objects: &[Value]) {
        let text = std::fs::read_to_string("PROJECT").expect("PROJECT can be read");
        let project: Value = serde_saphyr::from_str(&text).expect("PROJECT is YAML");
        // Waiting for a status that no controller writes would just time out.
        for object in objects.iter().filter(|object| has_controller(&project, object)) {
            let name = kubectl::resource_name(object);
            kubectl::print(&format!("waiting for the status of {name}"));
            eventually(TIMEOUT, || async {
                let get = ["get", &name, "--output=json"];
                let found = kubectl::output(self.kubectl.command_for(object).args(get))?;
                let found: Value = serde_json::from_str(&found).map_err(|error| error.to_string())?;
                match found["status"].is_object() {
                    true => Ok(()),
                    false => Err(format!("{name} has no status")),
                }
            })
            .await;
        }
    }

    /// Deletes objects and waits for their finalizers to complete.
    ///
    /// # Panics
    ///
    /// Panics if an object still exists after two minutes.
    pub fn delete(&self, objects: &[Value]) {
        let timeout = format!("--timeout={}s", TIMEOUT.as_secs());
        for object in objects {
            let name = kubectl::resource_name(object);
            let delete = ["delete", &name, "--ignore-not-found", &timeout];
            run(self.kubectl.command_for(object).args(delete));
        }
    }

    /// Removes the operator with `make undeploy`, then deletes its namespace, which predates
    /// `make deploy` and is therefore kept by `make undeploy`.
    ///
    /// # Panics
    ///
    /// Panics if a command fails.
    pub fn undeploy(self) {
        run(Command::new("make").args(["undeploy", "ignore-not-found=true"]));
        run(self.kubectl().args(["delete", "namespace", self.namespace()]));
    }
}

impl Drop for DeployedOperator {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let logs = format!("logs --selector {} --tail=-1 --prefix", self.rendered.selector);
        for line in [
            "describe deployments,pods",
            &logs,
            "get events --sort-by=.lastTimestamp",
        ] {
            kubectl::print(&format!("\nkubectl --namespace {} {line}", self.namespace()));
            match kubectl::output(self.kubectl().args(line.split_whitespace())) {
                Ok(text) | Err(text) => kubectl::print(&text),
            }
        }
    }
}

fn has_controller(project: &Value, object: &Value) -> bool {
    let mut resources = project["resources"].as_array().into_iter().flatten();
    resources.any(|resource| {
        let parts = ["group", "domain"].map(|key| resource[key].as_str().unwrap_or_default());
        let group = format!("{}/", parts.join(".").trim_matches('.'));
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        (resource["controller"] == true || resource["controllers"].is_array())
            // Imported kinds get a stub controller.
            && resource["api"]["imported"] != true
            && resource["kind"] == object["kind"]
            && api_version.starts_with(&group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_with_a_written_controller_get_a_status() {
        let project = json!({ "resources": [
            { "group": "cache", "domain": "example.com", "kind": "Memcached", "controller": true },
            { "domain": "example.com", "kind": "Cup", "controllers": [{ "name": "cup" }] },
            { "group": "cache", "domain": "example.com", "kind": "Plain" },
            { "group": "backup", "domain": "example.com", "kind": "Backup", "controller": true, "api": { "imported": true } },
        ] });
        let check = |api_version: &str, kind: &str, expected: bool| {
            let object = json!({ "apiVersion": api_version, "kind": kind });
            assert_eq!(
                has_controller(&project, &object),
                expected,
                "{api_version} {kind}"
            );
        };
        check("cache.example.com/v1", "Memcached", true);
        check("other.example.com/v1", "Memcached", false);
        check("example.com/v1", "Cup", true);
        check("cache.example.com/v1", "Plain", false);
        check("backup.example.com/v1", "Backup", false);
        check("v1", "ConfigMap", false);
    }
}
