//! Tells which definition of a kind has the existing CRD, if several packages define the kind.

use anyhow::Result;
use rbuilder_compatibility::Budget;
use rbuilder_generator::{Duplicate, FileRange, Findings, KEEP_ONE, KindSummary};
use serde_json::Value;

use super::layout::Layout;
use crate::commands::adopt::{Comparison, Verdict, manifest_of};
use crate::crd_file::{CrdFile, is_rendered};
use crate::report;
use crate::tree::{Tree, TreeSources};

/// The existing CRD of a kind, with its file.
pub(in crate::commands) struct ExistingCrd {
    pub(in crate::commands) path: String,
    pub(in crate::commands) value: Value,
}

/// Replaces the help of each error about several definitions of a kind by one that compares them
/// with the existing CRD. `find_crd` returns that CRD, if there is one.
pub(in crate::commands) fn compare_duplicates(
    found: &mut Findings,
    sources: &TreeSources,
    find_crd: &dyn Fn(&KindSummary) -> Result<Option<ExistingCrd>>,
) -> Result<()> {
    for kind in found.kinds.iter().filter(|kind| !kind.duplicates.is_empty()) {
        let Some(crd) = find_crd(kind)? else { continue };
        let help = advise(kind, &crd, sources);
        let is_at = |place: &FileRange| kind.duplicates.iter().any(|duplicate| duplicate.place == *place);
        let errors = found.diagnostics.iter_mut();
        errors
            .filter(|error| error.help.as_deref() == Some(KEEP_ONE) && is_at(&error.place))
            .for_each(|error| error.help = Some(help.clone()));
    }
    Ok(())
}

fn advise(kind: &KindSummary, crd: &ExistingCrd, sources: &TreeSources) -> String {
    let budget = Budget::default();
    let is_equal = |duplicate: &&Duplicate| {
        let text = duplicate.crd.as_deref();
        let printed = text.and_then(|text| rbuilder_yaml::parse_value(text).ok());
        printed
            .is_some_and(|printed| Comparison::of(&crd.value, &printed, &budget).verdict() == Verdict::Same)
    };
    let (equal, others): (Vec<&Duplicate>, Vec<&Duplicate>) = kind.duplicates.iter().partition(is_equal);
    let places = |list: &[&Duplicate]| {
        let places = list.iter().map(|duplicate| {
            let (line, column) = report::find_start(&duplicate.place, sources);
            format!("{}:{line}:{column}", duplicate.place.path)
        });
        places.collect::<Vec<_>>().join(" and ")
    };
    let manifests = |list: &[&Duplicate], word: &str| {
        let paths = list.iter().map(|duplicate| manifest_of(&duplicate.package));
        paths.collect::<Vec<_>>().join(word)
    };
    let path = &crd.path;
    let skip = format!(
        "`skip = [\"{}.{}\"]` to `[package.metadata.rbuilder]`",
        kind.kind, kind.group
    );
    match equal.as_slice() {
        [] => format!(
            "{path} equals none of the definitions at {}: keep one of them, and add {skip} in the Cargo.toml of each other package",
            places(&others)
        ),
        [_] => format!(
            "{path} equals the definition at {}: keep it, and add {skip} in {}",
            places(&equal),
            manifests(&others, " and ")
        ),
        _ => format!(
            "{path} equals the definitions at {}: keep one of them, and add {skip} in {}",
            places(&equal),
            match others.is_empty() {
                true => manifests(&equal, " or "),
                false => format!(
                    "the Cargo.toml of each other package, such as {}",
                    manifests(&others, " and ")
                ),
            }
        ),
    }
}

/// Reads the existing CRD of a kind from the place where it is written.
pub(super) fn read_existing(tree: &Tree, layout: &Layout, kind: &KindSummary) -> Result<Option<ExistingCrd>> {
    let name = format!("{}.{}", kind.plural, kind.group);
    for path in layout.crd_paths(&kind.group, &kind.plural) {
        let Some(text) = tree.read(&path)? else { continue };
        let file = CrdFile::parse(&text, is_rendered(tree, &path)?);
        if let Some(value) = file.read_crd(&name).cloned() {
            return Ok(Some(ExistingCrd { path, value }));
        }
    }
    Ok(None)
}
