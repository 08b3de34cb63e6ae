//! Logs panics as a single line.
//!
//! By default, Rust prints panics as multiple lines of plain text. If the log is JSON, collectors
//! cannot parse that. It also does not tell us which object was being reconciled.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::text::{join_lines, panic_message};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Logs each panic as a line of level `ERROR`, which replaces the default output.
///
/// If the operator has installed a hook (e.g. to report crashes), it's called after that. The
/// default hook is only called if the line is dropped by the filter. This way, a panic never goes
/// unnoticed.
pub(super) fn log_panics() {
    let previous = take_hook();
    // This returns the default hook, because we have just removed the installed one.
    let default = take_hook();
    let replaces = is_same_hook(&previous, &default);
    set_hook(Box::new(move |info| {
        if !log_panic(info) || !replaces {
            previous(info);
        }
    }));
}

/// Returns `true` if both hooks are the same function. There is no need to compare captured state,
/// since the default hook doesn't have any.
fn is_same_hook(a: &Hook, b: &Hook) -> bool {
    std::ptr::eq(&raw const **a, &raw const **b)
}

/// Logs a panic. Returns `false` if it was dropped by the filter.
fn log_panic(info: &PanicHookInfo<'_>) -> bool {
    if !tracing::enabled!(tracing::Level::ERROR) {
        return false;
    }
    let error = join_lines(panic_message(info.payload()));
    let location = info.location().map(tracing::field::display);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    // Only captured if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` is set.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| join_lines(&backtrace.to_string()));
    tracing::error!(location, thread, backtrace, %error, "panicked");
    true
}
