//! `rbuilder init --in-package`: adopts an existing package.
//!
//! The package keeps all its files, including `Cargo.toml`. We add the files that deploy and test
//! the package: `config/`, an end-to-end test, and a Makefile, Dockerfile and workflows unless the
//! package already has them. PROJECT records everything on which the scaffold depends, i.e. names
//! in the package, and the paths that were left out. After changes to the package, running the
//! command again updates the scaffold by a three-way merge.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::{PackageSummary, Sources, summarize_package};
use rbuilder_products::kustomize::{Fault, NO_WORKLOAD, find_each};
use rbuilder_templates::{Archive, OnExists, Rendered};

use super::files::plan_own_files;
use super::guess::{guess_binary, guess_domain, list_groups};
use super::role::CopiedRole;
use super::workspace::{find_workspace, is_workspace_root, record_place, warn_workflows};
use super::{enter, request};
use crate::commands::scaffold_merge::{ScaffoldMerge, Written};
use crate::commands::written_roles::find_written_roles;
use crate::commands::{Outcome, cli_version, manifests, scaffold};
use crate::edit::dependency;
use crate::edit::library::read_dependencies;
use crate::edit::merge::Labels;
use crate::edit::rust;
use crate::flags::{InitFlags, License};
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{AdoptedPackage, FILE, Project};
use crate::render::{member_depth, project_context, render};
use crate::request::MergeRequest;
use crate::tree::{Tree, TreeSources};

/// The manager's role, which is generated once the source has `#[rbac]` markers.
const ROLE: &str = "config/rbac/role.yaml";

const WORKFLOWS: &str = ".github/workflows";

const OTHER_CI: [&str; 8] = [
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".cirrus.yml",
    ".drone.yml",
    ".travis.yml",
    ".woodpecker.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
];

pub(super) fn is_adopted(tree: &Tree) -> Result<bool> {
    let project = scaffold::read_project(tree)?;
    Ok(project.is_some_and(|project| project.known.rbuilder.package.is_some()))
}

/// Plans to adopt the package, or to update the scaffold of an adopted package. Fails if there is
/// no package with a binary, or if the directory contains a project with a scaffolded package.
pub(super) fn plan_adoption(tree: &Tree, flags: &InitFlags) -> Result<Outcome> {
    let known = scaffold::read_project(tree)?;
    let recorded = match &known {
        None => None,
        Some(project) => match &project.known.rbuilder.package {
            Some(package) => Some(package.clone()),
            None => bail!(
                "{} is already initialized as project `{}`, whose package is scaffolded: omit `--in-package`",
                tree.shown(),
                project.known.project_name
            ),
        },
    };
    let mut notes = Vec::new();
    let (summary, mut package) = read_package(tree, flags.bin.as_deref(), recorded.as_ref(), &mut notes)?;
    let groups = list_groups(tree);
    let mut flags = flags.clone();
    if known.is_none() && flags.domain.is_none() {
        flags.domain = guess_domain(&groups);
        let note =
            |domain| format!("The domain is {domain}, that of your kinds; `--domain` sets another one");
        notes.extend(flags.domain.as_ref().map(note));
    }
    let flags = &flags;
    let mut project = request(tree, flags, Some(&summary))?;
    // A package without its own workspace belongs to one in a parent directory, whether or not that
    // workspace lists it.
    let workspace = find_workspace(tree)?.filter(|_| !summary.is_workspace);
    record_place(&mut project, tree, workspace.as_ref())?;
    project.known.rbuilder.workspace = false;
    let Some(known) = known else {
        project.known.rbuilder.library = scaffold::read_library(tree);
        // What to leave out depends on the scaffold, which is a different one for a package.
        project.known.rbuilder.package = Some(package.clone());
        package.left_out = find_left_out(tree, &project, &summary)?;
        project.known.rbuilder.package = Some(package);
        // The package may have its own Deployment, to which the other files refer.
        project.read_names(&|path| tree.read(path).ok().flatten());
        return plan_files_of(tree, project, flags, &groups, &notes);
    };
    let stays = |path: &String| is_there(tree, path) || is_replaced(tree, &project, &summary, path);
    let before = recorded.map(|package| package.left_out).unwrap_or_default();
    package.left_out = before.into_iter().filter(stays).collect();
    project.known.rbuilder.package = Some(package);
    if project.known == known.known {
        return plan_files_of(tree, project, flags, &groups, &notes);
    }
    merge_change(tree, known, project)
}

