//! `rbuilder create webhook`: what the API server asks about a kind, and everything it needs to be asked.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{ApiContext, SpokeContext, WebhookContext};

use super::create_api::{ApiPlaces, add_modules, check_module_place, edit};
use super::{Outcome, finish, open, scaffold};
use crate::edit::{Unrecognised, kustomization, rust};
use crate::flags::WebhookFlags;
use crate::plan::Plan;
use crate::project::{FILE, Project, Resource, Webhooks, names};
use crate::shell::Shell;
use crate::tree::Tree;

/// Longest chain of calls that rustfmt leaves on one line.
const CHAIN_WIDTH: usize = 60;

pub(super) fn run(dir: &Path, flags: &WebhookFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    let tree = open(dir, shell)?;
    let mut outcome = plan(&tree, flags)?;
    outcome.next =
        "next, say in src/webhook/ what is filled in, refused or converted, then:\n  make manifests test\n\
                    without certificates the operator runs with `ENABLE_WEBHOOKS=false make run`\n"
            .into();
    finish("create webhook", &tree, &outcome, flags.plan, shell)
}

/// What `create webhook` would change.
///
/// # Errors
/// When the kind or a version of it is not there, a file is in the way, or one is not laid out as an edit needs it.
pub fn plan(tree: &Tree, flags: &WebhookFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let request = Request::new(&project, flags)?;
    let context = scaffold::project_context(&project, tree.root());
    let api = request.api(&project);
    let webhook = request.context(&project, &api);
    let files = rbuilder_templates::webhook_files(&context, &api, &webhook).map_err(anyhow::Error::new)?;

    let mut plan = Plan::default();
    let handlers = format!("src/{}/{}.rs", webhook.folder, api.module);
    let test = format!("tests/{}.rs", webhook.test_module);
    check_grown(tree, &project, &handlers, &request)?;
    for file in files {
        check_module_place(tree, &file.path)?;
        let untouched = is_untouched(tree, &project, &file.path)?;
        if file.path == test && !untouched && !flags.force && tree.read(&test)?.is_some() {
            plan.keep(&test);
            continue;
        }
        scaffold::put(&mut plan, tree, &mut project, &[file], flags.force || untouched)?;
    }
    plan.check_conflicts()?;
    add_lines(&mut plan, tree, &api, &webhook)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    project.add_resource(request.resource);
    plan.edit(tree, FILE, &project.print())?;
    Ok(found.into_outcome(plan))
}

/// Rules that need no project.
fn check_flags(flags: &WebhookFlags) -> Result<()> {
    let spokes = flags.spoke.iter().map(|version| names::version(version));
    let named = [names::version(&flags.version), names::kind(&flags.kind)];
    scaffold::check_names(named.into_iter().chain(spokes))?;
    if !(flags.defaulting || flags.validation || flags.conversion) {
        bail!(
            "nothing was asked for: pass `--defaulting`, `--validation`, or `--conversion --spoke <version>`"
        );
    }
    if flags.spoke.contains(&flags.version) {
        bail!(
            "`{}` cannot be converted to itself: leave it out of `--spoke`",
            flags.version
        );
    }
    Ok(())
}

/// Webhooks that are asked for, beside those that are there.
struct Request {
    /// The kind as PROJECT will have it.
    resource: Resource,
    /// What it has afterwards.
    webhooks: Webhooks,
    /// What PROJECT says it has.
    before: Webhooks,
}

impl Request {
    fn new(project: &Project, flags: &WebhookFlags) -> Result<Request> {
        let wanted = Resource {
            group: flags.group.clone(),
            domain: project.known.domain.clone(),
            version: flags.version.clone(),
            kind: flags.kind.clone(),
            ..Resource::default()
        };
        let family: Vec<&Resource> = project
            .known
            .resources
            .iter()
            .filter(|other| other.same_kind(&wanted) && other.api.is_some())
            .collect();
        for version in std::iter::once(&flags.version).chain(&flags.spoke) {
            if !family.iter().any(|other| other.version == *version) {
                bail!(
                    "there are no types of `{}` in {}/{version}: write them with `rbuilder create api --group {} --version {version} --kind {}`",
                    flags.kind,
                    flags.group,
                    flags.group,
                    flags.kind
                );
            }
        }
        let hub = family.iter().find(|other| {
            other
                .webhooks
                .as_ref()
                .is_some_and(|webhooks| webhooks.conversion)
        });
        if let Some(hub) = hub
            && flags.conversion
            && hub.version != flags.version
        {
            bail!(
                "versions of `{}` are converted through `{}` already: pass `--version {}`",
                flags.kind,
                hub.version,
                hub.version
            );
        }
        let own = family.iter().find(|other| other.version == flags.version);
        let mut resource = own.map(|own| Resource::clone(own)).unwrap_or(wanted);
        let before = resource.webhooks.take().unwrap_or_default();
        let asked = Webhooks {
            webhook_version: "v1".into(),
            defaulting: flags.defaulting,
            validation: flags.validation,
            conversion: flags.conversion,
            spoke: flags.spoke.clone(),
        };
        let webhooks = before.clone().with(asked);
        resource.webhooks = Some(webhooks.clone());
        Ok(Request {
            resource,
            webhooks,
            before,
        })
    }

    fn api(&self, project: &Project) -> ApiContext {
        ApiPlaces::of(project, &self.resource).context()
    }

