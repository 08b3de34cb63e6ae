//! The model of a report file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

const VERSION: u64 = 1;

/// Results of a simulation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the simulation, e.g. `tests-memcached.the_sample_is_reconciled_under_faults`.
    pub name: String,
    /// Location of the simulation in the test, e.g. `tests/memcached.rs:40`.
    pub source: String,
    /// The declared objects.
    pub declarations: Vec<String>,
    /// Budget of the simulation.
    pub budget: Budget,
    /// Number of histories that were run.
    pub histories: usize,
    /// The operator's requests without any disturbance.
    pub requests: Vec<Request>,
    /// All kinds of perturbations.
    pub perturbations: Vec<Perturbation>,
    /// File with kept histories, relative to the package.
    pub kept_file: String,
    /// The kept histories, which ran first.
    pub kept: Vec<Kept>,
    /// The histories in which the operator misbehaves.
    pub failures: Vec<Failure>,
    /// Fields in the declarations without any effect.
    pub unused_fields: Vec<String>,
    /// Variations of the declarations that the server refuses, with its messages.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Fields excluded from comparisons because they differ between runs.
    pub masked: Vec<String>,
}

/// Budget of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// A number of histories.
    Histories(u64),
    /// A number of seconds.
    Seconds(u64),
}

/// A request, and how often each kind of perturbation disturbed it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The request with its number, e.g. `create pods default/a #1`.
    pub request: String,
    /// Whether the request changes anything.
    pub changes: bool,
    /// Number of disturbances, by kind of perturbation.
    pub disturbed: BTreeMap<String, usize>,
}

/// A kind of perturbation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Perturbation {
    /// Its identifier, e.g. `crash-after`.
    pub kind: String,
    /// What it does, in words.
    pub description: String,
    /// Number of histories in which it was tried.
    pub histories: usize,
    /// Number of histories in which it happened.
    pub reached: usize,
}

/// A kept history and its outcome.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// The history as a single line of JSON.
    pub history: String,
    /// `fails`, `passes`, `not-reached` or `not-run`.
    pub outcome: String,
}

/// A history in which the operator misbehaves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The oracle that was violated.
    pub oracle: String,
    /// What the oracle found.
    pub message: String,
    /// Steps taken by the operator's user.
    pub steps: Vec<String>,
    /// Perturbations of the operator.
    pub perturbations: Vec<String>,
    /// The history as a single line of JSON.
    pub history: String,
    /// The timeline.
    pub events: Vec<Event>,
    /// Number of events omitted after the first half of `events`.
    pub omitted_events: usize,
}

/// An event on the timeline.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Milliseconds since the start.
    pub at: u64,
    /// Who acted.
    pub actor: String,
    /// What was done.
    pub text: String,
    /// Status code of a request.
    pub code: Option<u16>,
    /// Whether the request changed something.
    #[serde(default)]
    pub changed: bool,
    /// Whether the request went to an external system rather than to the API server.
    #[serde(default)]
    pub external: bool,
}

impl Report {
    /// Parses a report file.
    ///
    /// # Errors
    /// Fails with a message for users if the file has another format.
    pub fn parse(text: &str) -> Result<Report, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        match value["version"].as_u64() {
            Some(VERSION) => {}
            Some(version) => {
                return Err(format!(
                    "the library writes reports of format {version}, and this rbuilder reads format {VERSION}: use the \
                     same release of both"
                ));
            }
            None => return Err("expected a report of a simulation, found other JSON".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| format!("not a report of a simulation: {error}"))
    }

    /// Number of requests that change anything, and how many of those were disturbed.
    #[must_use]
    pub fn writes(&self) -> (usize, usize) {
        let writes = || self.requests.iter().filter(|request| request.changes);
        let covered = writes().filter(|request| !request.disturbed.is_empty());
        (writes().count(), covered.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_rejected() {
        for (text, expected) in [
            ("{", "not JSON: EOF while parsing an object at line 1 column 1"),
            ("{}", "expected a report of a simulation, found other JSON"),
            (
                r#"{"version":2}"#,
                "the library writes reports of format 2, and this rbuilder reads format 1: use the same release of both",
            ),
            (
                r#"{"version":1}"#,
                "not a report of a simulation: missing field `name`",
            ),
        ] {
            assert_eq!(Report::parse(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn report_of_the_library_is_read() {
        let report = Report::parse(include_str!("../../../simulation/tests/report.json")).unwrap();
        assert_eq!(report.budget, Budget::Histories(60));
        assert_eq!(report.writes(), (3, 3));
        assert_eq!(report.failures[0].oracle, "end-state");
        assert!(report.failures[0].events.iter().any(|event| event.changed));
    }
}
