//! The manager's client, which adds timeouts, retries and rate limiting to kube's client, and logs
//! warnings.
//!
//! By default, kube has no timeouts at all: if the API server hangs or the network silently drops a
//! connection, a request could block its reconcile or its cache forever. On the other hand, kube
//! retries every request that fails with 429, 503 or 504, with a backoff of up to 15 minutes. A
//! reconcile could then keep waiting long after the API server has recovered, or create an object
//! more than once.
//!
//! This client bounds both, and only retries requests when it is safe to do so. Beyond that, the
//! watch or the queue logs the error and retries.
//!
//! Each request passes these layers, from the outside in:
//!
//! | layer | where |
//! |---|---|
//! | leader election: writes need the lease | `leader_election::fenced_client`, for controllers and tasks of the leader |
//! | layers of the operator | [`layer`] |
//! | traces | `traces` |
//! | User-Agent and the parameter `timeout` | [`prepare`], [`user_agent`] |
//! | retries | [`retry`] |
//! | flow control, for each attempt | [`flow_control`] |
//! | metrics | [`CountRequests`](crate::metrics::CountRequests) |
//! | warnings of the API server | [`warnings`] |
//! | failures to reach the API server | [`reachability`], [`no_response`] |
//! | time without data | [`timeout`] |
//! | credentials that are replaced while the operator runs | [`credentials`] |
//! | address, credentials, connections | [`transport`] |
//! | proxies | [`proxy`] |

use std::time::Duration;

use http::{Method, Request, Response, Uri};
use hyper::body::Bytes;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tower::layer::layer_fn;
use tower::retry::RetryLayer;
use tower::util::MapResultLayer;
use tower::{BoxError, service_fn};

use crate::metrics::Metrics;

mod credentials;
mod flow_control;
mod layer;
mod no_response;
mod prepare;
pub(crate) mod proxy;
mod reachability;
mod request;
mod retry;
mod timeout;
mod transport;
mod user_agent;
mod warnings;

use credentials::Renewing;
pub(crate) use flow_control::FlowControl;
pub use layer::ClientService;
pub(crate) use layer::add_layer;
pub(crate) use no_response::{find_no_response, is_unreachable};
use prepare::{Prepared, TIMEOUT};
pub(crate) use reachability::Reachability;
pub(crate) use request::add_parameter;
use retry::Retries;
use timeout::WithTimeout;
pub(crate) use user_agent::UserAgent;
use warnings::LogWarnings;

/// Settings that the manager shares with its clients, and may still change after creating them.
#[derive(Clone, Default)]
pub(crate) struct ClientSettings {
    pub(crate) user_agent: UserAgent,
    pub(crate) flow_control: FlowControl,
    pub(crate) reachability: Reachability,
}

/// Creates a client for general use. Its metrics count every attempt of a request.
pub(crate) fn new_manager_client(
    config: Config,
    metrics: &Metrics,
    settings: &ClientSettings,
) -> Result<Client, kube::Error> {
    let server = config.cluster_url.clone();
    let counted = metrics.count_requests(&server);
    Ok(new_builder(config)?
        .with_layer(&layer_fn(WithTimeout::new))
        .with_layer(&MapResultLayer::new(settings.reachability.observe(&server)))
        .with_layer(&layer_fn(LogWarnings::new))
        .with_layer(&counted)
        .with_layer(&layer_fn(|inner| settings.flow_control.limit(inner)))
        .with_layer(&RetryLayer::new(Retries::default()))
        .with_layer(&layer_fn(|inner| {
            Prepared::new(inner, settings.user_agent.clone(), TIMEOUT)
        }))
        .build())
}

/// Creates a client for leader election, which neither retries nor limits requests.
///
/// The timeout applies on both sides. If the API server kept processing a request after the client
/// gave up, it might renew a lease whose holder doesn't know about it.
pub(crate) fn new_lease_client(
    mut config: Config,
    metrics: &Metrics,
    settings: &ClientSettings,
    timeout: Duration,
) -> Result<Client, kube::Error> {
    let server = config.cluster_url.clone();
    let counted = metrics.count_requests(&server);
    config.connect_timeout = Some(timeout);
    Ok(new_builder(config)?
        .with_layer(&MapResultLayer::new(settings.reachability.observe(&server)))
        .with_layer(&counted)
        .with_layer(&layer_fn(|inner| {
            Prepared::new(inner, settings.user_agent.clone(), timeout)
        }))
        .build())
}

/// Removes user and password from the address of a server, for messages, metrics and traces.
pub(crate) fn without_credentials(server: &Uri) -> Uri {
    let mut parts = server.clone().into_parts();
    let address = parts.authority.as_ref().and_then(|authority| {
        let (_, address) = authority.as_str().rsplit_once('@')?;
        address.parse().ok()
    });
    if address.is_none() {
        return server.clone();
    }
    parts.authority = address;
    Uri::from_parts(parts).unwrap_or_default()
}

fn new_builder(config: Config) -> Result<ClientBuilder<Renewing>, kube::Error> {
    let namespace = config.default_namespace.clone();
    Ok(ClientBuilder::new(Renewing::new(config)?, namespace))
}

pub(crate) fn wrap_client<F, Fut, B>(client: Client, send: F) -> Client
where
    F: Fn(Client, Request<Body>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let namespace = client.default_namespace().to_owned();
    let expiry = *client.valid_until();
    let service = service_fn(move |request| send(client.clone(), request));
    Client::new(service, namespace).with_valid_until(expiry)
}

/// Sets the field manager of writes that don't specify one, e.g. those sent by kube itself.
pub(crate) fn with_field_manager(client: Client, manager: &str) -> Client {
    let parameter = format!("fieldManager={}", encode_parameter(manager));
    wrap_client(client, move |client, mut request| {
        if matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
            add_parameter(request.uri_mut(), &parameter);
        }
        async move { Ok(client.send(request).await?) }
    })
}

pub(crate) fn encode_parameter(value: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            // Writing to a `String` can't fail.
            byte => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
