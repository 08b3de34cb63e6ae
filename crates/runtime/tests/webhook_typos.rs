//! How a real API server responds to invalid objects, which must be the same with and without a
//! defaulting webhook, a validating webhook and a conversion. The tests are ignored unless
//! `KUBEBUILDER_ASSETS` is set.

use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::core::admission::AdmissionResponse;
use kube::{Api, CustomResource};
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::webhook::{AdmissionRequest, Operation, Warnings};
use rbuilder::{Denied, Manager, ManagerArgs, Result, Webhook};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(30);

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
enum Mode {
    Daily,
    Weekly,
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "typos.example.com",
    version = "v1",
    kind = "Backup",
    namespaced,
    schema = "disabled"
)]
struct BackupSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<kube::core::Duration>,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "typos.example.com",
        version = "v2",
        kind = "Backup",
        namespaced,
        schema = "disabled"
    )]
    pub(crate) struct BackupSpec {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) cycle: Option<Mode>,
        pub(crate) source: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) count: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) every: Option<kube::core::Duration>,
    }
}

impl From<v2::Backup> for Backup {
    fn from(backup: v2::Backup) -> Self {
        let spec = BackupSpec {
            mode: backup.spec.cycle,
            database: backup.spec.source,
            copies: backup.spec.count,
            every: backup.spec.every,
        };
        Backup {
            metadata: backup.metadata,
            spec,
        }
    }
}

impl From<Backup> for v2::Backup {
    fn from(backup: Backup) -> Self {
        let spec = v2::BackupSpec {
            cycle: backup.spec.mode,
            source: backup.spec.database,
            count: backup.spec.copies,
            every: backup.spec.every,
        };
        v2::Backup {
            metadata: backup.metadata,
            spec,
        }
    }
}

fn default(backup: &mut Backup, _request: &AdmissionRequest) {
    backup.spec.copies.get_or_insert(1);
}

fn validate(new: &Backup, old: Option<&Backup>, request: &AdmissionRequest) -> Result<Warnings, Denied> {
    if request.operation == Operation::Delete {
        let old = old.ok_or("a deletion has an old object")?;
        assert_eq!(old.spec, new.spec);
    }
    Ok(Warnings::new())
}

/// A webhook of another operator.
async fn label(request: AdmissionRequest) -> AdmissionResponse {
    let object = request.object.as_ref().unwrap();
    let has_labels = object.metadata.labels.is_some();
    let path = if has_labels {
        "/metadata/labels/labeled"
    } else {
        "/metadata/labels"
    };
    let value = if has_labels {
        json!("yes")
    } else {
        json!({ "labeled": "yes" })
    };
    let patch = json!([{ "op": "add", "path": path, "value": value }]);
    let patch = serde_json::from_value(patch).unwrap();
    AdmissionResponse::from(&request).with_patch(patch).unwrap()
}

struct Served {
    env: Environment,
    namespace: String,
    /// Deletes the certificate on drop.
    _server: WebhookServer,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

/// Stores an object that can't be decoded into its Rust type. Must be called before installing any
/// webhooks.
async fn store_bad(env: &Environment, namespace: &str, name: &str) {
    let backups: Api<DynamicObject> = Api::namespaced_with(env.client(), namespace, &resource("v1"));
    let mut object = DynamicObject::new(name, &resource("v1"));
    object.data = json!({ "spec": { "database": "db", "every": "x" } });
    backups.create(&PostParams::default(), &object).await.unwrap();
}

async fn serve(env: Environment, namespace: String) -> Served {
    let server = env
        .install_webhooks("tests/webhook_typos/manifests.yaml", &namespace)
        .await
        .unwrap();
    server.convert("backups.typos.example.com").await.unwrap();
    let args = server.args(ManagerArgs {
        watch_namespace: namespace.clone(),
        ..ManagerArgs::for_tests()
    });
    let webhook = Webhook::<Backup>::new()
        .defaulter(default)
        .validator(validate)
        .spoke::<v2::Backup>();
    let manager = Manager::with_client("typos.example.com", env.client(), args)
        .webhook(webhook)
        .raw_webhook("/label", label);
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    server.wait_until_served().await.unwrap();
    Served {
        env,
        namespace,
        _server: server,
        stop,
        ended,
    }
}

impl Served {
    fn backups(&self, version: &str) -> Api<DynamicObject> {
        let resource = resource(version);
        Api::namespaced_with(self.env.client(), &self.namespace, &resource)
    }

    async fn create(&self, version: &str, name: &str, spec: Value) -> Result<DynamicObject, Box<Status>> {
        let mut object = DynamicObject::new(name, &resource(version));
        object.data = json!({ "spec": spec });
        let created = self
            .backups(version)
            .create(&PostParams::default(), &object)
            .await;
        created.map_err(status_of)
    }

    async fn patch(&self, version: &str, name: &str, spec: Value) -> Result<DynamicObject, Box<Status>> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let backups = self.backups(version);
        let patched = backups.patch(name, &PatchParams::default(), &patch).await;
        patched.map_err(status_of)
    }
}

