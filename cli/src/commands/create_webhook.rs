//! `rbuilder create webhook`: what the API server asks about a kind, and everything it needs to be asked.

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_templates::{ApiContext, SpokeContext, WebhookContext};

use super::create_api::{ApiPlaces, add_modules, check_module_place, edit};
use super::kubernetes_kind::Known;
use super::{Outcome, execute, owners, scaffold};
use crate::edit::{kustomization, rust};
use crate::flags::WebhookFlags;
use crate::plan::Plan;
use crate::project::{FILE, Project, Resource, Webhooks, names};
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, flags: &WebhookFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    let next = "next, say in src/webhook/ what is filled in, refused or converted, then:\n  make manifests test\n\
                    without certificates the operator runs with `ENABLE_WEBHOOKS=false make run`\n";
    execute("create webhook", dir, flags.plan, shell, &mut |tree| {
        Ok(plan(tree, flags)?.with_next(next))
    })
}

/// What `create webhook` would change.
///
/// # Errors
/// When the kind or a version of it is not there, a file is in the way, or one is not laid out as an edit needs it.
pub fn plan(tree: &Tree, flags: &WebhookFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let request = Request::new(&project, flags, tree)?;
    let context = scaffold::project_context(&project, tree.root());
    let api = request.api(&project);
    let webhook = request.context(&project, &request.webhooks, &api);
    let files = rbuilder_templates::webhook_files(&context, &api, &webhook).map_err(anyhow::Error::new)?;
    owners::check(&project, tree, &request.resource, &files)?;

    let mut plan = Plan::default();
    let handlers = format!("src/{}/{}.rs", webhook.folder, api.module);
    let mut grows = None;
    for file in files {
        check_module_place(tree, &file.path)?;
        let there = tree.read(&file.path)?;
        let untouched = there
            .as_ref()
            .is_some_and(|text| project.recorded(&file.path, text));
        let is_theirs = there.is_some() && !untouched && !flags.force;
        if is_theirs && file.path == handlers {
            grows = Some(file);
        } else if is_theirs && is_settled(&file.path, &webhook, there.as_deref()) {
            plan.keep(&file.path);
        } else {
            scaffold::put(&mut plan, tree, &mut project, &[file], flags.force || untouched)?;
        }
    }
    plan.check_conflicts()?;
    if grows.is_some() {
        let webhook = request.context(&project, &request.asked, &api);
        let made = rbuilder_templates::webhook_files(&context, &api, &webhook).map_err(anyhow::Error::new)?;
        let scaffold = made.iter().find(|file| file.path == handlers);
        let scaffold = scaffold.map_or("", |file| file.text.as_str());
        add_handlers(&mut plan, tree, &handlers, scaffold, (&api, &webhook))?;
    }
    add_lines(&mut plan, tree, &context.crate_ident, (&api, &webhook))?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    project.add_resource(request.resource);
    plan.edit(tree, FILE, &project.print())?;
    Ok(found.into_outcome(plan))
}

/// Whether a file that somebody has written, or written in, serves as it is: a test of the webhooks is theirs, and a
/// conversion is one when it converts.
fn is_settled(path: &str, webhook: &WebhookContext, text: Option<&str>) -> bool {
    if path == format!("tests/{}.rs", webhook.test_module) {
        return true;
    }
    path.ends_with("_conversion.rs") && text.is_some_and(rust::has_conversion)
}

/// Adds to a file of handlers that somebody has written in.
fn add_handlers(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    scaffold: &str,
    (api, webhook): (&ApiContext, &WebhookContext),
) -> Result<()> {
    let module: Vec<&str> = webhook.path.split("::").collect();
    let spokes: Vec<String> = webhook
        .spokes
        .iter()
        .map(|spoke| format!("crate::{}::{}", spoke.api_path, api.kind))
        .collect();
    let wanted = rust::Handlers {
        scaffold,
        kind: &api.kind,
        variable: &api.module,
        module: &module,
        defaulting: webhook.defaulting,
        validation: webhook.validation,
        spokes: &spokes,
    };
    edit(plan, tree, path, "", |text| rust::add_handlers(text, &wanted))
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
    /// The request of this command.
    asked: Webhooks,
}

