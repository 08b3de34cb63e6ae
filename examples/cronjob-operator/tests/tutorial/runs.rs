// SPDX-License-Identifier: Apache-2.0

//! When runs start, and when they do not.

use std::time::Duration;

use cronjob_operator::api::v1::CronJob;
use cronjob_operator::clock::Clock;
use cronjob_operator::controller::cron_job::history::SCHEDULED_AT;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use rbuilder::Action;
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

use super::support::{Fixture, LONG, cron_job, next_hour, said, seconds};

fn name(cron_job: &str, at: Timestamp) -> String {
    format!("{cron_job}-{}", at.as_second())
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

#[rbuilder::envtest::test]
async fn due_run_becomes_one_job(env: Environment) {
    let fixture = Fixture::new(&env, "due").await;
    let (owner, due) = fixture.hourly("hourly", json!({})).await;
    let operator = fixture.run();

    let name = name("hourly", due);
    let job = &fixture.await_jobs(&[&name]).await[&name];
    let annotations = job.annotations();
    assert_eq!(annotations[SCHEDULED_AT], due.to_string());
    assert_eq!(annotations["note"], "kept");
    assert_eq!(job.labels()["team"], "red");
    let containers =
        |job: &serde_json::Value| job["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(containers(&json!(job.spec)), "busybox");

    let owners = job.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].api_version, "batch.tutorial.kubebuilder.io/v1");
    assert_eq!((&*owners[0].kind, &*owners[0].name), ("CronJob", "hourly"));
    assert_eq!(Some(&owners[0].uid), owner.metadata.uid.as_ref());
    assert_eq!(
        (owners[0].controller, owners[0].block_owner_deletion),
        (Some(true), Some(true))
    );

    // However often it is reconciled within the hour, it stays the only Job.
    let uid = job.uid();
    for _ in 0..3 {
        fixture.poke("hourly").await;
        fixture.await_rest().await;
    }
    assert_eq!(fixture.await_jobs(&[&name]).await[&name].uid(), uid);

    fixture.hands.set(due + hours(1));
    fixture.poke("hourly").await;
    fixture
        .await_jobs(&[&name, &self::name("hourly", due + hours(1))])
        .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn run_is_created_once_with_a_lagging_cache(env: Environment) {
    let fixture = Fixture::new(&env, "once").await;
    let (_, due) = fixture.hourly("hourly", json!({})).await;
    let name = name("hourly", due);
    fixture.reconcile("hourly", Vec::new()).await.unwrap();
    let first = fixture.await_jobs(&[&name]).await[&name].uid();

    // A lagging cache shows neither the Job nor the status that records it.
    let forget = json!({ "status": { "lastScheduleTime": null } });
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(forget);
    let forgotten = fixture
        .cron_jobs()
        .patch_status("hourly", &params, &patch)
        .await;
    forgotten.unwrap();
    fixture.reconcile("hourly", Vec::new()).await.unwrap();
    assert_eq!(fixture.await_jobs(&[&name]).await[&name].uid(), first);
    let status = fixture.status("hourly").await;
    assert_eq!(said(&status, "Degraded").0, "False");
}

#[rbuilder::envtest::test]
async fn run_is_not_repeated_when_its_job_is_deleted(env: Environment) {
    let fixture = Fixture::new(&env, "repeat").await;
    let spec = json!({ "successfulJobsHistoryLimit": 0 });
    let (_, due) = fixture.hourly("hourly", spec).await;
    let operator = fixture.run();
    let name = name("hourly", due);
    fixture.await_jobs(&[&name]).await;
    fixture.finish(&name, "Complete", due).await;
    fixture.await_jobs(&[]).await;
    for _ in 0..3 {
        fixture.poke("hourly").await;
        fixture.await_rest().await;
        assert!(fixture.list_jobs().await.is_empty());
    }
    let status = fixture.status("hourly").await;
    assert_eq!(status.last_schedule_time.map(|time| time.0), Some(due));
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn forbid_waits_for_the_unfinished_run(env: Environment) {
    let fixture = Fixture::new(&env, "forbid").await;
    let spec = json!({ "concurrencyPolicy": "Forbid" });
    let (_, due) = fixture.hourly("hourly", spec).await;
    let operator = fixture.run();
    let (first, second) = (name("hourly", due), name("hourly", due + hours(1)));
    fixture.await_jobs(&[&first]).await;
    fixture.await_active("hourly", &[&first]).await;

    fixture.hands.set(due + hours(1) + seconds(5));
    fixture.poke("hourly").await;
    fixture.await_rest().await;
    fixture.await_jobs(&[&first]).await;

    fixture.finish(&first, "Complete", due).await;
    fixture.await_jobs(&[&first, &second]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn replace_deletes_the_unfinished_run(env: Environment) {
    let fixture = Fixture::new(&env, "replace").await;
    let spec = json!({ "concurrencyPolicy": "Replace" });
    let (_, due) = fixture.hourly("hourly", spec).await;
    let operator = fixture.run();
    let first = name("hourly", due);
    fixture.await_active("hourly", &[&first]).await;

    fixture.hands.set(due + hours(1) + seconds(5));
    fixture.poke("hourly").await;
    // The Job is deleted in the background. In the foreground, or with orphans, it would wait for a
    // garbage collector.
    let second = name("hourly", due + hours(1));
    fixture.await_jobs(&[&second]).await;
    fixture.await_active("hourly", &[&second]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn allow_runs_both(env: Environment) {
    let fixture = Fixture::new(&env, "allow").await;
    let (_, due) = fixture.hourly("hourly", json!({})).await;
    let operator = fixture.run();
    let (first, second) = (name("hourly", due), name("hourly", due + hours(1)));
    fixture.await_active("hourly", &[&first]).await;
    fixture.hands.set(due + hours(1) + seconds(5));
    fixture.poke("hourly").await;
    fixture.await_active("hourly", &[&first, &second]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn nothing_starts_while_suspended(env: Environment) {
    let fixture = Fixture::new(&env, "suspend").await;
    let (_, due) = fixture.hourly("hourly", json!({ "suspend": true })).await;
    let operator = fixture.run();
    let suspended = ("Available", "False", "Suspended");
    fixture.await_condition("hourly", suspended).await;
    fixture.await_rest().await;
    assert!(fixture.list_jobs().await.is_empty());

    fixture
        .patch("hourly", json!({ "spec": { "suspend": false } }))
        .await;
    fixture.await_jobs(&[&name("hourly", due)]).await;
    let active = ("Available", "True", "JobsActive");
    fixture.await_condition("hourly", active).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn invalid_schedule_is_reported_and_waits_for_a_change(env: Environment) {
    let fixture = Fixture::new(&env, "invalid").await;
    let (_, due) = fixture.hourly("broken", json!({ "schedule": "foo" })).await;
    let error = fixture.reconcile("broken", Vec::new()).await.unwrap_err();
    assert!(error.is_terminal(), "it is not tried again: {error}");
    let operator = fixture.run();
    let invalid = ("Degraded", "True", "InvalidSchedule");
    let status = fixture.await_condition("broken", invalid).await;
    let message = &rbuilder::conditions::find(&status.conditions, "Degraded")
        .unwrap()
        .message;
    assert_eq!(message, "Expected exactly 5 fields, found 1: foo");

    fixture
        .patch("broken", json!({ "spec": { "schedule": "@hourly" } }))
        .await;
    let corrected = ("Degraded", "False", "AsExpected");
    fixture.await_condition("broken", corrected).await;
    fixture.await_jobs(&[&name("broken", due)]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn run_after_its_deadline_is_skipped(env: Environment) {
    let fixture = Fixture::new(&env, "deadline").await;
    let spec = json!({ "startingDeadlineSeconds": 60 });
    let (_, due) = fixture.hourly("hourly", spec).await;
    fixture.hands.set(due + seconds(61));
    let operator = fixture.run();
    let missed = ("Degraded", "True", "MissedSchedule");
    fixture.await_condition("hourly", missed).await;
    fixture.await_rest().await;
    assert!(fixture.list_jobs().await.is_empty());

    fixture.hands.set(due + hours(1) + seconds(60));
    fixture.poke("hourly").await;
    fixture.await_jobs(&[&name("hourly", due + hours(1))]).await;
    let made_good = ("Degraded", "False", "AsExpected");
    fixture.await_condition("hourly", made_good).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn too_many_missed_runs_are_an_error_until_a_deadline_is_set(env: Environment) {
    let fixture = Fixture::new(&env, "missed").await;
    let (_, due) = fixture
        .hourly("often", json!({ "schedule": "* * * * *" }))
        .await;
    let now = due + hours(2);
    fixture.hands.set(now);
    let error = fixture.reconcile("often", Vec::new()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("too many missed start times (> 100)"),
        "{error}"
    );
    let operator = fixture.run();
    let missed = ("Degraded", "True", "TooManyMissedSchedules");
    fixture.await_condition("often", missed).await;
    fixture.await_rest().await;
    assert!(fixture.list_jobs().await.is_empty());

    let patch = json!({ "spec": { "startingDeadlineSeconds": 600 } });
    fixture.patch("often", patch).await;
    fixture.await_jobs(&[&name("often", now)]).await;
    let made_good = ("Degraded", "False", "AsExpected");
    fixture.await_condition("often", made_good).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn requeue_is_at_the_next_run(env: Environment) {
    let fixture = Fixture::new(&env, "next").await;
    let (_, due) = fixture
        .hourly("minutely", json!({ "schedule": "*/1 * * * *" }))
        .await;
    let check = async |now: Timestamp, wait: u64| {
        fixture.hands.set(now);
        let action = fixture.reconcile("minutely", Vec::new()).await.unwrap();
        assert_eq!(
            action,
            Action::requeue(Duration::from_secs(wait)),
            "at {now}"
        );
    };
    check(due - seconds(3600) + seconds(15), 45).await;
    check(due - seconds(3600) + seconds(60), 60).await;
    check(due - seconds(3600) + seconds(119), 1).await;
    // There is no requeue for a schedule that never matches.
    fixture
        .patch("minutely", json!({ "spec": { "schedule": "0 0 31 2 *" } }))
        .await;
    let action = fixture.reconcile("minutely", Vec::new()).await.unwrap();
    assert_eq!(action, Action::await_change());
}

/// The clock of the operator runs as fast as the real one and starts a few seconds before a full
/// minute.
#[rbuilder::envtest::test]
async fn run_starts_at_its_minute(env: Environment) {
    let fixture = Fixture::new(&env, "minute").await;
    let object: CronJob = fixture.create(cron_job("minutely", "*/1 * * * *")).await;
    let minute = next_hour(object.creation_timestamp().unwrap().0);
    // The run of the previous minute has finished and is recorded.
    let before = fixture
        .job(
            &object,
            &name("minutely", minute - seconds(60)),
            minute - seconds(60),
        )
        .await;
    fixture
        .finish(&before.name_any(), "Complete", minute - seconds(50))
        .await;
    let ahead = (minute - seconds(4)).duration_since(Timestamp::now());
    let clock = Clock::new(move || Timestamp::now() + ahead);
    let operator = fixture.run_with(clock.clone());
    fixture
        .await_condition("minutely", ("Progressing", "False", "NoJobsActive"))
        .await;
    let started = name("minutely", minute);
    eventually(LONG, || async {
        fixture.list_jobs().await.contains_key(&started)
    })
    .await;
    let late = clock.now().duration_since(minute);
    // Only the clock can have triggered the reconcile. The previous test checks the exact delay;
    // here the machine may be busy.
    assert!(late > SignedDuration::ZERO, "{late:?}");
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn nothing_starts_for_an_object_being_deleted(env: Environment) {
    let fixture = Fixture::new(&env, "deleted").await;
    fixture.hourly("going", json!({})).await;
    let foreground = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    fixture
        .cron_jobs()
        .delete("going", &foreground)
        .await
        .unwrap();
    // A manager does not reconcile it at all. This reconcile sees a cache without the deletion.
    let error = fixture.reconcile("going", Vec::new()).await.unwrap_err();
    assert!(error.is_owner_terminating(), "{error}");
    assert!(fixture.list_jobs().await.is_empty());
}
