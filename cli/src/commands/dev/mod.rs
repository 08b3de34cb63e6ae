//! `rbuilder dev`: runs the operator during development.
//!
//! A cycle generates the manifests, builds the operator, applies the CRDs, restarts the operator
//! and applies the webhook configurations, in this order. If a step before the restart fails, the
//! running operator is left alone. Each change of the source starts a new cycle.
//!
//! On a control plane started by this process, the operator has the permissions of its service
//! account, as in a cluster, so that a missing marker shows up during development. In an existing
//! cluster, it has the permissions of the user, who may not be allowed to bind roles or to
//! impersonate.

mod account;
mod cluster;
mod installed;
mod operator;
mod rendered;
mod watch;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rbuilder_control_plane::{ReservedPort, WebhookAddress, Workspace, issue_serving_certificate};

use self::cluster::{Cluster, TICK};
use self::installed::Installed;
use self::operator::{Operator, build};
use self::rendered::Rendered;
use self::watch::Watch;
use super::{find_binary, find_kubectl, manifests};
use crate::cluster::Interrupt;
use crate::flags::DevFlags;
use crate::shell::Shell;

/// Timeout for an operator to serve its webhooks.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn run(dir: &Path, flags: &DevFlags, shell: &mut Shell) -> Result<u8> {
    let dir = std::path::absolute(dir)?;
    let interrupt = Interrupt::install()?;
    let kubectl = find_kubectl(&dir, &cluster::choice(flags))?;
    // Check before starting anything.
    cluster::check_reachable(flags, &Rendered::read(&kubectl)?)?;
    let workspace = Workspace::create()?;
    let cluster = Cluster::start(flags, &dir, &kubectl, &workspace, &interrupt, shell)?;
    let (watch, reason) = Watch::start(&dir, flags.poll);
    if let Some(reason) = reason {
        shell.warning(&format!(
            "polling files every second, because file system events are not available: {reason}"
        ));
    }
    let port = WebhookPort::choose(flags)?;
    let mut session = Session {
        address: create_address(flags, &port, &workspace)?,
        installed: Installed::new(cluster.kubectl().clone(), cluster.is_own()),
        cluster,
        operator: None,
        watch,
        interrupt,
        flags,
        workspace: &workspace,
        dir,
    };
    let result = session.follow_changes(shell);
    // Clean up after errors as well.
    let ended = session.end(shell);
    result.and(ended)?;
    Ok(0)
}

/// The webhook server's port, which stays the same across restarts of the operator.
enum WebhookPort {
    Given(u16),
    Reserved(ReservedPort),
}

impl WebhookPort {
    fn choose(flags: &DevFlags) -> Result<Self> {
        Ok(match flags.webhook_port {
            Some(port) => Self::Given(port),
            None => Self::Reserved(ReservedPort::reserve()?),
        })
    }

    fn number(&self) -> u16 {
        match self {
            Self::Given(port) => *port,
            Self::Reserved(port) => port.number(),
        }
    }
}

/// Writes the webhook server's certificate, and returns the address at which the API server calls
/// the webhooks.
fn create_address(flags: &DevFlags, port: &WebhookPort, workspace: &Workspace) -> Result<WebhookAddress> {
    let host = flags.webhook_host.as_deref().unwrap_or("127.0.0.1");
    let issued = issue_serving_certificate(host)?;
    workspace.write("tls.crt", &issued.certificate)?;
    workspace.write("tls.key", &issued.key)?;
    Ok(WebhookAddress {
        host: host.to_owned(),
        port: port.number(),
        authority: issued.authority,
    })
}

/// Chooses the address that the operator's webhook server binds to. For our own control plane, this
/// is the loopback interface. For an existing cluster, it is the interface of `--webhook-host`, or
/// all interfaces if the host is a name or an address on a different machine.
fn choose_interface(webhook_host: Option<&str>) -> IpAddr {
    let Some(host) = webhook_host else {
        return IpAddr::V4(Ipv4Addr::LOCALHOST);
    };
    let is_own = |address: &IpAddr| TcpListener::bind((*address, 0)).is_ok();
    let address = host.trim_matches(['[', ']']).parse().ok();
    address
        .filter(is_own)
        .unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED))
}

