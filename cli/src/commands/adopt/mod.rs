//! `rbuilder adopt`: reports which kinds of a repository can be generated, and how their CRDs
//! differ from the committed ones. Also adds the settings with which `rbuilder manifests` updates
//! the committed CRDs in place.
//!
//! With `--role`, it [drafts a role](role) from the calls in the source instead.
//!
//! It writes no manifests, only settings in `Cargo.toml`: it adds missing ones, updates the files
//! of moved CRDs, and removes `skip` items that it added itself. A committed CRD is never generated
//! in a second place, except in `config/crd/bases` of a project, from which it is deployed.

mod committed;
mod compare;
mod features;
mod placement;
mod reconsider;
mod role;
mod survey;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::Product;

use super::manifests::{self, Request, Settings};
use super::written_roles::{OfferedMarkers, find_written_roles, offer_markers};
use super::{Outcome, decide, decide_and_apply};
use crate::edit::Obstacle;
use crate::edit::selection::{OutputSettings, Skip, add_feature, has_only, set_output, skip_kinds};
use crate::flags::{AdoptFlags, Output};
use crate::plan::{Plan, render_diff, render_json};
use crate::project::{FILE, Project};
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) use compare::{Comparison, Verdict};
use features::find_feature_with_kinds;
use placement::{Placed, Placement, add_to_settings, find_placement};
use reconsider::reconsider_skips;
use survey::{KindState, KnownPlaces, Survey, SurveyedKind, examine, is_deployed};

const MANIFEST: &str = "Cargo.toml";

pub(super) fn run(dir: &Path, flags: &AdoptFlags, shell: &mut Shell) -> Result<u8> {
    if flags.role {
        return role::run(dir, flags, shell);
    }
    let mut survey = None;
    let make = &mut |tree: &Tree| {
        let (plan, found) = plan_adopt(tree)?;
        survey = Some(found);
        Ok(Outcome {
            plan,
            ..Outcome::default()
        })
    };
    let outcome = if flags.plan.dry_run {
        decide(dir, shell, make)?.1
    } else {
        decide_and_apply(dir, shell, make)?
    };
    let survey = survey.ok_or_else(|| anyhow!("the repository was not examined"))?;
    if flags.plan.output == Output::Json {
        let mut answer = render_json(&outcome.plan, "adopt", !flags.plan.dry_run);
        for (key, value) in table::to_json(&survey).as_object().into_iter().flatten() {
            answer[key] = value.clone();
        }
        shell.out(&format!("{answer:#}\n"));
        return Ok(0);
    }
    shell.report(&table::render(&survey));
    if flags.plan.dry_run && !outcome.plan.is_empty() {
        shell.diff(&render_diff(&outcome.plan));
        shell.note("dry run: no files were written\n");
    }
    shell.summary(&outcome.plan, !flags.plan.dry_run);
    if survey
        .kinds
        .iter()
        .any(|kind| matches!(kind.state, KindState::Readable(_)))
    {
        shell.note("Next: run `rbuilder manifests --dry-run` to see what would change in the CRDs\n");
    }
    Ok(0)
}

/// Whether the project is deployed from `config/`, i.e. `init --in-package` adopted its package.
fn check_project(tree: &Tree) -> Result<bool> {
    let Some(text) = tree.read(FILE)? else {
        return Ok(false);
    };
    // PROJECT may belong to a Go operator next to the package, or be hand-written.
    match Project::parse_own(&text)? {
        None => Ok(false),
        Some(project) if !project.is_scaffolded() => Ok(false),
        Some(project) if project.known.rbuilder.package.is_some() => Ok(true),
        Some(_) => bail!(
            // A scaffolded package needs no `adopt`.
            "this directory has a PROJECT file, so `rbuilder manifests` writes to config/: run `rbuilder manifests --check`"
        ),
    }
}

