// SPDX-License-Identifier: Apache-2.0

//! When a CronJob runs: what a schedule says, and what it asks for at a given moment.
//!
//! Nothing here asks for the time or the cluster.

use std::fmt;
use std::str::FromStr;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::{SignedDuration, Timestamp};

/// How many runs may have been missed before somebody has to look: a clock that jumped, or a controller that was away
/// for long, must not look like a hundred runs to start.
pub const MOST_MISSED: usize = 100;

/// The shorthands of cron, and the fields that they stand for.
const SHORTHANDS: &[(&str, [&str; 5])] = &[
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@hourly", ["0", "*", "*", "*", "*"]),
];

/// The five fields of a schedule: minute, hour, day of month, month, day of week. What is in them is not looked at.
///
/// # Errors
/// When there are more fields or fewer, or the shorthand is unknown.
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

/// A schedule that can be followed, in UTC.
#[derive(Clone, Debug)]
pub struct Schedule(Crontab);

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(schedule: &str) -> Result<Self, InvalidSchedule> {
        let line = fields(schedule)?.join(" ");
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let crontab = cronexpr::parse_crontab_with(&line, options).map_err(|error| {
            // The crate draws an arrow to the place, over several lines; its last words say what is wrong.
            let drawn = error.to_string();
            let reason = drawn
                .rsplit_once("^ ")
                .map_or(&*drawn, |(_, reason)| reason);
            InvalidSchedule(format!("{reason}: {schedule}"))
        })?;
        Ok(Self(crontab))
    }
}

/// Why a schedule cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSchedule(String);

impl fmt::Display for InvalidSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSchedule {}

/// What a schedule asks for at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The run to start or to give up, if any.
    pub run: Run,
    /// When to look again; never for a schedule such as the 31st of February.
    pub next: Option<Timestamp>,
}

/// A run whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// There is none.
    None,
    /// The newest one that may still be started.
    Start(Timestamp),
    /// It is too late for every run that has not been started; this is the oldest of them.
    TooLate(Timestamp),
}

/// More than [`MOST_MISSED`] runs could be started.
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
    /// The first time of the schedule after a moment; `None` when there is none for years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.0.find_next(after).ok()?;
        Some(next.timestamp())
    }

    /// What is to be done at `now`, when the last run was started for `since`.
    ///
    /// Of several runs that were missed, only the newest is started. With a deadline, only runs that are no older count.
    ///
    /// # Errors
    /// When more than [`MOST_MISSED`] runs count.
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
        // A run whose deadline ends this very moment may be started, and `next` is what comes strictly after.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-03-02T{time}Z").parse().unwrap()
    }

    fn schedule(text: &str) -> Schedule {
        text.parse().unwrap()
    }

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        let check = |text: &str, expected: &str| {
            let next = schedule(text).next(at("10:30:15")).unwrap();
            assert_eq!(next.to_string(), expected, "{text}");
        };
        check("*/1 * * * *", "2026-03-02T10:31:00Z");
        check("30 10 * * *", "2026-03-03T10:30:00Z");
        check("0 0 13 * FRI", "2026-03-06T00:00:00Z"); // either day, when both are restricted
        check("0 0 29 2 *", "2028-02-29T00:00:00Z");
        check("15,45 8-18/5 * * 1-5", "2026-03-02T13:15:00Z");
        check("@hourly", "2026-03-02T11:00:00Z");
        check("@daily", "2026-03-03T00:00:00Z");
        check("@midnight", "2026-03-03T00:00:00Z");
        check("@weekly", "2026-03-08T00:00:00Z");
        check("@monthly", "2026-04-01T00:00:00Z");
        check("@yearly", "2027-01-01T00:00:00Z");
        check("@annually", "2027-01-01T00:00:00Z");
        assert_eq!(schedule("0 0 31 2 *").next(at("10:30:00")), None);
    }

    #[test]
    fn what_is_no_schedule_is_said() {
        let check = |text: &str, expected: &str| {
            assert_eq!(text.parse::<Schedule>().unwrap_err().to_string(), expected);
        };
        check("foo", "Expected exactly 5 fields, found 1: foo");
        check("", "Expected exactly 5 fields, found 0: ");
        check(
            "* * * * * UTC",
            "Expected exactly 5 fields, found 6: * * * * * UTC",
        );
        check("@often", "Unrecognized descriptor: @often");
        check(
            "60 * * * *",
            "value must be in range 0..=59; found 60: 60 * * * *",
        );
    }

    #[test]
    fn the_newest_run_since_the_last_one_is_due() {
        let hourly = schedule("0 * * * *");
        let check = |since: &str, now: &str, run: Run, next: &str| {
            let due = hourly.due(at(since), at(now), None).unwrap();
            assert_eq!(
                due,
                Due {
                    run,
                    next: Some(at(next))
                }
            );
        };
        check("10:00:00", "10:59:59", Run::None, "11:00:00");
        check(
            "10:00:00",
            "11:00:00",
            Run::Start(at("11:00:00")),
            "12:00:00",
        );
        check(
            "10:00:00",
            "14:30:00",
            Run::Start(at("14:00:00")),
            "15:00:00",
        );
        check("14:00:00", "14:30:00", Run::None, "15:00:00");
        // The clock of this machine may be behind that of the API server.
        check("10:00:00", "09:10:00", Run::None, "10:00:00");
    }

    #[test]
    fn a_run_may_be_late_up_to_the_deadline() {
        let hourly = schedule("0 * * * *");
        let check = |now: &str, deadline: i64, expected: Run| {
            let deadline = SignedDuration::from_secs(deadline);
            let due = hourly.due(at("10:00:00"), at(now), Some(deadline)).unwrap();
            assert_eq!(due.run, expected, "{now} {deadline:?}");
        };
        check("11:01:00", 60, Run::Start(at("11:00:00")));
        check("11:01:01", 60, Run::TooLate(at("11:00:00")));
        check("13:30:00", 60, Run::TooLate(at("11:00:00")));
        check("13:00:30", 60, Run::Start(at("13:00:00")));
        check("11:00:00", 0, Run::Start(at("11:00:00")));
        check("10:30:00", 7200, Run::None);
    }

    #[test]
    fn a_hundred_missed_runs_are_the_limit() {
        let minutely = schedule("* * * * *");
        let since = at("10:00:00");
        let hundred = minutely.due(since, at("11:40:00"), None).unwrap();
        assert_eq!(hundred.run, Run::Start(at("11:40:00")));
        assert_eq!(
            minutely.due(since, at("11:41:00"), None),
            Err(TooManyMissed)
        );
        let deadline = SignedDuration::from_secs(600);
        let counted = minutely.due(since, at("23:00:00"), Some(deadline));
        assert_eq!(counted.unwrap().run, Run::Start(at("23:00:00")));
    }
}
