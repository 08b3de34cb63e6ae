//! Logs panics as a single line.
//!
//! By default, Rust prints panics as multiple lines of plain text. If the log is JSON, collectors
//! cannot parse that. It also does not tell us which object was being reconciled.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::text::{join_lines, panic_message};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Logs each panic as a line of level `ERROR`, instead of the default output.
///
/// A hook installed by the operator (e.g. to report crashes) is called after that. We only call the
/// default hook if the filter drops our line, so that a panic never goes unnoticed.
pub(super) fn log_panics() {
    let previous = take_hook();
    // We've just removed the installed hook, so this returns the default.
    let default = take_hook();
    let replaces = is_same_hook(&previous, &default);
    set_hook(Box::new(move |info| {
        if !log_panic(info) || !replaces {
            previous(info);
        }
    }));
}

/// Compares the functions. We don't have to compare captured state, since the default hook doesn't
/// have any.
fn is_same_hook(a: &Hook, b: &Hook) -> bool {
    std::ptr::eq(&raw const **a, &raw const **b)
}

/// Returns `false` if the filter drops the message.
fn log_panic(info: &PanicHookInfo<'_>) -> bool {
    if !tracing::enabled!(tracing::Level::ERROR) {
        return false;
    }
    let error = join_lines(panic_message(info.payload()));
    let location = info.location().map(tracing::field::display);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    // This only captures something if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` is set.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| join_lines(&backtrace.to_string()));
    tracing::error!(location, thread, backtrace, %error, "panicked");
    true
}
