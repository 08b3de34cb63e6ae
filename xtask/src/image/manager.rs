//! Runs an image's manager. As in a container, it only sees the files of the image (which are
//! read-only) and runs as the image's user.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::buildah::{Buildah, as_root};

/// Timeout for each of the steps.
const LONGEST: Duration = Duration::from_secs(60);

/// The file system of an image, which is mounted.
pub(super) struct ImageRoot<'a> {
    buildah: &'a Buildah,
    container: String,
    pub(super) folder: PathBuf,
    pub(super) architecture: String,
    pub(super) user: String,
}

impl<'a> ImageRoot<'a> {
    /// Mounts the file system of an image.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not exist or cannot be mounted.
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

    /// Returns how large the manager is in bytes.
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

/// A manager that is running.
pub(super) struct Manager {
    child: Child,
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
    /// Starts an image's manager.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub(super) fn start(image: &ImageRoot<'_>, kubeconfig: &Path) -> Result<Self> {
        let inside = image.folder.join("kubeconfig");
        as_root("install --mode 0644")
            .arg(kubeconfig)
            .arg(&inside)
            .run()?;
        let probes = free_address()?;
        let command = as_root("unshare")
            .args(["--mount", "sh", "-ec", SCRIPT, "sh"])
            .arg(&image.folder)
            .arg(&image.user)
            .arg(format!("--health-probe-bind-address={probes}"))
            .env("KUBECONFIG", "/kubeconfig");
        let child = command.without_input().spawn()?;
        Ok(Manager { child, probes })
    }

    /// Waits for both probes to return 200.
    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        let probes = self.probes;
        for path in ["/healthz", "/readyz"] {
            self.wait_until(&format!("{path} does not answer 200"), || {
                Ok(get_status(probes, path).is_ok_and(|status| status.contains(" 200 ")))
            })?;
        }
        Ok(())
    }

    /// Waits for a condition. Returns an error if the manager exits before that.
    pub(super) fn wait_until(&mut self, otherwise: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
        let started = Instant::now();
        while !holds()? {
            if let Some(status) = self.child.try_wait()? {
                bail!("the manager ended: {status}");
            }
            ensure!(started.elapsed() < LONGEST, "after {LONGEST:?} {otherwise}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Sends SIGTERM like a kubelet would do, and waits. The exit status must be 0.
    pub(super) fn stop(mut self) -> Result<()> {
        as_root("kill -TERM").arg(self.child.id().to_string()).run()?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(started.elapsed() < LONGEST, "the manager does not stop");
            std::thread::sleep(Duration::from_millis(50));
        };
        ensure!(status.success(), "the manager stopped with {status}");
        Ok(())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address that isn't used by anyone.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Sends a GET request and returns the status line of the response.
fn get_status(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
