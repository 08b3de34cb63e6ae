//! Tests of the environment with real servers. They are ignored unless `KUBEBUILDER_ASSETS` is set.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, GroupVersionKind, PostParams};
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::testing::eventually_eq;
use serde_json::json;

const CRDS: &str = "tests/envtest/crds";
const MEMOS: &str = "tests/controllers/crds/memos.yaml";
/// Set in the child process that [`servers_die_with_a_killed_test`] kills.
const VICTIM: &str = "RBUILDER_ENVTEST_VICTIM";

#[rbuilder::envtest::test]
async fn shared_server_serves_installed_crds(env: Environment) {
    env.install_crds(CRDS).await.unwrap();
    env.install_crds(CRDS)
        .await
        .expect("a second installation changes nothing");
    let namespace = env.namespace("crds").await.unwrap();
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("envtest.example.com", "v1", "Cup"), "cups");
    let cups: Api<DynamicObject> = Api::namespaced_with(env.client(), &namespace, &kind);

    let cup =
        |name: &str, size: i64| DynamicObject::new(name, &kind).data(json!({ "spec": { "size": size } }));
    let made = cups
        .create(&PostParams::default(), &cup("good", 3))
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"],
        json!({ "size": 3, "colour": "white" }),
        "the schema's default is filled in"
    );
    let refused = cups
        .create(&PostParams::default(), &cup("bad", 9))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("should be less than or equal to 5"),
        "{refused}"
    );
}

#[rbuilder::envtest::test]
async fn error_about_rejected_crd_names_the_file(env: Environment) {
    let error = env
        .install_crds("tests/envtest/refused.yaml")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot install wrongs.envtest.example.com from tests/envtest/refused.yaml: "),
        "{error}"
    );
    assert!(error.contains("uniqueItems cannot be set to true"), "{error}");
}

#[rbuilder::envtest::test]
async fn namespace_names_are_unique(env: Environment) {
    let (a, b) = (
        env.namespace("same").await.unwrap(),
        env.namespace("same").await.unwrap(),
    );
    assert_ne!(a, b);
    let namespaces: Api<Namespace> = Api::all(env.client());
    assert_eq!(namespaces.get(&a).await.unwrap().name_any(), a);
    let error = env.namespace("Not_A_Label").await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot create namespace `Not_A_Label-…`: "),
        "{error}"
    );
}

#[rbuilder::envtest::test]
async fn kubeconfig_file_gives_the_same_access(env: Environment) {
    let kubeconfig = kube::config::Kubeconfig::read_from(env.kubeconfig_path()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    Api::<Namespace>::all(client).get("kube-system").await.unwrap();
}

#[rbuilder::envtest::test]
async fn shared_environment_cannot_be_stopped() {
    let env = Environment::builder().crds(CRDS).start().await.unwrap();
    let folder = env.kubeconfig_path().parent().unwrap().to_owned();
    let maps: Api<ConfigMap> = Api::namespaced(env.client(), "default");
    maps.list(&Default::default()).await.unwrap();
    env.stop().await.unwrap();
    assert!(!folder.exists());
    maps.list(&Default::default())
        .await
        .expect_err("the server is gone");

    let error = Environment::shared()
        .await
        .unwrap()
        .stop()
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("ends with the process"), "{error}");
}

/// The API server calls a fixed port, which no other test may use while the operator is restarted.
#[cfg(target_os = "linux")]
#[rbuilder::envtest::test]
async fn webhook_server_port_stays_reserved(env: Environment) {
    use rbuilder::envtest::WebhookArgs;

    struct Port(u16);
    impl WebhookArgs for Port {
        fn serving_webhooks(self, port: u16, _: &Path) -> Self {
            Self(port)
        }
    }
    let server = env.webhook_server().unwrap();
    let Port(port) = server.clone().args(Port(0));
    let connection = tokio::net::TcpSocket::new_v4().unwrap();
    let error = connection.bind(([127, 0, 0, 1], port).into()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    connection.bind(([127, 0, 0, 1], port).into()).unwrap();
}

#[rbuilder::envtest::test]
async fn extra_arguments_reach_both_servers() {
    let with = |etcd: &str, apiserver: &str| {
        Environment::builder()
            .etcd_arg(etcd)
            .apiserver_arg(apiserver)
            .start()
    };
    let error = with("--no-such-flag", "--v=0").await.unwrap_err().to_string();
    assert!(error.contains("etcd ended"), "{error}");
    let error = with("--max-txn-ops=256", "--no-such-flag")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}

/// A SIGKILL leaves no chance to clean up.
#[rbuilder::envtest::test]
async fn servers_die_with_a_killed_test() {
    if let Some(report) = std::env::var_os(VICTIM) {
        return wait_to_be_killed(Path::new(&report)).await;
    }
    let temp = tempfile::tempdir().unwrap();
    let report = temp.path().join("folder");
    let program = std::env::current_exe().unwrap();
    let mut victim = Command::new(program)
        .args(["--include-ignored", "--exact", "servers_die_with_a_killed_test"])
        .env(VICTIM, &report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = eventually(Duration::from_secs(60), || async { read(&report) }).await;
    let processes = processes_of(Path::new(&folder));
    assert_eq!(processes.len(), 3, "the test, etcd and kube-apiserver");
    assert!(processes.iter().all(|id| is_alive(id)));

    victim.kill().unwrap();
    victim.wait().unwrap();

    eventually(Duration::from_secs(5), || async {
        !processes.iter().any(|id| is_alive(id))
    })
    .await;
    eventually(Duration::from_secs(5), || async { !Path::new(&folder).exists() }).await;
}

/// Starts a control plane, and writes its location to the file `report`.
async fn wait_to_be_killed(report: &Path) {
    let env = Environment::shared().await.unwrap();
    let folder = env.kubeconfig_path().parent().unwrap();
    std::fs::write(report, folder.to_str().unwrap()).unwrap();
    std::future::pending::<()>().await;
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().filter(|text| !text.is_empty())
}

fn processes_of(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("processes")).unwrap();
    text.lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

/// A zombie doesn't count as alive.
fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'))
    })
}

