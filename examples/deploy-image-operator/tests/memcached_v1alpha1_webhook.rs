// SPDX-License-Identifier: Apache-2.0

//! Tests of the Memcached webhooks.

use kube::{Api, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use rbuilder::{Manager, ManagerArgs, testing};

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::webhook;

/// The server calls the webhooks in this process: no port, no certificate.
#[tokio::test]
async fn the_sample_is_admitted_on_a_fake_server() {
    let server = ApiServer::new();
    server.install_crds("config/crd/bases").unwrap();
    let manager = Manager::with_client("webhook", server.client(), ManagerArgs::for_tests());
    let mut manager = webhook::register(manager);
    server
        .install_webhooks("config/webhook/manifests.yaml", &mut manager)
        .unwrap();

    let objects: Api<Memcached> = Api::default_namespaced(server.admin());
    create_sample(&objects).await;
}

#[rbuilder::envtest::test]
async fn the_sample_is_admitted_on_a_real_server(env: Environment) {
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
    create_sample(&objects).await;

    running.stop().await;
}

async fn create_sample(objects: &Api<Memcached>) {
    let sample: Memcached = testing::sample();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();

    // Check here what the webhooks do to other objects.
}
