//! Generates the tables for docs/scaling.md in Markdown, printed by `cargo xtask simulate-scale`.

use std::io::Write as _;
use std::time::Duration;

use super::costs::Costs;
use super::fleet::Setting;
use super::scenarios::{Happening, Outcome, happen, run, start};

/// Environment variable for using the sizes in docs/scaling.md and printing the tables.
const FULL: &str = "RBUILDER_SCALE_TABLES";

/// Sizes of the simulated fleets.
#[derive(Clone, Copy)]
struct Size {
    large: Setting,
    replicas: usize,
    /// Number of objects in fleets that are compared with measurements.
    predicted: u32,
    /// Number of objects for determining the load on the API server and the limits.
    objects: u32,
    /// Numbers of replicas of these fleets.
    fleets: &'static [usize],
    workers: &'static [usize],
    /// Changes per second at which the search for a limit gives up.
    most_changes: u32,
}

/// 100 replicas with ten million objects, and 5,000 changes per second.
const FULL_SIZE: Size = Size {
    large: Setting {
        objects: 10_000_000,
        ranges: 1024,
        workers: 4,
        changes: 5_000,
        server_shards: true,
        cold: false,
        costs: Costs::MEASURED,
    },
    replicas: 100,
    predicted: 5_000,
    objects: 200_000,
    fleets: &[1, 3, 10, 30, 100],
    workers: &[4, 16],
    most_changes: 1_000_000,
};

/// Small enough for a test that only checks that the tables are complete.
const SMALL_SIZE: Size = Size {
    large: Setting {
        objects: 2_000,
        ranges: 64,
        changes: 40,
        ..FULL_SIZE.large
    },
    replicas: 6,
    predicted: 500,
    objects: 1_000,
    fleets: &[1, 3],
    workers: &[4],
    most_changes: 60,
};

const MILLION: f64 = 1e6;

fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long => format!("{long:.1} s"),
    }
}

/// Prints each table as soon as it's ready.
struct Tables {
    size: Size,
    is_printed: bool,
    rows: usize,
}

impl Tables {
    fn print(&self, line: &str) {
        if self.is_printed {
            let mut stdout = std::io::stdout();
            writeln!(stdout, "{line}").expect("standard output is open");
        }
    }

    fn row(&mut self, cells: &[String]) {
        self.rows += 1;
        self.print(&format!("| {} |", cells.join(" | ")));
    }

    fn head(&self, title: &str, cells: &[&str]) {
        self.print(&format!("\n### {title}\n\n| {} |", cells.join(" | ")));
        self.print(&format!("|{}", "---|".repeat(cells.len())));
    }

