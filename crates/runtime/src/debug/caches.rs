//! Shows the watches that fill the caches.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cache::{Need, WatchStatus};

pub(super) fn to_json(status: &WatchStatus) -> Value {
    let need = match status.need {
        Need::Optional => "optional",
        Need::AtStart => "atStart",
        Need::Always => "always",
    };
    json!({
        "kind": status.kind,
        "content": status.content,
        "selection": status.selection,
        "namespace": status.namespace,
        "need": need,
        "synced": status.synced,
        "objects": status.objects,
        "secondsSinceContact": status.since_contact.as_secs_f64(),
        "relists": status.relists,
        "errors": status.errors,
        "lastError": status.last_error,
    })
}

pub(super) fn write(status: &WatchStatus, text: &mut String) {
    let state = if status.synced { "synced" } else { "not synced" };
    let WatchStatus {
        content,
        objects,
        relists,
        errors,
        ..
    } = status;
    let seconds = status.since_contact.as_secs_f64();
    // Writing to a `String` can't fail.
    let _ = write!(
        text,
        "{status}: {content}, {state}, objects {objects}, last data {seconds:.3} s ago, relists {relists}, errors {errors}"
    );
    if let Some(error) = &status.last_error {
        let _ = write!(text, ", last error: {error}");
    }
    text.push('\n');
}
