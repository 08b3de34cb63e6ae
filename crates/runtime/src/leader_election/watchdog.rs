//! Watchdog that will exit the process if it is still running after losing its lease.

use std::io;
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::fence::Fence;

/// The process gets this long to exit on its own.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How long we wait for the log message.
const LOG_GRACE: Duration = Duration::from_millis(100);

/// Starts a thread which exits the process with status 1 if it is still running one second after it
/// has lost the lease. The thread ends when the fence is closed.
///
/// We need a separate thread for this since all others might be blocked, e.g. the threads of the
/// runtime by a reconcile, and the one of the elector by an exec plugin. There's no way for a
/// library to stop a thread, and the next leader is already active.
pub(crate) fn start_watchdog(fence: &Fence) -> io::Result<()> {
    let waiting = fence.clone();
    let thread = thread::Builder::new()
        .name("lease-watchdog".to_owned())
        .spawn(move || {
            if waiting.wait_for_end() {
                thread::sleep(EXIT_GRACE);
                log_exit(waiting.lease());
                process::exit(1);
            }
        })?;
    fence.set_watchdog(thread.thread());
    Ok(())
}

/// Uses yet another thread, because a thread that's blocked may hold the lock of the log.
fn log_exit(lease: &str) {
    let lease = lease.to_owned();
    let (done, logged) = mpsc::channel();
    let log = move || {
        tracing::error!(
            lease,
            "leader election lost and still running after {EXIT_GRACE:?}, exiting"
        );
        let _ = done.send(());
    };
    // If we can't even start a thread, just exit without logging.
    let _ = thread::Builder::new().spawn(log);
    let _ = logged.recv_timeout(LOG_GRACE);
}
