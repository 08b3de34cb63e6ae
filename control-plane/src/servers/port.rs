//! Ports that are chosen before the server that listens on them starts.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

use crate::Error;

/// A TCP port of this machine, reserved for a server that another process or a later part of this one starts.
///
/// A port that is only looked up (bound and closed again) is anybody's: the system may give it to the next connection
/// that any process opens, and the server then fails with "address already in use". On Linux, the reservation keeps a
/// socket bound to the port without listening. The kernel gives the port to nobody else, neither to a socket that asks
/// for any port nor to an outgoing connection, and still lets a server bind to it that sets `SO_REUSEADDR`, as servers
/// written in Go and Rust do. The port may be listened on again and again, until the value is dropped. On other systems,
/// whose rules differ, the port is only looked up.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    #[cfg(target_os = "linux")]
    _socket: Socket,
}

impl ReservedPort {
    /// Reserves a port that is free at all addresses of this machine.
    ///
    /// # Errors
    /// When the system has none.
    pub fn reserve() -> Result<Self, Error> {
        // A machine may have IPv6 disabled.
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

    /// Returns the number of the port.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Binds a socket for both families where there are two, as servers that listen on all addresses do.
fn bind(domain: Domain, address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, None)?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    // On other systems the option would let two servers listen on one port.
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
    fn a_server_can_listen_on_a_reserved_port_again_and_again() {
        let port = ReservedPort::reserve().unwrap();
        for address in [
            local(&port),
            (Ipv6Addr::UNSPECIFIED, port.number()).into(),
            local(&port),
        ] {
            let server = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(local(&port)).unwrap();
            let (accepted, _) = server.accept().unwrap();
            // The server's side closes first, so that it is the one that waits for late packets.
            drop(accepted);
            drop(client);
        }
    }

    /// The check of the kernel for a connection's own port is that of a socket without `SO_REUSEADDR`.
    #[test]
    fn a_connection_cannot_take_a_reserved_port() {
        let port = ReservedPort::reserve().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let error = socket.bind(&local(&port).into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn nobody_listens_on_a_reserved_port() {
        let port = ReservedPort::reserve().unwrap();
        let error = TcpStream::connect(local(&port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
