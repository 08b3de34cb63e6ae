//! Prints search progress to stderr.
//!
//! Bypasses `eprintln!`, whose output is captured by the test harness.

use std::io::Write;
use std::time::Duration;

use crate::coverage::Coverage;
use crate::settings::Budget;

const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` disables output.
    name: Option<String>,
    next: Duration,
}

impl Progress {
    pub(crate) fn new(name: Option<String>) -> Self {
        Self { name, next: INTERVAL }
    }

    pub(crate) fn update(&mut self, budget: &Budget, histories: usize, coverage: &Coverage) {
        if self.name.is_some() && budget.elapsed() >= self.next {
            self.next = budget.elapsed() + INTERVAL;
            self.print(budget, histories, coverage);
        }
    }

    pub(crate) fn print(&self, budget: &Budget, histories: usize, coverage: &Coverage) {
        if let Some(name) = &self.name {
            let line = render(name, histories, coverage.writes(), budget.elapsed());
            print(&line);
        }
    }
}

pub(crate) fn print(text: &str) {
    // A closed stderr must not fail the test.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn render(name: &str, histories: usize, (writes, covered): (usize, usize), elapsed: Duration) -> String {
    let speed = histories as f64 / elapsed.as_secs_f64().max(0.001);
    format!(
        "simulation {name}: {histories} histories, {covered} of {writes} writes covered, {speed:.0} histories a second\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_contain_histories_writes_and_speed() {
        assert_eq!(
            render("tests-a.b", 900, (12, 10), Duration::from_secs(3)),
            "simulation tests-a.b: 900 histories, 10 of 12 writes covered, 300 histories a second\n"
        );
    }
}
