//! A minimal HTTP client for the servers, for readiness checks and a few modifying requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::certificates::Certificates;
use crate::Error;

/// Per step of a request. Long, because the first TLS handshake of a busy server is slow.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longer responses are truncated.
const LARGEST: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Probe {
    port: u16,
    /// `None` for plain HTTP.
    tls: Option<Arc<ClientConfig>>,
}

impl Probe {
    pub(crate) fn plain(port: u16) -> Self {
        Self { port, tls: None }
    }

    /// Authenticates as the administrator.
    pub(crate) fn tls(port: u16, certificates: &Certificates) -> Result<Self, Error> {
        let tls = client_config(certificates)
            .map_err(|err| Error::new(format!("cannot use the generated certificates: {err}")))?;
        Ok(Self {
            port,
            tls: Some(Arc::new(tls)),
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Any status other than 200 or 201 is an error that quotes the first line of the body.
    pub(crate) fn get(&self, path: &str) -> Result<String, String> {
        self.request(&format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"))
            .unwrap_or_else(|err| Err(err.to_string()))
    }

    pub(crate) fn post(&self, path: &str, json: &str) -> Result<String, String> {
        let length = json.len();
        let request = format!(
            "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        );
        self.request(&request).unwrap_or_else(|err| Err(err.to_string()))
    }

    fn request(&self, request: &str) -> io::Result<Result<String, String>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        match &self.tls {
            None => exchange(stream, request),
            Some(tls) => {
                let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
                let connection = ClientConnection::new(tls.clone(), name).map_err(io::Error::other)?;
                exchange(StreamOwned::new(connection, stream), request)
            }
        }
    }
}

fn client_config(certificates: &Certificates) -> Result<ClientConfig, Box<dyn std::error::Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificates.authority.as_bytes())?)?;
    let certificate = CertificateDer::from_pem_slice(certificates.admin.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(certificates.admin.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)?)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Result<String, String>> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    // Read to EOF; with HTTP/1.0, the server closes the connection after the response.
    let mut reader = BufReader::new(stream).take(LARGEST);
    let mut status = String::new();
    reader.read_line(&mut status)?;
    let mut lines = reader.lines().map_while(Result::ok);
    let head_end = lines.by_ref().find(String::is_empty);
    let body: Vec<String> = head_end.map(|_| lines.collect()).unwrap_or_default();
    let code = status.trim_end().split(' ').nth(1).unwrap_or_default();
    if matches!(code, "200" | "201") {
        return Ok(Ok(body.join("\n")));
    }
    let first = body.first().map_or("", String::as_str);
    Ok(Err(format!("status `{code}`: {first}")))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    struct Recorded {
        request: Vec<u8>,
        response: Cursor<&'static str>,
    }

    impl Read for &mut Recorded {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.response.read(buffer)
        }
    }

    impl Write for &mut Recorded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.request.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn other_statuses_are_errors() {
        let check = |response: &'static str, expected: Result<&str, &str>| {
            let mut connection = Recorded {
                request: Vec::new(),
                response: Cursor::new(response),
            };
            let found = exchange(&mut connection, "GET /readyz HTTP/1.0\r\n\r\n").unwrap();
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{response}");
            assert_eq!(connection.request, b"GET /readyz HTTP/1.0\r\n\r\n");
        };
        check("HTTP/1.0 200 OK\r\n\r\nok", Ok("ok"));
        check("HTTP/1.0 201 Created\r\nA: b\r\n\r\n{\n}", Ok("{\n}"));
        check(
            "HTTP/1.0 500 Internal Server Error\r\nA: b\r\n\r\n[-]etcd failed\n",
            Err("status `500`: [-]etcd failed"),
        );
        check("", Err("status ``: "));
        check("nonsense", Err("status ``: "));
    }
}
