//! User-provided layers around the manager's client.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// The manager's client as a [`tower::Service`], passed to the layers of
/// [`Manager::client_layer`](crate::Manager::client_layer).
#[derive(Clone)]
pub struct ClientService(Client);

impl std::fmt::Debug for ClientService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientService(…)")
    }
}

impl Service<Request<Body>> for ClientService {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    /// Always ready, since the client queues requests internally.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        async move { client.send(request).await }.boxed()
    }
}

pub(crate) fn add_layer<L, B>(client: &Client, layer: &L) -> Client
where
    L: Layer<ClientService>,
    L::Service:
        Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let service = layer.layer(ClientService(client.clone()));
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}
