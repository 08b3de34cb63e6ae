//! Routes the API server's webhook calls to the operator under test on this machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, Resource};
use rbuilder_control_plane::{
    ReservedPort, WebhookAddress, issue_serving_certificate, private_folder, write_private,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::installed::Installed;
use super::{Environment, Error, FIELD_MANAGER, POLL_INTERVAL, crds};
use crate::manifests::read_documents;

const SERVED_TIMEOUT: Duration = Duration::from_secs(30);

/// Port and certificate with which the operator under test must serve its webhooks. Created by
/// [`Environment::install_webhooks`]. The certificate files are deleted on drop.
#[derive(Clone)]
pub struct WebhookServer {
    client: Client,
    installed: Arc<Installed>,
    address: WebhookAddress,
    folder: Arc<TempDir>,
    _port: Arc<ReservedPort>,
}

/// Operator arguments that include the webhook server's address. Implemented by
/// `rbuilder::ManagerArgs`.
pub trait WebhookArgs {
    /// Returns the arguments with the given port, and a directory that contains the certificate as
    /// `tls.crt` and `tls.key`.
    #[must_use]
    fn serving_webhooks(self, port: u16, certificates: &Path) -> Self;
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("url", &self.url("/"))
            .field("certificates", &self.folder.path())
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Installs the webhook configurations from a file or directory for objects in a single
    /// namespace, and returns where the operator must serve the webhooks.
    ///
    /// Service references are replaced with URLs of this machine
    /// ([`Builder::webhook_host`](super::Builder::webhook_host)), keeping the path, and a new
    /// certificate authority. The `namespaceSelector` is restricted to the namespace, so that
    /// parallel tests don't call each other's webhooks. Start the operator with the arguments
    /// returned by [`WebhookServer::args`].
    ///
    /// # Errors
    ///
    /// Returns an error if the path can't be read or contains no webhook configuration, or if the
    /// API server rejects a configuration.
    pub async fn install_webhooks(
        &self,
        path: impl AsRef<Path>,
        namespace: &str,
    ) -> Result<WebhookServer, Error> {
        let server = WebhookServer::new(self)?;
        let path = path.as_ref();
        let mut found = false;
        for (_, mut configuration) in read_documents(path).map_err(Error::read)? {
            let installed = match configuration["kind"].as_str() {
                Some("MutatingWebhookConfiguration") => {
                    server.redirect(&mut configuration, namespace);
                    server
                        .install::<MutatingWebhookConfiguration>(&configuration)
                        .await
                }
                Some("ValidatingWebhookConfiguration") => {
                    server.redirect(&mut configuration, namespace);
                    server
                        .install::<ValidatingWebhookConfiguration>(&configuration)
                        .await
                }
                _ => continue,
            };
            installed?;
            found = true;
        }
        if !found {
            let advice = "run `rbuilder manifests` to generate the project's";
            return Err(Error::file("no webhook configuration in", path, advice));
        }
        Ok(server)
    }

    /// Allocates a port and certificate without installing a webhook configuration. Use it for
    /// conversions; see [`WebhookServer::convert`].
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate can't be created or no port is free.
    pub fn webhook_server(&self) -> Result<WebhookServer, Error> {
        WebhookServer::new(self)
    }
}

impl WebhookServer {
    fn new(environment: &Environment) -> Result<Self, Error> {
        let folder = private_folder("rbuilder-webhooks-")
            .map_err(|err| Error::new(format!("cannot create a temporary folder: {err}")))?;
        let authority = write_certificate(folder.path(), &environment.webhook_host)?;
        let port = ReservedPort::reserve()?;
        Ok(Self {
            client: environment.client(),
            installed: environment.installed.clone(),
            address: WebhookAddress {
                host: environment.webhook_host.to_string(),
                port: port.number(),
                authority,
            },
            folder: Arc::new(folder),
            _port: Arc::new(port),
        })
    }

    /// Sets the port and certificate that the API server expects, in the operator's arguments
    /// (`rbuilder::ManagerArgs`).
    #[must_use]
    pub fn args<A: WebhookArgs>(&self, args: A) -> A {
        args.serving_webhooks(self.address.port, self.folder.path())
    }

    /// Returns the directory with `tls.crt` and `tls.key`.
    #[must_use]
    pub fn certificates(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The URL that the API server calls for the given path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        self.address.url(path)
    }

    /// Makes the API server call this operator to convert between versions of an installed CRD,
    /// e.g. `cronjobs.batch.example.com`. The conversion is kept if another test reinstalls the
    /// CRD.
    ///
    /// A CRD has only one conversion webhook for the objects of all tests. Tests that convert the
    /// same kind on the same control plane must run sequentially.
    ///
    /// # Errors
    ///
    /// Returns an error if the API server rejects the change.
    pub async fn convert(&self, crd: &str) -> Result<(), Error> {
        let (client, url) = (self.client.clone(), self.url("/convert"));
        crds::redirect_conversion(client, crd, &url, &self.bundle()).await
    }

    /// Waits until the operator accepts connections on the port.
    ///
    /// # Errors
    ///
    /// Returns an error after 30 seconds.
    pub async fn wait_until_served(&self) -> Result<(), Error> {
        let deadline = Instant::now() + SERVED_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", self.address.port))
            .await
            .is_err()
        {
            if Instant::now() >= deadline {
                let message = format!(
                    "no webhooks served on port {} within {SERVED_TIMEOUT:?}",
                    self.address.port
                );
                return Err(Error::new(message));
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn bundle(&self) -> ByteString {
        ByteString(self.address.authority.as_bytes().to_vec())
    }

    fn redirect(&self, configuration: &mut Value, namespace: &str) {
        let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
        configuration["metadata"]["name"] = format!("{name}-{namespace}").into();
        self.address.redirect_webhooks(configuration);
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            // The API server sets this label on every namespace.
            let in_namespace = json!({
                "key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace],
            });
            match webhook["namespaceSelector"]["matchExpressions"].as_array_mut() {
                Some(expressions) => expressions.push(in_namespace),
                None => webhook["namespaceSelector"]["matchExpressions"] = json!([in_namespace]),
            }
        }
    }

    async fn install<K: Resource<DynamicType = ()>>(&self, configuration: &Value) -> Result<(), Error> {
        let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
        self.installed.note_if_absent::<K>(&self.client, name).await;
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &kube::api::ApiResource::erase::<K>(&()));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(name, &params, &Patch::Apply(configuration)).await;
        applied
            .map(drop)
            .map_err(|err| Error::request(format!("cannot install the webhook configuration {name}"), &err))
    }
}

/// Writes `tls.crt` and `tls.key` to a directory and returns the PEM certificate of their CA.
fn write_certificate(folder: &Path, host: &str) -> Result<String, Error> {
    let issued = issue_serving_certificate(host)?;
    for (name, text) in [("tls.crt", issued.certificate), ("tls.key", issued.key)] {
        let path = folder.join(name);
        write_private(&path, text).map_err(|err| Error::file("cannot write", &path, err))?;
    }
    Ok(issued.authority)
}
