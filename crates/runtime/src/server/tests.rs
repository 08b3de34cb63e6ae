use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;

pub(crate) async fn http_get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn addresses_in_go_format_are_parsed() {
    let check = |address: &str, expected: Option<(Option<&str>, u16)>| {
        assert_eq!(parse_address(address), expected, "{address}");
    };
    check(":8081", Some((None, 8081)));
    check("127.0.0.1:8081", Some((Some("127.0.0.1"), 8081)));
    check("localhost:0", Some((Some("localhost"), 0)));
    check("[::1]:443", Some((Some("::1"), 443)));
    check("::1:443", None);
    check("[localhost]:443", None);
    check("8081", None);
    check(":", None);
    check(":80810", None);
    check("http://localhost", None);
}

#[tokio::test]
async fn zero_and_empty_addresses_disable_the_server() {
    for address in ["0", ""] {
        assert!(Server::bind(address).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn bind_error_names_the_address() {
    let first = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
    let taken = first.address().unwrap().to_string();
    let error = Server::bind(&taken).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("failed to listen on {taken}: Address already in use")),
        "{error}"
    );

    let error = Server::bind("8081").await.unwrap_err().to_string();
    assert!(
        error.starts_with("invalid bind address `8081`: expected `:8081`"),
        "{error}"
    );
}

#[tokio::test]
async fn all_interfaces_are_bound() {
    let server = Server::bind(":0").await.unwrap().unwrap();
    let address = server.address().unwrap();
    let serving = tokio::spawn(server.serve(None, ok, std::future::pending()));
    assert!(http_get(address, "/").await.starts_with("HTTP/1.1 200 OK\r\n"));
    serving.abort();
}

async fn ok(_: Request<RequestBody>) -> Reply {
    text_reply(StatusCode::OK, "ok")
}

#[tokio::test]
async fn server_answers_500_to_a_panic_and_continues() {
    let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = server.address().unwrap();
    let handler = |request: Request<RequestBody>| async move {
        assert_ne!(request.uri().path(), "/panic");
        text_reply(StatusCode::OK, "ok")
    };
    let serving = tokio::spawn(server.serve(None, handler, std::future::pending()));
    assert!(http_get(address, "/panic").await.starts_with("HTTP/1.1 500 "));
    assert!(http_get(address, "/").await.starts_with("HTTP/1.1 200 "));
    serving.abort();
}

#[tokio::test]
async fn stopping_server_finishes_requests_in_flight_and_accepts_no_more() {
    let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = server.address().unwrap();
    let (begun, has_begun) = oneshot::channel();
    let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
    let (go_on, may_go_on) = watch::channel(false);
    let handler = move |_| {
        if let Some(begun) = begun.lock().unwrap().take() {
            begun.send(()).unwrap();
        }
        let mut may_go_on = may_go_on.clone();
        async move {
            may_go_on.wait_for(|go| *go).await.unwrap();
            text_reply(StatusCode::OK, "slow")
        }
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(None, handler, stopped.map(drop)));
    // An idle connection must not delay the shutdown.
    let _idle = TcpStream::connect(address).await.unwrap();
    let request = tokio::spawn(async move { http_get(address, "/").await });
    has_begun.await.unwrap();

    stop.send(()).unwrap();
    timeout(Duration::from_secs(5), async {
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("a stopping server accepts no more connections");
    go_on.send(true).unwrap();
    assert!(request.await.unwrap().ends_with("slow"));
    timeout(Duration::from_secs(5), serving)
        .await
        .expect("the server stops")
        .unwrap();
}

#[tokio::test]
async fn request_names_its_host_exactly_once() {
    let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = server.address().unwrap();
    let serving = tokio::spawn(server.serve(None, ok, std::future::pending()));
    let check = async |version: &str, hosts: &str, status: u16| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET / HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(
            &answer[9..12],
            status.to_string(),
            "{version} {hosts:?}: {answer}"
        );
    };
    check("1.1", "Host: a\r\n", 200).await;
    check("1.1", "Host:\r\n", 200).await;
    check("1.1", "", 400).await;
    check("1.1", "Host: a\r\nhost: a\r\n", 400).await;
    check("1.0", "", 200).await;
    check("1.0", "Host: a\r\nHost: b\r\n", 400).await;
    serving.abort();
}

mod limits {
    use super::*;
    use crate::server::client_timer::{HEADER_TIMEOUT, IDLE_TIMEOUT};
    use tokio::time::Instant;

    /// Uses the paused clock of the test, which advances whenever all tasks are idle.
    async fn client() -> TcpStream {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        tokio::spawn(server.serve(None, ok, std::future::pending()));
        TcpStream::connect(address).await.unwrap()
    }

    async fn closed_after(stream: &mut TcpStream) -> Duration {
        let started = Instant::now();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        started.elapsed()
    }

    fn assert_about(found: Duration, expected: Duration) {
        let second = Duration::from_secs(1);
        assert!(
            (expected - second..=expected + 2 * second).contains(&found),
            "{found:?}, and not {expected:?}"
        );
    }

    async fn request(stream: &mut TcpStream) {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            .await
            .unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            answer.push(byte[0]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_sends_nothing_or_half_a_head_is_disconnected_after_32_seconds() {
        assert_about(closed_after(&mut client().await).await, HEADER_TIMEOUT);
        let mut stream = client().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
        assert_about(closed_after(&mut stream).await, HEADER_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_is_kept_for_90_seconds() {
        let mut stream = client().await;
        for _ in 0..2 {
            request(&mut stream).await;
            sleep(IDLE_TIMEOUT - Duration::from_secs(5)).await;
        }
        request(&mut stream).await;
        assert_about(closed_after(&mut stream).await, IDLE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn head_timeout_applies_to_later_requests() {
        let mut stream = client().await;
        request(&mut stream).await;
        sleep(Duration::from_secs(40)).await;
        stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
        assert_about(closed_after(&mut stream).await, HEADER_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn responses_may_take_longer_than_the_timeouts() {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let slow = |_| async {
            sleep(Duration::from_secs(300)).await;
            text_reply(StatusCode::OK, "ok")
        };
        tokio::spawn(server.serve(None, slow, std::future::pending()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        request(&mut stream).await;
    }

    #[tokio::test]
    async fn too_large_request_head_is_rejected_with_431() {
        for fields in [
            format!("X: {}\r\n", "x".repeat(1024 * 1024)),
            "X: x\r\n".repeat(200),
        ] {
            let mut stream = client().await;
            let head = format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
            // Fails if the server has already closed the connection.
            let _ = stream.write_all(head.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(
                answer.starts_with(b"HTTP/1.1 431 "),
                "{}",
                String::from_utf8_lossy(&answer)
            );
        }
    }
}

mod connections {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use http_body_util::BodyExt;

    use super::*;

    /// After this long, we assume that something doesn't happen.
    const WHILE: Duration = Duration::from_millis(300);
    const SOON: Duration = Duration::from_secs(20);

    /// The server allows three connections, and needs a permit for each response to `/slow`.
    struct Limited {
        address: SocketAddr,
        answering: Arc<AtomicUsize>,
        permits: Arc<tokio::sync::Semaphore>,
    }

    impl Limited {
        async fn serve(tls: Option<TlsAcceptor>) -> Self {
            let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
            let (answering, permits) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
            let limited = Self {
                address: server.address().unwrap(),
                answering: Arc::clone(&answering),
                permits: Arc::clone(&permits),
            };
            let handler = move |request: Request<RequestBody>| {
                let (answering, permits) = (Arc::clone(&answering), Arc::clone(&permits));
                async move {
                    let path = request.uri().path().to_owned();
                    if path == "/slow" {
                        answering.fetch_add(1, SeqCst);
                        permits.acquire().await.unwrap().forget();
                    }
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let large = vec![b' '; if path == "/large" { 64 << 20 } else { 0 }];
                    text_reply(StatusCode::OK, [large, body.to_vec(), b"ok".to_vec()].concat())
                }
            };
            let server = server.with_max_connections(3);
            tokio::spawn(server.serve(tls, handler, std::future::pending()));
            limited
        }

        async fn send(&self, path: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream
        }

        /// The connection is idle after its first request.
        async fn idle(&self) -> TcpStream {
            let mut stream = self.send("/").await;
            read_answer(&mut stream).await;
            stream
        }

        async fn wait_for_answering(&self, count: usize) {
            timeout(SOON, async {
                while self.answering.load(SeqCst) < count {
                    sleep(Duration::from_millis(5)).await;
                }
            })
            .await
            .expect("the requests arrive");
        }
    }

    async fn read_answer(stream: &mut TcpStream) {
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            let mut byte = [0];
            let read = timeout(SOON, stream.read_exact(&mut byte)).await;
            read.expect("an answer").expect("an open connection");
            answer.push(byte[0]);
        }
    }

    async fn assert_closed(mut stream: TcpStream) {
        let read = timeout(SOON, stream.read(&mut [0])).await;
        assert!(matches!(read.expect("closed"), Ok(0) | Err(_)));
    }

    async fn assert_open(stream: &mut TcpStream) {
        assert!(timeout(WHILE, stream.read(&mut [0])).await.is_err());
    }

    #[tokio::test]
    async fn new_connection_replaces_the_one_silent_for_longest() {
        let server = Limited::serve(None).await;
        let mut slow = server.send("/slow").await;
        server.wait_for_answering(1).await;
        let oldest = server.idle().await;
        let mut half = TcpStream::connect(server.address).await.unwrap();
        half.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
        sleep(WHILE).await;
        let mut newest = server.idle().await;
        assert_closed(oldest).await;
        assert_open(&mut half).await;
        let mut last = server.idle().await;
        assert_closed(half).await;
        assert_open(&mut newest).await;
        assert_open(&mut last).await;
        server.permits.add_permits(1);
        read_answer(&mut slow).await;
    }

    #[tokio::test]
    async fn new_connection_waits_while_all_others_are_being_answered() {
        let server = Limited::serve(None).await;
        let mut slow = Vec::new();
        for count in 1..=3 {
            slow.push(server.send("/slow").await);
            server.wait_for_answering(count).await;
        }
        let mut waiting = server.send("/").await;
        assert_open(&mut waiting).await;
        server.permits.add_permits(1);
        read_answer(&mut waiting).await;
        server.permits.add_permits(2);
        // Each gets its entire response, even if the connection is closed right afterwards in favor
        // of a waiting one.
        for stream in &mut slow {
            read_answer(stream).await;
        }
    }

    /// Sends a request's head and the start of its body.
    async fn begin_body(server: &Limited, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n";
        stream.write_all(&[head, bytes].concat()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn new_connection_replaces_one_with_a_slow_body() {
        let server = Limited::serve(None).await;
        let mut slow = server.send("/slow").await;
        server.wait_for_answering(1).await;
        let mut trickling = begin_body(&server, b"").await;
        // Time starts when the server accepts a connection.
        sleep(WHILE).await;
        let silent = begin_body(&server, b"{").await;
        sleep(WHILE).await;
        // Time keeps running when more bytes arrive.
        trickling.write_all(b"{").await.unwrap();
        let mut first = server.idle().await;
        assert_closed(trickling).await;
        let mut second = server.idle().await;
        assert_closed(silent).await;
        assert_open(&mut first).await;
        assert_open(&mut second).await;
        server.permits.add_permits(1);
        read_answer(&mut slow).await;
    }

    #[tokio::test]
    async fn new_connections_do_not_replace_one_with_a_complete_body() {
        let server = Limited::serve(None).await;
        let mut posted = TcpStream::connect(server.address).await.unwrap();
        let request = b"POST /slow HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{}";
        posted.write_all(request).await.unwrap();
        server.wait_for_answering(1).await;
        let mut incomplete = Vec::new();
        for _ in 0..10 {
            incomplete.push(begin_body(&server, b"{").await);
        }
        read_answer(&mut server.send("/").await).await;
        server.permits.add_permits(1);
        read_answer(&mut posted).await;
    }

    #[tokio::test]
    async fn new_connection_replaces_one_that_does_not_read_its_response() {
        let server = Limited::serve(None).await;
        let mut blocked = Vec::new();
        for _ in 0..3 {
            let mut stream = server.send("/large").await;
            stream.read_exact(&mut [0]).await.unwrap();
            blocked.push(stream);
        }
        read_answer(&mut server.send("/").await).await;
    }

    #[tokio::test]
    async fn clients_with_a_certificate_are_replaced_last() {
        use crate::tls::tests::{connector_showing, current_certificate, localhost_client};

        let certificates = crate::tls::Certificates::self_signed().unwrap();
        let (authority, shown) = localhost_client();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), authority).unwrap();
        let server = Limited::serve(Some(certificates.acceptor(Some(file.path()), false).unwrap())).await;
        let connector = connector_showing(&current_certificate(&certificates), Some(shown));
        let name = tokio_rustls::rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut known = connector.connect(name, stream).await.unwrap();
        known
            .write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            .await
            .unwrap();
        known.read_exact(&mut [0; 100]).await.unwrap();
        let mut strangers = Vec::new();
        for _ in 0..5 {
            strangers.push(TcpStream::connect(server.address).await.unwrap());
            sleep(Duration::from_millis(20)).await;
        }
        assert_closed(strangers.remove(0)).await;
        known
            .write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            .await
            .unwrap();
        known.read_exact(&mut [0; 100]).await.unwrap();
    }

    #[tokio::test]
    async fn new_connection_replaces_one_without_a_handshake() {
        let certificates = crate::tls::Certificates::self_signed().unwrap();
        let server = Limited::serve(Some(certificates.acceptor(None, false).unwrap())).await;
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
            sleep(Duration::from_millis(50)).await;
        }
        assert_closed(silent.remove(0)).await;
        for stream in &mut silent {
            assert_open(stream).await;
        }
    }
}

#[cfg(feature = "http2")]
mod http2 {
    use http_body_util::{BodyExt, Empty};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio_rustls::rustls::pki_types::ServerName;

    use super::*;
    use crate::tls::Certificates;
    use crate::tls::tests::{connector_of, current_certificate};

    /// Sends several requests on the same connection, then shuts down gracefully.
    #[tokio::test]
    async fn http2_server_answers_requests_and_stops_gracefully() {
        let certificates = Certificates::self_signed().unwrap();
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let tls = certificates.acceptor(None, true).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(Some(tls), ok, stopped.map(drop)));
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = connector_of(&current_certificate(&certificates), &[b"h2"]);
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.unwrap();
        let connection = tokio::spawn(connection);
        for _ in 0..3 {
            let request = Request::get("https://localhost/")
                .body(Empty::<Bytes>::new())
                .unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
        }
        stop.send(()).unwrap();
        timeout(Duration::from_secs(5), serving)
            .await
            .expect("the server stops")
            .unwrap();
        let ended = timeout(Duration::from_secs(5), connection).await;
        ended.expect("the connection closes").unwrap().unwrap();
    }
}
