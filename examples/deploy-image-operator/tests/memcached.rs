// SPDX-License-Identifier: Apache-2.0

//! Tests of the Memcached API and its controller.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, CustomResourceExt, api::PostParams};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Manager, ManagerArgs, testing};

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::controller;

const CRD: &str = "config/crd/bases/cache.example.com_memcacheds.yaml";
const SAMPLE: &str = "config/samples/cache_v1alpha1_memcached.yaml";
const NAME: &str = "memcached-sample";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sample() -> Memcached {
    serde_saphyr::from_str(&read(SAMPLE)).expect("the sample deserializes")
}

#[test]
fn the_crd_matches_the_types() {
    let compiled = Memcached::crd();
    rbuilder::testing::assert_crd_matches(&compiled, &read(CRD));
}

#[test]
fn the_sample_deserializes() {
    assert_eq!(sample().metadata.name.as_deref(), Some(NAME));
}

#[rbuilder::envtest::test]
async fn the_sample_gets_its_deployment(env: Environment) {
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("test").await.unwrap();
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace.clone_from(&namespace);
    let manager = Manager::with_client("test", env.client(), args);
    let manager = controller::register(manager, Some("memcached:1.6".to_owned()));
    let running = testing::run(manager);

    let client = env.client();
    let objects: Api<Memcached> = Api::namespaced(client.clone(), &namespace);
    objects
        .create(&PostParams::default(), &sample())
        .await
        .unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    eventually(Duration::from_secs(20), || async {
        deployments.get(NAME).await
    })
    .await;

    running.stop().await;
}
