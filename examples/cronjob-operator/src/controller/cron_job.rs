// SPDX-License-Identifier: Apache-2.0

//! The CronJob controller: starts Jobs at the times of a schedule and reports on them.
//!
//! A reconcile reads the Jobs that exist ([`history`]), asks the schedule which run is due ([`crate::schedule`]), starts
//! it, and writes the status ([`report`]). It keeps nothing between calls: the Jobs and the status record what has been
//! started.

pub mod history;
mod report;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use rbuilder::conditions::{self, Status};
use rbuilder::{Action, Controller, Ctx, Result, Watch, rbac};
use tracing::info;

use crate::api::v1::{ConcurrencyPolicy, CronJob};
use crate::clock::Clock;
use crate::schedule::{Run, Schedule};

use history::{History, SCHEDULED_AT};
use report::{Outcome, PROGRESSING, Trouble};

/// State shared by all reconciles.
#[derive(Debug, Default)]
pub struct State {
    /// The current time.
    pub clock: Clock,
}

/// Returns the controller for the manager.
pub fn controller() -> Controller<CronJob, State> {
    controller_with(State::default())
}

/// Returns the controller with a given state; tests set the clock.
///
/// Jobs are cached whole rather than as metadata, because their status says whether they have finished.
pub fn controller_with(state: State) -> Controller<CronJob, State> {
    Controller::new(reconcile, state)
        .watch(Watch::<Job>::owned())
        .index(history::BY_CONTROLLER, history::controller_of)
}

/// Starts the run that is due, if any, and reports the observed state. Runs after a change of the object or of one of its
/// Jobs, and when the next run is due.
#[rbac(
    groups = "batch.tutorial.kubebuilder.io",
    resources = "cronjobs",
    verbs = ["get", "list", "watch"]
)]
#[rbac(
    groups = "batch.tutorial.kubebuilder.io",
    resources = "cronjobs/status",
    verbs = ["get", "patch"]
)]
#[rbac(
    groups = "batch.tutorial.kubebuilder.io",
    resources = "cronjobs/finalizers",
    verbs = ["update"]
)]
#[rbac(
    groups = "batch",
    resources = "jobs",
    verbs = ["get", "list", "watch", "create", "delete"]
)]
pub async fn reconcile(cron_job: Arc<CronJob>, ctx: Ctx<State>) -> Result {
    let recorded = last_recorded(&cron_job);
    let cron_job = report_start(&cron_job, &ctx).await?;
    let jobs = ctx
        .cached::<Job>()?
        .by(history::BY_CONTROLLER, &uid(&cron_job))?;
    let mut history = History::new(jobs, recorded);

    let outcome = run_if_due(&cron_job, &mut history, &ctx).await;
    let status = report::observed_status(&cron_job, &history, &outcome);
    ctx.apply_status(&*cron_job, status).await?;
    delete_old_jobs(&cron_job, &history, recorded, &ctx).await?;

    match outcome?.wait {
        Some(wait) => Ok(Action::requeue(wait)),
        None => Ok(Action::await_change()),
    }
}

/// Reports that a new object is being reconciled.
async fn report_start(cron_job: &Arc<CronJob>, ctx: &Ctx<State>) -> Result<Arc<CronJob>> {
    let mut status = cron_job.status.clone().unwrap_or_default();
    if !status.conditions.is_empty() {
        return Ok(Arc::clone(cron_job));
    }
    let progressing = conditions::new(PROGRESSING, Status::Unknown, "Reconciling")
        .message("Starting reconciliation")
        .observed(&**cron_job);
    conditions::set(&mut status.conditions, progressing);
    Ok(Arc::new(ctx.apply_status(&**cron_job, status).await?))
}

