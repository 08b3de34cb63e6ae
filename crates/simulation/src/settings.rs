//! How much a simulation runs, and what it writes: from the builder and from environment variables.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::history::{History, VARIABLE};

/// The environment variable with the number of histories.
const HISTORIES: &str = "RBUILDER_SIMULATION_HISTORIES";
/// The environment variable with the seconds that each simulation may take.
const SECONDS: &str = "RBUILDER_SIMULATION_SECONDS";
/// The environment variable that replays histories on a real API server.
const SERVER: &str = "RBUILDER_SIMULATION_SERVER";
/// The environment variable with the folder for report files.
const REPORTS: &str = "RBUILDER_SIMULATION_REPORTS";

/// When a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Limit {
    /// After a number of histories. The same histories run each time.
    Histories(usize),
    /// After seconds of real time. Faster machines run more histories.
    Seconds(u64),
}

/// What the environment asks of all simulations in a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// The only history to run.
    pub(crate) history: Option<History>,
    /// The limit, in place of the one in the test.
    pub(crate) limit: Option<Limit>,
    /// Whether histories are replayed on a real API server, in place of the search.
    pub(crate) on_server: bool,
    /// The folder for report files.
    pub(crate) reports: Option<PathBuf>,
    /// The folder of the package, which cargo makes the current one.
    pub(crate) package: PathBuf,
}

impl Settings {
    /// Reads the environment variables.
    ///
    /// # Errors
    /// Fails with a message for people if a value cannot be parsed.
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

/// A limit, and how much of it is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: Limit,
    start: Instant,
}

impl Budget {
    /// Starts to spend a budget now.
    pub(crate) fn start(limit: Limit) -> Self {
        Self {
            limit,
            start: Instant::now(),
        }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns whether the search must end.
    pub(crate) fn is_spent(&self, histories: usize) -> bool {
        match self.limit {
            Limit::Histories(most) => histories >= most,
            Limit::Seconds(most) => self.elapsed() >= Duration::from_secs(most),
        }
    }

    /// Returns whether more than half of the budget is spent.
    pub(crate) fn is_half_spent(&self, histories: usize) -> bool {
        match self.limit {
            Limit::Histories(most) => histories > most / 2,
            Limit::Seconds(most) => self.elapsed() > Duration::from_secs(most) / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn values_that_are_no_budget_are_rejected() {
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
