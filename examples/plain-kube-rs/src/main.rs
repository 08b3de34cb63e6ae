//! A controller on `kube::runtime`: writes the content of each ConfigMapGenerator to a ConfigMap.

mod api;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::ConfigMapGenerator;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Error, Resource, ResourceExt};

/// Field manager of what the controller applies.
const NAME: &str = "configmap-generator";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::try_default().await?;
    let generators: Api<ConfigMapGenerator> = Api::all(client.clone());
    let config_maps: Api<ConfigMap> = Api::all(client.clone());
    Controller::new(generators, Config::default())
        .owns(config_maps, Config::default())
        .shutdown_on_signal()
        .run(reconcile, retry, Arc::new(client))
        .for_each(|result| async move {
            match result {
                Ok((object, _)) => println!("reconciled {object}"),
                Err(error) => eprintln!("reconcile failed: {error}"),
            }
        })
        .await;
    Ok(())
}

async fn reconcile(
    generator: Arc<ConfigMapGenerator>,
    client: Arc<Client>,
) -> Result<Action, Error> {
    let config_map = desired_config_map(&generator);
    let namespace = generator.namespace().unwrap_or_default();
    let api: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    let params = PatchParams::apply(NAME).force();
    let patch = Patch::Apply(&config_map);
    api.patch(&config_map.name_any(), &params, &patch).await?;
    Ok(Action::await_change())
}

fn retry(_generator: Arc<ConfigMapGenerator>, _error: &Error, _client: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(10))
}

/// Returns the ConfigMap that a generator asks for, owned by it.
fn desired_config_map(generator: &ConfigMapGenerator) -> ConfigMap {
    let spec = &generator.spec;
    ConfigMap {
        metadata: ObjectMeta {
            name: generator.metadata.name.clone(),
            owner_references: Some(generator.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(spec.key.clone(), spec.content.clone())])),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_map_has_the_name_and_the_content() {
        let generator: ConfigMapGenerator = serde_json::from_value(serde_json::json!({
            "apiVersion": "example.com/v1",
            "kind": "ConfigMapGenerator",
            "metadata": {"name": "hello", "uid": "1"},
            "spec": {"content": "hello, world"},
        }))
        .unwrap();
        let config_map = desired_config_map(&generator);
        assert_eq!(config_map.name_any(), "hello");
        assert_eq!(config_map.owner_references().len(), 1);
        assert_eq!(config_map.data.unwrap()["content"], "hello, world");
    }
}
