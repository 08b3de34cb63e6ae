// SPDX-License-Identifier: Apache-2.0

//! Runs an operator and measures it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};

use crate::cluster::{Cluster, Snapshots};
use crate::process::{Operator, Running, Usage};
use crate::steady::Observer;
use crate::{Args, Sample, metrics};

/// Number of objects that are changed, one after the other.
const TOUCHED: usize = 1000;

/// Measures a start on a cluster where nothing is reconciled.
pub async fn cold(cluster: &Cluster, operator: &Operator, args: &Args) -> Result<Sample> {
    let observer = Observer::new(cluster);
    let before = metrics::requests(&cluster.metrics().await?);
    let running = operator.start(cluster.environment.kubeconfig_path(), &latencies_path())?;
    let steady = observer.steady().await?.duration_since(running.started);
    running.idle().await?;
    let busy = running.usage()?;
    let mut sample = sample(
        "cold",
        cluster,
        operator,
        steady,
        busy,
        settled(&running, args).await?,
    );
    sample.requests = metrics::since(&before, metrics::requests(&cluster.metrics().await?));
    sample.own_requests = metrics::own_requests(&metrics::scrape(&running.metrics).await?);
    running.stop().await?;
    Ok(sample)
}

/// Measures a start on a cluster where everything is reconciled, and then changes at fixed rates.
/// Adds to `samples` immediately, so that they are kept if a later measurement fails.
pub async fn warm(
    cluster: &Cluster,
    operator: &Operator,
    args: &Args,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let latencies = latencies_path();
    let running = operator.start(cluster.environment.kubeconfig_path(), &latencies)?;
    let steady = all_reconciled(cluster, &running).await?;
    running.idle().await?;
    let busy = running.usage()?;
    let mut started = sample(
        "warm",
        cluster,
        operator,
        steady,
        busy,
        settled(&running, args).await?,
    );
    started.own_requests = metrics::own_requests(&metrics::scrape(&running.metrics).await?);
    samples.push(started);
    let mut spans = Vec::new();
    for &rate in &args.rates {
        let before = running.usage()?;
        let from = nanoseconds();
        touch(cluster, rate, args.seconds).await?;
        running.idle().await?;
        let mut after = running.usage()?;
        after.cpu -= before.cpu;
        spans.push((rate, from, nanoseconds(), after));
    }
    running.stop().await?;
    let reconciled = read_latencies(&latencies)?;
    for (rate, from, to, usage) in spans {
        let mut touched = sample(
            &format!("{rate}/s"),
            cluster,
            operator,
            Duration::ZERO,
            usage,
            usage,
        );
        touched.latencies_ms = reconciled
            .iter()
            .filter(|(sent, _)| (from..to).contains(sent))
            .map(|(sent, now)| (now - sent) as f64 / 1e6)
            .collect();
        touched.latencies_ms.sort_by(f64::total_cmp);
        let expected = (rate * args.seconds) as usize;
        if touched.latencies_ms.len() < expected * 9 / 10 {
            bail!(
                "{} of {expected} changes were reconciled",
                touched.latencies_ms.len()
            );
        }
        samples.push(touched);
    }
    Ok(())
}

/// Returns a cluster in which the first operator has reconciled everything.
pub async fn reconciled(args: &Args, snapshots: &Snapshots) -> Result<Cluster> {
    let cluster = snapshots.created(None).await?;
    let observer = Observer::new(&cluster);
    let Some(operator) = args.operators.first() else {
        bail!("no operator was named");
    };
    let running = operator.start(cluster.environment.kubeconfig_path(), &latencies_path())?;
    observer.steady().await?;
    running.idle().await?;
    running.stop().await?;
    Ok(cluster)
}

fn sample(
    phase: &str,
    cluster: &Cluster,
    operator: &Operator,
    time: Duration,
    busy: Usage,
    settled: Usage,
) -> Sample {
    Sample {
        operator: operator.name.clone(),
        objects: cluster.objects,
        phase: phase.to_owned(),
        seconds: time.as_secs_f64(),
        cpu: busy.cpu,
        idle_cpu: settled.cpu - busy.cpu,
        rss_kb: settled.rss_kb,
        anonymous_kb: settled.anonymous_kb,
        peak_kb: settled.peak_kb,
        threads: settled.threads,
        ..Sample::default()
    }
}

async fn settled(running: &Running, args: &Args) -> Result<Usage> {
    tokio::time::sleep(Duration::from_secs(args.settle)).await;
    running.usage()
}

/// Waits until the number of reconciles reaches the number of objects, and returns the time since
/// the start.
async fn all_reconciled(cluster: &Cluster, running: &Running) -> Result<Duration> {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        running.usage()?;
        // Ignore errors, because metrics are not served immediately.
        let reconciles = metrics::scrape(&running.metrics)
            .await
            .map(|text| metrics::reconciles(&text));
        if reconciles.is_ok_and(|count| count >= cluster.objects as f64) {
            return Ok(running.started.elapsed());
        }
        if Instant::now() > deadline {
            bail!("not every object was reconciled within five minutes of a warm start");
        }
    }
}

/// Changes objects at a fixed rate, without waiting for earlier requests.
pub async fn touch(cluster: &Cluster, rate: u32, seconds: u32) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let ticks = Arc::new(tokio::sync::Mutex::new(ticks));
    let touched = TOUCHED.min(cluster.objects);
    let sent = stream::iter(0..(rate * seconds) as usize).then(|number| {
        let ticks = Arc::clone(&ticks);
        async move {
            ticks.lock().await.tick().await;
            number % touched
        }
    });
    let sent = sent.map(|number| cluster.touch(number));
    sent.buffer_unordered(256).try_collect().await
}

fn latencies_path() -> PathBuf {
    std::env::temp_dir().join(format!("bench-latencies-{}", std::process::id()))
}

/// Returns the times of each change and of its first reconcile, in nanoseconds since 1970.
fn read_latencies(path: &std::path::Path) -> Result<Vec<(u128, u128)>> {
    let text = std::fs::read_to_string(path)?;
    let mut pairs = Vec::new();
    for line in text.lines() {
        let mut numbers = line.split(' ').map(str::parse::<u128>);
        if let (Some(sent), Some(now)) = (numbers.next(), numbers.next()) {
            pairs.push((sent?, now?));
        }
    }
    pairs.sort_unstable();
    pairs.dedup_by_key(|(sent, _)| *sent);
    Ok(pairs)
}

fn nanoseconds() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos())
}