fn plan_adopt(tree: &Tree) -> Result<(Plan, Survey)> {
    let is_deployed = check_project(tree)?;
    let (mut request, settings) = Request::of_everything(tree)?;
    let places = KnownPlaces {
        place: request.known_place().clone(),
        is_deployed,
    };
    let mut plan = Plan::default();
    let mut survey = examine(&plan, tree, &request, &places)?;
    let feature = match survey.kinds.as_slice() {
        [] => find_feature_with_kinds(&plan, tree, &request)?,
        _ => None,
    };
    if let Some(feature) = &feature {
        edit(&mut plan, tree, MANIFEST, |text| add_feature(text, feature))?;
        survey = examine(&plan, tree, &request, &places)?;
    }
    let reconsidered = reconsider_skips(&mut plan, tree, &request, &survey.kinds, is_deployed)?;
    if reconsidered.removes_items() {
        survey = examine(&plan, tree, &request, &places)?;
    }
    if claim_crds(tree, &survey, &settings, &places, &mut request)? {
        survey = examine(&plan, tree, &request, &places)?;
    }
    reconsidered.mark(&mut survey.kinds);
    survey.feature = feature;
    if survey.kinds.is_empty() {
        return Ok((plan, survey));
    }
    survey.roles = find_roles(&plan, tree, &request, &survey)?;
    let skips = choose_skips(tree, &survey)?;
    let skipped: Vec<String> = skips.values().flatten().map(|skip| skip.kind.clone()).collect();
    let placement = place(&survey, &settings, &places);
    let settings = OutputSettings {
        crd_dir: placement.folder.as_deref(),
        crd_file: placement.file.as_deref(),
        crd_files: Some(&placement.files),
        keep_going: has_errors(&plan, tree, &request, skipped)?,
    };
    edit(&mut plan, tree, MANIFEST, |text| set_output(text, &settings))?;
    for (folder, skips) in &skips {
        edit(&mut plan, tree, &manifest_of(folder), |text| {
            skip_kinds(text, skips)
        })?;
    }
    Ok((plan, survey))
}

/// Offers markers for permissions that hand-written roles grant but markers in the source don't.
fn find_roles(plan: &Plan, tree: &Tree, request: &Request, survey: &Survey) -> Result<Vec<OfferedMarkers>> {
    let own = survey
        .kinds
        .iter()
        .filter(|kind| !matches!(kind.state, KindState::Skipped(_)));
    let groups = own
        .map(|kind| kind.summary.group.clone())
        .filter(|group| !group.is_empty());
    let mut request = request.clone();
    request.options.products = vec![Product::Roles];
    let mut generated = None;
    manifests::generate_in_memory(plan, tree, &request, &mut |file| generated = Some(file))?;
    // Without markers nothing is generated, so a file at that path is hand-written too.
    let path = generated.as_ref().map_or(String::new(), |_| request.role_path());
    let written = find_written_roles(tree, &groups.collect(), &path)?;
    Ok(offer_markers(written, generated.as_ref()))
}

/// Treats CRDs in the future output directory as the project's own, as `manifests` will. Returns
/// whether a skipped kind has such a CRD.
fn claim_crds(
    tree: &Tree,
    survey: &Survey,
    settings: &Settings,
    places: &KnownPlaces,
    request: &mut Request,
) -> Result<bool> {
    let placement = place(survey, settings, places);
    let planned = Settings {
        crd_dir: placement.folder.or(settings.crd_dir.clone()),
        crd_file: placement.file.or(settings.crd_file.clone()),
        crd_files: settings
            .crd_files
            .clone()
            .into_iter()
            .chain(placement.files)
            .collect(),
        ..settings.clone()
    };
    let names = places.place.clone().with(&planned).list_names(tree)?;
    let is_new = |kind: &&SurveyedKind| {
        let name = format!("{}.{}", kind.summary.plural, kind.summary.group);
        matches!(kind.state, KindState::Skipped(_))
            && names.contains(&name)
            && !request.options.committed.contains(&name)
    };
    let has_new = survey.kinds.iter().any(|kind| is_new(&kind));
    request.options.committed.extend(names);
    Ok(has_new)
}

