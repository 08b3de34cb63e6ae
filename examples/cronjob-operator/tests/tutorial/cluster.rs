// SPDX-License-Identifier: Apache-2.0

//! The operator in a test environment with controllers and nodes, where Jobs run and complete as in
//! a cluster.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

use super::support::{Fixture, LONG, seconds};

/// Long enough for the garbage collector, which discovers the kinds of new CRDs every 30 seconds
/// and retries failed deletions.
const COLLECTION: Duration = Duration::from_secs(180);

/// Waits until a Job has succeeded.
async fn await_success(fixture: &Fixture, name: &str) {
    eventually(LONG, || async {
        let job = fixture
            .jobs()
            .get(name)
            .await
            .map_err(|error| error.to_string())?;
        let status = job.status.unwrap_or_default();
        match (status.succeeded, &status.completion_time) {
            (Some(1), Some(_)) => Ok(()),
            _ => Err(format!("{name}: {status:?}")),
        }
    })
    .await;
}

/// Waits until this number of Pods exists and all of them have succeeded.
async fn await_pods(fixture: &Fixture, count: usize, timeout: Duration) {
    let pods: Api<Pod> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    eventually(timeout, || async {
        let found = pods.list(&ListParams::default()).await.unwrap();
        let phases = found
            .iter()
            .filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
        let phases: Vec<_> = phases.collect();
        match phases == vec!["Succeeded"; count] {
            true => Ok(()),
            false => Err(format!(
                "expected {count} Pods that succeeded, found {phases:?}"
            )),
        }
    })
    .await;
}

#[rbuilder::envtest::test(controllers)]
async fn jobs_complete_and_the_newest_are_kept() {
    let env = Environment::builder()
        .controllers()
        .nodes(3)
        .start()
        .await
        .unwrap();
    let fixture = Fixture::new(&env, "cluster").await;
    let limit = json!({ "successfulJobsHistoryLimit": 2 });
    let (_, first) = fixture.hourly("hourly", limit).await;
    let operator = fixture.run();

    let runs = (0..4).map(|hours| first + SignedDuration::from_hours(hours));
    let runs = runs.map(|due| (due, format!("hourly-{}", due.as_second())));
    let runs: Vec<_> = runs.collect();
    for (due, job) in &runs {
        fixture.hands.set(*due + seconds(5));
        fixture.poke("hourly").await;
        await_success(&fixture, job).await;
    }
    fixture.await_jobs(&[&runs[2].1, &runs[3].1]).await;
    // The Pods of deleted Jobs are deleted, too.
    await_pods(&fixture, 2, LONG).await;
    let completed = ("Available", "True", "AllJobsCompleted");
    let status = fixture.await_condition("hourly", completed).await;
    assert_eq!(
        status.last_schedule_time.map(|time| time.0),
        Some(runs[3].0)
    );
    fixture.await_active("hourly", &[]).await;

    let params = DeleteParams::background();
    fixture.cron_jobs().delete("hourly", &params).await.unwrap();
    await_pods(&fixture, 0, COLLECTION).await;
    fixture.await_jobs(&[]).await;
    operator.stop().await;
    env.stop().await.unwrap();
}
