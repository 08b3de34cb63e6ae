// SPDX-License-Identifier: Apache-2.0

//! Conversion between v1 and v2.

use cronjob_operator::api::{v1, v2};

fn stored(schedule: &str) -> v1::CronJob {
    let mut cron_job = v1::CronJob::new("nightly", v1::CronJobSpec::default());
    cron_job.spec.schedule = schedule.to_owned();
    cron_job.metadata.annotations = Some([("team".to_owned(), "red".to_owned())].into());
    cron_job
}

#[test]
fn schedule_survives_a_round_trip() {
    for schedule in ["*/5 2 1 JAN MON-FRI", "@hourly", " 0  3 * * * "] {
        let before = stored(schedule);
        let shown = v2::CronJob::try_from(before.clone()).unwrap();
        assert_eq!(v1::CronJob::from(shown), before, "{schedule:?}");
    }
}

#[test]
fn schedule_changed_in_v2_overrides_v1() {
    let mut shown = v2::CronJob::try_from(stored("@daily")).unwrap();
    shown.spec.schedule.hour = v2::CronField("6".to_owned());
    let kept = v1::CronJob::from(shown);
    assert_eq!(kept.spec.schedule, "0 6 * * *");
    assert_eq!(kept.metadata.annotations, stored("").metadata.annotations);
}

#[test]
fn schedule_without_five_fields_cannot_be_converted_to_v2() {
    let error = v2::CronJob::try_from(stored("foo")).unwrap_err();
    assert_eq!(error.to_string(), "Expected exactly 5 fields, found 1: foo");
}
