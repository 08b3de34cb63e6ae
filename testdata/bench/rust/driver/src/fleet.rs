// SPDX-License-Identifier: Apache-2.0

//! Measures several replicas of one operator that share its objects.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cluster::{Cluster, SERVER_SHARDS, Snapshots};
use crate::process::{Operator, Running, Usage};
use crate::proxy::Proxy;
use crate::steady::Observer;
use crate::{Args, metrics, run};

/// How long a phase may take besides the reconciles.
const LIMIT: Duration = Duration::from_secs(600);

/// A replica and what it receives.
struct Replica {
    running: Running,
    proxy: Proxy,
}

/// The figures of one replica in one phase.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    cpu: f64,
    anonymous_kb: u64,
    received: u64,
    /// Objects of other replicas that were received.
    foreign: f64,
    reconciles: f64,
}

/// The figures of all replicas in one phase.
struct Phase {
    name: &'static str,
    seconds: f64,
    replicas: Vec<Figures>,
}

/// Replicas that run on one cluster.
struct Fleet<'a> {
    cluster: &'a Cluster,
    args: &'a Args,
    replicas: Vec<Replica>,
}

/// Measures each operator with each number of replicas, and prints a row for each phase.
///
/// # Errors
/// Returns an error at the end if an operator failed.
pub async fn measure(args: &Args) -> Result<()> {
    println!("{}", HEAD.join(" | "));
    let mut failures = 0;
    for &objects in &args.objects {
        let snapshots = Snapshots::new(args.snapshots.as_deref(), objects)?;
        for is_sharding in [true, false] {
            for operator in &args.operators {
                for &replicas in &args.replicas {
                    if !is_measured(operator.is_sharded(), is_sharding, replicas) {
                        continue;
                    }
                    let case = Case {
                        args,
                        snapshots: &snapshots,
                        operator,
                        replicas,
                        is_sharding,
                    };
                    // The other runs take long, so a failure must not lose them.
                    if let Err(error) = case.measure().await {
                        eprintln!("{}, {replicas} replicas failed: {error:#}", operator.name);
                        failures += 1;
                    }
                }
            }
        }
    }
    match failures {
        0 => Ok(()),
        _ => bail!("{failures} runs failed"),
    }
}

/// Returns `true` if a number of replicas is measured. Without shards, further replicas wait for the
/// leader to fail. Without shards of the server, a single replica is the same as a leader.
fn is_measured(is_sharded: bool, is_sharding: bool, replicas: usize) -> bool {
    match is_sharded {
        true => is_sharding || replicas > 1,
        false => !is_sharding && replicas == 1,
    }
}

/// A number of replicas of an operator, on an API server that sends them their own objects or all.
struct Case<'a> {
    args: &'a Args,
    snapshots: &'a Snapshots,
    operator: &'a Operator,
    replicas: usize,
    is_sharding: bool,
}

