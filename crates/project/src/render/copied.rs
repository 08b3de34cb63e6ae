//! The parts of a version that a further version copies: names, scope, fields and sample.

use anyhow::Result;
use rbuilder_kubernetes::gvk;
use rbuilder_templates::{ApiContext, Rendered};
use serde_json::Value;

use super::types_path;
use crate::edit::dependency::crate_names;
use crate::edit::version::{Definition, copy_sample};

/// The parts copied from the preceding version.
#[derive(Debug, Default)]
pub struct CopiedParts {
    /// Source of the types, or `None` if it can't be copied.
    types: Option<String>,
    /// Text of the sample and name of its object, or `None` if it can't be copied.
    sample: Option<(String, String)>,
    /// Arguments of `#[kube(…)]` that all versions must share. Only set if the types can't be
    /// copied.
    arguments: Vec<String>,
    /// The plural, if it is irregular.
    pub plural: Option<String>,
    /// Whether objects are namespaced, if known.
    pub namespaced: Option<bool>,
    /// File with the types of the preceding version, and why they can't be copied.
    pub problem: Option<(String, String)>,
}

impl CopiedParts {
    /// Reads the preceding version. `read` returns the text of a file.
    ///
    /// # Errors
    /// Fails for the same reasons as `read`.
    pub fn read(
        read: impl Fn(&str) -> Result<Option<String>>,
        before: &ApiContext,
        version: &str,
    ) -> Result<CopiedParts> {
        let path = types_path(before);
        let mut taken = CopiedParts::default();
        let text = read(&path)?;
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
                taken.arguments = names_in_crd(read(&before.crd_file)?);
                Some(reason.clone())
            }
        };
        taken.problem = problem.map(|reason| (path, reason));
        if taken.types.is_some()
            && let Some(sample) = read(&before.sample_file)?
        {
            let to = gvk::api_version(&before.qualified_group, version);
            taken.sample = copy_sample(&sample, &before.kind, &before.api_version, &to).ok();
        }
        Ok(taken)
    }

    /// Adds values from the preceding version to a context. `manifest` is the package's
    /// `Cargo.toml`.
    pub fn complete(&self, api: &mut ApiContext, manifest: &str) {
        api.kube_arguments.clone_from(&self.arguments);
        let mut crates = crate_names(manifest, &["dependencies", "dev-dependencies"]);
        crates.extend(["core", "std"].map(str::to_owned));
        // A path that starts with a crate's name would refer to the crate instead of our module.
        if crates.contains(&api.module) {
            api.reexport = format!("self::{}", api.module);
        }
        if let Some((_, name)) = &self.sample {
            api.sample_name.clone_from(name);
        }
    }

    /// Replaces rendered templates with the copied parts.
    pub fn replace(&self, files: &mut [Rendered], api: &ApiContext) {
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
}

fn names_in_crd(text: Option<String>) -> Vec<String> {
    let crd = rbuilder_yaml::parse_value(&text.unwrap_or_default()).unwrap_or_default();
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
    arguments
}
