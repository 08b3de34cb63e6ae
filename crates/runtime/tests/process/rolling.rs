//! Rolling updates of an operator with a webhook, as a Deployment and a Service would do them, while
//! a client keeps writing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::DeleteParams;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::*;
use crate::tls_client::write_certificate;

/// Interval between two writes.
const PACE: Duration = Duration::from_millis(5);
/// Time until the nodes notice that a Pod is being deleted.
const LAG: Duration = Duration::from_secs(2);
/// Time for a process with a webhook to exit: five seconds of listening, and a margin.
const LEFT: Duration = Duration::from_secs(15);
/// The webhook is called for objects with this label.
const LABEL: &str = "process.example.com/written";

/// Forwards connections to one of several ports, like kube-proxy.
struct Service {
    port: u16,
    endpoints: Arc<Mutex<Vec<u16>>>,
    _forwarding: JoinSet<()>,
}

impl Service {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, endpoints) = (listener.local_addr().unwrap().port(), Arc::default());
        let mut forwarding = JoinSet::new();
        forwarding.spawn(forward(listener, Arc::clone(&endpoints)));
        Self {
            port,
            endpoints,
            _forwarding: forwarding,
        }
    }

    fn add(&self, port: u16) {
        self.endpoints.lock().unwrap().push(port);
    }

    fn remove(&self, port: u16) {
        self.endpoints
            .lock()
            .unwrap()
            .retain(|endpoint| *endpoint != port);
    }
}

async fn forward(listener: TcpListener, endpoints: Arc<Mutex<Vec<u16>>>) {
    let mut connections = JoinSet::new();
    for turn in 0.. {
        let (mut client, _) = listener.accept().await.unwrap();
        let port = {
            let endpoints = endpoints.lock().unwrap();
            endpoints.get(turn % endpoints.len().max(1)).copied()
        };
        connections.spawn(async move {
            // Otherwise the connection is reset, as by a Service without endpoints.
            if let Some(port) = port
                && let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await
            {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

struct Replica {
    program: Program,
    webhook: ReservedPort,
}

impl Replica {
    /// Starts a replica. The Service leads to it once it's ready.
    async fn start(place: &Place, certificate: &TempDir, service: &Service) -> Self {
        let [webhook, probes] = [(); 2].map(|()| ReservedPort::reserve().unwrap());
        let program = place.start(&[
            "--leader-elect",
            &format!("--health-probe-bind-address=:{}", probes.number()),
            &format!("--webhook-port={}", webhook.number()),
            &format!("--webhook-cert-path={}", certificate.path().display()),
        ]);
        eventually(SOON, || program.get(probes.number(), "/readyz")).await;
        service.add(webhook.number());
        Self { program, webhook }
    }

    /// The Service still leads to the replica for a while after it was asked to stop.
    async fn stop(mut self, service: &Service) {
        self.program.signal("TERM");
        sleep(LAG).await;
        service.remove(self.webhook.number());
        assert_eq!(
            self.program.ended(LEFT).await,
            Ended::with(0),
            "{}",
            self.program.log()
        );
    }
}

fn configuration(place: &Place, service: &Service, certificate: &[u8]) -> ValidatingWebhookConfiguration {
    let authority = pem_of(certificate);
    serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": format!("rolling-{}", place.namespace) },
        "webhooks": [{
            "name": "written.process.example.com",
            "clientConfig": {
                "url": format!("https://localhost:{}/allow", service.port),
                "caBundle": k8s_openapi::ByteString(authority.into_bytes()),
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"],
            }],
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": place.namespace } },
            "objectSelector": { "matchExpressions": [{ "key": LABEL, "operator": "Exists" }] },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1"],
        }],
    }))
    .unwrap()
}

fn pem_of(certificate: &[u8]) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate))
}

/// The outcomes of writes.
#[derive(Default)]
struct Writes {
    accepted: AtomicUsize,
    refused: Mutex<Vec<String>>,
}

/// Writes until the returned set is dropped.
fn start_writing(place: &Place, writes: &Arc<Writes>) -> JoinSet<()> {
    let (maps, writes) = (place.maps(), Arc::clone(writes));
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        let (mut pace, mut tasks, slots) = (interval(PACE), JoinSet::new(), Arc::new(Semaphore::new(64)));
        for turn in 0_u64.. {
            pace.tick().await;
            let (maps, writes) = (maps.clone(), Arc::clone(&writes));
            let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
            tasks.spawn(async move {
                let patch = Patch::Merge(json!({ "data": { "turn": turn.to_string() } }));
                let name = format!("written-{}", turn % 20);
                match maps.patch(&name, &PatchParams::default(), &patch).await {
                    Ok(_) => drop(writes.accepted.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => writes.refused.lock().unwrap().push(error.to_string()),
                }
                drop(slot);
            });
            while tasks.try_join_next().is_some() {}
        }
    });
    writing
}

#[rbuilder::envtest::test]
async fn rolling_updates_refuse_no_write_for_want_of_the_webhook() {
    let place = Place::new().await;
    let (folder, service) = (tempfile::tempdir().unwrap(), Service::open().await);
    let certificate = write_certificate(folder.path());
    let mut replica = Replica::start(&place, &folder, &service).await;
    for index in 0..20 {
        place.create(&format!("written-{index}"), &[]).await;
        let label = Patch::Merge(json!({ "metadata": { "labels": { LABEL: "yes" } } }));
        let (maps, name) = (place.maps(), format!("written-{index}"));
        maps.patch(&name, &PatchParams::default(), &label).await.unwrap();
    }
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.env.client());
    let configuration = configuration(&place, &service, &certificate);
    configurations
        .create(&PostParams::default(), &configuration)
        .await
        .unwrap();
    // Without an endpoint, writes are refused once the API server knows the configuration.
    service.remove(replica.webhook.number());
    let patch = Patch::Merge(json!({ "data": { "any": "thing" } }));
    eventually(SOON, || async {
        let written = place
            .maps()
            .patch("written-0", &PatchParams::default(), &patch)
            .await;
        written.is_err_and(|error| error.to_string().contains("failed calling webhook"))
    })
    .await;
    service.add(replica.webhook.number());

    let writes = Arc::new(Writes::default());
    let writing = start_writing(&place, &writes);
    for _ in 0..2 {
        sleep(Duration::from_secs(2)).await;
        let next = Replica::start(&place, &folder, &service).await;
        let former = std::mem::replace(&mut replica, next);
        former.stop(&service).await;
    }
    sleep(Duration::from_secs(1)).await;
    drop(writing);
    let name = configuration.name_any();
    configurations
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    let (accepted, refused) = (
        writes.accepted.load(Ordering::Relaxed),
        writes.refused.lock().unwrap(),
    );
    assert!(accepted > 200, "{accepted} writes are too few");
    assert!(
        refused.is_empty(),
        "{} of {accepted}: {:#?}",
        refused.len(),
        refused.first()
    );
}
