// SPDX-License-Identifier: Apache-2.0

//! v2 from v1 and back. The API server keeps v1 and asks for the other where a client wants it; nothing may be lost on
//! the way, in either direction.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{v1, v2};
use crate::schedule::{InvalidSchedule, fields};

/// Where v2 keeps a schedule as v1 has it, if the five fields alone would not bring it back: `@hourly`, or more spaces
/// than needed.
pub const SCHEDULE: &str = "batch.tutorial.kubebuilder.io/schedule";

impl From<v2::CronJob> for v1::CronJob {
    fn from(cron_job: v2::CronJob) -> Self {
        let v2::CronJob {
            mut metadata,
            spec,
            status,
        } = cron_job;
        let mut schedule = spec.schedule.to_string();
        if let Some(kept) = take_kept(&mut metadata)
            && fields(&kept).is_ok_and(|fields| fields.join(" ") == schedule)
        {
            schedule = kept;
        }
        v1::CronJob {
            metadata,
            spec: v1::CronJobSpec {
                schedule,
                starting_deadline_seconds: spec.starting_deadline_seconds,
                concurrency_policy: spec.concurrency_policy,
                suspend: spec.suspend,
                job_template: spec.job_template,
                successful_jobs_history_limit: spec.successful_jobs_history_limit,
                failed_jobs_history_limit: spec.failed_jobs_history_limit,
            },
            status,
        }
    }
}

/// Takes out the schedule that v2 keeps for v1, and leaves no trace of it.
fn take_kept(metadata: &mut ObjectMeta) -> Option<String> {
    let annotations = metadata.annotations.as_mut()?;
    let kept = annotations.remove(SCHEDULE);
    if annotations.is_empty() {
        metadata.annotations = None;
    }
    kept
}

impl TryFrom<v1::CronJob> for v2::CronJob {
    type Error = InvalidSchedule;

    fn try_from(cron_job: v1::CronJob) -> Result<Self, InvalidSchedule> {
        let v1::CronJob {
            mut metadata,
            spec,
            status,
        } = cron_job;
        let schedule = v2::CronSchedule::from(fields(&spec.schedule)?);
        if schedule.to_string() != spec.schedule {
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(SCHEDULE.to_owned(), spec.schedule);
        }
        Ok(v2::CronJob {
            metadata,
            spec: v2::CronJobSpec {
                schedule,
                starting_deadline_seconds: spec.starting_deadline_seconds,
                concurrency_policy: spec.concurrency_policy,
                suspend: spec.suspend,
                job_template: spec.job_template,
                successful_jobs_history_limit: spec.successful_jobs_history_limit,
                failed_jobs_history_limit: spec.failed_jobs_history_limit,
            },
            status,
        })
    }
}

impl From<[&str; 5]> for v2::CronSchedule {
    fn from(fields: [&str; 5]) -> Self {
        let [minute, hour, day_of_month, month, day_of_week] =
            fields.map(|field| v2::CronField(field.to_owned()));
        Self {
            minute,
            hour,
            day_of_month,
            month,
            day_of_week,
        }
    }
}

impl std::fmt::Display for v2::CronSchedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            minute,
            hour,
            day_of_month,
            month,
            day_of_week,
        } = self;
        write!(
            f,
            "{} {} {} {} {}",
            minute.0, hour.0, day_of_month.0, month.0, day_of_week.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbuilder::testing::RoundTrip;

    #[test]
    fn conversions_lose_nothing() {
        RoundTrip::<v1::CronJob, v2::CronJob>::new()
            .hub_values(
                "spec.schedule",
                ["*/5 2 1 JAN MON-FRI", "@hourly", " 0  3 * * * "],
            )
            .assert();
    }

    fn stored(schedule: &str) -> v1::CronJob {
        let mut cron_job = v1::CronJob::new("nightly", v1::CronJobSpec::default());
        cron_job.spec.schedule = schedule.to_owned();
        cron_job.metadata.annotations = Some([("team".to_owned(), "red".to_owned())].into());
        cron_job
    }

    #[test]
    fn a_schedule_comes_back_as_it_was_written() {
        for schedule in ["*/5 2 1 JAN MON-FRI", "@hourly", " 0  3 * * * "] {
            let before = stored(schedule);
            let shown = v2::CronJob::try_from(before.clone()).unwrap();
            assert_eq!(v1::CronJob::from(shown), before, "{schedule:?}");
        }
    }

    #[test]
    fn a_schedule_changed_in_v2_wins_over_the_one_v1_had() {
        let mut shown = v2::CronJob::try_from(stored("@daily")).unwrap();
        shown.spec.schedule.hour = v2::CronField("6".to_owned());
        let kept = v1::CronJob::from(shown);
        assert_eq!(kept.spec.schedule, "0 6 * * *");
        assert_eq!(kept.metadata.annotations, stored("").metadata.annotations);
    }

    #[test]
    fn a_schedule_without_five_fields_cannot_be_shown_in_v2() {
        let error = v2::CronJob::try_from(stored("foo")).unwrap_err();
        assert_eq!(error.to_string(), "Expected exactly 5 fields, found 1: foo");
    }
}
