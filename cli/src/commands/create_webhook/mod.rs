//! `rbuilder create webhook`: scaffolds the webhooks of a kind, with the manifests that serve them.

mod storage;

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_templates::{ApiContext, SpokeContext, WebhookContext};

pub(super) use self::storage::StorageChange;
use super::adopted::{Parts, check_places};
use super::create_api::{ApiPlaces, add_modules, check_module_place, edit_file, shown_version};
use super::foreign_kind::{self, KindFlags, find_foreign_kind};
use super::{Outcome, execute, features, owners, scaffold};
use crate::edit::{kustomization, rust};
use crate::flags::WebhookFlags;
use crate::plan::Plan;
use crate::project::{Project, Resource, Webhooks, names, naming_flags};
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, flags: &WebhookFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    execute("create webhook", dir, flags.plan, shell, &mut |tree| {
        plan_create_webhook(tree, flags)
    })
}

/// Returns the changes that `create webhook` makes.
///
/// # Errors
/// Fails if the kind or a version does not exist, if files conflict, or if a file cannot be edited.
pub fn plan_create_webhook(tree: &Tree, flags: &WebhookFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let request = Request::new(&project, flags, tree)?;
    let parts = Parts {
        webhooks: true,
        ..Parts::default()
    };
    check_places(tree, &project, parts)?;
    let context = scaffold::project_context(&project);
    let api = request.api(&project);
    let webhook = request.context(&project, &request.webhooks, &api);
    let files = rbuilder_templates::webhook_files(&context, &api, &webhook)?;
    owners::check_file_owners(&project, &request.resource, &files)?;

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
        } else if is_theirs && is_complete(&file.path, &webhook, there.as_deref()) {
            plan.keep(&file.path);
        } else {
            scaffold::add_files(&mut plan, tree, &mut project, &[file], flags.force || untouched)?;
        }
    }
    plan.check_conflicts()?;
    if grows.is_some() {
        let webhook = request.context(&project, &request.asked, &api);
        let made = rbuilder_templates::webhook_files(&context, &api, &webhook)?;
        let scaffold = made.iter().find(|file| file.path == handlers);
        let scaffold = scaffold.map_or("", |file| file.text.as_str());
        add_handlers(&mut plan, tree, &handlers, scaffold, (&api, &webhook))?;
    }
    foreign_kind::add_crate(&mut plan, tree, &request.resource)?;
    add_lines(&mut plan, tree, &project, (&api, &webhook))?;
    let storage = if flags.conversion {
        StorageChange::to_hub(&mut plan, tree, &project, &request.resource)?
    } else {
        StorageChange::default()
    };
    let asked = request.context(&project, &request.asked, &api);
    let next = next_steps(&api, &asked, &handlers, project.test_command());
    project.add_resource(request.resource);
    project.write(&mut plan, tree)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let mut outcome = found.into_outcome(plan).with_next(&next);
    storage.warn(&api, &mut outcome);
    Ok(outcome)
}

/// Returns the next steps: the files to edit, and the commands that test and run them.
fn next_steps(api: &ApiContext, asked: &WebhookContext, handlers: &str, test_command: &str) -> String {
    let mut parts = Vec::new();
    if asked.admission {
        parts.push(format!("the handlers in {handlers}"));
    }
    for spoke in &asked.spokes {
        let folder = spoke.api_path.replace("::", "/");
        parts.push(format!(
            "the conversion in src/{folder}/{}_conversion.rs",
            api.module
        ));
    }
    format!(
        "Next: implement {}, then run:\n  {test_command}\n\
         To run the manager and its webhooks on this machine:\n  rbuilder dev\n",
        parts.join(" and ")
    )
}

/// Returns whether a file that the user has changed is kept as it is: a test of the webhooks always, a conversion if it
/// implements one.
fn is_complete(path: &str, webhook: &WebhookContext, text: Option<&str>) -> bool {
    if path == format!("tests/{}.rs", webhook.test_module) {
        return true;
    }
    path.ends_with("_conversion.rs") && text.is_some_and(rust::has_conversion)
}

