//! The lines that a kind's parts need in project-wide files: list entries, declarations and calls.
//!
//! Users edit these files as well, so lines are added and removed based on syntax. A scaffold
//! consists of whole files and of such lines.
//!
//! `create` adds these lines and `delete` removes them. Manifests written by `init` need none; they
//! are listed in the template of their kustomization (`kustomization.yaml.tera`).

use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_templates::{ApiContext, Rendered, WebhookContext};

use super::context::crate_ident;
use super::{ApiPlaces, BINDING, MANAGER_LIST, WEBHOOK_LIST, image_component, reexported_names};
use crate::edit::dependency::{Requirement, add_dependency, remove_dependency};
use crate::edit::kustomization::webhooks::{enable_webhooks, remove_webhooks};
use crate::edit::kustomization::{self, COMPONENTS};
use crate::edit::{Obstacle, rust};
use crate::overlay::DEPLOYMENT;
use crate::project::{Project, Resource};

const CONFIGURATIONS: &str = "manifests.yaml";

const POLICIES: &str = "config/network-policy/kustomization.yaml";

/// A line in a project-wide file. Several kinds may need the same line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file.
    pub path: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Module {
        name: String,
        /// Whether the module is visible to other modules.
        is_public: bool,
    },
    /// Declares a kind's module, and re-exports its types from the version's module.
    Kind {
        module: String,
        is_public: bool,
        /// Path in the re-export, prefixed with `self::` if a crate has the same name.
        reexport: String,
        names: String,
    },
    /// Registers a controller or webhook with the manager.
    Registration {
        /// Method of the manager, and name of the module.
        method: &'static str,
        /// Call that returns the controller or webhook.
        call: String,
    },
    Webhooks {
        library: String,
    },
    ServedWebhooks,
    /// Marks a kind's type as converted by a webhook.
    Conversion {
        kind: String,
    },
    /// An entry of `resources` in a kustomization.
    Resource(String),
    /// An entry of `components` in a kustomization.
    Component(String),
    Dependency(Requirement),
}

impl Line {
    fn new(path: impl Into<String>, what: What) -> Line {
        Line {
            path: path.into(),
            what,
        }
    }

    /// Adds the line to `text`. No-op if it is there already.
    ///
    /// # Errors
    /// Fails with the reason if `text` has an unsupported form.
    pub fn add_to(&self, text: &str) -> Result<String, Obstacle> {
        match &self.what {
            What::Module { name, is_public } => rust::add_module(text, name, *is_public),
            What::Kind {
                module,
                is_public,
                reexport,
                names,
            } => {
                let text = rust::add_module(text, module, *is_public)?;
                rust::add_reexport(&text, reexport, names)
            }
            What::Registration { method, call } => rust::add_registration(text, method, call),
            What::Webhooks { .. } => rust::register_webhooks(text),
            What::ServedWebhooks => enable_webhooks(text),
            What::Conversion { kind } => rust::add_conversion(text, kind),
            What::Resource(entry) => Ok(kustomization::add_resource(text, entry)?),
            What::Component(entry) => Ok(kustomization::enable(text, COMPONENTS, entry)?),
            What::Dependency(requirement) => add_dependency(text, requirement),
        }
    }

    /// Whether [`add_all`](Self::add_all) supports the line.
    pub(crate) fn is_in_a_list(&self) -> bool {
        matches!(
            self.what,
            What::Module { .. } | What::Kind { .. } | What::Registration { .. } | What::Resource(_)
        )
    }

