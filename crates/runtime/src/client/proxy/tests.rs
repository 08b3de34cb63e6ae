//! Tests of proxy selection, and of requests through each kind of proxy. Only the proxy can resolve
//! the server's host name.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::*;
use crate::client::{ClientSettings, new_lease_client, new_manager_client};
use crate::metrics::Metrics;
use crate::tls::Certificates;
use crate::tls::tests::current_certificate;

fn config(server: &str) -> Config {
    Config::new(server.parse().unwrap())
}

#[test]
fn proxy_comes_from_the_kubeconfig_or_a_variable() {
    let check = |server: &str, proxy_url: &str, variables: &[(&str, &str)], expected: Option<&str>| {
        let mut config = config(server);
        config.proxy_url = (!proxy_url.is_empty()).then(|| proxy_url.parse().unwrap());
        let variable = |name: &str| {
            let found = variables.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = find_proxy_in(&config, variable).unwrap();
        let found = found.map(|proxy| proxy.to_string());
        assert_eq!(found.as_deref(), expected, "{server} {proxy_url} {variables:?}");
    };
    let server = "https://api.example.com:6443";
    let a = "http://a:3128";
    let of_https = Some("proxy http://a:3128 (from HTTPS_PROXY)");
    check(server, "", &[], None);
    check(server, "", &[("HTTPS_PROXY", "")], None);
    check(server, "", &[("HTTPS_PROXY", a)], of_https);
    check(
        server,
        "",
        &[("https_proxy", "a")],
        Some("proxy http://a:80 (from https_proxy)"),
    );
    check(server, "", &[("HTTPS_PROXY", a), ("https_proxy", "b")], of_https);
    check(server, "", &[("HTTP_PROXY", a), ("ALL_PROXY", a)], None);
    check(
        "http://api.example.com",
        "",
        &[("HTTP_PROXY", a)],
        Some("proxy http://a:3128 (from HTTP_PROXY)"),
    );
    check("http://api.example.com", "", &[("HTTPS_PROXY", a)], None);
    for name in ["NO_PROXY", "no_proxy"] {
        check(server, "", &[("HTTPS_PROXY", a), (name, "x, .example.com")], None);
        check(server, "", &[("HTTPS_PROXY", a), (name, "other.com")], of_https);
    }
    check("https://127.0.0.1:6443", "", &[("HTTPS_PROXY", a)], None);
    // A proxy in the kubeconfig applies regardless of `NO_PROXY`.
    let of_file = Some("proxy socks5://b:1080 (from `proxy-url` of the kubeconfig)");
    let variables = [("HTTPS_PROXY", a), ("NO_PROXY", "*")];
    check(server, "socks5://b", &variables, of_file);
    check("https://127.0.0.1:6443", "socks5h://b", &variables, of_file);
    // kube took this URL from an environment variable.
    check(server, a, &[("HTTPS_PROXY", a)], of_https);
    check(server, a, &variables, None);
    check(server, "a:3128", &[("HTTPS_PROXY", "a:3128")], of_https);
}

#[test]
fn invalid_proxy_url_is_reported_without_its_password() {
    let check = |url: &str, expected: &str| {
        let error = Proxy::parse(url, Source::Variable("HTTPS_PROXY")).unwrap_err();
        let error = ManagerError::from(error).to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
    };
    check(
        "ftp://me:secret@a:21",
        "invalid value `a:21` for environment variable HTTPS_PROXY: expected the URL of a proxy, such as \
         `http://proxy.example.com:3128`, with the scheme `http`, `https`, `socks5` or `socks5h`; found the scheme `ftp`",
    );
    check("http://", "found ");
    check("http://me:secret@a b", "found ");
    let proxy = Proxy::parse("http://me:se%40cr%et@a", Source::Kubeconfig).unwrap();
    assert_eq!(proxy.user, Some(("me".to_owned(), "se@cr%et".to_owned())));
    assert!(!proxy.to_string().contains("me"), "{proxy}");
}

#[test]
fn loading_a_kubeconfig_ignores_proxy_variables() {
    let text = r#"{"clusters": [
        {"name": "a", "cluster": {"server": "https://a", "proxy-url": ""}},
        {"name": "b", "cluster": {"server": "https://b", "proxy-url": "http://c"}}
    ]}"#;
    let mut kubeconfig: Kubeconfig = serde_json::from_str(text).unwrap();
    ignore_environment(&mut kubeconfig);
    let proxies: Vec<_> = kubeconfig
        .clusters
        .iter()
        .map(|named| named.cluster.clone().unwrap().proxy_url)
        .collect();
    let mut marked = config("https://a");
    marked.proxy_url = Some(proxies[0].as_ref().unwrap().parse().unwrap());
    remove_marker(&mut marked);
    assert_eq!(marked.proxy_url, None);
    marked.proxy_url = Some(proxies[1].as_ref().unwrap().parse().unwrap());
    remove_marker(&mut marked);
    assert_eq!(marked.proxy_url, Some(Uri::from_static("http://c")));
}

