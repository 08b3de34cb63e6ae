//! The report of a simulation.

use std::fmt;

use crate::coverage::Coverage;
use crate::history::History;
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
    /// What a real API server has shown, if the histories were replayed on one.
    pub on_server: Option<OnServer>,
    pub(crate) coverage: Coverage,
    /// The kept histories that were run first.
    pub(crate) kept: Vec<Kept>,
    /// The file with the kept histories, as notes name it.
    pub(crate) kept_file: String,
}

/// A replay on a real API server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OnServer {
    /// The operator cannot be replayed, and why.
    Skipped(&'static str),
    /// A history was replayed.
    #[non_exhaustive]
    Replayed {
        /// The history.
        history: Box<History>,
        /// How the states differ from those of the simulation, after the first step that differs.
        differences: Vec<String>,
    },
}

impl Report {
    /// Returns whether nothing is wrong: no history fails, and a real server has shown the same states.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let differs = match &self.on_server {
            Some(OnServer::Replayed { differences, .. }) => !differences.is_empty(),
            Some(OnServer::Skipped(_)) | None => false,
        };
        self.failures.is_empty() && !differs
    }
}

impl fmt::Display for OnServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (history, differences) = match self {
            Self::Skipped(why) => return write!(f, "not replayed on kube-apiserver: {why}"),
            Self::Replayed { history, differences } => (history, differences),
        };
        if differences.is_empty() {
            return write!(
                f,
                "replayed on kube-apiserver: {} steps with the same states",
                history.steps.len()
            );
        }
        f.write_str("kube-apiserver leads to other states:")?;
        for difference in differences {
            write!(f, "\n    {difference}")?;
        }
        write!(
            f,
            "\n\nTo replay it again: RBUILDER_SIMULATION_SERVER=1 RBUILDER_SIMULATION='{history}' cargo test"
        )
    }
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
        if let Some(on_server) = &self.on_server {
            return on_server.fmt(f);
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
