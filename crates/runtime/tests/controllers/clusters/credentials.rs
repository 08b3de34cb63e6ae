//! Credentials of additional clusters: sources and updates.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::{Cluster, ClusterConfig, Controller, Manager, ManagerArgs, Watch};
use serde_json::{Value, json};

use super::support::{Gate, State, copied, mirror, to_memo};
use crate::support::{Operator, Place, SOON, Seen, Server, copy, memo};

/// Minimum time until rejected credentials are read again, with a margin for busy machines.
const REREAD: Duration = Duration::from_secs(30);

impl Place {
    /// Stores the kubeconfig in the Secret `edge`.
    async fn write_secret(&self, kubeconfig: &str) {
        let mut secret = Secret::default();
        secret.metadata.name = Some("edge".to_owned());
        let text = ByteString(kubeconfig.as_bytes().to_vec());
        secret.data = Some([("kubeconfig".to_owned(), text)].into());
        let secrets = self.api::<Secret>();
        let _ = secrets.delete("edge", &DeleteParams::default()).await;
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    fn secret_config(&self) -> ClusterConfig {
        ClusterConfig::from_secret("edge", &self.namespace, "edge", "kubeconfig")
    }
}

/// Starts a manager without any controllers for the cluster.
async fn start(place: &Place, config: ClusterConfig) -> (Operator, Cluster) {
    let mut manager = place.manager();
    let cluster = manager.cluster(config);
    let manager = manager.controller(Controller::new(copy, Seen::default()).owns::<ConfigMap>());
    (Operator::start(manager), cluster)
}

async fn can_list(cluster: &Cluster) -> bool {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces.list(&ListParams::default()).await.is_ok()
}

fn problem(cluster: &Cluster) -> String {
    cluster
        .check()
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[tokio::test]
async fn credentials_in_a_secret_may_appear_later_and_change() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let gate = Gate::open(edge.client(), "first").await;
    let (operator, cluster) = start(&place, place.secret_config().allow_insecure()).await;
    let missing = format!(
        "key `kubeconfig` of the Secret {}/edge: the Secret does not exist",
        place.namespace
    );
    eventually(SOON, || async { problem(&cluster).ends_with(&missing) }).await;
    place.create(memo("a", "text")).await;
    eventually(SOON, || async { place.copied("a").await.is_some() }).await;

    place
        .write_secret(&gate.kubeconfig(&json!({ "token": "first" })))
        .await;
    eventually(REREAD, || can_list(&cluster)).await;
    assert!(cluster.check().is_ok());

    // The server rejects the credentials before the Secret is updated.
    gate.set_token("second");
    assert!(!can_list(&cluster).await);
    let rejected = "the API server rejects the credentials (401 Unauthorized)";
    assert!(problem(&cluster).ends_with(rejected), "{}", problem(&cluster));
    place
        .write_secret(&gate.kubeconfig(&json!({ "token": "second" })))
        .await;
    eventually(REREAD, || can_list(&cluster)).await;
    assert!(cluster.check().is_ok());

    // The credentials stay valid after the Secret is deleted.
    place
        .api::<Secret>()
        .delete("edge", &DeleteParams::default())
        .await
        .unwrap();
    assert!(can_list(&cluster).await);
    operator.stop().await.unwrap();
}

#[tokio::test]
async fn rejected_credentials_are_read_again_from_the_file() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let gate = Gate::open(edge.client(), "first").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let write = |token: &str| std::fs::write(&path, gate.kubeconfig(&json!({ "token": token }))).unwrap();
    write("first");
    // An address without TLS is fine in the operator's own file.
    let (operator, cluster) = start(&place, ClusterConfig::from_kubeconfig("edge", &path)).await;
    eventually(REREAD, || can_list(&cluster)).await;
    gate.set_token("second");
    write("second");
    eventually(REREAD, || can_list(&cluster)).await;
    operator.stop().await.unwrap();
}

