// SPDX-License-Identifier: Apache-2.0

//! Tests of the Memcached webhooks.

use kube::{Api, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::{Manager, ManagerArgs, testing};

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::webhook;

#[rbuilder::envtest::test]
async fn the_sample_is_admitted(env: Environment) {
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("webhook").await.unwrap();
    let server = env
        .install_webhooks("config/webhook/manifests.yaml", &namespace)
        .await
        .unwrap();
    let args = server.args(ManagerArgs::for_tests());
    let manager = Manager::with_client("webhook", env.client(), args);
    let running = testing::run(webhook::register(manager));
    server.wait_until_served().await.unwrap();

    let objects: Api<Memcached> = Api::namespaced(env.client(), &namespace);
    let sample: Memcached = testing::sample();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();

    running.stop().await;
}
