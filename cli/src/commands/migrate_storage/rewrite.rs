//! Rewrites objects without modifying them, which makes the API server store them in the storage
//! version.
//!
//! This is done with an empty merge patch. The server reads the object, applies the patch (a
//! no-op), and encodes the object in the storage version. If the result equals what's stored,
//! nothing is written. Compared to a PUT, this needs no extra request to read the object, can't
//! undo concurrent changes, and doesn't drop fields that don't exist in the version of the request.
//! The owners in `managedFields` don't change either.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::definition::Definition;
use super::keys::Key;
use super::requests::{JSON, Requests, is_unavailable};
use crate::cluster::{Body, Refusal};

const WORKERS: usize = 8;
/// Number of consecutive objects with an unavailable server after which to give up.
const GIVE_UP: usize = 20;
/// Maximum attempts to write an object that is modified concurrently.
const ATTEMPTS: usize = 5;
const TICK: Duration = Duration::from_millis(250);
const PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) rewritten: usize,
    pub(super) gone: usize,
    pub(super) failures: Vec<Failure>,
    /// Why some objects weren't tried, if so.
    pub(super) stopped: Option<&'static str>,
}

impl Tally {
    pub(super) fn tried(&self) -> usize {
        self.rewritten + self.gone + self.failures.len()
    }
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) key: Key,
    pub(super) refusal: Refusal,
}

enum Verdict {
    Rewritten,
    Gone,
    Failed(Refusal),
}

/// Rate limit for writes, shared by all workers.
pub(super) struct Pace {
    /// `None` for no limit.
    interval: Option<Duration>,
    next: Mutex<Instant>,
}

impl Pace {
    /// Creates a limit of `writes` per second. Zero means no limit.
    pub(super) fn per_second(writes: u32) -> Pace {
        Pace {
            interval: (writes > 0).then(|| Duration::from_secs(1) / writes),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Delay before the next write. There is no burst after a pause.
    fn take(&self, now: Instant) -> Duration {
        let Some(interval) = self.interval else {
            return Duration::ZERO;
        };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = now.max(*next);
        *next = at + interval;
        at - now
    }
}

pub(super) struct Rewrite<'a> {
    pub(super) requests: &'a Requests<'a>,
    pub(super) definition: &'a Definition,
    pub(super) pace: Pace,
    pub(super) is_dry_run: bool,
}

impl Rewrite<'_> {
    /// Writes all objects. `report` is called regularly with the current state and the number of
    /// writes per second.
    ///
    /// Continues after an object that can't be written. Stops if the server is unavailable, or on
    /// interrupt.
    pub(super) fn run(&self, keys: &[Key], report: &mut dyn FnMut(&Tally, f64)) -> Tally {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let mut tally = Tally::default();
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                let (sender, next, stop) = (sender.clone(), &next, &stop);
                scope.spawn(move || self.work(keys, next, stop, &sender));
            }
            // Only the workers hold a sender now, so the channel closes when the last one ends.
            drop(sender);
            let mut watch = Watch::new();
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok((at, verdict)) => {
                        watch.count(&verdict);
                        add(&mut tally, &keys[at], verdict);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if watch.in_a_row >= GIVE_UP {
                    stop.store(true, Ordering::Relaxed);
                }
                if let Some(rate) = watch.rate(tally.tried(), Instant::now()) {
                    report(&tally, rate);
                }
            }
        });
        tally.stopped = match (tally.tried() < keys.len(), self.requests.interrupt.is_asked()) {
            (false, _) => None,
            (true, true) => Some("interrupted"),
            (true, false) => Some("the server was not available for many objects in a row"),
        };
        tally
    }

    fn work(
        &self,
        keys: &[Key],
        next: &AtomicUsize,
        stop: &AtomicBool,
        results: &mpsc::Sender<(usize, Verdict)>,
    ) {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(key) = keys.get(at) else {
                return;
            };
            let pause = self.pace.take(Instant::now());
            if stop.load(Ordering::Relaxed)
                || self.requests.wait(pause).is_err()
                || self.requests.interrupt.is_asked()
            {
                return;
            }
            match self.rewrite(key) {
                // The request was interrupted, which says nothing about the object.
                Verdict::Failed(_) if self.requests.interrupt.is_asked() => return,
                verdict => drop(results.send((at, verdict))),
            }
        }
    }

    fn rewrite(&self, key: &Key) -> Verdict {
        let dry_run = if self.is_dry_run { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager=rbuilder{dry_run}", self.definition.object(key));
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let answer = match self.requests.send("PATCH", &path, JSON, Body::MergePatch("{}")) {
                Ok(answer) => answer,
                Err(error) => return Verdict::Failed(without_answer(&error)),
            };
            match answer.check() {
                Ok(()) => return Verdict::Rewritten,
                Err(Refusal { status: 404, .. }) => return Verdict::Gone,
                // Modified concurrently, even though the server itself retries several times.
                Err(refusal) if refusal.status == 409 => last = Some(refusal),
                Err(refusal) => return Verdict::Failed(refusal),
            }
        }
        Verdict::Failed(last.unwrap_or_else(|| without_answer(&anyhow::anyhow!("no answer"))))
    }
}

