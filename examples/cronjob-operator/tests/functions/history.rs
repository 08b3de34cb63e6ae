// SPDX-License-Identifier: Apache-2.0

//! The history of a CronJob, which consists of its Jobs.

use std::sync::Arc;

use cronjob_operator::controller::cron_job::history::{
    History, SCHEDULED_AT, controller_of, scheduled_at,
};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
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
fn jobs_are_ordered_by_the_time_of_their_run() {
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
fn recorded_run_outlives_its_job() {
    let recorded = scheduled_at(&job("", 12, None));
    let older = job("a", 11, Some("Complete"));
    assert_eq!(History::new(vec![older], recorded).last_scheduled, recorded);
    assert_eq!(History::new(Vec::new(), recorded).last_scheduled, recorded);
}

#[test]
fn success_resets_earlier_failures() {
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
fn only_jobs_controlled_by_a_cron_job_are_indexed() {
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
