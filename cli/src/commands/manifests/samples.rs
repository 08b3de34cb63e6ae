//! Finds samples in `config/samples` that their CRD rejects, or whose CRD no longer exists.
//!
//! Samples are created together with a kind, and are easily forgotten when the types change.
//! `kubectl apply` then rejects them, and catalogs still show them as examples. `manifests` checks
//! the samples of all kinds in the source, with the generator's schemas, since parsing the CRDs
//! would take longer than generating them. Other commands only check samples of CRDs that they
//! modify; `--check` and `doctor` also check those of CRDs that aren't generated. Objects are
//! validated as in `rbuilder validate`, with the API server's messages.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_generator::{Definition, Diagnostic, Minor, Severity};
use rbuilder_judge::FieldValidation;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_yaml::{is_yaml, list_items, parse_documents};
use serde_json::Value;

use super::Request;
use super::layout::Layout;
use crate::commands::verdicts::{
    Judges, Object, describe_verdict, find_misspelled_stanza, judge_object, parse_objects,
};
use crate::plan::Plan;
use crate::project::Project;
use crate::tree::Tree;

const SAMPLES: &str = "config/samples";

/// Warns about each sample that a generated CRD rejects, and each sample whose kind or version no
/// longer has a CRD. Without `generated`, only CRDs modified by the plan are considered.
pub(super) fn find_refused(
    plan: &Plan,
    tree: &Tree,
    layout: &Layout,
    generated: Option<Vec<Definition>>,
) -> Vec<Diagnostic> {
    // Without samples, don't parse what was just generated.
    if list_samples(plan, tree).is_empty() {
        return Vec::new();
    }
    let changed = || plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    let (mut crds, mut before) = (Judges::new(Minor::LATEST), Judges::new(Minor::LATEST));
    let is_generated = generated.is_some();
    crds.add_all(generated.into_iter().flatten());
    for (path, change) in changed() {
        if !is_generated {
            add_crds(&mut crds, path, change.after().unwrap_or_default());
        }
        add_crds(&mut before, path, change.before());
    }
    if crds.has_no_crds() && before.has_no_crds() {
        return Vec::new();
    }
    let was_known = |_: &str, object: &Object| before.find(object).is_some();
    check_samples(plan, tree, &crds, &was_known)
}

/// Warns about each sample that an unmodified CRD rejects, and each sample in one of the project's
/// groups without a CRD.
pub(in crate::commands) fn find_refused_before(plan: &Plan, tree: &Tree) -> Result<Vec<Diagnostic>> {
    let layout = Request::default().with_settings(tree)?.layout;
    find_refused_in(&layout, plan, tree)
}

/// Like [`find_refused_before`], with an existing layout.
pub(super) fn find_refused_in(layout: &Layout, plan: &Plan, tree: &Tree) -> Result<Vec<Diagnostic>> {
    if list_samples(plan, tree).is_empty() {
        return Ok(Vec::new());
    }
    let (mut crds, mut groups) = (Judges::new(Minor::LATEST), BTreeSet::new());
    for path in layout.list_crds(tree)? {
        let text = plan.read(tree, &path)?.unwrap_or_default();
        let found = read_crds(&text);
        groups.extend(found.iter().map(|crd| Crd::of(crd).group().to_owned()));
        if !plan.changes().contains_key(&path) {
            // Ignore CRDs without a structural schema, since rbuilder never generates these.
            let _ = crds.add_objects(&path, found);
        }
    }
    // `find_refused` checks everything modified by the plan.
    let is_settled = plan.changes().keys().all(|path| !layout.holds_crd(path));
    let project = Project::read(tree)?.filter(|project| project.foreign_layout().is_none());
    let is_own = |path: &str, object: &Object| {
        let group = Some(object.group_version().0).filter(|group| is_settled && !group.is_empty());
        group.is_some_and(|group| {
            groups.contains(group)
                || project
                    .as_ref()
                    .is_some_and(|project| project.has_scaffolded_for(path, group))
        })
    };
    Ok(check_samples(plan, tree, &crds, &is_own))
}

