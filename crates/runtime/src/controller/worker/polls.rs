//! Finds reconciles that block their thread, e.g. in `std::thread::sleep`.
//!
//! While a reconcile doesn't reach an `.await`, its thread runs nothing else, so a few of them stop
//! everything that uses the same runtime. Nothing in that runtime could report this. A thread of
//! its own looks twice a second for a reconcile that has been polled for too long.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::object::Key;

/// Time after which a reconcile that doesn't reach an `.await` is logged.
const LIMIT: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(500);

/// The reconciles of a manager.
#[derive(Default)]
pub(crate) struct Polls {
    slots: Arc<Slots>,
    watcher: OnceLock<Thread>,
}

type Slots = Mutex<Vec<Weak<Slot>>>;

/// What a worker is doing.
#[derive(Default)]
pub(crate) struct Slot {
    /// The current or the last reconcile.
    reconcile: Mutex<Reconcile>,
    /// When the current poll began, in milliseconds of [`clock`]. Zero between polls.
    began: AtomicU64,
    /// The value of `began` for the poll that was logged last.
    logged: AtomicU64,
}

/// The texts keep their memory, so that a reconcile costs no allocation.
#[derive(Default)]
struct Reconcile {
    controller: String,
    kind: String,
    /// Empty for cluster-scoped objects.
    namespace: String,
    name: String,
    id: String,
}

impl Reconcile {
    fn set(&mut self, controller: &str, kind: &str, key: &Key, id: &str) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        for (text, value) in [
            (&mut self.controller, controller),
            (&mut self.kind, kind),
            (&mut self.namespace, namespace),
            (&mut self.name, &key.name),
            (&mut self.id, id),
        ] {
            text.clear();
            text.push_str(value);
        }
    }
}

impl Polls {
    pub(crate) fn slot(&self) -> Arc<Slot> {
        let slot = Arc::default();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push(Arc::downgrade(&slot));
        slot
    }

    /// Starts the thread, which ends when this is dropped. No-op if it was started before.
    pub(crate) fn watch(&self) {
        self.watcher.get_or_init(|| {
            let slots = Arc::downgrade(&self.slots);
            let watch = move || {
                while let Some(slots) = slots.upgrade() {
                    log_blocked(&slots);
                    drop(slots);
                    thread::park_timeout(INTERVAL);
                }
            };
            let builder = thread::Builder::new().name("rbuilder-polls".to_owned());
            match builder.spawn(watch) {
                Ok(thread) => thread.thread().clone(),
                Err(error) => {
                    tracing::warn!(%error, "reconciles that block their thread will not be logged");
                    thread::current()
                }
            }
        });
    }
}

impl Drop for Polls {
    fn drop(&mut self) {
        // The thread must find that its `Weak` is dangling.
        self.slots = Arc::default();
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }
}

impl Slot {
    /// Sets the reconcile that [`Self::follow`] is about to run.
    pub(super) fn begin(&self, controller: &str, kind: &str, key: &Key, id: &str) {
        self.lock().set(controller, kind, key, id);
    }

    /// Runs a reconcile, and keeps track of how long each poll takes.
    pub(super) async fn follow<T>(&self, running: impl Future<Output = T>) -> T {
        let mut running = pin!(running);
        poll_fn(|context| {
            self.began.store(clock(), Ordering::Release);
            let polled = running.as_mut().poll(context);
            self.began.store(0, Ordering::Release);
            polled
        })
        .await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Reconcile> {
        self.reconcile.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a poll once.
    fn log_if_blocked(&self) {
        let began = self.began.load(Ordering::Acquire);
        let lasts = Duration::from_millis(clock().saturating_sub(began));
        if began == 0 || lasts < LIMIT || self.logged.swap(began, Ordering::Relaxed) == began {
            return;
        }
        let reconcile = self.lock();
        let namespace = Some(&*reconcile.namespace).filter(|namespace| !namespace.is_empty());
        tracing::warn!(
            controller = reconcile.controller,
            kind = reconcile.kind,
            namespace,
            object_name = reconcile.name,
            reconcile_id = reconcile.id,
            ?lasts,
            "reconcile blocks its thread, other work may have to wait; use `.await`, or tokio::task::spawn_blocking"
        );
    }
}

fn log_blocked(slots: &Slots) {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    slots.retain(|slot| {
        let slot = slot.upgrade();
        if let Some(slot) = &slot {
            slot.log_if_blocked();
        }
        slot.is_some()
    });
}

/// In milliseconds, never zero. Unlike tokio's clock, tests can't pause it.
fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::LogBuffer;

    fn slot_of(polls: &Polls) -> Arc<Slot> {
        let slot = polls.slot();
        let key = Key {
            namespace: Some("shop".into()),
            name: "slow".into(),
        };
        slot.begin("memo", "Memo", &key, "0123");
        slot
    }

    #[tokio::test]
    async fn poll_that_blocks_its_thread_is_logged_once() {
        let polls = Polls::default();
        let slot = slot_of(&polls);
        let (log, _guard) = LogBuffer::start();
        let blocked = slot.follow(async {
            thread::sleep(LIMIT / 2);
            log_blocked(&polls.slots);
            assert_eq!(log.text(), "");
            thread::sleep(LIMIT);
            log_blocked(&polls.slots);
            log_blocked(&polls.slots);
        });
        blocked.await;
        let text = log.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in [
            "reconcile blocks its thread",
            "memo",
            "Memo",
            "shop",
            "slow",
            "0123",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[tokio::test]
    async fn reconcile_that_waits_is_not_logged() {
        let polls = Polls::default();
        let slot = slot_of(&polls);
        let (log, _guard) = LogBuffer::start();
        let look = async {
            tokio::time::sleep(LIMIT + LIMIT / 2).await;
            log_blocked(&polls.slots);
        };
        tokio::join!(slot.follow(tokio::time::sleep(LIMIT * 2)), look);
        assert_eq!(log.text(), "");
    }
}
