//! Tests of order, delays, backoff and memory.

use super::*;

use crate::metrics::Metrics;

fn queue() -> Workqueue<&'static str> {
    Workqueue::new(Metrics::new().queue("test"))
}

/// Returns a ready key, without waiting for one.
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
async fn key_added_repeatedly_comes_out_once() {
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
async fn key_added_while_processing_comes_out_once_after_done() {
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
async fn retry_keeps_the_priority_of_its_key() {
    let queue = queue();
    queue.add("listed", LOW);
    assert_eq!(poll(&queue).await, Some("listed"));
    assert_eq!(queue.taken_priority(&"listed"), LOW);
    queue.add_failed("listed", queue.taken_priority(&"listed"));
    queue.done(&"listed");
    tokio::time::advance(Duration::from_secs(1)).await;
    queue.add("changed", NORMAL);
    assert_eq!(drain(&queue).await, ["changed", "listed"]);
    assert_eq!(queue.taken_priority(&"listed"), NORMAL, "nobody processes it");
}

#[tokio::test(start_paused = true)]
async fn change_raises_the_priority_of_a_retry() {
    let queue = queue();
    queue.add("first", LOW);
    assert_eq!(poll(&queue).await, Some("first"));
    queue.add_failed("first", queue.taken_priority(&"first"));
    queue.add("first", NORMAL);
    queue.done(&"first");
    assert_eq!(poll(&queue).await, Some("first"));
    assert_eq!(queue.taken_priority(&"first"), NORMAL);
}

#[tokio::test(start_paused = true)]
async fn delayed_key_keeps_its_earliest_time() {
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
async fn immediate_add_overrides_a_delay_even_while_processing() {
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
    assert_eq!(delays[18..], [Duration::from_secs(1000); 2]);
    assert_eq!(queue.add_failed("b", NORMAL), expected(5));
    queue.forget(&"a");
    assert_eq!(queue.add_failed("a", NORMAL), expected(5));
}

#[tokio::test(start_paused = true)]
async fn failed_keys_can_be_retried_before_their_delay() {
    let limiter = crate::rate_limiter::ExponentialBackoff::new(Duration::from_millis(5), Duration::MAX);
    for queue in [queue(), queue().with_rate_limiter(Box::new(limiter))] {
        queue.add("busy", NORMAL);
        assert_eq!(poll(&queue).await, Some("busy"));
        queue.add_failed("busy", NORMAL);
        for _ in 0..10 {
            queue.add_failed("failed", NORMAL);
        }
        queue.add_after("requeued", Duration::from_secs(3600), NORMAL);
        assert_eq!(drain(&queue).await, [""; 0]);
        queue.retry_failed();
        assert_eq!(drain(&queue).await, ["failed"]);
        queue.done(&"busy");
        assert_eq!(drain(&queue).await, ["busy"]);
        let eleventh = queue.add_failed("failed", NORMAL);
        assert_eq!(eleventh, Duration::from_millis(5 << 10));
    }
}

#[tokio::test(start_paused = true)]
async fn back_off_doubles_from_min_to_max() {
    let check = |min: Duration, max: Duration, expected: [Duration; 4]| {
        let queue = queue().with_backoff(Backoff { min, max });
        let delays = [(); 4].map(|()| queue.add_failed("a", NORMAL));
        assert_eq!(delays, expected, "{min:?} to {max:?}");
    };
    let ms = Duration::from_millis;
    check(ms(100), ms(300), [ms(100), ms(200), ms(300), ms(300)]);
    check(ms(300), ms(100), [ms(100); 4]);
    check(Duration::ZERO, ms(3), [ms(1), ms(2), ms(3), ms(3)]);
    check(ms(5), Duration::ZERO, [ms(1); 4]);
    check(Duration::MAX, Duration::MAX, [Duration::MAX; 4]);
}

/// Always returns the same delay, or panics if it's `None`. Counts calls of `forget`.
#[derive(Clone, Default)]
struct Fixed(Option<Duration>, Arc<Mutex<u32>>);

impl RateLimiter<&'static str> for Fixed {
    fn when(&self, _: &&'static str) -> Duration {
        self.0.expect("no delay")
    }

    fn forget(&self, _: &&'static str) {
        *self.1.lock().unwrap() += 1;
        assert!(self.0.is_some(), "nor to be forgotten");
    }

    fn num_requeues(&self, _: &&'static str) -> u32 {
        0
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limiter_decides_on_the_delay_within_bounds() {
    let day = Duration::from_secs(24 * 60 * 60);
    for (asked, expected) in [
        (Duration::from_secs(7), Duration::from_secs(7)),
        (Duration::ZERO, Duration::from_millis(1)),
        (day, day),
        (Duration::MAX, day),
    ] {
        let limiter = Fixed(Some(asked), Arc::default());
        let queue = queue().with_rate_limiter(Box::new(limiter.clone()));
        assert_eq!(
            [(); 2].map(|()| queue.add_failed("a", NORMAL)),
            [expected; 2],
            "{asked:?}"
        );
        assert_eq!(poll(&queue).await, None, "{asked:?}");
        tokio::time::advance(expected).await;
        assert_eq!(poll(&queue).await, Some("a"), "{asked:?}");
        queue.forget(&"a");
        assert_eq!(*limiter.1.lock().unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_rate_limiter_falls_back_to_the_back_off() {
    let limiter = Fixed::default();
    let queue = queue().with_rate_limiter(Box::new(limiter.clone()));
    let ms = Duration::from_millis;
    assert_eq!([(); 2].map(|()| queue.add_failed("a", NORMAL)), [ms(5), ms(10)]);
    queue.forget(&"a");
    assert_eq!(*limiter.1.lock().unwrap(), 1);
    assert_eq!(queue.add_failed("a", NORMAL), ms(5));
}

#[test]
fn back_off_reaches_the_longest_duration() {
    let (min, max) = (Duration::ZERO, Duration::MAX);
    for failures in [100, u32::MAX] {
        assert_eq!(Backoff { min, max }.delay_after(failures), Duration::MAX);
    }
}

#[tokio::test(start_paused = true)]
async fn sleeping_worker_wakes_when_a_delayed_key_is_due() {
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
                    assert_eq!(
                        busy[key].fetch_add(1, SeqCst),
                        0,
                        "key {key} is processed twice at a time"
                    );
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
    .expect("the last change of each key is processed");
    queue.close();
    for worker in workers {
        worker.await.unwrap();
    }
}

/// A key that counts its clones.
#[derive(Clone)]
struct Counted(u32, #[expect(dead_code)] Arc<()>);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn key_is_stored_once() {
    let queue = Workqueue::new(Metrics::new().queue("test"));
    let copies = Arc::new(());
    let key = |number| Counted(number, Arc::clone(&copies));
    let held = || Arc::strong_count(&copies) - 1;
    for number in 0..100 {
        queue.add(key(number), NORMAL);
        queue.add_after(key(number), Duration::from_secs(1), LOW);
    }
    assert_eq!(held(), 100);
    for _ in 0..100 {
        let taken = queue.next().await.unwrap();
        queue.add_failed(taken.clone(), NORMAL);
        queue.done(&taken);
    }
    assert_eq!(held(), 100, "delayed, with a back-off");
    tokio::time::advance(Duration::from_secs(1)).await;
    for _ in 0..100 {
        let taken = queue.next().await.unwrap();
        queue.done(&taken);
    }
    assert_eq!(held(), 100, "only the back-off is left");
    for number in 0..100 {
        queue.forget(&key(number));
    }
    assert_eq!(held(), 0);
}

#[tokio::test(start_paused = true)]
async fn memory_is_released_after_a_burst() {
    const KEYS: u32 = 100_000;
    let queue = Workqueue::new(Metrics::new().queue("test"));
    for key in 0..KEYS {
        queue.add(key, NORMAL);
        queue.add_failed(key, NORMAL);
    }
    let capacities = || {
        let state = queue.lock();
        (state.keys.capacity(), state.failures.capacity())
    };
    let (keys, failures) = capacities();
    assert!(keys >= KEYS as usize && failures >= KEYS as usize);
    for _ in 0..KEYS {
        let key = queue.next().await.unwrap();
        queue.done(&key);
        queue.forget(&key);
    }
    let (keys, failures) = capacities();
    let most = 2 * MIN_CAPACITY;
    assert!(keys <= most && failures <= most, "{keys}, {failures}");
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
