//! `rbuilder manifests`: generates CRDs, roles and webhook configurations from the source.

mod breaking;
mod crd_place;
mod definition;
mod fix;
mod held_back;
mod kept;
mod layout;
mod loss;
mod nothing;
mod permissions;
mod removed;
mod replaced;
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
    CsvMarkers, Diagnostic, Findings, Levels, Options, OutputFile, Product, ProjectKinds, Sources,
    generate_each,
};
use serde_json::{Value, json};

use super::check::check_up_to_date;
use super::{Outcome, decide, decide_and_apply, execute, kubernetes};
use crate::flags::{GenerationFlags, ManifestsFlags, MessageFormat, Only, Output, SourceFlags};
use crate::plan::{Plan, check_path_untracked};
use crate::project::{FILE, Known, Project, Resource};
use crate::report;
use crate::shell::Shell;
use crate::tree::{Tree, TreeSources};

pub(super) use crd_place::CrdPlace;
use definition::read_changed_files;
use held_back::{HeldBack, count_asked, count_readable};
use layout::{Generated, Layout};
use loss::find_losses;
use nothing::explain_nothing;
use removed::find_removed;
pub(super) use samples::find_refused_before;
pub(super) use settings::{DEFAULT_FILE, Settings};
pub(super) use stale_roles::find_stale_roles;
use stored::find_unreadable;
pub(super) use unbound_roles::{find_losing_bindings, find_unbound_roles};
use versions::{find_immutable, find_lost_storage, find_unlisted};
pub(super) use written::{Written, read_written};

/// A request to generate manifests.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) layout: Layout,
    pub(super) options: Options,
    /// True if the command prints a note when the source has no markers.
    pub(super) notes_nothing: bool,
    /// True if manifests may lose what the source still defines.
    pub(super) prunes_standing: bool,
    /// True if CRDs tracked by git may be removed.
    pub(super) removes_tracked: bool,
    /// Format of diagnostics.
    pub(super) messages: MessageFormat,
    /// True if diagnostics are printed in color.
    pub(super) color: bool,
    /// Advice to print if the source has errors.
    pub(super) advice: &'static str,
    /// True if the command writes manifests.
    pub(super) writes: bool,
    /// True if an error only blocks the manifests that it affects, unless the project is
    /// scaffolded. The manifests of a scaffold are deployed together. In an existing project, one
    /// mistake must not block the other kinds.
    pub(super) keeps_going_without_scaffold: bool,
    /// True if the command turns the package into a project that deploys its CRDs from `config/`.
    pub(super) deploys: bool,
    /// True if the process exits when the manifests are written.
    pub(super) is_last: bool,
    /// True if all samples are checked, and not only those of changed CRDs.
    pub(super) checks_samples: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            layout: Layout::default(),
            options: Options {
                version: Some(env!("CARGO_PKG_VERSION").into()),
                ..Options::default()
            },
            notes_nothing: false,
            prunes_standing: false,
            removes_tracked: false,
            messages: MessageFormat::Human,
            color: false,
            advice: "fix these errors first",
            writes: true,
            keeps_going_without_scaffold: false,
            deploys: false,
            is_last: false,
            checks_samples: false,
        }
    }
}

impl Request {
    fn new(flags: &ManifestsFlags, shell: &Shell) -> Result<Request> {
        let mut request = Request {
            layout: Layout::new(&flags.target)?,
            notes_nothing: true,
            prunes_standing: flags.target.prune,
            removes_tracked: flags.target.prune,
            messages: flags.message_format,
            color: shell.color(),
            advice: "",
            writes: !flags.stdout,
            keeps_going_without_scaffold: true,
            is_last: true,
            checks_samples: flags.check,
            ..Request::default()
        };
        let (source, target) = (&flags.source, &flags.target);
        request.select(source);
        let options = &mut request.options;
        if !flags.only.is_empty() {
            options
                .products
                .retain(|product| flags.only.contains(&only(*product)));
        }
        options.keep_going = flags.keep_going;
        options.levels = read_levels(flags)?;
        options.role_name.clone_from(&target.role_name);
        options.max_description_length = target.max_description_length;
        options.embedded_object_meta = target.embedded_object_meta;
        if target.no_version_annotation {
            options.version = None;
        }
        // Kinds that a flag excludes are not stale.
        request.layout.prunes &= source.kinds.is_empty() && source.skip_kinds.is_empty();
        request.layout.is_partial = !source.packages.is_empty() || !source.examples.is_empty();
        Ok(request)
    }

