//! Budget and outputs of a simulation, as set by the builder and the environment.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::history::{History, VARIABLE};

const HISTORIES: &str = "RBUILDER_SIMULATION_HISTORIES";
const SECONDS: &str = "RBUILDER_SIMULATION_SECONDS";
const SERVER: &str = "RBUILDER_SIMULATION_SERVER";
const REPORTS: &str = "RBUILDER_SIMULATION_REPORTS";

/// Default number of histories per request of the undisturbed run.
const FOR_EACH_REQUEST: usize = 8;
const FEWEST: usize = 45;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Limit {
    /// Number of histories. Always the same ones.
    Histories(usize),
    /// Seconds of real time. A faster machine runs more histories.
    Seconds(u64),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Run only this history, if set.
    pub(crate) history: Option<History>,
    /// Takes precedence over the limit set by the test.
    pub(crate) limit: Option<Limit>,
    pub(crate) on_server: bool,
    pub(crate) reports: Option<PathBuf>,
    /// Package root, which is cargo's working directory for tests.
    pub(crate) package: PathBuf,
}

impl Settings {
    /// Reads the variables. Errors name the invalid one.
    pub(crate) fn from_environment() -> Result<Self, String> {
        Self::parse(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn parse(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let history = variable(VARIABLE).map(|text| text.parse::<History>());
        let history = history
            .transpose()
            .map_err(|error| format!("cannot read {VARIABLE}: {error}"))?;
        let limit = match (variable(HISTORIES), variable(SECONDS)) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "{HISTORIES} and {SECONDS} are both set: unset one of them"
                ));
            }
            (Some(text), None) => Some(Limit::Histories(parse_count(HISTORIES, &text)?)),
            (None, Some(text)) => Some(Limit::Seconds(parse_count(SECONDS, &text)?)),
            (None, None) => None,
        };
        let on_server = match variable(SERVER).as_deref() {
            None | Some("0") => false,
            Some("1") => true,
            Some(other) => return Err(format!("{SERVER}: expected 0 or 1, found `{other}`")),
        };
        Ok(Self {
            history,
            limit,
            on_server,
            reports: variable(REPORTS).map(PathBuf::from),
            package: PathBuf::new(),
        })
    }
}

fn parse_count<N: std::str::FromStr + PartialOrd + From<u8>>(name: &str, text: &str) -> Result<N, String> {
    let count = text.parse().ok().filter(|count| *count >= N::from(1));
    count.ok_or_else(|| format!("{name}: expected a number from 1 on, found `{text}`"))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: Limit,
    start: Instant,
    is_default: bool,
}

impl Budget {
    pub(crate) fn start(limit: Option<Limit>) -> Self {
        Self {
            limit: limit.unwrap_or(Limit::Histories(FEWEST)),
            start: Instant::now(),
            is_default: limit.is_none(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn is_spent(&self, histories: usize) -> bool {
        match self.limit {
            Limit::Histories(most) => histories >= most,
            Limit::Seconds(most) => self.elapsed() >= Duration::from_secs(most),
        }
    }

    /// Returns a budget that is exhausted halfway through the rest of this one.
    pub(crate) fn half_of_rest(&self, histories: usize) -> Self {
        let limit = match self.limit {
            Limit::Histories(most) => Limit::Histories(histories + most.saturating_sub(histories) / 2),
            Limit::Seconds(most) => Limit::Seconds((self.elapsed().as_secs() + most) / 2),
        };
        Self { limit, ..*self }
    }

    /// Adapts a default budget to the number of requests. `others` are histories that every
    /// operator gets, such as those with copies of its objects. They come on top, or few would
    /// remain for an operator with few requests.
    pub(crate) fn adapt(&mut self, requests: usize, others: usize) {
        if self.is_default {
            self.limit = Limit::Histories(FEWEST.max(FOR_EACH_REQUEST * requests) + others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_budget_depends_on_the_requests() {
        let ends_at = |limit: Option<Limit>, requests: usize| {
            let mut budget = Budget::start(limit);
            budget.adapt(requests, 5);
            (1..1000).find(|histories| budget.is_spent(*histories))
        };
        assert_eq!(ends_at(None, 3), Some(50));
        assert_eq!(ends_at(None, 10), Some(85));
        assert_eq!(ends_at(Some(Limit::Histories(7)), 10), Some(7));
    }

    #[test]
    fn half_of_the_rest_begins_at_the_present() {
        let half = Budget::start(Some(Limit::Histories(100))).half_of_rest(40);
        assert!(!half.is_spent(69) && half.is_spent(70));
    }

    fn parse(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::parse(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_replace_the_limit_of_the_test() {
        for (variables, limit) in [
            (&[][..], None),
            (&[(HISTORIES, "5000")], Some(Limit::Histories(5000))),
            (&[(SECONDS, "60")], Some(Limit::Seconds(60))),
        ] {
            assert_eq!(parse(variables).map(|settings| settings.limit), Ok(limit));
        }
    }

    #[test]
    fn rejects_invalid_budgets() {
        for (variables, expected) in [
            (
                &[(HISTORIES, "0")][..],
                "RBUILDER_SIMULATION_HISTORIES: expected a number from 1 on, found `0`",
            ),
            (
                &[(SECONDS, "1m")],
                "RBUILDER_SIMULATION_SECONDS: expected a number from 1 on, found `1m`",
            ),
            (
                &[(HISTORIES, "1"), (SECONDS, "1")],
                "RBUILDER_SIMULATION_HISTORIES and RBUILDER_SIMULATION_SECONDS are both set: unset one of them",
            ),
            (
                &[(SERVER, "yes")],
                "RBUILDER_SIMULATION_SERVER: expected 0 or 1, found `yes`",
            ),
        ] {
            assert_eq!(parse(variables), Err(expected.to_owned()));
        }
    }
}
