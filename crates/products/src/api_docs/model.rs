//! The content of a page: kinds with versions and samples, and roles.

use rbuilder_schema::Schema;
use serde::Deserialize;

/// The content of a page.
#[derive(Debug, Default)]
pub struct Reference {
    /// The heading of the page.
    pub(crate) title: String,
    /// The kinds, sorted by group and name.
    pub kinds: Vec<Kind>,
    /// The operator's roles, sorted by kind and name.
    pub(crate) roles: Vec<Role>,
}

/// A kind.
#[derive(Debug)]
pub struct Kind {
    /// First part of its anchors: the name in lower case, with the group if another kind on the
    /// page has the same name.
    pub(crate) anchor: String,
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) plural: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    /// True if a webhook converts between its versions.
    pub(crate) is_converted: bool,
    /// The versions, starting with the one preferred by clients.
    pub(crate) versions: Vec<Version>,
    /// Objects of the kind as YAML.
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

    /// Returns the version that represents the kind: the one preferred by clients.
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
    /// The warning that the API server sends to users of a deprecated version; `None` for the
    /// default text.
    pub(crate) deprecation_warning: Option<String>,
    schema: Validation,
    pub(crate) subresources: Subresources,
    #[serde(rename = "additionalPrinterColumns")]
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

impl Version {
    /// Returns the schema of complete objects.
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

/// The fields used by `kubectl scale` and autoscalers.
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
    /// A column with a priority above 0 is only shown with `-o wide`.
    pub(crate) priority: i64,
}

/// A field supported in field selectors.
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
    /// Returns the namespace of the role in words. Empty for a ClusterRole.
    pub(super) fn scope(&self) -> String {
        match (self.kind.as_str(), self.metadata.namespace.as_str()) {
            ("ClusterRole", _) => String::new(),
            // kustomize replaces `system` with the manager's namespace.
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
    /// Returns the API groups, with `core` for the core group.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.api_groups
            .iter()
            .map(|group| if group.is_empty() { "core" } else { group.as_str() })
    }
}
