//! A history: what is declared, and what disturbs the operator. It is a value that can be printed,
//! parsed and run again.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The environment variable with a history to run instead of the search.
pub(crate) const VARIABLE: &str = "RBUILDER_SIMULATION";

/// A history. Formatted and parsed as one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The seed of everything random, such as uids and the operator's jitter.
    #[serde(default)]
    pub seed: u64,
    /// What the user of the operator does. Each step begins when the operator is quiet.
    pub steps: Vec<Step>,
    /// How the environment behaves.
    #[serde(default, skip_serializing_if = "Pace::is_prompt")]
    pub environment: Pace,
    /// Whether the operator runs in two replicas, one of which leads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replicated: bool,
    /// What disturbs the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub perturbations: Vec<Perturbation>,
}

impl History {
    /// Returns the history that applies declarations in order, and deletes them in the opposite one.
    pub(crate) fn plain(declarations: usize) -> Self {
        let applied = (0..declarations).map(Step::Apply);
        let deleted = (0..declarations).rev().map(Step::Delete);
        Self {
            steps: applied.chain(deleted).collect(),
            ..Self::default()
        }
    }

    /// Returns whether nothing goes wrong: everything is declared as the test says and deleted again.
    pub(crate) fn is_plain(&self) -> bool {
        let is_given = |step: &Step| matches!(step, Step::Apply(_) | Step::Delete(_));
        self.perturbations.is_empty() && self.environment == Pace::Prompt && self.steps.iter().all(is_given)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl History {
    /// Checks that the steps name declarations of the test.
    pub(crate) fn check(&self, declarations: usize) -> Result<(), String> {
        let numbers = self.steps.iter().filter_map(Step::declaration);
        match numbers.max() {
            Some(number) if number >= declarations => Err(format!(
                "a step names declaration {number}, but the test has {declarations}, counted from 0"
            )),
            _ => Ok(()),
        }
    }
}

impl std::str::FromStr for History {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text).map_err(|error| format!("not a history: {error}"))
    }
}

/// A step of the user of the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Applies a declaration, by its number.
    Apply(usize),
    /// Applies a declaration with other values at JSON pointers. `null` removes a field.
    ApplyWith(usize, BTreeMap<String, Value>),
    /// Deletes the object of a declaration.
    Delete(usize),
    /// Deletes the object of a declaration in the foreground: it stays until its dependents are gone.
    DeleteForeground(usize),
    /// Nothing is declared, but the environment fails from now on: Pods crash.
    FailEnvironment,
    /// Time passes until this hour since the start of the history.
    PassUntil(u32),
}

impl Step {
    /// Returns whether the step deletes an object.
    pub(crate) fn deletes(&self) -> bool {
        matches!(self, Self::Delete(_) | Self::DeleteForeground(_))
    }

    /// Returns the number of the declaration, if the step has one.
    pub(crate) fn declaration(&self) -> Option<usize> {
        match self {
            Self::Apply(number)
            | Self::ApplyWith(number, _)
            | Self::Delete(number)
            | Self::DeleteForeground(number) => Some(*number),
            Self::FailEnvironment | Self::PassUntil(_) => None,
        }
    }
}

/// How the environment behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Everything becomes ready at once.
    #[default]
    Prompt,
    /// Each step takes 20 seconds.
    Slow,
    /// Nothing becomes ready: Pods crash, volumes are not bound.
    Failing,
}

impl Pace {
    fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }
}

/// Something that disturbs the operator at a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Perturbation {
    /// The request, such as `create deployments.apps default/sample #1`: the first one of this kind.
    pub at: String,
    /// What happens.
    #[serde(rename = "do")]
    pub action: Disturbance,
}

/// What happens at a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The operator dies before the request reaches the server, and is started again.
    CrashBefore,
    /// The operator dies after the server has handled the request, and is started again.
    CrashAfter,
    /// The same, and the caches of the next process begin with the state before the request.
    CrashIntoPast,
    /// The same, and the cache of one kind begins with the state before the last declaration, while the
    /// others are current.
    CrashBehind(String),
    /// The process cannot reach the server for 30 seconds, beginning before the request. Its requests
    /// arrive late, if it still waits for them. With two replicas, the other one takes the lease.
    CutOff,
    /// The server handles the request, but its answer is lost.
    LoseAnswer,
    /// The server answers with this status code, and does not handle the request.
    Refuse(u16),
    /// The operator has no permission for such requests for 30 seconds.
    Forbid,
    /// Events of the watches of a kind are late by 2 seconds.
    DelayEvents(String),
    /// The answer to a call of an external system takes a minute.
    Slow,
    /// All watches end.
    EndWatches,
    /// All watches end, and must list again.
    ExpireWatches,
    /// Another actor deletes an object, in the cluster or in an external system.
    Remove(String),
    /// Another actor changes a field that the operator has set.
    Edit(String),
    /// The user deletes the object that the operator reconciles and declares it again. The operator's
    /// watches end meanwhile, so that it does not see the deletion.
    Redeclare(String),
}

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.at;
        match &self.action {
            Disturbance::CrashBefore => write!(f, "the operator dies before `{at}`"),
            Disturbance::CrashAfter => write!(f, "the operator dies after `{at}`"),
            Disturbance::CrashIntoPast => {
                write!(
                    f,
                    "the operator dies after `{at}`, and its next caches begin before it"
                )
            }
            Disturbance::CrashBehind(kind) => write!(
                f,
                "the operator dies after `{at}`, and its next cache of {kind} begins before the last declaration"
            ),
            Disturbance::CutOff => write!(
                f,
                "the process is cut off from the server for 30 seconds before `{at}`"
            ),
            Disturbance::LoseAnswer => write!(f, "the answer to `{at}` is lost"),
            Disturbance::Refuse(code) => write!(f, "the server answers `{at}` with {code}"),
            Disturbance::Forbid => write!(f, "`{at}` is forbidden for 30 seconds"),
            Disturbance::DelayEvents(kind) => {
                write!(f, "events of {kind} are 2 seconds late from `{at}` on")
            }
            Disturbance::Slow => write!(f, "the answer to `{at}` takes a minute"),
            Disturbance::EndWatches => write!(f, "all watches end after `{at}`"),
            Disturbance::ExpireWatches => write!(f, "all watches expire after `{at}`"),
            Disturbance::Remove(object) => write!(f, "another actor deletes {object} after `{at}`"),
            Disturbance::Edit(object) => write!(f, "another actor changes {object} after `{at}`"),
            Disturbance::Redeclare(object) => {
                write!(f, "{object} is deleted and declared again, unseen, after `{at}`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_read_as_they_are_printed() {
        let history = History {
            seed: 3,
            steps: vec![
                Step::Apply(0),
                Step::ApplyWith(0, BTreeMap::from([("/spec/size".to_owned(), 4.into())])),
                Step::PassUntil(24),
                Step::Delete(0),
            ],
            environment: Pace::Slow,
            replicated: true,
            perturbations: vec![Perturbation {
                at: "create pods default/a #1".to_owned(),
                action: Disturbance::Refuse(409),
            }],
        };
        assert_eq!(history.to_string().parse(), Ok(history));
    }

    #[test]
    fn other_text_is_rejected() {
        let error = "{\"steps\": [], \"faults\": []}".parse::<History>().unwrap_err();
        assert!(error.contains("unknown field `faults`"), "{error}");
    }
}
