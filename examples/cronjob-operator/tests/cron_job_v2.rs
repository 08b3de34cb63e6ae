// SPDX-License-Identifier: Apache-2.0

//! Tests of the CronJob API.

use rbuilder::testing::{assert_generated_crd_matches, sample};

use cronjob_operator::api::v2::CronJob;

#[test]
fn the_crd_matches_the_types() {
    assert_generated_crd_matches::<CronJob>();
}

#[test]
fn the_sample_deserializes() {
    sample::<CronJob>();
}
