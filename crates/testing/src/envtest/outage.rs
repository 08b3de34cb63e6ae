//! Simulates outages of the servers, to test how an operator handles them.

use rbuilder_control_plane::Server;

use super::own::OwnCluster;
use super::{Cluster, Environment, Error};

impl Environment {
    /// Pauses a server with SIGSTOP. Connections stay open, but requests are not answered.
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
    /// Returns an error if the server is not running, for an existing cluster, and for
    /// [`Environment::shared`], because other tests use it.
    pub fn pause(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "STOP")
    }

    /// Resumes a [paused](Self::pause) server with SIGCONT.
    ///
    /// # Errors
    /// Same as [`Environment::pause`].
    pub fn resume(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "CONT")
    }

    /// Kills a server with SIGKILL and keeps its data. See [`Environment::restart`].
    ///
    /// # Errors
    /// Returns an error if the environment has been stopped, for an existing cluster, and for
    /// [`Environment::shared`], because other tests use it.
    pub fn kill(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.kill(server)
    }

    /// Restarts a server on the same port with the same data, and waits until it is ready. If the
    /// server is still running, it is killed first.
    ///
    /// # Errors
    /// Same as [`Environment::kill`]. Also returns an error if the server is not ready within the
    /// start timeout.
    pub async fn restart(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.restart(server).await
    }

    /// Compacts etcd, which discards all but the latest version of each object. kube-apiserver does
    /// the same every five minutes.
    ///
    /// Afterwards, watches that resume at an older version and lists that are continued fail with
    /// 410 (Expired) if the API server has to read from etcd. It serves most watches from its
    /// cache. Start it with `apiserver_arg("--watch-cache=false")` to simulate a cache that does
    /// not reach back far enough.
    ///
    /// # Errors
    /// Same as [`Environment::kill`]. Also returns an error if etcd does not respond.
    pub async fn compact(&self) -> Result<(), Error> {
        self.own_servers()?.compact().await
    }

    fn signal(&self, server: Server, signal: &str) -> Result<(), Error> {
        self.own_servers()?.signal(server, signal)
    }

    fn own_servers(&self) -> Result<&OwnCluster, Error> {
        // Other tests would fail for no apparent reason.
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
