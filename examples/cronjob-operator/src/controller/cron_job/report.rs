// SPDX-License-Identifier: Apache-2.0

//! The status of a CronJob: its active Jobs and three conditions.
//!
//! | condition | `True` | `False` |
//! |---|---|---|
//! | `Available` | `JobsActive`, `AllJobsCompleted` | `Suspended`, `JobsFailed` |
//! | `Progressing` | `JobCreated`, `JobsActive` | `NoJobsActive` |
//! | `Degraded` | `InvalidSchedule`, `TooManyMissedSchedules`, `JobCreationFailed`, `MissedSchedule`, `JobsFailed` | `AsExpected` |
//!
//! Each reconcile computes all three from the observed state, so that an error that is over does not stay in the status.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use rbuilder::Error;
use rbuilder::conditions::{self, Builder};

use crate::api::v1::{CronJob, CronJobStatus};
use crate::schedule::{InvalidSchedule, TooManyMissed};

use super::history::History;

/// Runs start and succeed.
const AVAILABLE: &str = "Available";
/// A run is active.
pub const PROGRESSING: &str = "Progressing";
/// Something is wrong.
const DEGRADED: &str = "Degraded";

/// Maximum number of Jobs in the status, as in its schema.
const MOST_LISTED: usize = 10;

/// The outcome of a look at the schedule.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Name of the Job that was created.
    pub started: Option<String>,
    /// Time of a run that missed its deadline.
    pub missed: Option<Timestamp>,
    /// Time until the next run.
    pub wait: Option<Duration>,
}

/// An error that the status reports.
#[derive(Debug)]
pub enum Trouble {
    /// The schedule is not valid.
    InvalidSchedule(InvalidSchedule),
    /// Too many runs were missed.
    TooManyMissed(TooManyMissed),
    /// The Job of this name could not be created.
    CreationFailed(String, Error),
}

/// Only a change helps a schedule, so that those errors are terminal; the creation of a Job is retried.
impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::InvalidSchedule(error) => Error::terminal(error),
            Trouble::TooManyMissed(error) => Error::terminal(error),
            Trouble::CreationFailed(_, error) => error,
        }
    }
}

/// Returns the status of a CronJob.
pub fn observed_status(
    cron_job: &CronJob,
    history: &History,
    outcome: &Result<Outcome, Trouble>,
) -> CronJobStatus {
    let mut status = cron_job.status.clone().unwrap_or_default();
    for condition in [
        available(cron_job, history),
        progressing(history, outcome),
        degraded(history, outcome),
    ] {
        conditions::set(&mut status.conditions, condition.observed(cron_job));
    }
    let unlisted = history.active.len().saturating_sub(MOST_LISTED);
    let active = history.active[unlisted..].iter();
    CronJobStatus {
        active: active.map(|job| job.object_ref(&())).collect(),
        last_schedule_time: history.last_scheduled.map(Time),
        conditions: status.conditions,
    }
}

fn available(cron_job: &CronJob, history: &History) -> Builder {
    if cron_job.spec.suspend == Some(true) {
        conditions::new(AVAILABLE, false, "Suspended")
            .message("No runs are started while it is suspended")
    } else if history.failures() > 0 {
        conditions::new(AVAILABLE, false, "JobsFailed").message(failures(history))
    } else if history.active.is_empty() {
        conditions::new(AVAILABLE, true, "AllJobsCompleted").message("All runs have completed")
    } else {
        conditions::new(AVAILABLE, true, "JobsActive").message(active(history))
    }
}

fn progressing(history: &History, outcome: &Result<Outcome, Trouble>) -> Builder {
    if let Ok(Outcome {
        started: Some(job), ..
    }) = outcome
    {
        conditions::new(PROGRESSING, true, "JobCreated").message(format!("Created job {job}"))
    } else if history.active.is_empty() {
        conditions::new(PROGRESSING, false, "NoJobsActive").message("No jobs are active")
    } else {
        conditions::new(PROGRESSING, true, "JobsActive").message(active(history))
    }
}

fn degraded(history: &History, outcome: &Result<Outcome, Trouble>) -> Builder {
    let (reason, message) = match outcome {
        Err(Trouble::InvalidSchedule(error)) => ("InvalidSchedule", error.to_string()),
        Err(Trouble::TooManyMissed(error)) => ("TooManyMissedSchedules", error.to_string()),
        Err(Trouble::CreationFailed(job, error)) => (
            "JobCreationFailed",
            format!("Failed to create job {job}: {error:#}"),
        ),
        Ok(Outcome {
            missed: Some(at), ..
        }) => (
            "MissedSchedule",
            format!("Missed the starting deadline of the run at {at}"),
        ),
        Ok(_) if history.failures() > 0 => ("JobsFailed", failures(history)),
        Ok(_) => {
            return conditions::new(DEGRADED, false, "AsExpected").message("Nothing is wrong");
        }
    };
    conditions::new(DEGRADED, true, reason).message(message)
}

fn active(history: &History) -> String {
    format!("{} job(s) are active", history.active.len())
}

fn failures(history: &History) -> String {
    format!(
        "{} job(s) have failed since the last success",
        history.failures()
    )
}
