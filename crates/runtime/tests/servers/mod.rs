//! API servers for tests. The fake server is always used, and the real one if its binaries are
//! available.

use std::path::Path;

use kube::Client;
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;

#[derive(Clone, Debug)]
pub(crate) enum Server {
    Fake(ApiServer),
    Real(Environment),
}

impl From<Environment> for Server {
    fn from(environment: Environment) -> Self {
        Self::Real(environment)
    }
}

#[allow(dead_code)] // not every test program uses all of it
impl Server {
    pub(crate) fn fake() -> Self {
        Self::Fake(ApiServer::new())
    }

    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Fake(server) => server.admin(),
            Self::Real(environment) => environment.client(),
        }
    }

    /// For tests that can't run on the fake server.
    #[track_caller]
    pub(crate) fn real(&self) -> &Environment {
        match self {
            Self::Real(environment) => environment,
            Self::Fake(_) => {
                panic!("this test is for kube-apiserver: mark it with #[rbuilder::envtest::test]")
            }
        }
    }

    pub(crate) async fn install_crds(&self, path: impl AsRef<Path>) {
        match self {
            Self::Fake(server) => server.install_crds(path).unwrap(),
            Self::Real(environment) => environment.install_crds(path).await.unwrap(),
        }
    }

    pub(crate) async fn namespace(&self, prefix: &str) -> String {
        match self {
            Self::Fake(server) => server.namespace(prefix),
            Self::Real(environment) => environment.namespace(prefix).await.unwrap(),
        }
    }
}

/// Creates two tests for each function, which takes a [`Server`] as its argument: one uses the fake
/// server, the other a real server, which is ignored unless `KUBEBUILDER_ASSETS` is set. `Server`
/// must be in scope.
#[allow(unused_macros)]
macro_rules! on_both_servers {
    ($($name:ident),+ $(,)?) => {
        mod fake {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Server::fake()).await;
            })+
        }

        mod real {
            $(#[rbuilder::envtest::test]
            async fn $name(environment: rbuilder::envtest::Environment) {
                super::$name(environment.into()).await;
            })+
        }
    };
}

#[allow(unused_imports)]
pub(crate) use on_both_servers;
