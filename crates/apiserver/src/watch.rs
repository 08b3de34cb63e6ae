//! Watches: stream changes of a kind since a resource version, as lines of JSON.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::failure::Failure;
use super::http_messages::to_json;
use super::kinds::ResourceId;
use super::selectors::Selector;
use super::store::{Change, Key, State};
use super::view::View;
use super::webhooks::Reviews;
use super::write::Writer;

pub(super) const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Fixed here; kube-apiserver picks a random timeout between 30 and 60 minutes.
const TIMEOUT: Duration = Duration::from_secs(1800);

#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    id: ResourceId,
    kind: String,
    selector: Selector,
    view: View,
    /// Resource version of the last change sent.
    version: u64,
    epoch: u64,
    /// Whether the watch started while the cache was stale.
    is_behind: bool,
    /// When the cache catches up. `None` if it's not stale.
    caught_up_at: Option<Instant>,
    bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
    lines: VecDeque<Bytes>,
    ended: bool,
    reviews: Reviews,
}

impl Watch {
    pub(super) fn open(
        shared: &Arc<Shared>,
        state: &State,
        writer: Writer<'_>,
        view: View,
    ) -> Result<Self, Failure> {
        let Writer {
            request,
            definition,
            version,
            ..
        } = writer;
        let timeout = request
            .parameter("timeoutSeconds")
            .parse()
            .ok()
            .filter(|seconds| *seconds > 0);
        let now = Instant::now();
        let mut watch = Self {
            shared: shared.clone(),
            changed: shared.changed.subscribe(),
            id: definition.id.clone(),
            kind: definition.kind.clone(),
            selector: Selector::read(request, version, state.sharding)?,
            view,
            version: state.version(),
            epoch: state.epoch,
            is_behind: false,
            caught_up_at: None,
            bookmarks: request.is_set("allowWatchBookmarks"),
            next_bookmark: now + state.bookmark_interval,
            end: now + timeout.map_or(TIMEOUT, Duration::from_secs),
            lines: VecDeque::new(),
            ended: false,
            reviews: Reviews::new(None),
        };
        watch.begin(state, writer)?;
        Ok(watch)
    }

    fn begin(&mut self, state: &State, writer: Writer<'_>) -> Result<(), Failure> {
        let request = writer.request;
        let asked = super::read::version_parameter(request.parameter("resourceVersion"))?;
        let from = asked.unwrap_or(0);
        let initial = request.is_set("sendInitialEvents");
        if from == 0 || initial {
            let id = self.id.clone();
            let cached = asked.and_then(|from| state.cached_version(&id, from));
            match cached {
                Some(past) => {
                    self.version = past;
                    self.is_behind = true;
                    self.add_existing(state.at(&id, past)?.iter(), writer)?;
                }
                None => self.add_existing(state.objects(&id), writer)?,
            }
            if initial && self.bookmarks {
                let object = self.view.bookmark(&self.kind, self.version, true);
                self.lines.push_back(line("BOOKMARK", &object));
            }
            return Ok(());
        }
        // kube-apiserver would wait for a future version, and silently close the watch if it's
        // never reached.
        self.version = from;
        // The client resumes from a list served by the stale cache.
        self.is_behind = state.past_of(&self.id).is_some_and(|past| past.version == from);
        if let Err(expired) = state.check_age(from) {
            self.fail(&expired);
        }
        Ok(())
    }

    fn add_existing<'s>(
        &mut self,
        objects: impl Iterator<Item = (&'s Key, &'s Arc<Value>)>,
        writer: Writer<'_>,
    ) -> Result<(), Failure> {
        let selected = writer
            .versions()
            .select(objects, &self.selector, writer.version)?;
        for (_, object) in selected {
            self.lines.push_back(line("ADDED", &self.view.show(&object.read)));
        }
        Ok(())
    }

    pub(super) fn lines(self) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((line, watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            // Mark as seen before reading, or a concurrent change would be missed.
            self.changed.borrow_and_update();
            self.collect_changes();
            if self.reviews.answer_pending().await {
                // These reviews held up the changes; retry now that there are responses.
                continue;
            }
            if self.lines.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    fn collect_changes(&mut self) {
        let shared = self.shared.clone();
        let mut state = shared.state();
        if state.run_collector() {
            shared.wake();
        }
        if state.epoch != self.epoch || !self.view.is_served(&state) {
            self.ended = true;
            return;
        }
        self.caught_up_at = match self.is_behind {
            true => state.past_of(&self.id).map(|past| past.until),
            false => None,
        };
        if self.caught_up_at.is_some() {
            return;
        }
        // The client has read so slowly that changes were forgotten.
        if let Err(expired) = state.check_age(self.version) {
            self.fail(&expired);
            return;
        }
        self.reviews.set_handler(state.webhooks.clone());
        for change in state.since(self.version).filter(|change| change.id == self.id) {
            match self.event(&state, change) {
                Ok(line) => self.lines.extend(line),
                Err(_) if self.reviews.is_pending() => return,
                Err(failure) => {
                    self.lines.push_back(line("ERROR", &failure.to_json()));
                    self.ended = true;
                    return;
                }
            }
            self.version = change.version;
        }
        self.version = self.version.max(state.version());
        self.reviews.forget();
    }

    fn event(&self, state: &State, change: &Change) -> Result<Option<Bytes>, Failure> {
        let (before, after) = (
            self.selects(change, &change.before)?,
            // Compare whether the selector matched before and after. To the client, an object that
            // stops matching was deleted.
            self.selects(change, &change.after)?,
        );
        let event = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return Ok(None),
        };
        let text = self.view.text(state, &change.object, &self.reviews)?;
        Ok(Some(text_line(event, &text)))
    }

    fn selects(&self, change: &Change, object: &Option<Arc<Value>>) -> Result<bool, Failure> {
        let Some(object) = object.as_ref().filter(|_| self.selector.matches_key(&change.key)) else {
            return Ok(false);
        };
        if !self.selector.needs_object() {
            return Ok(true);
        }
        let versions = self.view.versions(&self.reviews);
        let read = versions.read(object, self.view.version())?;
        Ok(self.selector.matches(&change.key, &read))
    }

    async fn wait(&mut self) {
        let next_bookmark = if self.bookmarks {
            self.next_bookmark
        } else {
            self.end
        };
        let next_collection = self.shared.state().next_collection();
        tokio::select! {
            biased;
            () = self.shared.changed_since(&self.changed) => {}
            () = sleep_until(self.end) => self.ended = true,
            () = sleep_until(self.caught_up_at.unwrap_or(self.end)), if self.caught_up_at.is_some() => {}
            // Wake up to collect changes, which also runs the garbage collector.
            () = sleep_until(next_collection.unwrap_or(self.end)), if next_collection.is_some() => {}
            () = sleep_until(next_bookmark), if next_bookmark < self.end => {
                self.next_bookmark += self.shared.state().bookmark_interval;
                let object = self.view.bookmark(&self.kind, self.version, false);
                self.lines.push_back(line("BOOKMARK", &object));
            }
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.lines.push_back(line("ERROR", &failure.to_json()));
        self.ended = true;
    }
}

fn line(event: &str, object: &Value) -> Bytes {
    text_line(event, &to_json(object))
}

/// `type` comes first, as on a real server. serde can then decode the object on the fly instead of
/// buffering it.
fn text_line(event: &str, object: &[u8]) -> Bytes {
    let start = format!("{{\"type\":\"{event}\",\"object\":");
    [start.as_bytes(), object, b"}\n"].concat().into()
}