    /// Creates a request for all manifests of some source, for commands that do not write them.
    pub(super) fn for_source(source: &SourceFlags, shell: &Shell) -> Request {
        let mut request = Request {
            color: shell.color(),
            writes: false,
            keeps_going_without_scaffold: true,
            ..Request::default()
        };
        request.select(source);
        request
    }

    /// Applies the flags that select the source.
    fn select(&mut self, source: &SourceFlags) {
        let options = &mut self.options;
        options.packages.clone_from(&source.packages);
        options.examples.clone_from(&source.examples);
        options.kinds.clone_from(&source.kinds);
        options.skip_kinds.clone_from(&source.skip_kinds);
        options.features.clone_from(&source.features);
        options.all_features = source.all_features;
        options.no_default_features = source.no_default_features;
        options.kubernetes = source.kubernetes;
    }

    /// Creates a request to survey a repository: generates as much as possible, with the settings
    /// in its `Cargo.toml`.
    ///
    /// # Errors
    /// Returns an error if the settings are invalid.
    pub(super) fn of_everything(tree: &Tree) -> Result<(Request, Settings)> {
        let mut request = Request::default().with_settings(tree)?;
        request.options.keep_going = true;
        request.options.products = vec![Product::Crds];
        Ok((request, Settings::read(tree)?))
    }

    /// Returns the path of the roles.
    pub(super) fn role_path(&self) -> String {
        self.layout.role_path()
    }

    /// Returns the place of CRDs that are not deployed from `config/`.
    pub(super) fn known_place(&self) -> &CrdPlace {
        self.layout.known_place()
    }

    /// Applies the settings in the project's `Cargo.toml`. Flags take precedence.
    ///
    /// # Errors
    /// Returns an error if the settings are invalid.
    fn with_settings(&self, tree: &Tree) -> Result<Request> {
        let settings = Settings::read(tree)?;
        let mut request = self.clone();
        request.options.keep_going |= match settings.keep_going {
            Some(keep_going) => keep_going,
            None => self.keeps_going_without_scaffold && !has_scaffold(tree)?,
        };
        let mut levels = settings.levels.clone();
        levels.extend(&request.options.levels);
        request.options.levels = levels;
        let project = tree.read(FILE).ok().flatten();
        let project = project.and_then(|text| Project::parse(&text).ok());
        let is_deployed = self.deploys || project.is_some_and(|project| project.is_scaffolded());
        request.layout.apply_settings(&settings, is_deployed);
        request.options.committed = request.layout.list_crd_names(tree)?;
        Ok(request)
    }

    /// Returns whether no flag excludes a part of the source.
    fn reads_all(&self) -> bool {
        let options = &self.options;
        let lists = [
            &options.packages,
            &options.examples,
            &options.kinds,
            &options.skip_kinds,
            &options.features,
        ];
        lists.iter().all(|list| list.is_empty()) && !options.no_default_features
    }

    fn makes(&self, product: Product) -> bool {
        self.options.products.contains(&product)
    }
}

fn only(product: Product) -> Only {
    match product {
        Product::Crds => Only::Crd,
        Product::Roles => Only::Rbac,
        Product::Webhooks => Only::Webhook,
    }
}

