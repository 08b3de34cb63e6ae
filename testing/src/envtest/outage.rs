//! Injected outages of the servers, for tests of how an operator survives them.

use rbuilder_control_plane::Server;

use super::own::OwnCluster;
use super::{Cluster, Environment, Error};

impl Environment {
    /// Pauses a server (SIGSTOP): its connections stay open, and nothing is answered on them.
    ///
    /// ```no_run
    /// use rbuilder::envtest::{Environment, Server};
    ///
    /// # async fn run() -> Result<(), rbuilder::envtest::Error> {
    /// let env = Environment::builder().start().await?;
    /// env.pause(Server::ApiServer)?;
    /// // … check what the operator does …
    /// env.resume(Server::ApiServer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server is not running, and for [`Environment::shared`], which other tests use, or
    /// an existing cluster.
    pub fn pause(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "STOP")
    }

    /// Resumes a [paused](Self::pause) server (SIGCONT).
    ///
    /// # Errors
    /// As [`Environment::pause`].
    pub fn resume(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "CONT")
    }

    /// Kills a server (SIGKILL). Its data stays; see [`Environment::restart`].
    ///
    /// # Errors
    /// When the environment was stopped, and for [`Environment::shared`], which other tests use, or
    /// an existing cluster.
    pub fn kill(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.kill(server)
    }

    /// Restarts a server on the same port and with the same data, and waits until it is ready. A server that still runs
    /// is killed first.
    ///
    /// # Errors
    /// As [`Environment::kill`], and when the server is not ready within the start timeout.
    pub async fn restart(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.restart(server).await
    }

    /// Drops the history of all objects from etcd, as kube-apiserver does every five minutes: only their present versions
    /// stay.
    ///
    /// A watch that resumes at an older version, or a list that continues, is answered with 410 (Expired) from now on, if
    /// it has to be read from etcd. kube-apiserver answers most watches from its memory; start it with
    /// `apiserver_arg("--watch-cache=false")` to see what happens in a cluster where that is too short.
    ///
    /// # Errors
    /// When etcd does not answer, and as [`Environment::kill`].
    pub async fn compact(&self) -> Result<(), Error> {
        self.own_servers()?.compact().await
    }

    fn signal(&self, server: Server, signal: &str) -> Result<(), Error> {
        self.own_servers()?.signal(server, signal)
    }

    /// Returns the servers that this environment may disturb.
    fn own_servers(&self) -> Result<&OwnCluster, Error> {
        if self.shared {
            return Err(Error::new(
                "the shared environment cannot be disturbed: it serves all tests; start one with `builder`",
            ));
        }
        match &*self.cluster {
            Cluster::Own(own) => Ok(own),
            Cluster::Existing(_) => Err(Error::new(
                "the servers of an existing cluster cannot be disturbed: build the environment with \
                 `existing_cluster(false)`",
            )),
        }
    }
}
