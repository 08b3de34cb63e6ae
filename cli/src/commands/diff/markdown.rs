//! The report as Markdown, for a pull request comment.

use rbuilder_compatibility::{Change, Level};

use super::example::{describe_effect, show_object};
use super::text::{by_manifest, describe_webhook, effects, parties, place, without_example};
use super::{LEVELS, Report, Subject};

pub(super) fn render(report: &Report) -> String {
    let (title, nothing) = match &report.subject {
        Subject::Base(base) => (
            format!("API changes since {}", escape(base)),
            "No changes of CRDs, roles and webhook configurations.",
        ),
        Subject::Versions { .. } => (
            "Fields lost between versions".to_owned(),
            "No object loses a field.",
        ),
    };
    let mut text = format!("### {title}\n\n");
    if let Subject::Versions {
        converted_by_webhook, ..
    } = &report.subject
    {
        for crd in converted_by_webhook {
            text.push_str(&format!("- {}\n", describe_webhook(crd)));
        }
        if !converted_by_webhook.is_empty() {
            text.push('\n');
        }
    }
    if report.changes.is_empty()
        && report
            .stored
            .as_ref()
            .is_none_or(|stored| stored.affected.is_empty())
    {
        text.push_str(&format!("{nothing}\n"));
        return text;
    }
    text.push_str("| manifest | breaking | risky | compatible |\n|---|---|---|---|\n");
    for ((kind, name), [breaking, risky, compatible]) in by_manifest(report) {
        text.push_str(&format!(
            "| {kind} `{name}` | {breaking} | {risky} | {compatible} |\n"
        ));
    }
    for level in LEVELS {
        let changes: Vec<&Change> = report.of_level(level).collect();
        if changes.is_empty() {
            continue;
        }
        let title = match level {
            Level::Breaking => "Breaking",
            Level::Risky => "Risky",
            Level::Compatible => "Compatible",
        };
        text.push_str(&format!("\n#### {title}\n\n"));
        for change in changes {
            text.push_str(&describe(change));
        }
    }
    if let Some(stored) = report
        .stored
        .as_ref()
        .filter(|stored| !stored.affected.is_empty())
    {
        text.push_str("\n#### Objects in the cluster\n\n");
        for (name, verdict) in &stored.affected {
            text.push_str(&format!(
                "- {}: {}\n",
                escape(name),
                escape(&effects(verdict).join("; "))
            ));
        }
    }
    text
}

fn describe(change: &Change) -> String {
    let mut text = format!(
        "- **`{}`**: {} (`{}`)",
        place(change),
        escape(&change.message),
        change.rule.name
    );
    if change.level == Level::Compatible {
        text.push('\n');
        return text;
    }
    text.push_str(&format!(
        "\n  Affects {}: {}.\n",
        parties(change),
        change.rule.reason
    ));
    match (&change.witness, change.tried) {
        (Some(witness), _) => {
            let lines = describe_effect(change, witness);
            text.push_str("  <details><summary>Example</summary>\n\n");
            text.extend(lines.iter().map(|line| format!("  {}\n", escape(line))));
            if let Some(old) = &witness.old {
                text.push_str(&fence("  Before:", &show_object(old)));
                text.push_str(&fence("  After:", &show_object(&witness.object)));
            } else {
                text.push_str(&fence("", &show_object(&witness.object)));
            }
            text.push_str("  </details>\n");
        }
        (None, Some(tried)) => text.push_str(&format!("  {}.\n", without_example(change, tried))),
        (None, None) => {}
    }
    text
}

fn fence(title: &str, yaml: &str) -> String {
    let lines: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
    // The object may contain a fence itself.
    let fence = if yaml.contains("```") { "``````" } else { "```" };
    format!("\n{title}\n  {fence}yaml\n{lines}  {fence}\n\n")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\n', " ")
}
