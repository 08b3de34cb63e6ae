//! The clock and the random numbers of the simulation that runs on this thread.

use std::cell::RefCell;
use std::sync::Once;

use jiff::{SignedDuration, Timestamp};
use rbuilder_testing::Random;
use tokio::time::Instant;

use crate::network::Connection;

thread_local! {
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// What a simulation gives to the code that runs in it.
struct Context {
    wall: Timestamp,
    start: Instant,
    random: Random,
    panics: Vec<String>,
    /// The connection of the running process.
    connection: Option<Connection>,
}

/// Ends the context when it is dropped.
#[derive(Debug)]
pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = None);
    }
}

/// Starts the context of a run on this thread, inside of its runtime.
pub(crate) fn enter(wall: Timestamp, seed: u64) -> Entered {
    record_panics();
    CURRENT.with_borrow_mut(|current| {
        *current = Some(Context {
            wall,
            start: Instant::now(),
            random: Random::new(seed),
            panics: Vec::new(),
            connection: None,
        });
    });
    Entered(())
}

/// Returns the simulated time; `None` outside of a simulation.
#[must_use]
pub fn now() -> Option<Timestamp> {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref()?;
        let passed = SignedDuration::try_from(context.start.elapsed()).ok()?;
        context.wall.checked_add(passed).ok()
    })
}

/// Returns the next random number of the simulation; `None` outside of a simulation.
#[must_use]
pub fn random() -> Option<u64> {
    CURRENT.with_borrow_mut(|current| Some(current.as_mut()?.random.next()))
}

/// Sets the connection of the running process.
pub(crate) fn connect(connection: &Connection) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.connection = Some(connection.clone());
        }
    });
}

/// Returns the connection of the running process; `None` outside of a simulation.
pub(crate) fn connection() -> Option<Connection> {
    CURRENT.with_borrow(|current| current.as_ref()?.connection.clone())
}

/// Returns the messages of the panics in this run so far.
pub(crate) fn panics() -> Vec<String> {
    CURRENT.with_borrow(|current| {
        let context = current.as_ref();
        context.map(|context| context.panics.clone()).unwrap_or_default()
    })
}

/// Records panics on the thread of a simulation instead of printing them: a run is repeated many
/// times, and the report names them.
fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let recorded = CURRENT.try_with(|current| {
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
