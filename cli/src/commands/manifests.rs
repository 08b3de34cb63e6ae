//! `rbuilder manifests`: source text → CRDs and roles, through the generator.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::{Generated, Options, Severity, Sources, generate};
use serde_json::{Value, json};

use super::{Outcome, finish, open, webhooks};
use crate::edit::{Unrecognised, kustomization};
use crate::flags::{ManifestsFlags, Output};
use crate::plan::{Plan, diff};
use crate::project::{FILE, Project};
use crate::report;
use crate::shell::Shell;
use crate::tree::{Tree, TreeSources, check_relative};

/// What is asked of the generator.
pub(super) struct Request {
    /// Folder for the manifests, within the project.
    pub(super) config: String,
    pub(super) options: Options,
    /// Whether mistakes are shown in colour.
    pub(super) color: bool,
    /// What to do when the source has mistakes.
    pub(super) advice: &'static str,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            config: "config".into(),
            options: Options {
                version: Some(env!("CARGO_PKG_VERSION").into()),
                ..Options::default()
            },
            color: false,
            advice: "mend this first",
        }
    }
}

pub(super) fn run(dir: &Path, flags: &ManifestsFlags, shell: &mut Shell) -> Result<u8> {
    check_relative(&flags.config_dir)?;
    let tree = open(dir, shell)?;
    let mut request = Request {
        config: flags.config_dir.clone(),
        color: shell.color(),
        advice: "",
        ..Request::default()
    };
    request.options.role_name.clone_from(&flags.role_name);
    request.options.features.clone_from(&flags.features);

    let mut plan = Plan::default();
    let found = read(&plan, &tree, &request)?;
    if flags.stdout {
        print(&found, flags.plan.output, shell);
        return Ok(0);
    }
    put(&mut plan, &tree, &request, &found.generated)?;
    let outcome = found.into_outcome(plan);
    if flags.check && !outcome.plan.is_empty() {
        shell.note(&outcome.warnings);
        if flags.plan.output == Output::Json {
            let mut answer = crate::plan::json(&outcome.plan, "manifests", false);
            answer["diagnostics"] = Value::Array(outcome.diagnostics.clone());
            shell.out(&format!("{answer:#}\n"));
        } else {
            shell.diff(&diff(&outcome.plan));
            shell.error(&anyhow!("the manifests are stale: run `rbuilder manifests`"));
        }
        return Ok(1);
    }
    finish("manifests", &tree, &outcome, flags.plan, shell)
}

/// The manifests themselves, one after the other.
fn print(found: &Found, output: Output, shell: &mut Shell) {
    let files = &found.generated.files;
    if output == Output::Json {
        let list: Vec<Value> = files
            .iter()
            .map(|file| json!({ "path": file.path, "content": file.text }))
            .collect();
        let answer = json!({ "command": "manifests", "files": list, "diagnostics": found.data });
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.note(&found.text);
    for file in files {
        shell.out(&file.text);
    }
}

/// Generates the manifests of the tree as the plan will leave it, and adds them to the plan.
///
/// # Errors
/// When the source has mistakes: all of them, each with its place.
pub(super) fn add_to_plan(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<Found> {
    let found = read(plan, tree, request)?;
    put(plan, tree, request, &found.generated)?;
    Ok(found)
}

/// What the generator made and said.
#[derive(Default)]
pub(super) struct Found {
    generated: Generated,
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

fn read(plan: &Plan, tree: &Tree, request: &Request) -> Result<Found> {
    let sources = sources(plan, tree)?;
    let generated = generate(&sources, &request.options);
    let snippet = |diagnostic| report::snippet(diagnostic, &sources, request.color);
    let text: Vec<String> = generated.diagnostics.iter().map(snippet).collect();
    let data: Vec<Value> = generated
        .diagnostics
        .iter()
        .map(|diagnostic| report::json(diagnostic, &sources))
        .collect();
    let errors = generated
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    let mut text = text.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    if errors > 0 {
        return Err(anyhow!(SourceErrors {
            errors,
            advice: request.advice,
            snippets: text,
            diagnostics: data,
        }));
    }
    Ok(Found {
        text,
        data,
        generated,
    })
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

fn put(plan: &mut Plan, tree: &Tree, request: &Request, generated: &Generated) -> Result<()> {
    let config = &request.config;
    let mut names = Vec::new();
    for file in &generated.files {
        let path = format!("{config}/{}", file.path);
        plan.replace(tree, &path, &file.text)?;
        if let Some(name) = file.path.strip_prefix("crd/") {
            names.push(name.to_owned());
        }
    }
    let stale = prune(plan, tree, config, &names)?;
    wire(plan, tree, config, &names, &stale)?;
    webhooks::keep_in_step(plan, tree, config, &generated.files)?;
    empty_role(plan, tree, request, generated)
}

/// Removes CRDs that an earlier run wrote and no kind stands for any more.
fn prune(plan: &mut Plan, tree: &Tree, config: &str, names: &[String]) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for path in tree.list(&format!("{config}/crd/bases"))? {
        let name = path[config.len() + "/crd/".len()..].to_owned();
        if !path.ends_with(".yaml") || names.contains(&name) {
            continue;
        }
        if tree.read(&path)?.is_some_and(|text| is_ours(&text)) {
            plan.delete(tree, &path)?;
            stale.push(name);
        }
    }
    Ok(stale)
}

/// Whether the generator wrote this CRD.
fn is_ours(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim_start().starts_with("rbuilder.dev/version:"))
}

/// Keeps the list of CRDs in step with the files, where there is one.
fn wire(plan: &mut Plan, tree: &Tree, config: &str, names: &[String], stale: &[String]) -> Result<()> {
    let path = format!("{config}/crd/kustomization.yaml");
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(());
    };
    let mut edited = text.clone();
    let problem = |reason, deed, name: &str| Unrecognised {
        path: path.clone(),
        reason,
        deed,
        lines: format!("  resources:\n  - {name}"),
    };
    for name in names {
        edited =
            kustomization::add(&edited, name).map_err(|reason| problem(reason, "add these lines", name))?;
    }
    for name in stale {
        edited = kustomization::remove(&edited, name)
            .map_err(|reason| problem(reason, "remove this entry", name))?;
    }
    if edited != text {
        plan.edit(tree, &path, &edited)?;
    }
    Ok(())
}

/// A role that no marker asks for any more keeps its kind and name, which its binding refers to, and loses its
/// permissions. Without PROJECT the file may be somebody else's, and stays.
fn empty_role(plan: &mut Plan, tree: &Tree, request: &Request, generated: &Generated) -> Result<()> {
    let path = format!("{}/rbac/role.yaml", request.config);
    if generated.files.iter().any(|file| file.path == "rbac/role.yaml") || plan.read(tree, &path)?.is_none() {
        return Ok(());
    }
    let Some(project) = plan.read(tree, FILE)? else {
        return Ok(());
    };
    let known = Project::parse(&project)?.known;
    let mut metadata = json!({ "name": request.options.role_name });
    if known.namespaced {
        metadata["namespace"] = format!("{}-system", known.project_name).into();
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if known.namespaced { "Role" } else { "ClusterRole" },
        "metadata": metadata,
        "rules": [],
    });
    let text = format!("---\n{}", rbuilder_generator::yaml::to_string(&role));
    plan.replace(tree, &path, &text)
}
