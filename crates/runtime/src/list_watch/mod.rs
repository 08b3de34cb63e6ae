//! Lists and watches the objects of a kind while the stream is polled.
//!
//! [`ListWatch`] replaces kube's `watcher`, with the same events and the same configuration. kube's
//! version does not report when a watch ends, and immediately starts another one. A proxy that
//! accepts watches and then closes them would receive thousands of requests per second. We use a
//! separate delay for each way in which a list or a watch can end, like client-go's reflector:
//!
//! | what ended | pause | next request |
//! |---|---|---|
//! | a watch, after a second or after an event | until a second after its start | a watch from the last version |
//! | a watch that lost its connection | the same | the same |
//! | a watch without an event, within a second | back-off | a list |
//! | a watch that failed to start: no response, 429, 500, 502, 503 | back-off | a watch from the last version |
//! | a watch that failed to start for another reason: 403, 410, 504 (version too large) | back-off | a list |
//! | a watch with an `ERROR` event, or with an event that is not JSON | back-off; after a 429 from the last version | a list |
//! | a list | back-off | a list |
//! | a list whose continue token has expired | none | a list without pages |
//! | a streaming list that is rejected or does not complete | none | a list in pages |
//!
//! Like client-go, we relist after a watch without any event. If watches do not work at all,
//! objects are then stale by no more than the backoff, rather than since the process started.
//!
//! There are two more differences to kube's `watcher`: we don't relist on every response that might
//! be about the resource version, and we skip events that aren't valid JSON.

mod error;
mod pace;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use kube::api::{ListParams, VersionMatch, WatchEvent, WatchParams};
use kube::core::Status;
use kube::core::watch::Bookmark;
use kube::runtime::watcher::{Config, Event, InitialListStrategy, ListSemantic};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use error::WatchError;
use error::{is_expired, is_idle_timeout, may_resume};
use pace::Pace;

use crate::random::random_share;

/// Maximum number of concurrent lists across all caches of a manager. Since we use HTTP/1.1, each
/// list needs its own connection, plus memory for a page of objects.
const CONCURRENT_LISTS: usize = 32;
/// Maximum timeout that we choose for a watch, in seconds. kube accepts up to 294.
const WATCH_SECONDS: u32 = 290;
/// Minimum timeout. The timeout is random, so that watches started together don't all end at once.
const MIN_WATCH_SECONDS: u32 = 230;
/// Grace period for the server to close the watch once its timeout has passed.
const WATCH_MARGIN: Duration = Duration::from_secs(5);
/// A watch that ends earlier than this without an event counts as failed.
const VERY_SHORT: Duration = Duration::from_secs(1);
/// Timeout for a streaming list without receiving an object. The API server serves it from memory,
/// and sends the final bookmark after at most three seconds.
const STREAMING_LIST_IDLE: Duration = Duration::from_secs(30);
/// Capacity for events to keep after a list. Unlike lists, watches don't deliver lots of events at
/// once.
const KEPT_CAPACITY: usize = 4;
/// Marks the bookmark at the end of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Limits concurrent lists. Clones share the same limit.
#[derive(Clone, Debug)]
pub(crate) struct ListLimit(Arc<Semaphore>);

impl Default for ListLimit {
    fn default() -> Self {
        Self::new(CONCURRENT_LISTS)
    }
}

impl ListLimit {
    fn new(lists: usize) -> Self {
        Self(Arc::new(Semaphore::new(lists)))
    }

