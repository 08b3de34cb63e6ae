//! A simple client for the API server of a control plane. It uses curl.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rbuilder_control_plane::private_folder;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::sh::Cmd;
use crate::value::text;

/// A client allowed to do anything.
pub(crate) struct Client {
    server: String,
    folder: TempDir,
}

impl Client {
    /// Creates a client from a kubeconfig, which must contain the address and the certificates.
    pub(crate) fn new(kubeconfig: &str) -> Result<Client> {
        let config: Value = serde_json::from_str(&fs_err::read_to_string(kubeconfig)?)?;
        // It contains the key of an administrator.
        let folder = private_folder("rbuilder-cel-")?;
        let client = Client {
            server: text(&config, "/clusters/0/cluster/server").to_owned(),
            folder,
        };
        for (file, pointer) in [
            ("ca.pem", "/clusters/0/cluster/certificate-authority-data"),
            ("client.pem", "/users/0/user/client-certificate-data"),
            ("key.pem", "/users/0/user/client-key-data"),
        ] {
            let pem = BASE64_STANDARD.decode(text(&config, pointer))?;
            fs_err::write(client.path(file), pem)?;
        }
        Ok(client)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Sends a request and returns the response, which is either an object or a `Status`. Returns
    /// `null` if the resource is not served yet.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        self.send_as("application/json", method, path, body)
    }

    /// Sends a request with a body of this content type.
    pub(crate) fn send_as(&self, content: &str, method: &str, path: &str, body: &Value) -> Result<Value> {
        // Don't use HTTP/2. If the server sends a response before it has read the whole body, curl
        // would fail.
        let mut request = Cmd::new("curl --silent --show-error --http1.1 --request").arg(method);
        for (option, file) in [
            ("--cacert", "ca.pem"),
            ("--cert", "client.pem"),
            ("--key", "key.pem"),
        ] {
            request = request.arg(option).arg(self.path(file));
        }
        if !body.is_null() {
            fs_err::write(self.path("body.json"), body.to_string())?;
            request = request
                .arg("-H")
                .arg(format!("Content-Type: {content}"))
                .arg("--data-binary")
                .arg(format!("@{}", self.path("body.json").display()));
        }
        let response = request.arg(format!("{}{path}", self.server)).read()?;
        if response.starts_with("404 page not found") {
            return Ok(Value::Null);
        }
        serde_json::from_str(&response).with_context(|| format!("{method} {path}: {response}"))
    }
}

/// One of the errors in a response. It refers to a field.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) message: String,
}

/// Returns all errors of a response. There are none if the response is an object.
pub(crate) fn causes(response: &Value) -> Vec<Cause> {
    serde_json::from_value(response["details"]["causes"].clone()).unwrap_or_default()
}