    /// Adds lines of lists to `text`, which has the same result as adding them one by one. Each edit
    /// parses the file, so the number of edits must not depend on the number of lines.
    ///
    /// # Errors
    /// Fails with the reason if `text` has an unsupported form.
    pub(crate) fn add_all(lines: &[Line], text: &str) -> Result<String, Obstacle> {
        let (mut modules, mut reexports, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in lines {
            match &line.what {
                What::Module { name, is_public } => modules.push((name.as_str(), *is_public)),
                What::Kind {
                    module,
                    is_public,
                    reexport,
                    names,
                } => {
                    modules.push((module.as_str(), *is_public));
                    reexports.push((reexport.as_str(), names.as_str()));
                }
                What::Registration { method, call } => calls.entry(method).or_default().push(call),
                What::Resource(entry) => entries.push(entry.as_str()),
                _ => return Err(format!("`{}` is not a line of a list", line.shown()).into()),
            }
        }
        let mut edited = text.to_owned();
        if !modules.is_empty() {
            edited = rust::add_modules(&edited, &modules)?;
        }
        if !reexports.is_empty() {
            edited = rust::add_reexports(&edited, &reexports)?;
        }
        for (method, calls) in calls {
            edited = rust::add_registrations(&edited, method, &calls)?;
        }
        if !entries.is_empty() {
            edited = kustomization::add_resources(&edited, &entries)?;
        }
        Ok(edited)
    }

    /// Removes the line from `text`. No-op if it is missing.
    ///
    /// # Errors
    /// Fails with the lines to remove by hand if they have been rewritten.
    pub fn remove_from(&self, text: &str) -> Result<String, Obstacle> {
        let unlisted = |entry: &str| {
            let entry = entry.to_owned();
            move |reason| Obstacle::unlisted(reason, &entry)
        };
        match &self.what {
            What::Module { name, .. } => rust::remove_module(text, name),
            What::Kind {
                module,
                reexport,
                names,
                ..
            } => {
                let text = rust::remove_reexport(text, reexport, names)?;
                rust::remove_module(&text, module)
            }
            What::Registration { method, call } => rust::remove_registration(text, method, call),
            What::Webhooks { .. } => rust::unregister_webhooks(text),
            What::ServedWebhooks => remove_webhooks(text),
            What::Conversion { .. } => rust::remove_conversion(text),
            What::Resource(entry) => kustomization::remove_resource(text, entry).map_err(unlisted(entry)),
            What::Component(entry) => kustomization::remove_component(text, entry).map_err(unlisted(entry)),
            What::Dependency(requirement) => remove_dependency(text, requirement),
        }
    }

    /// File of a declared module that may contain further modules. `None` for other lines.
    pub fn inner_module(&self) -> Option<String> {
        let What::Module { name, .. } = &self.what else {
            return None;
        };
        let folder = self.path.strip_suffix("/mod.rs").unwrap_or("src");
        Some(format!("{folder}/{name}/mod.rs"))
    }

    /// The line as people write it.
    pub fn shown(&self) -> String {
        let shown_module = |name: &str, is_public: bool| match is_public {
            true => format!("pub mod {name};"),
            false => format!("mod {name};"),
        };
        match &self.what {
            What::Module { name, is_public } => shown_module(name, *is_public),
            What::Kind {
                module,
                is_public,
                reexport,
                names,
            } => format!(
                "{}\npub use {reexport}::{names};",
                shown_module(module, *is_public)
            ),
            What::Registration { method, call } => format!("manager.{method}({call})"),
            What::Webhooks { library } => format!("let manager = {library}::webhook::register(manager);"),
            What::ServedWebhooks => {
                "components:\n- ../webhook\n\ntransformers:\n- ../webhook/names".to_owned()
            }
            What::Conversion { .. } => "#[crd(conversion)]".to_owned(),
            What::Resource(entry) => format!("resources:\n- {entry}"),
            What::Component(entry) => format!("components:\n- {entry}"),
            What::Dependency(requirement) => format!("[dependencies]\n{}", requirement.line()),
        }
    }
}

/// The lines for the parts of a kind that are in `files`.
pub fn api_lines(api: &ApiContext, files: &[Rendered]) -> Vec<Line> {
    let mut lines = Vec::new();
    if api.resource {
        lines.extend(module_lines(&api.api_path));
        let what = What::Kind {
            module: api.module.clone(),
            is_public: api.imported,
            reexport: api.reexport.clone(),
            names: reexported_names(api).to_owned(),
        };
        let version = format!("src/{}/mod.rs", api.api_path.replace("::", "/"));
        lines.push(Line::new(version, what));
        for file in files {
            if let Some((folder @ ("config/samples" | "config/rbac"), name)) = file.path.rsplit_once('/') {
                let list = format!("{folder}/kustomization.yaml");
                lines.push(Line::new(list, What::Resource(name.to_owned())));
            }
        }
        lines.push(Line::new(DEPLOYMENT, What::Resource("../crd".to_owned())));
    } else if files.iter().any(|file| file.path == BINDING)
        && let Some((folder, name)) = BINDING.rsplit_once('/')
    {
        let list = format!("{folder}/kustomization.yaml");
        lines.push(Line::new(list, What::Resource(name.to_owned())));
    }
    if let Some(component) = files.iter().find_map(|file| image_component(&file.path)) {
        lines.push(Line::new(MANAGER_LIST, What::Component(component.to_owned())));
    }
    if api.controller {
        lines.extend(module_lines(&api.controller_path));
        lines.push(registration("controller", &api.controller_path));
    }
    lines
}

/// The dependency on the crate that defines an external kind's types, if a command added it.
///
/// # Errors
/// Fails if PROJECT contains an invalid crate.
pub fn crate_line(resource: &Resource) -> Result<Option<Line>> {
    if resource.module.is_empty() {
        return Ok(None);
    }
    let requirement = Requirement::parse(&resource.module)?;
    Ok(Some(Line::new("Cargo.toml", What::Dependency(requirement))))
}

/// The lines for a kind's webhooks. `types` is the file with the kind's types.
pub fn webhook_lines(
    project: &Project,
    (api, webhook): (&ApiContext, &WebhookContext),
    types: &str,
) -> Vec<Line> {
    let module = |name: &str, is_public| What::Module {
        name: name.to_owned(),
        is_public,
    };
    let library = crate_ident(project);
    let mut lines = vec![
        Line::new("src/lib.rs", module("webhook", true)),
        Line::new(project.main_file(), What::Webhooks { library }),
    ];
    lines.extend(module_lines(&webhook.path));
    lines.push(registration("webhook", &webhook.path));
    for spoke in &webhook.spokes {
        let version = format!("src/{}/mod.rs", spoke.api_path.replace("::", "/"));
        lines.push(Line::new(
            version,
            module(&format!("{}_conversion", api.module), false),
        ));
    }
    if !webhook.spokes.is_empty() {
        let role = format!("{}_conversion_role.yaml", api.role_prefix.replace('-', "_"));
        lines.push(Line::new(WEBHOOK_LIST, What::Resource(role)));
        let kind = api.kind.clone();
        lines.push(Line::new(types, What::Conversion { kind }));
    }
    let policy = "allow-webhook-traffic.yaml".to_owned();
    lines.push(Line::new(POLICIES, What::Resource(policy)));
    lines.push(Line::new(DEPLOYMENT, What::ServedWebhooks));
    lines
}

/// The lines for a kind's generated manifests, as added by `rbuilder manifests`.
pub fn generated_lines(project: &Project, resource: &Resource) -> Vec<Line> {
    let crd = ApiPlaces::of(project, resource).context().crd_file;
    let crd = crd.strip_prefix("config/crd/").filter(|_| resource.api.is_some());
    let list = "config/crd/kustomization.yaml";
    let crd = crd.map(|entry| Line::new(list, What::Resource(entry.to_owned())));
    let webhooks = resource.webhooks.as_ref();
    let is_admitted = webhooks.is_some_and(|webhooks| webhooks.defaulting || webhooks.validation);
    let configurations = Line::new(WEBHOOK_LIST, What::Resource(CONFIGURATIONS.to_owned()));
    crd.into_iter()
        .chain(is_admitted.then_some(configurations))
        .collect()
}

fn module_lines(path: &str) -> Vec<Line> {
    let parts: Vec<&str> = path.split("::").collect();
    let declaration = |end: usize| {
        let above = format!("src/{}/mod.rs", parts[..end].join("/"));
        let name = parts[end].to_owned();
        Line::new(
            above,
            What::Module {
                name,
                is_public: true,
            },
        )
    };
    (1..parts.len()).map(declaration).collect()
}

fn registration(method: &'static str, path: &str) -> Line {
    let (_, below) = path.split_once("::").unwrap_or_default();
    let call = format!("{below}::{method}()");
    Line::new(
        format!("src/{method}/mod.rs"),
        What::Registration { method, call },
    )
}