pub(super) fn run(dir: &Path, flags: &ManifestsFlags, shell: &mut Shell) -> Result<u8> {
    if flags.message_format == MessageFormat::Json {
        shell.speak_json(!flags.stdout);
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

/// Generates the manifests unless the flags disable it.
///
/// # Errors
/// Returns the same errors as [`generate`].
pub(super) fn generate_if_asked(dir: &Path, flags: &GenerationFlags, shell: &mut Shell) -> Result<()> {
    match flags.manifests {
        true => generate(dir, shell).map(drop),
        false => Ok(()),
    }
}

/// Generates the manifests for a command that goes on to use them. Returns the paths of written
/// files.
///
/// # Errors
/// Returns all errors in the source, with their locations.
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

/// Generates the manifests with the settings of the project, and collects warnings and notes.
///
/// # Errors
/// Returns the same errors as [`add_to_plan`].
pub(super) fn collect_manifests(
    tree: &Tree,
    request: &Request,
) -> Result<(Vec<OutputFile>, RenderedDiagnostics)> {
    let sources = sources(&Plan::default(), tree)?;
    let request = &request.with_settings(tree)?;
    let mut files = Vec::new();
    let found = read(&sources, request, &mut |file| files.push(file))?;
    Ok((files, found))
}

/// Prints the manifests.
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

/// Generates the manifests for the tree as it will be after `plan`, and adds them to the plan.
///
/// # Errors
/// Returns all errors in the source, with their locations.
pub(super) fn add_to_plan(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<RenderedDiagnostics> {
    let sources = sources(plan, tree)?;
    let request = &request.with_settings(tree)?;
    let options = options(&sources, request)?;
    // Compare each manifest as soon as it is generated, and drop it if it is unchanged, to save
    // memory.
    let mut made = Ok(Generated::default());
    let mut found = generate_each(&sources, &options, &mut |file| {
        if let Ok(list) = &mut made
            && let Err(error) = list.put(plan, tree, request, &file)
        {
            made = Err(error);
        }
    });
    release_source(&mut found, request);
    let is_complete = !has_errors(&found.diagnostics);
    if is_complete || options.keep_going {
        let made = made?;
        let kept = kept::list_kept(tree, &found.kinds);
        made.finish(plan, tree, request, is_complete, &kept)?;
        let is_nothing = is_complete && request.notes_nothing && made.is_empty();
        let nothing = is_nothing.then(|| explain_nothing(&found, &sources)).flatten();
        let changed = read_changed_files(plan, &request.layout);
        let unreadable = find_unreadable(&changed, &sources, &options, &|path| {
            check_path_untracked(tree.root(), path).is_err()
        });
        found.diagnostics.extend(unreadable);
        let broken = breaking::find_breaking(plan, &request.layout, &sources, &options, &|path| {
            check_path_untracked(tree.root(), path).is_err()
        });
        found.diagnostics.extend(broken);
        let lost = find_lost_storage(&changed, &found.kinds);
        found.diagnostics.extend(lost);
        let immutable = find_immutable(&changed, &found.kinds);
        found.diagnostics.extend(immutable);
        let refused = samples::find_refused(plan, tree, &request.layout);
        found.diagnostics.extend(refused);
        if request.checks_samples {
            found
                .diagnostics
                .extend(samples::find_refused_before(plan, tree)?);
        }
        let stale = stale_roles::find_stale(&changed, plan, tree, &request.layout);
        found.diagnostics.extend(stale);
        if is_complete && request.makes(Product::Roles) {
            let same_names = role_namespaces::update(plan, tree, &request.layout)?;
            found.diagnostics.extend(same_names);
        }
        let unbound = unbound_roles::find_new_unbound(plan, tree, &request.layout)?;
        found.diagnostics.extend(unbound);
        if is_complete && request.reads_all() {
            let known = read_known(&sources);
            let unlisted = known.map(|(text, known)| find_unlisted(&text, &known, &found.kinds));
            found.diagnostics.extend(unlisted.into_iter().flatten());
        }
        if !request.prunes_standing {
            let losses = find_losses(plan, &request.layout, &sources, &options);
            if !losses.is_empty() {
                add_losses(&mut found.diagnostics, losses);
                return Err(source_errors(&found, &sources, request));
            }
        }
        found.diagnostics.extend(nothing);
        let is_tracked = |path: &str| check_path_untracked(tree.root(), path).is_err();
        let removed = find_removed(plan, &request.layout, request.removes_tracked, &is_tracked);
        let is_refused = removed.iter().any(Diagnostic::is_error);
        found.diagnostics.extend(removed);
        if is_refused {
            return Err(source_errors(&found, &sources, request));
        }
        // The generator has applied both to its own.
        let levels = &request.options.levels;
        let diagnostics = std::mem::take(&mut found.diagnostics);
        found.diagnostics = diagnostics
            .into_iter()
            .filter(|said| !found.allows.covers(said))
            .filter_map(|said| levels.apply(said))
            .collect();
    }
    render_findings(&found, &sources, request)
}

/// Generates the manifests of a tree without changing the plan, and passes each to a callback.
/// Returns the source and the findings.
///
/// # Errors
/// Returns an error if the directory has no `Cargo.toml`.
pub(super) fn generate_in_memory(
    plan: &Plan,
    tree: &Tree,
    request: &Request,
    each: &mut dyn FnMut(OutputFile),
) -> Result<(TreeSources, Findings)> {
    let sources = sources(plan, tree)?;
    let options = options(&sources, request)?;
    let mut found = generate_each(&sources, &options, each);
    release_source(&mut found, request);
    Ok((sources, found))
}

/// Drops the model of the source, unless the process ends soon and so has no use for the memory.
fn release_source(found: &mut Findings, request: &Request) {
    let source = std::mem::take(&mut found.source);
    if request.is_last {
        std::mem::forget(source);
    }
}

/// Adds errors about losses. Drops less specific warnings about the same files.
fn add_losses(diagnostics: &mut Vec<Diagnostic>, losses: Vec<Diagnostic>) {
    diagnostics.retain(|said| {
        let is_same_file = |loss: &Diagnostic| loss.place.path == said.place.path && !said.is_error();
        !losses.iter().any(is_same_file)
    });
    diagnostics.extend(losses);
}

/// Diagnostics of the generator, rendered.
#[derive(Default)]
pub(super) struct RenderedDiagnostics {
    text: String,
    data: Vec<Value>,
    /// The error to print at the end if only a part of the manifests was generated.
    failure: Option<anyhow::Error>,
    /// The markers for a ClusterServiceVersion, if requested.
    csv: Vec<CsvMarkers>,
}

impl RenderedDiagnostics {
    /// Returns the markers for a ClusterServiceVersion.
    pub(super) fn csv_markers(&self) -> &[CsvMarkers] {
        &self.csv
    }

    /// Returns the warnings, as JSON.
    pub(super) fn warnings(&self) -> Vec<&Value> {
        let diagnostics = self.data.iter();
        diagnostics.filter(|said| said["severity"] == "warning").collect()
    }

    /// Returns the first error, as JSON.
    pub(super) fn first_error(&self) -> Option<&Value> {
        self.data.iter().find(|said| said["severity"] == "error")
    }

    /// Returns the error about manifests that were not generated.
    pub(super) fn failure(&self) -> Option<&anyhow::Error> {
        self.failure.as_ref()
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.failure.is_some())
    }

    /// Prints the diagnostics, the result of the command, and then the final error if there is one.
    /// Returns the exit code.
    pub(super) fn print_around(&self, result: &str, shell: &mut Shell) -> u8 {
        shell.message(&self.text);
        shell.out(result);
        if let Some(failure) = &self.failure {
            shell.error(failure);
        }
        self.exit_code()
    }

    pub(super) fn into_outcome(self, plan: Plan) -> Outcome {
        Outcome {
            plan,
            exit_code: self.exit_code(),
            failure: self.failure,
            warnings: self.text,
            diagnostics: self.data,
            ..Outcome::default()
        }
    }
}

/// The maximum number of diagnostics to print. The rest is only counted. More than this stem from a
/// single mistake or from generated source.
const MAX_PRINTED: usize = 2000;

fn read(
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
    release_source(&mut found, request);
    if is_empty && !has_errors(&found.diagnostics) {
        let said = explain_nothing(&found, sources);
        found.diagnostics.extend(said);
    }
    render_findings(&found, sources, request)
}

/// Reads the levels in flags.
fn read_levels(flags: &ManifestsFlags) -> Result<Levels> {
    let mut levels = Levels::default();
    for word in &flags.allow {
        levels
            .allow(word)
            .map_err(|reason| anyhow!("`--allow`: {reason}"))?;
    }
    for word in &flags.deny {
        levels
            .deny(word)
            .map_err(|reason| anyhow!("`--deny`: {reason}"))?;
    }
    Ok(levels)
}

/// Returns the options of the generator, including those from Cargo's configuration and PROJECT.
///
/// # Errors
/// Returns an error if Cargo's configuration selects a version of Kubernetes that does not exist.
pub(super) fn options(sources: &TreeSources, request: &Request) -> Result<Options> {
    let mut options = request.options.clone();
    if options.kubernetes.is_none() {
        options.kubernetes = kubernetes::find_configured_version(sources)?;
    }
    options.project = project_kinds(sources);
    options.own_namespaces = role_namespaces::find_own_namespaces(sources, &request.layout);
    Ok(options)
}

/// Returns the kinds listed in PROJECT. Returns `None` if PROJECT cannot be read, which commands
/// that need it report.
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

/// Reads PROJECT and returns its text too. Returns `None` if there is none, if it is invalid, or if
/// it belongs to another tool, such as a Go operator beside the package.
fn read_known(sources: &TreeSources) -> Option<(Arc<str>, Known)> {
    let text = sources.text(FILE).ok()??;
    let project = Project::parse(&text).ok()?;
    match project.foreign_layout() {
        Some(_) => None,
        None => Some((text, project.known)),
    }
}

/// Returns whether rbuilder scaffolded the project. True if PROJECT cannot be parsed.
fn has_scaffold(tree: &Tree) -> Result<bool> {
    let text = tree.read(FILE)?;
    Ok(text.is_some_and(|text| Project::parse(&text).map_or(true, |project| project.is_scaffolded())))
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// Renders the diagnostics of a run.
///
/// # Errors
/// Returns an error if one of the diagnostics is an error, unless the request accepts partial
/// manifests.
fn render_findings(
    found: &Findings,
    sources: &TreeSources,
    request: &Request,
) -> Result<RenderedDiagnostics> {
    let has_errors = has_errors(&found.diagnostics);
    if has_errors && !request.options.keep_going {
        return Err(source_errors(found, sources, request));
    }
    let (text, data) = render_diagnostics(&found.diagnostics, sources, request);
    let failure = has_errors.then(|| anyhow!(HeldBack::new(found, sources, request.writes)));
    Ok(RenderedDiagnostics {
        text,
        data,
        failure,
        csv: found.csv.clone(),
    })
}

/// Returns the error for source that has errors.
fn source_errors(found: &Findings, sources: &TreeSources, request: &Request) -> anyhow::Error {
    let (snippets, diagnostics) = render_diagnostics(&found.diagnostics, sources, request);
    let readable = count_readable(&found.kinds);
    let advice = match request.advice {
        "" if readable > 0 && !request.options.keep_going => format!(
            "pass `--keep-going` to generate the manifests of the kinds without errors ({readable} of {})",
            count_asked(&found.kinds)
        ),
        advice => advice.to_owned(),
    };
    anyhow!(SourceErrors {
        errors: found.diagnostics.iter().filter(|found| found.is_error()).count(),
        advice,
        snippets,
        diagnostics,
    })
}

/// Renders diagnostics as text and as JSON.
fn render_diagnostics(
    diagnostics: &[Diagnostic],
    sources: &TreeSources,
    request: &Request,
) -> (String, Vec<Value>) {
    let told = &diagnostics[..diagnostics.len().min(MAX_PRINTED)];
    let text = told
        .iter()
        .map(|diagnostic| match request.messages {
            MessageFormat::Human => {
                format!("{}\n", report::render_snippet(diagnostic, sources, request.color))
            }
            MessageFormat::Json => report::to_json_line(diagnostic, sources),
        })
        .collect();
    let data = told
        .iter()
        .map(|diagnostic| report::to_json(diagnostic, sources))
        .collect();
    (text, data)
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

/// The error of a command whose source has errors.
#[derive(Debug)]
pub(crate) struct SourceErrors {
    errors: usize,
    advice: String,
    /// The rendered errors with their locations.
    pub(crate) snippets: String,
    /// The same errors as JSON values.
    pub(crate) diagnostics: Vec<Value>,
}

impl std::error::Error for SourceErrors {}

impl std::fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.errors {
            1 => write!(f, "found 1 error")?,
            errors => write!(f, "found {errors} errors")?,
        }
        write!(f, " in the source; no files were written")?;
        if self.advice.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.advice)
    }
}
