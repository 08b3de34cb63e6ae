//! The model of a report file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The version of the format that this release understands.
const VERSION: u64 = 1;

/// What a simulation found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The name of the simulation, e.g. `tests-memcached.the_sample_is_reconciled_under_faults`.
    pub name: String,
    /// Where in the test it is run, e.g. `tests/memcached.rs:40`.
    pub source: String,
    /// The objects that were declared.
    pub declarations: Vec<String>,
    /// How long the simulation was to run.
    pub budget: Budget,
    /// How many histories were run.
    pub histories: usize,
    /// What the operator requests if nothing disturbs it.
    pub requests: Vec<Request>,
    /// All kinds of perturbations.
    pub perturbations: Vec<Perturbation>,
    /// The file with kept histories, relative to the folder of the package.
    pub kept_file: String,
    /// The kept histories, which ran first.
    pub kept: Vec<Kept>,
    /// The histories in which the operator misbehaves.
    pub failures: Vec<Failure>,
    /// Fields in the declarations that have no effect.
    pub unused_fields: Vec<String>,
    /// Fields that we don't compare, because they differ between runs.
    pub masked: Vec<String>,
}

/// How long a simulation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// For this many histories.
    Histories(u64),
    /// For this many seconds.
    Seconds(u64),
}

/// A request, and how often each kind of perturbation happened to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The request with its number, e.g. `create pods default/a #1`.
    pub request: String,
    /// Whether the request changes anything.
    pub changes: bool,
    /// How often it was disturbed, by the kind of perturbation.
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
    /// In how many histories it was tried.
    pub histories: usize,
    /// In how many of these it happened.
    pub reached: usize,
}

/// A history that is kept, and how it went.
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
    /// What the operator's user did, step by step.
    pub steps: Vec<String>,
    /// What happened to the operator.
    pub perturbations: Vec<String>,
    /// The history as a single line of JSON.
    pub history: String,
    /// The timeline.
    pub events: Vec<Event>,
    /// How many events are missing after the first half of `events`.
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
    /// The status code, if it was a request.
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

    /// How many requests change anything, and how many of those were disturbed.
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
