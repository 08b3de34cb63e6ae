//! The table: compares a cluster's objects from the Rust project with the original's.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_compatibility::Budget;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::rbac::{Permission, permissions_of};
use serde_json::Value;

use super::comparison::{Match, Report, differing_keys, read_planned, show_change};
use super::composed::Composed;
use super::objects::compare_objects;
use super::permissions::compare_permissions;
use super::published::{find_published, webhooks_of};
use super::webhooks::REVIEW_VERSIONS;
use super::workload::compare_deployments;
use crate::commands::adopt::{Comparison, Verdict};
use crate::commands::permissions::is_role;
use crate::plan::Plan;
use crate::tree::Tree;
use rbuilder_go_project::GoProject;

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

fn compare_crds(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    let budget = Budget::default();
    for found in original.definitions() {
        let (path, crd) = (found.path, found.crd);
        let (group, plural) = (Crd::of(crd).group(), Crd::of(crd).plural());
        let what = format!("CRD {}", Crd::of(crd).expected_name());
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        let ours = match is_name(group) && is_name(plural) {
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
        // A patch of the Go project adds the webhook that converts, and PROJECT records it instead.
        let mut crd = crd.clone();
        if crd["spec"]["conversion"].is_null() {
            crd["spec"]["conversion"] = generated["spec"]["conversion"].clone();
        }
        let comparison = Comparison::of(&crd, generated, &budget);
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

fn without_path(webhook: &Value) -> Value {
    let mut webhook = webhook.clone();
    if let Some(service) = webhook.pointer_mut("/clientConfig/service")
        && let Some(service) = service.as_object_mut()
    {
        service.remove("path");
    }
    webhook
}

/// Whether one webhook is the part of another one for a single kind. They may only differ in name,
/// path and resources.
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
