//! The API over sockets, with hyper as the client.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rbuilder_apiserver::{ApiServer, Listen, ServedApi};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Client {
    authority: String,
    address: String,
    token: Option<String>,
    is_http2: bool,
    headers: Vec<(&'static str, &'static str)>,
}

struct Answer {
    status: StatusCode,
    content_type: String,
    body: Value,
}

impl Client {
    fn admin(served: &ServedApi) -> Self {
        let cluster = &served.kubeconfig()["clusters"][0]["cluster"];
        let authority = cluster["certificate-authority-data"].as_str().unwrap();
        Self {
            authority: String::from_utf8(BASE64.decode(authority).unwrap()).unwrap(),
            address: served.url().strip_prefix("https://").unwrap().to_owned(),
            token: Some(served.token().to_owned()),
            is_http2: false,
            headers: Vec::new(),
        }
    }

    fn with_token(&self, token: Option<&str>) -> Self {
        Self {
            authority: self.authority.clone(),
            address: self.address.clone(),
            token: token.map(str::to_owned),
            is_http2: false,
            headers: Vec::new(),
        }
    }

    fn with_header(&self, name: &'static str, value: &'static str) -> Self {
        let mut client = self.with_token(self.token.as_deref());
        client.headers.push((name, value));
        client
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let protocol = if self.is_http2 { "h2" } else { "http/1.1" };
        config.alpn_protocols = vec![protocol.into()];
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.unwrap()
    }

    async fn send(&self, method: Method, path: &str, body: &[u8]) -> hyper::Response<Incoming> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.address));
        request = request.header(header::HOST, "127.0.0.1");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::<Bytes>::from(body.to_vec())).unwrap();
        let io = TokioIo::new(self.connect().await);
        if self.is_http2 {
            let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
                .await
                .unwrap();
            tokio::spawn(connection);
            return sender.send_request(request).await.unwrap();
        }
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Answer {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let response = self.send(method, path, text.as_bytes()).await;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        Answer {
            status: response.status(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes())
                .unwrap_or_default(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, body).await
    }
}

async fn serve() -> (ApiServer, ServedApi, Client) {
    let server = ApiServer::new();
    let served = server.serve(&Listen::default()).await.unwrap();
    let client = Client::admin(&served);
    (server, served, client)
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" } })
}

#[tokio::test]
async fn both_versions_of_http_are_served() {
    let (_, _served, mut client) = serve().await;
    for (is_http2, name) in [(false, "one"), (true, "two")] {
        client.is_http2 = is_http2;
        let created = client.post(MAPS, &map(name)).await;
        assert_eq!(created.status, 201, "{}", created.body);
        assert_eq!(created.content_type, "application/json");
        let read = client.get(&format!("{MAPS}/{name}")).await;
        assert_eq!(read.body["data"], json!({ "k": "v" }));
    }
    let again = client.post(MAPS, &map("one")).await;
    assert_eq!(
        (again.status.as_u16(), &again.body["reason"]),
        (409, &json!("AlreadyExists"))
    );
}

#[tokio::test]
async fn requests_need_a_valid_token() {
    let (_, _served, client) = serve().await;
    for token in [
        None,
        Some("wrong"),
        Some("fake-token.default.default"),
        Some("fake-token.e30.AAAA"),
    ] {
        let client = client.with_token(token);
        let refused = client.get(MAPS).await;
        assert_eq!(refused.status, 401, "{token:?}");
        assert_eq!(refused.body["reason"], "Unauthorized");
        assert_eq!(refused.body["kind"], "Status");
    }
    // Health checks and the version are public, but not with a wrong token.
    let anonymous = client.with_token(None);
    assert_eq!(anonymous.get("/readyz").await.status, 200);
    assert_eq!(anonymous.get("/version").await.body["major"], "1");
    assert_eq!(client.with_token(Some("wrong")).get("/version").await.status, 401);
}

#[tokio::test]
async fn roles_in_the_store_restrict_service_accounts() {
    let (_, _served, client) = serve().await;
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "app.x" } });
    client
        .post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await;
    let issued = client
        .post(
            "/api/v1/namespaces/default/serviceaccounts/app.x/token",
            &json!({ "spec": {} }),
        )
        .await;
    let token = issued.body["status"]["token"].as_str().unwrap();
    let app = client.with_token(Some(token));

    let refused = app.get(MAPS).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.body["message"],
        "configmaps is forbidden: User \"system:serviceaccount:default:app.x\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"default\""
    );
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
    });
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": "app.x", "namespace": "default" }],
    });
    assert_eq!(client.post(&format!("{rbac}/roles"), &role).await.status, 201);
    assert_eq!(
        client
            .post(&format!("{rbac}/rolebindings"), &binding)
            .await
            .status,
        201
    );
    assert_eq!(app.get(MAPS).await.status, 200);
    assert_eq!(app.get("/api/v1/configmaps").await.status, 403);
    assert_eq!(app.post(MAPS, &map("a")).await.status, 403);

    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, expected) in [("list", true), ("delete", false)] {
        let attributes = json!({ "namespace": "default", "resource": "configmaps", "verb": verb });
        let review = app
            .post(reviews, &json!({ "spec": { "resourceAttributes": attributes } }))
            .await;
        assert_eq!(review.body["status"]["allowed"], expected, "{verb}");
    }
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = app.post(who, &json!({})).await.body["status"]["userInfo"].clone();
    assert_eq!(me["username"], "system:serviceaccount:default:app.x");

    // A token ends with its account, also if another one has the name.
    let path = "/api/v1/namespaces/default/serviceaccounts/app.x";
    client.call(Method::DELETE, path, &Value::Null).await;
    client
        .post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await;
    assert_eq!(app.get(MAPS).await.status, 401);
}

