//! The memory that reviews may hold: a share of the memory of the process, in two pools.
//!
//! Bodies are held in one pool while they arrive and until they are answered. Decoding them, and
//! answers until they are sent, need the other. A complete body therefore never waits for one that
//! is incomplete, and two of them cannot wait for each other.
//!
//! # Example: clients that hold memory and do nothing
//! The pool of bodies has 20 MiB. Three clients send 6 MiB each and stop. A review of 4 MiB then
//! finds 2 MiB, so the connection of the client that has kept the server waiting for longest is
//! closed, if that is more than a second. Without that second, a busy process would close
//! connections whose bytes it has not read yet.

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
/// Bytes of a permit: a semaphore hands out at most `u32::MAX` at once.
const UNIT: usize = 1024;
/// Time in which a client must react before its connection may be closed for the memory that it
/// holds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time that a review waits for memory, within the 10 s for which the API server waits for most
/// webhooks.
const MAX_WAIT: Duration = Duration::from_secs(8);
/// The most memory for reviews by default. It is what the largest ConversionReview needs.
const MAX_DEFAULT: usize = 1024 * MEBIBYTE;
/// The memory for reviews where the memory of the machine is unknown.
const UNKNOWN_DEFAULT: usize = 512 * MEBIBYTE;
/// The least memory for reviews: enough for a small one.
const MIN_TOTAL: usize = MEBIBYTE;

/// Returns the memory that reviews may hold by default, in bytes: half of the memory limit of the
/// process, at most 1 GiB.
pub(super) fn default_total() -> usize {
    memory_limit::find().map_or(UNKNOWN_DEFAULT, |limit| {
        usize::try_from(limit / 2).map_or(MAX_DEFAULT, |half| half.min(MAX_DEFAULT))
    })
}

/// The memory that the reviews of a server may hold.
pub(super) struct Memory {
    total: usize,
    /// Bodies, from their first byte to the answer: a third.
    pub(super) bodies: Arc<Pool>,
    /// Decoded objects, and answers until they are sent: two thirds.
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

    /// Returns the rejection of a review that never fits, for this reason.
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

/// A number of bytes that reviews share. Reviews that need more than is free wait in order.
pub(super) struct Pool {
    size: usize,
    free: Arc<Semaphore>,
    holders: Mutex<BTreeMap<u64, Holder>>,
    next: AtomicU64,
}

/// A review that holds a part of a pool.
struct Holder {
    connection: Connection,
    units: usize,
    /// It waits for more, and may hold this part for as long as others wait for it.
    is_waiting: bool,
}

/// A part of a pool. Dropping it returns the part.
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

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns an empty part for a request on this connection.
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

    /// Closes connections whose clients have kept the server waiting for longest, until they return
    /// `units`.
    fn close_slow(&self, units: usize) {
        let now = Instant::now();
        let holders = self.holders();
        let mut slow: Vec<(Instant, &Holder)> = holders
            .values()
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

    /// Returns `true` if everything that is held is held by reviews that wait for more.
    fn is_stuck(&self) -> bool {
        let holders = self.holders();
        let mut holding = holders.values().filter(|holder| holder.units > 0).peekable();
        holding.peek().is_some() && holding.all(|holder| holder.is_waiting)
    }
}

impl Reservation {
    /// Adds bytes, waiting for them in order if they are not free.
    ///
    /// # Errors
    /// After eight seconds, and at once if all others who hold a part wait as well.
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

    /// Adds bytes if they are free.
    #[must_use]
    pub(super) fn try_grow(&mut self, bytes: usize) -> bool {
        let units = u32::try_from(bytes.div_ceil(UNIT));
        let free = Arc::clone(&self.pool.free);
        let permit = units
            .ok()
            .and_then(|units| free.try_acquire_many_owned(units).ok());
        permit.map(|permit| self.add(permit)).is_some()
    }

    /// Returns everything but these bytes.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let units = bytes.div_ceil(UNIT);
        let Some(permit) = &mut self.permit else { return };
        let excess = permit.num_permits().saturating_sub(units);
        drop(permit.split(excess));
        let left = permit.num_permits();
        self.update(|holder| holder.units = left);
    }

    /// Returns the size in bytes.
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
        // In this order, so that what is in use always has a holder.
        self.permit = None;
        self.pool.holders().remove(&self.id);
    }
}
