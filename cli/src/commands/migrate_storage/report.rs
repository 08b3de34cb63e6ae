//! Formats the report as text and JSON.

use serde_json::{Value, json};

use super::keys::Key;
use super::rewrite::Failure;
use super::{Outcome, State};
use crate::count::counted;

const NAMED: usize = 20;

pub(super) fn render(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(describe).collect()
}

fn describe(outcome: &Outcome) -> String {
    let name = &outcome.name;
    let storage = outcome.storage.as_deref().unwrap_or_default();
    let stored = outcome.before.join(", ");
    match &outcome.state {
        State::Absent => format!("{name}: not in the cluster\n"),
        State::Unneeded => format!("{name}: nothing to do, all objects are stored in {storage}\n"),
        State::Accepted => format!(
            "{name}: the API server would store all objects in {storage} ({}); storedVersions: {stored} -> {storage}\n",
            counts(outcome, "accepted")
        ),
        State::Migrated => format!(
            "{name}: all objects are stored in {storage} ({}); storedVersions: {stored} -> {}\n",
            match outcome.by_cluster {
                true => "written by the cluster".to_owned(),
                false => counts(outcome, "written"),
            },
            outcome.after.join(", ")
        ),
        State::Incomplete(reason) => describe_incomplete(outcome, reason),
    }
}

fn describe_incomplete(outcome: &Outcome, reason: &str) -> String {
    let mut text = format!("{}: not migrated: {reason}\n", outcome.name);
    if outcome.objects == 0 {
        return text;
    }
    text.extend(outcome.tally.failures.iter().take(NAMED).map(describe_failure));
    let more = outcome.tally.failures.len().saturating_sub(NAMED);
    if more > 0 {
        text.push_str(&format!("  and {more} more, which `--output json` lists\n"));
    }
    text.push_str(&format!(
        "  {} of {}; storedVersions: still {}\n  run the command again: it continues with the objects that are left\n",
        counts(outcome, "written"),
        counted(outcome.objects, "object"),
        outcome.after.join(", ")
    ));
    text
}

fn describe_failure(failure: &Failure) -> String {
    // The message may span several lines.
    let message = failure.refusal.message.trim().replace('\n', "\n    ");
    format!("  {}: {message}\n", name(&failure.key))
}

fn name(key: &Key) -> String {
    match &key.namespace {
        Some(namespace) => format!("{namespace}/{}", key.name),
        None => key.name.clone(),
    }
}

/// Counts the objects written, deleted and so on, e.g. `3 written, 1 deleted meanwhile`.
fn counts(outcome: &Outcome, done: &str) -> String {
    let mut counts = vec![format!("{} {done}", outcome.tally.rewritten)];
    if outcome.earlier > 0 {
        counts.push(format!("{} written earlier", outcome.earlier));
    }
    if outcome.tally.gone > 0 {
        counts.push(format!("{} deleted meanwhile", outcome.tally.gone));
    }
    counts.join(", ")
}

pub(super) fn to_json(outcomes: &[Outcome], is_dry_run: bool) -> Value {
    let definitions: Vec<Value> = outcomes.iter().map(outcome_to_json).collect();
    json!({ "command": "migrate-storage", "dryRun": is_dry_run, "definitions": definitions })
}

fn outcome_to_json(outcome: &Outcome) -> Value {
    let (state, reason) = match &outcome.state {
        State::Absent => ("absent", None),
        State::Unneeded => ("unneeded", None),
        State::Accepted => ("accepted", None),
        State::Migrated => ("migrated", None),
        State::Incomplete(reason) => ("incomplete", Some(reason)),
    };
    let tally = &outcome.tally;
    let failures = tally.failures.iter().map(|failure| {
        json!({
            "namespace": failure.key.namespace,
            "name": failure.key.name,
            "status": failure.refusal.status,
            "reason": failure.refusal.reason,
            "message": failure.refusal.message,
        })
    });
    json!({
        "name": outcome.name,
        "state": state,
        "reason": reason,
        "storageVersion": outcome.storage,
        "storedVersions": { "before": outcome.before, "after": outcome.after },
        "migrator": if outcome.by_cluster { "cluster" } else { "rbuilder" },
        "objects": {
            "all": outcome.objects, "written": tally.rewritten, "writtenEarlier": outcome.earlier, "deleted": tally.gone,
            "failed": tally.failures.len(),
        },
        "failures": failures.collect::<Vec<_>>(),
    })
}