#[tokio::test]
async fn nobody_grants_or_becomes_more_than_they_may() {
    let (_, _served, client) = serve().await;
    let anna = client.with_header("impersonate-user", "anna");
    assert_eq!(anna.get(MAPS).await.status, 403);
    let both = Client {
        headers: vec![
            ("impersonate-user", "anna"),
            ("impersonate-group", "system:masters"),
        ],
        ..client.with_token(client.token.as_deref())
    };
    assert_eq!(both.get(MAPS).await.status, 200);

    // Anna may write roles, but only with rights that she has.
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"] }]);
    let role = json!({ "metadata": { "name": "writer" }, "rules": rules });
    let binding = json!({
        "metadata": { "name": "writer" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "anna" }],
    });
    client.post(&format!("{rbac}/clusterroles"), &role).await;
    client
        .post(&format!("{rbac}/clusterrolebindings"), &binding)
        .await;
    let copy = json!({ "metadata": { "name": "copy" }, "rules": rules });
    assert_eq!(
        anna.post(&format!("{rbac}/clusterroles"), &copy).await.status,
        201
    );
    let more = json!({
        "metadata": { "name": "more" },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }],
    });
    let refused = anna.post(&format!("{rbac}/clusterroles"), &more).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body["message"]
            .as_str()
            .unwrap()
            .contains("not currently held"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn bodies_have_limits_and_known_formats() {
    let (_, _served, client) = serve().await;
    let large = json!({ "metadata": { "name": "large" }, "data": { "k": "x".repeat(4 << 20) } });
    assert_eq!(client.post(MAPS, &large).await.status, 413);
    for (content_type, code) in [
        ("application/vnd.kubernetes.protobuf", 415),
        ("text/css", 415),
        ("application/json", 201),
    ] {
        let client = client.with_header("content-type", content_type);
        assert_eq!(
            client.post(MAPS, &map("formats")).await.status,
            code,
            "{content_type}"
        );
    }
    let yaml = client.with_header("content-type", "application/yaml");
    let created = yaml.send(Method::POST, MAPS, b"metadata:\n  name: yaml\n").await;
    assert_eq!(created.status(), 201);
    let protobuf = client.with_header("content-type", rbuilder_protobuf::CONTENT_TYPE);
    let body = rbuilder_protobuf::encode(&map("protobuf")).unwrap();
    assert_eq!(protobuf.send(Method::POST, MAPS, &body).await.status(), 201);
    assert_eq!(
        client.get(&format!("{MAPS}/protobuf")).await.body["data"],
        json!({ "k": "v" })
    );
    let damaged = protobuf.send(Method::POST, MAPS, &body[..body.len() - 3]).await;
    assert_eq!(damaged.status(), 400);
    assert_eq!(
        client.with_header("accept", "image/png").get(MAPS).await.status,
        406
    );
}

#[tokio::test]
async fn discovery_and_openapi_are_what_clients_look_for() {
    let (server, _served, client) = serve().await;
    server
        .install_crd(&json!({
            "metadata": { "name": "cups.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "kind": "Cup", "plural": "cups" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "description": "What is in it.", "properties": {
                            "size": { "type": "integer" },
                        } },
                    } } },
                }],
            },
        }))
        .unwrap();
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let found = client.with_header(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    assert_eq!(found.get("/apis").await.content_type, aggregated);
    assert_eq!(client.get("/apis").await.content_type, "application/json");

    let index = client.get("/openapi/v3").await.body;
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let document = client.get(url).await.body;
    let kind = json!({ "group": "example.com", "version": "v1", "kind": "Cup" });
    let schema = &document["components"]["schemas"]["com.example.v1.Cup"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([kind]));
    assert_eq!(schema["properties"]["spec"]["description"], "What is in it.");
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/cups/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(
        parameters
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation")
    );

    let core = client.get("/openapi/v3/api/v1").await.body;
    let pod = &core["components"]["schemas"]["core.v1.Pod"]["properties"]["spec"];
    assert!(
        pod["description"].as_str().unwrap().contains("desired behavior"),
        "{}",
        pod["description"]
    );
    assert_eq!(
        client.get("/openapi/v3/apis/other.example.com/v1").await.status,
        404
    );
}

#[tokio::test]
async fn stop_ends_watches_and_closes_the_port() {
    let (_, served, client) = serve().await;
    let watching = client.send(Method::GET, &format!("{MAPS}?watch=true"), b"").await;
    let mut lines = watching.into_body();
    client.post(MAPS, &map("a")).await;
    let line = lines.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );

    let stopped = tokio::time::timeout(Duration::from_secs(10), served.stop());
    stopped.await.expect("the server stops although a client watches");
    while let Some(frame) = lines.frame().await {
        frame.expect("the watch ends without an error");
    }
    assert!(TcpStream::connect(&client.address).await.is_err());
}

#[tokio::test]
async fn silent_clients_disturb_nobody() {
    let (_, _served, client) = serve().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(&client.address).await.unwrap());
    }
    assert_eq!(client.get("/readyz").await.status, 200);
}

#[cfg(unix)]
#[tokio::test]
async fn sockets_are_private_and_never_replace_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let server = ApiServer::new();
    let served = server.serve(&Listen::Unix(path.clone())).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(served.url(), format!("unix://{}", path.display()));

    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get("/version").header(header::HOST, "api");
    let response = sender
        .send_request(request.body(Full::<Bytes>::default()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 200);

    let taken = ApiServer::new().serve(&Listen::Unix(path)).await.unwrap_err();
    assert!(taken.to_string().starts_with("cannot listen on "), "{taken}");
}
