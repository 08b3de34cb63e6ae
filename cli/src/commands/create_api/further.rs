//! What a further version of a kind copies from the preceding one: names, scope, fields and sample.

use anyhow::Result;
use rbuilder_templates::{ApiContext, Rendered};
use serde_json::Value;

use super::request::Request;
use crate::commands::Outcome;
use crate::edit::version::{Definition, copy_sample};
use crate::plan::Plan;
use crate::project::{Project, Resource, names};
use crate::tree::Tree;

/// The parts copied from the preceding version.
#[derive(Debug, Default)]
pub(super) struct CopiedParts {
    /// Source of the types; `None` if they cannot be copied.
    types: Option<String>,
    /// Text of the sample, and the name of its object; `None` if it cannot be copied.
    sample: Option<(String, String)>,
    /// Arguments of `#[kube(…)]` that all versions must share. Only set if the types cannot be
    /// copied.
    pub(super) arguments: Vec<String>,
    plural: Option<String>,
    namespaced: Option<bool>,
    /// File with the types of the preceding version, and the reason why they cannot be copied.
    problem: Option<(String, String)>,
}

impl CopiedParts {
    /// Reads the preceding version.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Tree::read`].
    pub(super) fn read(tree: &Tree, before: &ApiContext, version: &str) -> Result<CopiedParts> {
        let path = types_path(before);
        let mut taken = CopiedParts::default();
        let text = tree.read(&path)?;
        let found = match &text {
            Some(text) => Definition::find(text, &before.kind, &before.version),
            None => Err("the file does not exist".to_owned()),
        };
        let problem = match &found {
            Ok(definition) => {
                taken.plural = definition.plural().map(str::to_owned);
                taken.namespaced = Some(definition.is_namespaced());
                match definition.copy(version) {
                    Ok(text) => {
                        taken.types = Some(text);
                        None
                    }
                    Err(reason) => {
                        taken.arguments = definition.names();
                        Some(reason)
                    }
                }
            }
            Err(reason) => {
                taken.arguments = names_in_crd(tree, &before.crd_file)?;
                Some(reason.clone())
            }
        };
        taken.problem = problem.map(|reason| (path, reason));
        if taken.types.is_some()
            && let Some(sample) = tree.read(&before.sample_file)?
        {
            let group = &before.qualified_group;
            let to = format!("{group}/{version}");
            taken.sample = copy_sample(&sample, &before.kind, &before.api_version, &to).ok();
        }
        Ok(taken)
    }

    /// Uses plural and scope of the preceding version unless the flags set them.
    pub(super) fn apply_defaults(&self, request: &mut Request, asked: &crate::flags::ApiFlags) {
        if let Some(plural) = &self.plural
            && asked.plural.is_none()
            && names::check_plural(plural).is_ok()
        {
            request.resource.plural.clone_from(plural);
        }
        if let Some(namespaced) = self.namespaced
            && asked.namespaced.is_none()
        {
            request.namespaced = namespaced;
            if let Some(api) = &mut request.resource.api {
                api.namespaced = namespaced;
            }
        }
    }

    /// Returns the name of the object in a copied sample.
    pub(super) fn sample_name(&self) -> Option<&str> {
        Some(&self.sample.as_ref()?.1)
    }

    /// Replaces the rendered templates with the copied parts.
    pub(super) fn replace(&self, files: &mut [Rendered], api: &ApiContext) {
        let types = types_path(api);
        for file in files {
            if file.path == types {
                file.text = self.types.clone().unwrap_or(std::mem::take(&mut file.text));
            } else if file.path == api.sample_file
                && let Some((text, _)) = &self.sample
            {
                file.text.clone_from(text);
            }
        }
    }

    /// Warns about parts that could not be copied.
    pub(super) fn warn(&self, api: &ApiContext, outcome: &mut Outcome) {
        let (Some((path, reason)), types) = (&self.problem, types_path(api)) else {
            return;
        };
        if !outcome.plan.changes().contains_key(&types) {
            return;
        }
        outcome.warn(
            &format!(
                "{types} does not have the fields of the previous version, because {path} cannot be copied: {reason}"
            ),
            "copy fields, printer columns, subresources and the spec of the sample by hand",
        );
    }
}

/// Returns whether all versions of a kind share a scaffolded file. This applies to the roles and
/// the script for Argo CD.
pub(in crate::commands) fn is_shared_by_versions(path: &str) -> bool {
    path.starts_with("config/rbac/") || path.starts_with("config/argocd/")
}

/// Marks existing files as kept, and returns the files to write. Keeps the roles and the script for
/// Argo CD, which all versions share, and the files of a version that PROJECT already lists.
pub(super) fn keep_existing_files(
    plan: &mut Plan,
    tree: &Tree,
    files: &[Rendered],
    api: &ApiContext,
    known: bool,
) -> Result<Vec<Rendered>> {
    let test = format!("tests/{}.rs", api.test_module);
    let own = [types_path(api), api.sample_file.clone(), test];
    let mut wanted = Vec::new();
    for file in files {
        let is_kept = is_shared_by_versions(&file.path) || (known && own.contains(&file.path));
        if is_kept && tree.read(&file.path)?.is_some() {
            plan.keep(&file.path);
        } else {
            wanted.push(file.clone());
        }
    }
    Ok(wanted)
}

/// Warns if the version has no conversion although other versions of the kind do.
pub(super) fn warn_unconverted(project: &Project, resource: &Resource, outcome: &mut Outcome) {
    let hubs = project.known.resources.iter().filter(|hub| {
        let webhooks = hub.webhooks.as_ref();
        hub.same_kind(resource)
            && hub.version != resource.version
            && webhooks
                .is_some_and(|webhooks| webhooks.conversion && !webhooks.spoke.contains(&resource.version))
    });
    for hub in hubs {
        outcome.warn(
            &format!(
                "version `{}` of `{}` has no conversion to the hub version `{}`",
                resource.version, hub.kind, hub.version
            ),
            &format!(
                "run `rbuilder create webhook {} --conversion --spoke {}`",
                hub.naming_flags(),
                resource.version
            ),
        );
    }
}

/// Returns the path of the API types.
pub(in crate::commands) fn types_path(api: &ApiContext) -> String {
    format!("src/{}/{}.rs", api.api_path.replace("::", "/"), api.module)
}

/// Returns the names of a kind in its generated CRD as arguments for `#[kube(…)]`.
fn names_in_crd(tree: &Tree, path: &str) -> Result<Vec<String>> {
    let Some(text) = tree.read(path)? else {
        return Ok(Vec::new());
    };
    let crd: Value = crate::yaml_stream::parse(&text).unwrap_or_default();
    let names = &crd["spec"]["names"];
    let list = |key: &str| names[key].as_array().cloned().unwrap_or_default();
    let mut arguments = Vec::new();
    let kind = names["kind"].as_str().unwrap_or_default();
    let singular = names["singular"].as_str();
    if let Some(singular) = singular.filter(|singular| *singular != kind.to_lowercase()) {
        arguments.push(format!("singular = {singular:?}"));
    }
    for (key, argument) in [("shortNames", "shortname"), ("categories", "category")] {
        let values = list(key);
        let values = values.iter().filter_map(Value::as_str);
        arguments.extend(values.map(|value| format!("{argument} = {value:?}")));
    }
    Ok(arguments)
}
