//! The table: what a cluster gets from the Rust project, beside what it gets from the original.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Value, json};

use super::compose::Composed;
use super::deployment::{adds_to_selectors, find_deployment, name_prefix};
use super::permissions::{Permission, Rule};
use super::webhooks::find_published;
use crate::commands::adopt::{Comparison, Verdict};
use crate::go_project::GoProject;
use crate::plan::Plan;
use crate::tree::Tree;
use crate::yaml_stream::{is_yaml, parse_documents};

/// Details that a row of the text shows; MIGRATION.md and JSON have all.
const MOST_SHOWN: usize = 3;

const MISSING_WEBHOOK: &str = "it is of no kind that was taken over, or has another path than the first of its kind and version: write it as a function with `#[webhook(…)]`";

/// The result for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Same,
    /// It differs on purpose, and nothing is to be done.
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
    fn add(&mut self, what: impl Into<String>, result: Match, details: Vec<String>) {
        self.rows.push(Row {
            what: what.into(),
            result,
            details,
        });
    }

    /// Returns the table as text, with the counts in the end.
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
/// Fails if a file of the directory cannot be read.
pub(super) fn compare(
    original: &GoProject,
    plan: &Plan,
    tree: &Tree,
    composed: &Composed<'_>,
) -> Result<Report> {
    let mut report = Report::default();
    compare_crds(original, plan, tree, &mut report)?;
    compare_roles(original, plan, tree, &mut report)?;
    compare_webhooks(original, plan, tree, &mut report)?;
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

/// Reads the documents of a file of the planned project.
fn read(plan: &Plan, tree: &Tree, path: &str) -> Result<Vec<Value>> {
    let text = plan.read(tree, path)?.unwrap_or_default();
    Ok(parse_documents(&text).unwrap_or_default())
}

fn compare_crds(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    for (path, crd) in original.documents("config/crd/", "CustomResourceDefinition") {
        if !crd["spec"]["versions"].is_array() {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]));
        let what = format!("CRD {plural}.{group}");
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        let ours = match is_name(&group) && is_name(&plural) {
            true => read(plan, tree, &format!("config/crd/bases/{group}_{plural}.yaml"))?,
            false => Vec::new(),
        };
        let Some(generated) = ours.first() else {
            report.add(what, Match::ByHand, vec![format!("{path} has no counterpart")]);
            continue;
        };
        let comparison = Comparison::of(crd, generated);
        match comparison.verdict() {
            Verdict::Same => report.add(what, Match::Same, Vec::new()),
            _ => report.add(what, Match::ByHand, comparison.words()),
        }
    }
    Ok(())
}

fn compare_roles(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    let is_role = |document: &&Value| document["kind"] == "ClusterRole" || document["kind"] == "Role";
    let of = |documents: &[Value]| -> BTreeSet<Permission> {
        let rules = documents.iter().filter(is_role).flat_map(Rule::of_role);
        rules.flat_map(|rule| rule.permissions()).collect()
    };
    let theirs = original
        .manifest("config/rbac/role.yaml")
        .map(|file| of(&file.documents))
        .unwrap_or_default();
    let ours = of(&read(plan, tree, "config/rbac/role.yaml")?);
    let shown = |(namespace, group, resource, name, verb): &Permission| {
        let group = if group.is_empty() {
            String::new()
        } else {
            format!("{group}/")
        };
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!(" in {namespace}")
        };
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" {name}")
        };
        format!("{verb} {group}{resource}{name}{place}")
    };
    let lost: Vec<String> = theirs.difference(&ours).map(shown).collect();
    let more: Vec<String> = ours.difference(&theirs).map(shown).collect();
    match (lost.is_empty(), more.is_empty()) {
        (true, true) => report.add("permissions of the manager", Match::Same, Vec::new()),
        (true, false) => report.add(
            "permissions of the manager",
            Match::Better,
            prefixed("more: ", more),
        ),
        (false, _) => report.add(
            "permissions of the manager",
            Match::ByHand,
            prefixed("missing: ", lost),
        ),
    }
    Ok(())
}

fn prefixed(prefix: &str, mut words: Vec<String>) -> Vec<String> {
    if let Some(first) = words.first_mut() {
        first.insert_str(0, prefix);
    }
    words
}

