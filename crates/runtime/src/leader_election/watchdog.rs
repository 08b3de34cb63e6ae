//! Exits a process that has lost its lease.

use std::io;
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::fence::Fence;

/// How long after the loss of the lease the process may exit on its own.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How long to wait for the log line before the exit.
const LOG_GRACE: Duration = Duration::from_millis(100);

/// Starts a thread that exits the process with status 1 if it still runs a second after the lease
/// was lost. The thread ends when the fence is closed.
///
/// It must be a separate thread because all others may be blocked: the runtime's by a reconcile,
/// the elector's by a kubeconfig command that fetches credentials. The library cannot stop a
/// thread, and the next leader is already acting.
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

/// Logs the exit from another thread, because a blocked thread may hold the lock of the log.
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
    // Exiting matters more than logging it, so it does not depend on whether this thread starts
    // either.
    let _ = thread::Builder::new().spawn(log);
    let _ = logged.recv_timeout(LOG_GRACE);
}
