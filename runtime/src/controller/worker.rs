//! One reconcile from key to outcome, and the loop around it.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument;

use super::*;
use crate::metrics::{ControllerMetrics, Reconciled};

/// What the workers of one controller share.
pub(super) struct Worker<K: Watchable, S> {
    pub(super) ctx: Ctx<S>,
    pub(super) queue: Arc<Workqueue<Key>>,
    pub(super) cache: Arc<Cache<K>>,
    /// Objects whose deletion `on_deleted` has not dealt with.
    pub(super) gone: Arc<Mutex<HashSet<Key>>>,
    pub(super) timeout: Option<Duration>,
    pub(super) recover_panics: bool,
    pub(super) handlers: Handlers<K, S>,
    pub(super) metrics: ControllerMetrics,
}

/// How a reconcile ended.
#[derive(Debug)]
enum Outcome {
    Done(Action),
    Failed(Error),
    Panicked(String),
    TimedOut(Duration),
}

impl Outcome {
    /// What it counts as.
    fn counted(&self) -> Reconciled {
        match self {
            Self::Done(action) if action.requeue_after().is_some() => Reconciled::RequeueAfter,
            Self::Done(_) => Reconciled::Success,
            Self::Failed(error) if error.is_terminal() => Reconciled::TerminalError,
            Self::Failed(_) => Reconciled::Error,
            Self::Panicked(_) => Reconciled::Panic,
            Self::TimedOut(_) => Reconciled::Timeout,
        }
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Takes keys until the queue is closed.
    ///
    /// # Errors
    /// When a reconcile panicked and that is not to be recovered from.
    pub(super) async fn work(self: Arc<Self>) -> Result<(), Error> {
        while let Some(key) = self.queue.next().await {
            let span = tracing::info_span!(
                "reconcile",
                controller = self.ctx.controller(),
                kind = %self.cache.kind().name(),
                namespace = key.namespace.as_deref(),
                // Not `name`: in JSON that is the name of the span.
                object_name = &*key.name,
                reconcile_id = %reconcile_id(),
            );
            async {
                let active = self.metrics.active();
                let started = Instant::now();
                let outcome = self.run(&key).await;
                self.metrics.reconciled(outcome.counted(), started.elapsed());
                drop(active);
                if let (Outcome::Panicked(message), false) = (&outcome, self.recover_panics) {
                    return Err(self.fatal(&key, message));
                }
                self.settle(&key, outcome);
                Ok(())
            }
            .instrument(span)
            .await?;
            self.queue.done(&key);
        }
        Ok(())
    }

    /// Why the manager stops because of a panic.
    fn fatal(&self, key: &Key, message: &str) -> Error {
        let kind = self.cache.kind().name();
        let message = one_line(message);
        tracing::error!(error = message, "reconcile panicked, stopping the manager");
        Error::new(format!("reconcile of {kind} {key} panicked: {message}"))
    }

    /// Calls what is to be called for `key`, containing panics and overlong runs.
    async fn run(&self, key: &Key) -> Outcome {
        let contained = AssertUnwindSafe(self.reconcile(key)).catch_unwind();
        let finished = match self.timeout {
            Some(limit) => match tokio::time::timeout(limit, contained).await {
                Ok(finished) => finished,
                Err(_) => return Outcome::TimedOut(limit),
            },
            None => contained.await,
        };
        match finished {
            Ok(Ok(action)) => Outcome::Done(action),
            Ok(Err(error)) => Outcome::Failed(error),
            Err(panic) => Outcome::Panicked(panic_message(&*panic)),
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Action, Error> {
        match (self.cache.get(key), &self.handlers.finalizer) {
            (None, _) => self.deleted(key).await,
            (Some(object), None) => (self.handlers.reconcile)(object, self.ctx.clone()).await,
            (Some(object), Some((name, cleanup))) => self.finalized(object, name, cleanup).await,
        }
    }

    async fn deleted(&self, key: &Key) -> Result<Action, Error> {
        let Some(on_deleted) = &self.handlers.on_deleted else {
            return Ok(Action::await_change());
        };
        if !self
            .gone
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(key)
        {
            // Something was mapped to an object that was never there.
            return Ok(Action::await_change());
        }
        let action = on_deleted(self.cache.kind().reference(key), self.ctx.clone()).await?;
        if action.requeue_after().is_none() {
            self.gone
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(key);
        }
        Ok(action)
    }

    /// Reconciles an object that must not go before `cleanup` is done with it.
    async fn finalized(
        &self,
        object: Arc<K>,
        name: &str,
        cleanup: &Reconcile<Arc<K>, S>,
    ) -> Result<Action, Error> {
        let held = object.finalizers().iter().position(|present| present == name);
        let deleting = object.meta().deletion_timestamp.is_some();
        match (held, deleting) {
            (Some(_), false) => (self.handlers.reconcile)(object, self.ctx.clone()).await,
            (None, false) => {
                let held = self.add_finalizer(&object, name).await?;
                (self.handlers.reconcile)(Arc::new(held), self.ctx.clone()).await
            }
            (Some(index), true) => {
                let action = cleanup(Arc::clone(&object), self.ctx.clone()).await?;
                if action.requeue_after().is_none() {
                    self.remove_finalizer(&object, index, name).await?;
                }
                Ok(action)
            }
            // Others still hold it; this controller is done.
            (None, true) => Ok(Action::await_change()),
        }
    }

    /// The resource version makes the patch fail rather than drop a finalizer that someone else just added.
    async fn add_finalizer(&self, object: &K, name: &str) -> Result<K, Error> {
        let finalizers: Vec<&str> = object
            .finalizers()
            .iter()
            .map(String::as_str)
            .chain(std::iter::once(name))
            .collect();
        let patch = json!({
            "metadata": { "resourceVersion": object.resource_version(), "finalizers": finalizers }
        });
        let params = PatchParams {
            field_manager: Some(self.ctx.controller().to_owned()),
            ..Default::default()
        };
        let api = self.api(object);
        Ok(api
            .patch(&object.name_any(), &params, &Patch::Merge(patch))
            .await?)
    }

    /// Tests the name before it removes the entry, so that a list that changed meanwhile loses nothing. (A
    /// resource version would be out of date as soon as the cleanup has written a status.)
    async fn remove_finalizer(&self, object: &K, index: usize, name: &str) -> Result<(), Error> {
        let path = format!("/metadata/finalizers/{index}");
        let patch = serde_json::from_value(json!([
            { "op": "test", "path": path, "value": name },
            { "op": "remove", "path": path },
        ]))?;
        let api = self.api(object);
        match api
            .patch(
                &object.name_any(),
                &PatchParams::default(),
                &Patch::Json::<()>(patch),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn api(&self, object: &K) -> Api<K> {
        let kind = self.cache.kind();
        kind.api(self.ctx.client(), object.meta().namespace.as_deref())
    }

    /// Decides when the key comes back, and says what went wrong.
    fn settle(&self, key: &Key, outcome: Outcome) {
        match outcome {
            Outcome::Done(action) => {
                self.queue.forget(key);
                if let Some(delay) = action.requeue_after() {
                    self.queue.add_after(key.clone(), delay, NORMAL);
                }
            }
            Outcome::Failed(error) if error.is_terminal() => {
                self.queue.forget(key);
                let error = one_line(&format!("{error:#}"));
                tracing::error!(%error, "terminal error, not retrying until the object changes");
            }
            Outcome::Failed(error) if error.is_conflict() => {
                let retry_in = self.queue.add_failed(key.clone(), NORMAL);
                let error = one_line(&format!("{error:#}"));
                tracing::debug!(?retry_in, %error, "conflict, the object has been modified");
            }
            Outcome::Failed(error) => self.retry(key, "reconcile failed", &format!("{error:#}")),
            Outcome::Panicked(message) => self.retry(key, "reconcile panicked", &message),
            Outcome::TimedOut(limit) => {
                self.retry(key, "reconcile timed out", &format!("no result within {limit:?}"));
            }
        }
    }

    /// One line per failure, with what is to be read first in front: the text of an error can be long.
    fn retry(&self, key: &Key, what: &str, error: &str) {
        let retry_in = self.queue.add_failed(key.clone(), NORMAL);
        let error = one_line(error);
        tracing::error!(?retry_in, %error, "{what}");
    }
}

/// `text` without line breaks: those who read logs, and the programs that collect them, go by lines.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// What a panic said; panics with a message carry a string of one of two types.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

/// Sixteen hex digits that tell one reconcile's log lines from another's.
fn reconcile_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static KEY: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    format!("{:016x}", KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn text_of_many_lines_is_logged_as_one() {
        let cases = [
            ("not now", "not now"),
            ("", ""),
            (
                "assertion `left == right` failed: size\n  left: 1\r\n right: 2\n\n",
                "assertion `left == right` failed: size left: 1 right: 2",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(one_line(text), expected);
        }
    }
}
