// SPDX-License-Identifier: Apache-2.0

//! Tests of the Memcached webhooks.

use kube::{Api, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::{Manager, ManagerArgs, testing};

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::webhook;

const SAMPLE: &str = "config/samples/cache_v1alpha1_memcached.yaml";

fn sample() -> Memcached {
    let text = std::fs::read_to_string(SAMPLE).expect("the sample can be read");
    serde_saphyr::from_str(&text).expect("the sample deserializes")
}

#[rbuilder::envtest::test]
async fn the_sample_is_admitted(env: Environment) {
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("webhook").await.unwrap();
    let server = env
        .install_webhooks("config/webhook/manifests.yaml", &namespace)
        .await
        .unwrap();
    let mut args = server.args(ManagerArgs::for_tests());
    args.watch_namespace.clone_from(&namespace);
    let manager = Manager::with_client("webhook", env.client(), args);
    let running = testing::run(webhook::register(manager));
    server.wait_until_served().await.unwrap();

    let objects: Api<Memcached> = Api::namespaced(env.client(), &namespace);
    objects
        .create(&PostParams::default(), &sample())
        .await
        .unwrap();
    running.stop().await;
}
