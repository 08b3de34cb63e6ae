// SPDX-License-Identifier: Apache-2.0

//! Schedules: the times of runs, and the run that is due at a given time.
//!
//! Nothing here reads the clock or the cluster.

use std::fmt;
use std::str::FromStr;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::{SignedDuration, Timestamp};

/// Maximum number of missed runs. More are an error, because they mean a clock that has jumped, or an operator that was
/// down for long.
pub const MOST_MISSED: usize = 100;

/// Shorthands of cron and their fields.
const SHORTHANDS: &[(&str, [&str; 5])] = &[
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@hourly", ["0", "*", "*", "*", "*"]),
];

/// Splits a schedule into its five fields: minute, hour, day of month, month, day of week. Does not parse the fields.
///
/// # Errors
/// There are more or fewer fields, or the shorthand is unknown.
pub fn fields(schedule: &str) -> Result<[&str; 5], InvalidSchedule> {
    let schedule = schedule.trim();
    if schedule.starts_with('@') {
        let known = SHORTHANDS.iter().find(|(name, _)| *name == schedule);
        let known = known.map(|(_, fields)| *fields);
        return known
            .ok_or_else(|| InvalidSchedule(format!("Unrecognized descriptor: {schedule}")));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let found = fields.len();
    <[&str; 5]>::try_from(fields).map_err(|_| {
        InvalidSchedule(format!(
            "Expected exactly 5 fields, found {found}: {schedule}"
        ))
    })
}

/// A valid schedule, in UTC.
#[derive(Clone, Debug)]
pub struct Schedule(Crontab);

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(schedule: &str) -> Result<Self, InvalidSchedule> {
        let line = fields(schedule)?.join(" ");
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let crontab = cronexpr::parse_crontab_with(&line, options).map_err(|error| {
            // The crate draws an arrow to the place, over several lines; the reason is after it.
            let drawn = error.to_string();
            let reason = drawn
                .rsplit_once("^ ")
                .map_or(&*drawn, |(_, reason)| reason);
            InvalidSchedule(format!("{reason}: {schedule}"))
        })?;
        Ok(Self(crontab))
    }
}

/// The error of a schedule that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSchedule(String);

impl fmt::Display for InvalidSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSchedule {}

/// The answer of a schedule at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The run that is due.
    pub run: Run,
    /// Time of the next run; `None` for a schedule such as the 31st of February.
    pub next: Option<Timestamp>,
}

/// A run that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// No run is due.
    None,
    /// The newest run that may still be started.
    Start(Timestamp),
    /// All missed runs are past the deadline; this is the oldest.
    TooLate(Timestamp),
}

/// The error of more than [`MOST_MISSED`] missed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMissed;

impl fmt::Display for TooManyMissed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "too many missed start times (> {MOST_MISSED}): set or decrease spec.startingDeadlineSeconds, or check the \
             clocks"
        )
    }
}

impl std::error::Error for TooManyMissed {}

impl Schedule {
    /// Returns the first time of the schedule after a time; `None` if there is none for years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.0.find_next(after).ok()?;
        Some(next.timestamp())
    }

    /// Returns the run that is due at `now` if the last run was scheduled for `since`.
    ///
    /// Of several missed runs only the newest is started. With a deadline, older runs do not count.
    ///
    /// # Errors
    /// More than [`MOST_MISSED`] runs were missed.
    pub fn due(
        &self,
        since: Timestamp,
        now: Timestamp,
        deadline: Option<SignedDuration>,
    ) -> Result<Due, TooManyMissed> {
        let times = |after| {
            std::iter::successors(self.next(after), |time| self.next(*time))
                .take_while(|time| *time <= now)
        };
        // A run whose deadline ends at `now` may be started, and `next` returns a time strictly after its argument.
        let oldest = deadline
            .and_then(|deadline| now.checked_sub(deadline).ok())
            .and_then(|oldest| oldest.checked_sub(SignedDuration::from_nanos(1)).ok());
        let mut missed = 0;
        let mut newest = None;
        for time in times(oldest.map_or(since, |oldest| oldest.max(since))) {
            missed += 1;
            if missed > MOST_MISSED {
                return Err(TooManyMissed);
            }
            newest = Some(time);
        }
        let run = match (newest, times(since).next()) {
            (Some(newest), _) => Run::Start(newest),
            (None, Some(oldest)) => Run::TooLate(oldest),
            (None, None) => Run::None,
        };
        let next = self.next(now);
        Ok(Due { run, next })
    }
}
