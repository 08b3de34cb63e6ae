// SPDX-License-Identifier: Apache-2.0

//! Starts and stops operator processes, and reads their resource usage.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Clock ticks per second in /proc, which is the same on all Linux systems.
const TICKS: f64 = 100.0;

/// How to start an operator.
#[derive(Clone, Debug)]
pub struct Operator {
    pub name: String,
    environment: Vec<(String, String)>,
    program: String,
    arguments: Vec<String>,
}

impl FromStr for Operator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, line) = text.split_once('=').ok_or("write <name>=<command line>")?;
        let mut words = line.split_whitespace().peekable();
        let mut environment = Vec::new();
        while let Some((variable, value)) = words.peek().and_then(|word| word.split_once('=')) {
            environment.push((variable.to_owned(), value.to_owned()));
            words.next();
        }
        Ok(Self {
            name: name.to_owned(),
            environment,
            program: words
                .next()
                .ok_or("the command line names no program")?
                .to_owned(),
            arguments: words.map(str::to_owned).collect(),
        })
    }
}

/// A running operator, killed on drop.
pub struct Running {
    child: Child,
    pub started: Instant,
    pub metrics: String,
}

/// The resource usage of an operator since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in seconds, user and system.
    pub cpu: f64,
    /// Current resident memory.
    pub rss_kb: u64,
    /// The part of the resident memory that is not backed by files.
    pub anonymous_kb: u64,
    /// Peak resident memory.
    pub peak_kb: u64,
    pub threads: u64,
}

impl Operator {
    /// Returns `true` if the replicas share the objects.
    pub fn is_sharded(&self) -> bool {
        self.arguments
            .iter()
            .any(|argument| argument.starts_with("--shards"))
    }

    pub fn start(&self, kubeconfig: &Path, latencies: &Path) -> Result<Running> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let metrics = format!("127.0.0.1:{port}");
        let log = std::fs::File::create(latencies.with_extension("log"))?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(format!("--metrics-bind-address={metrics}"))
            .args(["--metrics-secure=false", "--health-probe-bind-address=0"])
            .arg("--latencies")
            .arg(latencies)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program))?;
        Ok(Running {
            child,
            started: Instant::now(),
            metrics,
        })
    }
}

impl Running {
    pub fn usage(&self) -> Result<Usage> {
        let folder = format!("/proc/{}", self.child.id());
        let stat =
            std::fs::read_to_string(format!("{folder}/stat")).context("the operator has ended")?;
        // The second field is the name in parentheses; fields 14 and 15 are user and system time.
        let (_, fields) = stat.rsplit_once(") ").context("no fields in stat")?;
        let times: Vec<f64> = fields
            .split(' ')
            .skip(11)
            .take(2)
            .flat_map(str::parse)
            .collect();
        let status = std::fs::read_to_string(format!("{folder}/status"))?;
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok())
                .with_context(|| format!("the operator has ended: no {name}"))
        };
        Ok(Usage {
            cpu: times.iter().sum::<f64>() / TICKS,
            rss_kb: field("VmRSS")?,
            anonymous_kb: field("RssAnon")?,
            peak_kb: field("VmHWM")?,
            threads: field("Threads")?,
        })
    }

    /// Waits until the operator has used almost no CPU time for three consecutive seconds.
    pub async fn idle(&self) -> Result<()> {
        let mut before = self.usage()?.cpu;
        let mut quiet = 0;
        while quiet < 3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.usage()?.cpu;
            quiet = if now - before < 0.03 { quiet + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// Sends SIGTERM, like a kubelet, and waits for the operator to exit.
    pub async fn stop(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait()? {
                if !status.success() {
                    bail!("the operator ended with {status}");
                }
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the operator did not end within a minute of SIGTERM");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