/// Write access to a Secret must not be enough to run commands in the operator's Pod, or to read
/// its files.
#[tokio::test]
async fn kubeconfig_in_a_secret_runs_no_command_and_reads_no_file() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let gate = Gate::open(edge.client(), "token").await;
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "touch", "args": [trace],
    });
    let file = folder.path().join("file");
    std::fs::write(&file, "token").unwrap();
    let cases: [(Value, &str); 2] = [
        (
            json!({ "exec": exec }),
            "`users[operator].user.exec` would run a command in the operator's pod",
        ),
        (
            json!({ "tokenFile": file }),
            "`users[operator].user.tokenFile` would read a file of the operator and send it to the server",
        ),
    ];
    for (user, expected) in cases {
        place.write_secret(&gate.kubeconfig(&user)).await;
        let (operator, cluster) = start(&place, place.secret_config().allow_insecure()).await;
        eventually(SOON, || async { problem(&cluster).contains(expected) }).await;
        assert!(!can_list(&cluster).await);
        operator.stop().await.unwrap();
    }
    assert!(!trace.exists());
    // Now that they're permitted explicitly, the files are used.
    let (operator, cluster) = start(&place, place.secret_config().allow_insecure().allow_files()).await;
    eventually(REREAD, || can_list(&cluster)).await;
    operator.stop().await.unwrap();
}

/// Uses two real API servers, one of which is suspended for a while.
#[rbuilder::envtest::test]
async fn kubeconfig_in_a_secret_connects_to_a_real_server(env: Environment) {
    let place = Place::new(env).await;
    let edge = Environment::builder().start().await.unwrap();
    let namespace = edge.namespace("copies").await.unwrap();
    let kubeconfig = std::fs::read_to_string(edge.kubeconfig_path()).unwrap();
    place.write_secret(&kubeconfig).await;
    let mut manager = place.manager();
    // The kubeconfig of the test environment refers to certificate files.
    let cluster = manager.cluster(place.secret_config().allow_files().namespaces([&*namespace]));
    let state = State {
        edge: cluster.clone(),
        namespace: namespace.clone(),
        seen: Seen::default(),
    };
    let copies = Watch::mapped(to_memo).in_cluster(&cluster);
    let mirroring = Controller::new(mirror, state).named("mirror").watch(copies);
    let copying = Controller::new(copy, Seen::default()).owns::<ConfigMap>();
    let operator = Operator::start(manager.controller(mirroring).controller(copying));
    place.create(memo("a", "text")).await;
    let is_copied = async |name: &str| copied(edge.client(), &namespace, name).await.is_some();
    eventually(SOON, || is_copied("a")).await;
    let copies: Api<ConfigMap> = Api::namespaced(edge.client(), &namespace);
    copies.delete("a", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || is_copied("a")).await;

    let server = rbuilder::envtest::Server::ApiServer;
    edge.kill(server).unwrap();
    place.create(memo("b", "text")).await;
    eventually(SOON, || async { place.copied("b").await.is_some() }).await;
    eventually(SOON, || async { cluster.check().is_err() }).await;
    edge.restart(server).await.unwrap();
    eventually(Duration::from_secs(90), || is_copied("b")).await;
    operator.stop().await.unwrap();
    edge.stop().await.unwrap();
}

/// Its alert is about `rbuilder_cluster_connected`.
#[tokio::test]
async fn load_balancer_without_backends_is_not_a_connected_cluster() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let gate = Gate::open(edge.client(), "token").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, gate.kubeconfig(&json!({ "token": "token" }))).unwrap();
    let mut manager = place.manager();
    let cluster = manager.cluster(ClusterConfig::from_kubeconfig("edge", &path));
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    let shows = |value: u8| {
        let line = format!("rbuilder_cluster_connected{{cluster=\"edge\"}} {value}\n");
        metrics.text().contains(&line)
    };
    eventually(REREAD, || async { can_list(&cluster).await && shows(1) }).await;
    gate.set_down(true);
    // The connection is probed until the load balancer has a backend again.
    eventually(SOON, || async { !can_list(&cluster).await && shows(0) }).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(shows(0));
    let expected = "a proxy or load balancer answers in place of the API server (503 Service Unavailable)";
    assert!(problem(&cluster).ends_with(expected), "{}", problem(&cluster));
    gate.set_down(false);
    eventually(REREAD, || async { cluster.check().is_ok() && shows(1) }).await;
    operator.stop().await.unwrap();
}

