//! The memory for converting a review must not depend on the number of its objects.
//!
//! There's only a single test because all tests in a program share the counting allocator. To
//! measure the resident memory for lists of other lengths, with the default memory limit, run:
//!
//! ```sh
//! RBUILDER_CONVERSION_OBJECTS=10000,25000,1000000 cargo test -p rbuilder-runtime --test webhook_memory -- --nocapture
//! ```

#![allow(clippy::disallowed_macros)] // prints the measurements

#[allow(dead_code)] // each program uses a part of it
mod tls_client;

use std::alloc::System;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use kube::CustomResource;
use rbuilder::envtest::{ReservedPort, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::{Manager, ManagerArgs, Webhook};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use tls_client::{connector, write_certificate};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum memory of a conversion relative to the size of the body: the body itself, the response,
/// and a single object.
const MULTIPLE: usize = 3;
/// Additional bytes that the connection may use.
const BESIDES: usize = 1 << 20;
/// Bytes that may still be in use afterwards.
const AFTER: usize = 1 << 20;
/// Memory limit for reviews, same as in the scaffold, where the total is 128 MiB.
const MEMORY: usize = 64 << 20;

const SOON: Duration = Duration::from_secs(60);

/// Maximum number of bytes in use while converting an object.
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "memory.example.com",
    version = "v1",
    kind = "Backup",
    namespaced,
    schema = "disabled"
)]
struct BackupSpec {
    database: Database,
    schedule: String,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
struct Database {
    host: String,
    port: u16,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "memory.example.com",
        version = "v2",
        kind = "Backup",
        namespaced,
        schema = "disabled"
    )]
    pub(crate) struct BackupSpec {
        pub(crate) source: Database,
        pub(crate) schedule: String,
    }
}

impl From<v2::Backup> for Backup {
    fn from(backup: v2::Backup) -> Self {
        let (database, schedule) = (backup.spec.source, backup.spec.schedule);
        Backup {
            metadata: backup.metadata,
            spec: BackupSpec { database, schedule },
        }
    }
}

impl From<Backup> for v2::Backup {
    fn from(backup: Backup) -> Self {
        PEAK.fetch_max(in_use(), SeqCst);
        let (source, schedule) = (backup.spec.database, backup.spec.schedule);
        v2::Backup {
            metadata: backup.metadata,
            spec: v2::BackupSpec { source, schedule },
        }
    }
}

/// Each object in the list has 240 bytes.
fn review(objects: usize) -> String {
    let object = json!({
        "apiVersion": "memory.example.com/v1", "kind": "Backup",
        "metadata": { "name": "a", "namespace": "default", "uid": "00000000-0000-0000-0000-000000000000" },
        "spec": { "database": { "host": "database.example.com", "port": 5432 }, "schedule": "0 2 * * *" },
    });
    review_of(&object, objects)
}

/// Returns a review as text. Building it from values would take a hundred times as much memory.
fn review_of(object: &Value, count: usize) -> String {
    let object = object.to_string();
    let mut objects = format!("{object},").repeat(count);
    objects.pop();
    format!(
        "{{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{{\"uid\":\"c\",\
         \"desiredAPIVersion\":\"memory.example.com/v2\",\"objects\":[{objects}]}}}}"
    )
}

/// A running conversion webhook.
struct Served {
    port: u16,
    connector: TlsConnector,
}

impl Served {
    /// Returns the length of the response and its first line.
    async fn send(&self, body: &str) -> Result<(usize, String), std::io::Error> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = self.connector.connect(name, stream).await?;
        let head = format!(
            "POST /convert HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let (mut reader, mut writer) = tokio::io::split(stream);
        let receiving = async {
            let (mut buffer, mut length, mut first) = (vec![0; 64 * 1024], 0, String::new());
            // Drop the response, which would count towards the memory.
            while let Ok(read) = reader.read(&mut buffer).await
                && read > 0
            {
                if length == 0 {
                    first = String::from_utf8_lossy(&buffer[..read])
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                }
                length += read;
            }
            (length, first)
        };
        let sending = async {
            writer.write_all(head.as_bytes()).await?;
            // The server may close the connection before all of a rejected review was sent.
            let _ = writer.write_all(body.as_bytes()).await;
            let _ = writer.flush().await;
            Ok::<_, std::io::Error>(())
        };
        let (received, sent) = tokio::join!(receiving, sending);
        sent.map(|()| received)
    }