/// Messages received by the proxy before it opened the tunnel.
type Received = Arc<Mutex<Vec<Vec<u8>>>>;

/// Responds to every client with the same object.
async fn serve_api() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#;
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all((head + body).as_bytes()).await;
        }
    });
    port
}

/// Number of bytes to read (0 for an HTTP head), and the reply.
type Step = (usize, Vec<u8>);

/// Starts a proxy that goes through the given steps and then forwards everything to the API server.
async fn serve_proxy(steps: Vec<Step>, certificates: Option<Arc<Certificates>>) -> (u16, Received) {
    let api = serve_api().await;
    let received = Received::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (steps, log, certificates) = (steps.clone(), Arc::clone(&log), certificates.clone());
            tokio::spawn(async move {
                match certificates {
                    None => forward(stream, &steps, &log, api).await,
                    Some(certificates) => {
                        let acceptor = certificates.acceptor(None, false).unwrap();
                        if let Ok(stream) = acceptor.accept(stream).await {
                            forward(stream, &steps, &log, api).await;
                        }
                    }
                }
            });
        }
    });
    (port, received)
}

async fn forward<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, steps: &[Step], log: &Received, api: u16) {
    for (length, answer) in steps {
        let mut message = Vec::new();
        while (*length == 0 && !message.ends_with(b"\r\n\r\n")) || message.len() < *length {
            match stream.read_u8().await {
                Ok(byte) => message.push(byte),
                Err(_) => return,
            }
        }
        log.lock().unwrap().push(message);
        stream.write_all(answer).await.unwrap();
    }
    let mut server = TcpStream::connect(("127.0.0.1", api)).await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

/// Sends a request to a server whose host name only the proxy can resolve.
async fn get_through(proxy: &str, authority: Option<CertificateDer<'static>>) -> Result<(), String> {
    let mut config = config("http://api.nowhere.example:8080");
    config.proxy_url = Some(proxy.parse().unwrap());
    config.root_cert = authority.map(|der| vec![der.to_vec()]);
    let (metrics, settings) = (Metrics::new(), ClientSettings::default());
    let timeout = std::time::Duration::from_secs(5);
    for client in [
        new_manager_client(config.clone(), &metrics, &settings).unwrap(),
        new_lease_client(config, &metrics, &settings, timeout).unwrap(),
    ] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.get("any")
            .await
            .map_err(|error| format!("{:#}", crate::Error::from(error)))?;
    }
    Ok(())
}

fn answer(line: &str) -> Vec<Step> {
    vec![(0, format!("HTTP/1.1 {line}\r\n\r\n").into_bytes())]
}

#[tokio::test]
async fn all_clients_use_the_tunnel_of_an_http_proxy() {
    let (port, received) = serve_proxy(answer("200 Connection established"), None).await;
    get_through(&format!("http://me:pass%21@localhost:{port}"), None)
        .await
        .unwrap();
    let received = received.lock().unwrap().clone();
    assert_eq!(received.len(), 2);
    for head in received {
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let start = "connect api.nowhere.example:8080 http/1.1\r\n";
        assert!(head.starts_with(start), "{head}");
        assert!(head.contains("\r\nhost: api.nowhere.example:8080\r\n"), "{head}");
        let login = STANDARD.encode("me:pass!").to_lowercase();
        assert!(
            head.contains(&format!("proxy-authorization: basic {login}\r\n")),
            "{head}"
        );
    }
}

