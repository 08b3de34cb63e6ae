//! Webhooks called by a real API server. The tests are ignored unless `KUBEBUILDER_ASSETS` is set.

#[path = "webhooks/events.rs"]
mod events;
#[path = "webhooks/permissions.rs"]
mod permissions;

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, ResourceExt};
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::webhook::{AdmissionRequest, Warnings};
use rbuilder::{Action, Controller, Ctx, Denied, Error, Manager, ManagerArgs, Result, Task, Webhook};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(30);

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "webhooks.example.com",
    version = "v1",
    kind = "Letter",
    namespaced,
    schema = "disabled"
)]
struct LetterSpec {
    /// Name and street, separated by a comma.
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<i32>,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "webhooks.example.com",
        version = "v2",
        kind = "Letter",
        namespaced,
        schema = "disabled"
    )]
    pub(crate) struct LetterSpec {
        pub(crate) name: String,
        pub(crate) street: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) copies: Option<i32>,
    }
}

impl From<v2::Letter> for Letter {
    fn from(letter: v2::Letter) -> Self {
        let v2::LetterSpec { name, street, copies } = letter.spec;
        let to = format!("{name}, {street}");
        Letter {
            metadata: letter.metadata,
            spec: LetterSpec { to, copies },
        }
    }
}

impl TryFrom<Letter> for v2::Letter {
    type Error = String;

    fn try_from(letter: Letter) -> Result<Self, String> {
        let (name, street) = letter.spec.to.split_once(", ").ok_or("spec.to names no street")?;
        let (name, street) = (name.to_owned(), street.to_owned());
        Ok(v2::Letter {
            metadata: letter.metadata,
            spec: v2::LetterSpec {
                name,
                street,
                copies: letter.spec.copies,
            },
        })
    }
}

fn default(letter: &mut Letter, _request: &AdmissionRequest) {
    letter.spec.copies.get_or_insert(1);
}

fn validate(new: &Letter, old: Option<&Letter>, request: &AdmissionRequest) -> Result<Warnings, Denied> {
    if request.operation == kube::core::admission::Operation::Delete {
        return match new.annotations().contains_key("keep") {
            true => Err(Denied::forbidden("the letter is to be kept")),
            false => Ok(Warnings::new()),
        };
    }
    if !new.spec.to.contains(", ") {
        return Err(Denied::invalid("spec.to", "wanted `name, street`"));
    }
    match old {
        Some(old) if old.spec.to != new.spec.to => Err(Denied::invalid("spec.to", "cannot be changed")),
        _ if new.spec.copies > Some(9) => Ok(vec!["that is a lot of paper".to_owned()]),
        _ => Ok(Warnings::new()),
    }
}

fn letter(name: &str, to: &str) -> Letter {
    let to = to.to_owned();
    Letter::new(name, LetterSpec { to, copies: None })
}

/// A running operator whose webhooks are only called for a single namespace.
struct Served {
    env: Environment,
    namespace: String,
    /// Deletes the certificate on drop.
    _server: WebhookServer,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

async fn serve(env: Environment, with: impl FnOnce(Manager) -> Manager) -> Served {
    env.install_crds("tests/webhooks/crd.yaml").await.unwrap();
    let namespace = env.namespace("webhooks").await.unwrap();
    let server = env
        .install_webhooks("tests/webhooks/manifests.yaml", &namespace)
        .await
        .unwrap();
    let args = server.args(ManagerArgs {
        watch_namespace: namespace.clone(),
        ..ManagerArgs::for_tests()
    });
    let manager = with(Manager::with_client("webhooks.example.com", env.client(), args));
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
    fn letters(&self) -> Api<Letter> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    /// Waits until the API server has observed the configuration and calls the webhooks.
    async fn until_asked(&self) {
        eventually(SOON, || async {
            let params = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let probe = self.letters().create(&params, &letter("probe", "nowhere")).await;
            let message = probe.err().map(|error| error.to_string()).unwrap_or_default();
            message.contains("wanted `name, street`")
        })
        .await;
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.ended.await.unwrap().unwrap();
    }
}

fn status_of(error: kube::Error) -> kube::core::Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}

/// Guarantee 16: webhooks set defaults and preserve unknown fields, errors contain the field, and
/// validators receive objects that are about to be deleted.
#[rbuilder::envtest::test]
async fn admission_webhooks_run_before_storage(env: Environment) {
    let admission =
        |manager: Manager| manager.webhook(Webhook::<Letter>::new().defaulter(default).validator(validate));
    let served = serve(env, admission).await;
    served.until_asked().await;
    let letters = served.letters();

    let made = letters
        .create(&PostParams::default(), &letter("first", "Ada, Main Street"))
        .await
        .unwrap();
    assert_eq!(made.spec.copies, Some(1));

    let resource = kube::api::ApiResource::erase::<Letter>(&());
    let raw: Api<DynamicObject> = Api::namespaced_with(served.env.client(), &served.namespace, &resource);
    let mut unknown = DynamicObject::new("unknown", &resource);
    unknown.data = json!({ "spec": { "to": "Ada, Main Street", "future": { "deep": [1] } } });
    let kept = raw.create(&PostParams::default(), &unknown).await.unwrap();
    assert_eq!(
        kept.data["spec"],
        json!({ "to": "Ada, Main Street", "copies": 1, "future": { "deep": [1] } })
    );

    let wrong = letters
        .create(&PostParams::default(), &letter("wrong", "Ada"))
        .await;
    let status = status_of(wrong.unwrap_err());
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let details = status.details.as_ref().unwrap();
    let causes = &details.causes;
    assert_eq!(
        (causes[0].field.as_str(), causes[0].message.as_str()),
        ("spec.to", "wanted `name, street`")
    );
    // Without the details, kubectl just prints "The request is invalid".
    assert_eq!((&*details.kind, &*details.name), ("Letter", "wrong"));
    let said = format!("Letter.{} \"wrong\" is invalid: spec.to: wanted", details.group);
    assert!(
        !details.group.is_empty() && status.message.contains(&said),
        "{status:?}"
    );

    let patch = Patch::Merge(json!({ "spec": { "to": "Bob, Main Street" } }));
    let changed = letters.patch("first", &PatchParams::default(), &patch).await;
    assert!(
        status_of(changed.unwrap_err())
            .message
            .contains("cannot be changed")
    );

    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "keep": "yes" } } }));
    letters
        .patch("first", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let deleted = letters.delete("first", &DeleteParams::default()).await;
    assert_eq!(status_of(deleted.unwrap_err()).code, 403);
    letters.delete("unknown", &DeleteParams::default()).await.unwrap();
    served.stop().await;
}

