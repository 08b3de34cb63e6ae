// SPDX-License-Identifier: Apache-2.0

//! What a CronJob gets that does not say everything, and what no CronJob may say.
//!
//! Objects written in v2 are asked about here as well: the API server converts them to v1 first, because the webhooks
//! match equivalent versions.

use kube::ResourceExt;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Denied, Webhook, webhook};

use crate::api::{v1::CronJob, v2};
use crate::schedule::Schedule;

/// The longest name of a CronJob: that of a Job has at most 63 characters, and the time of a run takes 11 of them.
const LONGEST_NAME: usize = 52;

/// What is asked about CronJobs, in all versions.
pub fn webhook() -> Webhook<CronJob> {
    Webhook::new()
        .defaulter(default)
        .validator(validate)
        .spoke::<v2::CronJob>()
}

/// Fills in what is left open. What happens to overlapping runs the schema fills in.
#[webhook(mutating)]
pub fn default(cron_job: &mut CronJob, _request: &AdmissionRequest) {
    let spec = &mut cron_job.spec;
    spec.suspend.get_or_insert(false);
    spec.successful_jobs_history_limit.get_or_insert(3);
    spec.failed_jobs_history_limit.get_or_insert(1);
}

/// Refuses names that are too long for Jobs, and schedules that cannot be followed.
#[webhook(validating)]
pub fn validate(
    new: &CronJob,
    _old: Option<&CronJob>,
    _request: &AdmissionRequest,
) -> Result<(), Denied> {
    if new.metadata.deletion_timestamp.is_some() {
        return Ok(()); // whoever takes its finalizers away must be able to
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::{ConcurrencyPolicy, CronJobSpec};
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
    fn what_is_left_open_is_filled_in() {
        let mut open = cron_job("nightly", "@daily");
        default(&mut open, &admission_request(Operation::Create));
        assert_eq!(open.spec.concurrency_policy, ConcurrencyPolicy::Allow);
        assert_eq!(open.spec.suspend, Some(false));
        assert_eq!(open.spec.successful_jobs_history_limit, Some(3));
        assert_eq!(open.spec.failed_jobs_history_limit, Some(1));
    }

    #[test]
    fn what_is_said_stays() {
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
    fn mistakes_are_named_with_their_fields() {
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
    fn what_is_being_deleted_is_let_go() {
        let mut going = cron_job("nightly", "foo");
        going.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let request = admission_request(Operation::Update);
        assert_eq!(validate(&going, None, &request), Ok(()));
    }
}