fn compare_webhooks(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    let documents = read(plan, tree, "config/webhook/manifests.yaml")?;
    let ours: BTreeMap<String, &Value> = documents
        .iter()
        .flat_map(|document| document["webhooks"].as_array().into_iter().flatten())
        .filter_map(|webhook| Some((webhook["name"].as_str()?.to_owned(), webhook)))
        .collect();
    let published = find_published(original);
    for name in ours
        .keys()
        .filter(|name| published.iter().all(|found| found.name() != **name))
    {
        let message = "the Go project has none of this name: remove its marker, or keep it if it is new";
        report.add(format!("webhook {name}"), Match::ByHand, vec![message.to_owned()]);
    }
    for published in published {
        let what = format!("webhook {}", published.name());
        let Some(own) = ours.get(published.name()) else {
            report.add(what, Match::ByHand, vec![MISSING_WEBHOOK.to_owned()]);
            continue;
        };
        let keys: BTreeSet<&String> = [published.webhook, own]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|map| map.keys())
            .collect();
        let differing: Vec<String> = keys
            .into_iter()
            .filter(|key| published.webhook[key.as_str()] != own[key.as_str()])
            .map(|key| format!("`{key}` differs"))
            .collect();
        let result = if differing.is_empty() {
            Match::Same
        } else {
            Match::ByHand
        };
        report.add(what, result, differing);
    }
    Ok(())
}

/// The objects that `kubectl apply -k config/default` would apply, by kind and name before the prefix.
fn find_objects(read: &dyn Fn(&str) -> Option<String>) -> BTreeSet<(String, String)> {
    let mut found = Vec::new();
    let mut deleted = Vec::new();
    let mut open = vec!["config/default".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) || seen.len() > 2_000 {
            continue;
        }
        if is_yaml(&path) {
            found.extend(read_documents(read, &path));
            continue;
        }
        for kustomization in read_documents(read, &format!("{path}/kustomization.yaml")) {
            open.extend(listed_paths(&kustomization).filter_map(|entry| join(&path, entry)));
            let patches = kustomization["patches"].as_array().into_iter().flatten();
            deleted.extend(patches.filter_map(|patch| deletion(read, &path, patch)));
        }
    }
    found
        .iter()
        .filter(|object| !deleted.iter().any(|target| is_selected(object, target)))
        .map(|object| (text(&object["kind"]), text(&object["metadata"]["name"])))
        .collect()
}