/// Adds handlers to a file that the user has changed.
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
    edit_file(plan, tree, path, "", |text| rust::add_handlers(text, &wanted))
}

/// Checks the rules that do not depend on the project.
fn check_flags(flags: &WebhookFlags) -> Result<()> {
    let spokes = flags.spoke.iter().map(|version| names::check_version(version));
    let named = [
        names::check_version(&flags.version),
        names::check_kind(&flags.kind),
    ];
    let paths = [
        ("--defaulting-path", &flags.defaulting_path),
        ("--validation-path", &flags.validation_path),
    ];
    let paths = paths.iter().filter_map(|(flag, path)| {
        let path = path.as_deref()?;
        Some(names::check_webhook_path(flag, path))
    });
    let plural = flags.plural.as_deref().map(names::check_plural);
    scaffold::check_names(named.into_iter().chain(spokes).chain(paths).chain(plural))?;
    if !(flags.defaulting || flags.validation || flags.conversion) {
        bail!(
            "no webhook requested: pass at least one of `--defaulting`, `--validation`, and `--conversion --spoke <version>`"
        );
    }
    if flags.spoke.contains(&flags.version) {
        bail!(
            "version `{}` cannot be hub and spoke at the same time: remove it from `--spoke`",
            flags.version
        );
    }
    Ok(())
}

/// Requested webhooks, in addition to existing ones.
struct Request {
    /// The kind as PROJECT will record it.
    resource: Resource,
    /// All webhooks of the kind, existing and requested.
    webhooks: Webhooks,
    /// The requested webhooks.
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
        let kind = KindFlags {
            group: &flags.group,
            version: &flags.version,
            kind: &flags.kind,
            plural: flags.plural.as_deref(),
            namespaced: None,
            external: &flags.external,
        };
        if family.is_empty()
            && let Some(found) = find_foreign_kind(project, tree, kind)?
        {
            return Request::for_foreign(project, flags, found);
        }
        if flags.external.path.is_some() {
            bail!(
                "kind `{}` has its types in this project: omit `--external-path`",
                flags.kind
            );
        }
        for version in std::iter::once(&flags.version).chain(&flags.spoke) {
            if !family.iter().any(|other| other.version == *version) {
                bail!(
                    "kind `{}` has no API types in {}: scaffold them with `rbuilder create api {}`{}",
                    flags.kind,
                    shown_version(&flags.group, version),
                    naming_flags(&flags.group, version, &flags.kind),
                    foreign_kind::explain_unknown(tree, &flags.group, version, &flags.kind)?
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
                "the hub version of `{}` is `{}`: pass `--version {}`",
                flags.kind,
                hub.version,
                hub.version
            );
        }
        let own = family.iter().find(|other| other.version == flags.version);
        let resource = own.map(|own| Resource::clone(own)).unwrap_or(wanted);
        Ok(Request::with_webhooks(resource, flags))
    }

    /// Returns the request of webhooks for a kind whose types are not the project's.
    fn for_foreign(project: &Project, flags: &WebhookFlags, resource: Resource) -> Result<Request> {
        if flags.conversion {
            bail!(
                "kind `{}` belongs to another project, and only that project can convert it: omit `--conversion`",
                flags.kind
            );
        }
        foreign_kind::check_is_written(&resource)?;
        if project.known.multigroup {
            scaffold::check_names([names::group_module(&resource.group).map(drop)])?;
        }
        Ok(Request::with_webhooks(resource, flags))
    }

    fn with_webhooks(mut resource: Resource, flags: &WebhookFlags) -> Request {
        let before = resource.webhooks.take().unwrap_or_default();
        let asked = Webhooks {
            webhook_version: "v1".into(),
            defaulting: flags.defaulting,
            validation: flags.validation,
            conversion: flags.conversion,
            spoke: flags.spoke.clone(),
            defaulting_path: flags.defaulting_path.clone().unwrap_or_default(),
            validation_path: flags.validation_path.clone().unwrap_or_default(),
        };
        let webhooks = before.with(asked.clone());
        resource.webhooks = Some(webhooks.clone());
        Request {
            resource,
            webhooks,
            asked,
        }
    }

