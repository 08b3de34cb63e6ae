//! `rbuilder manifests`: source text → CRDs and roles, through the generator.

mod layout;
mod loss;
mod permissions;
mod replaced;

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::{
    Diagnostic, Options, OutputFile, Product, ProjectKinds, Severity, Sources, generate_each,
};
use serde_json::{Value, json};

use super::{Outcome, decide, execute, kubernetes, show};
use crate::flags::{ManifestsFlags, MessageFormat, Only, Output};
use crate::plan::{Plan, diff};
use crate::project::{FILE, Project, Resource};
use crate::report;
use crate::shell::Shell;
use crate::tree::{Tree, TreeSources};

use layout::{Layout, Made};
use loss::find_losses;

/// What is asked of the generator.
pub(super) struct Request {
    pub(super) layout: Layout,
    pub(super) options: Options,
    /// True when a note is due where there is nothing to make manifests from.
    pub(super) notes_nothing: bool,
    /// True when the manifests may lose what still stands in the source.
    pub(super) prunes_standing: bool,
    /// How mistakes are told.
    pub(super) messages: MessageFormat,
    /// Whether mistakes are shown in colour.
    pub(super) color: bool,
    /// What to do when the source has mistakes.
    pub(super) advice: &'static str,
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
            messages: MessageFormat::Human,
            color: false,
            advice: "mend this first",
        }
    }
}

impl Request {
    fn new(flags: &ManifestsFlags, shell: &Shell) -> Result<Request> {
        let mut request = Request {
            layout: Layout::new(&flags.target)?,
            notes_nothing: true,
            prunes_standing: flags.target.prune,
            messages: flags.message_format,
            color: shell.color(),
            advice: "",
            ..Request::default()
        };
        let (source, target) = (&flags.source, &flags.target);
        let options = &mut request.options;
        if !flags.only.is_empty() {
            options
                .products
                .retain(|product| flags.only.contains(&only(*product)));
        }
        options.packages.clone_from(&source.packages);
        options.examples.clone_from(&source.examples);
        options.kinds.clone_from(&source.kinds);
        options.skip_kinds.clone_from(&source.skip_kinds);
        options.features.clone_from(&source.features);
        options.all_features = source.all_features;
        options.no_default_features = source.no_default_features;
        options.kubernetes = source.kubernetes;
        options.role_name.clone_from(&target.role_name);
        options.max_description_length = target.max_description_length;
        options.embedded_object_meta = target.embedded_object_meta;
        if target.no_version_annotation {
            options.version = None;
        }
        // What is left out by choice is not stale.
        request.layout.prunes &= source.kinds.is_empty() && source.skip_kinds.is_empty();
        request.layout.is_partial = !source.packages.is_empty() || !source.examples.is_empty();
        Ok(request)
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
        let (_, (files, found)) = decide(dir, shell, &mut |tree| {
            let mut files = Vec::new();
            let sources = sources(&Plan::default(), tree)?;
            let found = read(&sources, &request, &mut |file| files.push(file))?;
            Ok((files, found))
        })?;
        print(&files, &found, flags.plan.output, shell);
        return Ok(0);
    }
    let make = &mut |tree: &Tree| {
        let mut plan = Plan::default();
        let found = add_to_plan(&mut plan, tree, &request)?;
        Ok(found.into_outcome(plan))
    };
    if !flags.check {
        return execute("manifests", dir, flags.plan, shell, make);
    }
    let (_, outcome) = decide(dir, shell, make)?;
    if !outcome.plan.is_empty() {
        say_stale(&outcome, flags, shell);
        return Ok(1);
    }
    outcome.plan.check_conflicts()?;
    show("manifests", &outcome, flags.plan, shell);
    Ok(0)
}

