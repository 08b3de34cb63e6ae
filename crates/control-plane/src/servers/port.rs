//! Reserves ports for servers that start later.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

use crate::Error;

/// A TCP port of this machine, reserved for a server that starts later, in this process or another.
///
/// Without a reservation, the system may assign a free port to any other process before the server
/// listens on it, and the server fails with "address already in use". On Linux, the reservation
/// keeps a socket bound to the port without listening. The kernel then doesn't assign the port to
/// other sockets or outgoing connections, but servers that set `SO_REUSEADDR`, like those written
/// in Go or Rust, can still bind to it. The port can be listened on any number of times until the
/// reservation is dropped.
///
/// Other systems have different rules, so there the port is only looked up.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    #[cfg(target_os = "linux")]
    _socket: Socket,
}

impl ReservedPort {
    /// Reserves a port that is free on all addresses of this machine.
    ///
    /// # Errors
    ///
    /// Returns an error if no port is free.
    pub fn reserve() -> Result<Self, Error> {
        // IPv6 may be disabled.
        let socket = bind(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, 0).into())
            .or_else(|_| bind(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, 0).into()));
        let reserved = socket.and_then(|socket| {
            let address = socket.local_addr()?;
            let number = address.as_socket().map_or(0, |address| address.port());
            Ok(Self {
                number,
                #[cfg(target_os = "linux")]
                _socket: socket,
            })
        });
        reserved.map_err(|err| Error::new(format!("cannot reserve a port: {err}")))
    }

    /// The port number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// IPv6 sockets are dual-stack, like those of servers that listen on all addresses.
fn bind(domain: Domain, address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, None)?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    // Linux only; elsewhere, this option would let two servers listen on the same port.
    #[cfg(target_os = "linux")]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn local(port: &ReservedPort) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port.number()).into()
    }

    #[test]
    fn reserved_port_can_be_listened_on_repeatedly() {
        let port = ReservedPort::reserve().unwrap();
        for address in [
            local(&port),
            (Ipv6Addr::UNSPECIFIED, port.number()).into(),
            local(&port),
        ] {
            let server = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(local(&port)).unwrap();
            let (accepted, _) = server.accept().unwrap();
            // Close the server's side first, so that its socket ends up in TIME_WAIT.
            drop(accepted);
            drop(client);
        }
    }

    /// Outgoing connections bind their local port without `SO_REUSEADDR`, so test such a socket.
    #[test]
    fn connection_cannot_take_reserved_port() {
        let port = ReservedPort::reserve().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let error = socket.bind(&local(&port).into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn reserved_port_refuses_connections() {
        let port = ReservedPort::reserve().unwrap();
        let error = TcpStream::connect(local(&port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
