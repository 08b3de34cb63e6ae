//! Records profiles using rpprof.

mod encode;

use std::fs::File;
use std::io;
use std::time::Duration;

use http::StatusCode;
use rpprof::{ProfilerGuard, ProfilerGuardBuilder};
use tokio::task::spawn_blocking;

use super::super::{Answer, runtime};
use super::memory;
use crate::memory_limit;
use crate::shutdown::Shutdown;

/// Samples per second of CPU time. An odd number avoids lockstep with periodic timers, whose work
/// would otherwise be sampled either every time or never.
const FREQUENCY: i32 = 99;

/// Don't take samples in these libraries, since they may hold a lock that unwinding needs.
const NOT_SAMPLED: [&str; 5] = ["libc.so", "libpthread", "libgcc", "ld-linux", "vdso"];

/// Records a profile for the given duration, or until the servers stop.
///
/// Fails if another client is already recording a profile, if there's not enough memory, or if no
/// temporary file can be created.
pub(super) async fn record(duration: Duration, stopped: Option<Shutdown>) -> Result<Vec<u8>, Answer> {
    memory::check(memory_limit::find(), runtime::resident_bytes())?;
    let guard = in_background(start).await?;
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        // Respond immediately, or the request would delay the exit of the process.
        () = requested(stopped) => {}
    }
    in_background(move || finish(&guard)).await
}

async fn requested(stopped: Option<Shutdown>) {
    match stopped {
        Some(stopped) => stopped.requested().await,
        None => std::future::pending().await,
    }
}

/// For functions that would block a tokio worker for too long.
async fn in_background<T: Send + 'static>(
    function: impl FnOnce() -> Result<T, Answer> + Send + 'static,
) -> Result<T, Answer> {
    let ended = spawn_blocking(function).await;
    ended.unwrap_or_else(|error| Err(failed(&error)))
}

fn start() -> Result<ProfilerGuard<'static>, Answer> {
    check_temporary_files()?;
    let builder = ProfilerGuardBuilder::new()
        .frequency(FREQUENCY)
        .blocklist(&NOT_SAMPLED);
    builder.build().map_err(|error| match error {
        rpprof::Error::Running => Answer::error(StatusCode::CONFLICT, "another profile is being recorded"),
        error => failed(&error),
    })
}

fn finish(guard: &ProfilerGuard<'_>) -> Result<Vec<u8>, Answer> {
    let report = guard.report().build().map_err(|error| failed(&error))?;
    Ok(encode::encode(&report))
}

fn failed(error: &dyn std::error::Error) -> Answer {
    Answer::error(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("failed to record a profile: {error}"),
    )
}

/// rpprof writes to a temporary file if there are too many samples, but only tries to create it
/// once per process. Check upfront that this is going to work.
fn check_temporary_files() -> Result<(), Answer> {
    let directory = std::env::temp_dir();
    let path = directory.join(format!("rbuilder-profile-{}", std::process::id()));
    let created = File::create_new(&path).and_then(|_| std::fs::remove_file(&path));
    created.map_err(|error: io::Error| {
        let directory = directory.display();
        Answer::error(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "a profile needs a temporary file, and {directory} takes none: {error}; set TMPDIR to a directory that the \
                 process may write to, such as /dev/shm in a container"
            ),
        )
    })
}
