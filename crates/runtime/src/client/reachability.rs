//! Logs outages of the API server, once for all callers.
//!
//! When a Pod starts before its network is ready, there are dozens of requests from caches, workers
//! and leader election, each failing several times per second. Only the client can tell that they
//! all fail for the same reason, so the client logs it: an error on the first failure and whenever
//! the cause changes, and a message once a request gets a response again.
//!
//! Behind a load balancer, some connections may fail while others succeed. To avoid flooding the
//! log, a cause is only logged again if it has not occurred for some time.
//!
//! Errors are still returned to callers, who retry. Callers that would merely log the error should
//! check [`is_unreachable`](super::is_unreachable) first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, timeout};
use tower::BoxError;

use super::no_response::{NoResponse, find_no_response};
use super::without_credentials;
use crate::causes::describe_causes;

const MAX_CAUSES: usize = 8;
/// Time after which a cause is logged again. Watches may only retry every 30 seconds.
const FORGET_AFTER: Duration = Duration::from_secs(120);
/// Timeout of the first request if the manager doesn't run in a Pod.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Tracks outages of an API server. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct Reachability(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    logged_since: Option<Instant>,
    /// Causes of outages that were already logged, with the time each last occurred.
    causes: Vec<(String, Instant)>,
    /// If set, [`check`](Reachability::check) returns failures and nothing is logged.
    is_silent: bool,
}

impl Reachability {
    /// The returned function processes the results of all requests to a server. It logs outages,
    /// and adds the server's address to the error if there is no response.
    pub(super) fn observe<B>(
        &self,
        server: &Uri,
    ) -> impl FnOnce(Result<Response<B>, BoxError>) -> Result<Response<B>, BoxError> + Clone + use<B> {
        let address: Arc<str> = without_credentials(server)
            .to_string()
            .trim_end_matches('/')
            .into();
        let reachability = self.clone();
        move |result| match result {
            Ok(response) => {
                reachability.note_response(&address);
                Ok(response)
            }
            // E.g. kube failed to authenticate, which needs no explanation.
            Err(error) if error.is::<kube::Error>() => Err(error),
            Err(error) => {
                let error = NoResponse::new(&address, error);
                reachability.note_failure(&error);
                Err(error.into())
            }
        }
    }

    /// Checks that the API server sends a response of any kind. Otherwise, the error contains its
    /// address and all causes, and nothing is logged.
    ///
    /// A missing response may just mean that the server is slow, so after ten seconds this only
    /// logs a warning and continues.
    pub(crate) async fn check(&self, client: &Client) -> Result<(), String> {
        self.lock().is_silent = true;
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static("/version");
        let answered = timeout(START_TIMEOUT, client.send(request)).await;
        self.lock().is_silent = false;
        match answered {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => match find_no_response(&error) {
                None => Err(describe_causes(&error)),
                Some(error) if error.is_unreachable => Err(error.to_string()),
                // E.g. a connection reset, which the caches will retry.
                Some(_) => Ok(()),
            },
            Err(_) => {
                tracing::warn!(after = ?START_TIMEOUT, "the API server has not answered yet");
                Ok(())
            }
        }
    }

    fn note_failure(&self, error: &NoResponse) {
        let mut state = self.lock();
        if !error.is_unreachable || state.is_silent {
            return;
        }
        let (message, now) = (error.to_string(), Instant::now());
        state.causes.retain(|(_, met)| now < *met + FORGET_AFTER);
        if let Some((_, met)) = state.causes.iter_mut().find(|(cause, _)| *cause == message) {
            *met = now;
        } else if state.causes.len() < MAX_CAUSES {
            tracing::error!("{message}");
            state.causes.push((message, now));
            state.logged_since.get_or_insert(now);
        }
    }

    fn note_response(&self, address: &str) {
        if let Some(since) = self.lock().logged_since.take() {
            let after = since.elapsed();
            tracing::info!(address, ?after, "the API server is reachable again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, Config};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::client::{ClientSettings, is_unreachable, new_lease_client, new_manager_client};
    use crate::logging::LogBuffer;
    use crate::metrics::Metrics;
    use crate::tls::Certificates;
    use crate::tls::issued::Issued;

    async fn request(client: &Client) -> Result<(), String> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let answered = maps.get("any").await;
        let error = |error: kube::Error| {
            assert!(is_unreachable(&error), "{error:?}");
            format!("{:#}", crate::Error::from(error))
        };
        answered.map(drop).map_err(error)
    }

    async fn answer(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#;
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        let _ = stream.write_all((head + body).as_bytes()).await;
    }

    #[tokio::test]
    async fn server_that_refuses_connections_is_logged_once_with_address_and_cause() {
        // Bind the port without listening, so that connections are refused and no other process can
        // grab it.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let config = Config::new(format!("http://{address}").parse().unwrap());
        let (settings, metrics) = (ClientSettings::default(), Metrics::new());
        let timeout = Duration::from_secs(5);
        let clients = [
            new_manager_client(config.clone(), &metrics, &settings).unwrap(),
            new_lease_client(config, &metrics, &settings, timeout).unwrap(),
        ];
        let (log, _guard) = LogBuffer::start();
        let expected = format!(
            "cannot reach the API server at http://{address}: client error (Connect): tcp connect error: \
             Connection refused (os error 111)"
        );
        for client in clients.iter().cycle().take(6) {
            assert_eq!(request(client).await, Err(format!("ServiceError: {expected}")));
        }
        let text = log.text();
        assert_eq!(text.matches(&expected).count(), 1, "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");

        let listener = socket.listen(8).unwrap();
        for client in &clients {
            let (answered, ()) = tokio::join!(request(client), answer(&listener));
            answered.unwrap();
        }
        let text = log.text();
        assert_eq!(
            text.matches("the API server is reachable again").count(),
            1,
            "{text}"
        );
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[tokio::test]
    async fn certificate_from_an_unknown_authority_is_explained() {
        let own = Certificates::self_signed().unwrap();
        let lifetime = Duration::from_secs(60);
        let other = Issued::new(&["other".to_owned()], lifetime, Timestamp::now()).unwrap();
        let acceptor = own.acceptor(None, false).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = acceptor.accept(stream).await;
            }
        });
        let mut config = Config::new(format!("https://localhost:{}", address.port()).parse().unwrap());
        let other = pem::parse(other.authority.pem()).unwrap();
        config.root_cert = Some(vec![other.into_contents()]);
        let client = new_manager_client(config, &Metrics::new(), &ClientSettings::default()).unwrap();
        let error = request(&client).await.unwrap_err();
        let start = format!(
            "ServiceError: cannot reach the API server at https://localhost:{}: ",
            address.port()
        );
        assert!(error.starts_with(&start), "{error}");
        let end =
            "invalid peer certificate: UnknownIssuer (the certificate is signed by an unknown authority)";
        assert!(error.ends_with(end), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn occasional_connection_failures_are_logged_occasionally() {
        let (log, _guard) = LogBuffer::start();
        let reachability = Reachability::default();
        let mut failed = NoResponse::new("address", "refused".into());
        failed.is_unreachable = true;
        for _ in 0..100 {
            reachability.note_failure(&failed);
            reachability.note_response("address");
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        assert_eq!(log.text().lines().count(), 2, "{}", log.text());
        tokio::time::advance(FORGET_AFTER).await;
        reachability.note_failure(&failed);
        assert_eq!(log.text().matches("refused").count(), 2);
    }
}
