//! The base of the ClusterServiceVersion: what it says of kinds and fields becomes `#[csv(…)]`, and the rest stays in a base.

use std::collections::BTreeSet;

use rbuilder_generator::{CsvMarkers, yaml};
use serde_json::{Value, json};

use super::compose::Composed;
use super::kinds::Leftover;
use crate::bundle::{Base, EntryMarkers};
use crate::go_project::GoProject;

/// Directory of the bases.
const FOLDER: &str = "config/manifests/bases/";

/// Descriptors that no field of the types can have, as `spec` or `status` and a path.
pub(super) type Unplaced = BTreeSet<(&'static str, String)>;

/// Returns the markers that say what the base of a project says of a CRD, one for each version.
pub(super) fn find_markers(original: &GoProject, crd: &Value) -> Vec<CsvMarkers> {
    let base = original.documents(FOLDER, "ClusterServiceVersion").next();
    let entries = base.into_iter().flat_map(|(_, base)| owned(base));
    entries
        .filter_map(|entry| EntryMarkers::read(entry, crd))
        .map(|entry| entry.markers)
        .collect()
}

/// Writes the base of the project, without what has become markers.
pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) {
    let mut bases = original.documents(FOLDER, "ClusterServiceVersion");
    let Some((path, base)) = bases.next() else {
        return;
    };
    for (other, _) in bases {
        let reason =
            format!("a project has one base, and it is made of {path}: take over by hand what this one says");
        composed.left.push(Leftover::new(other, reason));
    }
    let split = split_base(base, composed);
    let ours = Base::path(&composed.project.known.project_name);
    let Counts { kinds, fields } = split.counts;
    let kinds = count(kinds, ["version of a kind", "versions of kinds"]);
    let fields = count(fields, ["field", "fields"]);
    let reason =
        format!("`#[csv(…)]` describes {kinds} and {fields}; `rbuilder bundle` reads the rest in {ours}");
    composed.better.push(Leftover::new(path, reason));
    composed.files.insert(ours, yaml::to_string(&split.rest));
    if !split.unknown.is_empty() {
        let list = split.unknown.join(", ");
        let reason = format!("it describes what no CRD has, which is left out: {list}");
        composed.left.push(Leftover::new(path, reason));
    }
    if let Some(replaced) = base["spec"]["replaces"].as_str() {
        let version = replaced.split_once(".v").map_or(replaced, |(_, version)| version);
        let reason =
            format!("it replaces `{replaced}`: pass `--replaces {version}` to the first `rbuilder bundle`");
        composed.left.push(Leftover::new(path, reason));
    }
}

/// A base, taken apart.
struct SplitBase {
    /// The base without what has become markers.
    rest: Value,
    counts: Counts,
    /// What it describes and no CRD has.
    unknown: Vec<String>,
}

/// Numbers of what markers describe.
#[derive(Default)]
struct Counts {
    kinds: usize,
    fields: usize,
}

fn split_base(base: &Value, composed: &Composed<'_>) -> SplitBase {
    let mut rest = Vec::new();
    let mut counts = Counts::default();
    let mut unknown = Vec::new();
    for entry in owned(base) {
        let Some((split, unplaced)) = split_entry(entry, composed) else {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            unknown.push(format!("`{}` in version `{}`", text("name"), text("version")));
            continue;
        };
        let markers = &split.markers;
        counts.kinds += 1;
        counts.fields += markers.spec.len() + markers.status.len() - unplaced.len();
        rest.extend(split.rest(unplaced));
        let of = format!("`{}` of `{}`", markers.version, markers.kind);
        unknown.extend(split.unknown.iter().map(|field| format!("`{field}` in {of}")));
    }
    let mut base = base.clone();
    let crds = base.pointer_mut("/spec/customresourcedefinitions");
    if let Some(crds) = crds.and_then(Value::as_object_mut) {
        crds.remove("owned");
        crds.extend((!rest.is_empty()).then(|| ("owned".to_owned(), json!(rest))));
    }
    SplitBase {
        rest: base,
        counts,
        unknown,
    }
}

fn count(number: usize, [one, more]: [&str; 2]) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Takes an entry of the base apart, if its CRD has become types.
fn split_entry<'e, 'c>(
    entry: &'e Value,
    composed: &'c Composed<'_>,
) -> Option<(EntryMarkers<'e>, &'c Unplaced)> {
    let crds = composed.kinds.iter().filter_map(|kind| kind.crd);
    let split = crds
        .into_iter()
        .find_map(|(_, crd)| EntryMarkers::read(entry, crd))?;
    let CsvMarkers {
        group, version, kind, ..
    } = &split.markers;
    let unplaced = composed
        .unplaced
        .get(&(group.clone(), kind.clone(), version.clone()))?;
    Some((split, unplaced))
}

fn owned(base: &Value) -> impl Iterator<Item = &Value> {
    let owned = base["spec"]["customresourcedefinitions"]["owned"].as_array();
    owned.into_iter().flatten()
}
