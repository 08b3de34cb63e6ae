//! Reads `Cargo.toml` files: packages, target roots, enabled features and dependency names.
//!
//! `cargo metadata` is not an option: it takes longer than the rest of a run and needs every
//! dependency to be downloaded.

mod file;
mod graph;
mod lock;
mod manifest;
mod metadata;
mod published;
mod shared;
mod summary;
mod targets;
mod vendor;
mod workspace;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use file::{File, string_at};
use graph::{Graph, Index};
use manifest::K8sOpenapi;
pub(crate) use manifest::Manifest;
pub(crate) use metadata::{NamedKind, Selection};
pub use published::FETCH;
pub(crate) use published::{Loaded, Published};
pub use summary::{PackageSummary, summarize_package};
pub use workspace::{Membership, find_membership};

use crate::kube_release::KubeRelease;
use crate::report::Report;
use crate::sources::{Sources, join};
use crate::{Diagnostic, Options};
use rbuilder_diagnostic::suggest;

pub(crate) struct Manifests<'a> {
    pub(crate) packages: Vec<Manifest>,
    pub(crate) k8s_openapi: K8sOpenapi,
    pub(crate) published: Published<'a>,
    /// The version of kube in `Cargo.lock`, or without a lock file, the one that the manifests
    /// require.
    pub(crate) kube: Option<KubeRelease>,
}

/// Reads the manifests of the selected packages and their path dependencies.
///
/// Returns `None` on failure, with the errors in `report`.
pub(crate) fn read_manifests<'a>(
    sources: &'a dyn Sources,
    options: &Options,
    report: &mut Report,
) -> Option<Manifests<'a>> {
    let mut graph = Graph::new(sources);
    let found = find(&mut graph, options);
    let problems = std::mem::take(&mut graph.problems);
    problems.into_iter().for_each(|problem| report.push(problem));
    let is_readable = !report.has_errors();
    let missing = std::mem::take(&mut graph.missing);
    missing.into_iter().for_each(|problem| report.push(problem));
    match found {
        Ok(found) => is_readable.then(|| Manifests {
            packages: found.packages,
            k8s_openapi: found.k8s_openapi,
            kube: found.kube,
            published: Published::new(graph, found.here),
        }),
        Err(problem) => {
            report.push(problem);
            None
        }
    }
}

struct Found {
    here: Rc<File>,
    packages: Vec<Manifest>,
    k8s_openapi: K8sOpenapi,
    kube: Option<KubeRelease>,
}

fn find(graph: &mut Graph<'_>, options: &Options) -> Result<Found, Diagnostic> {
    let with_dev = !options.examples.is_empty();
    let sources = graph.sources;
    let Some(here) = graph.files.get("")? else {
        return Err(file::manifest_error(
            "Cargo.toml",
            0..0,
            "no `Cargo.toml` in this directory",
        ));
    };
    let members = members(&here, options, graph, with_dev)?;
    let selected = choose(&here, members, options, graph)?;
    turn_on(&here, &selected, options, graph)?;
    let mut roots = Vec::new();
    let mut selections = Vec::new();
    for index in &selected {
        selections.push(metadata::read_selection(graph.file(*index))?);
        roots.push(match options.examples.as_slice() {
            [] => targets::find_binaries(graph.file(*index), sources)?,
            _ => targets::find_examples(graph.file(*index), sources)?
                .into_iter()
                .filter(|(name, _)| options.examples.contains(name))
                .map(|(_, path)| path)
                .collect(),
        });
    }
    let lock = read_lock(&here, graph).unwrap_or_default();
    let conflicts = shared::find_conflicts(&lock, graph, &selected);
    graph.missing.extend(conflicts);
    let k8s_openapi = K8sOpenapi {
        locked: match lock::find_newest_release(&lock, "k8s-openapi") {
            Some((0, minor)) => u8::try_from(minor).ok(),
            _ => None,
        },
        ..graph.k8s_openapi()
    };
    let kube = lock::find_newest_release(&lock, "kube").or_else(|| graph.required_release("kube"));
    let kube = kube.map(|(major, minor)| KubeRelease::new(major, minor));
    let mut packages = graph.manifests(0);
    // Path dependencies provide types for kinds in other packages, so `serde-defaults` applies to
    // them too.
    for (index, manifest) in packages.iter_mut().enumerate() {
        manifest.selection.serde_defaults =
            metadata::read_selection(graph.file(index)).is_ok_and(|read| read.serde_defaults);
    }
    for ((index, roots), selection) in selected.iter().zip(roots).zip(selections) {
        packages[*index].roots = roots;
        packages[*index].selection = selection;
        packages[*index].selected = options.examples.is_empty();
    }
    check_targets(&here, &packages, &selected, options)?;
    Ok(Found {
        here,
        packages,
        k8s_openapi,
        kube,
    })
}

/// The package's own lock file takes precedence over its workspace's.
fn read_lock(here: &File, graph: &mut Graph<'_>) -> Option<Arc<str>> {
    let sources = graph.sources;
    let read = |folder: &str| sources.text(&join(folder, "Cargo.lock")).ok()?;
    read(&here.folder).or_else(|| {
        let root = workspace::root_of(here, &mut graph.files).ok()??;
        read(&root.folder)
    })
}

