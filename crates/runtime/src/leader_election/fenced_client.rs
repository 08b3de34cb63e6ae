//! A client that rejects writes unless this process holds the lease.

use std::future::poll_fn;

use futures::FutureExt;
use http::{Method, Request, header};
use kube::Client;
use kube::client::Body;

use super::fence::Fence;
use crate::client::wrap_client;

/// Wraps a client so that it only sends writes while the lease is held. Reads are not affected.
pub(crate) fn fence_client(client: Client, fence: &Fence) -> Client {
    let fence = fence.clone();
    wrap_client(client, move |client, request| {
        let (fence, is_read) = (fence.clone(), is_read(&request));
        let mut sending = async move { Ok(client.send(request).await?) }.boxed();
        poll_fn(move |context| {
            // Check this each time that the request makes progress, e.g. after waiting for a
            // connection or a retry. If the response arrives after the lease has ended, callers get
            // the same error, because they must not act on the response.
            if !is_read {
                fence.check()?;
            }
            sending.poll_unpin(context)
        })
    })
}

/// Returns `true` if a request can't modify anything. `exec` and `attach` start with a GET, but run
/// a command.
fn is_read(request: &Request<Body>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !request.headers().contains_key(header::UPGRADE)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::Response;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use serde_json::json;
    use tokio::time::{Instant, advance};

    use super::*;

    /// Responds to each request after a second.
    #[derive(Clone, Default)]
    struct Server(Arc<AtomicUsize>);

    impl Server {
        fn client(&self) -> Client {
            let arrived = Arc::clone(&self.0);
            let service = tower::service_fn(move |_: Request<Body>| {
                let arrived = Arc::clone(&arrived);
                async move {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let body = json!({ "metadata": { "name": "any" } });
                    Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes())))
                }
            });
            Client::new(service, "default")
        }

        fn arrived(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    /// Sends one write request of each kind and returns their errors.
    async fn write(maps: &Api<ConfigMap>) -> Vec<String> {
        let map = ConfigMap::default();
        let patch = Patch::Merge(json!({ "data": { "a": "b" } }));
        let errors = [
            maps.create(&PostParams::default(), &map).await.err(),
            maps.replace("any", &PostParams::default(), &map).await.err(),
            maps.patch("any", &PatchParams::default(), &patch).await.err(),
            maps.delete("any", &DeleteParams::default()).await.err(),
        ];
        errors
            .into_iter()
            .flatten()
            .map(|error| error.to_string())
            .collect()
    }

    fn fenced() -> (Server, Fence, Api<ConfigMap>) {
        let (server, fence) = (Server::default(), Fence::new("operator"));
        let maps = Api::default_namespaced(fence_client(server.client(), &fence));
        (server, fence, maps)
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_sent_only_while_the_lease_is_held() {
        let (server, fence, maps) = fenced();
        assert_eq!(write(&maps).await.len(), 4, "before the election");
        assert_eq!(server.arrived(), 0);
        assert!(fence.extend(Instant::now() + Duration::from_secs(10)));
        assert_eq!(write(&maps).await, Vec::<String>::new());
        assert_eq!(server.arrived(), 4);
        advance(Duration::from_secs(10)).await;
        let refused = "ServiceError: the leader election lease `operator` is no longer held, request refused";
        assert_eq!(write(&maps).await, [refused; 4]);
        assert_eq!(server.arrived(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn reads_need_no_lease() {
        let (server, _, maps) = fenced();
        assert_eq!(
            maps.get("any").await.unwrap().metadata.name.as_deref(),
            Some("any")
        );
        assert_eq!(server.arrived(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn exec_counts_as_a_write() {
        let (server, _, maps) = fenced();
        let request = Request::get("/api/v1/namespaces/a/pods/web/exec?command=ls")
            .header(header::UPGRADE, "websocket")
            .body(Body::empty())
            .unwrap();
        assert!(maps.into_client().send(request).await.is_err());
        assert_eq!(server.arrived(), 0);
    }

    /// Like an API server that says "try again in 30 s". The lease ends while the client is
    /// waiting.
    #[tokio::test(start_paused = true)]
    async fn write_in_progress_stops_when_the_lease_ends() {
        let (server, fence, maps) = fenced();
        assert!(fence.extend(Instant::now() + Duration::from_millis(500)));
        let error = maps.delete("any", &DeleteParams::default()).await.unwrap_err();
        assert!(error.to_string().contains("is no longer held"), "{error}");
        assert_eq!(server.arrived(), 1);
    }
}
