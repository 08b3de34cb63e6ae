//! Finds missing files and directories that are listed in the kustomizations in `config/`, and
//! missing objects to which the objects of `config/default` refer.
//!
//! kustomize only reports the first missing file, and only when the operator is deployed.

use anyhow::Result;
use rbuilder_generator::Code;
use rbuilder_products::kustomize::Fault;

use super::Finding;
use crate::commands::deployment::find_deployment_faults;
use crate::overlay::{FILE_NAMES, Kustomization, is_remote, resolve_entry};
use crate::plan::Plan;
use crate::project::Project;
use crate::render::Scaffold;
use crate::tree::Tree;

const CHECK: &str = "config";
/// Kustomization applied by `deploy`.
const ROOT: &str = "config/default";

pub(super) fn examine_config(
    tree: &Tree,
    project: &Project,
    scaffold: Option<&Scaffold>,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let root = format!("{ROOT}/{}", FILE_NAMES[0]);
    // An adopted package may be deployed differently.
    let package = project.known.rbuilder.package.as_ref();
    let is_left_out = package.is_some_and(|package| package.leaves_out(&root));
    if !is_left_out && !has_kustomization(tree, ROOT) {
        findings.push(Finding::error(
            CHECK,
            format!("{root} does not exist, and `make deploy` applies it"),
            format!("restore it with `rbuilder update --restore {root}`"),
        ));
    }
    let paths = tree.find_files(is_kustomization)?;
    for path in &paths {
        findings.extend(examine_kustomization(tree, path, scaffold)?);
    }
    // Without these files, other findings would be consequences.
    if findings.is_empty() {
        let faults = find_deployment_faults(&Plan::default(), tree);
        findings.extend(faults.into_iter().map(|fault| Finding {
            code: Code::of_message(&fault.message).map(|code| code.id),
            ..describe_fault(fault)
        }));
    }
    if findings.is_empty() && !paths.is_empty() {
        let message = format!("{} kustomizations; all their files exist", paths.len());
        findings.push(Finding::good(CHECK, message));
    }
    Ok(findings)
}

fn describe_fault(fault: Fault) -> Finding {
    let message = format!("{}: {}", fault.path, fault.message);
    match fault.is_error {
        true => Finding::error(CHECK, message, fault.help),
        false => Finding::warning(CHECK, message, fault.help),
    }
}

fn is_kustomization(path: &str) -> bool {
    path.starts_with("config/") && FILE_NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Whether a directory contains a kustomization. An unreadable one (e.g. a symlink) counts.
fn has_kustomization(tree: &Tree, folder: &str) -> bool {
    let mut paths = FILE_NAMES.iter().map(|name| format!("{folder}/{name}"));
    paths.any(|path| !matches!(tree.read(&path), Ok(None)))
}

fn examine_kustomization(tree: &Tree, path: &str, scaffold: Option<&Scaffold>) -> Result<Vec<Finding>> {
    let Some(text) = tree.read(path)? else {
        return Ok(Vec::new());
    };
    let kustomization = match Kustomization::parse(path, &text) {
        Ok(kustomization) => kustomization,
        Err(error) => {
            return Ok(vec![Finding::error(
                CHECK,
                format!("{error:#}"),
                "correct the file",
            )]);
        }
    };
    let mut findings = Vec::new();
    for entry in kustomization.references() {
        let Some(target) = resolve_entry(kustomization.folder(), entry) else {
            continue;
        };
        let Some(fault) = find_fault(tree, &target).filter(|_| !is_remote(entry)) else {
            continue;
        };
        let place = find_line(&text, entry).map_or_else(String::new, |line| format!(":{line}"));
        let command = scaffold.and_then(|scaffold| scaffold.restore_command(&target));
        findings.push(Finding::error(
            CHECK,
            format!("{path}{place} names `{entry}`, but {target} {fault}"),
            match command {
                Some(command) => format!("correct the entry, or run {command}"),
                None => "correct the entry, or remove it".to_owned(),
            },
        ));
    }
    Ok(findings)
}

/// Explains why kustomize can't read a path that is neither a file nor a directory with a
/// kustomization.
fn find_fault(tree: &Tree, path: &str) -> Option<&'static str> {
    let (folder, _) = path.rsplit_once('/').unwrap_or_default();
    let is_folder = !folder.is_empty()
        && tree
            .list_folders(folder)
            .is_ok_and(|inner| inner.iter().any(|inner| inner == path));
    match is_folder {
        true => (!has_kustomization(tree, path)).then_some("has no kustomization"),
        // A path that we can't read still exists: kustomize follows symlinks, but we don't.
        false => matches!(tree.read(path), Ok(None)).then_some("does not exist"),
    }
}

fn find_line(text: &str, entry: &str) -> Option<usize> {
    let mut lines = text.lines().enumerate();
    let found = lines.find(|(_, line)| !line.trim_start().starts_with('#') && line.contains(entry));
    found.map(|(index, _)| index + 1)
}
