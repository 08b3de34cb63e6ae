//! Requests to the API server through `kubectl proxy`.
//!
//! Commands that send thousands of requests can't start a kubectl for each, so one `kubectl proxy`
//! serves them all. It reads the kubeconfig, runs credential plugins, and keeps the connection
//! open. Batches with `kubectl patch -f -` would need no socket, but they report errors as text
//! that doesn't name the object, write at an uneven rate, and can't be interrupted between two
//! objects.
//!
//! The proxy acts with the user's credentials on behalf of every client, so it listens on a socket
//! that only the user can open (see [`Door`]).

mod answer;
mod door;

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rbuilder_control_plane::Workspace;

pub(crate) use answer::{Answer, Refusal};
use door::Door;

use super::Kubectl;

/// Timeout for kubectl to start listening. It only connects to the API server on the first request.
const START: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum size in bytes of the retained kubectl messages.
const MESSAGES: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    None,
    Json(&'a str),
    MergePatch(&'a str),
}

impl Body<'_> {
    fn parts(&self) -> (&str, &str) {
        match self {
            Body::None => ("", ""),
            Body::Json(text) => ("application/json", text),
            Body::MergePatch(text) => ("application/merge-patch+json", text),
        }
    }
}

/// A running `kubectl proxy`, killed on drop.
pub(crate) struct Proxy {
    child: Child,
    door: Door,
    messages: Arc<Mutex<String>>,
    workspace: Workspace,
}

impl Proxy {
    /// Starts `kubectl proxy` and waits until it listens. Fails with kubectl's error, e.g. for an
    /// unknown context.
    pub(crate) fn start(kubectl: &Kubectl) -> Result<Proxy> {
        kubectl.check_kubeconfig()?;
        let workspace = Workspace::create()?;
        let mut door = Door::new(&workspace);
        let mut child = workspace.spawn(kubectl.program(), |command| {
            command
                .current_dir(kubectl.folder())
                .args(kubectl.connection_arguments())
                // Otherwise kubectl drops the path of a server such as
                // `https://host/k8s/clusters/a`.
                .args(["proxy", "--append-server-path"])
                .args(door.arguments())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        })?;
        let messages = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = child.stderr.take() {
            collect(stderr, messages.clone());
        }
        if let Some(stdout) = child.stdout.take() {
            door.watch(stdout);
        }
        let mut proxy = Proxy {
            child,
            door,
            messages,
            workspace,
        };
        proxy.wait_until_open()?;
        Ok(proxy)
    }

    fn wait_until_open(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        while !self.door.is_open() {
            let has_exited = self.child.try_wait()?.is_some();
            if has_exited || Instant::now() >= deadline {
                // Let the thread that reads the messages catch up.
                std::thread::sleep(POLL_INTERVAL);
                bail!("`kubectl proxy` does not serve: {}", self.read_messages());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Sends a request and waits for the response. `path` starts with `/` and may have a query.
    /// kubectl also responds if it can't reach the API server.
    pub(crate) fn send(&self, method: &str, path: &str, accept: &str, body: Body<'_>) -> Result<Answer> {
        let (media_type, text) = body.parts();
        // An HTTP 1.0 response is a head and a body that ends when the connection closes.
        let mut head = format!(
            "{method} {}{path} HTTP/1.0\r\nHost: localhost\r\nAccept: {accept}\r\n",
            self.door.prefix()
        );
        if !media_type.is_empty() {
            head.push_str(&format!(
                "Content-Type: {media_type}\r\nContent-Length: {}\r\n",
                text.len()
            ));
        }
        let bytes = self.door.exchange(&format!("{head}\r\n{text}"));
        match bytes.and_then(|bytes| Answer::parse(&bytes)) {
            Ok(answer) => Ok(answer),
            Err(error) => bail!(
                "`kubectl proxy` does not answer: {error} {}",
                self.read_messages()
            ),
        }
    }

    fn read_messages(&self) -> String {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.trim().to_owned()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The proxy has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.workspace.forget(self.child.id());
    }
}

/// Drains a stream in a thread, keeping the first bytes.
fn collect(mut stream: impl Read + Send + 'static, into: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
            if text.len() < MESSAGES {
                text.push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        }
    });
}

pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn names_cannot_leave_their_part_of_a_path() {
        for (name, expected) in [
            ("cups.example.com", "cups.example.com"),
            ("a/../b", "a%2F..%2Fb"),
            ("a b\r\nHost: x", "a%20b%0D%0AHost%3A%20x"),
            ("é?", "%C3%A9%3F"),
        ] {
            assert_eq!(encode(name), expected);
        }
    }
}