impl Case<'_> {
    async fn measure(&self) -> Result<()> {
        if self.args.cold > 0 {
            let cluster = self.cold().await?;
            // Others may not see what this one has labelled.
            if self.operator.is_sharded() {
                self.snapshots.save_reconciled(cluster).await?;
            }
        }
        if self.args.warm > 0 {
            let cluster = match self.snapshots.reconciled(self.gate()).await? {
                Some(cluster) => cluster,
                None => self.cold().await?,
            };
            self.warm(&cluster).await?;
        }
        Ok(())
    }

    fn gate(&self) -> Option<&'static str> {
        self.is_sharding.then_some(SERVER_SHARDS)
    }

    /// Starts replicas where nothing is reconciled, and returns the cluster, where everything is.
    async fn cold(&self) -> Result<Cluster> {
        let cluster = self.snapshots.created(self.gate()).await?;
        let observer = Observer::new(&cluster);
        let (fleet, started) = self.start(&cluster).await?;
        let steady = observer.steady().await?.duration_since(started);
        self.print(&fleet.phase("cold", steady.as_secs_f64(), None).await?);
        fleet.stop().await?;
        Ok(cluster)
    }

    /// Starts replicas where everything is reconciled, changes objects, and kills a replica.
    async fn warm(&self, cluster: &Cluster) -> Result<()> {
        let args = self.args;
        let (mut fleet, started) = self.start(cluster).await?;
        fleet.reconciled().await?;
        let seconds = started.elapsed().as_secs_f64();
        self.print(&fleet.phase("warm", seconds, None).await?);
        for &rate in &args.rates {
            let before = fleet.figures().await?;
            run::touch(cluster, rate, args.seconds).await?;
            let seconds = f64::from(args.seconds);
            self.print(&fleet.phase("changes", seconds, Some(before)).await?);
        }
        if self.replicas > 1 {
            let before = fleet.figures().await?.split_off(1);
            let killed = Instant::now();
            drop(fleet.replicas.remove(0));
            fleet.has_all_ranges().await?;
            let seconds = killed.elapsed().as_secs_f64();
            fleet.has_all_objects().await?;
            self.print(&fleet.phase("crash", seconds, Some(before)).await?);
        }
        fleet.stop().await
    }

    async fn start<'a>(&'a self, cluster: &'a Cluster) -> Result<(Fleet<'a>, Instant)> {
        Fleet::start(cluster, self.args, self.operator, self.replicas).await
    }

    fn print(&self, phase: &Phase) {
        let objects = self.snapshots.objects();
        println!(
            "{}",
            row(objects, self.is_sharding, &self.operator.name, phase)
        );
    }
}

impl<'a> Fleet<'a> {
    /// Starts replicas, and returns them with the time of the start once they share the ranges.
    async fn start(
        cluster: &'a Cluster,
        args: &'a Args,
        operator: &Operator,
        replicas: usize,
    ) -> Result<(Self, Instant)> {
        let started = Instant::now();
        let start = |number: usize| {
            let proxy = Proxy::start(cluster.environment.kubeconfig_path())?;
            let latencies: PathBuf = std::env::temp_dir()
                .join(format!("bench-latencies-{}-{number}", std::process::id()));
            let running = operator.start(proxy.kubeconfig(), &latencies)?;
            Ok(Replica { running, proxy })
        };
        let fleet = Self {
            cluster,
            args,
            replicas: (0..replicas).map(start).collect::<Result<_>>()?,
        };
        if operator.is_sharded() {
            fleet.has_all_ranges().await?;
        }
        Ok((fleet, started))
    }

