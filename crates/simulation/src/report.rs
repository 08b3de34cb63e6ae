//! The report of a simulation.

use std::fmt;

use crate::coverage::Coverage;
use crate::kept::{Kept, KeptOutcome};
use crate::search::Failure;
use crate::timeline::Event;

/// The number of events at the start and at the end of a timeline that a report shows.
const MOST_EVENTS: usize = 40;

/// What a simulation has found. Formatted as text for a terminal.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The histories in which the operator was wrong, at most one for each oracle.
    pub failures: Vec<Failure>,
    /// Number of histories that were run.
    pub histories: usize,
    /// Number of requests of the first history that were disturbed.
    pub disturbed: usize,
    /// Number of requests that the operator makes in the first history.
    pub requests: usize,
    /// Fields of the declarations that change nothing, as `<object> <JSON pointer>`.
    pub unused_fields: Vec<String>,
    /// Fields that differ between two runs without perturbations, and that are not compared.
    pub masked: Vec<String>,
    /// How many hours of three months were simulated, if the operator makes too many requests meanwhile.
    pub passed_hours: Option<u32>,
    /// What happened in the only history that was run, if it does not fail.
    pub timeline: Vec<Event>,
    pub(crate) coverage: Coverage,
    /// The kept histories that were run first.
    pub(crate) kept: Vec<Kept>,
    /// The file with the kept histories, as notes name it.
    pub(crate) kept_file: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            write!(f, "{failure}\n\n")?;
        }
        if !self.timeline.is_empty() {
            writeln!(f, "The history does not fail:\n")?;
            write_events(f, &self.timeline)?;
            writeln!(f)?;
        }
        write!(
            f,
            "{} histories, {} of {} requests disturbed",
            self.histories, self.disturbed, self.requests
        )?;
        for field in &self.unused_fields {
            write!(f, "\nnote: {field} changes nothing")?;
        }
        for field in &self.masked {
            write!(f, "\nnote: {field} differs from run to run and is not compared")?;
        }
        if let Some(hours) = self.passed_hours {
            write!(
                f,
                "\nnote: only {hours} of 2160 hours were simulated, because the operator makes many requests meanwhile"
            )?;
        }
        for (number, kept) in self.kept.iter().enumerate() {
            let place = format!("{}:{}", self.kept_file, number + 1);
            match kept.outcome {
                KeptOutcome::NotReached => write!(
                    f,
                    "\nnote: {place}: the operator makes no request any more that the history disturbs; remove the line"
                )?,
                KeptOutcome::Fails => write!(f, "\nnote: {place}: the history still fails")?,
                KeptOutcome::Passes | KeptOutcome::NotRun => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.oracle, self.message)?;
        for perturbation in &self.history.perturbations {
            writeln!(f, "  when {perturbation}")?;
        }
        writeln!(f)?;
        write_events(f, &self.events)?;
        write!(
            f,
            "\nTo run it again: RBUILDER_SIMULATION='{}' cargo test",
            self.history
        )
    }
}

/// Writes a timeline, without the middle of a long one.
fn write_events(f: &mut fmt::Formatter<'_>, events: &[Event]) -> fmt::Result {
    let count = events.len();
    for (number, event) in events.iter().enumerate() {
        if count <= 2 * MOST_EVENTS || number < MOST_EVENTS || number >= count - MOST_EVENTS {
            writeln!(f, "{event}")?;
        } else if number == MOST_EVENTS {
            writeln!(f, "            … {} more events …", count - 2 * MOST_EVENTS)?;
        }
    }
    Ok(())
}
