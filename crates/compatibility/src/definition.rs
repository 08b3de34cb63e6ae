//! Compares two CRDs: names, scope, versions, subresources and columns.

use std::collections::BTreeSet;

use rbuilder_judge::Definition;
use rbuilder_kubernetes::crd::{Crd, Version};
use serde_json::Value;

use crate::change::Change;
use crate::conversion::compare_conversion;
use crate::crd::definition;
use crate::level::{Level, Party};
use crate::path::Path;
use crate::place::{Place, shown, text};
use crate::schema::{Difference, Probe, compare_schemas};
use crate::settled::settle;
use crate::version_parts::{compare_columns, compare_subresources};
use crate::witness::{Budget, Goal, Outcome, Pair, edges};

pub(crate) fn compare_definitions(
    old: &Value,
    new: &Value,
    place: &Place,
    budget: &Budget,
) -> Result<Vec<Change>, String> {
    let mut changes = compare_names(old, new, place);
    changes.extend(compare_versions(old, new, place));
    changes.extend(compare_conversion(old, new, place, budget)?);
    for (before, after) in kept_versions(old, new) {
        let place = place.version(before.name);
        changes.extend(compare_subresources(before.value, after.value, &place));
        changes.extend(compare_columns(before.value, after.value, &place));
        changes.extend(compare_version_schemas(old, new, before.name, &place, budget)?);
    }
    Ok(changes)
}

fn compare_names(old: &Value, new: &Value, place: &Place) -> Vec<Change> {
    let (old, new) = (&old["spec"], &new["spec"]);
    let mut changes = Vec::new();
    let mut differs = |name: &str, field: &str, before: &Value, after: &Value| {
        if !after.is_null() && !before.is_null() && before != after {
            let message = format!("{} instead of {}", shown(after), shown(before));
            changes.push(place.change(name, field, message));
        }
    };
    differs("scope-changed", "spec.scope", &old["scope"], &new["scope"]);
    let (before, after) = (
        &with_default_names(&old["names"]),
        &with_default_names(&new["names"]),
    );
    differs("kind-changed", "spec.names.kind", &before["kind"], &after["kind"]);
    differs(
        "list-kind-changed",
        "spec.names.listKind",
        &before["listKind"],
        &after["listKind"],
    );
    for (key, noun) in [
        ("singular", "singular"),
        ("shortNames", "short name"),
        ("categories", "category"),
    ] {
        let (before, after) = (names(&before[key]), names(&after[key]));
        let field = format!("spec.names.{key}");
        for name in before.difference(&after) {
            changes.push(place.change("name-removed", &field, format!("no {noun} `{name}`")));
        }
        for name in after.difference(&before) {
            changes.push(place.change("name-added", &field, format!("{noun} `{name}`")));
        }
    }
    changes
}

/// Adds the names that the API server derives from the kind.
fn with_default_names(names: &Value) -> Value {
    let mut names = names.clone();
    let kind = text(&names["kind"]);
    for (key, default) in [
        ("singular", kind.to_lowercase()),
        ("listKind", format!("{kind}List")),
    ] {
        if names[key].as_str().is_none_or(str::is_empty) && !kind.is_empty() {
            names[key] = default.into();
        }
    }
    names
}

fn names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        Value::String(name) => BTreeSet::from([name.clone()]),
        _ => BTreeSet::new(),
    }
}

fn kept_versions<'c>(old: &'c Value, new: &'c Value) -> Vec<(Version<'c>, Version<'c>)> {
    let kept = Crd::of(old).versions();
    kept.filter_map(|before| Some((before, Crd::of(new).version(before.name)?)))
        .collect()
}

/// Returns true if objects may be stored in this version: it's listed in `storedVersions`, or it's
/// the storage version.
fn may_be_stored(crd: Crd<'_>, name: &str) -> bool {
    let recorded = crd.stored_versions().unwrap_or_default();
    recorded.contains(&name) || crd.storage().is_some_and(|version| version.name == name)
}

