//! Warns about breaking changes of a CRD that aren't covered elsewhere, e.g. of bounds, patterns,
//! rules, list types, defaults and subresources.
//!
//! For changes that make objects undecodable or prevent the CRD from being applied, the warnings of
//! [`stored`](super::stored) and [`versions`](super::versions) are more helpful.

use rbuilder_compatibility::{Budget, Change, Level, compare_within};
use rbuilder_generator::{Diagnostic, FieldPath, FileRange, Options, Sources, find_fields};
use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

use super::definition::ChangedFile;

/// Search budget for examples, lower than in `rbuilder diff`.
const STEPS: u64 = 30_000;

/// Changes covered by other warnings.
const WARNED_ELSEWHERE: [&str; 10] = [
    "crd-removed",
    "scope-changed",
    "kind-changed",
    "version-removed",
    "stored-version-removed",
    "field-removed",
    "required-added",
    "type-changed",
    "enum-added",
    "enum-value-removed",
];

/// Changes that are detected but, unless they are breaking, not worth a warning.
const HARMLESS: [&str; 1] = ["default-added"];

/// Warns about each breaking change in the plan, and about risky changes of values. Warnings point
/// to the field in the source.
///
/// `is_released` tells whether the CRD in a file may exist in a cluster.
pub(super) fn find_breaking(
    changed: &[ChangedFile],
    sources: &dyn Sources,
    options: &Options,
    is_released: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let budget = Budget::of(STEPS);
    let mut found: Vec<(&str, FieldPath, Change)> = Vec::new();
    for ChangedFile {
        path, before, after, ..
    } in changed
    {
        // Constraints change all the time while a kind is being developed, so only compare released
        // CRDs.
        if before.is_empty() || after.is_empty() || !is_released(path) {
            continue;
        }
        // The generated CRD is valid. If the old file is unreadable, it wasn't written by us.
        let changes = compare_within(before, after, &budget).unwrap_or_default();
        let warned = changes.into_iter().filter(is_warned_of);
        found.extend(warned.filter_map(|change| Some((path.as_str(), field_path(&change, after)?, change))));
    }
    if found.is_empty() {
        return Vec::new();
    }
    let fields: Vec<FieldPath> = found.iter().map(|(_, field, _)| field.clone()).collect();
    let places = find_fields(sources, options, &fields);
    let found = found.iter().zip(places);
    found
        .map(|((path, _, change), place)| {
            let place = place.map_or_else(|| FileRange::new(*path, 0..0), |place| place.range);
            warn(change, place)
        })
        .collect()
}

fn is_warned_of(change: &Change) -> bool {
    let name = change.rule.name;
    let concerns_values = change.tried.is_some() || name == "map-type-changed";
    let is_risky = change.is_at_least(Level::Risky) && concerns_values && !HARMLESS.contains(&name);
    (change.is_at_least(Level::Breaking) || is_risky) && !WARNED_ELSEWHERE.contains(&name)
}

/// Path of the changed field, or of the kind if the change isn't about a field.
fn field_path(change: &Change, crds: &[Value]) -> Option<FieldPath> {
    let crd = crds
        .iter()
        .find(|crd| crd["metadata"]["name"] == change.name.as_str())?;
    let crd = Crd::of(crd);
    Some(FieldPath {
        group: crd.group().to_owned(),
        kind: crd.kind().to_owned(),
        version: change.version.clone()?,
        path: format!(".{}", change.field),
    })
}

fn warn(change: &Change, place: FileRange) -> Diagnostic {
    let Change {
        name,
        version,
        field,
        message,
        rule,
        ..
    } = change;
    let field = match field.as_str() {
        "" => "the object".to_owned(),
        field => format!("`.{field}`"),
    };
    let version = version.as_deref().unwrap_or_default();
    let message = format!(
        "{field} changes in version `{version}` of `{name}`: {message}; {}",
        rule.reason
    );
    let help = "make sure that stored objects and the manifests of users fit, or make the change in a new version; `rbuilder diff` \
                shows an example";
    Diagnostic::warning(place, message).help(help)
}
