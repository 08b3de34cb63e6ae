//! Child processes and the signals that end them.

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Interval at which a child is asked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether this process was asked to end, by Ctrl-C or a signal. From the second time on, Ctrl-C ends it at once.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over the signals of this process.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(crate) fn install() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        let register = || -> std::io::Result<()> {
            use signal_hook::consts::{SIGINT, SIGTERM};
            use signal_hook::flag;
            // Registered first, so that the first signal does not see its own mark.
            flag::register_conditional_shutdown(SIGINT, 130, asked.clone())?;
            flag::register(SIGINT, asked.clone())?;
            flag::register(SIGTERM, asked.clone())?;
            #[cfg(unix)]
            flag::register(signal_hook::consts::SIGHUP, asked.clone())?;
            Ok(())
        };
        register().context("cannot handle signals")?;
        Ok(Interrupt(asked))
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a program that shares the terminal, and waits for its end, also after Ctrl-C, which reaches both. Passes SIGTERM
/// on.
///
/// # Errors
/// Fails if the program cannot be started.
pub(crate) fn run_in_foreground(command: &mut Command, interrupt: &Interrupt) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let mut is_told = false;
    loop {
        if let Some(status) = child
            .try_wait()
            .with_context(|| format!("cannot wait for {name}"))?
        {
            return Ok(status);
        }
        if interrupt.is_asked() && !is_told {
            terminate(&child);
            is_told = true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Asks a process to end. Where there is no signal for that, its own console event does.
fn terminate(child: &Child) {
    #[cfg(unix)]
    if let Some(id) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    #[cfg(not(unix))]
    let _ = child;
}
