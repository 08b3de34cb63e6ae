//! The content of a page: kinds with their versions, samples, and roles.

use rbuilder_schema::Schema;
use serde::Deserialize;

/// The content of a page.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    /// The heading of the page.
    pub(crate) title: String,
    /// The kinds, by group and name.
    pub(crate) kinds: Vec<Kind>,
    /// The roles of the operator, by kind and name.
    pub(crate) roles: Vec<Role>,
}

/// A kind.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The first part of its anchors: the name in lower case, and the group where another kind of the page has that name.
    pub(crate) anchor: String,
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) plural: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    /// True if a webhook converts between versions.
    pub(crate) is_converted: bool,
    /// The versions, the one that clients prefer first.
    pub(crate) versions: Vec<Version>,
    /// Objects of the kind, in YAML.
    pub(crate) samples: Vec<String>,
}

impl Kind {
    /// Returns the scope in words.
    pub(crate) fn scope(&self) -> &'static str {
        match self.is_namespaced {
            true => "namespaced",
            false => "cluster",
        }
    }

    /// Returns the version that stands for the kind: the one that clients prefer.
    pub(crate) fn preferred(&self) -> Option<&Version> {
        let is_served = |version: &&Version| version.served;
        self.versions
            .iter()
            .find(is_served)
            .or_else(|| self.versions.first())
    }
}

/// A version of a kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    /// The warning that the API server sends to users of a deprecated version; nothing for its usual one.
    pub(crate) deprecation_warning: Option<String>,
    schema: Validation,
    pub(crate) subresources: Subresources,
    #[serde(rename = "additionalPrinterColumns")]
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

impl Version {
    /// Returns the schema of whole objects.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema.schema
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Schema,
}

/// The subresources of a version.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<serde_json::Value>,
    pub(crate) scale: Option<Scale>,
}

/// The fields that `kubectl scale` and autoscalers use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
}

/// A column of `kubectl get`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) column_type: String,
    pub(crate) json_path: String,
    pub(crate) description: String,
    /// Above 0, the column is shown with `-o wide` only.
    pub(crate) priority: i64,
}

/// A field that field selectors can name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

/// A Role or a ClusterRole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    /// `Role` or `ClusterRole`.
    pub(crate) kind: String,
    pub(crate) metadata: RoleMetadata,
    pub(crate) rules: Vec<Rule>,
}

impl Role {
    /// Returns the words for the namespace that the role is for; none for a ClusterRole.
    pub(super) fn scope(&self) -> String {
        match (self.kind.as_str(), self.metadata.namespace.as_str()) {
            ("ClusterRole", _) => String::new(),
            // kustomize puts the namespace of the manager in the place of `system`.
            (_, "" | "system") => " in the namespace of the operator".into(),
            (_, namespace) => format!(" in the namespace {namespace}"),
        }
    }
}

/// The metadata of a role.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleMetadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// A rule of a role.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    pub(crate) urls: Vec<String>,
    pub(crate) verbs: Vec<String>,
}

impl Rule {
    /// Returns the API groups with the name of the core group written out.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.api_groups
            .iter()
            .map(|group| if group.is_empty() { "core" } else { group.as_str() })
    }
}