fn compare_versions(old: &Value, new: &Value, place: &Place) -> Vec<Change> {
    let (old, new) = (Crd::of(old), Crd::of(new));
    let mut changes = Vec::new();
    for before in old.versions() {
        let place = place.version(before.name);
        let field = format!("spec.versions[{}]", before.name);
        let Some(after) = new.version(before.name) else {
            let is_known = old.stored_versions().is_some();
            if may_be_stored(old, before.name) {
                let message = "the version is removed, in which objects are stored".to_owned();
                changes.push(place.change("stored-version-removed", &field, message));
            } else if !before.is_served && !is_known {
                let message = "the version is removed, which was not served".to_owned();
                changes.push(place.change("unserved-version-removed", &field, message));
            }
            if before.is_served {
                changes.push(place.change("version-removed", &field, "the version is removed".to_owned()));
            }
            continue;
        };
        match (before.is_served, after.is_served) {
            (true, false) => {
                changes.push(place.change(
                    "version-not-served",
                    &field,
                    "the version is not served".to_owned(),
                ));
            }
            (false, true) => {
                changes.push(place.change("version-served", &field, "the version is served".to_owned()));
            }
            _ => {}
        }
        if after.is_deprecated() && !before.is_deprecated() {
            changes.push(place.change(
                "version-deprecated",
                &field,
                "the version is deprecated".to_owned(),
            ));
        }
    }
    for after in new.versions() {
        if old.version(after.name).is_none() {
            let field = format!("spec.versions[{}]", after.name);
            let place = place.version(after.name);
            changes.push(place.change("version-added", &field, "new version".to_owned()));
        }
    }
    if let (Some(before), Some(after)) = (old.storage(), new.storage())
        && before.name != after.name
    {
        let message = format!(
            "objects are stored in `{}` instead of `{}`",
            after.name, before.name
        );
        changes.push(place.change("storage-version-changed", "spec.versions", message));
    }
    changes
}

fn compare_version_schemas(
    old: &Value,
    new: &Value,
    name: &str,
    place: &Place,
    budget: &Budget,
) -> Result<Vec<Change>, String> {
    let (Some(mut before), Some(mut after)) = (definition(old, name)?, definition(new, name)?) else {
        return Ok(Vec::new());
    };
    // Names and scopes were already compared; keep them from causing differences here.
    after.kind.clone_from(&before.kind);
    after.is_namespaced = before.is_namespaced;
    let differences = compare_schemas(&before.schema, &after.schema);
    let gains_status = after.has_status && !before.has_status;
    if differences.is_empty() && !gains_status {
        return Ok(Vec::new());
    }
    let mut changes = Vec::new();
    if gains_status {
        let pair = Pair::new(before.clone(), after.clone(), budget);
        changes.push(describe_status(&pair, &before, place));
    }
    // The new subresource was also reported already.
    before.has_status |= after.has_status;
    after.has_status = before.has_status;
    let pair = Pair::new(before, after, budget);
    for difference in differences {
        let outcome = search(&pair, &difference);
        let mut change = place.change(
            difference.rule.name,
            &difference.path.to_string(),
            difference.message.clone(),
        );
        match difference.probe {
            Probe::Nothing => {}
            Probe::Unaffected => {
                change.level = Level::Compatible;
                change.affects.clear();
            }
            Probe::Values { .. } | Probe::Default { .. } | Probe::Rule { .. } => settle(&mut change, outcome),
        }
        // Only the operator writes the status, so it gets the error.
        if difference.path.is_status() && change.affects.remove(&Party::Writers) {
            change.affects.insert(Party::Operator);
        }
        changes.push(change);
    }
    Ok(changes)
}

/// Once there's a `status` subresource, regular writes no longer change the status.
fn describe_status(pair: &Pair<'_>, old: &Definition, place: &Place) -> Change {
    let mut change = place.change(
        "status-subresource-added",
        "subresources.status",
        "new".to_owned(),
    );
    let path = Path::default().field("status");
    if let Some(status) = old.schema.properties.get("status") {
        let goal = Goal::new(&path, true).writes_whole();
        settle(&mut change, pair.search(&goal, &edges(status, status)));
    }
    change
}

fn search(pair: &Pair<'_>, difference: &Difference) -> Outcome {
    match &difference.probe {
        Probe::Nothing | Probe::Unaffected => Outcome::default(),
        Probe::Values {
            path,
            candidates,
            reads,
            alone,
        } => pair.search(&Goal::new(path, *reads).alone(alone), candidates),
        Probe::Default { values, alone } => {
            pair.search_default(&Goal::of_default(&difference.path).alone(alone), values)
        }
        Probe::Rule { rule, node, alone } => {
            let goal = || Goal::new(&difference.path, false).alone(alone).of_rule(rule);
            let mut outcome = pair.search_rule(&goal(), rule, node);
            // Rules of the whole object see the status, which only the subresource writes.
            let sees_status = difference.path.0.is_empty() && rule.rule.contains("status");
            if outcome.witness.is_none() && sees_status && pair.old.definition().has_status {
                let accepted = outcome.accepted;
                outcome = pair.search_rule(&goal().through_status(), rule, node);
                outcome.accepted += accepted;
            }
            outcome
        }
    }
}

pub(crate) fn describe_presence(is_new: bool, place: &Place) -> Change {
    match is_new {
        true => place.change("crd-added", "", "new".to_owned()),
        false => place.change("crd-removed", "", "removed".to_owned()),
    }
}
