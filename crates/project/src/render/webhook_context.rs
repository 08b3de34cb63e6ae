//! The template context for a kind's webhooks, including code snippets that templates insert
//! verbatim.

use rbuilder_templates::{ApiContext, SpokeContext, WebhookContext};

use rbuilder_generator::MANAGER_NAMESPACE;

use super::places::ApiPlaces;
use crate::edit::rust;
use crate::labels::NAME_LABEL;
use crate::project::{Project, Resource, Webhooks};

/// The template context for a kind's webhooks.
pub fn webhook_context(
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

/// The marker of a webhook, formatted as by rustfmt.
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
    // Kinds of the same name in different groups would have webhooks of the same name.
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
    arguments.extend(restrictions(project, resource));
    let line = arguments.join(", ");
    if !line.contains('\n') && line.len() <= MARKER_WIDTH {
        return format!("#[webhook({line})]");
    }
    format!("#[webhook(\n    {}\n)]", arguments.join(",\n    "))
}

/// Restricts the objects for which a webhook is called. A webhook for a built-in kind must not be
/// called for objects of its own manager.
fn restrictions(project: &Project, resource: &Resource) -> Vec<String> {
    if !resource.is_namespaced() {
        // Cluster-scoped objects can't be told apart, so let requests through while the manager is
        // down.
        return match resource.core {
            true => vec!["failure_policy = \"ignore\"".to_owned()],
            false => Vec::new(),
        };
    }
    let mut restrictions = Vec::new();
    // The label excludes the manager's objects in any namespace, however they are deployed.
    // Otherwise, e.g. a webhook for Pods would keep its own manager from starting.
    if resource.core {
        restrictions.push(format!(
            "object_selector(match_expression(\n        key = \"{NAME_LABEL}\",\n        operator = \"NotIn\",\n        values = [\"{}\"]\n    ))",
            project.known.project_name
        ));
    }
    let is_secret = resource.core && resource.kind == "Secret";
    let conditions = match (project.known.namespaced, resource.core) {
        // A manager that only watches its own namespace must not be called for objects elsewhere.
        (true, _) => vec![
            Some((MANAGER_NAMESPACE, "request.namespace in ['system']")),
            // The webhook can't respond before the manager has written this Secret.
            is_secret.then_some((
                "exclude-certificate",
                "!request.name.endsWith('webhook-server-cert')",
            )),
        ],
        // Exclude objects created on behalf of the manager, e.g. Secrets with certificates.
        (false, true) => vec![Some((
            MANAGER_NAMESPACE,
            "!(request.namespace in ['system', 'kube-system'])",
        ))],
        (false, false) => Vec::new(),
    };
    restrictions.extend(conditions.into_iter().flatten().map(|(name, expression)| {
        format!("match_condition(\n        name = \"{name}\",\n        expression = \"{expression}\"\n    )")
    }));
    restrictions
}

/// rustfmt's `attr_fn_like_width`: longer attribute arguments are broken.
const MARKER_WIDTH: usize = 70;

/// Expression that builds the `Webhook`, formatted as by rustfmt.
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
