//! A conversion webhook that returns invalid responses on demand. It is called over HTTPS by
//! kube-apiserver, and within the process by the fake server.

use std::sync::Arc;

use rbuilder::envtest::WebhookServer;
use rbuilder::fake::{WebhookHandler, Webhooks};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(super) struct ConversionWebhook {
    pub(super) crd: String,
}

impl Webhooks for ConversionWebhook {
    fn take_webhooks(&mut self) -> WebhookHandler {
        let handler = WebhookHandler::new(|_, body| std::future::ready(answer(&body)));
        handler.converting([self.crd.clone()])
    }
}

/// Returns the status and the body of the response to a `ConversionReview`. An object can have the
/// annotation `answer`, which makes the response wrong in one of these ways:
///
/// - `code`: the status of the response
/// - `uid`: another uid
/// - `result`: another result
/// - `drop`: no objects are returned
/// - `patch`: a merge patch for the converted object
fn answer(body: &[u8]) -> (u16, Vec<u8>) {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let wish = objects
        .iter()
        .find_map(|object| object["metadata"]["annotations"]["answer"].as_str())
        .map_or(Value::Null, |wish| serde_json::from_str(wish).unwrap());
    if let Some(code) = wish["code"].as_u64() {
        return (code.try_into().unwrap(), b"the text\n".to_vec());
    }
    let converted = objects.iter().map(|object| {
        let mut converted = convert(object, version);
        json_patch::merge(&mut converted, wish.get("patch").unwrap_or(&json!({})));
        converted
    });
    let mut converted: Vec<Value> = converted.collect();
    if wish["drop"] == true {
        converted.clear();
    }
    let review = json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {
            "uid": wish.get("uid").unwrap_or(&request["uid"]),
            "result": wish.get("result").unwrap_or(&json!({ "status": "Success" })),
            "convertedObjects": converted,
        },
    });
    (200, review.to_string().into_bytes())
}

/// `v1` has `spec.size` and `spec.colour`. `v2` has `spec.dimensions.size` and `spec.paint`.
fn convert(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = version.into();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return object;
    };
    if version.ends_with("/v2") {
        if let Some(size) = spec.remove("size") {
            spec.insert("dimensions".to_owned(), json!({ "size": size }));
        }
        if let Some(colour) = spec.remove("colour") {
            spec.insert("paint".to_owned(), colour);
        }
    } else {
        if let Some(size) = spec
            .remove("dimensions")
            .and_then(|found| found.get("size").cloned())
        {
            spec.insert("size".to_owned(), size);
        }
        if let Some(paint) = spec.remove("paint") {
            spec.insert("colour".to_owned(), paint);
        }
    }
    object
}

/// The API server is going to call this port.
pub(super) async fn serve(server: &WebhookServer) -> AbortHandle {
    let folder = server.certificates();
    let certificates = CertificateDer::pem_file_iter(folder.join("tls.crt")).unwrap();
    let certificates = certificates.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let url: http::Uri = server.url("/convert").parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", url.port_u16().unwrap()))
        .await
        .unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Fails if a client merely checks whether the port is open.
                if let Ok(stream) = acceptor.accept(stream).await {
                    respond(BufStream::new(stream)).await;
                }
            });
        }
    });
    serving.abort_handle()
}

async fn respond(mut stream: BufStream<impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>) {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let (code, body) = answer(&body);
    let content = if code == 200 {
        "application/json"
    } else {
        "text/plain"
    };
    let head = format!(
        "HTTP/1.1 {code} Answer\r\ncontent-type: {content}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    stream.shutdown().await.unwrap();
}
