// SPDX-License-Identifier: Apache-2.0

//! CronJob as its users and the API server see it.

use kube::CustomResourceExt;

use cronjob_operator::api::v2::CronJob;

const CRD: &str = "config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml";
const SAMPLE: &str = "config/samples/batch_v2_cronjob.yaml";
const NAME: &str = "cronjob-sample";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sample() -> CronJob {
    serde_saphyr::from_str(&read(SAMPLE)).expect("the sample is an object of this kind")
}

#[test]
fn the_manifest_says_what_the_types_say() {
    let compiled = CronJob::crd();
    rbuilder::testing::assert_crd_matches(&compiled, &read(CRD));
}

#[test]
fn the_sample_is_of_this_kind() {
    assert_eq!(sample().metadata.name.as_deref(), Some(NAME));
}
