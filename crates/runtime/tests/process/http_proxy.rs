//! Operators with an HTTP proxy configured by environment variables.

use std::sync::{Arc, Mutex};

use kube::config::Kubeconfig;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Host name of the API server, which only the proxy can resolve.
const NAME: &str = "kubernetes.nowhere.example";

/// Always responds with the same status line. For a success, it connects to the API server.
struct HttpProxy {
    url: String,
    /// The heads of all requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl HttpProxy {
    async fn start(place: &Place, status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
        let heads = Arc::default();
        let server = place.env.config().cluster_url.authority().unwrap().to_string();
        let log = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, Arc::clone(&log), status, server.clone()));
            }
        });
        Self { url, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn forward(mut client: TcpStream, heads: Arc<Mutex<Vec<String>>>, status: &str, server: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
    let answer = format!("HTTP/1.1 {status}\r\n\r\n");
    client.write_all(answer.as_bytes()).await.unwrap();
    if status.starts_with('2') {
        let mut server = TcpStream::connect(server).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Returns a kubeconfig that uses [`NAME`] for the API server.
fn hide_server(place: &Place) -> NamedTempFile {
    let mut kubeconfig = Kubeconfig::read_from(place.env.kubeconfig_path()).unwrap();
    let cluster = kubeconfig.clusters[0].cluster.as_mut().unwrap();
    let url = place.env.config().cluster_url;
    cluster.tls_server_name = url.host().map(str::to_owned);
    cluster.server = Some(format!("https://{NAME}:{}", url.port_u16().unwrap()));
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), serde_json::to_string(&kubeconfig).unwrap()).unwrap();
    file
}

/// Sets all of the proxy variables, to override those of the test.
fn variables(set: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let names = ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];
    let value = |name| set.iter().find(|(other, _)| *other == name);
    names
        .map(|name| {
            (
                name,
                value(name).map_or_else(String::new, |(_, value)| (*value).to_owned()),
            )
        })
        .to_vec()
}

/// All requests must go through the proxy, including those for leader election.
#[rbuilder::envtest::test]
async fn operator_reaches_the_api_server_through_a_proxy() {
    let place = Place::new().await;
    let kubeconfig = hide_server(&place);
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        let proxy = HttpProxy::start(&place, "200 Connection established").await;
        let flags = place.flags(&["--leader-elect", "--health-probe-bind-address=0"]);
        let set = variables(&[(variable, &proxy.url), ("NO_PROXY", "10.0.0.0/8,.svc,localhost")]);
        let program = Program::start_with(kubeconfig.path(), flags, set);
        let name = format!(
            "by-{}",
            if variable.starts_with('H') {
                "upper"
            } else {
                "lower"
            }
        );
        place.create(&name, &[]).await;
        place.marked_by(&name, ENDED, &program).await;
        let heads = proxy.heads();
        // The manager's client and the lease each have a connection.
        assert!(heads.len() >= 2, "{heads:?}");
        for head in heads {
            assert!(head.starts_with(&format!("CONNECT {NAME}:")), "{head}");
            assert!(
                head.to_lowercase().contains("\r\nproxy-authorization: basic "),
                "{head}"
            );
        }
    }
}

#[rbuilder::envtest::test]
async fn error_about_refusing_proxy_names_the_variable() {
    let place = Place::new().await;
    let kubeconfig = hide_server(&place);
    let proxy = HttpProxy::start(&place, "403 Forbidden").await;
    let flags = place.flags(&["--health-probe-bind-address=0"]);
    let set = variables(&[("HTTPS_PROXY", &proxy.url)]);
    let mut program = Program::start_with(kubeconfig.path(), flags, set);
    assert_eq!(program.ended(SOON).await, Ended::with(1), "{}", program.log());
    let log = program.log();
    let (_, address) = proxy.url.rsplit_once('@').unwrap();
    for part in [
        format!("cannot reach the API server at https://{NAME}:"),
        format!("proxy http://{address} (from HTTPS_PROXY) did not connect to {NAME}:"),
        "it answered 403 Forbidden; correct the variable, or list the API server in NO_PROXY".to_owned(),
    ] {
        assert!(log.contains(&part), "{part} is not in\n{log}");
    }
    assert!(!log.contains("secret"), "{log}");
}

/// As in Go, addresses of this machine and those in `NO_PROXY` bypass the proxy, so an unusable
/// proxy makes no difference.
#[rbuilder::envtest::test]
async fn no_proxy_bypasses_the_proxy() {
    let place = Place::new().await;
    let flags = || place.flags(&["--health-probe-bind-address=0"]);
    let unusable = [
        ("HTTPS_PROXY", "ftp://nothing here"),
        ("https_proxy", "nonsense://"),
    ];
    place.create("local", &[]).await;
    let local = Program::start_with(place.env.kubeconfig_path(), flags(), variables(&unusable));
    place.marked_by("local", ENDED, &local).await;
    drop(local);

    let proxy = HttpProxy::start(&place, "403 Forbidden").await;
    let kubeconfig = hide_server(&place);
    let set = variables(&[
        ("HTTPS_PROXY", &proxy.url),
        ("no_proxy", "a.com, *.nowhere.example"),
    ]);
    let mut excluded = Program::start_with(kubeconfig.path(), flags(), set);
    // Only the proxy can resolve the name.
    assert_eq!(excluded.ended(SOON).await, Ended::with(1), "{}", excluded.log());
    assert!(excluded.log().contains("dns error"), "{}", excluded.log());
    assert_eq!(proxy.heads(), [""; 0]);
}

#[rbuilder::envtest::test]
async fn invalid_proxy_variable_is_fatal() {
    let place = Place::new().await;
    let kubeconfig = hide_server(&place);
    let flags = place.flags(&["--health-probe-bind-address=0"]);
    let set = variables(&[("HTTPS_PROXY", "ftp://me:secret@proxy.example.com")]);
    let mut program = Program::start_with(kubeconfig.path(), flags, set);
    assert_eq!(program.ended(SOON).await, Ended::with(1), "{}", program.log());
    let expected = "Error: invalid value `proxy.example.com` for environment variable HTTPS_PROXY: expected the URL of \
                    a proxy";
    assert!(program.log().contains(expected), "{}", program.log());
}
