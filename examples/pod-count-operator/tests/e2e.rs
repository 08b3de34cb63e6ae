// SPDX-License-Identifier: Apache-2.0

//! End-to-end test: deploys the image `IMG` to the cluster in your kubeconfig, and checks that the operator works there.
//!
//! `make test-e2e` runs it in a cluster that it creates with kind. For another cluster, push the image and run
//! `IMG=<image> cargo test --features e2e --test e2e -- --nocapture`.

use rbuilder::testing::DeployedOperator;

#[tokio::test]
async fn the_operator_works_in_a_cluster() {
    let operator = DeployedOperator::deploy();
    operator.check_metrics().await;
    let samples = operator.create_samples("default").await;
    // Check here what else the controllers do with the samples, for example with `operator.kubectl()`.
    operator.await_status(&samples).await;
    operator.delete(&samples);
    operator.undeploy();
}
