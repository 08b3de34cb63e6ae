// SPDX-License-Identifier: Apache-2.0

//! Measures several replicas of one operator that share its objects.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cluster::{Cluster, SERVER_SHARDS};
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
pub async fn measure(args: &Args) -> Result<()> {
    println!("{}", HEAD.join(" | "));
    for &objects in &args.objects {
        for is_sharding in [false, true] {
            for operator in &args.operators {
                for &replicas in &args.replicas {
                    // Without shards, further replicas wait for the leader to fail.
                    if replicas > 1 && !operator.is_sharded()
                        || is_sharding && !operator.is_sharded()
                    {
                        continue;
                    }
                    let gate = is_sharding.then_some(SERVER_SHARDS);
                    let cluster = Cluster::populated(objects, gate).await?;
                    for phase in measure_replicas(&cluster, args, operator, replicas).await? {
                        println!("{}", row(objects, is_sharding, &operator.name, &phase));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Starts replicas on a cluster where nothing is reconciled and once more where everything is, changes
/// objects, and kills a replica.
async fn measure_replicas(
    cluster: &Cluster,
    args: &Args,
    operator: &Operator,
    replicas: usize,
) -> Result<Vec<Phase>> {
    let mut phases = Vec::new();
    let observer = Observer::new(cluster);
    let (fleet, started) = Fleet::start(cluster, args, operator, replicas).await?;
    let seconds = observer
        .steady()
        .await?
        .duration_since(started)
        .as_secs_f64();
    phases.push(fleet.phase("cold", seconds, None).await?);
    fleet.stop().await?;

    let (mut fleet, started) = Fleet::start(cluster, args, operator, replicas).await?;
    fleet.reconciled().await?;
    let seconds = started.elapsed().as_secs_f64();
    phases.push(fleet.phase("warm", seconds, None).await?);
    for &rate in &args.rates {
        let before = fleet.figures().await?;
        run::touch(cluster, rate, args.seconds).await?;
        let seconds = f64::from(args.seconds);
        phases.push(fleet.phase("changes", seconds, Some(before)).await?);
    }
    if replicas > 1 {
        let before = fleet.figures().await?.split_off(1);
        let killed = Instant::now();
        drop(fleet.replicas.remove(0));
        fleet.has_all_ranges().await?;
        let seconds = killed.elapsed().as_secs_f64();
        phases.push(fleet.phase("crash", seconds, Some(before)).await?);
    }
    fleet.stop().await?;
    Ok(phases)
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

const HEAD: [&str; 11] = [
    "objects",
    "server",
    "operator",
    "replicas",
    "phase",
    "seconds",
    "received by each",
    "memory of each",
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
    let server = if is_sharding { "shards" } else { "all" };
    format!(
        "{objects} | {server} | {operator} | {} | {} | {:.1} | {:.2} MB | {:.1} MB | {:.2} s | {:.2} s | {}",
        phase.replicas.len(),
        phase.name,
        phase.seconds,
        largest(|figures| figures.received as f64) / 1e6,
        largest(|figures| figures.anonymous_kb as f64 * 1024.0) / 1e6,
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
            "100 | shards | rust | 2 | warm | 2.0 | 3.00 MB | 1.0 MB | 2.00 s | 3.00 s | 2"
        );
    }
}
