//! Child processes and the signals that terminate them.

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};

pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether this process was interrupted by Ctrl-C or a signal. A second Ctrl-C terminates it
/// immediately.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn install() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        let register = || -> std::io::Result<()> {
            use signal_hook::consts::{SIGINT, SIGTERM};
            use signal_hook::flag;
            // Register this first, or the first signal would already find the flag set.
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

pub(crate) fn run_in_foreground(command: &mut Command, interrupt: &Interrupt) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    // Ctrl-C reaches both processes, but SIGTERM only reaches us, so forward it. Without signals,
    // the console's own event terminates the child.
    wait_for(&mut child, interrupt, |child| {
        terminate(child, Reach::Process);
    })
    .with_context(|| format!("cannot wait for {name}"))
}

/// Waits until a child exits. If this process is interrupted, calls `on_interrupt` once and keeps
/// waiting.
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Process,
    /// The process group led by the child.
    #[cfg_attr(
        not(feature = "control-plane"),
        expect(dead_code, reason = "only `rbuilder dev` starts groups")
    )]
    Group,
}

/// Asks a child to stop: with SIGTERM, or a group with SIGINT, like Ctrl-C. An operator that gets
/// SIGTERM keeps serving its webhooks for a few seconds, as in a cluster. Returns false on platforms
/// without signals.
pub(crate) fn terminate(child: &Child, reach: Reach) -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // If this fails, the child has already exited.
            let _ = match reach {
                Reach::Process => kill_process(id, Signal::TERM),
                Reach::Group => kill_process_group(id, Signal::INT),
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
