//! The workqueue of one controller: which key is next, and when.
//!
//! - A key is in the queue once, however often it is added, and is never handed to two workers at a time; what
//!   is added while a worker has it comes back once, after that worker is done.
//! - Keys come out in the order they were added, higher [`Priority`] first. Waiting raises a key: a point of
//!   priority is worth one second of waiting, so a full queue of fresh keys cannot starve an old one.
//! - Failures of a key back off exponentially, each key on its own, from 5 ms doubling to 1000 s.
//!
//! The queue knows nothing about Kubernetes and keeps time by tokio's clock, which tests can pause.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::QueueMetrics;

/// The delay after a key's first failure.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// The longest delay between two tries of a failing key.
const LAST_BACKOFF: Duration = Duration::from_secs(1000);

/// How urgent a key is; higher comes first.
pub(crate) type Priority = i32;
/// What watch events get.
pub(crate) const NORMAL: Priority = 0;
/// What the objects of a cache's first list get: work that nobody just asked for.
pub(crate) const LOW: Priority = -100;

/// See the module's documentation.
pub(crate) struct Workqueue<T> {
    state: Mutex<State<T>>,
    /// Wakes one waiting worker; it wakes the next one if there is more to do.
    changed: Notify,
    /// Wakes all who wait for the end.
    closing: Notify,
    /// The origin of ranks.
    epoch: Instant,
}

struct State<T> {
    ready: BTreeMap<Rank, T>,
    waiting: BTreeMap<(Instant, u64), T>,
    places: HashMap<T, Place>,
    failures: HashMap<T, u32>,
    next_seq: u64,
    closed: bool,
    metrics: QueueMetrics,
}

/// The order in which ready keys come out, smallest first: the time added, put off by the lack of priority.
///
/// Because waiting counts the same for all, the order of two keys never changes, and a sorted map is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    due_ms: i64,
    seq: u64,
}

/// A key's turn: what decides it, and what is counted of it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    rank: Rank,
    since: Instant,
    priority: Priority,
}

impl Turn {
    fn new(since: Instant, priority: Priority, seq: u64, epoch: Instant) -> Self {
        let rank = Rank {
            due_ms: due_ms(since, epoch, priority),
            seq,
        };
        Self {
            rank,
            since,
            priority,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Ready(Turn),
    Waiting {
        at: Instant,
        seq: u64,
        priority: Priority,
    },
    Processing {
        since: Instant,
        again: Option<Again>,
    },
}

/// What was asked for a key while a worker had it.
#[derive(Clone, Copy, Debug)]
enum Again {
    Now(Priority),
    At(Instant, Priority),
}

impl Again {
    /// What both ask for: the earlier time and the higher priority.
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a, p), Self::At(b, q)) => Self::At(a.min(b), p.max(q)),
            (Self::Now(p) | Self::At(_, p), Self::Now(q) | Self::At(_, q)) => Self::Now(p.max(q)),
        }
    }
}

impl<T: Clone + Eq + Hash> Workqueue<T> {
    pub(crate) fn new(metrics: QueueMetrics) -> Self {
        Self {
            state: Mutex::new(State {
                ready: BTreeMap::new(),
                waiting: BTreeMap::new(),
                places: HashMap::new(),
                failures: HashMap::new(),
                next_seq: 0,
                closed: false,
                metrics,
            }),
            changed: Notify::new(),
            closing: Notify::new(),
            epoch: Instant::now(),
        }
    }

    /// Makes `key` due now.
    pub(crate) fn add(&self, key: T, priority: Priority) {
        self.schedule(key, Again::Now(priority));
    }

    /// Makes `key` due after `delay`, unless it is due earlier anyway.
    pub(crate) fn add_after(&self, key: T, delay: Duration, priority: Priority) {
        let asked = if delay.is_zero() {
            Again::Now(priority)
        } else {
            self.lock().metrics.retried();
            Again::At(Instant::now() + delay, priority)
        };
        self.schedule(key, asked);
    }

    /// Counts a failure of `key` and makes it due after the delay that follows from their number.
    pub(crate) fn add_failed(&self, key: T, priority: Priority) -> Duration {
        let delay = {
            let mut state = self.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = backoff(*failures);
            *failures = failures.saturating_add(1);
            delay
        };
        self.add_after(key, delay, priority);
        delay
    }

