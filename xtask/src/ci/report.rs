//! Keeps track of the times in a run. At the end, it prints which steps and tests were the slowest.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of steps and tests to print.
const SHOWN: usize = 10;

#[derive(Default)]
pub(super) struct Report {
    steps: Mutex<Vec<(String, Duration)>>,
    tests: Mutex<Vec<(String, Duration)>>,
}

impl Report {
    pub(super) fn add_step(&self, name: &str, took: Duration) {
        self.steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((name.to_owned(), took));
    }

    pub(super) fn add_tests(&self, tests: impl IntoIterator<Item = (String, Duration)>) {
        self.tests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(tests);
    }

    pub(super) fn print(&self) {
        for (kind, times) in [("steps", &self.steps), ("tests", &self.tests)] {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner);
            if times.is_empty() {
                continue;
            }
            println!("\nthe slowest {kind}");
            for (name, took) in pick_slowest(&times) {
                println!("{:8.1} s  {name}", took.as_secs_f64());
            }
        }
    }
}

fn pick_slowest(times: &[(String, Duration)]) -> Vec<&(String, Duration)> {
    let mut times: Vec<_> = times.iter().collect();
    times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    times.truncate(SHOWN);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_ten_slowest_in_order() {
        let times: Vec<_> = (0..12)
            .map(|index| (format!("test {index}"), Duration::from_secs(index)))
            .collect();
        let slowest = pick_slowest(&times);
        assert_eq!(slowest.len(), SHOWN);
        assert_eq!(slowest[0].0, "test 11");
        assert_eq!(slowest[9].0, "test 2");
    }
}
