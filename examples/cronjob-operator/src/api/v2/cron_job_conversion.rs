// SPDX-License-Identifier: Apache-2.0

//! Conversion of CronJob between v2 and v1, the hub version. The API server stores v1 and asks for v2 where a client
//! wants it; a round trip must lose nothing, in either direction.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{v1, v2};
use crate::schedule::{InvalidSchedule, fields};

/// Annotation of v2 with the schedule of v1, if the five fields alone would not restore it: `@hourly`, or additional
/// spaces.
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

/// Removes the annotation and returns its value.
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
