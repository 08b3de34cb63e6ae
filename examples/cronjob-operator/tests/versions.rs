// SPDX-License-Identifier: Apache-2.0

//! Two versions of one kind: what is written in one version can be read in the other (promise 13 of
//! `tests/tutorial/main.rs`).
//!
//! A single operator converts all objects of the kind. So these tests run one after the other, and
//! not concurrently with the tutorial's.

use std::time::Duration;

use cronjob_operator::api::{v1, v2};
use cronjob_operator::{controller, webhook};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::testing::{self, Running};
use rbuilder::{Manager, ManagerArgs, conditions};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

const LONG: Duration = Duration::from_secs(30);

/// Held by the test whose operator converts.
static TURN: Mutex<()> = Mutex::const_new(());

/// A running operator that the API server calls for conversions and validation.
struct Served {
    first: Api<v1::CronJob>,
    second: Api<v2::CronJob>,
    operator: Running,
    /// Deletes the certificate files when dropped.
    _server: WebhookServer,
    _turn: MutexGuard<'static, ()>,
}

async fn serve(env: &Environment, prefix: &str) -> Served {
    let turn = TURN.lock().await;
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace(prefix).await.unwrap();
    let server = env
        .install_webhooks("config/webhook/manifests.yaml", &namespace)
        .await
        .unwrap();
    server
        .convert("cronjobs.batch.tutorial.kubebuilder.io")
        .await
        .unwrap();
    let args = server.args(ManagerArgs {
        watch_namespace: namespace.clone(),
        ..ManagerArgs::for_tests()
    });
    let manager = Manager::with_client("tests", env.client(), args);
    let operator = testing::run(controller::register(webhook::register(manager)));
    server.wait_until_served().await.unwrap();
    let served = Served {
        first: Api::namespaced(env.client(), &namespace),
        second: Api::namespaced(env.client(), &namespace),
        operator,
        _server: server,
        _turn: turn,
    };
    // The API server observes a new configuration with a delay.
    eventually(LONG, || async {
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let probe = second("probe", json!({ "minute": "foo" }));
        let refused = served.second.create(&dry_run, &probe).await;
        refused.is_err_and(|error| error.to_string().contains("foo * * * *"))
    })
    .await;
    served
}

fn first(name: &str, schedule: &str) -> v1::CronJob {
    object(name, json!(schedule))
}

fn second(name: &str, schedule: Value) -> v2::CronJob {
    object(name, schedule)
}

fn object<K: serde::de::DeserializeOwned>(name: &str, schedule: Value) -> K {
    let container = json!({ "name": "c", "image": "busybox" });
    let pod = json!({ "spec": { "restartPolicy": "Never", "containers": [container] } });
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "schedule": schedule, "suspend": true, "jobTemplate": { "spec": { "template": pod } },
        },
    }))
    .unwrap()
}

/// Returns the fields of a schedule in v2.
fn fields(cron_job: &v2::CronJob) -> Value {
    json!(cron_job.spec.schedule)
}

#[rbuilder::envtest::test]
async fn each_version_can_be_read_in_the_other(env: Environment) {
    let served = serve(&env, "both").await;
    let params = PostParams::default();

    let written = second(
        "new",
        json!({ "minute": "*/5", "hour": "2", "dayOfWeek": "MON-FRI" }),
    );
    let written = served.second.create(&params, &written).await.unwrap();
    let read = served.first.get("new").await.unwrap();
    assert_eq!(read.spec.schedule, "*/5 2 * * MON-FRI");
    assert_eq!(read.uid(), written.uid());
    let again = served.second.get("new").await.unwrap();
    assert_eq!(again.spec, written.spec, "nothing was lost");

    let written = first("old", "30 4 1 * *");
    served.first.create(&params, &written).await.unwrap();
    let read = served.second.get("old").await.unwrap();
    let expected = json!({
        "minute": "30", "hour": "4", "dayOfMonth": "1", "month": "*", "dayOfWeek": "*",
    });
    assert_eq!(fields(&read), expected);
    served.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn shorthand_survives_a_change_in_v2(env: Environment) {
    let served = serve(&env, "shorthand").await;
    let params = PostParams::default();
    served
        .first
        .create(&params, &first("hourly", "@hourly"))
        .await
        .unwrap();
    // Update the whole object, like clients of v2. Retry if the operator writes the status in
    // between.
    eventually(LONG, || async {
        let mut changed = served.second.get("hourly").await?;
        assert_eq!(fields(&changed)["minute"], "0");
        changed.spec.starting_deadline_seconds = Some(60);
        served.second.replace("hourly", &params, &changed).await
    })
    .await;
    let kept = served.first.get("hourly").await.unwrap();
    assert_eq!(kept.spec.schedule, "@hourly");
    assert_eq!(kept.spec.starting_deadline_seconds, Some(60));

    let later = Patch::Merge(json!({ "spec": { "schedule": { "minute": "15" } } }));
    served
        .second
        .patch("hourly", &PatchParams::default(), &later)
        .await
        .unwrap();
    let kept = served.first.get("hourly").await.unwrap();
    assert_eq!(kept.spec.schedule, "15 * * * *");
    assert!(kept.annotations().is_empty(), "{:?}", kept.annotations());
    served.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn v2_objects_are_validated_and_reconciled(env: Environment) {
    let served = serve(&env, "judged").await;
    let params = PostParams::default();
    let wrong = second("wrong", json!({ "minute": "60" }));
    let refused = served
        .second
        .create(&params, &wrong)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("spec.schedule: "), "{refused}");
    assert!(refused.contains("must be in range 0..=59"), "{refused}");
    // The webhooks run before the schema is checked, so the pattern of the field does not reject
    // this.
    let wrong = second("wrong", json!({ "minute": "0 0" }));
    let refused = served
        .second
        .create(&params, &wrong)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("Expected exactly 5 fields, found 6: 0 0 * * * *"),
        "{refused}"
    );

    let right = served
        .second
        .create(&params, &second("right", json!({})))
        .await
        .unwrap();
    assert_eq!(
        right.spec.successful_jobs_history_limit,
        Some(3),
        "defaulted by v1"
    );
    assert_eq!(fields(&right)["minute"], "*");
    eventually(LONG, || async {
        let status = served
            .second
            .get("right")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        conditions::is_false(&status.conditions, "Available")
    })
    .await;
    served.operator.stop().await;
}
