//! Thread-local clock and RNG of the running simulation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Once;

use jiff::{SignedDuration, Timestamp};
use rbuilder_testing::Random;
use tokio::time::Instant;

use crate::network::Connection;

thread_local! {
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// State that is available to code running inside a simulation.
struct Context {
    wall: Timestamp,
    start: Instant,
    random: Random,
    panics: Vec<String>,
    /// Objects whose most recent reconcile failed, with the error.
    failing: BTreeMap<String, String>,
    /// Connection of the process currently being polled; picked up by [`Remote`](crate::Remote).
    connection: Option<Connection>,
}

#[derive(Debug)]
pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = None);
    }
}

/// Enters a simulation context on this thread. Must be called within the run's runtime, because the
/// simulated clock is derived from tokio's paused clock.
pub(crate) fn enter(wall: Timestamp, seed: u64) -> Entered {
    record_panics();
    CURRENT.with_borrow_mut(|current| {
        *current = Some(Context {
            wall,
            start: Instant::now(),
            random: Random::new(seed),
            panics: Vec::new(),
            failing: BTreeMap::new(),
            connection: None,
        });
    });
    Entered(())
}

/// Returns the current simulated time, or `None` outside of a simulation.
#[must_use]
pub fn now() -> Option<Timestamp> {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref()?;
        let passed = SignedDuration::try_from(context.start.elapsed()).ok()?;
        context.wall.checked_add(passed).ok()
    })
}

/// Returns a number from the simulation's RNG, or `None` outside of a simulation.
#[must_use]
pub fn random() -> Option<u64> {
    CURRENT.with_borrow_mut(|current| Some(current.as_mut()?.random.next()))
}

/// Records the outcome of a reconcile: `error` if it failed, `None` on success. No-op outside of a
/// simulation.
pub fn record_reconcile(object: impl FnOnce() -> String, error: Option<&dyn std::fmt::Display>) {
    CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return };
        match error {
            Some(error) => drop(current.failing.insert(object(), format!("{error:#}"))),
            // Fast path: most reconciles succeed, so don't format the object name.
            None if current.failing.is_empty() => {}
            None => drop(current.failing.remove(&object())),
        }
    });
}

/// Whether the most recent reconcile of any object failed.
pub(crate) fn is_failing() -> bool {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref();
        context.is_some_and(|context| !context.failing.is_empty())
    })
}

pub(crate) fn failing() -> BTreeMap<String, String> {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref();
        context.map(|context| context.failing.clone()).unwrap_or_default()
    })
}

pub(crate) fn connect(connection: &Connection) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.connection = Some(connection.clone());
        }
    });
}

/// Connection of the process currently being polled, or `None` outside of a simulation.
pub(crate) fn connection() -> Option<Connection> {
    CURRENT.with_borrow(|current| current.as_ref()?.connection.clone())
}

pub(crate) fn panics() -> Vec<String> {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref();
        context.map(|context| context.panics.clone()).unwrap_or_default()
    })
}

/// Installs a panic hook that records panics of simulated code instead of printing them.
///
/// Shrinking reproduces the same panic many times, which would flood the terminal; the report
/// contains the message anyway. Panics on other threads are still printed.
fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let recorded = CURRENT.try_with(|current| {
                // The panic may have been raised while the context was borrowed.
                let mut current = current.try_borrow_mut().ok()?;
                current.as_mut()?.panics.push(info.to_string());
                Some(())
            });
            if !matches!(recorded, Ok(Some(()))) {
                print(info);
            }
        }));
    });
}
