//! Metrics of the process (`process_*`, as in other Prometheus clients) and of the tokio runtime
//! (`tokio_*`).
//!
//! Process metrics are read from `/proc`, so they only exist on Linux.

use std::fs;

use super::registry::Registry;
use super::{Counter, Gauge};
use crate::server::operator_runtime;

/// Unit of CPU and start times in `/proc`, independent of the kernel's tick rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Registers metrics that are updated before each scrape.
pub(super) fn register_process_metrics(registry: &Registry) {
    register_proc(registry);
    register_tokio(registry);
}

fn register_proc(registry: &Registry) {
    if Reading::take().is_none() {
        return;
    }
    let gauge = |name, help| registry.own::<Gauge, 0>(name, help, [], &[]).with([]);
    let cpu = registry.own::<Counter, 0>(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        [],
        &[],
    );
    let cpu = cpu.with([]);
    let resident = gauge("process_resident_memory_bytes", "Resident memory size in bytes.");
    let virtual_memory = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.");
    let start_time = gauge(
        "process_start_time_seconds",
        "Start time of the process in seconds since the Unix epoch.",
    );
    let threads = gauge("process_threads", "Number of OS threads in the process.");
    let open_files = gauge("process_open_fds", "Number of open file descriptors.");
    let max_files = gauge("process_max_fds", "Maximum number of open file descriptors.");
    registry.before_scrape(move || {
        let Some(reading) = Reading::take() else { return };
        cpu.set(reading.cpu_seconds);
        for (gauge, value) in [
            (&resident, reading.resident_bytes),
            (&virtual_memory, reading.virtual_bytes),
            (&start_time, reading.start_time),
            (&threads, reading.threads),
            (&open_files, reading.open_files),
            (&max_files, reading.max_files),
        ] {
            gauge.set(value);
        }
    });
}

fn register_tokio(registry: &Registry) {
    let gauge = |name, help| registry.own::<Gauge, 0>(name, help, [], &[]).with([]);
    let workers = gauge("tokio_workers", "Number of worker threads of the Tokio runtime.");
    let tasks = gauge(
        "tokio_alive_tasks",
        "Number of tasks in the Tokio runtime that have not finished.",
    );
    let queue = gauge(
        "tokio_global_queue_depth",
        "Number of tasks in the global queue of the Tokio runtime.",
    );
    registry.before_scrape(move || {
        // E.g. a call of `Metrics::text` outside of a runtime.
        let Some(runtime) = operator_runtime() else {
            return;
        };
        let runtime = runtime.metrics();
        workers.set(runtime.num_workers() as f64);
        tasks.set(runtime.num_alive_tasks() as f64);
        queue.set(runtime.global_queue_depth() as f64);
    });
}

#[derive(Debug, PartialEq)]
struct Reading {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    start_time: f64,
    threads: f64,
    open_files: f64,
    max_files: f64,
}

impl Reading {
    /// Returns `None` if a value isn't available, e.g. on macOS.
    fn take() -> Option<Self> {
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
        let text = |path| fs::read_to_string(path).ok();
        Self::parse(
            &text("/proc/self/stat")?,
            &text("/proc/self/status")?,
            &text("/proc/self/limits")?,
            &text("/proc/stat")?,
            // Don't count the directory itself, which was open while reading it.
            open_files.saturating_sub(1) as f64,
        )
    }

    fn parse(stat: &str, status: &str, limits: &str, system: &str, open_files: f64) -> Option<Self> {
        // The second field is the program's name in parentheses, which may itself contain spaces
        // and parentheses.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
        // proc_pid_stat(5) numbers the fields, and `fields` starts with the third.
        let ticks = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let boot = line_value(system, "btime ")?.parse::<f64>().ok()?;
        let kib = |name| {
            Some(
                line_value(status, name)?
                    .split_whitespace()
                    .next()?
                    .parse::<f64>()
                    .ok()?
                    * 1024.0,
            )
        };
        let max_files = match line_value(limits, "Max open files")?.split_whitespace().next()? {
            "unlimited" => f64::INFINITY,
            number => number.parse().ok()?,
        };
        Some(Self {
            cpu_seconds: (ticks(14)? + ticks(15)?) / TICKS_PER_SECOND,
            resident_bytes: kib("VmRSS:")?,
            virtual_bytes: kib("VmSize:")?,
            start_time: boot + ticks(22)? / TICKS_PER_SECOND,
            threads: ticks(20)?,
            open_files,
            max_files,
        })
    }
}

fn line_value<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(start))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let stat = "41 (a) (b c) S 1 41 41 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 7 0 12345 9 9 9";
        let status = "Name:\ta\nVmSize:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t7\n";
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 unlimited            files\n";
        let expected = Reading {
            cpu_seconds: 3.0,
            resident_bytes: 1048576.0,
            virtual_bytes: 2097152.0,
            start_time: 1123.45,
            threads: 7.0,
            open_files: 5.0,
            max_files: 1024.0,
        };
        assert_eq!(
            Reading::parse(stat, status, limits, "cpu 1 2\nbtime 1000\n", 5.0),
            Some(expected)
        );
        assert_eq!(
            Reading::parse("41 (a) S", status, limits, "btime 1000\n", 5.0),
            None
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn values_of_this_process_are_plausible() {
        let reading = Reading::take().expect("Linux has /proc");
        assert!(
            reading.resident_bytes > 1e5 && reading.virtual_bytes >= reading.resident_bytes,
            "{reading:?}"
        );
        assert!(
            reading.open_files >= 3.0 && reading.max_files > reading.open_files,
            "{reading:?}"
        );
        assert!(
            reading.start_time > 1.5e9 && reading.threads >= 1.0,
            "{reading:?}"
        );
    }
}
