//! Panics as lines of the log.
//!
//! Rust prints a panic as several lines of plain text, which a collector of JSON lines cannot read, without the object
//! that was being reconciled.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::text::{join_lines, panic_message};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Logs each panic as one line at level `ERROR`, in place of what Rust prints.
///
/// A hook that the operator has installed, such as one that reports crashes, runs as well, after the line. Rust's own
/// prints panics that the log's filter leaves out: none is silent.
pub(super) fn log_panics() {
    let previous = take_hook();
    // There is no hook now, so this is Rust's own.
    let default = take_hook();
    let replaces = is_same_hook(&previous, &default);
    set_hook(Box::new(move |info| {
        if !log_panic(info) || !replaces {
            previous(info);
        }
    }));
}

/// Returns `true` if both hooks are the same function. What a hook holds has no part in it: Rust's own holds nothing.
fn is_same_hook(a: &Hook, b: &Hook) -> bool {
    std::ptr::eq(&raw const **a, &raw const **b)
}

/// Logs a panic, unless the log's filter leaves it out.
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
    // As Rust does: only if RUST_BACKTRACE or RUST_LIB_BACKTRACE asks for it.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| join_lines(&backtrace.to_string()));
    tracing::error!(location, thread, backtrace, %error, "panicked");
    true
}