fn plan_files_of(
    tree: &Tree,
    mut project: Project,
    flags: &InitFlags,
    groups: &BTreeSet<String>,
    notes: &[String],
) -> Result<Outcome> {
    let mut plan = plan_own_files(tree, &mut project, false)?;
    let package = project.known.rbuilder.package.clone().unwrap_or_default();
    package.left_out.iter().for_each(|path| plan.keep(path));
    let request = manifests::Request {
        deploys: true,
        ..manifests::Request::default()
    };
    let found = manifests::add_to_plan(&mut plan, tree, &request)?;
    let mut role = None;
    if !package.leaves_out("config/rbac/kustomization.yaml") && plan.read(tree, ROLE)?.is_none() {
        let copied = CopiedRole::of(&project, find_written_roles(tree, groups, ROLE)?);
        plan.replace(tree, ROLE, &copied.text)?;
        role = Some(copied);
    }
    plan.write_project(&project, tree)?;
    let broken = check_deployment(&plan, tree, &project, &package)?;
    let next = next_steps(tree, &package, flags, role.as_ref(), notes);
    let mut outcome = found.into_outcome(plan);
    for fault in broken {
        outcome.warn_of_file(&fault.path, &fault.message, &fault.help);
    }
    if let Some((message, help)) = role.and_then(|role| role.warning()) {
        outcome.warn(&message, help);
    }
    warn_workflows(&project, &mut outcome);
    if !package.leaves_out("Dockerfile") {
        warn_paths(tree, &project, &mut outcome);
    }
    Ok(outcome.with_next(&next))
}

/// Checks that `config/default` can be built with the files that the package keeps. Names the files
/// in the way, and returns references to missing objects.
fn check_deployment(
    plan: &Plan,
    tree: &Tree,
    project: &Project,
    package: &AdoptedPackage,
) -> Result<Vec<Fault>> {
    let faults = |own: Option<&Rendered>| {
        let read = |path: &str| match own.filter(|file| file.path == path) {
            Some(file) => Ok(Some(file.text.clone())),
            None => plan.read(tree, path),
        };
        let (mut faults, references) = find_each(&read);
        faults.retain(|fault| fault.is_error || fault.message == NO_WORKLOAD);
        (faults, references)
    };
    let (found, references) = faults(None);
    let Some(first) = found.first() else {
        return Ok(references);
    };
    let scaffold = rbuilder_templates::init_files(&project_context(project))?;
    let kept = scaffold
        .iter()
        .filter(|file| file.path.starts_with("config/") && package.leaves_out(&file.path));
    let kept: Vec<&Rendered> = kept.collect();
    let is_in_the_way = |file: &&&Rendered| faults(Some(file)).0.len() < found.len();
    let mut in_the_way: Vec<&str> = kept
        .iter()
        .filter(is_in_the_way)
        .map(|file| file.path.as_str())
        .collect();
    if in_the_way.is_empty() {
        in_the_way = kept.iter().map(|file| file.path.as_str()).collect();
    }
    let them = if in_the_way.len() == 1 { "it" } else { "them" };
    bail!(
        "cannot adopt the package with its own {}, because config/default could not be deployed: {}: {}; move {them} to another place \
         and run the command again, which writes its own, or correct {them}: {}",
        in_the_way.join(", "),
        first.path,
        first.message,
        first.help
    )
}

/// Plans the changes between the scaffolds for the package as recorded in PROJECT and as it is now.
pub(super) fn merge_change(tree: &Tree, project: Project, target: Project) -> Result<Outcome> {
    let archive = Archive::embedded();
    cli_version::check_version(&project)?;
    let labels = Labels {
        base: "scaffold of PROJECT before".to_owned(),
        theirs: "scaffold of PROJECT now".to_owned(),
    };
    let before = render(&project, None)?;
    let written = Written::find(tree, &project, archive)?;
    let theirs = written.with_change(&before, render(&target, None)?);
    let scaffolds = (written.or_todays(&before), theirs);
    let merge = ScaffoldMerge::new("init", tree, project, scaffolds, labels, archive)?;
    let requested = MergeRequest {
        no_conflicts: false,
        manifests: true,
    };
    let (mut outcome, report) = merge.run(target, requested)?;
    report.add_to(&mut outcome);
    Ok(outcome)
}