    fn context(&self, project: &Project, api: &ApiContext) -> WebhookContext {
        let Webhooks {
            defaulting,
            validation,
            ..
        } = self.webhooks;
        let spokes: Vec<SpokeContext> = self
            .webhooks
            .spoke
            .iter()
            .map(|version| {
                let resource = Resource {
                    version: version.clone(),
                    ..self.resource.clone()
                };
                let spoke = ApiPlaces::of(project, &resource).context();
                SpokeContext {
                    version: version.clone(),
                    api_path: spoke.api_path,
                    sample_file: spoke.sample_file,
                }
            })
            .collect();
        let abouts = [
            (defaulting, "defaults"),
            (validation, "validation"),
            (!spokes.is_empty(), "conversion"),
        ];
        let abouts: Vec<&str> = abouts
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, about)| *about)
            .collect();
        let path = api.api_path.replacen("api::", "webhook::", 1);
        let prefix = api.test_module.strip_suffix(&format!("_{}", api.version));
        WebhookContext {
            defaulting,
            validation,
            admission: defaulting || validation,
            about: abouts.join(", "),
            chain: chain(defaulting, validation, &spokes, &api.kind),
            folder: path.replace("::", "/"),
            path: format!("{path}::{}", api.module),
            test_module: format!("{}_{}_webhook", prefix.unwrap_or(&api.test_module), api.version),
            spokes,
        }
    }
}

/// The calls that make a `Webhook`, as rustfmt breaks them.
fn chain(defaulting: bool, validation: bool, spokes: &[SpokeContext], kind: &str) -> String {
    let mut calls = Vec::new();
    if defaulting {
        calls.push(".defaulter(default)".to_owned());
    }
    if validation {
        calls.push(".validator(validate)".to_owned());
    }
    calls.extend(
        spokes
            .iter()
            .map(|spoke| format!(".spoke::<crate::{}::{kind}>()", spoke.api_path)),
    );
    let line = format!("Webhook::new(){}", calls.concat());
    if line.len() <= CHAIN_WIDTH {
        return line;
    }
    format!("Webhook::new()\n        {}", calls.join("\n        "))
}

/// Whether a file is as a command left it.
fn is_untouched(tree: &Tree, project: &Project, path: &str) -> Result<bool> {
    let text = tree.read(path)?;
    Ok(text.is_some_and(|text| project.recorded(path, &text)))
}

/// Handlers that somebody has filled in cannot be written anew with one more beside them.
fn check_grown(tree: &Tree, project: &Project, path: &str, request: &Request) -> Result<()> {
    let grown = request.webhooks != request.before && request.before != Webhooks::default();
    if !grown || tree.read(path)?.is_none() || is_untouched(tree, project, path)? {
        return Ok(());
    }
    let mut lines = Vec::new();
    if request.webhooks.defaulting && !request.before.defaulting {
        lines.push(".defaulter(default), and a function `default` with `#[webhook(mutating)]`".to_owned());
    }
    if request.webhooks.validation && !request.before.validation {
        lines
            .push(".validator(validate), and a function `validate` with `#[webhook(validating)]`".to_owned());
    }
    let new = |version: &&String| !request.before.spoke.contains(version);
    for version in request.webhooks.spoke.iter().filter(new) {
        lines.push(format!(".spoke::<…::{version}::{}>()", request.resource.kind));
    }
    Err(anyhow!(Unrecognised {
        path: path.to_owned(),
        reason: "it has been written in since".into(),
        deed: "add to its `webhook()`",
        lines: format!("  {}", lines.join("\n  ")),
    }))
}

/// Makes the new files known to the ones that list them.
fn add_lines(plan: &mut Plan, tree: &Tree, api: &ApiContext, webhook: &WebhookContext) -> Result<()> {
    edit(plan, tree, "src/lib.rs", "pub mod webhook;", |text| {
        rust::add_module(text, "webhook", true)
    })?;
    edit(
        plan,
        tree,
        "src/main.rs",
        "let manager = webhook::register(manager);",
        rust::register_webhooks,
    )?;
    let mut parts: Vec<&str> = webhook.path.split("::").collect();
    add_modules(plan, tree, &parts)?;
    let call = format!("{}::webhook()", parts.split_off(1).join("::"));
    edit(
        plan,
        tree,
        "src/webhook/mod.rs",
        &format!("manager.webhook({call})"),
        |text| rust::add_registration(text, "webhook", &call),
    )?;
    for spoke in &webhook.spokes {
        let folder = spoke.api_path.replace("::", "/");
        let module = format!("{}_conversion", api.module);
        edit(
            plan,
            tree,
            &format!("src/{folder}/mod.rs"),
            &format!("mod {module};"),
            |text| rust::add_module(text, &module, false),
        )?;
    }
    if !webhook.spokes.is_empty() {
        let spec = format!("{}Spec", api.kind);
        let types = format!("src/{}/{}.rs", api.api_path.replace("::", "/"), api.module);
        edit(plan, tree, &types, "#[crd(conversion)]", |text| {
            rust::add_conversion(text, &spec)
        })?;
    }
    let policies = "config/network-policy/kustomization.yaml";
    edit(
        plan,
        tree,
        policies,
        "resources:\n  - allow-webhook-traffic.yaml",
        |text| kustomization::add(text, "allow-webhook-traffic.yaml"),
    )?;
    let default = "config/default/kustomization.yaml";
    edit(plan, tree, default, "components:\n  - ../webhook", |text| {
        kustomization::add_component(text, "../webhook")
    })
}
