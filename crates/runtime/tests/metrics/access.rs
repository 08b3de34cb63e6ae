//! Access to the metrics server: certificates, tokens, roles and requests.

use std::path::Path;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::tls_client::ask;

/// Returns a directory for `--metrics-cert-path`, with a certificate for `localhost` and its key.
pub(crate) fn certificate() -> (tempfile::TempDir, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(Path::new(folder.path()).join(name), text).unwrap();
    write("tls.key", made.signing_key.serialize_pem());
    write("tls.crt", made.cert.pem());
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
    (folder, certificate)
}

pub(crate) async fn token(client: Client, namespace: &str, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let account = ServiceAccount {
        metadata,
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let asked = accounts
        .create_token_request(name, &PostParams::default(), &TokenRequest::default())
        .await;
    asked.unwrap().status.unwrap().token.unwrap()
}

/// Grants permissions to a service account. Each rule has some paths and a verb.
pub(crate) async fn allow(client: Client, namespace: &str, name: &str, rules: &[(&[&str], &str)]) {
    let role = format!("{namespace}-{name}");
    let rules = rules
        .iter()
        .map(|(paths, verb)| json!({"nonResourceURLs": paths, "verbs": [verb]}));
    let rules: Vec<_> = rules.collect();
    create::<ClusterRole>(&client, json!({"metadata": {"name": role}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    create::<ClusterRoleBinding>(&client, binding).await;
}

async fn create<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = ()>
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::<K>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

pub(crate) struct MetricsPort {
    pub(crate) number: u16,
    pub(crate) certificate: CertificateDer<'static>,
}

impl MetricsPort {
    /// Sends a request with a token. The client only trusts the server's certificate.
    pub(crate) async fn ask(&self, method: &str, path: &str, token: Option<&str>) -> Result<String, String> {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer
            .iter()
            .map(|bearer| ("Authorization", bearer.as_str()))
            .collect();
        let line = format!("{method} {path}");
        let answer = ask(self.number, &self.certificate, &line, &headers, "").await;
        answer.map_err(|error| error.to_string())
    }
}
