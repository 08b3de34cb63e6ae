//! Connects to a running cluster instead of starting servers.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use rbuilder_control_plane::{private_folder, write_private};
use serde_json::json;
use tempfile::TempDir;

use super::Error;

/// Selects an existing cluster. Same name as in controller-runtime.
const EXISTING_CLUSTER: &str = "USE_EXISTING_CLUSTER";

pub(super) fn is_asked_for() -> bool {
    std::env::var(EXISTING_CLUSTER).is_ok_and(|value| is_yes(&value))
}

// controller-runtime compares with "true", so `1` doesn't count.
fn is_yes(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

/// The parser's own message quotes lines with credentials.
fn describe(error: &KubeconfigError) -> String {
    let KubeconfigError::Parse(error) = error else {
        return error.to_string();
    };
    let place = error.location();
    let place = place.map(|place| format!(" (line {}, column {})", place.line(), place.column()));
    format!("it is not the YAML of a kubeconfig{}", place.unwrap_or_default())
}

#[derive(Debug)]
pub(super) struct Existing {
    config: Config,
    kubeconfig: Kubeconfig,
    kubeconfig_path: PathBuf,
    /// Directory of the kubeconfig file, deleted on drop.
    _folder: TempDir,
}

impl Existing {
    /// Connects to the cluster in the kubeconfig like kubectl, or else to the cluster that the
    /// process runs in.
    pub(super) async fn find() -> Result<Self, Error> {
        let (mut config, kubeconfig) = match Kubeconfig::read() {
            Ok(kubeconfig) => {
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
                let unusable = |err| {
                    Error::new(format!(
                        "cannot use the kubeconfig of the existing cluster: {}",
                        describe(&err)
                    ))
                };
                (config.map_err(unusable)?, kubeconfig)
            }
            Err(missing) => {
                let config = Config::incluster().map_err(|err| {
                    Error::new(format!(
                        "no existing cluster found: {}; and the test does not run in a pod: {err}",
                        describe(&missing)
                    ))
                })?;
                let kubeconfig = in_cluster_kubeconfig(&config)?;
                (config, kubeconfig)
            }
        };
        // Tests want the server's actual response, not the one after a retry.
        config.default_retry = false;
        let folder = private_folder("rbuilder-kubeconfig-")
            .map_err(|err| Error::new(format!("cannot create a temporary folder: {err}")))?;
        let kubeconfig_path = folder.path().join("kubeconfig");
        let text = serde_json::to_string_pretty(&kubeconfig)
            .map_err(|err| Error::new(format!("cannot write a kubeconfig: {err}")))?;
        write_private(&kubeconfig_path, text)
            .map_err(|err| Error::file("cannot write", &kubeconfig_path, err))?;
        let existing = Self {
            config,
            kubeconfig,
            kubeconfig_path,
            _folder: folder,
        };
        existing.check_answers().await?;
        Ok(existing)
    }

    async fn check_answers(&self) -> Result<(), Error> {
        let client = Client::try_from(self.config.clone())
            .map_err(|err| Error::request("cannot create a client for the existing cluster", &err))?;
        let failure = || {
            format!(
                "the existing cluster at {} does not answer",
                self.config.cluster_url
            )
        };
        let version = client.apiserver_version().await;
        version.map(drop).map_err(|err| Error::request(failure(), &err))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    pub(super) fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }
}

// Child processes of the test need a kubeconfig, but Pods only have service account files.
fn in_cluster_kubeconfig(config: &Config) -> Result<Kubeconfig, Error> {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "in-cluster",
        "clusters": [{ "name": "in-cluster", "cluster": {
            "server": config.cluster_url.to_string(), "certificate-authority": config.root_cert_file,
        }}],
        "users": [{ "name": "pod", "user": { "tokenFile": config.auth_info.token_file } }],
        "contexts": [{ "name": "in-cluster", "context": {
            "cluster": "in-cluster", "user": "pod", "namespace": config.default_namespace,
        }}],
    });
    serde_json::from_value(kubeconfig).map_err(|err| {
        Error::new(format!(
            "cannot create a kubeconfig from the pod's service account: {err}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_cluster_is_selected_by_true() {
        for (value, expected) in [
            ("true", true),
            ("TRUE", true),
            ("1", false),
            ("false", false),
            ("", false),
        ] {
            assert_eq!(is_yes(value), expected, "{value}");
        }
    }
}
