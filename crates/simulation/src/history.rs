//! Histories: what is declared, and what disturbs the operator meanwhile.
//!
//! A [`History`] is plain data that can be printed, parsed and replayed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Environment variable with a single history to run instead of searching.
pub(crate) const VARIABLE: &str = "RBUILDER_SIMULATION";

/// Namespace of copies of the declared objects.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// A history. `Display` and `FromStr` use a single line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Seed for all randomness, including UIDs and the jitter of the operator's timers, and for the
    /// time of day and the year in which the history starts.
    #[serde(default)]
    pub seed: u64,
    /// User actions. Each one starts once the operator is idle.
    pub steps: Vec<Step>,
    /// Behavior of the environment.
    #[serde(default, skip_serializing_if = "Pace::is_prompt")]
    pub environment: Pace,
    /// Whether to run two replicas of the operator with leader election.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replicated: bool,
    /// What goes wrong, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub perturbations: Vec<Perturbation>,
}

impl History {
    /// Applies all declarations in order, then deletes them in reverse.
    pub(crate) fn plain(declarations: usize) -> Self {
        let applied = (0..declarations).map(Step::Apply);
        let deleted = (0..declarations).rev().map(Step::Delete);
        Self {
            steps: applied.chain(deleted).collect(),
            ..Self::default()
        }
    }

    /// Describes in which way a history differs from the plain one, apart from its perturbations.
    /// `names` are the names of the declarations, and `wrong` is the index of the step after which
    /// the state is wrong.
    pub(crate) fn describe(&self, names: &[String], wrong: Option<usize>) -> Vec<String> {
        let mut lines = Vec::new();
        match self.environment {
            Pace::Prompt => {}
            Pace::Slow => lines.push("in a slow environment".to_owned()),
            Pace::Failing => lines.push("in an environment where nothing becomes ready".to_owned()),
        }
        if self.replicated {
            lines.push("with two replicas".to_owned());
        }
        let applied = self.steps.iter().filter_map(|step| match step {
            Step::Apply(number) => Some(*number),
            _ => None,
        });
        if names.len() > 1 && applied.take(names.len()).eq((0..names.len()).rev()) {
            lines.push("with the declarations in the opposite order".to_owned());
        }
        let is_usual = |step: &Step| matches!(step, Step::Apply(_) | Step::Delete(_));
        for (number, step) in self
            .steps
            .iter()
            .enumerate()
            .take(wrong.map_or(usize::MAX, |wrong| wrong + 1))
        {
            // The return to the declared value is a change, too.
            let is_changed = !is_usual(step) || matches!(step, Step::Apply(_)) && self.returns(number);
            if is_changed {
                lines.push(format!("in step {}: {}", number + 1, step.describe(names)));
            }
        }
        lines
    }

    /// Whether a step applies an object again.
    fn returns(&self, number: usize) -> bool {
        let declaration = self.steps[number].declaration();
        self.steps[..number]
            .iter()
            .any(|step| step.declaration() == declaration)
    }

    pub(crate) fn fills_quota(&self) -> bool {
        let mut actions = self.perturbations.iter().map(|perturbation| &perturbation.action);
        actions.any(|action| matches!(action, Disturbance::FillQuota(_)))
    }

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
    /// Checks that all steps refer to existing declarations; a history recorded by an older version
    /// of the test might not.
    pub(crate) fn check(&self, declarations: usize) -> Result<(), String> {
        let numbers = self.steps.iter().filter_map(Step::number);
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

/// An action of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Applies the declaration at this index.
    Apply(usize),
    /// Applies a declaration with some values replaced. Keys are JSON pointers; `null` removes the
    /// field.
    ApplyWith(usize, BTreeMap<String, Value>),
    /// Deletes the declared object at this index.
    Delete(usize),
    /// Like `Delete`, but with foreground propagation: the object remains until its dependents are
    /// gone.
    DeleteForeground(usize),
    /// Changes no objects, but switches the environment to [`Pace::Failing`].
    FailEnvironment,
    /// Advances the clock to this many hours after the start of the history.
    PassUntil(u32),
    /// Applies a copy of the declaration at this index in the namespace `elsewhere`.
    ApplyElsewhere(usize),
    /// Deletes the copy of the declared object in the namespace `elsewhere`.
    DeleteElsewhere(usize),
    /// Deletes the namespace `elsewhere`.
    EndElsewhere,
}

impl Step {
    pub(crate) fn deletes(&self) -> bool {
        matches!(self, Self::Delete(_) | Self::DeleteForeground(_))
    }