/// Returns the packages that `--package` accepts: this one and the other workspace members.
fn members(
    here: &File,
    options: &Options,
    graph: &mut Graph<'_>,
    with_dev: bool,
) -> Result<Vec<Index>, Diagnostic> {
    let is_root = here.table("workspace").is_some();
    if here.table("package").is_none() && !is_root {
        let help = "run this command in the package with the API types, or in its workspace";
        return Err(here.error(
            None,
            "`Cargo.toml` has neither `[package]` nor `[workspace]`",
            help,
        ));
    }
    // The other members only matter with `--package`.
    let above = if is_root || options.packages.is_empty() {
        None
    } else {
        workspace::root_of(here, &mut graph.files)?
    };
    let root = above.as_deref().or(is_root.then_some(here));
    let Some(root) = root else {
        return Ok(graph.add("", with_dev).into_iter().collect());
    };
    let folders = workspace::find_members(root, graph.sources)?;
    let mut members: Vec<Index> = folders
        .iter()
        .filter_map(|folder| graph.add(folder, with_dev))
        .collect();
    // To Cargo, path dependencies inside the workspace directory are members too, even if `members`
    // omits them.
    let mut at = 0;
    while let Some(member) = members.get(at) {
        for used in graph.used_by(*member) {
            if !members.contains(&used) && workspace::may_hold_member(root, graph.folder(used)) {
                members.push(used);
            }
        }
        at += 1;
    }
    Ok(members)
}

fn choose(
    here: &File,
    members: Vec<Index>,
    options: &Options,
    graph: &Graph<'_>,
) -> Result<Vec<Index>, Diagnostic> {
    if options.packages.is_empty() {
        return Ok(members);
    }
    let mut chosen = Vec::new();
    for wanted in &options.packages {
        match members.iter().find(|index| graph.name(**index) == wanted) {
            Some(index) if !chosen.contains(index) => chosen.push(*index),
            Some(_) => {}
            None => {
                let help =
                    suggest::describe_candidates(wanted, members.iter().map(|index| graph.name(*index)));
                return Err(here.error(None, format!("the workspace has no package `{wanted}`"), &help));
            }
        }
    }
    Ok(chosen)
}

/// Enables `default`, the features in `[package.metadata.rbuilder]` and those on the command line.
fn turn_on(
    here: &File,
    selected: &[Index],
    options: &Options,
    graph: &mut Graph<'_>,
) -> Result<(), Diagnostic> {
    for index in selected {
        if !options.no_default_features {
            let named = metadata::read_selection(graph.file(*index))?.features;
            if let Some(unknown) = named.iter().find(|name| !graph.has_feature(*index, name)) {
                let known = graph.all_features(*index);
                let help = suggest::describe_candidates(unknown, known.iter().map(String::as_str));
                let message = format!("the package has no feature `{unknown}`, which `features` names");
                return Err(graph.file(*index).error(None, message, &help));
            }
            graph.activate(*index, named.into_iter().chain(["default".to_owned()]));
        }
        if options.all_features {
            let all = graph.all_features(*index);
            graph.activate(*index, all);
        }
    }
    // `--features name` applies to every selected package that has the feature,
    // `--features package/name` to that package only.
    for asked in &options.features {
        let (package, feature) = match asked.split_once('/') {
            Some((package, feature)) => (Some(package), feature),
            None => (None, asked.as_str()),
        };
        let holders: Vec<Index> = selected
            .iter()
            .copied()
            .filter(|index| package.is_none_or(|name| graph.name(*index) == name))
            .filter(|index| graph.has_feature(*index, feature))
            .collect();
        if holders.is_empty() {
            let known: BTreeSet<String> = selected
                .iter()
                .flat_map(|index| graph.all_features(*index))
                .collect();
            let help = suggest::describe_candidates(feature, known.iter().map(String::as_str));
            let message = match package {
                Some(package) => format!("the package `{package}` has no feature `{feature}`"),
                None => format!("no package has a feature `{feature}`"),
            };
            return Err(here.error(None, message, &help));
        }
        for index in holders {
            graph.activate(index, [feature.to_owned()]);
        }
    }
    Ok(())
}

fn check_targets(
    here: &File,
    manifests: &[Manifest],
    selected: &[Index],
    options: &Options,
) -> Result<(), Diagnostic> {
    let found = |index: &Index| !manifests[*index].roots.is_empty();
    if let Some(example) = options.examples.first()
        && !selected.iter().any(found)
    {
        return Err(here.error(None, format!("no package has an example `{example}`"), ""));
    }
    // A workspace member may consist of tests only, so require targets just for a single package.
    if let [index] = selected
        && !found(index)
        && manifests[*index].library.is_none()
    {
        let name = here
            .table("package")
            .and_then(|package| string_at(package, "name"));
        let message = "the package has neither `src/lib.rs` nor `src/main.rs`";
        let help = match name {
            Some(_) => "pass `--example <name>` to read the kinds of an example",
            None => "",
        };
        return Err(here.error(None, message, help));
    }
    if selected.is_empty() {
        return Err(here.error(None, "the workspace has no packages", "list them under `members`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