fn read_crds(text: &str) -> Vec<Value> {
    let documents = parse_documents(text).unwrap_or_default();
    let mut documents: Vec<Value> = documents.into_iter().flat_map(list_items).collect();
    documents.retain(|document| Crd::of(document).has_versions());
    documents
}

fn add_crds(judges: &mut Judges, path: &str, text: &str) {
    if text.contains("CustomResourceDefinition") {
        let _ = judges.add_text(path, text);
    }
}

pub(super) fn list_samples(plan: &Plan, tree: &Tree) -> BTreeSet<String> {
    let planned = plan.changes().keys();
    let planned = planned.filter(|path| path.starts_with(SAMPLES)).cloned();
    let listed = tree.list(SAMPLES).unwrap_or_default();
    planned.chain(listed).filter(|path| is_yaml(path)).collect()
}

/// Checks the samples. There must be a CRD if `is_own` returns `true`.
fn check_samples(
    plan: &Plan,
    tree: &Tree,
    crds: &Judges,
    is_own: &dyn Fn(&str, &Object) -> bool,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for path in list_samples(plan, tree) {
        // kustomize reports unreadable samples, and they are no reason not to write manifests.
        if let Ok(Some(text)) = plan.read(tree, &path) {
            found.extend(check_sample(&path, &text, crds, is_own));
        }
    }
    found
}

fn check_sample(
    path: &str,
    text: &str,
    crds: &Judges,
    is_own: &dyn Fn(&str, &Object) -> bool,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for object in parse_objects(path, text).unwrap_or_default() {
        if let Some(judge) = crds.find(&object) {
            let verdict = judge_object(judge, &object, &[], FieldValidation::Strict);
            let said = describe_verdict(&verdict, &object, judge);
            found.extend(said.into_iter().filter_map(|said| warn_of_invalid(said, &object)));
        } else if is_own(path, &object) {
            found.push(warn_of_unknown(&object, crds));
        }
    }
    found
}

/// Validates a sample against all CRDs of the project. Also finds misspelled kinds and groups.
pub(super) fn check_sample_by(path: &str, text: &str, crds: &Judges) -> Vec<Diagnostic> {
    check_sample(path, text, crds, &|_, object| {
        let right = find_misspelled_stanza(object, crds);
        right.is_some_and(|right| right.is_defined(object, crds))
    })
}

fn noun(object: &Object) -> String {
    match object.name() {
        name if object.is_listed && !name.is_empty() => format!("the sample `{name}` in this list"),
        _ => "this sample".to_owned(),
    }
}

/// Help for samples without an exact fix.
const UPDATE: &str = "update the sample to match the types: `kubectl apply` rejects it, and the bundle contains it as the \
                      example of the kind";

/// Converts an error of the API server to a warning. Returns `None` for errors about something that
/// can't be checked.
fn warn_of_invalid(said: Diagnostic, object: &Object) -> Option<Diagnostic> {
    let sample = noun(object);
    let warning = match said.severity {
        Severity::Error => Diagnostic::warning(
            said.place,
            format!(
                "{sample} is not a valid `{}` of {}: {}",
                object.kind(),
                object.api_version(),
                said.message
            ),
        )
        .help(said.help.unwrap_or_else(|| UPDATE.to_owned())),
        Severity::Warning => Diagnostic::warning(
            said.place,
            format!("the API server warns about {sample}: {}", said.message),
        )
        .maybe_help(said.help),
        Severity::Note => return None,
    };
    Some(warning)
}

fn warn_of_unknown(object: &Object, judges: &Judges) -> Diagnostic {
    let message = format!(
        "{} is of {}, and no CRD of the project has a `{}` there",
        noun(object),
        object.api_version(),
        object.kind()
    );
    match find_misspelled_stanza(object, judges) {
        Some(found) => Diagnostic::warning(object.place(found.field), message).help(found.help()),
        None => Diagnostic::warning(object.place("apiVersion"), message).help(
            "update its `apiVersion` and `kind` to match the types, or delete it and its entry in the kustomization: `kubectl apply` rejects it",
        ),
    }
}
