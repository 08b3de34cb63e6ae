//! The table: compares what a cluster gets from the Rust project and from the original.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_yaml::parse_documents;
use serde_json::{Value, json};

use super::compose::Composed;
use super::objects::compare_objects;
use super::permissions::{Permission, compare_permissions, is_role, permissions_of};
use super::published::{find_published, webhooks_of};
use super::webhooks::REVIEW_VERSIONS;
use super::workload::compare_deployments;
use crate::commands::adopt::{Comparison, Verdict};
use crate::go_project::GoProject;
use crate::plan::Plan;
use crate::tree::Tree;

/// The number of details in a text row. MIGRATION.md and JSON list all of them.
const MOST_SHOWN: usize = 3;

/// The maximum length of a value in a row, in characters.
const LONGEST_VALUE: usize = 120;

/// The result of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Same,
    /// The difference is intentional and requires no action.
    Better,
    ByHand,
}

impl Match {
    pub(super) fn word(self) -> &'static str {
        match self {
            Match::Same => "same",
            Match::Better => "better",
            Match::ByHand => "by hand",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) result: Match,
    pub(super) details: Vec<String>,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
}

impl Report {
    pub(super) fn add(&mut self, what: impl Into<String>, result: Match, details: Vec<String>) {
        self.rows.push(Row {
            what: what.into(),
            result,
            details,
        });
    }

    /// Formats the table as text, with the counts at the end.
    pub(super) fn render(&self) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.what.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            let mut shown: Vec<String> = row.details.iter().take(MOST_SHOWN).cloned().collect();
            let more = row.details.len().saturating_sub(MOST_SHOWN);
            if more > 0 {
                shown.push(format!("and {more} more"));
            }
            let line = format!(
                "{:width$}  {:7}  {}",
                row.what,
                row.result.word(),
                shown.join("; ")
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let count = |result| self.rows.iter().filter(|row| row.result == result).count();
        text.push_str(&format!(
            "\n{} same, {} better, {} by hand\n",
            count(Match::Same),
            count(Match::Better),
            count(Match::ByHand)
        ));
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let rows = self
            .rows
            .iter()
            .map(|row| json!({ "what": row.what, "result": row.result.word(), "details": row.details }));
        rows.collect()
    }
}

/// Compares the planned project with the original.
///
/// # Errors
/// Returns an error if a file in the directory cannot be read.
pub(super) fn compare(
    original: &GoProject,
    plan: &Plan,
    tree: &Tree,
    composed: &Composed<'_>,
) -> Result<Report> {
    let mut report = Report::default();
    compare_crds(original, plan, tree, &mut report)?;
    compare_roles(original, plan, tree, &mut report)?;
    compare_webhooks(original, plan, tree, composed, &mut report)?;
    compare_objects(original, plan, tree, &mut report);
    compare_deployments(original, plan, tree, &mut report)?;
    for better in &composed.better {
        report.add(&better.what, Match::Better, vec![better.reason.clone()]);
    }
    for left in &composed.left {
        report.add(&left.what, Match::ByHand, vec![left.reason.clone()]);
    }
    Ok(report)
}

/// Reads the documents of a file in the planned project.
pub(super) fn read_planned(plan: &Plan, tree: &Tree, path: &str) -> Result<Vec<Value>> {
    let text = plan.read(tree, path)?.unwrap_or_default();
    Ok(parse_documents(&text).unwrap_or_default())
}

fn compare_crds(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    for found in original.definitions() {
        let (path, crd) = (found.path, found.crd);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]));
        let what = format!("CRD {plural}.{group}");
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        let ours = match is_name(&group) && is_name(&plural) {
            true => read_planned(plan, tree, &format!("config/crd/bases/{group}_{plural}.yaml"))?,
            false => Vec::new(),
        };
        let Some(generated) = ours.first() else {
            report.add(
                what,
                Match::ByHand,
                vec![format!("{path} of the Go project has no counterpart here")],
            );
            continue;
        };
        let comparison = Comparison::of(crd, generated);
        match comparison.verdict() {
            Verdict::Same => {
                let idle = comparison.idle_keys();
                let result = if idle.is_empty() {
                    Match::Same
                } else {
                    Match::Better
                };
                report.add(what, result, idle);
            }
            _ => report.add(what, Match::ByHand, comparison.grouped_words()),
        }
    }
    Ok(())
}

const ROLE: &str = "config/rbac/role.yaml";

fn compare_roles(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    let what = "permissions of the manager";
    let of = |documents: &[Value]| -> BTreeSet<Permission> {
        let roles = documents.iter().filter(|document| is_role(document));
        roles.flat_map(permissions_of).collect()
    };
    let Some(theirs) = original.manifest(ROLE) else {
        let reason = format!("{ROLE} of the Go project was not found: compare what the manager may do there");
        report.add(what, Match::ByHand, vec![reason]);
        return Ok(());
    };
    let (result, details) =
        compare_permissions(&of(&theirs.documents), &of(&read_planned(plan, tree, ROLE)?));
    report.add(what, result, details);
    Ok(())
}

/// Returns whether `whole` contains everything in `part`.
pub(super) fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Null, _) => true,
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|own| is_within(value, own))),
        (part, whole) => part == whole,
    }
}

/// Formats a change of a value on one line.
pub(super) fn show_change(before: &Value, after: &Value) -> String {
    let show = |value: &Value| {
        let text = value.to_string();
        match text.chars().count() > LONGEST_VALUE {
            true => text.chars().take(LONGEST_VALUE).chain(['…']).collect(),
            false => text,
        }
    };
    match (before, after) {
        (Value::Null, after) => format!("it was not set, and is now {}", show(after)),
        (before, Value::Null) => format!("it was {}, and is no longer set", show(before)),
        (before, after) => format!("it was {}, and is now {}", show(before), show(after)),
    }
}

