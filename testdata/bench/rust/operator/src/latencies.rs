// SPDX-License-Identifier: Apache-2.0

//! When reconciles began for objects that say when they were touched.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Holds when an object was last touched, in nanoseconds since 1970.
pub const SENT: &str = "bench.example.com/sent";

/// Pairs of moments: of sending and of reconciling.
#[derive(Debug, Default)]
pub struct Latencies(Mutex<Vec<(String, u128)>>);

impl Latencies {
    /// Notes the moment, if the annotations say when the object was touched.
    pub fn record(&self, annotations: &BTreeMap<String, String>) {
        if let (Some(sent), Ok(now)) = (
            annotations.get(SENT),
            SystemTime::now().duration_since(UNIX_EPOCH),
        ) {
            self.0.lock().unwrap().push((sent.clone(), now.as_nanos()));
        }
    }

    /// Puts a line per record into a file.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = String::new();
        for (sent, now) in self.0.lock().unwrap().iter() {
            let _ = writeln!(text, "{sent} {now}");
        }
        std::fs::write(path, text)
    }
}
