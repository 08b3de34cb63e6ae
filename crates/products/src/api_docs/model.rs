//! Content of a page: kinds with their versions and samples, and roles.

use rbuilder_schema::Schema;
use serde::Deserialize;

/// Content of a page.
#[derive(Debug, Default)]
pub struct Reference {
    pub(crate) title: String,
    /// The kinds, sorted by group and name.
    pub kinds: Vec<Kind>,
    pub(crate) roles: Vec<Role>,
}

/// A kind with all its versions.
#[derive(Debug)]
pub struct Kind {
    /// First part of the kind's anchors: the name in lower case, plus the group if several kinds on
    /// the page have this name.
    pub(crate) anchor: String,
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) plural: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    pub(crate) is_converted: bool,
    /// Versions in order of preference.
    pub(crate) versions: Vec<Version>,
    pub(crate) samples: Vec<String>,
}

impl Kind {
    pub(crate) fn scope(&self) -> &'static str {
        match self.is_namespaced {
            true => "namespaced",
            false => "cluster",
        }
    }

    pub(crate) fn preferred(&self) -> Option<&Version> {
        let is_served = |version: &&Version| version.served;
        self.versions
            .iter()
            .find(is_served)
            .or_else(|| self.versions.first())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    /// Warning for users of a deprecated version. If `None`, the API server uses its default
    /// warning.
    pub(crate) deprecation_warning: Option<String>,
    schema: Validation,
    pub(crate) subresources: Subresources,
    #[serde(rename = "additionalPrinterColumns")]
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

impl Version {
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<serde_json::Value>,
    pub(crate) scale: Option<Scale>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) column_type: String,
    pub(crate) json_path: String,
    pub(crate) description: String,
    /// Columns with a priority above 0 are only shown with `-o wide`.
    pub(crate) priority: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    pub(crate) kind: String,
    pub(crate) metadata: RoleMetadata,
    pub(crate) rules: Vec<Rule>,
}

impl Role {
    pub(super) fn scope(&self) -> String {
        match (self.kind.as_str(), self.metadata.namespace.as_str()) {
            ("ClusterRole", _) => String::new(),
            // kustomize replaces `system` with the manager's namespace.
            (_, "" | "system") => " in the namespace of the operator".into(),
            (_, namespace) => format!(" in the namespace {namespace}"),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleMetadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

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
    /// The API groups. The core group's empty name is replaced with `core`.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.api_groups
            .iter()
            .map(|group| if group.is_empty() { "core" } else { group.as_str() })
    }
}