/// Starts the run that the schedule asks for now.
async fn run_if_due(
    cron_job: &CronJob,
    history: &mut History,
    ctx: &Ctx<State>,
) -> Result<Outcome, Trouble> {
    let spec = &cron_job.spec;
    if spec.suspend == Some(true) {
        return Ok(Outcome::default());
    }
    let schedule: Schedule = spec.schedule.parse().map_err(Trouble::InvalidSchedule)?;
    let now = ctx.clock.now();
    let deadline = spec.starting_deadline_seconds;
    let due = schedule
        .due(
            history.last_scheduled.unwrap_or_else(|| created(cron_job)),
            now,
            deadline.map(SignedDuration::from_secs),
        )
        .map_err(Trouble::TooManyMissed)?;
    let mut outcome = Outcome {
        wait: due.next.map(|next| next.duration_since(now).unsigned_abs()),
        ..Outcome::default()
    };
    match due.run {
        Run::None => {}
        Run::TooLate(at) => outcome.missed = Some(at),
        Run::Start(at) if must_wait(cron_job, history) => {
            info!(%at, "run is due, waiting for the active run to finish");
        }
        Run::Start(at) => {
            let job = start_run(cron_job, at, history, ctx).await;
            let job =
                job.map_err(|error| Trouble::CreationFailed(job_name(cron_job, at), error))?;
            outcome.started = Some(job.name_any());
            history.add(Arc::new(job));
        }
    }
    Ok(outcome)
}

/// Returns true if a run must wait for another one to finish.
fn must_wait(cron_job: &CronJob, history: &History) -> bool {
    cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid && !history.active.is_empty()
}

/// Creates the Job of a run, after it has deleted the Jobs that the run replaces.
async fn start_run(
    cron_job: &CronJob,
    at: Timestamp,
    history: &mut History,
    ctx: &Ctx<State>,
) -> Result<Job> {
    if cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace {
        for job in std::mem::take(&mut history.active) {
            delete_job(&job, ctx).await?;
        }
    }
    // The time of the run is in the name, so a run is created once, even if the cache does not have its Job yet.
    let job = ctx
        .create_owned(cron_job, desired_job(cron_job, at))
        .await?;
    info!(job = job.name_any(), %at, "started run");
    Ok(job)
}

/// Returns the Job of the run at a time.
fn desired_job(cron_job: &CronJob, at: Timestamp) -> Job {
    let template = cron_job.spec.job_template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), at.to_string());
    Job {
        metadata: ObjectMeta {
            name: Some(job_name(cron_job, at)),
            namespace: cron_job.namespace(),
            labels: metadata.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

fn job_name(cron_job: &CronJob, at: Timestamp) -> String {
    format!("{}-{}", cron_job.name_any(), at.as_second())
}

/// Deletes the oldest finished Jobs beyond the history limits.
async fn delete_old_jobs(
    cron_job: &CronJob,
    history: &History,
    recorded: Option<Timestamp>,
    ctx: &Ctx<State>,
) -> Result<()> {
    let spec = &cron_job.spec;
    for (finished, limit) in [
        (&history.successful, spec.successful_jobs_history_limit),
        (&history.failed, spec.failed_jobs_history_limit),
    ] {
        let Some(limit) = limit else { continue };
        let kept = usize::try_from(limit).unwrap_or_default();
        let surplus = &finished[..finished.len().saturating_sub(kept)];
        // The status must record a run before its Job is deleted: otherwise the run would be started again.
        for job in surplus
            .iter()
            .filter(|job| history::scheduled_at(job) <= recorded)
        {
            delete_job(job, ctx).await?;
        }
    }
    Ok(())
}

/// Deletes a Job and, in the background, its pods. A Job that is already deleted is not an error.
async fn delete_job(job: &Job, ctx: &Ctx<State>) -> Result<()> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: job.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let deleted = ctx.api::<Job>(job).delete(&job.name_any(), &params).await;
    match deleted {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}

/// Returns the time of the newest run in the status.
fn last_recorded(cron_job: &CronJob) -> Option<Timestamp> {
    let status = cron_job.status.as_ref()?;
    status.last_schedule_time.as_ref().map(|time| time.0)
}

/// Returns the creation time of the object; earlier runs are not missed.
fn created(cron_job: &CronJob) -> Timestamp {
    let created = cron_job.metadata.creation_timestamp.as_ref();
    created.map_or(Timestamp::MAX, |time| time.0)
}

fn uid(cron_job: &CronJob) -> String {
    cron_job.uid().unwrap_or_default()
}
