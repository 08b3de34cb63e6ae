//! Runs an image's manager. As in a container, it only sees the files of the image (which are
//! read-only) and runs as the image's user.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::buildah::{Buildah, as_root};
use crate::run::Running;
use crate::sh::Cmd;

const LONGEST: Duration = Duration::from_secs(60);

pub(super) struct ImageRoot<'a> {
    buildah: &'a Buildah,
    container: String,
    pub(super) folder: PathBuf,
    pub(super) architecture: String,
    pub(super) user: String,
}

impl<'a> ImageRoot<'a> {
    pub(super) fn mount(buildah: &'a Buildah, image: &str) -> Result<Self> {
        let config = "inspect --type image --format '{{.OCIv1.Architecture}} {{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}'";
        let config = buildah.command(config).arg(image).read()?;
        let mut words = config.split_whitespace();
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (architecture, user, entry_point) = (word(), word(), word());
        ensure!(entry_point == "[/manager]", "{image} starts {entry_point}");
        let container = buildah.command("from --pull=never").arg(image).read()?;
        let container = container.trim_end().to_owned();
        let folder = buildah.command("mount").arg(&container).read()?;
        Ok(ImageRoot {
            buildah,
            container,
            folder: folder.trim_end().into(),
            architecture,
            user,
        })
    }

    pub(super) fn manager_size(&self) -> Result<u64> {
        let size = as_root("stat --format %s").arg(self.manager()).read()?;
        size.trim_end().parse().context("a size is a number")
    }

    /// Returns the content of the manager's binary. If there was a stand-in for Cargo, it is text.
    pub(super) fn read_manager(&self) -> Result<String> {
        as_root("cat").arg(self.manager()).read()
    }

    fn manager(&self) -> PathBuf {
        self.folder.join("manager")
    }

    /// Runs the manager with a single argument until it exits, and returns the output.
    pub(super) fn run_for_output(&self, argument: &str) -> Result<String> {
        as_root("chroot")
            .arg(format!("--userspec={}", self.user))
            .arg(&self.folder)
            .args(["/manager", argument])
            .read()
    }
}

impl Drop for ImageRoot<'_> {
    fn drop(&mut self) {
        let _ = self.buildah.command("rm").arg(&self.container).succeeds();
    }
}

pub(super) struct Manager {
    process: Running,
    probes: SocketAddr,
}

/// This makes the root folder read-only (in its own mount namespace, so others aren't affected),
/// and executes the manager.
const SCRIPT: &str = r#"
root=$1; user=$2; shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" /manager "$@"
"#;

impl Manager {
    pub(super) fn start(image: &ImageRoot<'_>, kubeconfig: &Path) -> Result<Self> {
        let inside = image.folder.join("kubeconfig");
        as_root("install --mode 0644")
            .arg(kubeconfig)
            .arg(&inside)
            .run()?;
        let probes = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let command = as_root("unshare")
            .args(["--mount", "sh", "-ec", SCRIPT, "sh"])
            .arg(&image.folder)
            .arg(&image.user)
            .arg(format!("--health-probe-bind-address={probes}"))
            .env("KUBECONFIG", "/kubeconfig");
        let process = Running(command.without_input().spawn()?);
        Ok(Manager { process, probes })
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        for path in ["healthz", "readyz"] {
            let url = format!("http://{}/{path}", self.probes);
            let ask = || Cmd::new("curl --silent --fail --max-time 5").arg(&url);
            self.wait_until(&format!("/{path} does not answer 200"), || Ok(ask().succeeds()))?;
        }
        Ok(())
    }

    /// Waits for a condition. Returns an error if the manager exits before that.
    pub(super) fn wait_until(&mut self, otherwise: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
        self.process.wait_until(LONGEST, otherwise, holds)
    }

    /// Sends SIGTERM like a kubelet would do, and waits. The exit status must be 0.
    pub(super) fn stop(mut self) -> Result<()> {
        let id = self.process.0.id().to_string();
        as_root("kill -TERM").arg(id).run()?;
        let status = self.process.wait(LONGEST)?;
        ensure!(status.success(), "the manager stopped with {status}");
        Ok(())
    }
}
