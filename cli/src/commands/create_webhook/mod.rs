//! `rbuilder create webhook`: scaffolds a kind's webhooks, and the manifests that serve them.

mod storage;

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_kubernetes::gvk;
use rbuilder_templates::{ApiContext, WebhookContext};

pub(super) use self::storage::StorageChange;
use super::adopted::{Parts, check_places};
use super::edits::{add_lines, check_module_place, edit_file, find_types};
use super::foreign_kind::{self, NamedKind, find_foreign_kind};
use super::{Outcome, execute, owners, scaffold};
use crate::edit::rust;
use crate::engine::Mode;
use crate::plan::Plan;
use crate::project::{Project, Resource, Webhooks, names, naming_flags};
use crate::render::{ApiPlaces, Line, crate_line, project_context, webhook_context, webhook_lines};
use crate::request::WebhookRequest;
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, mode: Mode, requested: &WebhookRequest, shell: &mut Shell) -> Result<u8> {
    check_flags(requested)?;
    execute("create webhook", dir, mode, shell, &mut |tree| {
        plan_create_webhook(tree, requested)
    })
}

/// Plans the changes made by `create webhook`.
///
/// # Errors
/// Fails if the kind or a version does not exist, if files conflict, or if a file cannot be edited.
pub fn plan_create_webhook(tree: &Tree, requested: &WebhookRequest) -> Result<Outcome> {
    check_flags(requested)?;
    let mut project = scaffold::require_project(tree)?;
    let request = Request::new(&project, requested, tree)?;
    let parts = Parts {
        webhooks: true,
        ..Parts::default()
    };
    check_places(tree, &project, parts)?;
    let context = project_context(&project);
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
            .is_some_and(|text| project.is_as_scaffolded(&file.path, text));
        let is_theirs = there.is_some() && !untouched && !requested.force;
        if is_theirs && file.path == handlers {
            grows = Some(file);
        } else if is_theirs && is_complete(&file.path, &webhook, there.as_deref()) {
            plan.keep(&file.path);
        } else {
            scaffold::add_files(
                &mut plan,
                tree,
                &mut project,
                &[file],
                requested.force || untouched,
            )?;
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
    let types = find_types(&plan, tree, &api)?;
    let mut lines: Vec<Line> = crate_line(&request.resource)?.into_iter().collect();
    lines.extend(webhook_lines(&project, (&api, &webhook), &types));
    add_lines(&mut plan, tree, &lines)?;
    let storage = if requested.conversion {
        StorageChange::to(&mut plan, tree, &project, &request.resource)?
    } else {
        StorageChange::default()
    };
    // The next steps only mention what this run added.
    let asked = request.context(&project, &request.asked, &api);
    let next = next_steps(&api, &asked, &handlers, project.test_command());
    project.add_resource(request.resource);
    plan.write_project(&project, tree)?;
    let found = scaffold::add_manifests(&mut plan, tree, requested.manifests)?;
    let mut outcome = found.into_outcome(plan).with_next(&next);
    storage.warn(&api, &mut outcome);
    Ok(outcome)
}

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

/// Whether to keep a file edited by the user: a test of the webhooks, or a conversion with an
/// implementation.
fn is_complete(path: &str, webhook: &WebhookContext, text: Option<&str>) -> bool {
    if path == format!("tests/{}.rs", webhook.test_module) {
        return true;
    }
    path.ends_with("_conversion.rs") && text.is_some_and(rust::has_conversion)
}

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

fn check_flags(requested: &WebhookRequest) -> Result<()> {
    let spokes = requested
        .spoke
        .iter()
        .map(|version| names::check_version(version));
    let named = [
        names::check_version(&requested.version),
        names::check_kind(&requested.kind),
    ];
    let paths = [
        ("--defaulting-path", &requested.defaulting_path),
        ("--validation-path", &requested.validation_path),
    ];
    let paths = paths.iter().filter_map(|(flag, path)| {
        let path = path.as_deref()?;
        Some(names::check_webhook_path(flag, path))
    });
    let plural = requested.plural.as_deref().map(names::check_plural);
    scaffold::check_names(named.into_iter().chain(spokes).chain(paths).chain(plural))?;
    if !(requested.defaulting || requested.validation || requested.conversion) {
        bail!(
            "no webhook requested: pass at least one of `--defaulting`, `--validation`, and `--conversion --spoke <version>`"
        );
    }
    if requested.spoke.contains(&requested.version) {
        bail!(
            "version `{}` cannot be hub and spoke at the same time: remove it from `--spoke`",
            requested.version
        );
    }
    Ok(())
}

struct Request {
    resource: Resource,
    /// All webhooks of the kind, both existing and requested.
    webhooks: Webhooks,
    asked: Webhooks,
}

impl Request {
    fn new(project: &Project, requested: &WebhookRequest, tree: &Tree) -> Result<Request> {
        scaffold::check_names([names::check_domain(&project.known.domain)])?;
        let wanted = Resource {
            group: requested.group.clone(),
            domain: project.domain_of(&requested.group, &requested.kind, requested.api_domain.as_deref()),
            version: requested.version.clone(),
            kind: requested.kind.clone(),
            ..Resource::default()
        };
        let family: Vec<&Resource> = project
            .known
            .resources
            .iter()
            .filter(|other| other.same_kind(&wanted) && other.api.is_some())
            .collect();
        let kind = NamedKind {
            group: &requested.group,
            version: &requested.version,
            kind: &requested.kind,
            plural: requested.plural.as_deref(),
            namespaced: None,
            external: &requested.external,
        };
        if family.is_empty()
            && let Some(found) = find_foreign_kind(project, tree, kind)?
        {
            return Request::for_foreign(requested, found);
        }
        if requested.external.path.is_some() {
            bail!(
                "kind `{}` has its types in this project: omit `--external-path`",
                requested.kind
            );
        }
        for version in std::iter::once(&requested.version).chain(&requested.spoke) {
            if !family.iter().any(|other| other.version == *version) {
                bail!(
                    "kind `{}` has no API types in {}: scaffold them with `rbuilder create api {}`{}",
                    requested.kind,
                    gvk::api_version(&requested.group, version),
                    naming_flags(&requested.group, version, &requested.kind),
                    foreign_kind::explain_unknown(tree, &requested.group, version, &requested.kind)?
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
            && requested.conversion
            && hub.version != requested.version
        {
            bail!(
                "the hub version of `{}` is `{}`: pass `--version {}`",
                requested.kind,
                hub.version,
                hub.version
            );
        }
        let own = family.iter().find(|other| other.version == requested.version);
        let resource = own.map(|own| Resource::clone(own)).unwrap_or(wanted);
        Ok(Request::with_webhooks(resource, requested))
    }

    fn for_foreign(requested: &WebhookRequest, resource: Resource) -> Result<Request> {
        if requested.conversion {
            bail!(
                "kind `{}` belongs to another project, and only that project can convert it: omit `--conversion`",
                requested.kind
            );
        }
        foreign_kind::check_is_written(&resource)?;
        Ok(Request::with_webhooks(resource, requested))
    }

    fn with_webhooks(mut resource: Resource, requested: &WebhookRequest) -> Request {
        let before = resource.webhooks.take().unwrap_or_default();
        let asked = Webhooks {
            webhook_version: "v1".into(),
            defaulting: requested.defaulting,
            validation: requested.validation,
            conversion: requested.conversion,
            spoke: requested.spoke.clone(),
            defaulting_path: requested.defaulting_path.clone().unwrap_or_default(),
            validation_path: requested.validation_path.clone().unwrap_or_default(),
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
