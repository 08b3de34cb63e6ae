//! The Cargo workspace that contains a new project. As with `cargo new`, the project becomes a
//! member, unless the workspace excludes it or belongs to another user.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::{Membership, find_membership};
use toml_edit::Document;

use crate::commands::Outcome;
use crate::edit::{Obstacle, workspace::add_member};
use crate::plan::Plan;
use crate::project::{Project, names};
use crate::render;
use crate::tree::{Tree, find_repository, is_own_above, manifest_above, read_manifests_above, resolve_path};

pub(super) struct Workspace {
    root: PathBuf,
    /// Path of the project in the workspace.
    member: String,
    /// Whether `members` lists the project or has a matching pattern.
    is_listed: bool,
    /// Whether rbuilder may add the project to the workspace.
    is_own: bool,
}

pub(super) fn find_workspace(tree: &Tree) -> Result<Option<Workspace>> {
    let project = resolve_path(tree.root());
    for (root, text) in read_manifests_above(&project) {
        let is_own = is_own_above(&project, &root);
        // Cargo reads this manifest as well, so nothing in the project would work.
        if let (true, Err(error)) = (is_own, Document::parse(text.as_str())) {
            bail!(
                "cannot parse {} ({}), which may be the manifest of a workspace that contains this project: fix it first",
                root.join("Cargo.toml").display(),
                error.message()
            );
        }
        let path = project.strip_prefix(&root).ok().and_then(Path::to_str);
        let Some(member) = path.map(|path| path.replace('\\', "/")) else {
            continue;
        };
        let is_listed = match find_membership(&text, &member) {
            Membership::None => continue,
            Membership::Listed => true,
            Membership::Unlisted => false,
        };
        return Ok(Some(Workspace {
            is_own,
            root,
            member,
            is_listed,
        }));
    }
    Ok(None)
}

/// Path of the project in its repository. Empty at the root of the repository and outside of one.
fn find_directory(tree: &Tree) -> String {
    let project = resolve_path(tree.root());
    let path = |top: PathBuf| Some(project.strip_prefix(top).ok()?.to_str()?.replace('\\', "/"));
    let directory = find_repository(&project).and_then(path).unwrap_or_default();
    match names::is_plain_path(&directory) {
        true => directory,
        false => String::new(),
    }
}

pub(super) fn record_place(project: &mut Project, tree: &Tree, workspace: Option<&Workspace>) -> Result<()> {
    let own = &mut project.known.rbuilder;
    own.directory = find_directory(tree);
    own.member.clear();
    own.workspace = false;
    match workspace {
        Some(workspace) if workspace.has_member() => {
            workspace.check_path()?;
            own.member.clone_from(&workspace.member);
            // Without a repository, assume that the workspace will be its root.
            if own.directory.is_empty() {
                own.directory.clone_from(&workspace.member);
            }
        }
        workspace => own.workspace = workspace.is_some(),
    }
    Ok(())
}

impl Workspace {
    pub(super) fn has_member(&self) -> bool {
        self.is_listed || self.is_own
    }

    fn check_path(&self) -> Result<()> {
        if names::is_plain_path(&self.member) {
            return Ok(());
        }
        bail!(
            "the project would be the member `{}` of the workspace in {}, and scaffolded files name that path: choose a directory whose names have only ASCII letters, digits, `-`, `_` and `.`, or add it to `exclude` of the workspace",
            self.member.escape_debug(),
            self.root.display()
        )
    }

    /// Warns that the project becomes its own workspace because it can't join this one.
    pub(super) fn warn_unjoined(&self, outcome: &mut Outcome) {
        outcome.warn(
            &format!(
                "{} is a workspace that does not list this project, in another repository or of another user, so the project becomes a workspace of its own",
                self.root.join("Cargo.toml").display()
            ),
            &format!(
                "to make it a member instead, remove `[workspace]` from Cargo.toml and add \"{}\" to `members` there",
                self.member
            ),
        );
    }
}

/// Adds the project to the workspace recorded in PROJECT, and warns about settings that have no
/// effect there. If the workspace's manifest can't be edited, the error contains the line to add.
pub(super) fn join(
    outcome: &mut Outcome,
    tree: &Tree,
    project: &Project,
    workspace: Option<&Workspace>,
) -> Result<()> {
    let member = &project.known.rbuilder.member;
    if member.is_empty() {
        return Ok(());
    }
    let Some(workspace) = workspace else {
        return Ok(());
    };
    let path = manifest_above(render::member_depth(member));
    let text = match workspace.is_listed {
        true => tree.read(&path).ok().flatten().unwrap_or_default(),
        false => add_to_members(&mut outcome.plan, tree, &path, member)?,
    };
    warn_settings(&path, &text, outcome);
    Ok(())
}

