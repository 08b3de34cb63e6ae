//! Shows the state of the tokio runtime, and the process's memory.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::server::operator_runtime;

/// Reports metrics of the runtime that runs the reconciles.
///
/// Useful for finding code that doesn't yield: a blocked worker's busy time grows by one second per
/// second while its park count stays flat. Memory is only reported on Linux.
pub(super) fn report() -> Value {
    let Some(runtime) = operator_runtime() else {
        return Value::Null;
    };
    let runtime = runtime.metrics();
    let workers = (0..runtime.num_workers()).map(|worker| worker_to_json(&runtime, worker));
    json!({
        "aliveTasks": runtime.num_alive_tasks(),
        "globalQueueDepth": runtime.global_queue_depth(),
        "workers": workers.collect::<Vec<_>>(),
        "memory": memory(),
    })
}

#[cfg(target_has_atomic = "64")]
fn worker_to_json(runtime: &tokio::runtime::RuntimeMetrics, worker: usize) -> Value {
    json!({
        "busySeconds": runtime.worker_total_busy_duration(worker).as_secs_f64(),
        "parks": runtime.worker_park_count(worker),
    })
}

#[cfg(not(target_has_atomic = "64"))]
fn worker_to_json(_: &tokio::runtime::RuntimeMetrics, _: usize) -> Value {
    json!({})
}

/// Memory usage in bytes, as reported by the kernel. Null except on Linux.
fn memory() -> Value {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return Value::Null;
    };
    json!({
        "residentBytes": bytes_of(&status, "VmRSS:"),
        "peakResidentBytes": bytes_of(&status, "VmHWM:"),
        "anonymousBytes": bytes_of(&status, "RssAnon:"),
    })
}

/// `None` except on Linux.
#[cfg(feature = "profiling")]
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    bytes_of(&status, "VmRSS:")
}

/// Converts from the KiB of `/proc/self/status`.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

pub(super) fn to_text(report: &Value) -> String {
    let mut text = String::new();
    // Writing to a `String` can't fail.
    for name in ["aliveTasks", "globalQueueDepth"] {
        let _ = writeln!(text, "{name} {}", report[name]);
    }
    for (worker, state) in report["workers"].as_array().into_iter().flatten().enumerate() {
        let busy = state["busySeconds"].as_f64().unwrap_or_default();
        let _ = writeln!(
            text,
            "worker {worker} busySeconds {busy:.3} parks {}",
            state["parks"]
        );
    }
    for (name, bytes) in report["memory"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "{name} {bytes}");
    }
    text
}
