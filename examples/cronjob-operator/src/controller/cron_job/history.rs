// SPDX-License-Identifier: Apache-2.0

//! The history of a CronJob: its active, successful and failed Jobs.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};

use crate::api::v1::CronJob;

/// Annotation of a Job with the scheduled time of its run.
pub const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// Index of Jobs by the CronJob that controls them.
pub const BY_CONTROLLER: &str = ".metadata.controller";

/// Returns the value of a Job in the index: the uid of its CronJob. Its name would also match the Jobs of a deleted
/// CronJob of the same name.
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

/// Returns the scheduled time of a Job.
pub fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// The Jobs of one CronJob, the oldest run first.
#[derive(Debug, Default)]
pub struct History {
    /// Jobs that have not finished.
    pub active: Vec<Arc<Job>>,
    /// Jobs that have succeeded.
    pub successful: Vec<Arc<Job>>,
    /// Jobs that have failed.
    pub failed: Vec<Arc<Job>>,
    /// Scheduled time of the newest run, even if its Job has been deleted.
    pub last_scheduled: Option<Timestamp>,
}

impl History {
    /// Sorts the Jobs of a CronJob whose status has recorded a run.
    pub fn new(mut jobs: Vec<Arc<Job>>, recorded: Option<Timestamp>) -> Self {
        jobs.sort_by_key(|job| age(job));
        let mut history = Self {
            last_scheduled: recorded,
            ..Self::default()
        };
        jobs.into_iter().for_each(|job| history.add(job));
        history
    }

    /// Adds the newest Job.
    pub fn add(&mut self, job: Arc<Job>) {
        self.last_scheduled = self.last_scheduled.max(scheduled_at(&job));
        let jobs = if has_condition(&job, "Complete") {
            &mut self.successful
        } else if has_condition(&job, "Failed") {
            &mut self.failed
        } else {
            &mut self.active
        };
        jobs.push(job);
    }

    /// Returns the number of failed runs since the last successful one.
    pub fn failures(&self) -> usize {
        let recovered = self.successful.last().map(|job| age(job));
        let later = |job: &&Arc<Job>| Some(age(job)) > recovered;
        self.failed.iter().filter(later).count()
    }
}

/// Returns the scheduled time, or the creation time of a Job that has none.
fn age(job: &Job) -> Option<Timestamp> {
    let created = job.metadata.creation_timestamp.as_ref();
    scheduled_at(job).or(created.map(|time| time.0))
}

/// Returns true if a condition of the type is True.
fn has_condition(job: &Job, type_: &str) -> bool {
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}
