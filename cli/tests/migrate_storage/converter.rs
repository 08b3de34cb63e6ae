//! A conversion webhook that can fail.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};
use serde_json::{Value, json};

/// The webhook fails with these words.
pub(crate) const REASON: &str = "the converter is out of order";

/// Chooses the conversions that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    All,
    /// Only single objects with these names fail. Lists are converted.
    Single(BTreeSet<String>),
}

/// The webhook listens on a port of this computer. Its thread ends with this process.
pub(crate) struct Converter {
    faults: Arc<Mutex<Faults>>,
    /// For the field `spec.conversion` of CRDs.
    pub(crate) conversion: Value,
}

impl Converter {
    pub(crate) fn start() -> Converter {
        let names = vec!["127.0.0.1".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], PrivateKeyDer::Pkcs8(key));
        let config = Arc::new(config.expect("a certificate with its key"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let converter = Converter {
            faults: Arc::new(Mutex::new(Faults::None)),
            conversion: json!({ "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}/convert"),
                    "caBundle": STANDARD.encode(certified.cert.pem()),
                },
            } }),
        };
        let faults = Arc::clone(&converter.faults);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (config, faults) = (Arc::clone(&config), Arc::clone(&faults));
                // If a connection breaks, that's the business of the API server.
                thread::spawn(move || serve(connection, config, &faults));
            }
        });
        converter
    }

    pub(crate) fn fail(&self, faults: Faults) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }
}

fn serve(mut connection: TcpStream, config: Arc<ServerConfig>, faults: &Mutex<Faults>) -> Option<()> {
    let mut session = ServerConnection::new(config).ok()?;
    let mut stream = Stream::new(&mut session, &mut connection);
    let mut reader = BufReader::new(&mut stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let review: Value = serde_json::from_slice(&body).ok()?;
    let faults = faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answer = answer(&review["request"], &faults).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(format!("{head}{answer}").as_bytes()).ok()?;
    stream.flush().ok()?;
    session.send_close_notify();
    session.write_tls(&mut connection).ok()?;
    Some(())
}

fn answer(request: &Value, faults: &Faults) -> Value {
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let fails = match (faults, &objects[..]) {
        (Faults::None, _) => false,
        (Faults::All, _) => true,
        (Faults::Single(names), [object]) => {
            names.contains(object["metadata"]["name"].as_str().unwrap_or_default())
        }
        (Faults::Single(_), _) => false,
    };
    let result = match fails {
        true => json!({ "status": "Failure", "message": REASON }),
        false => json!({ "status": "Success" }),
    };
    let converted = objects.into_iter().map(|mut object| {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        object
    });
    let converted: Vec<Value> = converted.filter(|_| !fails).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": { "uid": request["uid"], "result": result, "convertedObjects": converted },
    })
}