/// Reads the package in the directory, and selects the requested binary, the recorded one, or the
/// package's default.
fn read_package(
    tree: &Tree,
    asked: Option<&str>,
    recorded: Option<&AdoptedPackage>,
    notes: &mut Vec<String>,
) -> Result<(PackageSummary, AdoptedPackage)> {
    let sources = tree.sources([]);
    let summary = summarize_package(&sources)
        .map_err(|problem| anyhow!("{}: {}", problem.place.path, problem.message))?;
    let Some(summary) = summary else {
        bail!(
            "no Cargo.toml found in {}: `--in-package` adopts an existing package; omit it to create a new one",
            tree.shown()
        );
    };
    let Some(name) = summary.name.clone() else {
        return Err(no_package(tree, &summary));
    };
    let recorded = recorded.map(|package| package.binary.as_str());
    let guessed = guess_binary(&sources, &name, &summary.binaries);
    let (binary, main) = match choose_binary(&summary, &name, asked, recorded)? {
        Some(chosen) => chosen,
        None => {
            let (binary, main) = guessed
                .cloned()
                .ok_or_else(|| several_binaries(&summary, &name))?;
            notes.push(format!(
                "The image runs the binary `{binary}`; `--bin` chooses another one"
            ));
            (binary, main)
        }
    };
    let package = AdoptedPackage {
        library: summary.library.clone().unwrap_or_default(),
        manager: uses_manager(&sources, &main),
        name,
        binary,
        main,
        left_out: Vec::new(),
    };
    package
        .check()
        .map_err(|error| anyhow!("cannot adopt the package in {}: {error}", tree.shown()))?;
    Ok((summary, package))
}

fn no_package(tree: &Tree, summary: &PackageSummary) -> anyhow::Error {
    if !summary.is_workspace {
        return anyhow!("Cargo.toml in {} has no `[package]` with a name", tree.shown());
    }
    let members = match summary.members.as_slice() {
        [] => String::new(),
        members => format!(", for example with `-C {}`", members.join("`, `-C ")),
    };
    anyhow!(
        "Cargo.toml in {} is a workspace without a package: run the command in the member to adopt{members}",
        tree.shown()
    )
}

/// Chooses the binary to run in the image, as its name and root file. `None` if it is ambiguous.
fn choose_binary(
    summary: &PackageSummary,
    package: &str,
    asked: Option<&str>,
    recorded: Option<&str>,
) -> Result<Option<(String, String)>> {
    let named = |name: &str| summary.binaries.iter().find(|(known, _)| known == name).cloned();
    let names: Vec<&str> = summary.binaries.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(asked) = asked {
        return named(asked).map(Some).ok_or_else(|| match names.as_slice() {
            [] => anyhow!("package `{package}` has no binary `{asked}`, and no other binary"),
            names => anyhow!(
                "package `{package}` has no binary `{asked}`: pass `--bin` with one of `{}`",
                names.join("`, `")
            ),
        });
    }
    let by_default = [recorded, summary.default_run.as_deref()]
        .into_iter()
        .flatten()
        .find_map(named);
    match (by_default, summary.binaries.as_slice()) {
        (Some(binary), _) => Ok(Some(binary)),
        (None, [only]) => Ok(Some(only.clone())),
        (None, []) => bail!(
            "package `{package}` has no binary, so there is nothing to deploy: add src/main.rs; to generate the manifests of its types alone, run `rbuilder manifests`, which needs no project"
        ),
        (None, _) => Ok(None),
    }
}

fn several_binaries(summary: &PackageSummary, package: &str) -> anyhow::Error {
    let names: Vec<&str> = summary.binaries.iter().map(|(name, _)| name.as_str()).collect();
    anyhow!(
        "package `{package}` has several binaries: name the one that the image runs with `--bin`, one of `{}`",
        names.join("`, `")
    )
}

fn uses_manager(sources: &TreeSources, main: &str) -> bool {
    let text = |path: &str| sources.text(path).ok().flatten();
    let depends = text("Cargo.toml")
        .and_then(|manifest| read_dependencies(&manifest).ok())
        .is_some_and(|found| found.inherits || !found.sources.is_empty());
    let mut files = sources.rust_files("src").unwrap_or_default();
    files.push(main.to_owned());
    let has_arguments = |path: &String| text(path).is_some_and(|text| rust::mentions(&text, "ManagerArgs"));
    depends && files.iter().any(has_arguments)
}

/// Derives a project name from the package, in lower case with hyphens.
pub(super) fn default_name(package: &PackageSummary) -> Option<String> {
    let name = package.name.as_ref()?;
    Some(name.to_lowercase().replace('_', "-"))
}

pub(super) fn license_of(package: &PackageSummary) -> License {
    match package.license.as_deref() {
        Some("Apache-2.0") => License::Apache2,
        Some("MIT") => License::Mit,
        _ => License::None,
    }
}

/// Finds the scaffolded paths to leave out: files that exist in the package, workflows if the
/// package uses another CI system or has no Makefile for them to call, and a test that Cargo would
/// not find.
fn find_left_out(tree: &Tree, project: &Project, summary: &PackageSummary) -> Result<Vec<String>> {
    let files = rbuilder_templates::init_files(&project_context(project))?;
    let mut left_out: Vec<String> = Vec::new();
    for file in &files {
        let is_theirs = match tree.read(&file.path) {
            // Lines are added to the existing list.
            _ if file.on_exists == OnExists::Merged => false,
            Ok(there) => there.is_some_and(|there| !is_same_text(&there, &file.text)),
            // A symlink, or not UTF-8.
            Err(_) => true,
        };
        if is_theirs || is_replaced(tree, project, summary, &file.path) {
            left_out.push(file.path.clone());
        }
    }
    // The permissions of a hand-written role differ from the markers'.
    if is_there(tree, ROLE) {
        left_out.push(ROLE.to_owned());
    }
    left_out.sort();
    Ok(left_out)
}

