//! An operator loses one of its permissions while it's running.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::client::{Body, ClientBuilder};
use kube::{Api, Client, ResourceExt};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result, Webhook};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::util::MapRequestLayer;

use crate::{Letter, SOON, default, letter, validate};

type Seen = Arc<std::sync::Mutex<Vec<String>>>;

async fn note(letter: Arc<Letter>, ctx: Ctx<Seen>) -> Result {
    ctx.lock().unwrap().push(letter.name_any());
    Ok(Action::await_change())
}

/// Limits watches to a second, because permissions are only checked when a watch starts.
fn shorten_watch(mut request: Request<Body>) -> Request<Body> {
    const NAME: &str = "timeoutSeconds=";
    let target = request.uri().to_string();
    if let Some((before, after)) = target.split_once(NAME) {
        let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        *request.uri_mut() = format!("{before}{NAME}1{rest}").parse::<Uri>().unwrap();
    }
    request
}

fn client_of(env: &Environment, user: &str) -> Client {
    let config = env.user(user, &[]).unwrap().config();
    let builder = ClientBuilder::try_from(config).unwrap();
    builder.with_layer(&MapRequestLayer::new(shorten_watch)).build()
}

/// Permits the user to read all letters in a namespace.
async fn bind(client: Client, namespace: &str, user: &str) {
    let params = PostParams::default();
    let rule = json!({ "apiGroups": ["webhooks.example.com"], "resources": ["letters"], "verbs": ["list", "watch"] });
    let role: Role =
        serde_json::from_value(json!({ "metadata": { "name": user }, "rules": [rule] })).unwrap();
    let created = Api::namespaced(client.clone(), namespace)
        .create(&params, &role)
        .await;
    assert!(
        created.is_ok() || matches!(created, Err(kube::Error::Api(status)) if status.is_already_exists())
    );
    let group = "rbac.authorization.k8s.io";
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": user },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": user },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    }))
    .unwrap();
    Api::namespaced(client, namespace)
        .create(&params, &binding)
        .await
        .unwrap();
}

async fn readiness(address: &str) -> String {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    answer.await.unwrap_or_default()
}

#[rbuilder::envtest::test]
async fn removed_role_binding_does_not_affect_readiness_or_webhooks(env: Environment) {
    env.install_crds("tests/webhooks/crd.yaml").await.unwrap();
    let (kept, lost) = (
        env.namespace("kept").await.unwrap(),
        env.namespace("lost").await.unwrap(),
    );
    let server = env
        .install_webhooks("tests/webhooks/manifests.yaml", &kept)
        .await
        .unwrap();
    let user = format!("manager-of-{kept}");
    for namespace in [&kept, &lost] {
        bind(env.client(), namespace, &user).await;
    }
    let reserved = ReservedPort::reserve().unwrap();
    let probes = format!("127.0.0.1:{}", reserved.number());
    let args = server.args(ManagerArgs {
        watch_namespace: format!("{kept},{lost}"),
        health_probe_bind_address: probes.clone(),
        ..ManagerArgs::for_tests()
    });
    let seen = Seen::default();
    let manager = Manager::with_client("permissions.example.com", client_of(&env, &user), args)
        .cache_stale_after(Duration::from_secs(2))
        .webhook(Webhook::<Letter>::new().defaulter(default).validator(validate))
        .controller(Controller::new(note, seen.clone()));
    let metrics = manager.metrics().clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ended = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    server.wait_until_served().await.unwrap();
    let letters = |namespace: &str| Api::<Letter>::namespaced(env.client(), namespace);
    let create = async |namespace: &str, name: &str| {
        let new = letter(name, "Ada, Main Street");
        let created = letters(namespace).create(&PostParams::default(), &new).await;
        created.unwrap()
    };
    let is_seen = |name: &str| seen.lock().unwrap().iter().any(|seen| seen == name);
    let until_seen = async |name: &'static str| eventually(SOON, || async { is_seen(name) }).await;
    create(&lost, "before").await;
    until_seen("before").await;
    eventually(SOON, || async {
        readiness(&probes).await.starts_with("HTTP/1.1 200 ")
    })
    .await;

    let bindings: Api<RoleBinding> = Api::namespaced(env.client(), &lost);
    bindings.delete(&user, &DeleteParams::default()).await.unwrap();
    let value = |metric: &str| {
        let text = metrics.text();
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{metric}{{kind=\"Letter.")));
        let value = line
            .and_then(|line| line.rsplit(' ').next())
            .and_then(|value| value.parse().ok());
        value.unwrap_or_default()
    };
    // Wait until the watch counts as stale.
    eventually(SOON, || async {
        let (errors, silent): (f64, f64) = (
            value("rbuilder_cache_watch_errors_total"),
            value("rbuilder_cache_seconds_since_contact"),
        );
        match errors >= 2.0 && silent > 3.0 {
            true => Ok(()),
            false => Err(format!("{errors} errors, no data for {silent} s")),
        }
    })
    .await;
    create(&lost, "unseen").await;
    assert_eq!(
        create(&kept, "after").await.spec.copies,
        Some(1),
        "the defaulter is called"
    );
    until_seen("after").await;
    let ready = readiness(&probes).await;
    assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    assert!(!is_seen("unseen"));

    bind(env.client(), &lost, &user).await;
    until_seen("unseen").await;
    let _ = stop.send(());
    ended.await.unwrap().unwrap();
}