impl Request {
    fn new(project: &Project, flags: &WebhookFlags, tree: &Tree) -> Result<Request> {
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
                if let Some(known) = Known::find(&flags.group, version, &flags.kind) {
                    return Err(known.refuse_webhook(project, tree));
                }
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
        let webhooks = before.with(asked.clone());
        resource.webhooks = Some(webhooks.clone());
        Ok(Request {
            resource,
            webhooks,
            asked,
        })
    }

    fn api(&self, project: &Project) -> ApiContext {
        ApiPlaces::of(project, &self.resource).context()
    }

    fn context(&self, project: &Project, webhooks: &Webhooks, api: &ApiContext) -> WebhookContext {
        context(project, &self.resource, webhooks, api)
    }
}

/// Webhooks of a kind, and the places of what serves them, for templates.
pub(super) fn context(
    project: &Project,
    resource: &Resource,
    webhooks: &Webhooks,
    api: &ApiContext,
) -> WebhookContext {
    let Webhooks {
        defaulting,
        validation,
        ..
    } = *webhooks;
    let spokes: Vec<SpokeContext> = webhooks
        .spoke
        .iter()
        .map(|version| {
            let other = Resource {
                version: version.clone(),
                ..resource.clone()
            };
            spoke_context(api, ApiPlaces::of(project, &other).context())
        })
        .collect();
    let abouts = [
        (defaulting, "defaulting"),
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

/// The names by which a conversion tells a version from the hub.
fn spoke_context(hub: &ApiContext, spoke: ApiContext) -> SpokeContext {
    let imported = |api: &ApiContext| format!("crate::{}", api.kind_path);
    let is_by_path = hub.kind_type != hub.kind;
    let (first, hub_type) = if is_by_path {
        (imported(hub), hub.kind_type.clone())
    } else {
        (format!("{} as Hub", imported(hub)), "Hub".to_owned())
    };
    let mut imports = vec![first, imported(&spoke)];
    imports.sort_by(|left, right| rust::compare(left, right));
    SpokeContext {
        version: spoke.version,
        api_path: spoke.api_path,
        imports,
        hub_type,
        kind_type: spoke.kind_type,
        sample_file: spoke.sample_file,
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
    if line.len() <= rust::CHAIN_WIDTH {
        return line;
    }
    format!("Webhook::new()\n        {}", calls.join("\n        "))
}

/// The file with the type of a kind: the one that was scaffolded, or another one of its version that holds it now.
fn find_types(plan: &Plan, tree: &Tree, api: &ApiContext) -> Result<String> {
    let folder = format!("src/{}", api.api_path.replace("::", "/"));
    let usual = format!("{folder}/{}.rs", api.module);
    let mut places = vec![usual.clone(), format!("{folder}/{}/mod.rs", api.module)];
    places.extend(
        tree.list(&folder)?
            .into_iter()
            .filter(|path| path.ends_with(".rs")),
    );
    for path in places {
        let text = plan.read(tree, &path)?;
        if text.is_some_and(|text| rust::defines_kind(&text, &api.kind)) {
            return Ok(path);
        }
    }
    Ok(usual)
}

/// Makes the new files known to the ones that list them.
fn add_lines(
    plan: &mut Plan,
    tree: &Tree,
    crate_ident: &str,
    (api, webhook): (&ApiContext, &WebhookContext),
) -> Result<()> {
    edit(plan, tree, "src/lib.rs", "pub mod webhook;", |text| {
        rust::add_module(text, "webhook", true)
    })?;
    edit(
        plan,
        tree,
        "src/main.rs",
        &format!("let manager = {crate_ident}::webhook::register(manager);"),
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
        let types = find_types(plan, tree, api)?;
        edit(plan, tree, &types, "#[crd(conversion)]", |text| {
            rust::add_conversion(text, &api.kind)
        })?;
    }
    let policies = "config/network-policy/kustomization.yaml";
    edit(
        plan,
        tree,
        policies,
        "resources:\n- allow-webhook-traffic.yaml",
        |text| kustomization::add(text, "allow-webhook-traffic.yaml"),
    )?;
    let default = "config/default/kustomization.yaml";
    edit(plan, tree, default, "components:\n- ../webhook", |text| {
        kustomization::add_component(text, "../webhook")
    })
}
