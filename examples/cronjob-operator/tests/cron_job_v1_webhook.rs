// SPDX-License-Identifier: Apache-2.0

//! Tests of the CronJob webhooks.

use kube::{Api, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::{Manager, ManagerArgs, testing};

use cronjob_operator::api::v1::CronJob;
use cronjob_operator::webhook;

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

    let objects: Api<CronJob> = Api::namespaced(env.client(), &namespace);
    let sample: CronJob = testing::sample();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();

    running.stop().await;
}

/// Converting any object to v2 and back must not change it.
#[test]
fn the_round_trip_through_v2_is_lossless() {
    type Spoke = cronjob_operator::api::v2::CronJob;
    testing::RoundTrip::<CronJob, Spoke>::new()
        .hub_values(
            "spec.schedule",
            ["*/5 2 1 JAN MON-FRI", "@hourly", " 0  3 * * * "],
        )
        .assert();
}
