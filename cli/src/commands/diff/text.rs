//! Formats the report for a terminal.

use std::collections::BTreeMap;

use rbuilder_compatibility::{Change, Level, StoredVerdict};

use super::example::{describe_effect, show_object};
use super::{Converted, LEVELS, Report, Subject};
use crate::count::counted;

/// Renders the changes by level, then the cluster's objects, then the number of changes.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    for level in LEVELS {
        for change in report.of_level(level) {
            text.push_str(&describe(change));
        }
    }
    if let Some(stored) = &report.stored {
        for (name, verdict) in &stored.affected {
            text.push_str(&format!("stored object {name}\n"));
            text.extend(effects(verdict).iter().map(|line| format!("  {line}\n")));
            text.push('\n');
        }
        text.push_str(&format!(
            "{} in the cluster judged by the new CRDs, {} affected\n",
            counted(stored.judged, "object"),
            stored.affected.len()
        ));
    }
    match &report.subject {
        Subject::Base(base) => text.push_str(&format!("compared with {base}: {}\n", report.summary())),
        Subject::Versions {
            pairs,
            converted_by_webhook,
        } => {
            for crd in converted_by_webhook {
                text.push_str(&format!("{}\n", describe_webhook(crd)));
            }
            let pairs = counted(*pairs, "pair");
            text.push_str(&format!("compared {pairs} of versions: {}\n", report.summary()));
        }
    }
    text
}

pub(super) fn describe_webhook(crd: &Converted) -> String {
    let name = &crd.name;
    match crd.untested.as_deref() {
        None => format!(
            "{name}: a webhook converts its versions: `rbuilder::testing::assert_round_trip` in a test of the operator finds \
             what it loses"
        ),
        Some([]) => format!(
            "{name}: a webhook converts its versions, and tests with `rbuilder::testing::assert_round_trip` examine them all"
        ),
        Some(untested) => format!(
            "{name}: a webhook converts its versions, and no test was found that examines {}: \
             `rbuilder::testing::assert_round_trip` finds what it loses",
            untested.join(", ")
        ),
    }
}

pub(super) fn effects(verdict: &StoredVerdict) -> Vec<String> {
    let mut lines: Vec<String> = verdict
        .refused
        .iter()
        .map(|message| format!("is not valid: {message}"))
        .collect();
    if verdict.blocks_updates {
        lines.push("cannot be updated before that is corrected".to_owned());
    }
    lines.extend(verdict.pruned.iter().map(|field| format!("loses `{field}`")));
    lines
}

/// Location of a change, e.g. `cups.example.com v1 spec.size`.
pub(super) fn place(change: &Change) -> String {
    let kind = match change.kind.as_str() {
        "CustomResourceDefinition" => None,
        kind => Some(kind),
    };
    let parts = [
        kind,
        Some(change.name.as_str()),
        change.version.as_deref(),
        Some(change.field.as_str()),
    ];
    let parts: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" ")
}

pub(super) fn parties(change: &Change) -> String {
    let parties: Vec<&str> = change.affects.iter().map(|party| party.as_str()).collect();
    parties.join(", ")
}

fn describe(change: &Change) -> String {
    let mut text = format!(
        "{}: {}: {} [{}]\n",
        change.level.as_str(),
        place(change),
        change.message,
        change.rule.name
    );
    if change.level == Level::Compatible {
        return text;
    }
    text.push_str(&format!(
        "  affects {}: {}\n",
        parties(change),
        change.rule.reason
    ));
    match (&change.witness, change.tried) {
        (Some(witness), _) => {
            text.extend(
                describe_effect(change, witness)
                    .iter()
                    .map(|line| format!("  {line}\n")),
            );
            if let Some(old) = &witness.old {
                text.push_str(&indent("before: ", &show_object(old)));
                text.push_str(&indent("after: ", &show_object(&witness.object)));
            } else {
                text.push_str(&indent("", &show_object(&witness.object)));
            }
        }
        (None, Some(tried)) => text.push_str(&format!("  {}\n", without_example(change, tried))),
        (None, None) => {}
    }
    text.push('\n');
    text
}

/// Message for a search without an example.
pub(super) fn without_example(change: &Change, tried: usize) -> String {
    if change.is_cut_short {
        return match tried {
            0 => "no example was searched for: there are too many changes".to_owned(),
            tried => format!(
                "no example: the search ended after {}, because there are too many changes",
                counted(tried, "object")
            ),
        };
    }
    match tried {
        0 => "no example: the search made no object that the old schema accepts".to_owned(),
        tried => format!(
            "no example: none of the {} tried shows an effect",
            counted(tried, "object")
        ),
    }
}

fn indent(title: &str, yaml: &str) -> String {
    let title = match title {
        "" => String::new(),
        title => format!("    {title}\n"),
    };
    let lines = yaml.lines().map(|line| format!("    {line}\n"));
    title + &lines.collect::<String>()
}

pub(super) fn by_manifest(report: &Report) -> BTreeMap<(&str, &str), [usize; 3]> {
    let mut found: BTreeMap<(&str, &str), [usize; 3]> = BTreeMap::new();
    for change in &report.changes {
        let counts = found.entry((&change.kind, &change.name)).or_default();
        let at = LEVELS
            .iter()
            .position(|level| *level == change.level)
            .unwrap_or_default();
        counts[at] += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use rbuilder_compatibility::{Budget, compare_within};
    use serde_json::{Value, json};

    use super::*;

    fn crd(longest: u32) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "cups.example.com" },
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": { "kind": "Cup", "plural": "cups" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": {
                        "type": "object",
                        "properties": { "text": { "type": "string", "maxLength": longest } },
                    } },
                }],
            },
        })
    }

    #[test]
    fn report_says_where_no_example_was_searched_for() {
        let changes = compare_within(&[crd(9)], &[crd(5)], &Budget::of(0)).expect("CRDs");
        let report = Report {
            subject: Subject::Base("main".to_owned()),
            changes,
            stored: None,
        };
        let text = render(&report);
        assert!(
            text.contains("\n  no example was searched for: there are too many changes\n"),
            "{text}"
        );
    }
}