/// Returns what a kustomization is made of: files and folders, as it lists them.
pub(super) fn listed_paths(kustomization: &Value) -> impl Iterator<Item = &str> {
    let lists = ["resources", "bases", "components"].into_iter();
    let entries = lists.flat_map(|key| kustomization[key].as_array().into_iter().flatten());
    entries.filter_map(Value::as_str)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read_documents(read: &dyn Fn(&str) -> Option<String>, path: &str) -> Vec<Value> {
    let documents = read(path).and_then(|text| parse_documents(&text).ok());
    documents.unwrap_or_default()
}

/// The target of a patch that deletes objects, such as that for objects which cert-manager makes needless.
fn deletion(read: &dyn Fn(&str) -> Option<String>, folder: &str, patch: &Value) -> Option<Value> {
    let documents = match patch["patch"].as_str() {
        Some(text) => parse_documents(text).ok()?,
        None => read_documents(read, &join(folder, patch["path"].as_str()?)?),
    };
    let deletes = documents
        .into_iter()
        .find(|document| document["$patch"] == "delete")?;
    match &patch["target"] {
        Value::Null => Some(json!({ "kind": deletes["kind"], "name": deletes["metadata"]["name"] })),
        target => Some(target.clone()),
    }
}

/// Returns true if a target of kustomize selects an object: by kind and name, and by labels with one value each.
fn is_selected(object: &Value, target: &Value) -> bool {
    let agrees = |key: &str, value: &Value| target[key].is_null() || target[key] == *value;
    let selector = target["labelSelector"].as_str().unwrap_or_default();
    let has_label = |part: &str| match part.split_once('=') {
        Some((key, value)) => object["metadata"]["labels"][key.trim()] == value.trim(),
        None => false,
    };
    target["annotationSelector"].is_null()
        && agrees("kind", &object["kind"])
        && agrees("name", &object["metadata"]["name"])
        && selector.split(',').filter(|part| !part.is_empty()).all(has_label)
}

/// Joins a path of a kustomization to its folder; `None` if it leads out of the project.
fn join(folder: &str, entry: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in entry.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn compare_objects(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) {
    let theirs = find_objects(&|path| original.manifest(path).map(|file| file.text.clone()));
    let ours = find_objects(&|path| plan.read(tree, path).ok().flatten());
    let mut lost = Vec::new();
    let mut kept = 0;
    for (kind, name) in &theirs {
        match ours.contains(&(kind.clone(), name.clone())) {
            true => kept += 1,
            false => lost.push(format!("{kind} {name}")),
        }
    }
    if kept > 0 {
        report.add(
            format!("names of {kept} objects of config/default"),
            Match::Same,
            Vec::new(),
        );
    }
    for object in lost {
        report.add(
            object,
            Match::ByHand,
            vec!["config/default of the Go project has it: copy it if it is yours".to_owned()],
        );
    }
    let more: Vec<String> = ours
        .difference(&theirs)
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    if !more.is_empty() {
        report.add("objects that are new", Match::Better, more);
    }
}

fn compare_deployments(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<()> {
    let documents = read(plan, tree, "config/manager/manager.yaml")?;
    let (Some(theirs), Some(ours)) = (
        find_deployment(original),
        documents.iter().find(|document| document["kind"] == "Deployment"),
    ) else {
        return Ok(());
    };
    let prefix = name_prefix(original);
    let pod = |deployment: &Value, pointer: &str| deployment.pointer(pointer).cloned().unwrap_or_default();
    for (what, pointer) in [
        ("name of the Deployment", "/metadata/name"),
        ("selector of the Deployment", "/spec/selector"),
        ("replicas", "/spec/replicas"),
        ("service account", "/spec/template/spec/serviceAccountName"),
        (
            "resources of the manager",
            "/spec/template/spec/containers/0/resources",
        ),
    ] {
        let (before, after) = (pod(theirs, pointer), pod(ours, pointer));
        // kustomize adds the prefix to a name, and leaves one that has it as it is.
        let is_prefixed =
            || before.as_str() == after.as_str().map(|name| format!("{prefix}{name}")).as_deref();
        // Labels of the kustomization may be in the selector, and are left to a person.
        let is_whole = pointer != "/spec/selector" || !adds_to_selectors(original);
        let is_same = before == after && is_whole
            || before.is_null() && pointer.ends_with("replicas")
            || pointer.ends_with("serviceAccountName") && is_prefixed();
        let details = if is_same {
            Vec::new()
        } else {
            match is_whole {
                true => vec![format!("it was {before}, and is {after}")],
                false => vec!["labels of config/default/kustomization.yaml are in the original's: copy them before you deploy".to_owned()],
            }
        };
        report.add(what, if is_same { Match::Same } else { Match::ByHand }, details);
    }
    let list = |deployment: &Value, pointer: &str| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    for (what, pointer) in [
        (
            "arguments of the manager",
            "/spec/template/spec/containers/0/args",
        ),
        (
            "environment of the manager",
            "/spec/template/spec/containers/0/env",
        ),
        ("volumes", "/spec/template/spec/volumes"),
        ("volume mounts", "/spec/template/spec/containers/0/volumeMounts"),
    ] {
        let own = list(ours, pointer);
        let lost: Vec<String> = list(theirs, pointer)
            .iter()
            .filter(|item| !own.contains(item))
            .map(Value::to_string)
            .collect();
        if !lost.is_empty() {
            report.add(what, Match::ByHand, prefixed("missing: ", lost));
        }
    }
    let containers = list(theirs, "/spec/template/spec/containers").len();
    if containers > 1 {
        report.add(
            "containers",
            Match::ByHand,
            vec![format!(
                "the original has {containers}, and the first is compared"
            )],
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_patches_delete_are_not_there() {
        let check = |patches: &str, expected: &[&str]| {
            let root = format!("resources: [a.yaml, ../b/]\npatches: {patches}");
            let read = |path: &str| {
                match path {
                "config/default/kustomization.yaml" => Some(root.clone()),
                "config/default/a.yaml" => {
                    Some("kind: Role\nmetadata: {name: a, labels: {part: x}}\n---\nkind: Service\nmetadata: {name: s}\n".to_owned())
                }
                "config/b/kustomization.yaml" => Some("resources: [role.yaml]".to_owned()),
                "config/b/role.yaml" => Some("kind: Role\nmetadata: {name: b, labels: {part: y}}\n".to_owned()),
                "config/default/delete.yaml" => Some("$patch: delete\nkind: Role\nmetadata: {name: b}\n".to_owned()),
                _ => None,
            }
            };
            let names: Vec<String> = find_objects(&read).into_iter().map(|(_, name)| name).collect();
            assert_eq!(names, expected, "{patches}");
        };
        check("[]", &["a", "b", "s"]);
        check("[{path: delete.yaml}]", &["a", "s"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part=x}}]",
            &["b", "s"],
        );
        check("[{path: delete.yaml, target: {kind: Service}}]", &["a", "b"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part in (x)}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: delete.yaml, target: {annotationSelector: part=x}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: missing.yaml}, {patch: 'kind: Role', target: {kind: Role}}]",
            &["a", "b", "s"],
        );
    }
}
