//! Shows additional clusters, and the watches that fill their caches.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::caches;
use crate::cluster::ClusterStatus;

pub(super) fn to_json(status: &ClusterStatus) -> Value {
    json!({
        "name": status.name,
        "connected": status.problem.is_none(),
        "problem": status.problem,
        "synced": status.synced,
        "required": status.is_required,
        "watches": status.watches.iter().map(caches::to_json).collect::<Value>(),
    })
}

pub(super) fn write(status: &ClusterStatus, text: &mut String) {
    let connection = match &status.problem {
        None => "connected".to_owned(),
        Some(problem) => format!("not connected ({problem})"),
    };
    let synced = if status.synced { "synced" } else { "not synced" };
    let required = if status.is_required { ", required" } else { "" };
    // Writing to a `String` can't fail.
    let _ = writeln!(text, "{}: {connection}, {synced}{required}", status.name);
    for watch in &status.watches {
        text.push_str("  ");
        caches::write(watch, text);
    }
}