    async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // Can't fail, because the semaphore is never closed.
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

/// Resource version up to which everything was delivered. Clones share the same value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Option<String>>>);

impl Progress {
    /// Returns `None` during a list.
    pub(crate) fn version(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, version: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }
}

/// Lists all objects of an `Api` and then watches them.
pub(crate) struct ListWatch<K> {
    api: Api<K>,
    config: Config,
    limit: ListLimit,
    state: State<K>,
    /// `None` if progress isn't tracked.
    progress: Option<Progress>,
    /// Events to emit before making the next request.
    pending: VecDeque<Event<K>>,
    pace: Pace,
    /// Held during a list.
    permit: Option<OwnedSemaphorePermit>,
    /// Set after a streaming list failed; the next list uses pages.
    in_pages: bool,
    /// Set after a continue token expired; the next list doesn't use pages.
    at_once: bool,
}

enum State<K> {
    /// There is no complete list yet.
    Unlisted,
    /// Ready to request the next page.
    Paging {
        token: Option<String>,
    },
    /// Ready to request a streaming list.
    Streaming,
    /// A streaming list is in progress. It fails if neither an object nor the end arrives by
    /// `deadline`.
    InitialEvents {
        watch: OpenWatch<K>,
        deadline: Instant,
    },
    /// Ready to start a watch.
    Listed {
        version: String,
    },
    Watching(OpenWatch<K>),
}

impl<K> State<K> {
    /// Returns the version from which a watch can resume.
    fn version(&self) -> Option<&str> {
        match self {
            Self::Listed { version } => Some(version),
            Self::Watching(watch) => Some(&watch.version),
            _ => None,
        }
    }
}

struct OpenWatch<K> {
    events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
    /// Version of the most recent event.
    version: String,
    /// When the request was sent. The time of the response is of no use, because some servers don't
    /// respond until the first event.
    started: Instant,
    has_events: bool,
}

impl<K> ListWatch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(crate) fn new(api: Api<K>, config: Config, limit: ListLimit) -> Self {
        Self {
            api,
            config,
            limit,
            state: State::Unlisted,
            progress: None,
            pending: VecDeque::new(),
            pace: Pace::new(),
            permit: None,
            in_pages: false,
            at_once: false,
        }
    }

    /// Skips the initial list and starts a watch from this version instead.
    pub(crate) fn resume(self, version: String) -> Self {
        Self {
            state: State::Listed { version },
            ..self
        }
    }

    /// Keeps `progress` up to date from now on.
    pub(crate) fn with_progress(self, progress: Progress) -> Self {
        Self {
            progress: Some(progress),
            ..self
        }
    }

