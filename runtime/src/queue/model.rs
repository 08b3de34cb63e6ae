//! The queue held to a model of it that is too simple to be wrong: a list, searched from end to end.

use proptest::prelude::*;
use tokio::time::{Duration, Instant, advance};

use super::{LAST_BACKOFF, LOW, NORMAL, Priority, Workqueue, backoff};
use crate::metrics::Metrics;

type Key = u8;

/// What somebody does with a queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(Key, Priority),
    AddAfter(Key, u64, Priority),
    AddFailed(Key, Priority),
    Forget(Key),
    /// A worker asks for a key.
    Take,
    /// The worker that has had its key for longest gives it back.
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

/// What is wanted of a key: from when on, and how urgent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wish {
    /// In milliseconds since the beginning.
    at: u64,
    priority: Priority,
    /// The how-manieth wish it is.
    order: u64,
}

/// When, at the earliest, and how urgently. What was wanted at once is due when the worker is done.
type Meanwhile = (Option<u64>, Priority);

/// What the queue should be.
#[derive(Default)]
struct Model {
    now: u64,
    order: u64,
    wanted: Vec<(Key, Wish)>,
    /// Keys that workers have, and what was asked for them meanwhile.
    taken: Vec<(Key, Option<Meanwhile>)>,
    failures: Vec<(Key, u32)>,
}

impl Model {
    fn wish(&mut self, key: Key, at: u64, priority: Priority) {
        let mut wish = Wish {
            at,
            priority,
            order: 0,
        };
        if let Some((_, meanwhile)) = self.taken.iter_mut().find(|(taken, _)| *taken == key) {
            let later = (at > self.now).then_some(at);
            *meanwhile = Some(match *meanwhile {
                None => (later, priority),
                Some((before, urgent)) => (
                    before.zip(later).map(|(before, at)| before.min(at)),
                    urgent.max(priority),
                ),
            });
            return;
        }
        if let Some(place) = self.wanted.iter().position(|(wanted, _)| *wanted == key) {
            let (_, before) = self.wanted[place];
            if before.at <= self.now {
                // It is due already: only being more urgent matters, and it keeps its place among equals.
                if at <= self.now && rank(wish) < rank(before) {
                    self.wanted[place].1 = Wish {
                        order: before.order,
                        ..wish
                    };
                }
                return;
            }
            wish.at = before.at.min(at);
            wish.priority = before.priority.max(priority);
            self.wanted.remove(place);
        }
        wish.order = self.order;
        self.order += 1;
        self.wanted.push((key, wish));
    }

    /// The key that is due and has waited for longest, a second for each point of priority.
    fn take(&mut self) -> Option<Key> {
        let due = self.wanted.iter().filter(|(_, wish)| wish.at <= self.now);
        let &(key, _) = due.min_by_key(|(_, wish)| (rank(*wish), wish.order))?;
        self.wanted.retain(|(wanted, _)| *wanted != key);
        self.taken.push((key, None));
        Some(key)
    }

    fn done(&mut self) -> Option<Key> {
        let (key, meanwhile) = (!self.taken.is_empty()).then(|| self.taken.remove(0))?;
        if let Some((later, priority)) = meanwhile {
            self.wish(key, later.unwrap_or(self.now), priority);
        }
        Some(key)
    }

    /// The delay after one more failure.
    fn failed(&mut self, key: Key) -> Duration {
        let before = self.failures.iter().position(|(failed, _)| *failed == key);
        let before = before.map_or(0, |place| self.failures.remove(place).1);
        self.failures.push((key, before + 1));
        (0..before).fold(backoff(0), |delay, _| (delay * 2).min(LAST_BACKOFF))
    }
}

/// Smaller comes first.
fn rank(wish: Wish) -> i64 {
    i64::try_from(wish.at).unwrap() - i64::from(wish.priority) * 1000
}

/// The next key if one is due now.
async fn poll(queue: &Workqueue<Key>) -> Option<Key> {
    let next = tokio::time::timeout(Duration::ZERO, queue.next()).await;
    next.ok().flatten()
}

async fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let queue = Workqueue::new(Metrics::new().queue("model"));
    let mut model = Model::default();
    let begun = Instant::now();
    let ms = |delay: Duration| u64::try_from(delay.as_millis()).unwrap();
    for step in steps {
        model.now = ms(begun.elapsed());
        match step {
            Step::Add(key, priority) => {
                queue.add(key, priority);
                model.wish(key, model.now, priority);
            }
            Step::AddAfter(key, delay, priority) => {
                queue.add_after(key, Duration::from_millis(delay), priority);
                model.wish(key, model.now + delay, priority);
            }
            Step::AddFailed(key, priority) => {
                let (delay, expected) = (queue.add_failed(key, priority), model.failed(key));
                prop_assert_eq!(delay, expected, "backoff of {}", key);
                model.wish(key, model.now + ms(delay), priority);
            }
            Step::Forget(key) => {
                queue.forget(&key);
                model.failures.retain(|(failed, _)| *failed != key);
            }
            Step::Take => {
                let found = poll(&queue).await;
                // The paused clock moves on while somebody waits for what is not due.
                model.now = ms(begun.elapsed());
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
    fn whatever_is_done_with_a_queue_it_gives_what_the_model_gives(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(steps))?;
    }

    /// However many fresh keys come, and however low its priority is, a key waits no longer than its priority lets it.
    #[test]
    fn no_stream_of_urgent_keys_starves_one(priority in -100..0_i32, every_ms in 1..900_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let waited = runtime.block_on(async {
            let queue = Workqueue::new(Metrics::new().queue("model"));
            let begun = Instant::now();
            queue.add(0, priority);
            for fresh in 1_u32.. {
                queue.add(fresh, NORMAL);
                let next = queue.next().await.unwrap();
                queue.done(&next);
                if next == 0 {
                    break;
                }
                advance(Duration::from_millis(every_ms)).await;
            }
            begun.elapsed()
        });
        let most = Duration::from_secs(priority.unsigned_abs().into()) + Duration::from_millis(2 * every_ms);
        prop_assert!(waited <= most, "{:?} of {:?}", waited, most);
    }
}
