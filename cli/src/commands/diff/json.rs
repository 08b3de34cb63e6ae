//! The report as JSON.

use rbuilder_compatibility::{Change, Effect, Level, Witness};
use serde_json::{Value, json};

use super::{Report, Subject};

pub(super) fn render(report: &Report) -> Value {
    let count = |level: Level| report.of_level(level).count();
    let changes: Vec<Value> = report.changes.iter().map(describe).collect();
    let stored = report.stored.as_ref().map(|stored| {
        let affected = stored.affected.iter().map(|(name, verdict)| {
            json!({
                "object": name, "refused": verdict.refused, "blocksUpdates": verdict.blocks_updates,
                "pruned": verdict.pruned,
            })
        });
        json!({ "judged": stored.judged, "affected": affected.collect::<Vec<_>>() })
    });
    let (base, versions) = match &report.subject {
        Subject::Base(base) => (Some(base), None),
        Subject::Versions {
            pairs,
            converted_by_webhook,
        } => {
            let names: Vec<&str> = converted_by_webhook.iter().map(|crd| crd.name.as_str()).collect();
            let untested = converted_by_webhook
                .iter()
                .map(|crd| (crd.name.clone(), json!(crd.untested)));
            let versions = json!({
                "pairs": pairs, "convertedByWebhook": names, "withoutRoundTripTest": untested.collect::<serde_json::Map<_, _>>(),
            });
            (None, Some(versions))
        }
    };
    json!({
        "command": "diff",
        "base": base,
        "versions": versions,
        "summary": {
            "breaking": count(Level::Breaking), "risky": count(Level::Risky), "compatible": count(Level::Compatible),
        },
        "changes": changes,
        "storedObjects": stored,
    })
}

fn describe(change: &Change) -> Value {
    let affects: Vec<&str> = change.affects.iter().map(|party| party.as_str()).collect();
    json!({
        "rule": change.rule.name,
        "level": change.level.as_str(),
        "affects": affects,
        "kind": change.kind,
        "name": change.name,
        "version": change.version,
        "field": change.field,
        "message": change.message,
        "reason": change.rule.reason,
        "example": change.witness.as_ref().map(describe_witness),
        "objectsTried": change.tried,
        "searchCutShort": change.is_cut_short,
    })
}

fn describe_witness(witness: &Witness) -> Value {
    let mut example = json!({ "object": witness.object, "old": witness.old });
    match &witness.effect {
        Effect::Refused(messages) => example["refused"] = json!(messages),
        Effect::ReadsDifferently { before, after } => {
            example["before"] = json!(before);
            example["after"] = json!(after);
        }
    }
    example
}