    /// Forgets the failures of `key`.
    pub(crate) fn forget(&self, key: &T) {
        self.lock().failures.remove(key);
    }

    /// The next due key, which is the caller's until [`Workqueue::done`]; `None` once the queue is closed.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let due = {
                let mut state = self.lock();
                if state.closed {
                    // The other workers have to hear of it too.
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.promote_due(self.epoch, now);
                if let Some(key) = state.take(now) {
                    if !state.ready.is_empty() || !state.waiting.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.waiting.first_key_value().map(|((at, _), _)| *at)
            };
            match due {
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Gives `key` back: it may be handed out again, and is if it was added meanwhile.
    pub(crate) fn done(&self, key: &T) {
        let mut state = self.lock();
        if let Some(Place::Processing { since, again }) = state.places.get(key).copied() {
            state.places.remove(key);
            state.metrics.done(since);
            if let Some(again) = again {
                state.schedule(key.clone(), again, self.epoch);
                drop(state);
                self.changed.notify_one();
            }
        }
    }

    /// Hands out nothing more. Keys that are due stay where they are.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
        self.closing.notify_waiters();
    }

    /// Resolves when the queue is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let mut closing = std::pin::pin!(self.closing.notified());
            closing.as_mut().enable();
            if self.lock().closed {
                return;
            }
            closing.await;
        }
    }

    /// Counts the keys whose time has come while all workers were busy.
    pub(crate) fn refresh_metrics(&self) {
        self.lock().promote_due(self.epoch, Instant::now());
    }

    /// How many keys are ready for a worker.
    #[cfg(test)]
    pub(crate) fn depth(&self) -> usize {
        let mut state = self.lock();
        state.promote_due(self.epoch, Instant::now());
        state.ready.len()
    }

    fn schedule(&self, key: T, asked: Again) {
        let mut state = self.lock();
        // A key whose time has come keeps the place that it has had since then.
        state.promote_due(self.epoch, Instant::now());
        state.schedule(key, asked, self.epoch);
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that can panic runs while the lock is held, so a poisoned state is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Eq + Hash> State<T> {
    fn schedule(&mut self, key: T, asked: Again, epoch: Instant) {
        match self.places.get(&key).copied() {
            Some(Place::Processing { since, again }) => {
                let again = Some(again.map_or(asked, |before| before.merge(asked)));
                self.places.insert(key, Place::Processing { since, again });
            }
            Some(Place::Ready(turn)) => {
                let (Again::Now(priority) | Again::At(_, priority)) = asked;
                let better = Turn::new(Instant::now(), priority, turn.rank.seq, epoch);
                if matches!(asked, Again::Now(_)) && better.rank < turn.rank {
                    self.ready.remove(&turn.rank);
                    self.metrics.moved(turn.priority, priority);
                    self.insert_ready(
                        key,
                        Turn {
                            since: turn.since,
                            ..better
                        },
                    );
                }
            }
            Some(Place::Waiting { at, seq, priority }) => {
                self.waiting.remove(&(at, seq));
                self.insert(key, Again::At(at, priority).merge(asked), epoch);
            }
            None => self.insert(key, asked, epoch),
        }
    }

    fn insert(&mut self, key: T, asked: Again, epoch: Instant) {
        let seq = self.next_seq;
        self.next_seq += 1;
        match asked {
            Again::Now(priority) => {
                self.metrics.added(priority);
                self.insert_ready(key, Turn::new(Instant::now(), priority, seq, epoch));
            }
            Again::At(at, priority) => {
                self.waiting.insert((at, seq), key.clone());
                self.places.insert(key, Place::Waiting { at, seq, priority });
            }
        }
    }

    fn insert_ready(&mut self, key: T, turn: Turn) {
        self.ready.insert(turn.rank, key.clone());
        self.places.insert(key, Place::Ready(turn));
    }

    /// Makes the keys ready whose time has come; they have been waiting since then.
    fn promote_due(&mut self, epoch: Instant, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            let (at, seq) = *entry.key();
            if at > now {
                break;
            }
            let key = entry.remove();
            let priority = match self.places.get(&key) {
                Some(Place::Waiting { priority, .. }) => *priority,
                _ => NORMAL,
            };
            self.metrics.added(priority);
            self.insert_ready(key, Turn::new(at, priority, seq, epoch));
        }
    }

    fn take(&mut self, now: Instant) -> Option<T> {
        let (_, key) = self.ready.pop_first()?;
        if let Some(Place::Ready(turn)) = self.places.get(&key) {
            self.metrics.taken(turn.priority, turn.since, now);
        }
        let place = Place::Processing {
            since: now,
            again: None,
        };
        self.places.insert(key.clone(), place);
        Some(key)
    }
}

