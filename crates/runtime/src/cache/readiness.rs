//! Combined state of all caches of a manager: whether they are synced and up to date, and their
//! statistics.

use std::sync::Arc;
use std::time::Duration;

use super::registry::AnyCache;
use super::{CacheStats, Caches, Need, WatchStatus};

/// Bounds of the interval between checks for stale watches.
const MIN_REPORT_PERIOD: Duration = Duration::from_millis(100);
const MAX_REPORT_PERIOD: Duration = Duration::from_secs(10);

impl Caches {
    /// Waits until every cache needed for startup has delivered its initial list to all
    /// subscribers.
    pub(crate) async fn synced(&self) {
        let needed: Vec<_> = self.all().into_iter().filter(is_needed).collect();
        for cache in needed {
            // Can't fail, because the cache owns the sender.
            let _ = cache.watch_synced().wait_for(|synced| *synced).await;
        }
    }

    /// Returns the kind and the last error of a cache that startup is still waiting for.
    pub(crate) fn first_unsynced(&self) -> Option<(String, String)> {
        let unsynced = self.all().into_iter().filter(is_needed);
        let unsynced = unsynced.filter(|cache| !*cache.watch_synced().borrow());
        let first = unsynced.min_by_key(|cache| cache.kind())?;
        Some((first.kind(), first.last_error()))
    }

    /// The returned closure collects statistics without keeping the caches alive.
    pub(crate) fn stats(&self) -> impl Fn() -> Vec<CacheStats> + Send + Sync + 'static {
        let all = self.weakly_all();
        move || all().iter().map(|cache| cache.stats()).collect()
    }

    /// The returned closure collects the status of each watch, sorted by kind, selection and
    /// namespace.
    pub(crate) fn status(&self) -> impl Fn() -> Vec<WatchStatus> + Send + Sync + 'static {
        let all = self.weakly_all();
        move || {
            let mut status: Vec<_> = all().iter().flat_map(|cache| cache.status()).collect();
            status.sort_by(|one, other| one.order().cmp(&other.order()));
            status
        }
    }

    /// The returned closure explains why the process isn't ready, or returns `None` if it is.
    ///
    /// The process isn't ready if any watch with [`Need::Always`] hasn't received data for `limit`.
    /// With `any_counts`, it also isn't ready if all watches are stale, needed or not.
    pub(crate) fn find_unready(
        &self,
        limit: Duration,
        any_counts: bool,
    ) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let status = self.status();
        move || {
            let watches = status();
            let needed = watches.iter().filter(|watch| watch.need == Need::Always);
            let oldest = needed.max_by_key(|watch| watch.since_contact);
            // As long as any watch is alive, the operator can still do part of its work.
            let newest = watches.iter().min_by_key(|watch| watch.since_contact);
            let stale = oldest.into_iter().chain(newest.filter(|_| any_counts));
            let mut stale = stale.filter(|watch| watch.since_contact >= limit);
            stale.next().map(WatchStatus::describe_staleness)
        }
    }

    /// Logs when a watch hasn't received data for `limit`, and when it recovers. Never returns.
    pub(crate) async fn report_stale(self, limit: Duration) {
        // Don't poll in simulated time, where months may pass without any data to send.
        #[cfg(feature = "simulation")]
        if rbuilder_simulation::now().is_some() {
            std::future::pending::<()>().await;
        }
        let period = (limit / 10).clamp(MIN_REPORT_PERIOD, MAX_REPORT_PERIOD);
        loop {
            tokio::time::sleep(period).await;
            self.all().iter().for_each(|cache| cache.report_stale(limit));
        }
    }
}

fn is_needed(cache: &Arc<dyn AnyCache>) -> bool {
    cache.greatest_need() >= Need::AtStart
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;
    use crate::cache::{CacheOptions, Selection};
    use crate::object::Kind;

    const LIMIT: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn process_is_unready_without_required_watches() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        let (caches, _watches) = Caches::new(client, Vec::new(), CacheOptions::default());
        let all = Selection::all();
        let maps = caches.of::<ConfigMap>(&Kind::of_type(), &all);
        let secrets = caches.of::<Secret>(&Kind::of_type(), &all);
        let (_, maps) = maps.add_watch(Some("a".to_owned()));
        secrets.add_watch(None);
        let (with_webhooks, without) = (
            caches.find_unready(LIMIT, false),
            caches.find_unready(LIMIT, true),
        );
        let check = |expected: [Option<&str>; 2]| {
            let expected = expected.map(|expected| expected.map(str::to_owned));
            assert_eq!([with_webhooks(), without()], expected);
        };
        check([None, None]);
        tokio::time::advance(LIMIT).await;
        maps.note_error("refused".to_owned());
        let none = "no data from the watch of ConfigMap in namespace a for 300 s; last error: refused";
        check([None, Some(none)]);
        maps.contact.note();
        check([None, None]);
        secrets.need(Need::Always);
        let secret =
            "no data from the watch of Secret for 300 s; last error: no response from the API server yet";
        check([Some(secret), Some(secret)]);
        secrets.release_need(Need::Always);
        check([None, None]);
    }
}
