//! Prints the table of kinds as text or JSON.

use serde_json::{Value, json};

use super::committed::CommittedCrd;
use super::compare::Verdict;
use super::survey::{KindState, ReadableByNow, Survey, SurveyedKind};
use crate::commands::written_roles::OfferedMarkers;
use crate::count::counted;

/// Number of differences and errors to print per kind. The rest is only counted.
const MOST_SHOWN: usize = 5;

pub(super) fn render(survey: &Survey) -> String {
    let rows: Vec<[String; 4]> = survey.kinds.iter().map(columns).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (kind, version, verdict) = (width(0), width(1), width(2));
    let mut text = String::new();
    for (row, surveyed) in rows.iter().zip(&survey.kinds) {
        let [one, two, three, four] = row;
        let line = format!("{one:kind$}  {two:version$}  {three:verdict$}  {four}");
        text.push_str(line.trim_end());
        text.push('\n');
        for detail in details(surveyed, survey.is_deployed) {
            text.push_str(&format!("    {detail}\n"));
        }
    }
    for (title, lines) in [
        ("errors that belong to no kind:", survey.errors.clone()),
        (
            "committed CRDs without a kind in the source:",
            survey
                .others
                .iter()
                .map(|(name, path)| format!("{name} in {path}"))
                .collect(),
        ),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            cut(lines)
                .iter()
                .for_each(|line| text.push_str(&format!("    {line}\n")));
        }
    }
    for offered in &survey.roles {
        text.push_str(&render_markers(offered));
    }
    text.push_str(&format!("\n{}\n", count_kinds(&survey.kinds)));
    if let Some(feature) = &survey.feature {
        text.push_str(&format!(
            "without the feature `{feature}` there are no kinds, so it is added to `features` in Cargo.toml\n"
        ));
    }
    if survey.kinds.is_empty() && survey.errors.is_empty() {
        text.push_str(
            "the libraries and binaries have no kinds: `rbuilder manifests --example <name>` reads those of an example\n",
        );
    }
    text
}

fn render_markers(offered: &OfferedMarkers) -> String {
    let mut text = format!(
        "\n{}: these markers grant the same permissions{}; write them above the reconcile function, with `use rbuilder::rbac;`\n",
        offered.role.describe(),
        if offered.role.is_narrower_than_markers() {
            ", in all namespaces"
        } else {
            ""
        }
    );
    for line in offered.markers.iter().flat_map(|marker| marker.lines()) {
        text.push_str(&format!("    {line}\n"));
    }
    for reason in &offered.without_marker {
        text.push_str(&format!("    no marker grants {reason}\n"));
    }
    text
}

/// Last line of the table, e.g. `5 kinds, 3 readable, 2 skipped`.
fn count_kinds(kinds: &[SurveyedKind]) -> String {
    let count = |is_counted: fn(&KindState) -> bool| {
        let counted = kinds.iter().filter(|kind| is_counted(&kind.state));
        counted.count()
    };
    let all = counted(kinds.len(), "kind");
    let readable = count(|state| matches!(state, KindState::Readable(_)));
    match count(|state| matches!(state, KindState::Skipped(_))) {
        0 => format!("{all}, {readable} readable"),
        skipped => format!("{all}, {readable} readable, {skipped} skipped"),
    }
}

fn columns(kind: &SurveyedKind) -> [String; 4] {
    let summary = &kind.summary;
    let version = if summary.group.is_empty() {
        String::new()
    } else {
        format!("{}/{}", summary.group, summary.versions.join(","))
    };
    let file = match kind.committed.first() {
        Some(file) => file.path.clone(),
        None => "no CRD is committed".to_owned(),
    };
    [summary.kind.clone(), version, verdict(kind).to_owned(), file]
}

pub(super) fn verdict(kind: &SurveyedKind) -> &'static str {
    match &kind.state {
        KindState::Skipped(_) => "skipped",
        KindState::Unreadable(_) => "unreadable",
        KindState::Readable(Some(comparison)) => comparison.verdict().word(),
        KindState::Readable(None) => "readable",
    }
}

