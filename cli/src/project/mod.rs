//! The PROJECT file: what a project is, and which kinds it has.
//!
//! Version 3 of kubebuilder's format with keys of our own: a tool that knows kubebuilder's keeps working. What we
//! do not know is kept as it was; only the keys that a command changes are touched.

pub mod names;

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::hash::fnv1a_64;

/// Name of the file.
pub const FILE: &str = "PROJECT";

/// Value of `layout`: who wrote the rest of the tree.
const LAYOUT: &str = "rust.rbuilder.dev/v1";

/// A project.
#[derive(Clone, Debug)]
pub struct Project {
    /// What rbuilder knows of it.
    pub known: Known,
    /// Everything that the file says, known or not.
    all: Map<String, Value>,
}

/// The keys that rbuilder reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Known {
    /// Version of the format: `3`.
    pub version: String,
    /// Domain that API groups end in.
    #[serde(default)]
    pub domain: String,
    /// Name of the project.
    pub project_name: String,
    /// Whether APIs live in folders by group.
    #[serde(default)]
    pub multigroup: bool,
    /// Whether the manager watches one namespace only.
    #[serde(default)]
    pub namespaced: bool,
    /// One entry for each kind and version.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// What kubebuilder has no key for.
    #[serde(default)]
    pub rbuilder: Own,
}

/// The keys under `rbuilder`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Own {
    /// Copyright holder.
    #[serde(default)]
    pub owner: String,
    /// `apache2`, `mit` or `none`.
    #[serde(default)]
    pub license: String,
    /// Hash of each scaffolded file as it was written, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// A kind in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// First part of the API group.
    #[serde(default)]
    pub group: String,
    /// Rest of the API group.
    #[serde(default)]
    pub domain: String,
    /// `v1alpha1`.
    pub version: String,
    /// `CronJob`.
    pub kind: String,
    /// `cronjobs`; kubebuilder leaves out the regular ones.
    #[serde(default)]
    pub plural: String,
    /// Present when the types are in this project.
    #[serde(default)]
    pub api: Option<Api>,
    /// Whether a controller is.
    #[serde(default)]
    pub controller: bool,
    /// Present when webhooks are.
    #[serde(default)]
    pub webhooks: Option<Webhooks>,
}

/// What the API server asks about the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Version of the configurations' format: `v1`.
    #[serde(default)]
    pub webhook_version: String,
    /// Whether there is a defaulter.
    #[serde(default)]
    pub defaulting: bool,
    /// Whether there is a validator.
    #[serde(default)]
    pub validation: bool,
    /// Whether other versions are converted through this one.
    #[serde(default)]
    pub conversion: bool,
    /// Those versions.
    #[serde(default)]
    pub spoke: Vec<String>,
}

impl Webhooks {
    /// What either asks for.
    #[must_use]
    pub fn with(mut self, other: Webhooks) -> Webhooks {
        self.webhook_version = other.webhook_version;
        self.defaulting |= other.defaulting;
        self.validation |= other.validation;
        self.conversion |= other.conversion;
        let new = other
            .spoke
            .into_iter()
            .filter(|version| !self.spoke.contains(version));
        self.spoke.extend(new.collect::<Vec<_>>());
        self
    }
}

/// How the kind is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// Version of the CRD format: `v1`.
    #[serde(default)]
    pub crd_version: String,
    /// Whether the kind is namespaced.
    #[serde(default)]
    pub namespaced: bool,
}

impl Resource {
    /// Whether two entries speak of one kind, in whatever version.
    pub fn same_kind(&self, other: &Resource) -> bool {
        (&self.group, &self.domain, &self.kind) == (&other.group, &other.domain, &other.kind)
    }

    fn same(&self, other: &Resource) -> bool {
        self.same_kind(other) && self.version == other.version
    }
}

