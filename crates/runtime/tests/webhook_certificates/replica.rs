//! Operators with webhooks, and the webhook configurations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::webhook::{AdmissionRequest, ManagedCertificate};
use rbuilder::{Denied, Manager, ManagerArgs, Result, Webhook};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) const SERVICE: &str = "webhooks";
pub(crate) const SECRET: &str = "webhook-server-cert";
pub(crate) const CRD: &str = "notes.certificates.example.com";

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "certificates.example.com",
    version = "v1",
    kind = "Note",
    namespaced,
    schema = "disabled"
)]
pub(crate) struct NoteSpec {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i32>,
}

pub(crate) mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "certificates.example.com",
        version = "v2",
        kind = "Note",
        namespaced,
        schema = "disabled"
    )]
    pub(crate) struct NoteSpec {
        pub(crate) words: Vec<String>,
    }
}

impl From<v2::Note> for Note {
    fn from(note: v2::Note) -> Self {
        let text = note.spec.words.join(" ");
        let spec = NoteSpec { text, size: None };
        let metadata = note.metadata;
        Self { metadata, spec }
    }
}

impl From<Note> for v2::Note {
    fn from(note: Note) -> Self {
        let words = note.spec.text.split(' ').map(str::to_owned).collect();
        let spec = v2::NoteSpec { words };
        let metadata = note.metadata;
        Self { metadata, spec }
    }
}

impl Note {
    pub(crate) fn named(name: &str, text: &str) -> Self {
        let text = text.to_owned();
        Note::new(name, NoteSpec { text, size: None })
    }
}

fn validate(note: &Note, _: Option<&Note>, _: &AdmissionRequest) -> Result<(), Denied> {
    match note.spec.text.as_str() {
        "bad" => Err(Denied::invalid("spec.text", "cannot be `bad`")),
        _ => Ok(()),
    }
}

/// A namespace whose webhook service resolves to this machine.
pub(crate) struct Place {
    pub(crate) env: Environment,
    pub(crate) namespace: String,
    ports: Vec<ReservedPort>,
}

impl Place {
    /// The webhook configurations of the namespace contain a separate entry for each replica.
    pub(crate) async fn new(env: Environment, prefix: &str, replicas: usize) -> Self {
        let namespace = env.namespace(prefix).await.unwrap();
        let ports = (0..replicas).map(|_| ReservedPort::reserve().unwrap()).collect();
        // For this type of service, the API server uses the external name. For other types it would
        // use the cluster IP, which is not routed here.
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": SERVICE, "namespace": namespace },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        let place = Self {
            env,
            namespace,
            ports,
        };
        place.put(service).await;
        place
    }

    /// Name of both webhook configurations.
    pub(crate) fn configuration(&self) -> String {
        format!("{}-configuration", self.namespace)
    }

    /// Applies the manifests without a CA bundle, as they are stored in the repository.
    pub(crate) async fn install(&self) {
        for (kind, path) in [("Mutating", "mutate"), ("Validating", "validate")] {
            let webhooks: Vec<Value> = self
                .ports
                .iter()
                .enumerate()
                .map(|(at, port)| self.webhook(&format!("{path}{at}.kb.io"), path, port.number()))
                .collect();
            self.put(json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": format!("{kind}WebhookConfiguration"),
                "metadata": { "name": self.configuration() },
                "webhooks": webhooks,
            }))
            .await;
        }
        self.put(self.crd()).await;
    }

    fn webhook(&self, name: &str, path: &str, port: u16) -> Value {
        let path = format!("/{path}-certificates-example-com-v1-note");
        json!({
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {
                "service": { "name": SERVICE, "namespace": self.namespace, "path": path, "port": port },
            },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": self.namespace } },
            "rules": [{
                "apiGroups": ["certificates.example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["notes"],
            }],
        })
    }

    fn crd(&self) -> Value {
        let anything = json!({ "openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }});
        let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": anything });
        let service = json!({
            "name": SERVICE, "namespace": self.namespace, "path": "/convert", "port": self.ports[0].number(),
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": CRD },
            "spec": {
                "group": "certificates.example.com", "scope": "Namespaced",
                "names": { "kind": "Note", "listKind": "NoteList", "plural": "notes", "singular": "note" },
                "versions": [version("v1", true), version("v2", false)],
                "conversion": { "strategy": "Webhook", "webhook": {
                    "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"],
                }},
            },
        })
    }

    async fn put(&self, object: Value) {
        let mut object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let kind = GroupVersionKind::try_from(&types).unwrap();
        let kind = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.env.client(), namespace, &kind),
            None => Api::all_with(self.env.client(), &kind),
        };
        let name = object.metadata.name.clone().unwrap();
        let params = PostParams::default();
        // Operators modify the configurations as well, so this may result in a conflict.
        eventually(Duration::from_secs(10), || async {
            match api.get_opt(&name).await? {
                None => api.create(&params, &object).await,
                Some(there) => {
                    let mut object = object.clone();
                    object.metadata.resource_version = there.metadata.resource_version;
                    api.replace(&name, &params, &object).await
                }
            }
        })
        .await;
        object.metadata.name = None;
    }

    pub(crate) async fn secret(&self) -> Option<Secret> {
        let secrets: Api<Secret> = Api::namespaced(self.env.client(), &self.namespace);
        secrets.get_opt(SECRET).await.unwrap()
    }

    pub(crate) async fn text(&self, key: &str) -> Option<String> {
        let data = self.secret().await?.data?;
        String::from_utf8(data.get(key)?.0.clone()).ok()
    }

    pub(crate) fn notes(&self) -> Api<Note> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    pub(crate) fn notes_v2(&self) -> Api<v2::Note> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    /// Stores a note, which only succeeds once the API server has observed all webhook
    /// configurations.
    pub(crate) async fn store(&self, name: &str) {
        let notes = self.notes();
        eventually(Duration::from_secs(60), || async {
            let made = notes
                .create(&PostParams::default(), &Note::named(name, "a b"))
                .await;
            match made {
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
                made => made.map(drop),
            }
        })
        .await;
    }

    /// Creates a user with the given permissions for the namespace and for the cluster.
    pub(crate) async fn user(&self, here: Value, everywhere: Value) -> Client {
        let name = format!("manager-of-{}", self.namespace);
        let subject = json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name }]);
        for (prefix, namespace, rules) in [("", Some(&self.namespace), here), ("Cluster", None, everywhere)] {
            if rules == json!([]) {
                continue;
            }
            let mut metadata = json!({ "name": name });
            if let Some(namespace) = namespace {
                metadata["namespace"] = json!(namespace);
            }
            let role = format!("{prefix}Role");
            self.put(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": role, "metadata": metadata, "rules": rules,
            }))
            .await;
            self.put(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{role}Binding"),
                "metadata": metadata, "subjects": subject,
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name },
            }))
            .await;
        }
        self.env.user(&name, &[]).unwrap().client()
    }
}

