//! Servers started by the test, and a client configuration for them.

use std::path::Path;
use std::sync::Arc;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rbuilder_control_plane::{Assets, Cancel, ControlPlane, Server, Settings, Store};
use serde::Deserialize as _;

use super::Error;

#[derive(Debug)]
pub(super) struct OwnCluster {
    plane: Arc<ControlPlane>,
    config: Config,
    kubeconfig: Kubeconfig,
}

// Dropping the `start` future doesn't stop its blocking thread, so signal it.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl OwnCluster {
    pub(super) async fn start(folder: Option<&Path>, settings: Settings) -> Result<Self, Error> {
        let folder = folder.map(Path::to_owned).or_else(|| {
            // Other minor versions might validate differently from the types that the test was
            // compiled with.
            let minor = rbuilder_catalogue::KUBERNETES.minor();
            Store::of_user()?.find_minor(u32::from(minor.number()))
        });
        let assets = Assets::find(folder.as_deref())?;
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        let plane = run_blocking(move || ControlPlane::start(&assets, &settings, &cancel)).await?;
        let kubeconfig = Kubeconfig::deserialize(plane.kubeconfig());
        let kubeconfig =
            kubeconfig.map_err(|err| Error::new(format!("cannot create a kubeconfig: {err}")))?;
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await;
        let mut config =
            config.map_err(|err| Error::new(format!("cannot read the generated kubeconfig: {err}")))?;
        config.default_retry = false;
        Ok(Self {
            plane: Arc::new(plane),
            config,
            kubeconfig,
        })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    pub(super) fn kubeconfig_path(&self) -> &Path {
        self.plane.kubeconfig_path()
    }

    pub(super) fn signal(&self, server: Server, signal: &str) -> Result<(), Error> {
        Ok(self.plane.signal(server, signal)?)
    }

    pub(super) fn kill(&self, server: Server) -> Result<(), Error> {
        Ok(self.plane.kill(server)?)
    }

    pub(super) async fn restart(&self, server: Server) -> Result<(), Error> {
        let plane = self.plane.clone();
        run_blocking(move || plane.restart(server)).await
    }

    pub(super) async fn compact(&self) -> Result<(), Error> {
        let plane = self.plane.clone();
        run_blocking(move || plane.compact()).await
    }

    pub(super) async fn stop(&self) -> Result<(), Error> {
        let plane = self.plane.clone();
        run_blocking(move || plane.stop()).await
    }
}

async fn run_blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, rbuilder_control_plane::Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => Ok(done?),
        // Propagate panics, so that they fail the test like any other.
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => Err(Error::new(cancelled.to_string())),
        },
    }
}
