// SPDX-License-Identifier: Apache-2.0

//! The webhooks that the API server calls before it stores a CronJob.

use cronjob_operator::api::v1::{ConcurrencyPolicy, CronJob};
use cronjob_operator::webhook;
use kube::Error;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use rbuilder::Manager;
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::testing::{self, Running};
use serde_json::{Value, json};

use super::support::{Fixture, LONG, cron_job};

/// A running operator whose webhooks the API server calls for one namespace.
struct Served {
    fixture: Fixture,
    operator: Running,
    /// Deletes the certificate files when dropped.
    _server: WebhookServer,
}

async fn serve(env: &Environment, prefix: &str) -> Served {
    let fixture = Fixture::new(env, prefix).await;
    let manifests = "config/webhook/manifests.yaml";
    let server = env
        .install_webhooks(manifests, &fixture.namespace)
        .await
        .unwrap();
    let args = server.args(fixture.args());
    let manager = Manager::with_client("tests", fixture.client.clone(), args);
    let operator = testing::run(webhook::register(manager));
    server.wait_until_served().await.unwrap();
    let served = Served {
        fixture,
        operator,
        _server: server,
    };
    // The API server observes a new configuration with a delay.
    eventually(LONG, || async {
        served.create(cron_job("probe", "foo"), true).await.is_err()
    })
    .await;
    served
}

impl Served {
    async fn create(&self, object: Value, dry_run: bool) -> Result<CronJob, Status> {
        let params = PostParams {
            dry_run,
            ..PostParams::default()
        };
        let object = serde_json::from_value(object).unwrap();
        self.fixture
            .cron_jobs()
            .create(&params, &object)
            .await
            .map_err(status_of)
    }

    async fn update(&self, name: &str, patch: Value) -> Result<CronJob, Status> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.fixture.cron_jobs().patch(name, &params, &patch).await;
        patched.map_err(status_of)
    }
}

fn status_of(error: Error) -> Status {
    match error {
        Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}

/// Returns the fields that a rejection names, with the problem of each.
fn causes(refused: Result<CronJob, Status>) -> Vec<(String, String)> {
    let status = refused.unwrap_err();
    assert_eq!(
        (status.code, &*status.reason),
        (422, "Invalid"),
        "{status:?}"
    );
    let causes = status.details.unwrap().causes.into_iter();
    causes.map(|cause| (cause.field, cause.message)).collect()
}

fn cause(field: &str, message: &str) -> (String, String) {
    (field.to_owned(), message.to_owned())
}

#[rbuilder::envtest::test]
async fn omitted_fields_are_defaulted(env: Environment) {
    let served = serve(&env, "defaults").await;
    let open = served
        .create(cron_job("open", "@hourly"), false)
        .await
        .unwrap()
        .spec;
    assert_eq!(open.concurrency_policy, ConcurrencyPolicy::Allow);
    assert_eq!(open.suspend, Some(false));
    assert_eq!(open.successful_jobs_history_limit, Some(3));
    assert_eq!(open.failed_jobs_history_limit, Some(1));

    let mut said = cron_job("said", "@hourly");
    said["spec"]["concurrencyPolicy"] = json!("Replace");
    said["spec"]["suspend"] = json!(true);
    said["spec"]["successfulJobsHistoryLimit"] = json!(0);
    let said = served.create(said, false).await.unwrap().spec;
    assert_eq!(said.concurrency_policy, ConcurrencyPolicy::Replace);
    assert_eq!(said.suspend, Some(true));
    assert_eq!(said.successful_jobs_history_limit, Some(0));
    assert_eq!(said.failed_jobs_history_limit, Some(1));

    let emptied = json!({ "spec": { "failedJobsHistoryLimit": null } });
    let updated = served.update("said", emptied).await.unwrap().spec;
    assert_eq!(updated.failed_jobs_history_limit, Some(1));
    served.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn invalid_fields_are_named(env: Environment) {
    let served = serve(&env, "mistakes").await;
    let create =
        async |name: &str, schedule: &str| served.create(cron_job(name, schedule), false).await;
    create(&"n".repeat(52), "*/5 * * * *").await.unwrap();
    let long = || cause("metadata.name", "must be no more than 52 characters");
    let foo = || cause("spec.schedule", "Expected exactly 5 fields, found 1: foo");
    let too_long = "n".repeat(53);
    assert_eq!(causes(create(&too_long, "@daily").await), [long()]);
    assert_eq!(causes(create("short", "foo").await), [foo()]);
    assert_eq!(causes(create(&too_long, "foo").await), [long(), foo()]);

    create("nightly", "0 3 * * *").await.unwrap();
    let changed = json!({ "spec": { "schedule": "foo" } });
    assert_eq!(causes(served.update("nightly", changed).await), [foo()]);
    let changed = json!({ "spec": { "schedule": "0 4 * * *" } });
    served.update("nightly", changed).await.unwrap();
    let deleted = served
        .fixture
        .cron_jobs()
        .delete("nightly", &DeleteParams::default())
        .await;
    deleted.unwrap();
    served.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn schema_is_enforced_without_webhooks(env: Environment) {
    let fixture = Fixture::new(&env, "schema").await;
    let check = async |field: &str, value: Value, expected: &str| {
        let mut object = cron_job("wrong", "@daily");
        object["spec"][field] = value;
        let object: Result<CronJob, _> = serde_json::from_value(object.clone()).map_err(|_| object);
        let refused = match object {
            Ok(object) => {
                fixture
                    .cron_jobs()
                    .create(&PostParams::default(), &object)
                    .await
            }
            Err(object) => create_raw(&fixture, object).await,
        };
        let status = status_of(refused.unwrap_err());
        assert_eq!(status.code, 422, "{field}: {status:?}");
        assert!(status.message.contains(expected), "{}", status.message);
    };
    check("schedule", Value::Null, "spec.schedule: Required value").await;
    check(
        "jobTemplate",
        Value::Null,
        "spec.jobTemplate: Required value",
    )
    .await;
    check(
        "startingDeadlineSeconds",
        json!(-1),
        "greater than or equal to 0",
    )
    .await;
    check(
        "successfulJobsHistoryLimit",
        json!(-1),
        "greater than or equal to 0",
    )
    .await;
    check(
        "failedJobsHistoryLimit",
        json!(-1),
        "greater than or equal to 0",
    )
    .await;
    check(
        "concurrencyPolicy",
        json!("Hope"),
        "supported values: \"Allow\", \"Forbid\", \"Replace\"",
    )
    .await;
}

/// Creates an object that is not a valid `CronJob` in Rust.
async fn create_raw(fixture: &Fixture, object: Value) -> Result<CronJob, Error> {
    let path = format!(
        "/apis/batch.tutorial.kubebuilder.io/v1/namespaces/{}/cronjobs",
        fixture.namespace
    );
    let request = kube::core::Request::new(path);
    let body = serde_json::to_vec(&object).unwrap();
    let request = request.create(&PostParams::default(), body).unwrap();
    fixture.client.request(request).await
}