pub(super) fn prefixed(prefix: &str, mut words: Vec<String>) -> Vec<String> {
    if let Some(first) = words.first_mut() {
        first.insert_str(0, prefix);
    }
    words
}

fn compare_webhooks(
    original: &GoProject,
    plan: &Plan,
    tree: &Tree,
    composed: &Composed<'_>,
    report: &mut Report,
) -> Result<()> {
    let documents = read_planned(plan, tree, "config/webhook/manifests.yaml")?;
    let own = documents.iter().flat_map(webhooks_of);
    let ours: BTreeMap<(&str, &str), &Value> = own.map(|own| ((own.what, own.name()), own.webhook)).collect();
    let published = find_published(original);
    let mut names_of_path: BTreeMap<&str, usize> = BTreeMap::new();
    for found in &published {
        *names_of_path.entry(found.path()).or_default() += 1;
    }
    let is_new = |(what, name): (&str, &str)| {
        published
            .iter()
            .all(|found| (found.what, found.name()) != (what, name))
    };
    for (key, own) in ours.iter().filter(|(key, _)| is_new(**key)) {
        let mut whole = published.iter().filter(|found| found.what == key.0);
        let (result, message) = match whole.find(|found| is_part(own, found.webhook)) {
            Some(whole) => (
                Match::Better,
                format!("the part of {} that is for its kind", whole.name()),
            ),
            None => (
                Match::ByHand,
                "the Go project has no webhook of this name: remove its marker, or keep it if it is new"
                    .to_owned(),
            ),
        };
        report.add(format!("webhook {}", key.1), result, vec![message]);
    }
    for published in published {
        let what = format!("webhook {}", published.name());
        let Some(own) = ours.get(&(published.what, published.name())) else {
            report.add(what, Match::ByHand, vec![published.explain_missing(composed)]);
            continue;
        };
        let differing = differing_keys(published.webhook, own);
        // Several webhooks of the original may share a path, but a handler serves one kind.
        let is_shared = names_of_path
            .get(published.path())
            .is_some_and(|names| *names > 1);
        let of_configuration = ours.iter().filter(|(key, _)| key.0 == published.what);
        let result = match differing.as_slice() {
            [] => Match::Same,
            [key] if *key == REVIEW_VERSIONS => Match::Better,
            [_] if is_shared && without_path(published.webhook) == without_path(own) => Match::Better,
            _ if is_whole(published.webhook, of_configuration.map(|(_, own)| *own)) => Match::Better,
            _ => Match::ByHand,
        };
        let show = |key: &String| {
            let (before, after) = (&published.webhook[key.as_str()], &own[key.as_str()]);
            format!("`{key}`: {}", show_change(before, after))
        };
        report.add(what, result, differing.into_iter().map(show).collect());
    }
    Ok(())
}

/// Returns the keys whose values differ between two objects.
pub(super) fn differing_keys<'a>(before: &'a Value, after: &'a Value) -> Vec<&'a String> {
    let maps = [before, after].into_iter().filter_map(Value::as_object);
    let keys: BTreeSet<&String> = maps.flat_map(|map| map.keys()).collect();
    keys.into_iter()
        .filter(|key| before[key.as_str()] != after[key.as_str()])
        .collect()
}

/// Returns a webhook without the path of its handler.
fn without_path(webhook: &Value) -> Value {
    let mut webhook = webhook.clone();
    if let Some(service) = webhook.pointer_mut("/clientConfig/service")
        && let Some(service) = service.as_object_mut()
    {
        service.remove("path");
    }
    webhook
}

/// Returns whether a webhook is the part of another that concerns one kind: they differ only in
/// name, path and resources.
fn is_part(part: &Value, whole: &Value) -> bool {
    let plain = |webhook: &Value| {
        let mut webhook = without_path(webhook);
        if let Some(webhook) = webhook.as_object_mut() {
            webhook.retain(|key, _| !["name", "rules", REVIEW_VERSIONS].contains(&key.as_str()));
        }
        webhook
    };
    let rules = |webhook: &Value| webhook["rules"].as_array().cloned().unwrap_or_default();
    let has_all = |rule: &Value, other: &Value, key: &str| {
        let (items, others) = (rule[key].as_array(), other[key].as_array());
        let mut items = items.into_iter().flatten();
        items.all(|item| others.is_some_and(|others| others.contains(item)))
    };
    let is_within = |rule: &Value| {
        let keys = ["apiGroups", "apiVersions", "operations", "resources"];
        rules(whole)
            .iter()
            .any(|other| keys.iter().all(|key| has_all(rule, other, key)))
    };
    let parts = rules(part);
    !parts.is_empty() && plain(part) == plain(whole) && parts.iter().all(is_within)
}

/// Returns whether webhooks together cover another one, each with some of its resources.
fn is_whole<'a>(whole: &Value, ours: impl Iterator<Item = &'a Value>) -> bool {
    let resources = |webhook: &Value| -> BTreeSet<String> {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        let resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
        resources.map(Value::to_string).collect()
    };
    let parts = ours.filter(|own| is_part(own, whole));
    let covered: BTreeSet<String> = parts.flat_map(resources).collect();
    whole["rules"].as_array().is_some_and(|rules| rules.len() == 1) && covered == resources(whole)
}
