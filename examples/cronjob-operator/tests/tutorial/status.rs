// SPDX-License-Identifier: Apache-2.0

//! The status of a CronJob.

use std::sync::{Arc, Mutex};

use cronjob_operator::api::v1::CronJobStatus;
use futures::{StreamExt, TryStreamExt};
use jiff::SignedDuration;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use rbuilder::conditions;
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

use super::support::{Fixture, LONG, active, job, said, seconds};

/// Records every status of a CronJob from now on.
async fn follow(fixture: &Fixture, name: &str) -> Arc<Mutex<Vec<CronJobStatus>>> {
    let seen: Arc<Mutex<Vec<CronJobStatus>>> = Arc::default();
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let present = fixture
        .cron_jobs()
        .list(&ListParams::default())
        .await
        .unwrap();
    let version = present.metadata.resource_version.unwrap_or_default();
    let watch = fixture.cron_jobs().watch(&params, &version).await.unwrap();
    let statuses = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut watch = watch.boxed();
        while let Ok(Some(event)) = watch.try_next().await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                statuses.lock().unwrap().extend(object.status);
            }
        }
    });
    seen
}

/// Returns the sequence of statuses and reasons of a condition.
fn course(seen: &Mutex<Vec<CronJobStatus>>, type_: &str) -> Vec<(String, String)> {
    let seen = seen.lock().unwrap();
    let mut course: Vec<_> = seen.iter().map(|status| said(status, type_)).collect();
    course.dedup();
    course
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[rbuilder::envtest::test]
async fn new_cron_job_is_unknown_first(env: Environment) {
    let fixture = Fixture::new(&env, "unknown").await;
    fixture.hourly("new", json!({ "suspend": true })).await;
    let seen = follow(&fixture, "new").await;
    let operator = fixture.run();
    fixture
        .await_condition("new", ("Available", "False", "Suspended"))
        .await;
    eventually(LONG, || async { course(&seen, "Progressing").len() >= 2 }).await;
    let course = course(&seen, "Progressing");
    assert_eq!(
        course[..2],
        [
            pair("Unknown", "Reconciling"),
            pair("False", "NoJobsActive")
        ]
    );
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn only_jobs_of_the_same_cron_job_count(env: Environment) {
    let fixture = Fixture::new(&env, "index").await;
    let (one, due) = fixture.hourly("one", json!({ "suspend": true })).await;
    let (two, _) = fixture.hourly("two", json!({ "suspend": true })).await;
    fixture.job(&one, "of-one", due).await;
    fixture.job(&two, "of-two", due).await;
    let mut former = one.clone();
    former.metadata.uid = Some("of-a-cron-job-of-this-name-that-was".to_owned());
    fixture.job(&former, "of-the-former", due).await;
    let mut foreign = job("of-another-kind");
    foreign["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "one",
        "uid": one.metadata.uid, "controller": true,
    }]);
    fixture
        .create::<k8s_openapi::api::batch::v1::Job>(foreign)
        .await;

    let operator = fixture.run();
    fixture.await_active("one", &["of-one"]).await;
    fixture.await_active("two", &["of-two"]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn status_lists_unfinished_jobs_and_the_newest_schedule_time(env: Environment) {
    let fixture = Fixture::new(&env, "active").await;
    let (owner, due) = fixture.hourly("hourly", json!({ "suspend": true })).await;
    for (name, ago) in [("older", 3), ("newer", 2), ("done", 1)] {
        fixture
            .job(&owner, name, due - SignedDuration::from_hours(ago))
            .await;
    }
    fixture.finish("done", "Complete", due).await;
    let operator = fixture.run();
    let status = fixture.await_active("hourly", &["older", "newer"]).await;
    let newest = status.last_schedule_time.unwrap().0;
    assert_eq!(newest, due - SignedDuration::from_hours(1));
    let listed = &status.active[0];
    let jobs = fixture.list_jobs().await;
    assert_eq!(listed.uid, jobs["older"].metadata.uid);
    assert_eq!(
        (listed.kind.as_deref(), listed.api_version.as_deref()),
        (Some("Job"), Some("batch/v1"))
    );

    fixture.finish("older", "Failed", due).await;
    fixture.await_active("hourly", &["newer"]).await;
    fixture
        .jobs()
        .delete("newer", &DeleteParams::background())
        .await
        .unwrap();
    let status = fixture.await_active("hourly", &[]).await;
    assert_eq!(
        status.last_schedule_time.unwrap().0,
        newest,
        "what was started stays on record"
    );
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn job_with_active_pods_is_listed(env: Environment) {
    let fixture = Fixture::new(&env, "pods").await;
    let (owner, due) = fixture
        .hourly("test-cronjob", json!({ "suspend": true }))
        .await;
    fixture.job(&owner, "test-job", due - seconds(3600)).await;
    let operator = fixture.run();
    let patch = Patch::Merge(json!({ "status": { "active": 2, "ready": 0 } }));
    let params = PatchParams::default();
    fixture
        .jobs()
        .patch_status("test-job", &params, &patch)
        .await
        .unwrap();
    let status = fixture.await_active("test-cronjob", &["test-job"]).await;
    assert_eq!(status.active.len(), 1);
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn more_jobs_than_the_list_can_hold_are_no_error(env: Environment) {
    let fixture = Fixture::new(&env, "many").await;
    let (owner, due) = fixture.hourly("hourly", json!({ "suspend": true })).await;
    let names: Vec<String> = (0..12).map(|number| format!("job-{number:02}")).collect();
    for (number, name) in (0..).zip(&names) {
        fixture.job(&owner, name, due + seconds(number)).await;
    }
    let operator = fixture.run();
    eventually(LONG, || async {
        let status = fixture.status("hourly").await;
        active(&status) == names[2..]
    })
    .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn conditions_follow_the_jobs(env: Environment) {
    let fixture = Fixture::new(&env, "conditions").await;
    let (owner, due) = fixture.hourly("hourly", json!({ "suspend": false })).await;
    // No run is due while this test creates its own Jobs, which are for later times.
    fixture.hands.set(due - seconds(3000));
    let later = |hours| due + SignedDuration::from_hours(hours);
    let operator = fixture.run();
    let check = async |available: (&str, &str),
                       progressing: (&str, &str),
                       degraded: (&str, &str)| {
        let wanted =
            [available, progressing, degraded].map(|(status, reason)| pair(status, reason));
        eventually(LONG, || async {
            let status = fixture.status("hourly").await;
            let found = ["Available", "Progressing", "Degraded"].map(|type_| said(&status, type_));
            match found == wanted {
                true => Ok(()),
                false => Err(format!("want {wanted:?}, found {found:?}")),
            }
        })
        .await;
    };
    let idle = ("False", "NoJobsActive");
    let busy = ("True", "JobsActive");
    let sound = ("False", "AsExpected");
    let failed = ("True", "JobsFailed");
    check(("True", "AllJobsCompleted"), idle, sound).await;

    fixture.job(&owner, "first", later(1)).await;
    check(("True", "JobsActive"), busy, sound).await;
    fixture.finish("first", "Failed", later(1)).await;
    check(("False", "JobsFailed"), idle, failed).await;

    // The next success resets `Degraded`. In kubebuilder's tutorial, it stays forever.
    fixture.job(&owner, "second", later(2)).await;
    check(("False", "JobsFailed"), busy, failed).await;
    fixture.finish("second", "Complete", later(2)).await;
    check(("True", "AllJobsCompleted"), idle, sound).await;

    let status = fixture.status("hourly").await;
    assert_eq!(status.conditions.len(), 3);
    let object = fixture.cron_jobs().get("hourly").await.unwrap();
    for condition in &status.conditions {
        assert_eq!(condition.observed_generation, object.metadata.generation);
    }
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn created_job_is_reported(env: Environment) {
    let fixture = Fixture::new(&env, "created").await;
    let (_, due) = fixture.hourly("hourly", json!({})).await;
    let seen = follow(&fixture, "hourly").await;
    let operator = fixture.run();
    eventually(LONG, || async {
        let course = course(&seen, "Progressing");
        course.contains(&pair("True", "JobCreated"))
    })
    .await;
    let statuses = seen.lock().unwrap().clone();
    let created = statuses
        .iter()
        .find(|status| said(status, "Progressing").1 == "JobCreated");
    let created = created.unwrap();
    let job = format!("hourly-{}", due.as_second());
    assert_eq!(active(created), [&*job]);
    assert_eq!(
        created.last_schedule_time.as_ref().map(|time| time.0),
        Some(due)
    );
    let condition = conditions::find(&created.conditions, "Progressing").unwrap();
    assert_eq!(condition.message, format!("Created job {job}"));
    fixture
        .await_condition("hourly", ("Progressing", "True", "JobsActive"))
        .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn rejected_job_is_reported_until_it_is_created(env: Environment) {
    let fixture = Fixture::new(&env, "refused").await;
    refuse_jobs(&fixture).await;
    let (_, due) = fixture.hourly("hourly", json!({})).await;
    let operator = fixture.run();
    let refused = ("Degraded", "True", "JobCreationFailed");
    let status = fixture.await_condition("hourly", refused).await;
    let message = &conditions::find(&status.conditions, "Degraded")
        .unwrap()
        .message;
    let job = format!("hourly-{}", due.as_second());
    assert!(
        message.starts_with(&format!("Failed to create job {job}: ")),
        "{message}"
    );
    assert!(message.contains("no Jobs today"), "{message}");
    assert_eq!(status.last_schedule_time, None, "nothing was started");

    // The operator retries by itself.
    allow_jobs(&fixture).await;
    fixture.await_jobs(&[&job]).await;
    fixture
        .await_condition("hourly", ("Degraded", "False", "AsExpected"))
        .await;
    operator.stop().await;
}

/// Makes the API server reject Jobs in this namespace, and waits until it does.
async fn refuse_jobs(fixture: &Fixture) {
    let name = &fixture.namespace;
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["batch"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["jobs"],
            }]},
            "validations": [{ "expression": "false", "message": "no Jobs today" }],
        },
    }))
    .unwrap();
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": {
                "matchLabels": { "kubernetes.io/metadata.name": name },
            }},
        },
    }))
    .unwrap();
    let params = PostParams::default();
    Api::all(fixture.client.clone())
        .create(&params, &policy)
        .await
        .unwrap();
    Api::all(fixture.client.clone())
        .create(&params, &binding)
        .await
        .unwrap();
    // The API server compiles policies in the background.
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let probe = serde_json::from_value(job("probe")).unwrap();
    eventually(LONG, || async {
        let refused = fixture.jobs().create(&params, &probe).await;
        refused.is_err_and(|error| error.to_string().contains("no Jobs today"))
    })
    .await;
}

async fn allow_jobs(fixture: &Fixture) {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(fixture.client.clone());
    let deleted = bindings
        .delete(&fixture.namespace, &DeleteParams::default())
        .await;
    deleted.unwrap();
}
