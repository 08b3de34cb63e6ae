// SPDX-License-Identifier: Apache-2.0

//! Counts the bytes that an operator receives from the API server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// A TCP proxy in front of an API server. Its threads end with the process.
pub struct Proxy {
    kubeconfig: PathBuf,
    received: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy for the server of a kubeconfig, and writes a kubeconfig for the proxy.
    pub fn start(kubeconfig: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(kubeconfig)?;
        let server = text
            .split("https://")
            .nth(1)
            .and_then(|rest| rest.split(['\n', '"', '\'']).next())
            .context("the kubeconfig has no server")?
            .trim()
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let own =
            std::env::temp_dir().join(format!("bench-kubeconfig-{}-{port}", std::process::id()));
        std::fs::write(&own, text.replace(&server, &format!("127.0.0.1:{port}")))?;
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The operator connects again if the API server is gone.
                if let Ok(upstream) = TcpStream::connect(&server) {
                    forward(client, upstream, &counted);
                }
            }
        });
        Ok(Self {
            kubeconfig: own,
            received,
        })
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the number of bytes that the API server has sent.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// Copies in both directions until one side closes, and counts what the server sends.
fn forward(client: TcpStream, upstream: TcpStream, received: &Arc<AtomicU64>) {
    let (Ok(to_server), Ok(to_client)) = (upstream.try_clone(), client.try_clone()) else {
        return;
    };
    let received = Arc::clone(received);
    thread::spawn(move || copy(client, to_server, |_| {}));
    thread::spawn(move || {
        copy(upstream, to_client, |bytes| {
            received.fetch_add(bytes, Ordering::Relaxed);
        });
    });
}

fn copy(mut from: TcpStream, mut to: TcpStream, count: impl Fn(u64)) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        count(bytes as u64);
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    // Either side may already be closed.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