    /// Index of the declaration that this step refers to, if any.
    pub(crate) fn declaration(&self) -> Option<usize> {
        match self {
            Self::Apply(number)
            | Self::ApplyWith(number, _)
            | Self::Delete(number)
            | Self::DeleteForeground(number) => Some(*number),
            Self::FailEnvironment
            | Self::PassUntil(_)
            | Self::ApplyElsewhere(_)
            | Self::DeleteElsewhere(_)
            | Self::EndElsewhere => None,
        }
    }

    /// Like `declaration`, but also for copies.
    fn number(&self) -> Option<usize> {
        match self {
            Self::ApplyElsewhere(number) | Self::DeleteElsewhere(number) => Some(*number),
            _ => self.declaration(),
        }
    }

    /// Whether this step takes place in the namespace `elsewhere`.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(
            self,
            Self::ApplyElsewhere(_) | Self::DeleteElsewhere(_) | Self::EndElsewhere
        )
    }

    /// Describes the step. `names` are the names of the declarations.
    pub(crate) fn describe(&self, names: &[String]) -> String {
        let name = |number: &usize| names.get(*number).map_or("?", String::as_str);
        match self {
            Self::Apply(number) => format!("apply {}", name(number)),
            Self::ApplyWith(number, changes) => {
                let changes = changes.iter().map(|(pointer, value)| match value {
                    Value::Null => format!("without {pointer}"),
                    value => format!("with {pointer} = {value}"),
                });
                let changes: Vec<String> = changes.collect();
                format!("apply {} {}", name(number), changes.join(" and "))
            }
            Self::Delete(number) => format!("delete {}", name(number)),
            Self::DeleteForeground(number) => format!("delete {} in the foreground", name(number)),
            Self::FailEnvironment => "the environment fails from now on".to_owned(),
            Self::PassUntil(hour) => format!("time passes until hour {hour}"),
            Self::ApplyElsewhere(number) => {
                format!("apply a copy of {} in the namespace {ELSEWHERE}", name(number))
            }
            Self::DeleteElsewhere(number) => {
                format!("delete the copy of {} in the namespace {ELSEWHERE}", name(number))
            }
            Self::EndElsewhere => format!("delete the namespace {ELSEWHERE}"),
        }
    }
}

/// Behavior of the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Everything becomes ready immediately.
    #[default]
    Prompt,
    /// Each transition takes 20 seconds, and each request of the operator a second.
    Slow,
    /// Nothing ever becomes ready: Pods crash, volumes stay unbound.
    Failing,
}

impl Pace {
    fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }
}

/// A disturbance, triggered by one of the operator's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Perturbation {
    /// The triggering request, e.g. `create deployments.apps default/sample #1`. The number counts
    /// identical requests, starting at 1.
    pub at: String,
    /// The disturbance to inject.
    #[serde(rename = "do")]
    pub action: Disturbance,
}

