//! Child processes and the signals that end them.

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Interval at which a child is asked whether it has ended.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A note of whether this process was asked to end, by Ctrl-C or a signal. From the second time on, Ctrl-C ends it at once.
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
    // Where there is no signal, the console's own event ends it.
    wait_for(&mut child, interrupt, |child| {
        terminate(child, Reach::Process);
    })
    .with_context(|| format!("cannot wait for {name}"))
}

/// Waits for the end of a child. Calls `on_interrupt` once when this process is asked to end, and goes on waiting.
///
/// # Errors
/// Fails if the system cannot say whether the child has ended.
pub(crate) fn wait_for(
    child: &mut Child,
    interrupt: &Interrupt,
    on_interrupt: impl FnOnce(&mut Child),
) -> std::io::Result<ExitStatus> {
    let mut on_interrupt = Some(on_interrupt);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.is_asked()
            && let Some(tell) = on_interrupt.take()
        {
            tell(child);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The processes that a signal reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The child.
    Process,
    /// The group that the child leads.
    #[cfg_attr(
        not(feature = "control-plane"),
        expect(dead_code, reason = "only `rbuilder dev` starts groups")
    )]
    Group,
}

/// Sends SIGTERM to a child, where the system has signals. Returns whether it has.
pub(crate) fn terminate(child: &Child, reach: Reach) -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // An error means that it has ended.
            let _ = match reach {
                Reach::Process => kill_process(id, Signal::TERM),
                Reach::Group => kill_process_group(id, Signal::TERM),
            };
        }
        true
    }
    #[cfg(not(unix))]
    {
        let _ = (child, reach);
        false
    }
}
