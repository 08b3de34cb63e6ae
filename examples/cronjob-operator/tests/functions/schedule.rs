// SPDX-License-Identifier: Apache-2.0

//! When a CronJob runs.

use cronjob_operator::schedule::{Due, Run, Schedule, TooManyMissed};
use jiff::{SignedDuration, Timestamp};

fn at(time: &str) -> Timestamp {
    format!("2026-03-02T{time}Z").parse().unwrap()
}

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap()
}

#[test]
fn schedules_are_parsed_like_cron() {
    let check = |text: &str, expected: &str| {
        let next = schedule(text).next(at("10:30:15")).unwrap();
        assert_eq!(next.to_string(), expected, "{text}");
    };
    check("*/1 * * * *", "2026-03-02T10:31:00Z");
    check("30 10 * * *", "2026-03-03T10:30:00Z");
    check("0 0 13 * FRI", "2026-03-06T00:00:00Z"); // either day matches if both are restricted
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
fn invalid_schedules_are_explained() {
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
fn newest_missed_run_is_due() {
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
    // This machine's clock may be behind the API server's.
    check("10:00:00", "09:10:00", Run::None, "10:00:00");
}

#[test]
fn run_may_be_late_until_the_deadline() {
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
fn hundred_missed_runs_are_the_limit() {
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
