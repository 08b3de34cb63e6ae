//! Shows the progress of a migration.

use std::time::{Duration, Instant};

use super::rewrite::Tally;
use crate::count::counted;
use crate::shell::Shell;

const INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    name: String,
    printed: Instant,
}

impl Progress {
    pub(super) fn new(name: &str) -> Progress {
        Progress {
            name: name.to_owned(),
            printed: Instant::now(),
        }
    }

    /// Shows the number of processed objects out of `objects`, and the rate per second.
    pub(super) fn show_count(&mut self, tally: &Tally, objects: usize, rate: f64, shell: &mut Shell) {
        self.show_message(&describe(tally, objects, rate), shell);
    }

    pub(super) fn show_message(&mut self, message: &str, shell: &mut Shell) {
        let text = format!("{}: {message}", self.name);
        if !shell.show_progress(&text) && self.printed.elapsed() >= INTERVAL {
            self.printed = Instant::now();
            shell.note(&format!("{text}\n"));
        }
    }
}

fn describe(tally: &Tally, objects: usize, rate: f64) -> String {
    let tried = tally.tried();
    let mut text = format!("{tried} of {}", counted(objects, "object"));
    if !tally.failures.is_empty() {
        text.push_str(&format!(", {} could not be written", tally.failures.len()));
    }
    text.push_str(&format!(", {rate:.0} per second"));
    let left = u32::try_from(objects - tried).unwrap_or(u32::MAX);
    if rate >= 1.0 && left > 0 {
        text.push_str(&format!(", {} left", describe_time(f64::from(left) / rate)));
    }
    text
}

fn describe_time(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_the_time_that_is_left() {
        let tally = |rewritten| Tally {
            rewritten,
            ..Tally::default()
        };
        for (done, rate, expected) in [
            (0, 0.2, "0 of 50000 objects, 0 per second"),
            (10_000, 99.6, "10000 of 50000 objects, 100 per second, 7 min left"),
            (49_000, 100.0, "49000 of 50000 objects, 100 per second, 10 s left"),
            (10, 1.0, "10 of 50000 objects, 1 per second, 14 h left"),
            (50_000, 100.0, "50000 of 50000 objects, 100 per second"),
        ] {
            assert_eq!(describe(&tally(done), 50_000, rate), expected);
        }
    }
}