/// Adds the member, and returns the text of the workspace's manifest.
fn add_to_members(plan: &mut Plan, tree: &Tree, path: &str, member: &str) -> Result<String> {
    let lines = format!("[workspace]\nmembers = [\"{member}\"]");
    let refused = |obstacle: Obstacle| {
        anyhow!(
            obstacle
                .with_lines("add this member to the list", lines.clone())
                .in_file(path, "")
        )
    };
    let text = tree
        .read(path)
        .map_err(|error| refused(Obstacle::new(format!("{error:#}"))))?
        .unwrap_or_default();
    let edited = add_member(&text, member).map_err(refused)?;
    plan.edit(tree, path, &edited)?;
    Ok(edited)
}

pub(super) fn is_workspace_root(manifest: &str) -> bool {
    Document::parse(manifest).is_ok_and(|manifest| manifest.get("workspace").is_some())
}

fn warn_settings(path: &str, text: &str, outcome: &mut Outcome) {
    let Ok(manifest) = Document::parse(text) else {
        return;
    };
    let release = manifest
        .get("profile")
        .and_then(|profiles| profiles.get("release"));
    let has_resolver = manifest
        .get("workspace")
        .is_none_or(|workspace| workspace.get("resolver").is_some())
        || manifest.get("package").is_some();
    if !has_resolver {
        outcome.warn(
            &format!("{path} sets no `resolver`, so Cargo uses version 1, which builds the test kit into the manager"),
            "add `resolver = \"3\"` to `[workspace]` there",
        );
    }
    if release.and_then(|release| release.get("panic")?.as_str()) == Some("abort") {
        outcome.warn(
            &format!("{path} sets `panic = \"abort\"`, with which a panic in one reconcile ends the manager"),
            "remove it from `[profile.release]` there",
        );
    }
}

pub(super) fn suggest_profile(tree: &Tree, project: &Project) -> Result<String> {
    let member = &project.known.rbuilder.member;
    if member.is_empty() || project.known.rbuilder.package.is_some() {
        return Ok(String::new());
    }
    let path = manifest_above(render::member_depth(member));
    let text = tree.read(&path).ok().flatten().unwrap_or_default();
    let has_profile = Document::parse(text.as_str()).is_ok_and(|manifest| {
        manifest
            .get("profile")
            .is_some_and(|profile| profile.get("release").is_some())
    });
    if has_profile {
        return Ok(String::new());
    }
    // The scaffold only has a profile if the project is outside of any workspace.
    let mut alone = project.clone();
    alone.known.rbuilder.member.clear();
    let files = rbuilder_templates::init_files(&render::project_context(&alone))?;
    let manifest = files.iter().find(|file| file.path == "Cargo.toml");
    let profile = manifest.and_then(|file| Some(file.text.split_once("[profile.release]\n")?.1));
    let lines: String = profile
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("  {line}\n"))
        .collect();
    Ok(format!(
        "Cargo reads profiles only from {path}. For a small image, add to it:\n  [profile.release]\n{lines}"
    ))
}

/// Warns about workflows that GitHub doesn't run because they aren't at the root of the repository.
pub(super) fn warn_workflows(project: &Project, outcome: &mut Outcome) {
    let directory = &project.known.rbuilder.directory;
    let workflows: Vec<&str> = outcome
        .plan
        .changes()
        .keys()
        .filter_map(|path| path.strip_prefix(".github/workflows/"))
        .filter_map(|name| name.strip_suffix(".yml"))
        .collect();
    if directory.is_empty() || workflows.is_empty() {
        return;
    }
    let up = "../".repeat(Path::new(directory).components().count());
    let name = &project.known.project_name;
    let help = format!(
        "move them there, from the directory of the project: mkdir -p {up}.github/workflows && for name in {}; do mv .github/workflows/$name.yml {up}.github/workflows/{name}-$name.yml; done",
        workflows.join(" ")
    );
    outcome.warn(
        "GitHub runs only workflows in the root of the repository, and these are written for it",
        &help,
    );
}
