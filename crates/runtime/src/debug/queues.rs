//! Shows the keys in the queues of all controllers.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};

use crate::controller::MappingErrors;
use crate::object::Key;
use crate::queue::{QueueSnapshot, QueuedKey, Stage, Workqueue};

/// Holds a weak reference, so that it doesn't keep the queue alive.
pub(crate) struct ControllerQueue {
    pub(crate) controller: String,
    pub(crate) kind: String,
    pub(crate) workers: usize,
    queue: Weak<Workqueue<Key>>,
    mapping_errors: MappingErrors,
}

impl ControllerQueue {
    pub(crate) fn new(
        controller: &str,
        kind: String,
        workers: usize,
        queue: &Arc<Workqueue<Key>>,
        mapping_errors: MappingErrors,
    ) -> Self {
        Self {
            controller: controller.to_owned(),
            kind,
            workers,
            queue: Arc::downgrade(queue),
            mapping_errors,
        }
    }

    /// Contains up to `limit` keys. Returns `None` if the controller no longer exists.
    pub(super) fn report(&self, limit: usize) -> Option<QueueReport<'_>> {
        let contents = self.queue.upgrade()?.snapshot(limit);
        Some(QueueReport {
            queue: self,
            contents,
        })
    }
}

pub(super) struct QueueReport<'a> {
    queue: &'a ControllerQueue,
    contents: QueueSnapshot<Key>,
}

impl QueueReport<'_> {
    fn total(&self) -> usize {
        let QueueSnapshot {
            in_progress,
            ready,
            delayed,
            ..
        } = self.contents;
        in_progress + ready + delayed
    }

    pub(super) fn to_json(&self) -> Value {
        let errors = self.queue.mapping_errors.seen();
        json!({
            "controller": self.queue.controller,
            "kind": self.queue.kind,
            "workers": self.queue.workers,
            "inProgress": self.contents.in_progress,
            "ready": self.contents.ready,
            "delayed": self.contents.delayed,
            "mappingErrors": { "count": errors.count, "last": errors.last },
            "keys": self.contents.keys.iter().map(key_to_json).collect::<Vec<_>>(),
        })
    }

    pub(super) fn write(&self, text: &mut String) {
        let QueueSnapshot {
            in_progress,
            ready,
            delayed,
            keys,
        } = &self.contents;
        let ControllerQueue {
            controller,
            kind,
            workers,
            ..
        } = self.queue;
        // Writing to a `String` can't fail.
        let _ = writeln!(
            text,
            "{controller}: {kind}, workers {workers}, in progress {in_progress}, ready {ready}, delayed {delayed}"
        );
        let errors = self.queue.mapping_errors.seen();
        if let Some(last) = errors.last {
            let count = errors.count;
            let _ = writeln!(text, "  errors of mapping functions {count}, last: {last}");
        }
        for QueuedKey {
            key,
            stage,
            priority,
            failures,
        } in keys
        {
            let _ = writeln!(
                text,
                "  {:<28} priority {priority:<5} failures {failures:<4} {key}",
                describe(*stage)
            );
        }
        let left_out = self.total() - keys.len();
        if left_out > 0 {
            let _ = writeln!(text, "  … and {left_out} more; see ?limit=");
        }
    }
}

fn describe(stage: Stage) -> String {
    let seconds = |time: Duration| format!("{:.3} s", time.as_secs_f64());
    match stage {
        Stage::InProgress { since, again: false } => format!("in progress for {}", seconds(since)),
        Stage::InProgress { since, again: true } => format!("in progress for {}, again", seconds(since)),
        Stage::Ready { since } => format!("ready for {}", seconds(since)),
        Stage::Delayed { until } => format!("due in {}", seconds(until)),
    }
}

fn key_to_json(queued: &QueuedKey<Key>) -> Value {
    let (state, seconds, again) = match queued.stage {
        Stage::InProgress { since, again } => ("inProgress", since, again),
        Stage::Ready { since } => ("ready", since, false),
        Stage::Delayed { until } => ("delayed", until, false),
    };
    json!({
        "namespace": queued.key.namespace,
        "name": queued.key.name,
        "state": state,
        "seconds": seconds.as_secs_f64(),
        "again": again,
        "priority": queued.priority,
        "failures": queued.failures,
    })
}
