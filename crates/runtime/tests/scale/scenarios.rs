//! Scenarios for a fleet.

use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use super::fleet::{Counts, Fleet, Setting};

const OBSERVED: Duration = Duration::from_secs(60);

/// An incident that happens to a fleet once it has converged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Happening {
    /// Nothing except for changes.
    Nothing,
    Crash,
    /// A third of all replicas are killed at the same time.
    ZoneLost,
    /// A Deployment replaces all replicas, a quarter of them at a time.
    RollingUpdate,
    Join,
}

pub(super) struct Outcome {
    pub(super) counts: Counts,
    /// Time until all ranges were being watched again and no work was left.
    pub(super) converged: Duration,
    /// Time covered by `counts`.
    pub(super) observed: Duration,
    /// Number of replicas before it happened.
    pub(super) replicas: usize,
    pub(super) largest_share: u32,
}

/// Runs a scenario on this thread, with a paused clock.
pub(super) fn run<T>(scenario: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    LocalSet::new().block_on(&runtime, scenario)
}

/// Starts replicas, and waits until they have reconciled everything.
pub(super) async fn start(setting: Setting, replicas: usize) -> (Fleet, Outcome) {
    let mut fleet = Fleet::new(setting);
    let started = Instant::now();
    fleet.start_many(replicas).await;
    fleet.converged().await;
    let converged = started.elapsed();
    let outcome = Outcome {
        counts: fleet.take_counts(),
        converged,
        observed: converged,
        replicas,
        largest_share: fleet.largest_share(),
    };
    (fleet, outcome)
}

pub(super) async fn happen(fleet: &mut Fleet, happening: Happening) -> Outcome {
    let replicas = fleet.size();
    drop(fleet.take_counts());
    let started = Instant::now();
    match happening {
        Happening::Nothing => {}
        Happening::Crash => fleet.crash(1),
        Happening::ZoneLost => fleet.crash(replicas / 3),
        Happening::RollingUpdate => replace(fleet, replicas).await,
        Happening::Join => fleet.start(),
    }
    // Other replicas don't notice this before the next round.
    sleep(Duration::from_secs(5)).await;
    fleet.converged().await;
    let converged = started.elapsed();
    if let Some(left) = OBSERVED.checked_sub(converged) {
        sleep(left).await;
    }
    Outcome {
        counts: fleet.take_counts(),
        converged,
        observed: started.elapsed(),
        replicas,
        largest_share: fleet.largest_share(),
    }
}

/// Replaces a quarter of the replicas at a time, starting new ones first.
async fn replace(fleet: &mut Fleet, replicas: usize) {
    let surge = replicas.div_ceil(4);
    let mut left = replicas;
    while left > 0 {
        let batch = surge.min(left);
        fleet.start_many(batch).await;
        // Time until a Pod is considered ready.
        sleep(Duration::from_secs(10)).await;
        fleet.stop(batch).await;
        left -= batch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Setting {
        Setting {
            objects: 2_000,
            ranges: 64,
            workers: 4,
            changes: 40,
            server_shards: true,
            cold: false,
            costs: crate::shards::scale::costs::Costs::MEASURED,
        }
    }

    #[test]
    fn objects_of_a_crashed_replica_wait_for_its_lease() {
        run(async {
            let (mut fleet, _) = start(small(), 4).await;
            let quiet = happen(&mut fleet, Happening::Nothing).await;
            assert!(
                quiet.counts.delay(1.0) < Duration::from_secs(1),
                "{:?}",
                quiet.counts.delay(1.0)
            );
            assert_eq!(quiet.counts.moved_ranges, 0);
            let crash = happen(&mut fleet, Happening::Crash).await;
            let longest = crash.counts.delay(1.0);
            assert!(
                longest > Duration::from_secs(10) && longest < Duration::from_secs(21),
                "{longest:?}"
            );
            assert!((16..=17).contains(&crash.counts.moved_ranges));
        });
    }

    #[test]
    fn rolling_update_delays_no_change_for_five_seconds() {
        run(async {
            let (mut fleet, _) = start(small(), 4).await;
            let update = happen(&mut fleet, Happening::RollingUpdate).await;
            let longest = update.counts.delay(1.0);
            assert!(longest < Duration::from_secs(5), "{longest:?}");
        });
    }

    #[test]
    fn runs_are_equal() {
        let once = || {
            run(async {
                let (mut fleet, _) = start(small(), 3).await;
                let outcome = happen(&mut fleet, Happening::ZoneLost).await;
                (format!("{:?}", outcome.counts), outcome.converged)
            })
        };
        assert_eq!(once(), once());
    }

    #[test]
    fn replicas_that_filter_use_cpu_for_all_changes() {
        let cpu = |server_shards| {
            run(async {
                let setting = Setting {
                    server_shards,
                    ..small()
                };
                let (mut fleet, _) = start(setting, 4).await;
                happen(&mut fleet, Happening::Nothing).await.counts.cpu
            })
        };
        assert!(cpu(false) > cpu(true));
    }
}