fn resource(version: &str) -> ApiResource {
    match version {
        "v1" => ApiResource::erase::<Backup>(&()),
        _ => ApiResource::erase::<v2::Backup>(&()),
    }
}

fn status_of(error: kube::Error) -> Box<Status> {
    match error {
        kube::Error::Api(status) => status,
        other => panic!("{other}"),
    }
}

/// Asserts that the API server reports exactly these fields.
#[track_caller]
fn assert_invalid(result: Result<DynamicObject, Box<Status>>, expected: &[&str]) {
    let status = result.expect_err("an invalid object");
    assert_eq!((status.code, &*status.reason), (422, "Invalid"), "{status:?}");
    let details = status.details.as_ref().unwrap();
    let mut fields: Vec<&str> = details.causes.iter().map(|cause| &*cause.field).collect();
    fields.sort_unstable();
    assert_eq!(fields, expected, "{status:?}");
}

#[rbuilder::envtest::test]
async fn webhooks_do_not_change_the_response_to_invalid_objects(env: Environment) {
    env.install_crds("tests/webhook_typos/crd.yaml").await.unwrap();
    let namespace = env.namespace("typos").await.unwrap();
    for name in ["corrected", "deleted"] {
        store_bad(&env, &namespace, name).await;
    }
    let served = serve(env, namespace).await;
    // Wait until the webhooks are being called.
    eventually(SOON, || async {
        let created = served
            .create("v2", "good", json!({ "cycle": "Daily", "source": "db" }))
            .await;
        let labeled = created.ok().and_then(|object| object.metadata.labels);
        if labeled.is_some() {
            return true;
        }
        let _ = served
            .backups("v2")
            .delete("good", &DeleteParams::default())
            .await;
        false
    })
    .await;
    let good = served.backups("v1").get("good").await.unwrap();
    assert_eq!(good.data["spec"]["copies"], 1, "defaulted");

    let all = json!({ "mode": "Wekly", "copies": "three" });
    assert_invalid(
        served.create("v1", "bad", all).await,
        &["spec.copies", "spec.database", "spec.mode"],
    );
    let all = json!({ "cycle": "Wekly", "count": "three" });
    assert_invalid(
        served.create("v2", "bad", all).await,
        &["spec.count", "spec.cycle", "spec.source"],
    );
    let all = json!({ "mode": "Wekly", "copies": "three", "database": null });
    assert_invalid(
        served.patch("v1", "good", all).await,
        &["spec.copies", "spec.database", "spec.mode"],
    );
    let all = json!({ "cycle": "Wekly", "count": "three", "source": null });
    assert_invalid(
        served.patch("v2", "good", all).await,
        &["spec.count", "spec.cycle", "spec.source"],
    );
    for (field, wrong) in [
        ("cycle", json!("Wekly")),
        ("count", json!("three")),
        ("source", json!(5)),
    ] {
        let mut spec = json!({ "source": "db" });
        spec[field] = wrong;
        let expected = format!("spec.{field}");
        assert_invalid(served.create("v2", "bad", spec.clone()).await, &[&expected]);
        assert_invalid(served.patch("v2", "good", spec).await, &[&expected]);
    }

    // The schema permits the value, so the validator reports the field.
    let denied = served
        .create("v1", "bad", json!({ "database": "db", "every": "x" }))
        .await;
    assert_invalid(denied, &["spec.every"]);
    let denied = served.patch("v1", "good", json!({ "every": "x" })).await;
    assert_invalid(denied, &["spec.every"]);
    let denied = served.patch("v2", "good", json!({ "every": "x" })).await;
    assert_invalid(denied, &["spec.every"]);
    // After validating the schema, the API server converts an object of the other version to the
    // storage version, which is impossible here.
    let failed = served
        .create("v2", "bad", json!({ "source": "db", "every": "x" }))
        .await
        .unwrap_err();
    assert_eq!(failed.code, 500, "{failed:?}");
    let expected = format!(
        "failed to convert Backup {}/bad from typos.example.com/v2 to typos.example.com/v1: .spec.every: ",
        served.namespace
    );
    assert!(failed.message.contains(&expected), "{failed:?}");

    // An existing invalid object can be fixed or deleted.
    let corrected = served.patch("v1", "corrected", json!({ "every": "1h" })).await;
    assert_eq!(corrected.unwrap().data["spec"]["every"], "1h");
    for name in ["corrected", "deleted"] {
        served
            .backups("v1")
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    // None of the rejected objects may exist.
    let stored = served.backups("v2").list(&Default::default()).await.unwrap();
    assert_eq!(stored.items.len(), 1);
    assert_eq!(stored.items[0].data["spec"]["source"], "db");
    let annotations = stored.items[0].metadata.annotations.clone().unwrap_or_default();
    assert!(annotations.is_empty(), "{annotations:?}");
    served
        .backups("v2")
        .delete("good", &DeleteParams::default())
        .await
        .unwrap();
    let _ = served.stop.send(());
    served.ended.await.unwrap().unwrap();
}