    fn api(&self, project: &Project) -> ApiContext {
        ApiPlaces::of(project, &self.resource).context()
    }

    fn context(&self, project: &Project, webhooks: &Webhooks, api: &ApiContext) -> WebhookContext {
        webhook_context(project, &self.resource, webhooks, api)
    }
}

/// Returns the template context of the webhooks of a kind.
pub(super) fn webhook_context(
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
    let path = format!("webhook::{}", api.version_path);
    let prefix = api.test_module.strip_suffix(&format!("_{}", api.version));
    WebhookContext {
        defaulting,
        validation,
        admission: defaulting || validation,
        about: abouts.join(", "),
        chain: chain(webhooks, &spokes, &api.kind),
        defaulting_marker: marker(project, resource, "mutating", &webhooks.defaulting_path),
        validation_marker: marker(project, resource, "validating", &webhooks.validation_path),
        folder: path.replace("::", "/"),
        path: format!("{path}::{}", api.module),
        test_module: format!("{}_{}_webhook", prefix.unwrap_or(&api.test_module), api.version),
        spokes,
    }
}

/// Returns the template context of the conversion of one version.
fn spoke_context(hub: &ApiContext, spoke: ApiContext) -> SpokeContext {
    let imported = |api: &ApiContext| format!("crate::{}", api.kind_path);
    let is_by_path = hub.kind_type != hub.kind;
    let (first, hub_type) = if is_by_path {
        (imported(hub), hub.kind_type.clone())
    } else {
        (format!("{} as Hub", imported(hub)), "Hub".to_owned())
    };
    let mut imports = vec![first, imported(&spoke)];
    imports.sort_by(|left, right| rust::compare_names(left, right));
    SpokeContext {
        version: spoke.version,
        api_path: spoke.api_path,
        imports,
        hub_type,
        kind_type: spoke.kind_type,
        sample_file: spoke.sample_file,
    }
}

/// Returns the marker of a webhook, formatted as by rustfmt.
///
/// A webhook of a built-in kind stays away from the manager's own namespace and from `kube-system`: one that is called
/// for the Pod of its own manager keeps the manager from starting. Objects that are in no namespace cannot be selected
/// like this, so the request goes on without the webhook while the manager is down.
fn marker(project: &Project, resource: &Resource, what: &str, path: &str) -> String {
    let mut arguments = vec![what.to_owned()];
    let mut path = path.to_owned();
    let group = resource.qualified_group();
    let (kind, version) = (resource.kind.to_lowercase(), &resource.version);
    let is_namesake = |other: &&Resource| {
        !other.same_kind(resource) && other.kind.to_lowercase() == kind && other.version == *version
    };
    let mut before = project.known.resources.iter();
    let mut before = before.by_ref().take_while(|other| !other.same_kind(resource));
    let unique = match group.as_str() {
        _ if !before.any(|other| is_namesake(&other) && other.webhooks.is_some()) => String::new(),
        "" => "core.".to_owned(),
        group => format!("{group}."),
    };
    let name = format!("name = \"{}{kind}-{version}.{unique}kb.io\"", &what[..1]);
    if resource.external {
        let verb = if what == "mutating" { "mutate" } else { "validate" };
        arguments.push(format!("groups = \"{group}\""));
        arguments.push(format!("versions = \"{version}\""));
        arguments.push(format!("resources = \"{}\"", resource.plural));
        arguments.push(name);
        if path.is_empty() {
            path = format!("/{verb}-{}-{version}-{kind}", group.replace('.', "-"));
        }
    } else if !unique.is_empty() {
        arguments.push(name);
    }
    if !path.is_empty() {
        arguments.push(format!("path = \"{path}\""));
    }
    if resource.core && resource.is_namespaced() {
        let own = format!("{}-system", project.known.project_name);
        arguments.push(format!(
            "namespace_selector(match_expression(\n        key = \"kubernetes.io/metadata.name\",\n        operator = \"NotIn\",\n        values = [\"{own}\", \"kube-system\"]\n    ))"
        ));
    } else if resource.core {
        arguments.push("failure_policy = \"ignore\"".to_owned());
    }
    let line = arguments.join(", ");
    if !line.contains('\n') && line.len() <= MARKER_WIDTH {
        return format!("#[webhook({line})]");
    }
    format!("#[webhook(\n    {}\n)]", arguments.join(",\n    "))
}

