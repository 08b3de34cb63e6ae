//! The base of the ClusterServiceVersion. Descriptions of kinds and fields become `#[csv(…)]`;
//! everything else stays in a base.

use rbuilder_generator::yaml;
use serde_json::{Value, json};

use super::composed::{Composed, Unplaced};
use super::kinds::Leftover;
use crate::bundle::version::is_version;
use crate::bundle::{Base, EntryMarkers, list_owned};
use rbuilder_go_project::GoProject;

/// Finds the bases of a project with their paths. There should only be one.
fn find_bases(original: &GoProject) -> impl Iterator<Item = (&str, &Value)> {
    original.documents(Base::FOLDER, Base::KIND)
}

/// Converts the base's entries for a CRD, one per version.
pub(super) fn read_entries<'a>(original: &'a GoProject, crd: &Value) -> Vec<EntryMarkers<'a>> {
    let entries = find_bases(original).next().into_iter();
    let entries = entries.flat_map(|(_, base)| list_owned(base));
    entries
        .filter_map(|entry| EntryMarkers::read(entry, crd))
        .collect()
}

pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) {
    let mut bases = find_bases(original);
    let Some((path, base)) = bases.next() else {
        return;
    };
    for (other, _) in bases {
        let reason = format!(
            "a project has one base, which is imported from {path} of the Go project: merge this one by hand"
        );
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
    // The value may be a placeholder that a build script fills in.
    if let Err(error) = Base::check(&split.rest, &ours) {
        let reason = format!("`rbuilder bundle` rejects it: {error}");
        composed.left.push(Leftover::new(path, reason));
    }
    composed.files.insert(ours, yaml::to_string(&split.rest));
    if !split.unknown.is_empty() {
        let list = split.unknown.join(", ");
        let reason = format!("it describes fields that no CRD has, which are omitted: {list}");
        composed.left.push(Leftover::new(path, reason));
    }
    if let Some(replaced) = base["spec"]["replaces"].as_str() {
        let version = replaced.split_once(".v").map(|(_, version)| version);
        let reason = match version.filter(|version| is_version(version)) {
            Some(version) => {
                format!(
                    "it replaces `{replaced}`: pass `--replaces {version}` to the first `rbuilder bundle`"
                )
            }
            None => format!(
                "it replaces `{replaced}`, which is not the version of a release: the first `rbuilder bundle` replaces nothing"
            ),
        };
        composed.left.push(Leftover::new(path, reason));
    }
}

struct SplitBase {
    rest: Value,
    counts: Counts,
    /// CRDs and fields that the base describes but the project doesn't have.
    unknown: Vec<String>,
}

#[derive(Default)]
struct Counts {
    kinds: usize,
    fields: usize,
}

fn split_base(base: &Value, composed: &Composed<'_>) -> SplitBase {
    let mut rest = Vec::new();
    let mut counts = Counts::default();
    let mut unknown = Vec::new();
    for entry in list_owned(base) {
        let is_same = |(split, _): &&(EntryMarkers<'_>, Unplaced)| std::ptr::eq(split.entry, entry);
        let Some((split, unplaced)) = composed.entries.iter().find(is_same) else {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            unknown.push(match text("version") {
                "" => format!("`{}` without a version", text("name")),
                version => format!("`{}` in version `{version}`", text("name")),
            });
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