pub(crate) struct Replica {
    port: u16,
    probes: ReservedPort,
    host: String,
    asked: Arc<AtomicUsize>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

impl Replica {
    pub(crate) async fn start(
        place: &Place,
        client: Client,
        certificate: ManagedCertificate,
        number: usize,
    ) -> Self {
        let probes = ReservedPort::reserve().unwrap();
        let port = place.ports[number].number();
        let args = ManagerArgs {
            webhook_port: port,
            watch_namespace: place.namespace.clone(),
            health_probe_bind_address: format!("127.0.0.1:{}", probes.number()),
            ..ManagerArgs::for_tests()
        };
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let webhook = Webhook::<Note>::new()
            .defaulter(move |note: &mut Note, _: &AdmissionRequest| {
                count.fetch_add(1, Ordering::Relaxed);
                note.spec.size.get_or_insert(1);
            })
            .validator(validate)
            .spoke::<v2::Note>();
        let manager = Manager::with_client("certificates.example.com", client, args)
            .webhook(webhook)
            .webhook_certificate(certificate)
            .cache_sync_timeout(Duration::from_secs(10));
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(manager.start_until(async {
            let _ = stopped.await;
        }));
        Self {
            port,
            probes,
            host: format!("{SERVICE}.{}.svc", place.namespace),
            asked,
            stop,
            ended,
        }
    }

    /// Returns the number of calls to the defaulter.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Empty if there is no response.
    pub(crate) async fn readyz(&self) -> String {
        self.get("/readyz?verbose").await
    }

    /// Sends a request to the probe server.
    pub(crate) async fn get(&self, path: &str) -> String {
        let ask = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.probes.number())).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        ask.await.unwrap_or_default()
    }

    pub(crate) async fn until_ready(&self, timeout: Duration) {
        eventually(timeout, || async {
            let said = self.readyz().await;
            if said.starts_with("HTTP/1.1 200") {
                Ok(())
            } else {
                Err(said)
            }
        })
        .await;
    }

    /// Returns the DER of the certificate being served. The client trusts the CA bundle in the
    /// Secret.
    pub(crate) async fn served(&self, place: &Place) -> CertificateDer<'static> {
        let bundle = place.text("ca.crt").await.unwrap();
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(self.host.clone()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    }

    /// Waits for the operator to exit on its own. Returns its result.
    pub(crate) async fn ended(self, timeout: Duration) -> Result<()> {
        // Keep this, because dropping it would stop the operator.
        let _stop = self.stop;
        tokio::time::timeout(timeout, self.ended).await.unwrap().unwrap()
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.ended.await.unwrap().unwrap();
    }
}
