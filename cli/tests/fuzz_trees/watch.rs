//! Aborts the process if a round hangs or exhausts the memory, because nothing else can.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// In bytes, for one round.
const MOST: u64 = 3 << 30;

const IDLE: u64 = u64::MAX;

/// Knows the seed of the current round.
pub(crate) struct Watch {
    seed: Arc<AtomicU64>,
}

impl Watch {
    pub(crate) fn start(longest: Duration) -> Watch {
        let seed = Arc::new(AtomicU64::new(IDLE));
        let watched = Arc::clone(&seed);
        std::thread::spawn(move || {
            let mut round = (IDLE, Instant::now());
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let now = watched.load(Ordering::Relaxed);
                if now != round.0 {
                    round = (now, Instant::now());
                }
                let reason = match (now, memory()) {
                    (IDLE, _) => continue,
                    (_, Some(bytes)) if bytes > MOST => format!("takes {} MiB", bytes >> 20),
                    // Since a round only has a few commands, it can't take this long.
                    _ if round.1.elapsed() > longest * 5 => "does not end".to_owned(),
                    _ => continue,
                };
                eprintln!("RBUILDER_FUZZ_SEED={now} {reason}");
                std::process::abort();
            }
        });
        Watch { seed }
    }

    pub(crate) fn begin(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz_trees.seed");
        std::fs::write(file, format!("{seed}\n")).expect("the folder for the tests' files");
    }

    pub(crate) fn end(&self) {
        self.seed.store(IDLE, Ordering::Relaxed);
    }
}

/// Returns `None` if the system doesn't report the memory.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