fn say_stale(outcome: &Outcome, flags: &ManifestsFlags, shell: &mut Shell) {
    shell.message(&outcome.warnings);
    if flags.plan.output == Output::Json {
        let mut answer = crate::plan::json(&outcome.plan, "manifests", false);
        answer["diagnostics"] = Value::Array(outcome.diagnostics.clone());
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.diff(&diff(&outcome.plan));
    shell.error(&anyhow!("the manifests are stale: run `rbuilder manifests`"));
}

/// The manifests themselves, one after the other.
fn print(files: &[OutputFile], found: &Found, output: Output, shell: &mut Shell) {
    if output == Output::Json {
        let list: Vec<Value> = files
            .iter()
            .map(|file| json!({ "path": file.path, "content": file.text }))
            .collect();
        let answer = json!({ "command": "manifests", "files": list, "diagnostics": found.data });
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.message(&found.text);
    for file in files {
        shell.out(&file.text);
    }
}

/// Generates the manifests of the tree as the plan will leave it, and adds them to the plan.
///
/// # Errors
/// When the source has mistakes: all of them, each with its place.
pub(super) fn add_to_plan(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<Found> {
    let sources = sources(plan, tree)?;
    let options = options(&sources, request)?;
    // Each manifest is compared as it is made, and kept only where it differs.
    let mut made = Ok(Made::default());
    let mut diagnostics = generate_each(&sources, &options, &mut |file| {
        if let Ok(list) = &mut made
            && let Err(error) = list.put(plan, tree, request, &file)
        {
            made = Err(error);
        }
    });
    if !has_errors(&diagnostics) {
        let made = made?;
        made.settle(plan, tree, request)?;
        if request.notes_nothing && made.is_empty() {
            diagnostics.extend(nothing_found(&diagnostics, &sources));
        }
        if !request.prunes_standing {
            let losses = find_losses(plan, &request.layout, &sources, &options);
            add_losses(&mut diagnostics, losses);
        }
    }
    tell(&diagnostics, &sources, request)
}

/// What would be lost at a place says more than the warning that stands there already.
fn add_losses(diagnostics: &mut Vec<Diagnostic>, losses: Vec<Diagnostic>) {
    diagnostics.retain(|said| {
        let is_same_file = |loss: &Diagnostic| loss.path == said.path && said.severity != Severity::Error;
        !losses.iter().any(is_same_file)
    });
    diagnostics.extend(losses);
}

/// What the generator said.
#[derive(Default)]
pub(super) struct Found {
    text: String,
    data: Vec<Value>,
}

impl Found {
    pub(super) fn into_outcome(self, plan: Plan) -> Outcome {
        Outcome {
            plan,
            warnings: self.text,
            diagnostics: self.data,
            next: String::new(),
        }
    }
}

/// More complaints than these are counted and not told: they come from one mistake, or from a program.
const MOST_TOLD: usize = 2000;

fn read(sources: &TreeSources, request: &Request, each: &mut dyn FnMut(OutputFile)) -> Result<Found> {
    let options = options(sources, request)?;
    let mut is_empty = true;
    let mut diagnostics = generate_each(sources, &options, &mut |file| {
        is_empty = false;
        each(file);
    });
    if is_empty && !has_errors(&diagnostics) {
        diagnostics.extend(nothing_found(&diagnostics, sources));
    }
    tell(&diagnostics, sources, request)
}

/// A note that there is nothing to make manifests from, unless something was said that explains it. It is no error: a
/// project without kinds is whole, and so is one right after `init`.
fn nothing_found(said: &[Diagnostic], sources: &TreeSources) -> Option<Diagnostic> {
    let files = match sources.rust_files_read() {
        1 => "1 Rust file".to_owned(),
        files => format!("{files} Rust files"),
    };
    said.is_empty().then(|| Diagnostic {
        path: "Cargo.toml".into(),
        range: 0..0,
        severity: Severity::Note,
        message: format!("found no kind and no marker in the {files} of the library and the binaries here"),
        help: Some(
            "a kind is a struct with `#[derive(CustomResource)]` in a module of them; `--example` and `-p` read others"
                .into(),
        ),
    })
}

/// The options, with what Cargo's configuration adds to them.
fn options(sources: &TreeSources, request: &Request) -> Result<Options> {
    let mut options = request.options.clone();
    if options.kubernetes.is_none() {
        options.kubernetes = kubernetes::configured(sources)?;
    }
    options.project = project_kinds(sources);
    Ok(options)
}

/// What PROJECT says about whose kinds are whose. One that cannot be read says nothing: the commands that need it
/// complain.
fn project_kinds(sources: &TreeSources) -> Option<ProjectKinds> {
    let text = sources.text(FILE).ok()??;
    let known = Project::parse(&text).ok()?.known;
    let own = known.resources.iter().filter(|resource| resource.api.is_some());
    Some(ProjectKinds {
        own: own
            .map(|resource| (api_group(resource), resource.kind.clone()))
            .collect(),
        domain: known.domain,
    })
}

/// The API group of a resource in PROJECT, where either part may be missing.
fn api_group(resource: &Resource) -> String {
    let parts = [resource.group.as_str(), resource.domain.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(".")
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Writes out what was said.
///
/// # Errors
/// When an error is among it.
fn tell(diagnostics: &[Diagnostic], sources: &TreeSources, request: &Request) -> Result<Found> {
    let told = &diagnostics[..diagnostics.len().min(MOST_TOLD)];
    let text: Vec<String> = told
        .iter()
        .map(|diagnostic| match request.messages {
            MessageFormat::Human => format!("{}\n", report::snippet(diagnostic, sources, request.color)),
            MessageFormat::Json => report::line(diagnostic, sources),
        })
        .collect();
    let data: Vec<Value> = told
        .iter()
        .map(|diagnostic| report::json(diagnostic, sources))
        .collect();
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    let text = text.concat();
    if errors > 0 {
        return Err(anyhow!(SourceErrors {
            errors,
            advice: request.advice,
            snippets: text,
            diagnostics: data,
        }));
    }
    Ok(Found { text, data })
}

fn sources(plan: &Plan, tree: &Tree) -> Result<TreeSources> {
    let planned = plan
        .changes()
        .iter()
        .map(|(path, change)| (path.clone(), change.after().map(str::to_owned)));
    let sources = tree.sources(planned);
    if matches!(sources.text("Cargo.toml"), Ok(None)) {
        bail!(
            "there is no Cargo.toml in {}: run this in a Cargo package or workspace, or name one with `-C <folder>`",
            tree.shown()
        );
    }
    Ok(sources)
}

/// The source has mistakes, so that nothing can be made from it.
#[derive(Debug)]
pub(crate) struct SourceErrors {
    errors: usize,
    advice: &'static str,
    /// Each of them with its place, ready to be shown.
    pub(crate) snippets: String,
    /// The same as data.
    pub(crate) diagnostics: Vec<Value>,
}

impl std::error::Error for SourceErrors {}

impl std::fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.errors {
            1 => write!(f, "an error")?,
            errors => write!(f, "{errors} errors")?,
        }
        write!(f, " in the source; nothing was written")?;
        if self.advice.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.advice)
    }
}
