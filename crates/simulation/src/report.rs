//! Results of a simulation.

use std::fmt;

use crate::coverage::Coverage;
use crate::history::History;
use crate::kept::{Kept, KeptOutcome};
use crate::search::Failure;
use crate::timeline::Event;

/// Number of events to print from either end of a timeline.
const MOST_EVENTS: usize = 40;

/// Result of a simulation. `Display` formats it for a terminal.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Failing histories, at most one for each oracle, object and field.
    pub failures: Vec<Failure>,
    /// Number of histories that were run.
    pub histories: usize,
    /// Number of requests in the first history that were disturbed.
    pub disturbed: usize,
    /// Total number of requests in the first history.
    pub requests: usize,
    /// Fields of the declarations that have no effect on the cluster, as `<object> <JSON pointer>`.
    ///
    /// These are often fields that the operator forgot to use.
    pub unused_fields: Vec<String>,
    /// Variations of the declarations that were not tried, because the server refuses them, each with
    /// the server's message.
    pub refused: Vec<String>,
    /// Fields excluded from comparisons because they differ even between two undisturbed runs.
    pub masked: Vec<String>,
    /// Number of hours simulated, if the full three months weren't. The simulation is cut short if
    /// the operator sends too many requests during that time.
    pub passed_hours: Option<u32>,
    /// Timeline of the run, if only one history was run and it passed.
    pub timeline: Vec<Event>,
    /// Comparison with a real API server, if requested.
    pub on_server: Option<OnServer>,
    pub(crate) coverage: Coverage,
    pub(crate) kept: Vec<Kept>,
    /// Path for display.
    pub(crate) kept_file: String,
}

/// Result of a replay on a real API server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OnServer {
    /// The operator can't be replayed, with the reason.
    Skipped(&'static str),
    /// A history was replayed.
    #[non_exhaustive]
    Replayed {
        /// The replayed history.
        history: Box<History>,
        /// Differences from the simulation, up to and including the first step that has any.
        differences: Vec<String>,
    },
}

impl Report {
    /// Returns true if all histories passed and the real server, if used, agreed with the
    /// simulation.
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
        if let Some(first) = self.refused.first() {
            let count = self.refused.len();
            let many = if count == 1 { "" } else { "s" };
            write!(
                f,
                "\nnote: the server refuses {count} variation{many} of the declarations, such as: {first}"
            )?;
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
        for circumstance in &self.circumstances {
            writeln!(f, "  {circumstance}")?;
        }
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
