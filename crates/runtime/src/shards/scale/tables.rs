//! The tables of docs/scaling.md, as Markdown. `cargo xtask simulate-scale` prints them.

use std::io::Write as _;
use std::time::Duration;

use super::costs::Costs;
use super::fleet::{Fleet, Setting};
use super::scenarios::{Happening, Outcome, happen, run, start};

/// Ten million objects that change 5,000 times a second.
const LARGE: Setting = Setting {
    objects: 10_000_000,
    ranges: 1024,
    workers: 4,
    changes: 5_000,
    server_shards: true,
    cold: false,
    costs: Costs::MEASURED,
};
const REPLICAS: usize = 100;

const MILLION: f64 = 1e6;

fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long => format!("{long:.1} s"),
    }
}

fn print(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").expect("standard output is open");
}

fn row(cells: &[String]) {
    print(&format!("| {} |", cells.join(" | ")));
}

fn head(title: &str, cells: &[&str]) {
    print(&format!("\n### {title}\n\n| {} |", cells.join(" | ")));
    print(&format!("|{}", "---|".repeat(cells.len())));
}

/// Returns a count per second of an outcome.
fn rate(count: u64, outcome: &Outcome) -> String {
    format!("{:.0}", count as f64 / outcome.observed.as_secs_f64())
}

/// What replicas receive and hold, to compare with measurements.
fn predict() {
    head(
        "Predicted for the measured operator",
        &[
            "server",
            "replicas",
            "received by each at a start",
            "memory of each",
            "CPU of all for 500 changes",
        ],
    );
    for server_shards in [false, true] {
        for replicas in [1, 2, 4] {
            let setting = Setting {
                objects: 10_000,
                ranges: 256,
                changes: 50,
                server_shards,
                costs: Costs::TOUCHED,
                ..LARGE
            };
            let (share, cpu) = run(async {
                let (mut fleet, _) = start(setting, replicas).await;
                let outcome = happen(&mut fleet, replicas, Happening::Nothing).await;
                let of_changes = outcome
                    .counts
                    .cpu
                    .mul_f64(500.0 / outcome.counts.changes() as f64);
                (outcome.largest_share, of_changes)
            });
            let received = if server_shards { share } else { setting.objects };
            let costs = setting.costs;
            row(&[
                if server_shards { "shards" } else { "all" }.to_owned(),
                replicas.to_string(),
                format!(
                    "{:.1} MB",
                    f64::from(received) * costs.listed_bytes as f64 / MILLION
                ),
                format!(
                    "{:.1} MB",
                    (f64::from(share) * costs.object_memory as f64 + costs.base_memory as f64) / MILLION
                ),
                format!("{:.2} s", cpu.as_secs_f64()),
            ]);
        }
    }
}

/// What happens to the large fleet.
async fn happenings() {
    head(
        "10 million objects, 100 replicas, 5,000 changes a second",
        &[
            "what happens",
            "everything reconciled after",
            "delay, p50",
            "p99",
            "longest",
            "ranges moved",
            "objects listed",
            "CPU of a replica",
        ],
    );
    let (mut fleet, started) = start(LARGE, REPLICAS).await;
    print_happening("all replicas start", &started, REPLICAS);
    for (name, happening, replicas) in [
        ("nothing", Happening::Nothing, 100),
        ("a replica joins", Happening::Join, 100),
        ("a replica is killed", Happening::Crash, 101),
        (
            "all replicas are replaced, 25 at a time",
            Happening::RollingUpdate,
            100,
        ),
        ("a zone with 33 of 100 replicas is lost", Happening::ZoneLost, 100),
    ] {
        let outcome = happen(&mut fleet, replicas, happening).await;
        print_happening(name, &outcome, replicas);
    }
}

fn print_happening(name: &str, outcome: &Outcome, replicas: usize) {
    let counts = &outcome.counts;
    let cpu = counts.cpu.as_secs_f64() / outcome.observed.as_secs_f64() / replicas as f64;
    row(&[
        name.to_owned(),
        seconds(outcome.converged),
        seconds(counts.delay(0.5)),
        seconds(counts.delay(0.99)),
        seconds(counts.delay(1.0)),
        counts.moved_ranges.to_string(),
        counts.listed_objects.to_string(),
        format!("{:.0} %", cpu * 100.0),
    ]);
}

/// What the fleet costs at the API server.
fn server_load() {
    head(
        "At the API server, while nothing happens but changes",
        &[
            "replicas",
            "server",
            "Lease writes a second",
            "Leases listed a second",
            "events sent a second",
            "sent a second",
        ],
    );
    for replicas in [1, 3, 10, 30, 100] {
        for server_shards in [true, false] {
            let setting = Setting {
                objects: 100_000,
                changes: 1_000,
                server_shards,
                ..LARGE
            };
            let outcome = run(async {
                let (mut fleet, _) = start(setting, replicas).await;
                happen(&mut fleet, replicas, Happening::Nothing).await
            });
            let counts = &outcome.counts;
            let bytes = counts.events as f64 * setting.costs.event_bytes as f64;
            row(&[
                replicas.to_string(),
                if server_shards { "shards" } else { "all" }.to_owned(),
                rate(counts.lease_writes, &outcome),
                rate(counts.listed_leases, &outcome),
                rate(counts.events, &outcome),
                format!("{:.0} MB", bytes / outcome.observed.as_secs_f64() / MILLION),
            ]);
        }
    }
}

/// Up to how many changes a second a fleet keeps up.
fn limits() {
    head(
        "Changes a second until one in a hundred waits for a second",
        &[
            "replicas",
            "workers of each",
            "server with shards",
            "server that sends all",
        ],
    );
    for workers in [4, 16] {
        for replicas in [1, 10, 100] {
            let limit = |server_shards| {
                let setting = Setting {
                    objects: 200_000,
                    workers,
                    server_shards,
                    ..LARGE
                };
                find_limit(setting, replicas).to_string()
            };
            row(&[
                replicas.to_string(),
                workers.to_string(),
                limit(true),
                limit(false),
            ]);
        }
    }
}

/// Returns the largest tested number of changes a second with which the fleet keeps up, in steps of
/// a quarter.
fn find_limit(setting: Setting, replicas: usize) -> u32 {
    let keeps_up = |changes: u32| {
        run(async {
            let setting = Setting { changes, ..setting };
            let mut fleet = Fleet::new(setting);
            fleet.start_many(replicas).await;
            // Long enough for the Leases and the first lists.
            tokio::time::sleep(Duration::from_secs(40)).await;
            drop(fleet.take_counts());
            tokio::time::sleep(Duration::from_secs(10)).await;
            let counts = fleet.take_counts();
            let done = counts.changes() as f64 >= f64::from(changes) * 10.0 * 0.95;
            done && counts.delay(0.99) < Duration::from_secs(1)
        })
    };
    let mut changes = 50;
    while keeps_up(changes + changes / 4) && changes < 1_000_000 {
        changes += changes / 4;
    }
    changes
}

#[test]
#[ignore = "takes minutes even when optimized, and prints tables: `cargo xtask simulate-scale` runs it"]
fn print_tables() {
    predict();
    run(happenings());
    server_load();
    limits();
}
