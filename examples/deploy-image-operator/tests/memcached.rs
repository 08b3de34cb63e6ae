// SPDX-License-Identifier: Apache-2.0

//! Memcached as its users and the API server see it.

use std::time::Duration;

use kube::{Api, CustomResourceExt, api::PostParams};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Manager, ManagerArgs, conditions, testing};

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::controller;

const CRD: &str = "config/crd/bases/cache.example.com_memcacheds.yaml";
const SAMPLE: &str = "config/samples/cache_v1alpha1_memcached.yaml";
const NAME: &str = "memcached-sample";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sample() -> Memcached {
    serde_saphyr::from_str(&read(SAMPLE)).expect("the sample is an object of this kind")
}

#[test]
fn the_manifest_says_what_the_types_say() {
    let compiled = Memcached::crd();
    testing::assert_crd_matches(&compiled, &read(CRD));
}

#[test]
fn the_sample_is_of_this_kind() {
    assert_eq!(sample().metadata.name.as_deref(), Some(NAME));
}

#[rbuilder::envtest::test]
async fn the_sample_is_reconciled(env: Environment) {
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("test").await.unwrap();
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace.clone_from(&namespace);
    let manager = Manager::with_client("test", env.client(), args);
    let image = Some("memcached:1.6.26-alpine3.19".to_owned());
    let running = testing::run(controller::register(manager, image));

    let client = env.client();
    let objects: Api<Memcached> = Api::namespaced(client, &namespace);
    objects
        .create(&PostParams::default(), &sample())
        .await
        .unwrap();
    eventually(Duration::from_secs(20), || async {
        let object = objects.get(NAME).await.unwrap();
        let status = object.status.unwrap_or_default();
        conditions::is_true(&status.conditions, "Available")
    })
    .await;

    running.stop().await;
}
