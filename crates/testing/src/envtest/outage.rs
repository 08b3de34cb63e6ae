//! Simulates server outages, to test how an operator handles them.

use rbuilder_control_plane::Server;

use super::own::OwnCluster;
use super::{Cluster, Environment, Error};

impl Environment {
    /// Pauses a server with SIGSTOP. Connections stay open, but requests hang.
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
    ///
    /// Returns an error if the server is not running, for an existing cluster, and for
    /// [`Environment::shared`], because other tests use it.
    pub fn pause(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "STOP")
    }

    /// Resumes a [paused](Self::pause) server with SIGCONT.
    ///
    /// # Errors
    ///
    /// Same as [`Environment::pause`].
    pub fn resume(&self, server: Server) -> Result<(), Error> {
        self.signal(server, "CONT")
    }

    /// Kills a server with SIGKILL, keeping its data. See [`Environment::restart`].
    ///
    /// # Errors
    ///
    /// Returns an error if the environment was stopped, for an existing cluster, and for
    /// [`Environment::shared`], which other tests use.
    pub fn kill(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.kill(server)
    }

    /// Restarts a server on the same port with the same data, and waits for it to become ready.
    /// Kills it first if it's still running.
    ///
    /// # Errors
    ///
    /// Same as [`Environment::kill`]. Also returns an error if the server isn't ready within the
    /// start timeout.
    pub async fn restart(&self, server: Server) -> Result<(), Error> {
        self.own_servers()?.restart(server).await
    }

    /// Compacts etcd, which discards all but the latest version of each object. kube-apiserver does
    /// the same every five minutes.
    ///
    /// After a compaction, resuming a watch from an older version or continuing a list fails with
    /// 410 (Expired) if the API server has to read from etcd. Most watches are served from its
    /// cache, though. Start it with `apiserver_arg("--watch-cache=false")` to simulate a cache that
    /// doesn't reach back far enough.
    ///
    /// # Errors
    ///
    /// Same as [`Environment::kill`]. Also returns an error if etcd doesn't respond.
    pub async fn compact(&self) -> Result<(), Error> {
        self.own_servers()?.compact().await
    }

    fn signal(&self, server: Server, signal: &str) -> Result<(), Error> {
        self.own_servers()?.signal(server, signal)
    }

    fn own_servers(&self) -> Result<&OwnCluster, Error> {
        // An outage would make unrelated tests fail for no apparent reason.
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
