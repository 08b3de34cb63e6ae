//! Connection to a cluster. The server and the credentials may change, but the client that we hand
//! out stays the same. The state of the connection is derived from the responses.
//!
//! Caches, contexts and the operator's code keep their client for as long as they live, whereas a
//! kubeconfig may not exist yet, and is replaced to rotate the credentials. Their client is
//! therefore a proxy that forwards each request to a client for the latest kubeconfig.

use std::sync::{Arc, PoisonError, RwLock};

use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tokio::sync::{Notify, watch};
use tower::{BoxError, service_fn};

use crate::causes::{describe, describe_causes};

/// Namespace of requests that don't specify one.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The cluster hasn't responded yet, for the given reason.
    Waiting(String),
    Connected,
    /// The cluster stopped responding, for the given reason.
    Lost(String),
    Removed,
}

impl State {
    /// Returns the reason why the cluster can't be used, if any.
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Connected => None,
            Self::Waiting(reason) | Self::Lost(reason) => Some(reason),
            Self::Removed => Some("it was removed from the manager"),
        }
    }
}

/// Includes the name of the cluster, since its API server's address is hard to recognize.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the cluster `{cluster}` is not connected: {reason}")]
    NotConnected { cluster: String, reason: String },
    #[error("request to the cluster `{cluster}` failed: {}", describe(.cause))]
    Failed {
        cluster: String,
        #[source]
        cause: kube::Error,
    },
}

#[derive(Clone)]
pub(super) struct Connection(Arc<Shared>);

struct Shared {
    cluster: String,
    client: RwLock<Option<Client>>,
    state: watch::Sender<State>,
    /// Notified when the API server rejects the credentials.
    rejected: Notify,
}

impl Connection {
    pub(super) fn new(cluster: &str) -> Self {
        let waiting = State::Waiting("its configuration was not read yet".to_owned());
        Self(Arc::new(Shared {
            cluster: cluster.to_owned(),
            client: RwLock::default(),
            state: watch::channel(waiting).0,
            rejected: Notify::new(),
        }))
    }

    /// Makes all requests use this client from now on.
    pub(super) fn set_client(&self, client: Client) {
        *self.0.client.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }

    /// Requests with the returned client fail until the cluster is connected.
    pub(super) fn client(&self) -> Client {
        let connection = self.clone();
        let send = move |request| {
            let connection = connection.clone();
            async move { connection.send(request).await.map_err(BoxError::from) }
        };
        Client::new(service_fn(send), DEFAULT_NAMESPACE)
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, RequestError> {
        let client = self.current_client()?;
        match client.send(request).await {
            Ok(response) => {
                self.note_response(&response);
                Ok(response)
            }
            Err(cause) => {
                self.note_failure(describe_causes(&cause));
                let cluster = self.0.cluster.clone();
                Err(RequestError::Failed { cluster, cause })
            }
        }
    }

    fn current_client(&self) -> Result<Client, RequestError> {
        let not_connected = |reason: &str| RequestError::NotConnected {
            cluster: self.0.cluster.clone(),
            reason: reason.to_owned(),
        };
        let state = self.0.state.borrow();
        if let State::Removed = *state {
            return Err(not_connected(state.problem().unwrap_or_default()));
        }
        // Send requests even to a lost cluster: a response tells us that it's back.
        let client = self.0.client.read().unwrap_or_else(PoisonError::into_inner);
        let reason = || state.problem().unwrap_or_default();
        client.clone().ok_or_else(|| not_connected(reason()))
    }

    fn note_response(&self, response: &Response<Body>) {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            // Makes the cluster's task reload the credentials.
            self.0.rejected.notify_one();
            self.note_failure("the API server rejects the credentials (401 Unauthorized)".to_owned());
        } else if !is_from_api_server(response) {
            self.note_failure(format!(
                "a proxy or load balancer answers in place of the API server ({status})"
            ));
        // The state rarely changes, and a read lock is enough to check.
        } else if *self.0.state.borrow() != State::Connected {
            self.0.state.send_if_modified(|state| match state {
                State::Connected | State::Removed => false,
                State::Waiting(_) | State::Lost(_) => {
                    *state = State::Connected;
                    true
                }
            });
        }
    }

    pub(super) fn note_failure(&self, reason: String) {
        let cluster = &*self.0.cluster;
        self.0.state.send_if_modified(|state| match state {
            State::Removed => false,
            State::Connected => {
                *state = State::Lost(reason);
                true
            }
            // The same failure again, e.g. of a retry.
            State::Waiting(before) | State::Lost(before) if *before == reason => false,
            State::Waiting(before) => {
                tracing::warn!(cluster, error = reason, "cluster cannot be connected, retrying");
                *before = reason;
                true
            }
            State::Lost(before) => {
                *before = reason;
                true
            }
        });
    }