fn without_answer(error: &anyhow::Error) -> Refusal {
    Refusal {
        status: 503,
        reason: None,
        message: format!("{error:#}"),
    }
}

fn add(tally: &mut Tally, key: &Key, verdict: Verdict) {
    match verdict {
        Verdict::Rewritten => tally.rewritten += 1,
        Verdict::Gone => tally.gone += 1,
        Verdict::Failed(refusal) => tally.failures.push(Failure {
            key: key.clone(),
            refusal,
        }),
    }
}

struct Watch {
    /// Number of consecutive objects with an unavailable server.
    in_a_row: usize,
    reported: Instant,
    /// Processed objects at certain times within the window.
    marks: VecDeque<(Instant, usize)>,
}

impl Watch {
    fn new() -> Watch {
        let now = Instant::now();
        Watch {
            in_a_row: 0,
            reported: now,
            marks: VecDeque::from([(now, 0)]),
        }
    }

    fn count(&mut self, verdict: &Verdict) {
        self.in_a_row = match verdict {
            Verdict::Failed(refusal) if is_unavailable(refusal) => self.in_a_row + 1,
            _ => 0,
        };
    }

    fn rate(&mut self, tried: usize, now: Instant) -> Option<f64> {
        if now - self.reported < TICK {
            return None;
        }
        self.reported = now;
        self.marks.push_back((now, tried));
        while self.marks.len() > 2 && now - self.marks[0].0 > PERIOD {
            self.marks.pop_front();
        }
        let (since, before) = self.marks[0];
        let count = u32::try_from(tried - before).unwrap_or(u32::MAX);
        Some(f64::from(count) / (now - since).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_spreads_writes_evenly() {
        let pace = Pace::per_second(100);
        let now = Instant::now() + Duration::from_secs(1);
        let pauses = [0, 1, 2].map(|_| pace.take(now));
        assert_eq!(pauses, [0, 10, 20].map(Duration::from_millis));
        // No burst after a pause.
        let later = now + Duration::from_secs(5);
        assert_eq!(
            [pace.take(later), pace.take(later)],
            [0, 10].map(Duration::from_millis)
        );
        let free = Pace::per_second(0);
        assert_eq!([free.take(now), free.take(now)], [Duration::ZERO; 2]);
    }

    #[test]
    fn only_a_server_that_is_not_available_counts_in_a_row() {
        let failed = |status| {
            Verdict::Failed(Refusal {
                status,
                reason: None,
                message: String::new(),
            })
        };
        let mut watch = Watch::new();
        for (verdict, expected) in [
            (failed(503), 1),
            (failed(500), 2),
            (failed(422), 0),
            (failed(429), 1),
            (Verdict::Rewritten, 0),
            (Verdict::Gone, 0),
        ] {
            watch.count(&verdict);
            assert_eq!(watch.in_a_row, expected);
        }
    }

    #[test]
    fn rate_is_that_of_the_last_seconds() {
        let mut watch = Watch::new();
        let start = watch.reported;
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(watch.rate(10, at(100)), None);
        assert_eq!(watch.rate(100, at(1000)), Some(100.0));
        assert_eq!(watch.rate(100, at(2000)), Some(50.0));
        let rate = watch.rate(100, at(60_000)).expect("a rate");
        assert!(rate < 0.1, "{rate}");
    }
}
