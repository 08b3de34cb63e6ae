//! The connections of a client, and what is added to each request: the address, the credentials and kube's headers.
//!
//! It is what kube's `ClientBuilder` makes of a configuration, with a [`Connector`] that knows proxies, and without retries.
//!
//! Connections speak HTTP/1.1, as kube's do, so each watch takes one. HTTP/2 would need ALPN in the TLS configuration, which is
//! set here; h2, which operators compile only for their servers, with the feature `http2`; HTTP/1.1 for requests that are
//! upgraded (exec, attach); and a pool in the place of [`legacy::Client`], which has one connection for a server: it would
//! have to open others before the server's limit of streams, and to send pings, because a dead connection would stop every
//! watch.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt, DynBody};
use tokio_rustls::rustls::pki_types::ServerName;
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use super::proxy::{Connector, find_proxy};

/// Sends requests. Clones share their connections.
pub(super) type Transport = BoxCloneService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Creates a transport. It reads the files of the configuration and runs its plug-in, so it may block.
///
/// # Errors
/// When the URL of the proxy, the credentials or the certificates of the configuration cannot be used.
pub(super) fn new_transport(config: &Config) -> Result<Transport, kube::Error> {
    let proxy = find_proxy(config).map_err(|error| kube::Error::Service(error.into()))?;
    let tls = config.rustls_client_config()?;
    let names: Arc<dyn ResolveServerName + Send + Sync> = match &config.tls_server_name {
        None => Arc::new(DefaultServerNameResolver::default()),
        Some(name) => {
            let name = ServerName::try_from(name.clone());
            let name = name.map_err(|error| kube::Error::Service(error.into()))?;
            Arc::new(FixedServerNameResolver::new(name))
        }
    };
    let connector = HttpsConnector::new(Connector::new(proxy, tls.clone()), tls, false, names);
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connections = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let transport = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(connections)
        .map_response(|response: Response<hyper::body::Incoming>| {
            response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        });
    Ok(BoxCloneService::new(transport))
}
