//! Polling for conditions.

use std::fmt::{Debug, Display};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

const INTERVAL: Duration = Duration::from_millis(50);

// Cap on timeouts, because `Instant::now() + Duration::MAX` overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The result of a check. `true`, `Some` and `Ok` end the wait; `false`, `None` and `Err` continue
/// it.
pub trait Outcome {
    /// The value returned by [`eventually`].
    type Value;

    /// Returns the value if the wait is over.
    ///
    /// # Errors
    ///
    /// Returns a description of this check for the timeout message.
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
/// Uses tokio's clock, so waiting takes no real time while the clock is paused.
///
/// # Panics
///
/// Panics with the result of the last check if none succeeds within `timeout`. The message contains
/// the caller's location.
#[track_caller]
pub fn eventually<O, F>(timeout: Duration, check: impl FnMut() -> F) -> impl Future<Output = O::Value>
where
    O: Outcome,
    F: Future<Output = O>,
{
    wait_for(timeout, check, Location::caller())
}

/// Calls `read` every 50 ms until it returns the expected value.
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
///
/// Panics with the expected and the last value if they don't become equal within `timeout`. The
/// message contains the caller's location.
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
        // `timeout_at` never interrupts a check that completes immediately, so check the deadline
        // here as well.
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
    async fn checks_until_value_is_found() {
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
    async fn timeout_message_contains_last_error() {
        eventually(SECOND, || async { Err::<(), _>("still empty") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "timed out after 1s; last check: found Some(2), expected Some(3)")]
    async fn timeout_message_contains_both_values() {
        eventually_eq(SECOND, 1, || async { 1 }).await;
        eventually_eq(SECOND, Some(3), || async { Some(2) }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "the first check did not finish")]
    async fn hanging_check_times_out() {
        eventually(SECOND, std::future::pending::<bool>).await;
    }
}