async fn token_of(edge: &Environment, account: &str) -> String {
    let client = edge.client();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let created = json!({ "metadata": { "name": account } });
    let created: ServiceAccount = serde_json::from_value(created).unwrap();
    accounts.create(&PostParams::default(), &created).await.unwrap();
    let binding = json!({
        "metadata": { "name": account },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": "default" }],
    });
    let binding: ClusterRoleBinding = serde_json::from_value(binding).unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let asked = serde_json::from_value(json!({ "spec": { "audiences": [] } })).unwrap();
    let params = PostParams::default();
    let made = accounts.create_token_request(account, &params, &asked).await;
    made.unwrap().status.unwrap().token.unwrap()
}

/// Returns a kubeconfig for the server of `edge`.
fn kubeconfig_for(edge: &Environment, authority: &[u8], token: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "edge",
        "clusters": [{ "name": "edge", "cluster": {
            "server": edge.config().cluster_url.to_string(),
            "certificate-authority-data": ByteString(authority.to_vec()),
        } }],
        "contexts": [{ "name": "edge", "context": { "cluster": "edge", "user": "operator" } }],
        "users": [{ "name": "operator", "user": { "token": token } }],
    })
    .to_string()
}

fn authority_of(env: &Environment) -> Vec<u8> {
    let certificates = env.config().root_cert.unwrap_or_default();
    let sections = certificates
        .into_iter()
        .map(|der| pem::Pem::new("CERTIFICATE", der));
    pem::encode_many(&sections.collect::<Vec<_>>()).into_bytes()
}

/// Uses two real API servers with different CAs. The leader keeps its lease and its work whatever
/// happens to the second one.
#[rbuilder::envtest::test]
async fn other_ca_and_expired_credentials_of_a_real_server_do_not_affect_the_leader(env: Environment) {
    let own_authority = authority_of(&env);
    let place = Place::new(env).await;
    let edge = Environment::builder().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let first = token_of(&edge, "first").await;
    std::fs::write(&path, kubeconfig_for(&edge, &own_authority, &first)).unwrap();
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        ..ManagerArgs::for_tests()
    };
    let mut manager = Manager::with_client("beside.example.com", place.env.client(), args);
    let cluster = manager.cluster(ClusterConfig::from_kubeconfig("edge", &path));
    let copying = Controller::new(copy, Seen::default()).owns::<ConfigMap>();
    let operator = Operator::start(manager.controller(copying));
    let works = async |name: &str| {
        place.create(memo(name, "text")).await;
        eventually(SOON, || async { place.copied(name).await.is_some() }).await;
    };

    works("a").await;
    eventually(SOON, || async {
        problem(&cluster).contains("signed by an unknown authority")
    })
    .await;
    std::fs::write(&path, kubeconfig_for(&edge, &authority_of(&edge), &first)).unwrap();
    eventually(Duration::from_secs(90), || can_list(&cluster)).await;
    assert!(cluster.check().is_ok());
    works("b").await;

    // The token of a deleted account is rejected like one that has expired.
    let accounts: Api<ServiceAccount> = Api::namespaced(edge.client(), "default");
    accounts.delete("first", &DeleteParams::default()).await.unwrap();
    let rejected = "the API server rejects the credentials (401 Unauthorized)";
    eventually(REREAD, || async {
        !can_list(&cluster).await && problem(&cluster).ends_with(rejected)
    })
    .await;
    works("c").await;
    let second = token_of(&edge, "second").await;
    // Many tools truncate a file before they write it.
    let text = kubeconfig_for(&edge, &authority_of(&edge), &second);
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    std::fs::write(&path, &text).unwrap();
    eventually(Duration::from_secs(90), || can_list(&cluster)).await;
    assert!(cluster.check().is_ok());
    works("d").await;

    let leases = place.api::<Lease>();
    let lease = leases.get("beside.example.com").await.unwrap().spec.unwrap();
    assert_eq!(lease.lease_transitions.unwrap_or_default(), 0);
    operator.stop().await.unwrap();
    edge.stop().await.unwrap();
}