fn due_ms(added: Instant, epoch: Instant, priority: Priority) -> i64 {
    let added = i64::try_from(added.saturating_duration_since(epoch).as_millis()).unwrap_or(i64::MAX / 2);
    added - i64::from(priority) * 1000
}

/// The delay after `failures` earlier failures.
fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF
        .saturating_mul(2u32.saturating_pow(failures))
        .min(LAST_BACKOFF)
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::metrics::Metrics;

    fn queue() -> Workqueue<&'static str> {
        Workqueue::new(Metrics::new().queue("test"))
    }

    /// The next key if one is due now.
    async fn poll(queue: &Workqueue<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(Duration::ZERO, queue.next())
            .await
            .ok()
            .flatten()
    }

    async fn drain(queue: &Workqueue<&'static str>) -> Vec<&'static str> {
        let mut keys = Vec::new();
        while let Some(key) = poll(queue).await {
            queue.done(&key);
            keys.push(key);
        }
        keys
    }

    #[tokio::test(start_paused = true)]
    async fn keys_come_out_in_the_order_they_were_added() {
        let queue = queue();
        for key in ["c", "a", "b"] {
            queue.add(key, NORMAL);
        }
        assert_eq!(drain(&queue).await, ["c", "a", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_often_comes_out_once() {
        let queue = queue();
        for _ in 0..10 {
            queue.add("a", NORMAL);
            queue.add_after("a", Duration::from_secs(1), NORMAL);
        }
        assert_eq!(queue.depth(), 1);
        assert_eq!(drain(&queue).await, ["a"]);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(drain(&queue).await, [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn higher_priority_first_and_adding_again_keeps_the_highest() {
        let queue = queue();
        queue.add("low", LOW);
        queue.add("raised", LOW);
        queue.add("normal", NORMAL);
        queue.add("raised", NORMAL);
        queue.add("normal", LOW);
        assert_eq!(drain(&queue).await, ["raised", "normal", "low"]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_makes_up_for_low_priority() {
        let queue = queue();
        queue.add("old", LOW);
        tokio::time::advance(Duration::from_secs(99)).await;
        queue.add("ahead", NORMAL);
        tokio::time::advance(Duration::from_secs(2)).await;
        queue.add("behind", NORMAL);
        assert_eq!(drain(&queue).await, ["ahead", "old", "behind"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_in_work_is_not_handed_out_and_comes_back_once_when_added_meanwhile() {
        let queue = queue();
        queue.add("a", NORMAL);
        assert_eq!(poll(&queue).await, Some("a"));
        queue.add("a", NORMAL);
        queue.add("a", NORMAL);
        assert_eq!(poll(&queue).await, None);
        queue.done(&"a");
        assert_eq!(drain(&queue).await, ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_key_keeps_its_earliest_time() {
        let queue = queue();
        queue.add_after("a", Duration::from_secs(5), NORMAL);
        queue.add_after("a", Duration::from_secs(2), NORMAL);
        queue.add_after("a", Duration::from_secs(9), NORMAL);
        tokio::time::advance(Duration::from_millis(1999)).await;
        assert_eq!(poll(&queue).await, None);
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(drain(&queue).await, ["a"]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(poll(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_immediate_add_overtakes_a_delay_also_while_in_work() {
        let queue = queue();
        queue.add_after("a", Duration::from_secs(5), NORMAL);
        queue.add("a", NORMAL);
        assert_eq!(poll(&queue).await, Some("a"));
        queue.add("a", NORMAL);
        queue.add_after("a", Duration::from_secs(5), NORMAL);
        queue.done(&"a");
        assert_eq!(drain(&queue).await, ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_per_key_and_success_resets() {
        let queue = queue();
        let delays: Vec<_> = (0..20).map(|_| queue.add_failed("a", NORMAL)).collect();
        let expected = |ms| Duration::from_millis(ms);
        assert_eq!(
            delays[..4],
            [expected(5), expected(10), expected(20), expected(40)]
        );
        assert_eq!(delays[17], Duration::from_millis(5 << 17));
        assert_eq!(delays[18..], [LAST_BACKOFF; 2]);
        assert_eq!(queue.add_failed("b", NORMAL), FIRST_BACKOFF);
        queue.forget(&"a");
        assert_eq!(queue.add_failed("a", NORMAL), FIRST_BACKOFF);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeping_worker_wakes_when_a_delayed_key_is_due() {
        let queue = Arc::new(queue());
        queue.add_after("a", Duration::from_secs(60), NORMAL);
        let started = Instant::now();
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(started.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_wakes_every_worker_and_hands_out_nothing_more() {
        let queue = Arc::new(queue());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for worker in workers {
            assert_eq!(worker.await.unwrap(), None);
        }
        queue.add("a", NORMAL);
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_workers_never_share_a_key_and_lose_none() {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        const KEYS: usize = 20;
        let queue = Arc::new(Workqueue::<usize>::new(Metrics::new().queue("test")));
        let busy: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
        let last_seen: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
        let written: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (queue, busy) = (Arc::clone(&queue), Arc::clone(&busy));
                let (last_seen, written) = (Arc::clone(&last_seen), Arc::clone(&written));
                tokio::spawn(async move {
                    while let Some(key) = queue.next().await {
                        assert_eq!(busy[key].fetch_add(1, SeqCst), 0, "key {key} is in work twice");
                        last_seen[key].store(written[key].load(SeqCst), SeqCst);
                        tokio::task::yield_now().await;
                        busy[key].fetch_sub(1, SeqCst);
                        queue.done(&key);
                    }
                })
            })
            .collect();
        for round in 0..2000 {
            let key = round * 7 % KEYS;
            written[key].fetch_add(1, SeqCst);
            queue.add(key, NORMAL);
            if round % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let all_seen = || (0..KEYS).all(|key| last_seen[key].load(SeqCst) == written[key].load(SeqCst));
        tokio::time::timeout(Duration::from_secs(10), async {
            while !all_seen() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("the last change of each key is seen");
        queue.close();
        for worker in workers {
            worker.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_counted_when_they_become_due_and_while_they_wait() {
        let metrics = Metrics::new();
        let queue = Workqueue::new(metrics.queue("test"));
        let value = |name: &str| {
            let start = format!("workqueue_{name}{{controller=\"test\",name=\"test\"");
            let text = metrics.text();
            let found: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix(&start))
                .collect();
            found.join(" ")
        };
        queue.add("a", LOW);
        queue.add("b", NORMAL);
        queue.add("b", NORMAL);
        queue.add_after("c", Duration::from_secs(2), NORMAL);
        assert_eq!(value("depth"), ",priority=\"-100\"} 1 ,priority=\"0\"} 1");
        assert_eq!(
            (value("adds_total"), value("retries_total")),
            ("} 2".to_owned(), "} 1".to_owned())
        );
        queue.add("a", NORMAL);
        assert_eq!(value("depth"), ",priority=\"-100\"} 0 ,priority=\"0\"} 2");

        tokio::time::advance(Duration::from_secs(3)).await;
        queue.refresh_metrics();
        assert_eq!(value("depth"), ",priority=\"-100\"} 0 ,priority=\"0\"} 3");
        assert_eq!(drain(&queue).await, ["a", "b", "c"]);
        assert_eq!(value("depth"), ",priority=\"-100\"} 0 ,priority=\"0\"} 0");
        assert_eq!(value("adds_total"), "} 3");
        assert_eq!(
            value("queue_duration_seconds_sum"),
            "} 7",
            "3 s for a and b, 1 s for c"
        );
        assert_eq!(value("work_duration_seconds_count"), "} 3");
    }
}
