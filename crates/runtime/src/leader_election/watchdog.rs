//! Watchdog that exits the process if it is still working after losing its lease.

use std::io;
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::fence::Fence;

/// Time for the process to exit on its own.
pub(crate) const EXIT_GRACE: Duration = Duration::from_secs(1);
/// Maximum delay for writing the log message.
const LOG_GRACE: Duration = Duration::from_millis(100);

/// Starts a thread that exits the process with status 1 if `must_exit` one second after losing the
/// lease. The thread ends when the fence is closed.
///
/// It must be a separate thread because all others might be blocked, e.g. the runtime's threads by
/// a reconcile, or the elector's thread by an exec plugin. A library has no way of stopping a
/// thread, and the next leader is already active.
pub(crate) fn start_watchdog(fence: &Fence, must_exit: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
    let waiting = fence.clone();
    let thread = thread::Builder::new()
        .name("lease-watchdog".to_owned())
        .spawn(move || {
            while waiting.wait_for_end() {
                thread::sleep(EXIT_GRACE);
                // A replica of a sharded operator may have stopped its work, and continue later.
                if waiting.is_lost() && must_exit() {
                    log_exit(&waiting);
                    process::exit(1);
                }
            }
        })?;
    fence.set_watchdog(thread.thread());
    Ok(())
}

/// Uses yet another thread, because a blocked thread may hold the lock of the log.
fn log_exit(fence: &Fence) {
    let fence = fence.clone();
    let (done, logged) = mpsc::channel();
    let log = move || {
        tracing::error!(
            lease = fence.lease(),
            "{} lost and still running after {EXIT_GRACE:?}, exiting",
            fence.purpose()
        );
        let _ = done.send(());
    };
    // If even starting a thread fails, exit without logging.
    let _ = thread::Builder::new().spawn(log);
    let _ = logged.recv_timeout(LOG_GRACE);
}