fn own_address(interface: IpAddr) -> IpAddr {
    match interface.is_unspecified() {
        true => IpAddr::V4(Ipv4Addr::LOCALHOST),
        false => interface,
    }
}

/// Environment variables that keep the operator's servers from binding to all interfaces, as they
/// do in a Pod. Variables and arguments set by the user take precedence.
fn interfaces(webhooks: IpAddr) -> Vec<(&'static str, String)> {
    let mut variables = vec![("HEALTH_PROBE_BIND_ADDRESS", "127.0.0.1:8081".to_owned())];
    if !webhooks.is_unspecified() {
        variables.push(("WEBHOOK_HOST", webhooks.to_string()));
    }
    variables.retain(|(name, _)| std::env::var_os(name).is_none());
    variables
}

struct Session<'a> {
    dir: PathBuf,
    flags: &'a DevFlags,
    workspace: &'a Workspace,
    cluster: Cluster,
    installed: Installed,
    address: WebhookAddress,
    operator: Option<Operator<'a>>,
    watch: Watch,
    interrupt: Interrupt,
}

impl Session<'_> {
    /// Runs a cycle immediately and after each change, until this process is interrupted.
    fn follow_changes(&mut self, shell: &mut Shell) -> Result<()> {
        self.try_cycle(shell);
        while !self.interrupt.is_asked() {
            self.cluster.check_running()?;
            if self.note_exit(shell) {
                shell.note("waiting for a change\n");
            }
            let changed = self.watch.changes_within(TICK);
            if !changed.is_empty() {
                shell.note(&format!("\nchanged: {}\n", summarize(&changed)));
                self.try_cycle(shell);
            }
        }
        Ok(())
    }

    /// Runs a cycle. Errors are only printed, because the next change may fix them.
    fn try_cycle(&mut self, shell: &mut Shell) {
        if let Err(error) = self.run_cycle(shell) {
            if self.interrupt.is_asked() {
                return;
            }
            crate::print_text_error(&error, shell);
            // It may have exited during the build.
            self.note_exit(shell);
            shell.note(match self.operator {
                Some(_) => "the previous build keeps running; waiting for a change\n",
                None => "no manager is running; waiting for a change\n",
            });
        }
    }

    fn run_cycle(&mut self, shell: &mut Shell) -> Result<()> {
        let written = manifests::generate(&self.dir, shell)?;
        // Our own writes must not start another cycle.
        self.watch.accept(&written);
        let mut rendered = Rendered::read(self.cluster.kubectl())?;
        cluster::check_reachable(self.flags, &rendered)?;
        rendered.redirect(&self.address);
        let bin = self.flags.bin.clone().unwrap_or_else(|| find_binary(&self.dir));
        shell.note(&format!("building: cargo build --bin {bin}\n"));
        let program = build(&self.dir, &bin, self.workspace, &self.interrupt)?;
        // The new operator may need the new CRDs as soon as it starts.
        self.installed.apply_crds(&rendered, shell)?;
        if let Some(operator) = self.operator.take() {
            operator.stop();
        }
        let arguments = self.operator_arguments();
        let kubeconfig = self.operator_kubeconfig(&rendered, shell)?;
        self.operator = Some(Operator::start(
            &program,
            &arguments,
            &self.dir,
            &kubeconfig,
            &interfaces(self.interface()),
            self.workspace,
        )?);
        if rendered.has_webhooks() {
            self.wait_until_served()?;
        }
        self.installed.apply_configurations(&rendered, shell)?;
        shell.note("the manager is running\n");
        Ok(())
    }

    /// Chooses the operator's kubeconfig. On our own control plane, it is restricted to the
    /// permissions of the operator's service account.
    fn operator_kubeconfig(&self, rendered: &Rendered, shell: &mut Shell) -> Result<PathBuf> {
        let kubeconfig = self.cluster.kubeconfig();
        let Some(account) = rendered.account.as_ref().filter(|_| self.cluster.is_own()) else {
            return Ok(kubeconfig.to_owned());
        };
        self.installed.apply_roles(rendered, shell)?;
        let text = self.cluster.kubectl().read_kubeconfig()?;
        let impersonating = account::impersonate(&text, account)?;
        Ok(self.workspace.write("operator-kubeconfig", &impersonating)?)
    }

    fn interface(&self) -> IpAddr {
        choose_interface(self.flags.webhook_host.as_deref())
    }

    fn operator_arguments(&self) -> Vec<std::ffi::OsString> {
        let mut folder = std::ffi::OsString::from("--webhook-cert-path=");
        folder.push(self.workspace.path());
        let port = format!("--webhook-port={}", self.address.port);
        let own = ["--enable-webhooks=true".into(), port.into(), folder];
        own.into_iter()
            .chain(self.flags.arguments.iter().cloned())
            .collect()
    }

    /// Waits until the operator accepts connections for its webhooks. The API server must not call
    /// them earlier.
    fn wait_until_served(&mut self) -> Result<()> {
        let deadline = Instant::now() + SERVED_TIMEOUT;
        let address = (own_address(self.interface()), self.address.port);
        while TcpStream::connect(address).is_err() {
            if self.operator.as_mut().is_none_or(Operator::has_ended) {
                bail!("the manager exited before it served its webhooks");
            }
            if self.interrupt.is_asked() || Instant::now() >= deadline {
                bail!(
                    "the manager did not serve webhooks on port {} within {} s: register them in src/webhook/mod.rs with \
                     `Manager::webhook`, and call `webhook::register` in src/main.rs",
                    self.address.port,
                    SERVED_TIMEOUT.as_secs()
                );
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Warns if the manager has exited on its own. Returns true if so.
    fn note_exit(&mut self, shell: &mut Shell) -> bool {
        let Some(mut operator) = self.operator.take() else {
            return false;
        };
        if !operator.has_ended() {
            self.operator = Some(operator);
            return false;
        }
        if let Some(status) = operator.stop() {
            shell.warning(&format!("the manager exited ({status})"));
        }
        true
    }

    /// Stops the operator, then restores an existing cluster or stops our own.
    fn end(&mut self, shell: &mut Shell) -> Result<()> {
        shell.note("\nstopping\n");
        if let Some(operator) = self.operator.take() {
            operator.stop();
        }
        let restored = self.installed.restore(shell);
        self.cluster.stop().and(restored)
    }
}

fn summarize(paths: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut text = paths[..paths.len().min(SHOWN)].join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_binds_to_loopback_unless_another_cluster_calls_it() {
        let check = |host: Option<&str>, expected: &str| {
            let interface = choose_interface(host);
            assert_eq!(interface.to_string(), expected, "{host:?}");
            assert!(!own_address(interface).is_unspecified());
        };
        check(None, "127.0.0.1");
        check(Some("127.0.0.2"), "127.0.0.2");
        // Reserved for documentation, so no machine has this address.
        check(Some("192.0.2.1"), "::");
        check(Some("host.docker.internal"), "::");
    }

    #[test]
    fn probes_never_bind_to_all_interfaces() {
        let webhooks = |variables: Vec<(&'static str, String)>| {
            assert!(variables.contains(&("HEALTH_PROBE_BIND_ADDRESS", "127.0.0.1:8081".to_owned())));
            variables.into_iter().find(|(name, _)| *name == "WEBHOOK_HOST")
        };
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let expected = ("WEBHOOK_HOST", "127.0.0.1".to_owned());
        assert_eq!(webhooks(interfaces(loopback)), Some(expected));
        let all = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        assert_eq!(webhooks(interfaces(all)), None);
    }
}