/// Set in the child process, which has an existing cluster but no server binaries.
const GUEST: &str = "RBUILDER_ENVTEST_GUEST";

/// The child process connects to our server with a kubeconfig, as kubectl would.
#[rbuilder::envtest::test]
async fn existing_cluster_is_used_and_cleaned_up() {
    if std::env::var_os(GUEST).is_some() {
        return be_a_guest().await;
    }
    let host = Environment::builder()
        .existing_cluster(false)
        .start()
        .await
        .unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(host.client());
    host.install_crds(MEMOS).await.unwrap();
    let guest = Command::new(std::env::current_exe().unwrap())
        .args([
            "--include-ignored",
            "--exact",
            "existing_cluster_is_used_and_cleaned_up",
            "--nocapture",
        ])
        .env(GUEST, "1")
        .env("USE_EXISTING_CLUSTER", "true")
        .env("KUBECONFIG", host.kubeconfig_path())
        .env("KUBEBUILDER_ASSETS", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&guest.stderr);
    assert!(guest.status.success(), "{said}");
    // Everything that the guest installed was deleted, but the server and older objects still
    // exist. Deleting a CRD takes a moment, since its objects are deleted first.
    eventually_eq(
        Duration::from_secs(20),
        vec!["memos.controllers.example.com".to_owned()],
        async || {
            let left = crds.list(&Default::default()).await.unwrap();
            left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        },
    )
    .await;
    let namespaces = Api::<Namespace>::all(host.client())
        .list(&Default::default())
        .await
        .unwrap();
    let mut guests = namespaces
        .items
        .iter()
        .filter(|namespace| namespace.name_any().starts_with("guest-"));
    assert!(guests.all(|namespace| namespace.metadata.deletion_timestamp.is_some()));
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(host.client());
    assert!(
        configurations
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    host.stop().await.unwrap();
}

async fn be_a_guest() {
    let env = Environment::builder()
        .crds(CRDS)
        .webhook_host("guest.example.com")
        .cleaning_up()
        .start()
        .await
        .unwrap();
    env.install_crds(MEMOS).await.unwrap();
    let namespace = env.namespace("guest").await.unwrap();
    let webhooks = env
        .install_webhooks("tests/webhooks/manifests.yaml", &namespace)
        .await
        .unwrap();
    assert!(
        webhooks.url("/x").starts_with("https://guest.example.com:"),
        "{webhooks:?}"
    );
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(env.client());
    let found = configurations.list(&Default::default()).await.unwrap().items;
    let url = found[0].webhooks.as_ref().unwrap()[0]
        .client_config
        .url
        .clone()
        .unwrap();
    assert!(url.starts_with("https://guest.example.com:"), "{url}");
    let kubeconfig = kube::config::Kubeconfig::read_from(env.kubeconfig_path()).unwrap();
    assert_eq!(kubeconfig.clusters.len(), 1);
    env.stop().await.unwrap();
}

#[tokio::test]
async fn error_about_missing_cluster_says_where_it_looked() {
    const HERE: &str = "error_about_missing_cluster_says_where_it_looked";
    const CHILD: &str = "RBUILDER_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        // Use a child process, because the cluster is selected by environment variables.
        let started = Environment::builder().existing_cluster(true).start().await;
        panic!("{}", started.unwrap_err());
    }
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}"#;
    std::fs::write(&kubeconfig, text).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--include-ignored", "--exact", HERE, "--nocapture"])
        .env("KUBECONFIG", &kubeconfig)
        .env(CHILD, "true")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the existing cluster at http://127.0.0.1:1/ does not answer: "),
        "{said}"
    );
}

#[rbuilder::envtest::test]
async fn operator_has_the_permissions_of_its_roles(env: Environment) {
    let namespace = env.namespace("roles").await.unwrap();
    let operator = env.role_from("tests/api_server/rbac", &namespace).await.unwrap();
    let code = async |path: &str| {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        operator.client().send(request).await.unwrap().status().as_u16()
    };
    let own = "/apis/coordination.k8s.io/v1/namespaces/default/leases".to_owned();
    // The Role is bound in `default`, and the ClusterRole everywhere.
    assert_eq!(code(&own).await, 200);
    assert_eq!(code(&own.replace("default", &namespace)).await, 403);
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    assert_eq!(code(&format!("{maps}/mine")).await, 404);
    assert_eq!(code(&format!("{maps}/other")).await, 403);
    // Roles without a binding grant nothing.
    assert_eq!(
        code(&format!("/api/v1/namespaces/{namespace}/secrets")).await,
        403
    );
    let users: Api<SelfSubjectReview> = Api::all(operator.client());
    let reviewed = users
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    let user = reviewed.status.unwrap().user_info.unwrap().username.unwrap();
    assert_eq!(
        user,
        format!("system:serviceaccount:{namespace}:controller-manager")
    );

    let error = env.role_from("tests/envtest/crds", &namespace).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no Role or ClusterRole in tests/envtest/crds"),
        "{error}"
    );
}