    pub(super) fn remove(&self) {
        self.0.state.send_replace(State::Removed);
        *self.0.client.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    pub(super) fn watch_state(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Waits until the API server rejects the credentials. Returns immediately if it has done so
    /// since the last call.
    pub(super) async fn rejected(&self) {
        self.0.rejected.notified().await;
    }
}

/// Returns `false` if the response is certainly from something in front of the API server, e.g. a
/// load balancer without a healthy backend.
fn is_from_api_server(response: &Response<Body>) -> bool {
    // kube-apiserver adds this to every response, but a proxy may remove it. Its own 503, e.g. for
    // an aggregated API that is down, has it.
    if response.headers().contains_key("audit-id") {
        return true;
    }
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_page = content_type.is_some_and(|found| found.as_bytes().starts_with(b"text/html"));
    let of_gateway = [
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    !is_page && !of_gateway.contains(&response.status())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    use super::*;

    /// The server always responds with `status`, or never if `status` is 0.
    fn answering(status: u16) -> Client {
        let service = service_fn(move |_: Request<Body>| async move {
            let Ok(status) = StatusCode::from_u16(status) else {
                return Err(BoxError::from("connection reset"));
            };
            let body = Body::from(br#"{"metadata":{"name":"any"}}"#.to_vec());
            Ok(Response::builder().status(status).body(body).unwrap())
        });
        Client::new(service, "default")
    }

    /// Sends a request. Returns the result and the new state of the connection.
    async fn ask(connection: &Connection) -> (Result<ConfigMap, kube::Error>, State) {
        let maps: Api<ConfigMap> = Api::default_namespaced(connection.client());
        (maps.get("any").await, connection.state())
    }

    #[tokio::test]
    async fn requests_without_a_configuration_fail_with_the_reason() {
        let connection = Connection::new("edge");
        connection.note_failure("no Secret default/edge".to_owned());
        let (answer, state) = ask(&connection).await;
        let expected = "the cluster `edge` is not connected: no Secret default/edge";
        assert!(answer.unwrap_err().to_string().contains(expected));
        assert_eq!(state, State::Waiting("no Secret default/edge".to_owned()));
    }

    #[tokio::test]
    async fn client_follows_the_configuration() {
        let connection = Connection::new("edge");
        let maps: Api<ConfigMap> = Api::default_namespaced(connection.client());
        for (status, is_ok) in [(200, true), (0, false), (200, true)] {
            connection.set_client(answering(status));
            assert_eq!(maps.get("any").await.is_ok(), is_ok);
        }
    }

    #[tokio::test]
    async fn responses_decide_whether_the_cluster_is_connected() {
        let connection = Connection::new("edge");
        for (status, expected) in [
            (0, "Waiting"),
            (404, "Connected"),
            (0, "Lost"),
            (500, "Connected"),
            (503, "Lost"),
            (200, "Connected"),
            (401, "Lost"),
        ] {
            connection.set_client(answering(status));
            let (_, state) = ask(&connection).await;
            assert!(format!("{state:?}").starts_with(expected), "{status}: {state:?}");
        }
        let rejected = tokio::time::timeout(std::time::Duration::ZERO, connection.rejected());
        assert!(rejected.await.is_ok(), "after a 401");
    }

    #[test]
    fn page_or_error_of_a_load_balancer_is_not_a_response_of_the_api_server() {
        let check = |status: u16, header: Option<(&str, &str)>, expected: bool| {
            let mut response = Response::builder().status(status);
            if let Some((name, value)) = header {
                response = response.header(name, value);
            }
            let found = is_from_api_server(&response.body(Body::empty()).unwrap());
            assert_eq!(found, expected, "{status} {header:?}");
        };
        for status in [502, 503, 504] {
            check(status, None, false);
            check(status, Some(("content-type", "application/json")), false);
            check(status, Some(("Audit-Id", "6f5e")), true);
        }
        check(200, Some(("content-type", "text/html; charset=utf-8")), false);
        check(200, Some(("content-type", "application/json")), true);
        check(500, None, true);
        check(404, Some(("content-type", "text/plain")), true);
    }

    #[tokio::test]
    async fn failures_name_the_cluster_and_its_cause() {
        let connection = Connection::new("edge");
        connection.set_client(answering(0));
        let error = ask(&connection).await.0.unwrap_err().to_string();
        assert!(
            error.contains("request to the cluster `edge` failed") && error.contains("connection reset"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn removed_cluster_refuses_requests() {
        let connection = Connection::new("edge");
        connection.set_client(answering(200));
        assert!(ask(&connection).await.0.is_ok());
        connection.remove();
        let (answer, state) = ask(&connection).await;
        assert!(
            answer
                .unwrap_err()
                .to_string()
                .contains("it was removed from the manager")
        );
        connection.note_failure("late".to_owned());
        assert_eq!((state, connection.state()), (State::Removed, State::Removed));
    }
}
