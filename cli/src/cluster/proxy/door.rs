//! The address on which `kubectl proxy` listens: a Unix socket in a directory of the user, or a
//! port on platforms without Unix sockets.

use std::io::{self, Read, Write};
use std::process::ChildStdout;
use std::time::Duration;

use rbuilder_control_plane::Workspace;

/// Response timeout. The API server ends requests after a minute.
const ANSWER: Duration = Duration::from_secs(120);
/// Maximum response size in bytes. A page of 500 objects with 20 kB of metadata each has 10 MB.
const LARGEST: u64 = 256 * 1024 * 1024;

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(LARGEST).read_to_end(&mut answer)?;
    match u64::try_from(read) {
        Ok(read) if read < LARGEST => Ok(answer),
        _ => Err(io::Error::other("the answer is too large")),
    }
}

#[cfg(not(unix))]
pub(super) use on_port::Door;
#[cfg(unix)]
pub(super) use on_socket::Door;

#[cfg(unix)]
mod on_socket {
    use std::ffi::OsString;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;

    /// A socket in a directory that only the user can enter, whereas a port would be open to all
    /// users on the machine.
    pub(in super::super) struct Door {
        path: PathBuf,
    }

    impl Door {
        pub(in super::super) fn new(workspace: &Workspace) -> Door {
            Door {
                path: workspace.path().join("proxy"),
            }
        }

        pub(in super::super) fn arguments(&self) -> Vec<OsString> {
            vec!["--unix-socket".into(), self.path.clone().into()]
        }

        /// Drains the standard output, so that kubectl never blocks on it.
        pub(in super::super) fn watch(&mut self, stdout: ChildStdout) {
            super::super::collect(stdout, Default::default());
        }

        pub(in super::super) fn is_open(&self) -> bool {
            UnixStream::connect(&self.path).is_ok()
        }

        /// Prefix of all paths.
        pub(in super::super) fn prefix(&self) -> &str {
            ""
        }

        pub(in super::super) fn exchange(&self, request: &str) -> io::Result<Vec<u8>> {
            let stream = UnixStream::connect(&self.path)?;
            stream.set_read_timeout(Some(ANSWER))?;
            exchange(stream, request)
        }
    }
}

#[cfg(not(unix))]
mod on_port {
    use std::ffi::OsString;
    use std::hash::{BuildHasher as _, RandomState};
    use std::net::{Ipv4Addr, TcpStream};
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    /// A free port on this machine. All paths have a random prefix, which other users can't see in
    /// the process's arguments.
    pub(in super::super) struct Door {
        prefix: String,
        output: Arc<Mutex<String>>,
    }

    impl Door {
        pub(in super::super) fn new(_: &Workspace) -> Door {
            let [first, second] = [0, 1].map(|n: u8| RandomState::new().hash_one(n));
            Door {
                prefix: format!("/r{first:016x}{second:016x}"),
                output: Arc::default(),
            }
        }

        pub(in super::super) fn arguments(&self) -> Vec<OsString> {
            vec!["--port=0".into(), format!("--api-prefix={}/", self.prefix).into()]
        }

        /// Reads the standard output, which contains the port.
        pub(in super::super) fn watch(&mut self, stdout: ChildStdout) {
            super::super::collect(stdout, self.output.clone());
        }

        /// Extracts the port from `Starting to serve on 127.0.0.1:49152`.
        fn port(&self) -> Option<u16> {
            let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let line = output.lines().find(|line| line.contains("serve on"))?;
            // Until the newline arrives, the port may be incomplete.
            output.contains('\n').then_some(())?;
            line.rsplit_once(':')?.1.trim().parse().ok()
        }

        pub(in super::super) fn is_open(&self) -> bool {
            self.port().is_some()
        }

        pub(in super::super) fn prefix(&self) -> &str {
            &self.prefix
        }

        pub(in super::super) fn exchange(&self, request: &str) -> io::Result<Vec<u8>> {
            let port = self.port().ok_or(io::ErrorKind::NotConnected)?;
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_read_timeout(Some(ANSWER))?;
            exchange(stream, request)
        }
    }
}