#[tokio::test]
async fn connection_to_an_https_proxy_is_encrypted() {
    let certificates = Certificates::self_signed().unwrap();
    let authority = current_certificate(&certificates);
    let (port, received) = serve_proxy(answer("200 OK"), Some(certificates)).await;
    get_through(&format!("https://localhost:{port}"), Some(authority))
        .await
        .unwrap();
    assert_eq!(received.lock().unwrap().len(), 2);
}

/// Last step of a SOCKS5 handshake: the request for `api.nowhere.example:8080`, and a reply.
fn socks_connect(status: u8) -> Step {
    (
        7 + "api.nowhere.example".len(),
        vec![5, status, 0, 1, 0, 0, 0, 0, 0, 0],
    )
}

#[tokio::test]
async fn socks_proxy_resolves_the_name() {
    let (port, received) = serve_proxy(vec![(3, vec![5, 0]), socks_connect(0)], None).await;
    get_through(&format!("socks5://127.0.0.1:{port}"), None)
        .await
        .unwrap();
    let request = [&[5, 1, 0, 3, 19][..], b"api.nowhere.example", &[0x1f, 0x90]].concat();
    assert_eq!(received.lock().unwrap()[..2], [vec![5, 1, 0], request]);

    let login = [&[1, 2][..], b"me", &[6], b"secret"].concat();
    let steps = vec![(3, vec![5, 2]), (login.len(), vec![1, 0]), socks_connect(0)];
    let (port, received) = serve_proxy(steps, None).await;
    get_through(&format!("socks5h://me:secret@127.0.0.1:{port}"), None)
        .await
        .unwrap();
    assert_eq!(received.lock().unwrap()[1], login);
}

#[tokio::test]
async fn proxy_failure_includes_the_proxy_its_reply_and_advice() {
    let check = async |scheme: &str, steps: Vec<Step>, expected: &str| {
        let (port, _) = serve_proxy(steps, None).await;
        let error = get_through(&format!("{scheme}://127.0.0.1:{port}"), None)
            .await
            .unwrap_err();
        let start = "ServiceError: cannot reach the API server at http://api.nowhere.example:8080: ";
        assert!(error.starts_with(start), "{error}");
        let named = format!("proxy {scheme}://127.0.0.1:{port} (from `proxy-url` of the kubeconfig) ");
        assert!(error.contains(&named), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(
            error.ends_with("; correct `proxy-url` in the kubeconfig"),
            "{error}"
        );
    };
    let refused = "did not connect to api.nowhere.example:8080: ";
    check(
        "http",
        answer("403 Forbidden"),
        &format!("{refused}it answered 403 Forbidden"),
    )
    .await;
    check(
        "http",
        answer("407 Proxy Authentication Required"),
        &format!("{refused}it asks for a user and a password"),
    )
    .await;
    check(
        "socks5",
        vec![(3, vec![5, 0xff])],
        &format!("{refused}it asks for a user and a password"),
    )
    .await;
    check(
        "socks5",
        vec![(3, b"HT".to_vec())],
        &format!("{refused}it does not speak SOCKS5"),
    )
    .await;
    check(
        "socks5",
        vec![(3, vec![5, 0]), socks_connect(2)],
        &format!("{refused}connection not allowed"),
    )
    .await;
    // Bind the port without listening, so that connections are refused and no other process can
    // grab it.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    for scheme in ["http", "socks5"] {
        let error = get_through(&format!("{scheme}://127.0.0.1:{port}"), None)
            .await
            .unwrap_err();
        assert!(
            error.contains("cannot be reached: tcp connect error: Connection refused"),
            "{error}"
        );
    }
}
