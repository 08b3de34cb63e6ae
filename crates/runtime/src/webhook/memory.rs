//! Limits the memory usage of reviews to a share of the process's memory, which is split into two
//! pools.
//!
//! The first pool is for request bodies, from their first byte until the response. The second is
//! for decoding them, and for responses until they were sent. The separation ensures that a
//! complete body never waits for an incomplete one, and that two complete bodies cannot deadlock.
//!
//! # Example: clients that hold memory and send nothing
//!
//! The pool for bodies has 20 MiB. Three clients send 6 MiB each and then stall. There's a new
//! review of 4 MiB, but only 2 MiB are left, so we close the connection of the client that has
//! stalled the longest, but only if it has stalled for more than a second. Without this minimum, a
//! busy process would close connections merely because it has not got around to reading from them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::routes::Rejection;
use crate::memory_limit;
use crate::server::Connection;

const MEBIBYTE: usize = 1024 * 1024;
/// Bytes per permit of the semaphore. Single bytes aren't possible, because `acquire_many` is
/// limited to `u32::MAX` permits.
const UNIT: usize = 1024;
/// How long a client may stall before its connection can be closed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Timeout for a review to get memory. For most webhooks, the API server only waits 10 s.
const MAX_WAIT: Duration = Duration::from_secs(8);
/// Upper bound for the default, large enough for the biggest ConversionReview.
const MAX_DEFAULT: usize = 1024 * MEBIBYTE;
/// Default if the machine's memory is unknown.
const UNKNOWN_DEFAULT: usize = 512 * MEBIBYTE;
/// Lower bound for the total, large enough for small reviews.
const MIN_TOTAL: usize = MEBIBYTE;

/// Half of the process's memory limit, but at most 1 GiB.
pub(super) fn default_total() -> usize {
    memory_limit::find().map_or(UNKNOWN_DEFAULT, |limit| {
        usize::try_from(limit / 2).map_or(MAX_DEFAULT, |half| half.min(MAX_DEFAULT))
    })
}

pub(super) struct Memory {
    total: usize,
    /// A third of the total. Holds request bodies until their response.
    pub(super) bodies: Arc<Pool>,
    /// Two thirds of the total. Holds decoded objects, and responses until they were sent.
    pub(super) work: Arc<Pool>,
}

impl Memory {
    pub(super) fn new(total: usize) -> Self {
        let total = total.max(MIN_TOTAL);
        let bodies = total / 3;
        Self {
            total,
            bodies: Pool::new(bodies),
            work: Pool::new(total - bodies),
        }
    }

    pub(super) fn too_large(&self, reason: &str) -> Rejection {
        let total = self.total.div_ceil(MEBIBYTE);
        Rejection::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "{reason}; all reviews together may hold {total} MiB, by default half of the memory limit of the \
                 container: raise that limit, or set `Manager::webhook_memory`\n"
            ),
        )
    }
}

/// Memory that reviews share. Reviews that need more than what's left wait in FIFO order.
pub(super) struct Pool {
    size: usize,
    free: Arc<Semaphore>,
    holders: Mutex<BTreeMap<u64, Holder>>,
    next: AtomicU64,
}

struct Holder {
    connection: Connection,
    units: usize,
    /// Set while the review is waiting for more memory. Others may be waiting for the memory it
    /// holds.
    is_waiting: bool,
}

pub(super) struct Reservation {
    pool: Arc<Pool>,
    id: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            size,
            free: Arc::new(Semaphore::new(size / UNIT)),
            holders: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn enter(self: &Arc<Self>, connection: Connection) -> Reservation {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let holder = Holder {
            connection,
            units: 0,
            is_waiting: false,
        };
        self.holders().insert(id, holder);
        Reservation {
            pool: Arc::clone(self),
            id,
            permit: None,
        }
    }

    fn holders(&self) -> MutexGuard<'_, BTreeMap<u64, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes connections of slow clients until `units` are freed, starting with the client that
    /// has kept us waiting the longest.
    fn close_slow(&self, units: usize) {
        let now = Instant::now();
        let holders = self.holders();
        let mut slow: Vec<(Instant, &Holder)> = holders
            .values()
            // Closing a connection that holds no memory wouldn't free any.
            .filter(|holder| holder.units > 0)
            .filter_map(|holder| Some((holder.connection.kept_waiting_since()?, holder)))
            .filter(|(since, _)| now.saturating_duration_since(*since) >= PATIENCE)
            .collect();
        slow.sort_by_key(|(since, _)| *since);
        let mut returned = 0;
        for (_, holder) in slow {
            if returned >= units {
                break;
            }
            holder.connection.close();
            returned += holder.units;
        }
    }

    /// Returns `true` if all holders of memory are waiting for more, so that none will be released.
    fn is_stuck(&self) -> bool {
        let holders = self.holders();
        let mut holding = holders.values().filter(|holder| holder.units > 0).peekable();
        holding.peek().is_some() && holding.all(|holder| holder.is_waiting)
    }
}

impl Reservation {
    /// Waits until more memory is available. Fails after eight seconds, or immediately if all other
    /// reservations are waiting too.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), Rejection> {
        let units = bytes.div_ceil(UNIT);
        self.set_waiting(true);
        let granted = self.wait_for(units).await;
        self.set_waiting(false);
        let permit = granted.ok_or_else(|| {
            let reason = "the memory for reviews is in use, try again\n";
            Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason)
        })?;
        self.add(permit);
        Ok(())
    }

    /// Returns `false` if the memory isn't available right now.
    #[must_use]
    pub(super) fn try_grow(&mut self, bytes: usize) -> bool {
        let units = u32::try_from(bytes.div_ceil(UNIT));
        let free = Arc::clone(&self.pool.free);
        let permit = units
            .ok()
            .and_then(|units| free.try_acquire_many_owned(units).ok());
        permit.map(|permit| self.add(permit)).is_some()
    }

    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let units = bytes.div_ceil(UNIT);
        let Some(permit) = &mut self.permit else { return };
        let excess = permit.num_permits().saturating_sub(units);
        drop(permit.split(excess));
        let left = permit.num_permits();
        self.update(|holder| holder.units = left);
    }

    pub(super) fn size(&self) -> usize {
        self.permit
            .as_ref()
            .map_or(0, |permit| permit.num_permits() * UNIT)
    }

    async fn wait_for(&self, units: usize) -> Option<OwnedSemaphorePermit> {
        let pool = &self.pool;
        let count = u32::try_from(units).ok()?;
        let mut acquire = std::pin::pin!(Arc::clone(&pool.free).acquire_many_owned(count));
        let deadline = Instant::now() + MAX_WAIT;
        // The first check runs immediately, but only if the memory isn't available.
        let mut next = Instant::now();
        loop {
            tokio::select! {
                biased;
                permit = &mut acquire => return permit.ok(),
                () = sleep_until(next) => {}
            }
            if Instant::now() >= deadline || pool.is_stuck() {
                return None;
            }
            pool.close_slow(units);
            // More clients may be slow by then.
            next = Instant::now() + PATIENCE / 4;
        }
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(held) => held.merge(permit),
            held @ None => *held = Some(permit),
        }
        let units = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        self.update(|holder| holder.units = units);
    }

    fn set_waiting(&self, is_waiting: bool) {
        self.update(|holder| holder.is_waiting = is_waiting);
    }

    fn update(&self, update: impl FnOnce(&mut Holder)) {
        if let Some(holder) = self.pool.holders().get_mut(&self.id) {
            update(holder);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Release the memory first: memory in use must have a registered holder.
        self.permit = None;
        self.pool.holders().remove(&self.id);
    }
}
