//! Compares the queue with a simple model (a list with linear search), using random sequences of
//! operations.

use proptest::prelude::*;
use tokio::time::{Duration, Instant, advance};

use super::{LOW, NORMAL, Priority, Workqueue};
use crate::metrics::Metrics;

type Key = u8;

#[derive(Clone, Copy, Debug)]
enum Step {
    Add(Key, Priority),
    AddAfter(Key, u64, Priority),
    AddFailed(Key, Priority),
    Forget(Key),
    /// A worker takes a key.
    Take,
    /// The worker that started first finishes.
    Done,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6_u8;
    let priority = prop_oneof![3 => Just(NORMAL), 2 => Just(LOW), 1 => -10..10_i32];
    let step = prop_oneof![
        4 => (key.clone(), priority.clone()).prop_map(|(key, priority)| Step::Add(key, priority)),
        2 => (key.clone(), 0..150_000_u64, priority.clone())
            .prop_map(|(key, ms, priority)| Step::AddAfter(key, ms, priority)),
        1 => (key.clone(), priority).prop_map(|(key, priority)| Step::AddFailed(key, priority)),
        1 => key.prop_map(Step::Forget),
        5 => Just(Step::Take),
        4 => Just(Step::Done),
        3 => prop_oneof![0..50_u64, 0..150_000_u64].prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Due time and priority of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    /// In milliseconds since the start.
    at: u64,
    priority: Priority,
    order: u64,
}

/// A request for a key in progress: the due time (if it's delayed) and the priority.
type AgainRequest = (Option<u64>, Priority);

#[derive(Default)]
struct Model {
    now: u64,
    order: u64,
    requests: Vec<(Key, Request)>,
    /// Keys in progress, along with the next request if the key was requested again meanwhile.
    taken: Vec<(Key, Option<AgainRequest>)>,
    failures: Vec<(Key, u32)>,
}

impl Model {
    fn add(&mut self, key: Key, at: u64, priority: Priority) {
        let mut request = Request {
            at,
            priority,
            order: 0,
        };
        if let Some((_, again)) = self.taken.iter_mut().find(|(taken, _)| *taken == key) {
            let later = (at > self.now).then_some(at);
            *again = Some(match *again {
                None => (later, priority),
                Some((before, highest)) => (
                    before.zip(later).map(|(before, at)| before.min(at)),
                    highest.max(priority),
                ),
            });
            return;
        }
        if let Some(index) = self.requests.iter().position(|(other, _)| *other == key) {
            let (_, before) = self.requests[index];
            if before.at <= self.now {
                // The key is already ready, so only a better rank matters. Keep the order among
                // equal ranks.
                if at <= self.now && rank(request) < rank(before) {
                    self.requests[index].1 = Request {
                        order: before.order,
                        ..request
                    };
                }
                return;
            }
            request.at = before.at.min(at);
            request.priority = before.priority.max(priority);
            self.requests.remove(index);
        }
        request.order = self.order;
        self.order += 1;
        self.requests.push((key, request));
    }

    fn take(&mut self) -> Option<Key> {
        let ready = self.requests.iter().filter(|(_, request)| request.at <= self.now);
        let &(key, _) = ready.min_by_key(|(_, request)| (rank(*request), request.order))?;
        self.requests.retain(|(other, _)| *other != key);
        self.taken.push((key, None));
        Some(key)
    }

    fn done(&mut self) -> Option<Key> {
        let (key, again) = (!self.taken.is_empty()).then(|| self.taken.remove(0))?;
        if let Some((later, priority)) = again {
            self.add(key, later.unwrap_or(self.now), priority);
        }
        Some(key)
    }

    fn failed(&mut self, key: Key) -> Duration {
        let before = self.failures.iter().position(|(failed, _)| *failed == key);
        let before = before.map_or(0, |index| self.failures.remove(index).1);
        self.failures.push((key, before + 1));
        let (min, max) = (Duration::from_millis(5), Duration::from_secs(1000));
        (0..before).fold(min, |delay, _| (delay * 2).min(max))
    }
}

/// In milliseconds. The smallest rank comes first.
fn rank(request: Request) -> i64 {
    i64::try_from(request.at).unwrap() - i64::from(request.priority) * 1000
}

/// Returns a ready key, without waiting for one.
async fn poll(queue: &Workqueue<Key>) -> Option<Key> {
    let next = tokio::time::timeout(Duration::ZERO, queue.next()).await;
    next.ok().flatten()
}

async fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let queue = Workqueue::new(Metrics::new().queue("model"));
    let mut model = Model::default();
    let start = Instant::now();
    let ms = |delay: Duration| u64::try_from(delay.as_millis()).unwrap();
    for step in steps {
        model.now = ms(start.elapsed());
        match step {
            Step::Add(key, priority) => {
                queue.add(key, priority);
                model.add(key, model.now, priority);
            }
            Step::AddAfter(key, delay, priority) => {
                queue.add_after(key, Duration::from_millis(delay), priority);
                model.add(key, model.now + delay, priority);
            }
            Step::AddFailed(key, priority) => {
                let (delay, expected) = (queue.add_failed(key, priority), model.failed(key));
                prop_assert_eq!(delay, expected, "backoff of {}", key);
                model.add(key, model.now + ms(delay), priority);
            }
            Step::Forget(key) => {
                queue.forget(&key);
                model.failures.retain(|(failed, _)| *failed != key);
            }
            Step::Take => {
                let found = poll(&queue).await;
                // If no key was ready, `poll` has advanced the paused clock.
                model.now = ms(start.elapsed());
                prop_assert_eq!(found, model.take());
            }
            Step::Done => {
                if let Some(key) = model.done() {
                    queue.done(&key);
                }
            }
            Step::Wait(delay) => advance(Duration::from_millis(delay)).await,
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn queue_behaves_like_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(steps))?;
    }

    /// A key waits at most a second per missing point of priority, even if new keys keep arriving.
    #[test]
    fn low_priority_key_is_not_starved(priority in -100..0_i32, every_ms in 1..900_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let waited = runtime.block_on(async {
            let queue = Workqueue::new(Metrics::new().queue("model"));
            let start = Instant::now();
            queue.add(0, priority);
            for new in 1_u32.. {
                queue.add(new, NORMAL);
                let next = queue.next().await.unwrap();
                queue.done(&next);
                if next == 0 {
                    break;
                }
                advance(Duration::from_millis(every_ms)).await;
            }
            start.elapsed()
        });
        let limit = Duration::from_secs(priority.unsigned_abs().into()) + Duration::from_millis(2 * every_ms);
        prop_assert!(waited <= limit, "{:?} of {:?}", waited, limit);
    }
}