    async fn check(&self, objects: usize) {
        let body = review(objects);
        PEAK.store(0, SeqCst);
        let before = in_use();
        let (length, first) = self.send(&body).await.unwrap();
        assert_eq!(first, "HTTP/1.1 200 OK");
        assert!(length > body.len() / 2, "{length} bytes");
        let peak = PEAK.load(SeqCst).saturating_sub(before);
        let after = in_use().saturating_sub(before);
        println!(
            "{} bytes of body: {peak} bytes at the peak, {after} after",
            body.len()
        );
        assert!(
            peak <= MULTIPLE * body.len() + BESIDES,
            "{peak} bytes for {}",
            body.len()
        );
        assert!(after <= AFTER, "{after} bytes");
    }
}

/// Reads a field of `/proc/self/status`, e.g. `VmHWM`, which is the peak of the resident memory.
fn status(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines().filter_map(|line| line.strip_prefix(field));
    lines
        .next()
        .unwrap_or(":")
        .trim_start_matches(':')
        .trim()
        .to_owned()
}

/// Prints the resident memory before, during and after reviews of the given lengths. This includes
/// the body, because the same process sends it.
async fn measure(served: &Served, lengths: &str) {
    for objects in lengths.split(',') {
        let body = review(objects.parse().expect("a number of objects"));
        // Resets the peak.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let before = status("VmRSS");
        let answer = served.send(&body).await;
        println!(
            "{objects} objects, {} bytes of body: {answer:?}; before {before}, peak {}, after {}",
            body.len(),
            status("VmHWM"),
            status("VmRSS")
        );
    }
}

#[tokio::test]
async fn conversion_memory_is_a_small_multiple_of_the_review() {
    let folder = tempfile::tempdir().unwrap();
    let connector = connector(&write_certificate(folder.path()));
    let reserved = ReservedPort::reserve().unwrap();
    let port = reserved.number();
    let args = ManagerArgs {
        webhook_host: Some("127.0.0.1".to_owned()),
        webhook_port: port,
        webhook_cert_path: Some(folder.path().to_owned()),
        ..ManagerArgs::for_tests()
    };
    let served = Served { port, connector };
    let measured = std::env::var("RBUILDER_CONVERSION_OBJECTS").ok();
    let checked = async {
        let small = review(1);
        eventually(SOON, || async { served.send(&small).await.is_ok() }).await;
        if let Some(lengths) = &measured {
            return measure(&served, lengths).await;
        }
        served.check(2_000).await;
        served.check(20_000).await;

        // A single object with as many small values as possible, which would take about 500 MiB
        // decoded.
        let dense = vec![json!({ "a": 0 }); 300_000];
        let object =
            json!({ "apiVersion": "memory.example.com/v1", "kind": "Backup", "spec": { "database": dense } });
        let body = review_of(&object, 1);
        let (_, first) = served.send(&body).await.unwrap();
        assert_eq!(first, "HTTP/1.1 413 Payload Too Large");
        // A body that is too large.
        let (_, first) = served.send(&review(150_000)).await.unwrap();
        assert_eq!(first, "HTTP/1.1 413 Payload Too Large");
        served.check(2_000).await;
    };
    let manager = Manager::with_client("memory.example.com", ApiServer::new().client(), args)
        .webhook(Webhook::<Backup>::new().spoke::<v2::Backup>());
    let manager = match &measured {
        Some(_) => manager,
        None => manager.webhook_memory(MEMORY),
    };
    manager.start_until(checked).await.unwrap();
}
