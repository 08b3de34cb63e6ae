// SPDX-License-Identifier: Apache-2.0

//! Records when the reconciles of annotated objects started.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// The annotation with the time of the last change by the driver, in nanoseconds since 1970.
pub const SENT: &str = "bench.example.com/sent";

/// Pairs of times: of the change and of the reconcile.
#[derive(Debug, Default)]
pub struct Latencies(Mutex<Vec<(String, u128)>>);

impl Latencies {
    /// Records the current time if the annotations contain the time of a change.
    pub fn record(&self, annotations: &BTreeMap<String, String>) {
        if let (Some(sent), Ok(now)) = (
            annotations.get(SENT),
            SystemTime::now().duration_since(UNIX_EPOCH),
        ) {
            self.0.lock().unwrap().push((sent.clone(), now.as_nanos()));
        }
    }

    /// Writes a line for each record to a file.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = String::new();
        for (sent, now) in self.0.lock().unwrap().iter() {
            let _ = writeln!(text, "{sent} {now}");
        }
        std::fs::write(path, text)
    }
}
