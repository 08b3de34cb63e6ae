//! `rbuilder manifests`: generates CRDs, roles and webhook configurations from the source.

mod breaking;
mod crd_place;
mod definition;
mod duplicates;
mod fix;
mod generated_paths;
mod held_back;
mod kept;
mod layout;
mod loss;
mod nothing;
mod project_keys;
mod removed;
mod rendered;
mod replaced;
mod request;
mod role_namespaces;
mod roles;
mod samples;
mod settings;
mod stale_roles;
mod stored;
mod unbound_roles;
mod versions;
mod written;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::{
    Allows, Diagnostic, Findings, KindSummary, Levels, Options, OutputFile, Product, ProjectKinds, Sources,
    generate_each,
};
use serde_json::{Value, json};

use super::check::check_up_to_date;
use super::deployment::{find_deployment_faults, to_diagnostics};
use super::{decide, decide_and_apply, execute, kubernetes};
use crate::flags::{GenerationFlags, ManifestsFlags, MessageFormat, Output};
use crate::plan::{Plan, check_path_untracked, is_in_repository};
use crate::project::{FILE, Known, Project, Resource};
use crate::shell::Shell;
use crate::tree::{Tree, TreeSources};

pub(super) use crd_place::CrdPlace;
use definition::read_changed_files;
pub(super) use duplicates::{ExistingCrd, compare_duplicates};
pub(super) use generated_paths::GeneratedPaths;
use layout::Generated;
use loss::{add_losses, find_losses};
use nothing::explain_nothing;
use project_keys::find_misspelled_keys;
use removed::find_removed;
pub(super) use rendered::RenderedDiagnostics;
pub(crate) use rendered::SourceErrors;
use rendered::{has_errors, render_findings, source_errors};
pub(super) use request::Request;
use request::SampleScope;
pub(super) use roles::ENTRY as ROLE_NAMESPACES;
pub(super) use samples::find_refused_before;
pub(super) use settings::{DEFAULT_FILE, Settings};
pub(super) use stale_roles::find_stale_roles;
use stored::find_unreadable;
pub(super) use unbound_roles::{find_losing_bindings, find_unbound_roles};
use versions::{find_immutable, find_lost_storage, find_unlisted};
pub(super) use written::{Written, read_written};

pub(super) fn run(dir: &Path, flags: &ManifestsFlags, shell: &mut Shell) -> Result<u8> {
    match flags.message_format {
        MessageFormat::Human => {}
        MessageFormat::Json => shell.speak_json(!flags.stdout),
        MessageFormat::Sarif => shell.speak_sarif(!flags.stdout),
    }
    let request = Request::new(flags, shell)?;
    if flags.stdout {
        let (_, (files, found)) = decide(dir, shell, &mut |tree| collect_manifests(tree, &request))?;
        print(&files, &found, flags.plan.output, shell);
        return Ok(found.exit_code());
    }
    let make = &mut |tree: &Tree| {
        let mut plan = Plan::default();
        if flags.fix {
            fix::add_fixes(&mut plan, tree, &request)?;
        }
        let found = add_to_plan(&mut plan, tree, &request)?;
        Ok(found.into_outcome(plan))
    };
    if !flags.check {
        return execute("manifests", dir, flags.plan.mode(), shell, make);
    }
    let stale = "the manifests are not up to date: run `rbuilder manifests`";
    check_up_to_date("manifests", stale, dir, flags.plan.mode(), shell, make)
}

pub(super) fn generate_if_asked(dir: &Path, flags: &GenerationFlags, shell: &mut Shell) -> Result<()> {
    match flags.manifests {
        true => generate(dir, shell).map(drop),
        false => Ok(()),
    }
}

/// Generates the manifests for another command. Returns the paths of written files.
pub(super) fn generate(dir: &Path, shell: &mut Shell) -> Result<Vec<String>> {
    let request = Request {
        color: shell.color(),
        ..Request::default()
    };
    let outcome = decide_and_apply(dir, shell, &mut |tree| {
        let mut plan = Plan::default();
        let found = add_to_plan(&mut plan, tree, &request)?;
        Ok(found.into_outcome(plan))
    })?;
    shell.message(&outcome.warnings);
    if !outcome.plan.is_empty() {
        shell.summary(&outcome.plan, false);
    }
    match outcome.failure {
        Some(failure) => Err(failure),
        None => Ok(outcome.plan.changes().keys().cloned().collect()),
    }
}

pub(super) fn collect_manifests(
    tree: &Tree,
    request: &Request,
) -> Result<(Vec<OutputFile>, RenderedDiagnostics)> {
    let sources = sources(&Plan::default(), tree)?;
    let request = &request.with_settings(tree)?;
    let mut files = Vec::new();
    let found = read(tree, &sources, request, &mut |file| files.push(file))?;
    Ok((files, found))
}

/// Reads the definitions of the project's kinds and the diagnostics, without keeping the manifests.
pub(super) fn read_definitions(tree: &Tree, request: &Request) -> Result<RenderedDiagnostics> {
    let sources = sources(&Plan::default(), tree)?;
    let mut request = request.with_settings(tree)?;
    request.options.definitions = true;
    read(tree, &sources, &request, &mut |_| {})
}