/// Guarantee 12: the cache of a kind that the operator converts itself can sync, because webhooks
/// are served first. Objects stored in one version can be read and written in the other version.
#[rbuilder::envtest::test]
async fn operator_starts_with_stored_objects_of_the_other_version(env: Environment) {
    async fn reconcile(letter: Arc<v2::Letter>, ctx: Ctx<Arc<std::sync::Mutex<Vec<String>>>>) -> Result {
        ctx.lock().unwrap().push(letter.spec.street.clone());
        Ok(Action::await_change())
    }
    env.install_crds("tests/webhooks/crd.yaml").await.unwrap();
    let namespace = env.namespace("conversions").await.unwrap();
    let first: Api<Letter> = Api::namespaced(env.client(), &namespace);
    // The conversion webhook isn't running yet.
    first
        .create(&PostParams::default(), &letter("old", "Ada, Main Street"))
        .await
        .unwrap();
    let server = env.webhook_server().unwrap();
    server.convert("letters.webhooks.example.com").await.unwrap();
    // Another test installs the same CRD, which must not reset the webhook configuration.
    env.install_crds("tests/webhooks/crd.yaml").await.unwrap();
    let seen: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let args = server.args(ManagerArgs {
        watch_namespace: namespace.clone(),
        ..ManagerArgs::for_tests()
    });
    let manager = Manager::with_client("conversions.example.com", env.client(), args)
        .webhook(Webhook::<Letter>::new().spoke::<v2::Letter>())
        .controller(Controller::new(reconcile, seen.clone()));
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    eventually(SOON, || async {
        seen.lock().unwrap().iter().any(|street| street == "Main Street")
    })
    .await;

    let second: Api<v2::Letter> = Api::namespaced(env.client(), &namespace);
    let spec = v2::LetterSpec {
        name: "Bob".to_owned(),
        street: "High Street".to_owned(),
        copies: Some(2),
    };
    eventually(SOON, || async {
        let made = second
            .create(&PostParams::default(), &v2::Letter::new("new", spec.clone()))
            .await;
        made.is_ok() || second.get_opt("new").await.is_ok_and(|found| found.is_some())
    })
    .await;
    assert_eq!(first.get("new").await.unwrap().spec.to, "Bob, High Street");
    assert_eq!(second.get("new").await.unwrap().spec, spec);
    let bad = first
        .create(&PostParams::default(), &letter("bad", "nowhere"))
        .await;
    // The object is stored as is. Reading it in the other version fails with the reason.
    bad.unwrap();
    let error = second.get("bad").await.unwrap_err().to_string();
    assert!(error.contains("spec.to names no street"), "{error}");
    stop.send(()).unwrap();
    ended.await.unwrap().unwrap();
}

#[rbuilder::envtest::test]
async fn users_have_the_permissions_that_rbac_grants(env: Environment) {
    let namespace = env.namespace("users").await.unwrap();
    let user = env.user("reader", &["readers"]).unwrap();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(user.client(), &namespace);
    let refused = maps.list(&Default::default()).await.unwrap_err();
    assert!(
        status_of(refused)
            .message
            .contains("User \"reader\" cannot list resource"),
        "rights from nowhere"
    );
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] });
    let role: k8s_openapi::api::rbac::v1::Role =
        serde_json::from_value(json!({ "metadata": { "name": "read" }, "rules": [rule] })).unwrap();
    let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "read" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers" }],
    }))
    .unwrap();
    let params = PostParams::default();
    Api::namespaced(env.client(), &namespace)
        .create(&params, &role)
        .await
        .unwrap();
    Api::namespaced(env.client(), &namespace)
        .create(&params, &binding)
        .await
        .unwrap();
    eventually(SOON, || async { maps.list(&Default::default()).await.is_ok() }).await;
    assert!(maps.delete("any", &DeleteParams::default()).await.is_err());
    assert_eq!(env.user("", &[]).unwrap_err().to_string(), "a user needs a name");
}

/// A developer's machine has no certificate, and the API server can't call webhooks there.
#[rbuilder::envtest::test]
async fn webhooks_can_be_disabled(env: Environment) {
    let start = async |enable_webhooks| {
        let args = ManagerArgs {
            enable_webhooks,
            webhook_cert_path: Some("/no/such/folder".into()),
            ..ManagerArgs::for_tests()
        };
        let (started, has_started) = oneshot::channel();
        let task = Task::new("started", |_| async move {
            let _ = started.send(());
            Ok::<_, Error>(())
        });
        Manager::with_client("webhooks.example.com", env.client(), args)
            .webhook(Webhook::<Letter>::new().defaulter(default))
            .task(task)
            .start_until(async {
                let _ = has_started.await;
            })
            .await
    };
    start(false).await.unwrap();
    let refused = start(true).await.unwrap_err().to_string();
    assert!(refused.contains("--webhook-cert-path"), "{refused}");
}
