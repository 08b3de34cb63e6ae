//! Logs panics as single lines.
//!
//! Rust prints a panic as several lines of plain text. A collector of JSON lines cannot parse
//! these, and they do not name the object that was being reconciled.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::text::{join_lines, panic_message};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Logs each panic as one line at level `ERROR`, instead of Rust's own message.
///
/// A hook that the operator has installed, such as a crash reporter, is called after logging the
/// line. Rust's default hook is only called if the log filter drops the line, so that no panic is
/// silent.
pub(super) fn log_panics() {
    let previous = take_hook();
    // No hook is installed now, so this returns Rust's default hook.
    let default = take_hook();
    let replaces = is_same_hook(&previous, &default);
    set_hook(Box::new(move |info| {
        if !log_panic(info) || !replaces {
            previous(info);
        }
    }));
}

/// Returns `true` if both hooks are the same function. Captured state is not compared, as the
/// default hook captures nothing.
fn is_same_hook(a: &Hook, b: &Hook) -> bool {
    std::ptr::eq(&raw const **a, &raw const **b)
}

/// Logs a panic unless the log filter drops it.
///
/// Returns `true` if it was logged.
fn log_panic(info: &PanicHookInfo<'_>) -> bool {
    if !tracing::enabled!(tracing::Level::ERROR) {
        return false;
    }
    let error = join_lines(panic_message(info.payload()));
    let location = info.location().map(tracing::field::display);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    // Like Rust, only if RUST_BACKTRACE or RUST_LIB_BACKTRACE is set.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| join_lines(&backtrace.to_string()));
    tracing::error!(location, thread, backtrace, %error, "panicked");
    true
}