/// Ways to disturb the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The operator crashes before the request reaches the server, and is restarted.
    CrashBefore,
    /// The operator crashes after the server has handled the request, and is restarted.
    CrashAfter,
    /// Like `CrashAfter`, but the restarted process initially sees stale caches, with the state
    /// before the request.
    CrashIntoPast,
    /// Like `CrashAfter`, but the restarted process sees a stale cache for a single kind, with the
    /// state before the last declaration. Caches of other kinds are up to date.
    CrashBehind(String),
    /// The process is partitioned from the server for 30 seconds, starting before the request.
    ///
    /// Requests arrive once the partition heals, unless the operator has timed out. With two
    /// replicas, the other one acquires the lease meanwhile.
    CutOff,
    /// The server handles the request, but the response is lost.
    LoseAnswer,
    /// The server responds with this status code instead of handling the request.
    Refuse(u16),
    /// Permission for this kind of request is revoked for 30 seconds.
    Forbid,
    /// For 30 seconds, a quota has no room for more objects of this kind in the namespace of the
    /// request.
    ///
    /// It counts all creates, e.g. also those of Pods by the Deployment controller.
    FillQuota(String),
    /// For 2 seconds, watch events and lists of this kind are late.
    DelayEvents(String),
    /// A call to an external system takes a minute.
    Slow,
    /// All watches are closed.
    EndWatches,
    /// All watches fail with `410 Gone`, forcing a relist.
    ExpireWatches,
    /// Another actor deletes this object, in the cluster or in an external system.
    Remove(String),
    /// Like `Remove`, but 10 seconds after the request.
    RemoveLater(String),
    /// Another actor modifies a field that the operator owns.
    Edit(String),
    /// The kubelet evicts this Pod 10 seconds after the request. The Pod has failed then, but still
    /// exists.
    Evict(String),
    /// The user deletes and recreates the object being reconciled.
    ///
    /// The operator's watches are interrupted meanwhile, so it never observes the deletion.
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
            Disturbance::FillQuota(kind) => {
                write!(f, "a quota has no room for {kind} for 30 seconds, from `{at}` on")
            }
            Disturbance::DelayEvents(kind) => {
                write!(f, "events of {kind} are 2 seconds late from `{at}` on")
            }
            Disturbance::Slow => write!(f, "the answer to `{at}` takes a minute"),
            Disturbance::EndWatches => write!(f, "all watches end after `{at}`"),
            Disturbance::ExpireWatches => write!(f, "all watches expire after `{at}`"),
            Disturbance::Remove(object) => write!(f, "another actor deletes {object} after `{at}`"),
            Disturbance::RemoveLater(object) => {
                write!(f, "another actor deletes {object} 10 seconds after `{at}`")
            }
            Disturbance::Edit(object) => write!(f, "another actor changes {object} after `{at}`"),
            Disturbance::Evict(pod) => write!(f, "{pod} is evicted 10 seconds after `{at}`"),
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
    fn printed_history_parses_again() {
        let history = History {
            seed: 3,
            steps: vec![
                Step::Apply(0),
                Step::ApplyWith(0, BTreeMap::from([("/spec/size".to_owned(), 4.into())])),
                Step::PassUntil(24),
                Step::ApplyElsewhere(0),
                Step::EndElsewhere,
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
    fn description_names_what_is_unusual_until_the_state_is_wrong() {
        let names = ["pods x/a".to_owned(), "pods x/b".to_owned()];
        let with = Step::ApplyWith(0, BTreeMap::from([("/spec/size".to_owned(), 4.into())]));
        let mut history = History::plain(2);
        assert_eq!(history.describe(&names, Some(2)), Vec::<String>::new());
        history.steps[..2].reverse();
        history.steps.splice(2..2, [with, Step::Apply(0)]);
        let order = "with the declarations in the opposite order";
        let changed = "in step 3: apply pods x/a with /spec/size = 4";
        assert_eq!(history.describe(&names, Some(2)), [order, changed]);
        let back = "in step 4: apply pods x/a";
        assert_eq!(history.describe(&names, None), [order, changed, back]);
    }

    #[test]
    fn other_text_is_rejected() {
        let error = "{\"steps\": [], \"faults\": []}".parse::<History>().unwrap_err();
        assert!(error.contains("unknown field `faults`"), "{error}");
    }
}