fn has_errors(plan: &Plan, tree: &Tree, request: &Request, skipped: Vec<String>) -> Result<bool> {
    let mut request = request.clone();
    request.options.skip_kinds.extend(skipped);
    let (_, found) = manifests::generate_in_memory(plan, tree, &request, &mut drop)?;
    Ok(found.diagnostics.iter().any(|found| found.is_error()))
}

/// Chooses the kinds to skip, by package directory: unreadable kinds, and kinds whose CRD shares a
/// file with other objects. A kind is skipped in all packages that have a version of it, because
/// the versions of the others alone aren't its CRD.
fn choose_skips(tree: &Tree, survey: &Survey) -> Result<BTreeMap<String, Vec<Skip>>> {
    let mut skips: BTreeMap<String, Vec<Skip>> = BTreeMap::new();
    for kind in survey.kinds.iter().filter(|kind| !kind.summary.group.is_empty()) {
        let reason = match &kind.state {
            KindState::Skipped(_) => continue,
            // Which definition to skip is the user's decision.
            KindState::Unreadable(_) if !kind.summary.duplicates.is_empty() => continue,
            KindState::Unreadable(reasons) => match reasons.first() {
                Some(reason) => reason.text.clone(),
                None => continue,
            },
            KindState::Readable(_) => match kind.obstacle(survey.is_deployed) {
                Some(obstacle) => obstacle,
                None => continue,
            },
        };
        for folder in &kind.summary.packages {
            // An `only` list makes `skip` unnecessary.
            if tree
                .read(&manifest_of(folder))?
                .is_none_or(|text| has_only(&text))
            {
                continue;
            }
            skips.entry(folder.clone()).or_default().push(Skip {
                kind: format!("{}.{}", kind.summary.kind, kind.summary.group),
                reason: reason.clone(),
            });
        }
    }
    Ok(skips)
}

pub(super) fn manifest_of(folder: &str) -> String {
    match folder {
        "" => MANIFEST.to_owned(),
        folder => format!("{folder}/{MANIFEST}"),
    }
}

/// Locates the CRDs that rbuilder writes, or will write once their kinds are readable.
fn place(survey: &Survey, settings: &Settings, places: &KnownPlaces) -> Placement {
    let is_own = |kind: &&SurveyedKind| match kind.state {
        KindState::Readable(_) => kind.obstacle(places.is_deployed).is_none(),
        KindState::Unreadable(_) => !kind.summary.group.is_empty() && kind.other_plural.is_none(),
        KindState::Skipped(_) => false,
    };
    let placed: Vec<Placed<'_>> = survey
        .kinds
        .iter()
        .filter(is_own)
        .map(|kind| {
            let files = kind.committed.iter().filter(|file| file.obstacle().is_none());
            let is_elsewhere = |path: &str| !(places.is_deployed && is_deployed(path));
            let file = files.take(1).find(|file| is_elsewhere(&file.path));
            Placed {
                group: &kind.summary.group,
                plural: &kind.summary.plural,
                path: file.map(|file| file.path.as_str()),
                is_plain: file.is_some_and(|file| !file.is_template),
            }
        })
        .collect();
    if settings.has_places() {
        add_to_settings(&placed, &places.place)
    } else {
        find_placement(&placed)
    }
}

fn edit(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    change: impl FnOnce(&str) -> Result<String, Obstacle>,
) -> Result<()> {
    let Some(text) = plan.read(tree, path)? else {
        bail!("{path} does not exist");
    };
    let lines = "[package.metadata.rbuilder]";
    let edited = change(&text).map_err(|obstacle| obstacle.in_file(path, lines))?;
    if edited != text {
        plan.edit(tree, path, &edited)?;
    }
    Ok(())
}