/// Maximum width of the arguments of an attribute that rustfmt keeps on one line.
const MARKER_WIDTH: usize = 70;

/// Returns the expression that builds the `Webhook`, formatted as by rustfmt.
fn chain(webhooks: &Webhooks, spokes: &[SpokeContext], kind: &str) -> String {
    let mut calls = Vec::new();
    for (is_wanted, name, handler, path) in [
        (
            webhooks.defaulting,
            "defaulter",
            "default",
            &webhooks.defaulting_path,
        ),
        (
            webhooks.validation,
            "validator",
            "validate",
            &webhooks.validation_path,
        ),
    ] {
        if is_wanted {
            calls.push(format!(".{name}({handler})"));
            if !path.is_empty() {
                calls.push(format!(".{name}_path(\"{path}\")"));
            }
        }
    }
    calls.extend(
        spokes
            .iter()
            .map(|spoke| format!(".spoke::<crate::{}::{kind}>()", spoke.api_path)),
    );
    rust::format_chain("Webhook::new()", &calls)
}

/// Returns the file that defines a kind: the scaffolded one, or another one in the module of its version.
pub(super) fn find_types(plan: &Plan, tree: &Tree, api: &ApiContext) -> Result<String> {
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

/// Registers the new files in the files that list them.
fn add_lines(
    plan: &mut Plan,
    tree: &Tree,
    project: &Project,
    (api, webhook): (&ApiContext, &WebhookContext),
) -> Result<()> {
    edit_file(plan, tree, "src/lib.rs", "pub mod webhook;", |text| {
        rust::add_module(text, "webhook", true)
    })?;
    edit_file(
        plan,
        tree,
        project.main_file(),
        &format!(
            "let manager = {}::webhook::register(manager);",
            scaffold::crate_ident(project)
        ),
        rust::register_webhooks,
    )?;
    let mut parts: Vec<&str> = webhook.path.split("::").collect();
    add_modules(plan, tree, &parts)?;
    let call = format!("{}::webhook()", parts.split_off(1).join("::"));
    edit_file(
        plan,
        tree,
        "src/webhook/mod.rs",
        &format!("manager.webhook({call})"),
        |text| rust::add_registration(text, "webhook", &call),
    )?;
    for spoke in &webhook.spokes {
        let folder = spoke.api_path.replace("::", "/");
        let module = format!("{}_conversion", api.module);
        edit_file(
            plan,
            tree,
            &format!("src/{folder}/mod.rs"),
            &format!("mod {module};"),
            |text| rust::add_module(text, &module, false),
        )?;
    }
    if !webhook.spokes.is_empty() {
        let role = format!("{}_conversion_role.yaml", api.role_prefix.replace('-', "_"));
        let list = "config/webhook/kustomization.yaml";
        edit_file(plan, tree, list, &format!("resources:\n- {role}"), |text| {
            kustomization::add_resource(text, &role)
        })?;
        let types = find_types(plan, tree, api)?;
        edit_file(plan, tree, &types, "#[crd(conversion)]", |text| {
            rust::add_conversion(text, &api.kind)
        })?;
    }
    let policies = "config/network-policy/kustomization.yaml";
    edit_file(
        plan,
        tree,
        policies,
        "resources:\n- allow-webhook-traffic.yaml",
        |text| kustomization::add_resource(text, "allow-webhook-traffic.yaml"),
    )?;
    let lines = "components:\n- ../webhook\n\ntransformers:\n- ../webhook/names";
    edit_file(plan, tree, features::DEPLOYMENT, lines, features::enable_webhooks)
}
