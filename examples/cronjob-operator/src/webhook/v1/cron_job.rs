// SPDX-License-Identifier: Apache-2.0

//! CronJob webhooks: defaulting, validation, conversion.
//!
//! They handle objects of v2 as well: the API server converts those to v1 first.

use kube::ResourceExt;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Denied, Webhook, webhook};

use crate::api::{v1::CronJob, v2};
use crate::schedule::Schedule;

/// Maximum length of the name of a CronJob: the name of a Job has at most 63 characters, 11 of them for the time.
const LONGEST_NAME: usize = 52;

/// Returns the webhooks for the manager.
pub fn webhook() -> Webhook<CronJob> {
    Webhook::new()
        .defaulter(default)
        .validator(validate)
        .spoke::<v2::CronJob>()
}

/// Sets default values. The default of the concurrency policy is in the schema.
#[webhook(mutating)]
pub fn default(cron_job: &mut CronJob, _request: &AdmissionRequest) {
    let spec = &mut cron_job.spec;
    spec.suspend.get_or_insert(false);
    spec.successful_jobs_history_limit.get_or_insert(3);
    spec.failed_jobs_history_limit.get_or_insert(1);
}

/// Denies names that are too long for Jobs and schedules that are not valid.
#[webhook(validating)]
pub fn validate(
    new: &CronJob,
    _old: Option<&CronJob>,
    _request: &AdmissionRequest,
) -> Result<(), Denied> {
    if new.metadata.deletion_timestamp.is_some() {
        return Ok(()); // its finalizers must be removable
    }
    let mut wrong = Vec::new();
    if new.name_any().len() > LONGEST_NAME {
        let message = format!("must be no more than {LONGEST_NAME} characters");
        wrong.push(("metadata.name", message));
    }
    if let Err(error) = new.spec.schedule.parse::<Schedule>() {
        wrong.push(("spec.schedule", error.to_string()));
    }
    Denied::if_any(wrong)
}
