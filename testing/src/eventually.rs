//! Waiting for something that will be true soon.

use std::fmt::{Debug, Display};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

/// How long to wait between two looks.
const INTERVAL: Duration = Duration::from_millis(50);

/// What a look can find: `true`, `Some` and `Ok` are what was waited for; the rest says to look again.
pub trait Outcome {
    /// What [`eventually`] returns.
    type Value;

    /// The value, or why it is not there yet.
    ///
    /// # Errors
    /// The words in which a timeout reports the last look.
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

/// Calls `look` again and again until it finds what is waited for, and returns that.
///
/// It goes by tokio's clock: when that is paused, the time passes at once.
///
/// # Panics
/// When `timeout` has passed, with what the last look found. The message names the caller's line.
#[track_caller]
pub fn eventually<O, F>(timeout: Duration, look: impl FnMut() -> F) -> impl Future<Output = O::Value>
where
    O: Outcome,
    F: Future<Output = O>,
{
    wait(timeout, look, Location::caller())
}

/// Calls `look` again and again until it finds this value. The message of a timeout has both values.
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
/// When `timeout` has passed, with what was found last. The message names the caller's line.
#[track_caller]
pub fn eventually_eq<V, F>(
    timeout: Duration,
    expected: V,
    mut look: impl FnMut() -> F,
) -> impl Future<Output = ()>
where
    V: PartialEq + Debug,
    F: Future<Output = V>,
{
    let caller = Location::caller();
    let expected = Arc::new(expected);
    let compare = move || {
        let (found, expected) = (look(), expected.clone());
        async move {
            let found = found.await;
            if found == *expected {
                Ok(())
            } else {
                Err(format!("{found:?} instead of {expected:?}"))
            }
        }
    };
    wait(timeout, compare, caller)
}

async fn wait<O, F>(
    timeout: Duration,
    mut look: impl FnMut() -> F,
    caller: &'static Location<'static>,
) -> O::Value
where
    O: Outcome,
    F: Future<Output = O>,
{
    let deadline = Instant::now() + timeout;
    let mut last = "the first look did not end".to_owned();
    loop {
        // A look that is ready at once is never cut off, so the time is asked here as well.
        let overdue = Instant::now() >= deadline;
        match timeout_at(deadline, look()).await.map(Outcome::outcome) {
            Ok(Ok(value)) => return value,
            Ok(Err(reason)) if !overdue => last = reason,
            Ok(Err(reason)) => fail(caller, timeout, &reason),
            Err(_) => fail(caller, timeout, &last),
        }
        sleep_until(deadline.min(Instant::now() + INTERVAL)).await;
    }
}

fn fail(caller: &Location<'_>, timeout: Duration, last: &str) -> ! {
    panic!("{caller}: not within {timeout:?}; when last looked at: {last}")
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
    #[should_panic(expected = "not within 1s; when last looked at: still empty")]
    async fn a_timeout_tells_what_was_last_seen() {
        eventually(SECOND, || async { Err::<(), _>("still empty") }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 1s; when last looked at: Some(2) instead of Some(3)")]
    async fn a_timeout_tells_both_values() {
        eventually_eq(SECOND, 1, || async { 1 }).await;
        eventually_eq(SECOND, Some(3), || async { Some(2) }).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "the first look did not end")]
    async fn a_look_that_hangs_is_cut_off() {
        eventually(SECOND, std::future::pending::<bool>).await;
    }
}