impl Project {
    /// A new project without kinds.
    pub fn new(name: &str, domain: &str) -> Project {
        let known = Known {
            version: "3".into(),
            domain: domain.into(),
            project_name: name.into(),
            ..Known::default()
        };
        let mut all = Map::new();
        all.insert("cliVersion".into(), json!(env!("CARGO_PKG_VERSION")));
        all.insert("layout".into(), json!([LAYOUT]));
        Project { known, all }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Says the line and column of what is not understood.
    pub fn parse(text: &str) -> Result<Project> {
        let problem = |error: serde_saphyr::Error| anyhow!("{FILE} cannot be read: {error}");
        let known: Known = serde_saphyr::from_str(text).map_err(problem)?;
        let all: Map<String, Value> = serde_saphyr::from_str(text).map_err(problem)?;
        if known.version != "3" {
            bail!(
                "{FILE} has version `{}`, and this rbuilder reads version `3`",
                known.version
            );
        }
        let project = Project { known, all };
        // What other tools have laid out is for them to name.
        if project.foreign_layout().is_none() {
            project.check_names()?;
        }
        Ok(project)
    }

    /// Checks the names that become parts of paths and manifests.
    fn check_names(&self) -> Result<()> {
        let Known {
            project_name,
            resources,
            ..
        } = &self.known;
        let of_resources = resources.iter().flat_map(|resource| {
            [
                ("group", resource.group.as_str()),
                ("version", &resource.version),
                ("kind", &resource.kind),
                ("plural", &resource.plural),
            ]
        });
        for (key, name) in of_resources.chain([("projectName", project_name.as_str())]) {
            if !name.is_empty() && !names::is_recorded_name(key, name) {
                bail!("{FILE} has the {key} `{name}`, which is no name that this command gives");
            }
        }
        Ok(())
    }

    /// Who laid the project out, when that was another tool.
    pub fn foreign_layout(&self) -> Option<String> {
        let layouts = match self.all.get("layout")? {
            Value::Array(layouts) => layouts.clone(),
            layout => vec![layout.clone()],
        };
        let names: Vec<&str> = layouts.iter().filter_map(Value::as_str).collect();
        (!names.contains(&LAYOUT)).then(|| names.join(", "))
    }

    /// Adds a resource, or to what is known of it.
    pub fn add_resource(&mut self, resource: Resource) {
        match self
            .known
            .resources
            .iter_mut()
            .find(|known| known.same(&resource))
        {
            Some(known) => {
                known.controller |= resource.controller;
                if let Some(webhooks) = resource.webhooks {
                    known.webhooks = Some(known.webhooks.take().unwrap_or_default().with(webhooks));
                }
                known.api = resource.api.or(known.api.take());
                known.plural = resource.plural;
            }
            None => self.known.resources.push(resource),
        }
    }

    /// Whether a scaffolded file was recorded with this text: what the command would write is what it wrote.
    pub fn recorded(&self, path: &str, text: &str) -> bool {
        self.known
            .rbuilder
            .files
            .get(path)
            .is_some_and(|hash| *hash == fnv1a_64(text.as_bytes()))
    }

    /// Remembers a scaffolded file.
    pub fn record(&mut self, path: &str, text: &str) {
        self.known
            .rbuilder
            .files
            .insert(path.to_owned(), fnv1a_64(text.as_bytes()));
    }

    /// The text of the file.
    pub fn print(&self) -> String {
        let known = &self.known;
        let mut all = self.all.clone();
        all.insert("version".into(), json!(known.version));
        set(&mut all, "domain", json!(known.domain));
        all.insert("projectName".into(), json!(known.project_name));
        set(&mut all, "multigroup", json!(known.multigroup));
        set(&mut all, "namespaced", json!(known.namespaced));
        let written = all
            .get("resources")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let resources: Vec<Value> = known
            .resources
            .iter()
            .enumerate()
            // Resources are only ever added at the end, so places agree.
            .map(|(place, resource)| print_resource(resource, written.get(place)))
            .collect();
        set(&mut all, "resources", Value::Array(resources));
        let mut own = all
            .get("rbuilder")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        set(&mut own, "owner", json!(known.rbuilder.owner));
        set(&mut own, "license", json!(known.rbuilder.license));
        set(&mut own, "files", json!(known.rbuilder.files));
        set(&mut all, "rbuilder", Value::Object(own));
        let text = rbuilder_generator::yaml::to_string(&Value::Object(all));
        let body = text.strip_prefix("---\n").unwrap_or(&text);
        format!(
            "# Written by rbuilder, which keeps what other tools add. Not meant to be edited by hand.\n{body}"
        )
    }
}

fn print_resource(resource: &Resource, written: Option<&Value>) -> Value {
    let mut all = written.and_then(Value::as_object).cloned().unwrap_or_default();
    set(&mut all, "group", json!(resource.group));
    set(&mut all, "domain", json!(resource.domain));
    all.insert("version".into(), json!(resource.version));
    all.insert("kind".into(), json!(resource.kind));
    set(&mut all, "plural", json!(resource.plural));
    if let Some(api) = &resource.api {
        let mut inner = all
            .get("api")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        set(&mut inner, "crdVersion", json!(api.crd_version));
        set(&mut inner, "namespaced", json!(api.namespaced));
        all.insert("api".into(), Value::Object(inner));
    }
    set(&mut all, "controller", json!(resource.controller));
    if let Some(webhooks) = &resource.webhooks {
        let mut inner = all
            .get("webhooks")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        set(&mut inner, "webhookVersion", json!(webhooks.webhook_version));
        set(&mut inner, "defaulting", json!(webhooks.defaulting));
        set(&mut inner, "validation", json!(webhooks.validation));
        set(&mut inner, "conversion", json!(webhooks.conversion));
        set(&mut inner, "spoke", json!(webhooks.spoke));
        all.insert("webhooks".into(), Value::Object(inner));
    }
    Value::Object(all)
}

/// What is empty or false is left out, as kubebuilder does.
fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Bool(set) => !set,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        Value::Null | Value::Number(_) => false,
    };
    if empty {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = "\
# Code generated by tool. DO NOT EDIT.
cliVersion: 4.15.0
domain: example.com
layout:
- go.kubebuilder.io/v4
plugins:
  helm.kubebuilder.io/v2-alpha:
    manifests: dist/install.yaml
projectName: shop
repo: example.com/shop
resources:
- api:
    crdVersion: v1
    namespaced: true
    ssa: true
  controllers:
  - name: cup
  domain: example.com
  group: crew
  kind: Cup
  path: example.com/shop/api/v1
  version: v1
version: \"3\"
";

    #[test]
    fn what_we_do_not_know_is_kept() {
        let mut project = Project::parse(THEIRS).expect("it is well formed");
        let body = |text: &str| text.split_once('\n').map(|(_, body)| body.to_owned());
        assert_eq!(body(&project.print()), body(THEIRS));

        project.add_resource(Resource {
            version: "v1".into(),
            kind: "Mug".into(),
            ..Resource::default()
        });
        let text = project.print();
        let again = Project::parse(&text).expect("it reads what it writes");
        assert_eq!(again.known, project.known);
        assert_eq!(again.print(), text);
        for kept in [
            "ssa: true",
            "- name: cup",
            "repo: example.com/shop",
            "manifests: dist/install.yaml",
        ] {
            assert!(text.contains(kept), "{kept} is lost in\n{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            ("version: \"3\"\nprojectName: [a]\n", "2"),
            ("version: \"3\"\n", "projectName"),
            ("version: \"2\"\nprojectName: a\n", "reads version `3`"),
            (
                "version: \"3\"\nprojectName: a\nresources:\n- kind: A\n  version: v1\n  controller: often\n",
                "6",
            ),
            ("a: [", "PROJECT cannot be read"),
            ("version: \"3\"\nversion: \"3\"\nprojectName: a\n", "duplicate"),
        ] {
            let error = Project::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
