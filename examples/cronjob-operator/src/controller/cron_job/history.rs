// SPDX-License-Identifier: Apache-2.0

//! The runs of a CronJob: its Jobs, by how far they have come.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};

use crate::api::v1::CronJob;

/// The annotation of a Job that says for which time it was started.
pub const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The index of Jobs by the CronJob that controls them.
pub const BY_CONTROLLER: &str = ".metadata.controller";

/// The value of a Job in the index: the uid of its CronJob. A name would do as long as no CronJob is deleted and made
/// again while its Jobs are still there.
pub fn controller_of(job: &Job) -> Vec<String> {
    let mut owners = job.owner_references().iter();
    let controller = owners.find(|owner| owner.controller == Some(true));
    let cron_job = controller.filter(|owner| {
        owner.api_version == CronJob::api_version(&()) && owner.kind == CronJob::kind(&())
    });
    cron_job
        .map(|owner| owner.uid.clone())
        .into_iter()
        .collect()
}

/// For which time a Job was started.
pub fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// The Jobs of one CronJob, each list with the oldest run first.
#[derive(Debug, Default)]
pub struct History {
    /// What has not finished.
    pub active: Vec<Arc<Job>>,
    /// What has finished well.
    pub successful: Vec<Arc<Job>>,
    /// What has finished badly.
    pub failed: Vec<Arc<Job>>,
    /// For which time the newest run was started, of those that are here and those that once were.
    pub last_scheduled: Option<Timestamp>,
}

impl History {
    /// What these Jobs tell, after a run that is on record.
    pub fn new(mut jobs: Vec<Arc<Job>>, recorded: Option<Timestamp>) -> Self {
        jobs.sort_by_key(|job| age(job));
        let mut history = Self {
            last_scheduled: recorded,
            ..Self::default()
        };
        jobs.into_iter().for_each(|job| history.add(job));
        history
    }

    /// Adds the newest run.
    pub fn add(&mut self, job: Arc<Job>) {
        self.last_scheduled = self.last_scheduled.max(scheduled_at(&job));
        let jobs = if has(&job, "Complete") {
            &mut self.successful
        } else if has(&job, "Failed") {
            &mut self.failed
        } else {
            &mut self.active
        };
        jobs.push(job);
    }

    /// How many runs have failed since the last one that succeeded.
    pub fn failures(&self) -> usize {
        let recovered = self.successful.last().map(|job| age(job));
        let later = |job: &&Arc<Job>| Some(age(job)) > recovered;
        self.failed.iter().filter(later).count()
    }
}

/// Orders runs by the time they were started for; Jobs that do not say it, by when they were created.
fn age(job: &Job) -> Option<Timestamp> {
    let created = job.metadata.creation_timestamp.as_ref();
    scheduled_at(job).or(created.map(|time| time.0))
}

/// Whether a condition of this type holds.
fn has(job: &Job, type_: &str) -> bool {
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(name: &str, hour: u32, finished: Option<&str>) -> Arc<Job> {
        let conditions = finished.map(|type_| json!([{ "type": type_, "status": "True" }]));
        let job = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "annotations": { SCHEDULED_AT: format!("2026-03-02T{hour:02}:00:00Z") },
            },
            "status": { "conditions": conditions },
        }));
        Arc::new(job.unwrap())
    }

    fn names(jobs: &[Arc<Job>]) -> Vec<String> {
        jobs.iter().map(|job| job.name_any()).collect()
    }

    #[test]
    fn jobs_are_told_apart_and_ordered_by_the_time_of_their_run() {
        let jobs = vec![
            job("b", 11, Some("Complete")),
            job("c", 13, Some("FailureTarget")),
            job("d", 12, Some("Failed")),
            job("a", 10, Some("Complete")),
            job("e", 9, None),
        ];
        let history = History::new(jobs, None);
        assert_eq!(names(&history.active), ["e", "c"]);
        assert_eq!(names(&history.successful), ["a", "b"]);
        assert_eq!(names(&history.failed), ["d"]);
        assert_eq!(history.last_scheduled, scheduled_at(&job("", 13, None)));
    }

    #[test]
    fn a_run_on_record_is_not_forgotten_with_its_job() {
        let recorded = scheduled_at(&job("", 12, None));
        let older = job("a", 11, Some("Complete"));
        assert_eq!(History::new(vec![older], recorded).last_scheduled, recorded);
        assert_eq!(History::new(Vec::new(), recorded).last_scheduled, recorded);
    }

    #[test]
    fn a_success_makes_good_for_failures_before_it() {
        let check = |finished: &[(u32, &str)], expected: usize| {
            let jobs = finished
                .iter()
                .map(|(hour, how)| job("j", *hour, Some(how)));
            assert_eq!(History::new(jobs.collect(), None).failures(), expected);
        };
        check(&[], 0);
        check(&[(1, "Failed"), (2, "Failed")], 2);
        check(&[(1, "Failed"), (2, "Complete")], 0);
        check(&[(1, "Complete"), (2, "Failed")], 1);
        check(&[(1, "Failed"), (2, "Complete"), (3, "Failed")], 1);
    }

    #[test]
    fn only_jobs_that_a_cron_job_controls_are_indexed() {
        let check = |api_version: &str, kind: &str, controller: bool, expected: &[&str]| {
            let job: Job = serde_json::from_value(json!({ "metadata": { "ownerReferences": [{
                "apiVersion": api_version, "kind": kind, "name": "n", "uid": "u", "controller": controller,
            }] } }))
            .unwrap();
            assert_eq!(controller_of(&job), expected);
        };
        check("batch.tutorial.kubebuilder.io/v1", "CronJob", true, &["u"]);
        check("batch.tutorial.kubebuilder.io/v1", "CronJob", false, &[]);
        check("batch/v1", "CronJob", true, &[]);
        check("batch.tutorial.kubebuilder.io/v1", "Other", true, &[]);
    }
}
