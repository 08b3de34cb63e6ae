//! SOCKS5 ([RFC 1928]) with username/password authentication ([RFC 1929]). The proxy resolves the
//! server's host name.
//!
//! [RFC 1928]: https://www.rfc-editor.org/rfc/rfc1928
//! [RFC 1929]: https://www.rfc-editor.org/rfc/rfc1929

use std::io;
use std::net::IpAddr;

use tokio::net::TcpStream;

use super::Proxy;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Meaning of the reply codes from 1.
const FAILURES: [&str; 8] = [
    "general failure",
    "connection not allowed by its rules",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "time to live expired",
    "command not supported",
    "address type not supported",
];

/// Asks the proxy at the other end of `stream` to connect to a server. If the proxy refuses, the
/// error contains its reply.
pub(super) async fn connect(
    stream: TcpStream,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<TcpStream, String> {
    let failed = |error: io::Error| error.to_string();
    let method = match proxy.user {
        Some(_) => USER_AND_PASSWORD,
        None => NO_AUTHENTICATION,
    };
    write_all(&stream, &[VERSION, 1, method]).await.map_err(failed)?;
    let answer: [u8; 2] = read(&stream).await.map_err(failed)?;
    if answer != [VERSION, method] {
        return Err(match (answer[0], method) {
            (VERSION, NO_AUTHENTICATION) => {
                "it asks for a user and a password; write them into its URL".to_owned()
            }
            (VERSION, _) => "it does not accept a user and a password".to_owned(),
            _ => "it does not speak SOCKS5".to_owned(),
        });
    }
    if let Some((user, password)) = &proxy.user {
        let mut login = vec![1];
        push_text(&mut login, user)?;
        push_text(&mut login, password)?;
        write_all(&stream, &login).await.map_err(failed)?;
        let [_, status] = read(&stream).await.map_err(failed)?;
        if status != 0 {
            return Err("it rejects the user and the password of its URL".to_owned());
        }
    }
    let mut request = vec![VERSION, CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        Err(_) => {
            request.push(NAME);
            push_text(&mut request, host)?;
        }
    }
    request.extend(port.to_be_bytes());
    write_all(&stream, &request).await.map_err(failed)?;
    let [_, status, _, address_type] = read(&stream).await.map_err(failed)?;
    if let Some(failure) = usize::from(status).checked_sub(1) {
        return Err(FAILURES
            .get(failure)
            .map_or_else(|| format!("failure {status}"), |&text| text.to_owned()));
    }
    // Skip the bound address.
    match address_type {
        IPV4 => drop(read::<6>(&stream).await.map_err(failed)?),
        IPV6 => drop(read::<18>(&stream).await.map_err(failed)?),
        _ => {
            let [length] = read(&stream).await.map_err(failed)?;
            let mut rest = vec![0; usize::from(length) + 2];
            read_exact(&stream, &mut rest).await.map_err(failed)?;
        }
    }
    Ok(stream)
}

fn push_text(message: &mut Vec<u8>, text: &str) -> Result<(), String> {
    let length = u8::try_from(text.len())
        .map_err(|_| "SOCKS5 allows 255 bytes for a name, a user or a password".to_owned())?;
    message.push(length);
    message.extend(text.as_bytes());
    Ok(())
}

async fn read<const N: usize>(stream: &TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    read_exact(stream, &mut bytes).await?;
    Ok(bytes)
}

async fn read_exact(stream: &TcpStream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = &mut buffer[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