    /// Amount of data received and stored by replicas, for comparison with measurements.
    fn predict(&mut self) {
        self.head(
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
                    objects: self.size.predicted,
                    ranges: 256,
                    changes: 50,
                    server_shards,
                    costs: Costs::TOUCHED,
                    ..self.size.large
                };
                let (share, cpu) = run(async {
                    let (mut fleet, _) = start(setting, replicas).await;
                    let outcome = happen(&mut fleet, Happening::Nothing).await;
                    let of_changes = outcome
                        .counts
                        .cpu
                        .mul_f64(500.0 / outcome.counts.changes() as f64);
                    (outcome.largest_share, of_changes)
                });
                let received = if server_shards { share } else { setting.objects };
                let costs = setting.costs;
                self.row(&[
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

    /// Effects of events on the large fleet.
    async fn happenings(&mut self) {
        let Size { large, replicas, .. } = self.size;
        let title = format!(
            "{} objects, {replicas} replicas, {} changes a second",
            large.objects, large.changes
        );
        self.head(
            &title,
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
        let (mut fleet, started) = start(self.size.large, self.size.replicas).await;
        self.add_happening("all replicas start", &started);
        for (name, happening) in [
            ("nothing", Happening::Nothing),
            ("a replica joins", Happening::Join),
            ("a replica is killed", Happening::Crash),
            (
                "all replicas are replaced, a quarter at a time",
                Happening::RollingUpdate,
            ),
            ("a zone with a third of the replicas is lost", Happening::ZoneLost),
        ] {
            let outcome = happen(&mut fleet, happening).await;
            self.add_happening(name, &outcome);
        }
    }

    fn add_happening(&mut self, name: &str, outcome: &Outcome) {
        let counts = &outcome.counts;
        let cpu = counts.cpu.as_secs_f64() / outcome.observed.as_secs_f64() / outcome.replicas as f64;
        self.row(&[
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

    /// Load of a fleet on the API server.
    fn server_load(&mut self) {
        self.head(
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
        for &replicas in self.size.fleets {
            for server_shards in [true, false] {
                let setting = Setting {
                    objects: self.size.objects,
                    changes: self.size.large.changes / 5,
                    // Four workers of a single replica couldn't keep up if changes required
                    // requests.
                    costs: Costs::TOUCHED,
                    server_shards,
                    ..self.size.large
                };
                let outcome = run(async {
                    let (mut fleet, _) = start(setting, replicas).await;
                    happen(&mut fleet, Happening::Nothing).await
                });
                let counts = &outcome.counts;
                let bytes = counts.events as f64 * setting.costs.event_bytes as f64;
                self.row(&[
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

    /// Maximum number of changes per second for different fleets.
    fn limits(&mut self) {
        self.head(
            "Changes a second until one in a hundred waits for a second",
            &[
                "replicas",
                "workers of each",
                "server with shards",
                "server that sends all",
            ],
        );
        for &workers in self.size.workers {
            for &replicas in self.size.fleets {
                let limit = |server_shards| {
                    let setting = Setting {
                        objects: self.size.objects,
                        workers,
                        server_shards,
                        ..self.size.large
                    };
                    find_limit(setting, replicas, self.size.most_changes).to_string()
                };
                self.row(&[
                    replicas.to_string(),
                    workers.to_string(),
                    limit(true),
                    limit(false),
                ]);
            }
        }
    }
}

fn rate(count: u64, outcome: &Outcome) -> String {
    format!("{:.0}", count as f64 / outcome.observed.as_secs_f64())
}

/// Finds the maximum number of changes per second, in steps of 25%. Gives up at `most`.
fn find_limit(setting: Setting, replicas: usize, most: u32) -> u32 {
    let keeps_up = |changes: u32| {
        run(async {
            // The start isn't measured, so nothing has to change yet. Changes would take most of
            // the time.
            let (mut fleet, _) = start(
                Setting {
                    changes: 0,
                    ..setting
                },
                replicas,
            )
            .await;
            fleet.set_changes(changes);
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(fleet.take_counts());
            tokio::time::sleep(Duration::from_secs(10)).await;
            let counts = fleet.take_counts();
            let done = counts.changes() as f64 >= f64::from(changes) * 10.0 * 0.95;
            done && counts.delay(0.99) < Duration::from_secs(1)
        })
    };
    let mut changes = (25 * replicas * setting.workers) as u32;
    while changes > 1 && !keeps_up(changes) {
        changes -= (changes / 5).max(1);
    }
    while changes < most && keeps_up(changes + changes / 4) {
        changes += changes / 4;
    }
    changes
}

/// With [`FULL`], prints the tables for docs/scaling.md, which takes minutes even when optimized.
#[test]
fn tables_are_complete() {
    let is_full = std::env::var_os(FULL).is_some();
    let mut tables = Tables {
        size: if is_full { FULL_SIZE } else { SMALL_SIZE },
        is_printed: is_full,
        rows: 0,
    };
    tables.predict();
    run(tables.happenings());
    tables.server_load();
    tables.limits();
    let Size { fleets, workers, .. } = tables.size;
    assert_eq!(
        tables.rows,
        6 + 6 + 2 * fleets.len() + workers.len() * fleets.len()
    );
}
