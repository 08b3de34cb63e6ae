//! Waiting for a condition.

use std::fmt::{Debug, Display};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

/// Interval between two checks.
const INTERVAL: Duration = Duration::from_millis(50);

/// Longest wait, a year: a longer one may be out of the range of the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The result of a check: `true`, `Some` and `Ok` end the wait; `false`, `None` and `Err` continue it.
pub trait Outcome {
    /// The value that [`eventually`] returns.
    type Value;

    /// Returns the value, if the wait is over.
    ///
    /// # Errors
    /// The description of the last check in the message of a timeout.
    fn outcome(self) -> Result<Self::Value, String>;
}

impl Outcome for bool {
    type Value = ();

    fn outcome(self) -> Result<(), String> {
        if self {
            Ok(())
        } else {
            Err("it was false".to_owned())
        }
    }
}

impl<T> Outcome for Option<T> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.ok_or_else(|| "it was None".to_owned())
    }
}

impl<T, E: Display> Outcome for Result<T, E> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.map_err(|err| err.to_string())
    }
}

/// Calls `check` every 50 ms until it succeeds, and returns its value.
///
/// Time is tokio's: while its clock is paused, waiting takes no time.
///
/// # Panics
/// When `timeout` has passed, with the result of the last check. The message names the caller's line.
#[track_caller]
pub fn eventually<O, F>(timeout: Duration, check: impl FnMut() -> F) -> impl Future<Output = O::Value>
where
    O: Outcome,
    F: Future<Output = O>,
{
    wait_for(timeout, check, Location::caller())
}

/// Calls `read` every 50 ms until it returns the expected value. The message of a timeout contains both values.
///
/// ```
/// # use std::time::Duration;
/// # use rbuilder::testing::eventually_eq;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let replicas = || async { Some(3) };
/// eventually_eq(Duration::from_secs(5), Some(3), || async { replicas().await }).await;
/// # }
/// ```
///
/// # Panics
/// When `timeout` has passed, with the last value. The message names the caller's line.
#[track_caller]
pub fn eventually_eq<V, F>(
    timeout: Duration,
    expected: V,
    mut read: impl FnMut() -> F,
) -> impl Future<Output = ()>
where
    V: PartialEq + Debug,
    F: Future<Output = V>,
{
    let caller = Location::caller();
    let expected = Arc::new(expected);
    let compare = move || {
        let (found, expected) = (read(), expected.clone());
        async move {
            let found = found.await;
            if found == *expected {
                Ok(())
            } else {
                Err(format!("found {found:?}, expected {expected:?}"))
            }
        }
    };
    wait_for(timeout, compare, caller)
}

async fn wait_for<O, F>(
    timeout: Duration,
    mut check: impl FnMut() -> F,
    caller: &'static Location<'static>,
) -> O::Value
where
    O: Outcome,
    F: Future<Output = O>,
{
    let deadline = Instant::now() + timeout.min(LONGEST);
    let mut last = "the first check did not finish".to_owned();
    loop {
        // `timeout_at` never cuts off a check that is ready at once, so the deadline is compared here as well.
        let overdue = Instant::now() >= deadline;
        match timeout_at(deadline, check()).await.map(Outcome::outcome) {
            Ok(Ok(value)) => return value,
            Ok(Err(reason)) if !overdue => last = reason,
            Ok(Err(reason)) => fail(caller, timeout, &reason),
            Err(_) => fail(caller, timeout, &last),
        }
        sleep_until(deadline.min(Instant::now() + INTERVAL)).await;
    }
}

fn fail(caller: &Location<'_>, timeout: Duration, last: &str) -> ! {
    panic!("{caller}: timed out after {timeout:?}; last check: {last}")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_looks_until_the_value_is_there() {
        let looks = Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            let found = looks.get();
            async move { (found == 3).then_some(found) }
        };
        assert_eq!(eventually(SECOND, look).await, 3);
        eventually(SECOND, || async { true }).await;
        assert_eq!(eventually(SECOND, || async { Ok::<_, String>(7) }).await, 7);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "timed out after 1s; last check: still empty")]
    async fn a_timeout_tells_what_was_last_seen() {
        eventually(SECOND, || async { Err::<(), _>("still empty") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "timed out after 1s; last check: found Some(2), expected Some(3)")]
    async fn a_timeout_tells_both_values() {
        eventually_eq(SECOND, 1, || async { 1 }).await;
        eventually_eq(SECOND, Some(3), || async { Some(2) }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "the first check did not finish")]
    async fn a_look_that_hangs_is_cut_off() {
        eventually(SECOND, std::future::pending::<bool>).await;
    }
}
