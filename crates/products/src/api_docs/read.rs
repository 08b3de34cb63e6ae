//! Builds a [`Reference`] from manifests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use rbuilder_generator::yaml;
use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::version;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::model::{Kind, Reference, Role, Version};
use rbuilder_yaml::{
    bounded, describe_failure_after, list_items, parse_printed, parse_with, split_documents,
};

/// Objects for a page, collected from manifests.
#[derive(Debug, Default)]
pub struct Manifests {
    /// Definitions by group and kind. The last definition of a kind wins.
    definitions: BTreeMap<(String, String), Spec>,
    roles: BTreeMap<(String, String, String), Role>,
    /// All other objects as API version, kind and text.
    objects: Vec<(String, String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Definition {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    group: String,
    names: Names,
    scope: String,
    versions: Vec<Version>,
    conversion: Conversion,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Names {
    kind: String,
    plural: String,
    short_names: Vec<String>,
    categories: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conversion {
    strategy: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Head {
    api_version: Option<String>,
    kind: Option<String>,
}

/// Output of `kubectl get --output yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    items: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
enum Listed {
    CustomResourceDefinition(Box<ListedDefinition>),
    Role(Role),
    ClusterRole(Role),
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListedDefinition {
    api_version: String,
    spec: Spec,
}

impl Manifests {
    /// Adds the objects in a file with any number of YAML documents.
    ///
    /// # Errors
    /// Fails with the path and the document if a document isn't valid YAML, or if a definition
    /// isn't `apiextensions.k8s.io/v1`.
    pub fn add(&mut self, path: &str, text: &str) -> Result<()> {
        for (line, document) in split_documents(text) {
            self.add_document(document)
                .map_err(|error| describe_document(error, path, line, document))?;
        }
        Ok(())
    }

    /// Adds the samples in a file. Definitions and roles in it are ignored, since they don't belong
    /// to the project.
    ///
    /// # Errors
    /// Fails with the path and the document if a document isn't valid YAML.
    pub fn add_samples(&mut self, path: &str, text: &str) -> Result<()> {
        let is_definition = |document: &str| {
            let head = scan_head(document).or_else(|| parse(document).ok());
            head.and_then(|head: Head| head.kind)
                .is_some_and(|kind| kind == "CustomResourceDefinition")
        };
        let mut own = Manifests::default();
        for (line, document) in split_documents(text) {
            if !is_definition(document) {
                own.add_document(document)
                    .map_err(|error| describe_document(error, path, line, document))?;
            }
        }
        self.objects.extend(own.objects);
        Ok(())
    }

    fn add_document(&mut self, text: &str) -> Result<()> {
        let head = match scan_head(text) {
            Some(head) => head,
            // An empty document parses as `null`, hence the `Option`.
            None => parse::<Option<Head>>(text)?.unwrap_or_default(),
        };
        let (Some(api_version), Some(kind)) = (head.api_version, head.kind) else {
            return Ok(());
        };
        match (gvk::group_of(&api_version), kind.as_str()) {
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                check_definition_version(&api_version)?;
                self.add_definition(parse_deep(text)?);
            }
            ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => self.add_role(parse(text)?),
            ("", "List") => {
                if self.add_list(parse_deep(text)?)? {
                    self.add_listed_objects(text)?;
                }
            }
            (_, kind) if kind.ends_with("List") => self.add_listed_objects(text)?,
            _ => self.objects.push((api_version, kind, text.trim().to_owned())),
        }
        Ok(())
    }

    /// Adds the definitions and roles in a list. Returns whether there are any other objects.
    fn add_list(&mut self, list: List) -> Result<bool> {
        let mut has_others = false;
        for item in list.items {
            match item {
                Listed::CustomResourceDefinition(listed) => {
                    check_definition_version(&listed.api_version)?;
                    self.add_definition(Definition { spec: listed.spec });
                }
                Listed::Role(role) => self.add_role(Role {
                    kind: "Role".into(),
                    ..role
                }),
                Listed::ClusterRole(role) => self.add_role(Role {
                    kind: "ClusterRole".into(),
                    ..role
                }),
                Listed::Other => has_others = true,
            }
        }
        Ok(has_others)
    }

    /// Adds the objects in a list as if they were in separate files. Anything but a list counts as
    /// a single object.
    fn add_listed_objects(&mut self, text: &str) -> Result<()> {
        for object in list_items(parse_deep(text)?) {
            let (Some(api_version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str())
            else {
                continue;
            };
            let printed = yaml::to_string(&object);
            let printed = printed.strip_prefix("---\n").unwrap_or(&printed);
            self.objects
                .push((api_version.to_owned(), kind.to_owned(), printed.trim().to_owned()));
        }
        Ok(())
    }

    fn add_definition(&mut self, definition: Definition) {
        let spec = definition.spec;
        self.definitions
            .insert((spec.group.clone(), spec.names.kind.clone()), spec);
    }

    fn add_role(&mut self, role: Role) {
        let metadata = &role.metadata;
        let key = (
            role.kind.clone(),
            metadata.namespace.clone(),
            metadata.name.clone(),
        );
        self.roles.insert(key, role);
    }

    /// Builds the page content. Objects of undefined kinds are dropped.
    pub fn into_reference(self, title: String) -> Reference {
        let mut names = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for (_, kind) in self.definitions.keys() {
            // Anchors are in lower case, so kinds may clash even if their case differs.
            if !names.insert(kind.to_lowercase()) {
                shared.insert(kind.to_lowercase());
            }
        }
        let objects = self.objects;
        let kinds = self.definitions.into_values().map(|spec| {
            let mut kind = make_kind(spec);
            if shared.contains(&kind.anchor) {
                kind.anchor = format!("{}.{}", kind.anchor, kind.group);
            }
            let is_of_kind =
                |api_version: &str, name: &str| gvk::group_of(api_version) == kind.group && name == kind.name;
            let samples = objects
                .iter()
                .filter(|(api_version, name, _)| is_of_kind(api_version, name));
            kind.samples = samples.map(|(_, _, text)| text.clone()).collect();
            kind
        });
        Reference {
            title,
            kinds: kinds.collect(),
            roles: self.roles.into_values().collect(),
        }
    }
}

/// Adds the location of a document to its error. `line` is the first line of the document.
fn describe_document(error: anyhow::Error, path: &str, line: usize, document: &str) -> anyhow::Error {
    match error.downcast_ref() {
        Some(error) => describe_failure_after(line as u64 - 1, path, document, error),
        None => error.context(format!("cannot read the object at {path}:{line}")),
    }
}

fn make_kind(spec: Spec) -> Kind {
    let mut versions = spec.versions;
    versions.sort_by(|one, other| version::compare(&other.name, &one.name));
    Kind {
        anchor: spec.names.kind.to_lowercase(),
        group: spec.group,
        name: spec.names.kind,
        plural: spec.names.plural,
        short_names: spec.names.short_names,
        categories: spec.names.categories,
        is_namespaced: spec.scope == "Namespaced",
        is_converted: spec.conversion.strategy == "Webhook",
        versions,
        samples: Vec::new(),
    }
}

fn check_definition_version(api_version: &str) -> Result<()> {
    if api_version != "apiextensions.k8s.io/v1" {
        bail!("expected a definition of `apiextensions.k8s.io/v1`, found `{api_version}`");
    }
    Ok(())
}

/// Maximum nesting of a manifest. Each field takes two levels, and some published definitions have
/// fields 38 levels deep, which exceeds the parser's default.
const MOST_DEPTH: usize = 128;

/// Stack size in bytes for reading deeply nested objects. A schema takes about 20 KiB per level in
/// debug builds, which is too much for the main thread on some systems.
const STACK: usize = 32 << 20;

fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    // If a field has the wrong type, the general parser reports where.
    if let Some(read) = parse_printed(text).and_then(|value| serde_json::from_value(value).ok()) {
        return Ok(read);
    }
    let mut options = bounded(text);
    if let Some(budget) = &mut options.budget {
        budget.max_depth = MOST_DEPTH;
        budget.flow_nesting_limit = MOST_DEPTH;
    }
    Ok(parse_with(text, options)?)
}

/// Parses a possibly deeply nested object on a thread with a larger stack.
fn parse_deep<T: DeserializeOwned + Send>(text: &str) -> Result<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let thread = builder
            .spawn_scoped(scope, || parse(text))
            .context("cannot start a thread")?;
        thread.join().unwrap_or_else(|_| bail!("reading it failed"))
    })
}

/// Reads the top-level keys of an object in block style without parsing the rest.
fn scan_head(text: &str) -> Option<Head> {
    let value_of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let value = line.split(" #").next().unwrap_or(line).trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-');
        (!value.is_empty() && value.chars().all(is_plain)).then(|| value.to_owned())
    };
    Some(Head {
        api_version: Some(value_of("apiVersion: ")?),
        kind: Some(value_of("kind: ")?),
    })
}
