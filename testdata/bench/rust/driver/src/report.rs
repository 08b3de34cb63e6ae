// SPDX-License-Identifier: Apache-2.0

//! Prints the measurements as rows, as a table with the best figures of each operator, and as lines
//! of JSON.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::json;

/// The figures of one run.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub operator: String,
    pub objects: usize,
    /// `cold`, `warm`, or a rate of changes such as `50/s`.
    pub phase: String,
    /// Seconds until everything was reconciled.
    pub seconds: f64,
    /// CPU time in seconds until the operator was idle.
    pub cpu: f64,
    /// CPU time in seconds while memory settled.
    pub idle_cpu: f64,
    pub rss_kb: u64,
    pub anonymous_kb: u64,
    pub peak_kb: u64,
    pub threads: u64,
    /// Requests counted by the API server, including those of other clients.
    pub requests: BTreeMap<String, f64>,
    /// Requests counted by the operator.
    pub own_requests: BTreeMap<String, f64>,
    /// Times from a change to its reconcile, in ascending order.
    pub latencies_ms: Vec<f64>,
}

/// All samples so far.
pub struct Report {
    samples: Vec<Sample>,
    json: Option<PathBuf>,
    failures: Vec<String>,
}

impl Report {
    pub fn new(json: Option<PathBuf>) -> Self {
        Self {
            samples: Vec::new(),
            json,
            failures: Vec::new(),
        }
    }

    /// Adds a run and prints its row immediately, because the next run may take minutes.
    pub fn add(&mut self, sample: Sample) -> Result<()> {
        if self.samples.is_empty() {
            print_head();
        }
        print_row(sample.objects, &sample.phase, &sample.operator, &[&sample]);
        if let Some(path) = &self.json {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            writeln!(file, "{}", sample.to_json())?;
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Records and prints a failed run.
    pub fn add_failure(&mut self, run: &str, error: &anyhow::Error) {
        eprintln!("{run} failed: {error:#}");
        self.failures.push(format!("{run}: {error:#}"));
    }

    /// Ends the report.
    ///
    /// # Errors
    ///
    /// Returns an error if a run failed.
    pub fn finish(self) -> Result<()> {
        match self.failures.len() {
            0 => Ok(()),
            count => bail!("{count} runs failed:\n{}", self.failures.join("\n")),
        }
    }

    /// Prints the lowest value of each figure by phase and operator, in the order of the first
    /// runs.
    pub fn print_best(&self, objects: usize) {
        println!("the least of each figure:");
        print_head();
        let mut phases: Vec<(&str, &str)> = Vec::new();
        let of_size = || {
            self.samples
                .iter()
                .filter(|sample| sample.objects == objects)
        };
        for sample in of_size() {
            let row = (sample.phase.as_str(), sample.operator.as_str());
            if !phases.contains(&row) {
                phases.push(row);
            }
        }
        phases.sort_by_key(|(phase, _)| match *phase {
            "cold" => 0,
            "warm" => 1,
            rate => rate.trim_end_matches("/s").parse().unwrap_or(u32::MAX),
        });
        for (phase, operator) in phases {
            let runs: Vec<&Sample> = of_size()
                .filter(|sample| {
                    (sample.phase.as_str(), sample.operator.as_str()) == (phase, operator)
                })
                .collect();
            print_row(objects, phase, operator, &runs);
        }
    }
}

fn print_head() {
    println!(
        "{:>7} {:>7} {:<12} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7} {:>9} {:>9} {:>8}",
        "objects",
        "phase",
        "operator",
        "time",
        "CPU",
        "idle CPU",
        "RSS",
        "peak",
        "threads",
        "p50",
        "p99",
        "calls"
    );
}

fn print_row(objects: usize, phase: &str, operator: &str, runs: &[&Sample]) {
    let least = |figure: &dyn Fn(&Sample) -> f64| {
        runs.iter().map(|run| figure(run)).fold(f64::MAX, f64::min)
    };
    let megabytes = |kb: f64| format!("{:.1} MB", kb * 1024.0 / 1e6);
    let milliseconds = |share: f64| match least(&|run| run.percentile(share)) {
        none if none <= 0.0 => "-".to_owned(),
        figure => format!("{figure:.2} ms"),
    };
    println!(
        "{objects:>7} {phase:>7} {operator:<12} {:>6.2} s {:>6.2} s {:>6.2} s {:>9} {:>9} {:>7} {:>9} {:>9} {:>8.0}",
        least(&|run| run.seconds),
        least(&|run| run.cpu),
        least(&|run| run.idle_cpu),
        megabytes(least(&|run| run.rss_kb as f64)),
        megabytes(least(&|run| run.peak_kb as f64)),
        least(&|run| run.threads as f64),
        milliseconds(0.5),
        milliseconds(0.99),
        least(&|run| run.own_requests.values().sum()),
    );
}

impl Sample {
    fn percentile(&self, share: f64) -> f64 {
        let index = (self.latencies_ms.len() as f64 * share) as usize;
        self.latencies_ms.get(index).copied().unwrap_or_default()
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "operator": self.operator,
            "objects": self.objects,
            "phase": self.phase,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "idle_cpu": self.idle_cpu,
            "rss_kb": self.rss_kb,
            "anonymous_kb": self.anonymous_kb,
            "peak_kb": self.peak_kb,
            "threads": self.threads,
            "requests": self.requests,
            "own_requests": self.own_requests,
            "p50_ms": self.percentile(0.5),
            "p99_ms": self.percentile(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_is_reported_at_the_end() {
        let mut report = Report::new(None);
        report.add_failure("go, cold run 1", &anyhow::anyhow!("it ended"));
        report.add(Sample::default()).unwrap();
        let error = report.finish().unwrap_err().to_string();
        assert_eq!(error, "1 runs failed:\ngo, cold run 1: it ended");
        assert!(Report::new(None).finish().is_ok());
    }

    #[test]
    fn percentiles_are_of_sorted_figures() {
        let sample = Sample {
            latencies_ms: (1..=100).map(f64::from).collect(),
            ..Sample::default()
        };
        assert_eq!(sample.percentile(0.5), 51.0);
        assert_eq!(sample.percentile(0.99), 100.0);
        assert_eq!(Sample::default().percentile(0.5), 0.0);
    }
}
