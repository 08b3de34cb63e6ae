//! Connections of a client. This layer also adds the address, the credentials and kube's headers to
//! each request.
//! Equivalent to what kube's `ClientBuilder` creates from a configuration, except that it uses our
//! [`Connector`], which supports proxies, and doesn't retry.
//!
//! Like kube, we use HTTP/1.1, so each watch needs its own connection. Switching to HTTP/2 would
//! mean:
//!
//! - Add ALPN to the TLS configuration, which is created here.
//! - Always depend on h2. Currently it's only compiled for servers, with the feature `http2`.
//! - Keep using HTTP/1.1 for upgraded requests (exec and attach).
//! - Replace the pool of [`legacy::Client`], which uses a single connection per server. We'd have
//!   to open another connection before reaching the server's stream limit, and send pings, because
//!   all watches would hang if that connection broke.

use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{AuthError, Body, ConfigExt, DynBody};
use tokio_rustls::rustls::pki_types::ServerName;
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use super::proxy::{Connector, find_proxy};

pub(super) type Transport = BoxCloneService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Rejects a token in the configuration that kube's layer for credentials would panic on.
fn check_token(config: &Config) -> Result<(), kube::Error> {
    // Without a dependency on secrecy, a token can only be read by serializing it.
    let fields = serde_json::to_value(&config.auth_info).map_err(kube::Error::SerdeError)?;
    match HeaderValue::from_str(fields["token"].as_str().unwrap_or_default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(kube::Error::Auth(AuthError::InvalidBearerToken(error))),
    }
}

/// May block, because it reads files and runs the exec plugin. Fails if the proxy URL, the
/// credentials or the certificates are invalid.
pub(super) fn new_transport(config: &Config) -> Result<Transport, kube::Error> {
    check_token(config)?;
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
