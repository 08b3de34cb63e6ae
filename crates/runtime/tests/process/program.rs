//! Starts the operator as a child process, sends signals to it, and waits for it to exit.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rbuilder::envtest::eventually;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::operator::{FLAGS, THREADS};

/// The test in which the child process becomes the operator.
const ENTRY: &str = "first_signal_lets_reconciles_finish";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    status: Option<i32>,
    signal: Option<i32>,
}

impl Ended {
    pub(crate) fn with(status: i32) -> Self {
        Self {
            status: Some(status),
            signal: None,
        }
    }

    pub(crate) fn by_signal(signal: i32) -> Self {
        Self {
            status: None,
            signal: Some(signal),
        }
    }
}

/// A running operator, which is killed on drop.
pub(crate) struct Program {
    child: Child,
    log: NamedTempFile,
}

impl Program {
    pub(crate) fn start(kubeconfig: &Path, flags: Vec<String>) -> Self {
        Self::start_with(kubeconfig, flags, [])
    }

    pub(crate) fn start_on(threads: usize, kubeconfig: &Path, flags: Vec<String>) -> Self {
        Self::start_with(kubeconfig, flags, [(THREADS, threads.to_string())])
    }

    pub(crate) fn start_with(
        kubeconfig: &Path,
        flags: Vec<String>,
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let log = NamedTempFile::new().unwrap();
        // Without a control plane, this test is ignored like all others.
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--include-ignored", "--exact", ENTRY, "--nocapture"])
            .env("KUBECONFIG", kubeconfig)
            .env(FLAGS, flags.join("\n"))
            .env_remove("KUBERNETES_SERVICE_HOST")
            .env_remove("RUST_LOG")
            .env_remove("RUST_BACKTRACE")
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.id())])
            .status();
        assert!(sent.unwrap().success(), "{name}");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) async fn ended(&mut self, within: Duration) -> Ended {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Ended {
                    status: status.code(),
                    signal: status.signal(),
                };
            }
            let log = self.log();
            assert!(
                tokio::time::Instant::now() < deadline,
                "still running after {within:?}\n{log}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns what the process has written to stderr so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    pub(crate) async fn logs(&self, text: &str) {
        self.logs_within(Duration::from_secs(30), text).await;
    }

    pub(crate) async fn logs_within(&self, time: Duration, text: &str) {
        eventually(time, || async {
            let log = self.log();
            if log.contains(text) {
                Ok(())
            } else {
                Err(format!("{text:?} is not in\n{log}"))
            }
        })
        .await;
    }

    /// Sends a GET and expects status 200.
    pub(crate) async fn get(&self, port: u16, path: &str) -> Result<String, String> {
        let answer = get(port, path).await.map_err(|error| error.to_string())?;
        match answer.starts_with("HTTP/1.1 200 ") {
            true => Ok(answer),
            false => Err(answer),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
