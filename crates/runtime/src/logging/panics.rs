//! Logs panics as a single line.
//!
//! By default, Rust prints panics as multiple lines of plain text, which collectors of JSON logs
//! cannot parse, and which don't say which object was being reconciled.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::text::{join_lines, panic_message};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Logs each panic as a line of level `ERROR`, instead of the default output.
///
/// A hook installed by the operator (e.g. to report crashes) is called afterwards. The default hook
/// is only called if the filter drops our line, so that a panic never goes unnoticed.
pub(super) fn log_panics() {
    let previous = take_hook();
    // Returns the default hook, since the installed hook was just removed.
    let default = take_hook();
    let replaces = is_same_hook(&previous, &default);
    set_hook(Box::new(move |info| {
        if !log_panic(info) || !replaces {
            previous(info);
        }
    }));
}

/// Compares the functions only, which is enough since the default hook captures no state.
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
    // Only captures something if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` is set.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| join_lines(&backtrace.to_string()));
    tracing::error!(location, thread, backtrace, %error, "panicked");
    true
}
