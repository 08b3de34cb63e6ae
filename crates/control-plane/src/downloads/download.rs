//! HTTP downloads with limits on time and size, a single retry, and errors that name the URL.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use ring::digest::{self, SHA512};
use rustls::crypto::ring::default_provider;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, Proxy};

const ATTEMPTS: usize = 2;

const CHUNK: usize = 64 << 10;

/// A download client. Uses the proxies from the environment and the system's trusted certificates.
pub struct Downloads {
    agent: Agent,
    /// Bypasses the proxy, for servers on this machine.
    direct: Agent,
}

/// A download into memory or a file.
pub struct Request<'a> {
    /// The URL.
    pub url: &'a str,
    /// Maximum size in bytes.
    pub largest: u64,
}

#[derive(Debug)]
struct Failure {
    error: anyhow::Error,
    /// Whether a retry may succeed.
    is_passing: bool,
}

impl Failure {
    fn lasting(error: impl Into<anyhow::Error>) -> Failure {
        Failure {
            error: error.into(),
            is_passing: false,
        }
    }

    fn passing(error: impl Into<anyhow::Error>) -> Failure {
        Failure {
            error: error.into(),
            is_passing: true,
        }
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Failure {
        use ureq::Error::{ConnectionFailed, HostNotFound, Io, Protocol, StatusCode, Timeout};
        let is_passing = match &error {
            StatusCode(code) => matches!(code, 408 | 429 | 500..),
            Io(_) | Timeout(_) | HostNotFound | ConnectionFailed | Protocol(_) => true,
            _ => false,
        };
        let error = match error {
            StatusCode(code) => anyhow!("the server answered with status {code}"),
            error => error.into(),
        };
        Failure { error, is_passing }
    }
}

impl Downloads {
    /// Creates a client. The timeout applies to connecting, and to each part of a response.
    pub fn new(timeout: Duration) -> Downloads {
        Downloads {
            agent: new_agent(timeout, Proxy::try_from_env()),
            direct: new_agent(timeout, None),
        }
    }

    /// Downloads a text.
    ///
    /// # Errors
    ///
    /// Returns an error if the second attempt fails, or if the text is too large or not UTF-8.
    pub fn text(&self, request: &Request<'_>, note: &mut dyn FnMut(&str)) -> Result<String> {
        let bytes = with_retry(request.url, note, &mut |_| {
            let mut bytes = Vec::new();
            self.copy(request, &mut bytes, &mut |_, _| {})?;
            Ok(bytes)
        })?;
        String::from_utf8(bytes).with_context(|| format!("expected UTF-8 from {}", request.url))
    }

    /// Downloads into a file. Returns the sha512 checksum of the content in lower-case hexadecimal.
    ///
    /// # Errors
    ///
    /// Returns an error if the second attempt fails, or if the content is too large or can't be
    /// written.
    pub fn file(&self, request: &Request<'_>, file: &mut File, note: &mut dyn FnMut(&str)) -> Result<String> {
        with_retry(request.url, note, &mut |note| {
            // Truncate the output of a failed attempt.
            file.rewind()
                .and_then(|()| file.set_len(0))
                .map_err(Failure::lasting)?;
            let mut hashed = Hashed::new(&mut *file);
            self.copy(request, &mut hashed, &mut |done, total| {
                note(&format_progress(done, total))
            })?;
            Ok(hashed.finish())
        })
    }

    /// Copies the response. Calls `progress` after each quarter, with the number of bytes copied
    /// and the total.
    fn copy(
        &self,
        request: &Request<'_>,
        into: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Failure> {
        let agent = if is_loopback(request.url) {
            &self.direct
        } else {
            &self.agent
        };
        let mut body = agent.get(request.url).call()?.into_body();
        let total = body.content_length();
        // Fail early if the server announces the length. It need not, so count the bytes as well.
        if total.is_some_and(|total| total > request.largest) {
            return Err(too_large(request));
        }
        let mut quarters = 0;
        let mut done = 0;
        copy_chunks(&mut body, &mut |chunk| {
            done += chunk.len() as u64;
            if done > request.largest {
                return Err(too_large(request));
            }
            into.write_all(chunk).map_err(Failure::lasting)?;
            if let Some(total) = total.filter(|total| *total > 0 && done * 4 / total > quarters) {
                quarters = done * 4 / total;
                progress(done, total);
            }
            Ok(())
        })?;
        match total {
            Some(total) if total != done => Err(Failure::passing(anyhow!(
                "the connection ended after {done} of {total} bytes"
            ))),
            _ => Ok(()),
        }
    }
}

fn new_agent(timeout: Duration, proxy: Option<Proxy>) -> Agent {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .user_agent(concat!("rbuilder/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(timeout))
        .timeout_connect(Some(timeout))
        .timeout_recv_response(Some(timeout))
        .timeout_per_read(Some(timeout))
        .build();
    config.new_agent()
}

fn copy_chunks(body: &mut Body, each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut reader = body.as_reader();
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer).map_err(Failure::passing)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}

fn too_large(request: &Request<'_>) -> Failure {
    Failure::lasting(anyhow!("the content has more than {} bytes", request.largest))
}

/// The argument reports progress.
type Attempt<'a, T> = dyn FnMut(&mut dyn FnMut(&str)) -> Result<T, Failure> + 'a;

fn with_retry<T>(url: &str, note: &mut dyn FnMut(&str), act: &mut Attempt<'_, T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match act(note) {
            Ok(done) => return Ok(done),
            Err(failure) if failure.is_passing && attempt < ATTEMPTS => {
                note(&format!(
                    "cannot download {url}: {:#}; trying again",
                    failure.error
                ));
            }
            Err(failure) => return Err(failure.error.context(format!("cannot download {url}"))),
        }
        attempt += 1;
    }
}

fn format_progress(done: u64, total: u64) -> String {
    format!("  {} % of {}", done * 100 / total, format_size(total))
}

/// Formats a size for display.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    ["127.", "localhost:", "localhost/", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}

/// A writer that computes the sha512 checksum of everything written.
pub struct Hashed<W> {
    inner: W,
    context: digest::Context,
}

impl<W: Write> Hashed<W> {
    /// Wraps a writer.
    pub fn new(inner: W) -> Self {
        let context = digest::Context::new(&SHA512);
        Hashed { inner, context }
    }

    /// Returns the checksum in lower-case hexadecimal.
    pub fn finish(self) -> String {
        let digest = self.context.finish();
        digest.as_ref().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.context.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_sha512() {
        let mut hashed = Hashed::new(Vec::new());
        hashed.write_all(b"abc").unwrap();
        assert!(hashed.finish().starts_with("ddaf35a193617abacc417349ae204131"));
    }

    #[test]
    fn bypasses_proxies_for_this_machine() {
        for (url, expected) in [
            ("http://127.0.0.1:80/a", true),
            ("http://localhost:8080/a", true),
            ("https://[::1]/a", true),
            ("https://localhost.example.com/a", false),
            ("https://example.com/127.0.0.1", false),
        ] {
            assert_eq!(is_loopback(url), expected, "{url}");
        }
    }
}