fn is_replaced(tree: &Tree, project: &Project, summary: &PackageSummary, path: &str) -> bool {
    let has_own = |path: &str| is_there(tree, path) && !project.has_scaffolded(path);
    let has_makefile = || has_own("Makefile") || has_own("GNUmakefile");
    let has_ci = || {
        let workflows = tree.list(WORKFLOWS);
        OTHER_CI.iter().any(|path| is_there(tree, path))
            || workflows.map_or(true, |workflows| workflows.iter().any(|path| has_own(path)))
    };
    match path {
        "Makefile" => has_own("GNUmakefile"),
        "tests/e2e.rs" => !summary.finds_tests,
        path => path.starts_with(WORKFLOWS) && (has_makefile() || has_ci()),
    }
}

fn is_there(tree: &Tree, path: &str) -> bool {
    tree.read(path).map_or(true, |text| text.is_some())
}

fn warn_paths(tree: &Tree, project: &Project, outcome: &mut Outcome) {
    let text = tree
        .sources([])
        .text("Cargo.toml")
        .ok()
        .flatten()
        .unwrap_or_default();
    let depth = member_depth(&project.known.rbuilder.member);
    let is_outside = |path: &String| path.starts_with('/') || path.matches("../").count() > depth;
    let (outside, inside): (Vec<_>, Vec<_>) = dependency::list_paths(&text).into_iter().partition(is_outside);
    if !outside.is_empty() {
        outcome.warn(
            &format!(
                "the image is built from the directory of the {}, which does not contain {}",
                if depth == 0 { "package" } else { "workspace" },
                outside.join(", ")
            ),
            "make them members of one workspace, and run `rbuilder init` again, or write a Dockerfile of your own",
        );
    }
    // cargo-chef only asks Cargo for the workspace members.
    if depth == 0 && !is_workspace_root(&text) && !inside.is_empty() {
        outcome.warn(
            &format!(
                "the Dockerfile does not find {}, which is no member of a workspace",
                inside.join(", ")
            ),
            "add the line `[workspace]` to Cargo.toml: path dependencies are members then",
        );
    }
}

fn next_steps(
    tree: &Tree,
    package: &AdoptedPackage,
    flags: &InitFlags,
    role: Option<&CopiedRole>,
    notes: &[String],
) -> String {
    let (mut kept, omitted): (Vec<&str>, Vec<&str>) = package
        .left_out
        .iter()
        .map(String::as_str)
        .partition(|path| is_there(tree, path));
    kept.extend(
        ["README.md", "AGENTS.md", "LICENSE"]
            .into_iter()
            .filter(|path| is_there(tree, path)),
    );
    kept.sort_unstable();
    let mut next: String = notes.iter().map(|note| format!("{note}\n")).collect();
    for (words, paths) in [("Kept as they are", kept), ("Not added", omitted)] {
        if !paths.is_empty() {
            next.push_str(&format!("{words}: {}\n", paths.join(", ")));
        }
    }
    let copied = role.and_then(CopiedRole::describe_source);
    let edit = match (package.manager, copied) {
        (true, _) => "Next: review config/manager/manager.yaml".to_owned(),
        (false, None) => {
            "Next: set the arguments and probes of the container in config/manager/manager.yaml, and its permissions in \
             config/rbac/role.yaml"
                .to_owned()
        }
        (false, Some(source)) => format!(
            "Next: set the arguments and probes of the container in config/manager/manager.yaml, and review its permissions in \
             config/rbac/role.yaml, which are those of {source}"
        ),
    };
    let enter = enter(flags);
    next + &format!("{edit}, then run:\n{enter}  rbuilder manifests\n  rbuilder deploy --image <image>\n")
}

/// If the directory contains a package, adds a hint to the error about conflicting files.
pub(super) fn suggest_adoption(tree: &Tree, flags: &InitFlags, error: anyhow::Error) -> anyhow::Error {
    let is_new = matches!(tree.read(FILE), Ok(None));
    let has_package = || {
        let summary = summarize_package(&tree.sources([]));
        summary.is_ok_and(|summary| summary.is_some_and(|summary| summary.name.is_some()))
    };
    if flags.force || !is_new || !has_package() {
        return error;
    }
    anyhow!("{error:#}\nto adopt the existing package, pass `--in-package`")
}
