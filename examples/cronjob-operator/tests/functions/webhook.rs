// SPDX-License-Identifier: Apache-2.0

//! Defaulting and validation.

use cronjob_operator::api::v1::CronJob;
use cronjob_operator::api::v1::{ConcurrencyPolicy, CronJobSpec};
use cronjob_operator::webhook::v1::cron_job::{default, validate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rbuilder::testing::admission_request;
use rbuilder::webhook::Operation;

fn cron_job(name: &str, schedule: &str) -> CronJob {
    let schedule = schedule.to_owned();
    let spec = CronJobSpec {
        schedule,
        ..CronJobSpec::default()
    };
    CronJob::new(name, spec)
}

#[test]
fn omitted_fields_are_defaulted() {
    let mut open = cron_job("nightly", "@daily");
    default(&mut open, &admission_request(Operation::Create));
    assert_eq!(open.spec.concurrency_policy, ConcurrencyPolicy::Allow);
    assert_eq!(open.spec.suspend, Some(false));
    assert_eq!(open.spec.successful_jobs_history_limit, Some(3));
    assert_eq!(open.spec.failed_jobs_history_limit, Some(1));
}

#[test]
fn specified_fields_are_kept() {
    let mut said = cron_job("nightly", "@daily");
    said.spec.concurrency_policy = ConcurrencyPolicy::Forbid;
    said.spec.suspend = Some(true);
    said.spec.successful_jobs_history_limit = Some(0);
    said.spec.failed_jobs_history_limit = Some(7);
    let before = said.clone();
    default(&mut said, &admission_request(Operation::Update));
    assert_eq!(said, before);
}

#[test]
fn errors_name_their_fields() {
    let check = |name: &str, schedule: &str, expected: Option<&str>| {
        let request = admission_request(Operation::Create);
        let said = validate(&cron_job(name, schedule), None, &request);
        assert_eq!(
            said.err().map(|denied| denied.to_string()).as_deref(),
            expected
        );
    };
    check(&"n".repeat(52), "*/5 * * * *", None);
    check(
        &"n".repeat(53),
        "@daily",
        Some("metadata.name: must be no more than 52 characters"),
    );
    check(
        &"n".repeat(53),
        "foo",
        Some(
            "metadata.name: must be no more than 52 characters; \
             spec.schedule: Expected exactly 5 fields, found 1: foo",
        ),
    );
}

#[test]
fn object_being_deleted_is_not_validated() {
    let mut going = cron_job("nightly", "foo");
    going.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    let request = admission_request(Operation::Update);
    assert_eq!(validate(&going, None, &request), Ok(()));
}
