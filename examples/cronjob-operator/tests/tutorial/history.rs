// SPDX-License-Identifier: Apache-2.0

//! Which finished Jobs are kept.

use jiff::SignedDuration;
use rbuilder::envtest::Environment;
use serde_json::json;

use super::support::{Fixture, seconds};

#[rbuilder::envtest::test]
async fn newest_finished_jobs_are_kept(env: Environment) {
    let fixture = Fixture::new(&env, "history").await;
    let spec = json!({
        "suspend": true, "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
    });
    let (owner, due) = fixture.hourly("hourly", spec).await;
    // Neither the names nor the order of creation tell which Job is the newest.
    for (name, how, hours) in [
        ("good-b", "Complete", 3),
        ("good-c", "Complete", 1),
        ("good-a", "Complete", 2),
        ("bad-c", "Failed", 4),
        ("bad-a", "Failed", 6),
        ("bad-b", "Failed", 5),
    ] {
        let at = due - SignedDuration::from_hours(hours);
        fixture.job(&owner, name, at).await;
        fixture.finish(name, how, at + seconds(30)).await;
    }
    fixture.job(&owner, "running", due - seconds(36000)).await;

    let operator = fixture.run();
    // Foreground and orphan deletion would wait for a garbage collector, which does not run here.
    fixture.await_jobs(&["bad-c", "good-c", "running"]).await;
    fixture.poke("hourly").await;
    fixture.await_rest().await;
    fixture.await_jobs(&["bad-c", "good-c", "running"]).await;

    let fewer = json!({ "spec": { "failedJobsHistoryLimit": 0 } });
    fixture.patch("hourly", fewer).await;
    fixture.await_jobs(&["good-c", "running"]).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn all_jobs_are_kept_without_limits(env: Environment) {
    let fixture = Fixture::new(&env, "unlimited").await;
    let (owner, due) = fixture.hourly("hourly", json!({ "suspend": true })).await;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        fixture.job(&owner, name, due).await;
        fixture.finish(name, "Complete", due).await;
    }
    let operator = fixture.run();
    let suspended = ("Available", "False", "Suspended");
    fixture.await_condition("hourly", suspended).await;
    fixture.await_rest().await;
    fixture.await_jobs(&names).await;
    operator.stop().await;
}