fn details(kind: &SurveyedKind, is_deployed: bool) -> Vec<String> {
    let mut lines = match &kind.state {
        KindState::Skipped(reason) if reason.contains("belongs to") && !kind.committed.is_empty() => {
            // A provider commonly defines kinds in groups of the project it provides for.
            let own = format!(
                "if it is your kind, list it in Cargo.toml with the others that you write: `only = [\"{}\", …]`",
                kind.summary.kind
            );
            vec![reason.clone(), own]
        }
        KindState::Skipped(reason) => vec![reason.clone()],
        KindState::Unreadable(reasons) => {
            let mut lines = Vec::new();
            let shown = &reasons[..reasons.len().min(MOST_SHOWN)];
            for (at, reason) in shown.iter().enumerate() {
                lines.push(reason.text.clone());
                // Print the help of consecutive errors only once if it is the same.
                let is_repeated = shown.get(at + 1).is_some_and(|next| next.help == reason.help);
                let help = reason.help.as_ref().filter(|_| !is_repeated);
                lines.extend(help.map(|help| format!("  help: {help}")));
            }
            let more = reasons.len().saturating_sub(MOST_SHOWN);
            lines.extend((more > 0).then(|| format!("and {more} more errors")));
            lines
        }
        KindState::Readable(Some(comparison)) => cut(comparison.grouped_words()),
        KindState::Readable(None) => Vec::new(),
    };
    let is_hindered = kind.readable_by_now == Some(ReadableByNow::Hindered);
    if let Some(obstacle) = kind
        .obstacle(is_deployed)
        .filter(|_| is_hindered || matches!(kind.state, KindState::Readable(_)))
    {
        lines.push(format!("not written: {obstacle}"));
    }
    lines.extend(cut(kind.patches.clone()));
    lines.extend(kind.readable_by_now.and_then(readable_by_now).map(str::to_owned));
    if kind.committed.first().is_some_and(|file| file.is_template)
        && matches!(kind.state, KindState::Readable(Some(_)))
    {
        lines.push("compared without template expressions".to_owned());
    }
    lines.extend(kind.committed.iter().skip(1).map(describe_copy));
    lines
}

fn describe_copy(file: &CommittedCrd) -> String {
    match file.obstacle() {
        Some(obstacle) => format!("also in {}, which is not written: {obstacle}", file.path),
        None => format!("also in {}, which is not written", file.path),
    }
}

fn readable_by_now(item: ReadableByNow) -> Option<&'static str> {
    match item {
        ReadableByNow::Removed => Some("now readable: its item in `skip` is no longer needed and is removed"),
        ReadableByNow::Kept => Some("the kind is readable: to write its CRD, remove it from `skip`"),
        ReadableByNow::Hindered => None,
    }
}

fn cut(lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST_SHOWN);
    let mut shown: Vec<String> = lines.into_iter().take(MOST_SHOWN).collect();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown
}

pub(super) fn to_json(survey: &Survey) -> Value {
    let kinds: Vec<Value> = survey.kinds.iter().map(kind_to_json).collect();
    let others: Vec<Value> = survey
        .others
        .iter()
        .map(|(name, path)| json!({ "name": name, "path": path }))
        .collect();
    let roles: Vec<Value> = survey
        .roles
        .iter()
        .map(|offered| {
            json!({
                "path": offered.role.path,
                "kind": offered.role.kind,
                "name": offered.role.name,
                "markers": offered.markers,
                "withoutMarker": offered.without_marker,
            })
        })
        .collect();
    json!({ "kinds": kinds, "otherCrds": others, "otherErrors": survey.errors, "addedFeature": survey.feature, "roles": roles })
}

fn kind_to_json(kind: &SurveyedKind) -> Value {
    let summary = &kind.summary;
    let files: Vec<Value> = kind
        .committed
        .iter()
        .map(|file| json!({ "path": file.path, "obstacle": file.obstacle() }))
        .collect();
    let mut row = json!({
        "kind": summary.kind,
        "group": summary.group,
        "plural": summary.plural,
        "versions": summary.versions,
        "package": summary.package,
        "verdict": verdict(kind),
        "committed": files,
        "note": kind.readable_by_now.and_then(readable_by_now),
        "programChanges": kind.patches,
    });
    match &kind.state {
        KindState::Skipped(reason) => row["reason"] = reason.as_str().into(),
        KindState::Unreadable(reasons) => {
            row["errors"] = reasons
                .iter()
                .map(|reason| json!({ "message": reason.text, "help": reason.help }))
                .collect();
        }
        KindState::Readable(Some(comparison)) if comparison.verdict() != Verdict::Same => {
            row["differences"] = comparison.words().into();
        }
        KindState::Readable(_) => {}
    }
    row
}