    /// The stream pauses after an error, and then continues.
    pub(crate) fn into_stream(self) -> BoxStream<'static, Result<Event<K>, WatchError>> {
        stream::unfold(self, async |mut this| Some((this.next().await, this))).boxed()
    }

    async fn next(&mut self) -> Result<Event<K>, WatchError> {
        loop {
            let event = self.pending.pop_front();
            // Only update the progress once all events were delivered.
            if let (Some(progress), true) = (&self.progress, self.pending.is_empty()) {
                progress.set(self.state.version().map(str::to_owned));
            }
            if let Some(event) = event {
                return Ok(event);
            }
            // A list reserves space for all of its objects, which the events of a watch don't need.
            self.pending.shrink_to(KEPT_CAPACITY);
            self.step().await?;
        }
    }

    /// Sends a request or reads an event. Falls back to a list on failure, unless a new state was
    /// set.
    async fn step(&mut self) -> Result<(), WatchError> {
        match std::mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => {
                self.begin_list().await;
                Ok(())
            }
            State::Paging { token } => self.list_page(token).await,
            State::Streaming => self.open_streaming_list().await,
            State::InitialEvents { watch, deadline } => self.read_initial_event(watch, deadline).await,
            State::Listed { version } => self.open_watch(version).await,
            State::Watching(watch) => self.read_event(watch).await,
        }
    }

    async fn begin_list(&mut self) {
        self.pace.wait().await;
        // Release the old permit before acquiring another one, or this list might wait for itself.
        self.permit = None;
        self.permit = self.limit.acquire().await;
        self.pending.push_back(Event::Init);
        self.state = match self.config.initial_list_strategy {
            InitialListStrategy::StreamingList if !self.in_pages => State::Streaming,
            _ => State::Paging { token: None },
        };
    }

    async fn list_page(&mut self, token: Option<String>) -> Result<(), WatchError> {
        let list = match self.api.list(&self.list_params(token.clone())).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if token.is_some() && is_expired(&status) => {
                tracing::debug!(
                    kind = self.api.resource_url(),
                    "continue token expired, listing without pages"
                );
                self.at_once = true;
                return Ok(());
            }
            Err(error) => return Err(self.fail(WatchError::List(error))),
        };
        self.pending.extend(list.items.into_iter().map(Event::InitApply));
        let is_given = |text: &String| !text.is_empty();
        if let Some(token) = list.metadata.continue_.filter(is_given) {
            self.state = State::Paging { token: Some(token) };
            return Ok(());
        }
        let Some(version) = list.metadata.resource_version.filter(is_given) else {
            return Err(self.fail(WatchError::NoResourceVersion));
        };
        self.end_list();
        self.state = State::Listed { version };
        Ok(())
    }

    fn end_list(&mut self) {
        self.pending.push_back(Event::InitDone);
        self.permit = None;
        self.in_pages = false;
        self.at_once = false;
        self.pace.mark_listed();
    }

    async fn open_streaming_list(&mut self) -> Result<(), WatchError> {
        let started = Instant::now();
        let mut params = self.watch_params();
        params.send_initial_events = true;
        match self.api.watch(&params, "0").await {
            Ok(events) => {
                self.state = State::InitialEvents {
                    watch: OpenWatch::new(events.boxed(), String::new(), started),
                    deadline: Instant::now() + STREAMING_LIST_IDLE,
                };
                Ok(())
            }
            Err(error) if may_resume(&error) => Err(self.fail(WatchError::List(error))),
            Err(error) => Err(self.fall_back(WatchError::StreamingListRefused(error))),
        }
    }

    async fn read_initial_event(
        &mut self,
        mut watch: OpenWatch<K>,
        deadline: Instant,
    ) -> Result<(), WatchError> {
        match timeout_at(deadline, watch.events.next()).await {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                self.pending.push_back(Event::InitApply(object));
                let deadline = Instant::now() + STREAMING_LIST_IDLE;
                self.state = State::InitialEvents { watch, deadline };
                Ok(())
            }
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                // Other bookmarks don't extend the deadline: a server that doesn't know
                // `sendInitialEvents` may send them forever.
                self.state = if bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END) {
                    watch.note_bookmark(bookmark);
                    self.end_list();
                    State::Watching(watch)
                } else {
                    State::InitialEvents { watch, deadline }
                };
                Ok(())
            }
            Ok(Some(Ok(WatchEvent::Error(status)) | Err(kube::Error::Api(status)))) => {
                let error = kube::Error::Api(status);
                Err(match may_resume(&error) {
                    true => self.fail(WatchError::List(error)),
                    false => self.fall_back(WatchError::StreamingListRefused(error)),
                })
            }
            Ok(Some(Err(error))) => Err(self.fall_back(WatchError::StreamingListRefused(error))),
            // According to the API documentation, there are no deletions in a streaming list.
            Ok(Some(Ok(WatchEvent::Deleted(_))) | None) | Err(_) => {
                Err(self.fall_back(WatchError::StreamingListIncomplete))
            }
        }
    }

    /// Switches to a paged list. Like client-go, this happens without a delay.
    fn fall_back(&mut self, error: WatchError) -> WatchError {
        self.permit = None;
        self.in_pages = true;
        error
    }

    async fn open_watch(&mut self, version: String) -> Result<(), WatchError> {
        self.pace.wait().await;
        let started = Instant::now();
        match self.api.watch(&self.watch_params(), &version).await {
            Ok(events) => {
                self.state = State::Watching(OpenWatch::new(events.boxed(), version, started));
                Ok(())
            }
            Err(error) => {
                if may_resume(&error) {
                    self.state = State::Listed { version };
                }
                Err(self.fail(WatchError::Start(error)))
            }
        }
    }

    async fn read_event(&mut self, mut watch: OpenWatch<K>) -> Result<(), WatchError> {
        match timeout(longest_watch(), watch.events.next()).await {
            Ok(Some(Ok(event))) => self.handle_event(watch, event),
            Ok(Some(Err(error))) => self.handle_read_error(watch, error),
            // A watch that stays silent for too long is treated like one that has ended.
            Ok(None) | Err(_) => self.handle_end(watch),
        }
    }

    fn handle_event(&mut self, mut watch: OpenWatch<K>, event: WatchEvent<K>) -> Result<(), WatchError> {
        let is_deletion = matches!(event, WatchEvent::Deleted(_));
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                if !watch.note_version(object.meta().resource_version.clone()) {
                    self.pace.note_watch(watch.started);
                    return Err(self.fail(WatchError::NoResourceVersion));
                }
                self.pending.push_back(match is_deletion {
                    true => Event::Delete(object),
                    false => Event::Apply(object),
                });
            }
            WatchEvent::Bookmark(bookmark) => watch.note_bookmark(bookmark),
            WatchEvent::Error(status) => return Err(self.handle_reported(watch, status)),
        }
        self.state = State::Watching(watch);
        Ok(())
    }

    fn handle_reported(&mut self, watch: OpenWatch<K>, status: Box<Status>) -> WatchError {
        self.pace.note_watch(watch.started);
        // The server is overloaded, which says nothing about the version.
        if status.code == 429 {
            self.state = State::Listed {
                version: watch.version,
            };
        }
        self.fail(WatchError::Reported(status))
    }

    fn handle_read_error(&mut self, watch: OpenWatch<K>, error: kube::Error) -> Result<(), WatchError> {
        match error {
            // The connection broke, but the last version is still valid.
            kube::Error::ReadEvents(_) => {
                let (is_very_short, is_idle) = (watch.is_very_short(), is_idle_timeout(&error));
                self.pace.note_watch(watch.started);
                self.state = State::Listed {
                    version: watch.version,
                };
                let error = WatchError::Read(error);
                match (is_very_short, is_idle) {
                    (true, _) => Err(self.fail(error)),
                    // The API server doesn't send bookmarks, e.g. because no object of the kind has
                    // ever changed.
                    (false, true) => {
                        tracing::debug!(url = self.api.resource_url(), %error, "watch idle for too long, restarting it");
                        Ok(())
                    }
                    (false, false) => Err(error),
                }
            }
            kube::Error::Api(status) => Err(self.handle_reported(watch, status)),
            // An event was lost, so relist to get its object.
            error => {
                self.pace.note_watch(watch.started);
                Err(self.fail(WatchError::Read(error)))
            }
        }
    }

    fn handle_end(&mut self, watch: OpenWatch<K>) -> Result<(), WatchError> {
        self.pace.note_watch(watch.started);
        if watch.is_very_short() {
            return Err(self.fail(WatchError::VeryShort));
        }
        self.state = State::Listed {
            version: watch.version,
        };
        Ok(())
    }

    /// Delays the next request.
    fn fail(&mut self, error: WatchError) -> WatchError {
        self.permit = None;
        self.pace.note_failure(error.retry_after());
        error
    }

    fn list_params(&self, token: Option<String>) -> ListParams {
        let (version_match, resource_version) = match self.config.list_semantic {
            ListSemantic::Any => (Some(VersionMatch::NotOlderThan), Some("0".to_owned())),
            ListSemantic::MostRecent => (None, None),
        };
        // API servers ignore version `0` if there's a limit, so kube omits it in that case.
        let in_pages = !self.at_once && resource_version.is_none();
        ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            version_match,
            resource_version,
            limit: self.config.page_size.filter(|_| in_pages),
            continue_token: token,
            ..ListParams::default()
        }
    }

    fn watch_params(&self) -> WatchParams {
        let spread = f64::from(WATCH_SECONDS - MIN_WATCH_SECONDS) * random_share();
        WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: Some(MIN_WATCH_SECONDS + spread as u32),
            bookmarks: self.config.bookmarks,
            send_initial_events: false,
        }
    }
}

/// Idle timeout of a watch, after which the connection is considered dead.
fn longest_watch() -> Duration {
    // In simulations, which may span months, the server only closes watches once a day.
    #[cfg(feature = "simulation")]
    if rbuilder_simulation::now().is_some() {
        return rbuilder_simulation::LONGEST_WATCH + WATCH_MARGIN;
    }
    Duration::from_secs(WATCH_SECONDS.into()) + WATCH_MARGIN
}

impl<K> OpenWatch<K> {
    fn new(
        events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
        version: String,
        started: Instant,
    ) -> Self {
        Self {
            events,
            version,
            started,
            has_events: false,
        }
    }

    /// Returns `false` if the event doesn't have a version.
    fn note_version(&mut self, version: Option<String>) -> bool {
        let Some(version) = version.filter(|version| !version.is_empty()) else {
            return false;
        };
        self.version = version;
        self.has_events = true;
        true
    }

    fn note_bookmark(&mut self, bookmark: Bookmark) {
        self.note_version(Some(bookmark.metadata.resource_version));
    }

    fn is_very_short(&self) -> bool {
        !self.has_events && self.started.elapsed() < VERY_SHORT
    }
}
