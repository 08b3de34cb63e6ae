//! CRD conversion: changes of the strategy, and fields lost between versions.

use std::collections::BTreeSet;

use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

use crate::change::Change;
use crate::crd::definition;
use crate::place::Place;
use crate::schema::{Difference, Probe, compare_schemas};
use crate::settled::settle;
use crate::witness::{Budget, Goal, Outcome, Pair};

pub(crate) fn compare_conversion(
    old: &Value,
    new: &Value,
    place: &Place,
    budget: &Budget,
) -> Result<Vec<Change>, String> {
    let (before, after) = (strategy(old), strategy(new));
    let field = "spec.conversion";
    let change = |name: &str, message: String| vec![place.change(name, field, message)];
    Ok(match (before.as_str(), after.as_str()) {
        ("None", "None") => find_missing_conversion(old, new, place, budget)?,
        (_, "None") => change("conversion-removed", format!("no conversion instead of {before}")),
        ("None", _) => change("conversion-added", format!("conversion by {after}")),
        _ if Crd::of(old).conversion() != Crd::of(new).conversion() => change(
            "conversion-changed",
            "another webhook, or another call of it".to_owned(),
        ),
        _ => Vec::new(),
    })
}

pub(crate) fn strategy(crd: &Value) -> String {
    match Crd::of(crd).conversion()["strategy"].as_str() {
        Some(strategy) => strategy.to_owned(),
        None => "None".to_owned(),
    }
}

/// Pairs each served version with the storage version, which need not be served itself.
pub(crate) fn served_pairs(crd: &Value) -> Vec<(String, String)> {
    let crd = Crd::of(crd);
    let Some(storage) = crd.storage() else {
        return Vec::new();
    };
    let others = crd.served().filter(|version| version.name != storage.name);
    others
        .map(|version| (version.name.to_owned(), storage.name.to_owned()))
        .collect()
}

/// Returns a change for each pair of served versions between which fields are lost.
fn find_missing_conversion(
    old: &Value,
    new: &Value,
    place: &Place,
    budget: &Budget,
) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for (name, stored) in served_pairs(new) {
        let schema = |version: &str| Crd::of(new).version(version).map(|version| version.schema());
        let is_known = [&name, &stored].into_iter().all(|version| {
            let former = Crd::of(old).version(version);
            // Not a new problem if the old CRD has the same two versions with the same schemas.
            former.is_some_and(|former| Some(former.schema()) == schema(version) && former.is_served)
        });
        let is_stored_served = Crd::of(new)
            .version(&stored)
            .is_some_and(|stored| stored.is_served);
        if !is_stored_served || schema(&name) == schema(&stored) || is_known {
            continue;
        }
        let Some((difference, outcome)) = find_loss(old, new, &name, &stored, budget)? else {
            continue;
        };
        let message = format!(
            "an object written in `{name}` loses `{}` when it is stored in `{stored}`, because the CRD has no conversion",
            difference.path
        );
        let mut change = place
            .version(&name)
            .change("conversion-missing", "spec.conversion", message);
        settle(&mut change, outcome);
        changes.push(change);
    }
    Ok(changes)
}

fn find_loss(
    old: &Value,
    new: &Value,
    from: &str,
    to: &str,
    budget: &Budget,
) -> Result<Option<(Difference, Outcome)>, String> {
    let known: BTreeSet<String> = match lossy_pair(old, from, to, budget)? {
        Some((_, losses)) => losses.into_iter().map(|loss| loss.path.to_string()).collect(),
        None => BTreeSet::new(),
    };
    let Some((pair, losses)) = lossy_pair(new, from, to, budget)? else {
        return Ok(None);
    };
    // Report only one field per pair of versions, and skip losses that already occur in the old
    // CRD.
    for loss in losses {
        if known.contains(&loss.path.to_string()) {
            continue;
        }
        let outcome = search_loss(&pair, &loss);
        if outcome.witness.is_some() {
            return Ok(Some((loss, outcome)));
        }
    }
    Ok(None)
}

pub(crate) fn lossy_pair<'b>(
    crd: &Value,
    from: &str,
    to: &str,
    budget: &'b Budget,
) -> Result<Option<(Pair<'b>, Vec<Difference>)>, String> {
    let (Some(old), Some(new)) = (definition(crd, from)?, definition(crd, to)?) else {
        return Ok(None);
    };
    let mut differences = compare_schemas(&old.schema, &new.schema);
    differences.retain(|found| found.rule.name == "field-removed");
    let pair = Pair::new(old, new, budget);
    Ok(Some((pair, differences)))
}

pub(crate) fn search_loss(pair: &Pair<'_>, difference: &Difference) -> Outcome {
    match &difference.probe {
        Probe::Values { path, candidates, .. } => pair.search_loss(&Goal::new(path, true), candidates),
        Probe::Nothing | Probe::Unaffected | Probe::Default { .. } | Probe::Rule { .. } => Outcome::default(),
    }
}