    /// Waits until each range has a replica, and each replica has ranges.
    async fn has_all_ranges(&self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let mut shares = Vec::new();
            for replica in &self.replicas {
                replica.running.usage()?;
                // Ignore errors, because metrics are not served immediately.
                let text = metrics::scrape(&replica.running.metrics)
                    .await
                    .unwrap_or_default();
                shares.push(metrics::serving_ranges(&text));
            }
            let all: f64 = shares.iter().sum();
            if all >= RANGES && shares.iter().all(|share| *share > 0.0) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the replicas have {shares:?} ranges");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the replicas together have cached each object and its Deployment.
    async fn has_all_objects(&self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        let expected = 2.0 * self.cluster.objects as f64;
        loop {
            let mut cached = 0.0;
            for replica in &self.replicas {
                cached +=
                    metrics::cached_objects(&metrics::scrape(&replica.running.metrics).await?);
            }
            if cached >= expected {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{cached} of {expected} objects are cached");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the replicas together have reconciled each object.
    async fn reconciled(&self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let figures = self.figures().await?;
            let all: f64 = figures.iter().map(|figures| figures.reconciles).sum();
            if all >= self.cluster.objects as f64 {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{all} of {} objects were reconciled", self.cluster.objects);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn figures(&self) -> Result<Vec<Figures>> {
        let mut all = Vec::new();
        for Replica { running, proxy } in &self.replicas {
            let Usage {
                cpu, anonymous_kb, ..
            } = running.usage()?;
            let text = metrics::scrape(&running.metrics).await.unwrap_or_default();
            all.push(Figures {
                cpu,
                anonymous_kb,
                received: proxy.received(),
                foreign: metrics::foreign_objects(&text),
                reconciles: metrics::reconciles(&text),
            });
        }
        Ok(all)
    }

    /// Waits until the replicas are idle, and returns their figures since `before`, or since their
    /// start.
    async fn phase(
        &self,
        name: &'static str,
        seconds: f64,
        before: Option<Vec<Figures>>,
    ) -> Result<Phase> {
        for replica in &self.replicas {
            replica.running.idle().await?;
        }
        let busy = self.figures().await?;
        tokio::time::sleep(Duration::from_secs(self.args.settle)).await;
        let settled = self.figures().await?;
        let replicas = busy
            .into_iter()
            .zip(settled)
            .enumerate()
            .map(|(index, (busy, settled))| {
                let before = before
                    .as_ref()
                    .map(|before| before[index])
                    .unwrap_or_default();
                Figures {
                    cpu: busy.cpu - before.cpu,
                    anonymous_kb: settled.anonymous_kb,
                    received: busy.received - before.received,
                    foreign: busy.foreign - before.foreign,
                    reconciles: busy.reconciles - before.reconciles,
                }
            });
        Ok(Phase {
            name,
            seconds,
            replicas: replicas.collect(),
        })
    }

    async fn stop(self) -> Result<()> {
        for replica in self.replicas {
            replica.running.stop().await?;
        }
        Ok(())
    }
}

/// The number of ranges with `--shards=auto`.
const RANGES: f64 = 256.0;

const HEAD: [&str; 13] = [
    "objects",
    "server",
    "operator",
    "replicas",
    "phase",
    "seconds",
    "received by each",
    "received by all",
    "memory of each",
    "memory of all",
    "CPU of each",
    "CPU of all",
    "objects of others",
];

/// Returns a row with the largest figure of a replica and the sum of all.
fn row(objects: usize, is_sharding: bool, operator: &str, phase: &Phase) -> String {
    let largest =
        |figure: fn(&Figures) -> f64| phase.replicas.iter().map(figure).fold(0.0, f64::max);
    let all = |figure: fn(&Figures) -> f64| {
        phase
            .replicas
            .iter()
            .map(figure)
            .fold(0.0, |all, own| all + own)
    };
    let received = |figures: &Figures| figures.received as f64;
    let memory = |figures: &Figures| figures.anonymous_kb as f64 * 1024.0;
    let server = if is_sharding { "shards" } else { "all" };
    format!(
        "{objects} | {server} | {operator} | {} | {} | {:.1} | {:.2} MB | {:.2} MB | {:.1} MB | {:.1} MB | {:.2} s | {:.2} s | {}",
        phase.replicas.len(),
        phase.name,
        phase.seconds,
        largest(received) / 1e6,
        all(received) / 1e6,
        largest(memory) / 1e6,
        all(memory) / 1e6,
        largest(|figures| figures.cpu),
        all(|figures| figures.cpu),
        all(|figures| figures.foreign),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_the_largest_figure_and_the_sum() {
        let of = |cpu: f64, received: u64| Figures {
            cpu,
            received,
            anonymous_kb: 1000,
            foreign: 1.0,
            reconciles: 0.0,
        };
        let phase = Phase {
            name: "warm",
            seconds: 2.0,
            replicas: vec![of(1.0, 3_000_000), of(2.0, 1_000_000)],
        };
        assert_eq!(
            row(100, true, "rust", &phase),
            "100 | shards | rust | 2 | warm | 2.0 | 3.00 MB | 4.00 MB | 1.0 MB | 2.0 MB | 2.00 s | 3.00 s | 2"
        );
    }
}
