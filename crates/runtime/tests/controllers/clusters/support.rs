//! Operator for copying memos from its own cluster to another one, where they become ConfigMaps.
//! Requests to the other cluster go through a gate.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use rbuilder::{Action, Cluster, Ctx, Error, ObjectRef, Result};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{Memo, Seen, config_map};

#[derive(Clone)]
pub(super) struct State {
    pub(super) edge: Cluster,
    /// Namespace of the copies.
    pub(super) namespace: String,
    pub(super) seen: Seen,
}

pub(super) async fn mirror(memo: Arc<Memo>, ctx: Ctx<State>) -> Result {
    ctx.seen.note(&memo.name_any());
    let edge = ctx.in_cluster(&ctx.edge);
    let copies = edge.cached::<ConfigMap>()?;
    edge.apply(copy_of(&memo, &ctx.namespace)).await?;
    // The cache must already contain the write.
    match copies.named(&ctx.namespace, &memo.name_any()) {
        Some(_) => Ok(Action::await_change()),
        None => Err(Error::new("the copy is not in the cache")),
    }
}

pub(super) fn copy_of(memo: &Memo, namespace: &str) -> ConfigMap {
    let text = memo.spec.text.clone().unwrap_or_default();
    let mut copy = config_map(&memo.name_any(), &text);
    copy.metadata.namespace = Some(namespace.to_owned());
    let original = ("memo-namespace".to_owned(), memo.namespace().unwrap_or_default());
    copy.metadata.annotations = Some([original].into());
    copy
}

pub(super) fn to_memo(copy: &ConfigMap, ctx: &Ctx<State>) -> Vec<ObjectRef<Memo>> {
    assert!(
        ctx.cluster().is_none(),
        "the context of a mapping function is about its result"
    );
    ctx.seen.note(&format!("mapped {}", copy.name_any()));
    let namespace = copy.annotations().get("memo-namespace");
    let memo = namespace.map(|namespace| ObjectRef::new(&copy.name_any()).within(namespace));
    memo.into_iter().collect()
}

pub(super) async fn copied(client: Client, namespace: &str, name: &str) -> Option<String> {
    let copies: Api<ConfigMap> = Api::namespaced(client, namespace);
    copies.get_opt(name).await.ok()??.data?.remove("text")
}

pub(super) async fn change(client: Client, namespace: &str, name: &str, text: &str) {
    let copies: Api<ConfigMap> = Api::namespaced(client, namespace);
    let patch = Patch::Merge(json!({ "data": { "text": text } }));
    copies.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// An HTTP server in front of an API server, which requires a token.
pub(super) struct Gate {
    address: String,
    token: Arc<Mutex<String>>,
    is_down: Arc<AtomicBool>,
    _serving: JoinSet<()>,
}

impl Gate {
    pub(super) async fn open(upstream: Client, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let token = Arc::new(Mutex::new(token.to_owned()));
        let is_down = Arc::new(AtomicBool::new(false));
        let mut serving = JoinSet::new();
        serving.spawn(accept(
            listener,
            upstream,
            Arc::clone(&token),
            Arc::clone(&is_down),
        ));
        Self {
            address,
            token,
            is_down,
            _serving: serving,
        }
    }

    /// Rejects all other tokens from now on.
    pub(super) fn set_token(&self, token: &str) {
        token.clone_into(&mut self.token.lock().unwrap());
    }

    /// Responds like a load balancer whose backends are down.
    pub(super) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    pub(super) fn kubeconfig(&self, user: &Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "edge",
            "clusters": [{ "name": "edge", "cluster": { "server": format!("http://{}", self.address) } }],
            "contexts": [{ "name": "edge", "context": { "cluster": "edge", "user": "operator" } }],
            "users": [{ "name": "operator", "user": user }],
        })
        .to_string()
    }
}

async fn accept(
    listener: TcpListener,
    upstream: Client,
    token: Arc<Mutex<String>>,
    is_down: Arc<AtomicBool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(serve(
            stream,
            upstream.clone(),
            Arc::clone(&token),
            Arc::clone(&is_down),
        ));
    }
}

async fn serve(stream: TcpStream, upstream: Client, token: Arc<Mutex<String>>, is_down: Arc<AtomicBool>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (upstream, token) = (upstream.clone(), token.lock().unwrap().clone());
        let is_down = is_down.load(Ordering::Relaxed);
        async move {
            Ok::<_, Infallible>(match is_down {
                true => no_backend(),
                false => forward(request, upstream, &token).await,
            })
        }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // Fails if the client has closed the connection.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
}

async fn forward(request: Request<Incoming>, upstream: Client, token: &str) -> Response<Body> {
    let expected = format!("Bearer {token}");
    let found = request.headers().get(header::AUTHORIZATION);
    if found.is_none_or(|found| found.as_bytes() != expected.as_bytes()) {
        return status(StatusCode::UNAUTHORIZED);
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return status(StatusCode::BAD_REQUEST);
    };
    let body = Body::from(body.to_bytes().to_vec());
    let answer = upstream.send(Request::from_parts(parts, body)).await;
    answer.unwrap_or_else(|_| status(StatusCode::BAD_GATEWAY))
}

fn no_backend() -> Response<Body> {
    let page = Body::from(b"no healthy upstream".to_vec());
    Response::builder()
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .body(page)
        .unwrap()
}

fn status(code: StatusCode) -> Response<Body> {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16() });
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}