fn print(files: &[OutputFile], found: &RenderedDiagnostics, output: Output, shell: &mut Shell) {
    if output == Output::Json {
        let list: Vec<Value> = files
            .iter()
            .map(|file| json!({ "path": file.path, "content": file.text }))
            .collect();
        let mut answer = json!({ "command": "manifests", "files": list, "diagnostics": found.data });
        if let Some(failure) = &found.failure {
            answer["error"] = format!("{failure:#}").into();
        }
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.message(&found.text);
    for file in files {
        shell.out(&file.text);
    }
    if let Some(failure) = &found.failure {
        shell.error(failure);
    }
}

/// Generates the manifests for the tree with the changes in `plan`, and adds them to the plan.
pub(super) fn add_to_plan(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<RenderedDiagnostics> {
    let sources = sources(plan, tree)?;
    check_project_file(&sources)?;
    let request = &request.with_settings(tree)?;
    let mut options = options(&sources, request)?;
    options.definitions =
        request.samples == SampleScope::OfGeneratedCrds && !samples::list_samples(plan, tree).is_empty();
    // To save memory, compare each manifest as soon as it is generated, and drop it if nothing
    // changed.
    let mut made = Ok(Generated::default());
    let mut found = generate_each(&sources, &options, &mut |file| {
        if let Ok(list) = &mut made
            && let Err(error) = list.put(plan, tree, request, &file)
        {
            made = Err(error);
        }
    });
    release(std::mem::take(&mut found.source), request);
    name_existing(&mut found, tree, &sources, request)?;
    let is_complete = !has_errors(&found.diagnostics);
    let mut is_empty = false;
    if is_complete || options.keep_going {
        let made = made?;
        let kept = kept::list_kept(tree, &found.kinds);
        made.finish(plan, tree, request, is_complete, &kept)?;
        is_empty = is_complete && made.is_empty();
        let nothing = (is_empty && request.notes_nothing)
            .then(|| explain_nothing(&found, &sources))
            .flatten();
        let changed = read_changed_files(plan, &request.layout);
        let is_tracked = |path: &str| check_path_untracked(tree.root(), path).is_err();
        let is_new = |path: &str| !is_tracked(path) && is_in_repository(tree.root());
        let unreadable = find_unreadable(&changed, &sources, &options, &is_tracked, &is_new);
        found.diagnostics.extend(unreadable);
        let broken = breaking::find_breaking(&changed, &sources, &options, &is_tracked);
        found.diagnostics.extend(broken);
        let lost = find_lost_storage(&changed, &found.kinds);
        found.diagnostics.extend(lost);
        let immutable = find_immutable(&changed, &found.kinds);
        found.diagnostics.extend(immutable);
        let generated = options
            .definitions
            .then(|| std::mem::take(&mut found.definitions));
        let refused = samples::find_refused(plan, tree, &request.layout, generated);
        found.diagnostics.extend(refused);
        if request.samples == SampleScope::All {
            let refused = samples::find_refused_in(&request.layout, plan, tree)?;
            found.diagnostics.extend(refused);
        }
        let stale = stale_roles::find_stale(&changed, plan, tree, &request.layout);
        found.diagnostics.extend(stale);
        if is_complete && request.makes(Product::Roles) {
            let same_names = role_namespaces::update(plan, tree, &request.layout)?;
            found.diagnostics.extend(same_names);
        }
        let unbound = unbound_roles::find_new_unbound(plan, tree, &request.layout)?;
        found.diagnostics.extend(unbound);
        if is_complete
            && request.reads_all()
            && let Some((text, known)) = read_known(&sources)
        {
            let unlisted = find_unlisted(&text, &known, &found.kinds);
            found.diagnostics.extend(unlisted);
            found.diagnostics.extend(find_misspelled_keys(&text));
        }
        if !request.prunes_standing {
            let losses = find_losses(plan, &changed, &request.layout, &sources, &options);
            if !losses.is_empty() {
                add_losses(&mut found.diagnostics, losses);
                return Err(source_errors(&found, &sources, request));
            }
        }
        found.diagnostics.extend(nothing);
        let removed = find_removed(&changed, request.removes_tracked, &is_tracked);
        release(changed, request);
        let is_refused = removed.iter().any(Diagnostic::is_error);
        found.diagnostics.extend(removed);
        if is_refused {
            return Err(source_errors(&found, &sources, request));
        }
        // The generator already applied the levels to its own diagnostics.
        let diagnostics = std::mem::take(&mut found.diagnostics);
        found.diagnostics = apply_levels(diagnostics, &mut found.allows, &request.options.levels);
    }
    let faults = match request.builds_deployment {
        true => find_deployment_faults(plan, tree),
        false => Vec::new(),
    };
    let faults = to_diagnostics(faults).filter_map(|fault| request.options.levels.apply(fault));
    let mut rendered = render_findings(found, faults.collect(), &sources, request)?;
    // A scaffold has no kinds before the first `rbuilder create api`.
    let is_expected = !request.refuses_nothing || tree.read(FILE)?.is_some();
    if is_empty && !is_expected && rendered.failure.is_none() {
        rendered.failure = Some(anyhow!(
            "no manifests were compared, because none are generated; pass `--allow-empty` if that is intended"
        ));
    }
    Ok(rendered)
}

/// Adds the existing CRD to errors about kinds with several definitions.
fn name_existing(found: &mut Findings, tree: &Tree, sources: &TreeSources, request: &Request) -> Result<()> {
    let read = |kind: &KindSummary| duplicates::read_existing(tree, &request.layout, kind);
    compare_duplicates(found, sources, &read)
}

fn apply_levels(diagnostics: Vec<Diagnostic>, allows: &mut Allows, levels: &Levels) -> Vec<Diagnostic> {
    let said = diagnostics.into_iter().filter(|said| !allows.covers(said));
    said.filter_map(|said| levels.apply(said)).collect()
}

/// Generates the manifests and passes each one to a callback, without changing the plan. Returns
/// the source and the diagnostics.
pub(super) fn generate_in_memory(
    plan: &Plan,
    tree: &Tree,
    request: &Request,
    each: &mut dyn FnMut(OutputFile),
) -> Result<(TreeSources, Findings)> {
    let sources = sources(plan, tree)?;
    let options = options(&sources, request)?;
    let mut found = generate_each(&sources, &options, each);
    release(std::mem::take(&mut found.source), request);
    Ok((sources, found))
}

fn release<T>(value: T, request: &Request) {
    if request.is_last {
        // Don't bother freeing memory right before the process exits.
        std::mem::forget(value);
    }
}

fn read(
    tree: &Tree,
    sources: &TreeSources,
    request: &Request,
    each: &mut dyn FnMut(OutputFile),
) -> Result<RenderedDiagnostics> {
    let options = options(sources, request)?;
    let mut is_empty = true;
    let mut found = generate_each(sources, &options, &mut |file| {
        is_empty = false;
        each(file);
    });
    release(std::mem::take(&mut found.source), request);
    name_existing(&mut found, tree, sources, request)?;
    if is_empty && !has_errors(&found.diagnostics) {
        let said = explain_nothing(&found, sources);
        found.diagnostics.extend(said);
    }
    render_findings(found, Vec::new(), sources, request)
}

/// Options for the generator, including settings in Cargo's configuration and PROJECT.
pub(super) fn options(sources: &TreeSources, request: &Request) -> Result<Options> {
    let mut options = request.options.clone();
    if options.kubernetes.is_none() {
        options.kubernetes = kubernetes::find_configured_version(sources)?;
    }
    options.project = project_kinds(sources);
    options.own_namespaces = role_namespaces::find_own_namespaces(sources, &request.layout);
    options.webhook_service = find_webhook_service(sources);
    Ok(options)
}

/// Kinds listed in PROJECT, or `None` if it can't be read. Commands that need PROJECT report that
/// themselves.
fn project_kinds(sources: &TreeSources) -> Option<ProjectKinds> {
    let (_, known) = read_known(sources)?;
    let named = |resource: &Resource| (resource.qualified_group(), resource.kind.clone());
    let (own, others): (Vec<&Resource>, Vec<&Resource>) = known
        .resources
        .iter()
        .partition(|resource| resource.api.is_some());
    Some(ProjectKinds {
        own: own.into_iter().map(named).collect(),
        foreign: others
            .into_iter()
            .filter(|resource| resource.is_foreign())
            .map(named)
            .collect(),
        domain: known.domain.clone(),
    })
}

/// Checks that PROJECT can be read, unless another tool made it: its settings decide what is
/// generated.
fn check_project_file(sources: &TreeSources) -> Result<()> {
    let Some(text) = sources.text(FILE).ok().flatten() else {
        return Ok(());
    };
    Project::parse_own(&text).map(drop)
}

/// Name of the project's Service for webhooks, if it differs from the scaffolded one.
fn find_webhook_service(sources: &TreeSources) -> Option<String> {
    let read = |path: &str| Ok(sources.text(path).ok().flatten().map(|text| text.to_string()));
    let project = Project::read_from(&read).ok()??;
    project.known.rbuilder.names.webhook_service
}

/// Parses PROJECT and also returns its text. `None` if it is missing, invalid, or belongs to
/// another tool.
fn read_known(sources: &TreeSources) -> Option<(Arc<str>, Known)> {
    let text = sources.text(FILE).ok()??;
    let project = Project::parse_own(&text).ok()??;
    Some((text, project.known))
}

fn sources(plan: &Plan, tree: &Tree) -> Result<TreeSources> {
    let planned = plan
        .changes()
        .iter()
        .map(|(path, change)| (path.clone(), change.after().map(str::to_owned)));
    let sources = tree.sources(planned);
    if matches!(sources.text("Cargo.toml"), Ok(None)) {
        bail!(
            "no Cargo.toml found in {}: run this command in a Cargo package or workspace, or pass its directory with `-C <dir>`",
            tree.shown()
        );
    }
    Ok(sources)
}
