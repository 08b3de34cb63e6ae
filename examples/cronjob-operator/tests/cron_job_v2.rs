// SPDX-License-Identifier: Apache-2.0

//! Tests of the CronJob API.

use kube::CustomResourceExt;

use cronjob_operator::api::v2::CronJob;

const CRD: &str = "config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml";
const SAMPLE: &str = "config/samples/batch_v2_cronjob.yaml";
const NAME: &str = "cronjob-sample-v2";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sample() -> CronJob {
    serde_saphyr::from_str(&read(SAMPLE)).expect("the sample deserializes")
}

#[test]
fn the_crd_matches_the_types() {
    let compiled = CronJob::crd();
    rbuilder::testing::assert_crd_matches(&compiled, &read(CRD));
}

#[test]
fn the_sample_deserializes() {
    assert_eq!(sample().metadata.name.as_deref(), Some(NAME));
}
