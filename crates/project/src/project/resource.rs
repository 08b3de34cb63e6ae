//! The resources in PROJECT, one entry per kind and version.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{FILE, Image, names, object_at, set};

/// A version of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// API group without the domain.
    #[serde(default)]
    pub group: String,
    /// Domain of the API group.
    #[serde(default)]
    pub domain: String,
    /// E.g. `v1alpha1`.
    pub version: String,
    /// E.g. `CronJob`.
    pub kind: String,
    /// E.g. `cronjobs`. Regular plurals are omitted by kubebuilder.
    #[serde(default)]
    pub plural: String,
    /// Set if the types are defined in this project.
    #[serde(default)]
    pub api: Option<Api>,
    /// Whether the project has a controller for the kind.
    #[serde(default)]
    pub controller: bool,
    /// Controllers of the kind, if at least one of them is named. `controller` is unset then.
    #[serde(default)]
    pub controllers: Vec<NamedController>,
    /// Set if the project has webhooks for the kind.
    #[serde(default)]
    pub webhooks: Option<Webhooks>,
    /// Set if the scaffolded controller runs an image.
    #[serde(default)]
    pub image: Option<Image>,
    /// Whether this is a built-in kind of Kubernetes.
    #[serde(default)]
    pub core: bool,
    /// Whether the type is defined in another crate.
    #[serde(default)]
    pub external: bool,
    /// Rust path of a foreign kind's type, e.g. `k8s_openapi::api::apps::v1::Deployment`.
    #[serde(default)]
    pub path: String,
    /// Crate of an external kind, with the requested version, e.g. `gateway-api@0.22`.
    #[serde(default)]
    pub module: String,
    /// `Cluster` for a cluster-scoped foreign kind. kubebuilder has no such key.
    #[serde(default)]
    pub scope: String,
}

/// A named controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NamedController {
    /// Name in logs, metrics and events, e.g. `captain-backup`.
    pub name: String,
}

/// Either `namespaced` or `cluster-scoped`.
pub fn describe_scope(is_namespaced: bool) -> &'static str {
    if is_namespaced {
        "namespaced"
    } else {
        "cluster-scoped"
    }
}

const CLUSTER: &str = "Cluster";

/// The webhooks of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Version of the configuration format, e.g. `v1`.
    #[serde(default)]
    pub webhook_version: String,
    /// Whether there is a defaulting webhook.
    #[serde(default)]
    pub defaulting: bool,
    /// Whether there is a validating webhook.
    #[serde(default)]
    pub validation: bool,
    /// Whether this is the hub version of the conversion.
    #[serde(default)]
    pub conversion: bool,
    /// Spoke versions, which are converted to and from the hub version.
    #[serde(default)]
    pub spoke: Vec<String>,
    /// URL path of the defaulting webhook, if it differs from the default.
    #[serde(default)]
    pub defaulting_path: String,
    /// URL path of the validating webhook, if it differs from the default.
    #[serde(default)]
    pub validation_path: String,
}

impl Webhooks {
    /// Merges both sets of webhooks.
    #[must_use]
    pub fn with(mut self, other: Webhooks) -> Webhooks {
        self.webhook_version = other.webhook_version;
        self.defaulting |= other.defaulting;
        self.validation |= other.validation;
        self.conversion |= other.conversion;
        for (path, new) in [
            (&mut self.defaulting_path, other.defaulting_path),
            (&mut self.validation_path, other.validation_path),
        ] {
            if !new.is_empty() {
                *path = new;
            }
        }
        let new = other
            .spoke
            .into_iter()
            .filter(|version| !self.spoke.contains(version));
        self.spoke.extend(new.collect::<Vec<_>>());
        self
    }

    /// Removes the given webhooks.
    #[must_use]
    pub fn without(mut self, defaulting: bool, validation: bool, conversion: bool) -> Webhooks {
        if defaulting {
            self.defaulting = false;
            self.defaulting_path.clear();
        }
        if validation {
            self.validation = false;
            self.validation_path.clear();
        }
        if conversion {
            self.conversion = false;
            self.spoke.clear();
        }
        self
    }

    /// Whether there are no webhooks.
    pub fn is_empty(&self) -> bool {
        !(self.defaulting || self.validation || self.conversion)
    }
}

/// Settings of a kind's API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// Version of the CRD format, e.g. `v1`.
    #[serde(default)]
    pub crd_version: String,
    /// Whether the kind is namespaced.
    #[serde(default)]
    pub namespaced: bool,
    /// Whether the types were generated from a CRD. kubebuilder has no such key.
    #[serde(default)]
    pub imported: bool,
}

impl Resource {
    /// Whether both entries are for the same kind, in any version.
    pub fn same_kind(&self, other: &Resource) -> bool {
        (&self.group, &self.domain, &self.kind) == (&other.group, &other.domain, &other.kind)
    }

    /// Whether both entries are for the same kind and version.
    pub fn same(&self, other: &Resource) -> bool {
        self.same_kind(other) && self.version == other.version
    }

    /// API group with the domain; empty for the core group.
    pub fn qualified_group(&self) -> String {
        if self.core && self.group == "core" {
            return String::new();
        }
        let parts = [self.group.as_str(), &self.domain];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(".")
    }

    /// Flags that identify this version of the kind, formatted by [`naming_flags`].
    pub fn naming_flags(&self) -> String {
        naming_flags(&self.group, &self.version, &self.kind)
    }

    /// Whether the kind's types are defined outside this project.
    pub fn is_foreign(&self) -> bool {
        self.core || self.external
    }

    /// Whether the kind's types were generated from a CRD.
    pub fn is_imported(&self) -> bool {
        self.api.as_ref().is_some_and(|api| api.imported)
    }

    /// Whether objects of the kind are namespaced.
    pub fn is_namespaced(&self) -> bool {
        match &self.api {
            Some(api) => api.namespaced,
            None => self.scope != CLUSTER,
        }
    }

    /// Sets the scope of a foreign kind.
    pub fn set_scope(&mut self, is_namespaced: bool) {
        self.scope = if is_namespaced {
            String::new()
        } else {
            CLUSTER.to_owned()
        };
    }

    /// Whether the project has a controller for the kind.
    pub fn has_controller(&self) -> bool {
        self.controller || !self.controllers.is_empty()
    }

    /// Name of an unnamed controller, i.e. the kind in lower case.
    pub fn default_controller(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Names of all controllers of the kind.
    pub fn controller_names(&self) -> Vec<String> {
        let named = self.controllers.iter().map(|controller| controller.name.clone());
        let default = self.controller.then(|| self.default_controller());
        let default = default.filter(|_| self.controllers.is_empty());
        default.into_iter().chain(named).collect()
    }

    /// Adds a controller. As in kubebuilder, naming one turns the entry into a list of names.
    pub fn add_controller(&mut self, name: Option<&str>) {
        let Some(name) = name else {
            self.controller = true;
            return;
        };
        let mut names = self.controller_names();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        self.controller = false;
        self.controllers = names.into_iter().map(|name| NamedController { name }).collect();
    }

    /// Checks the values, apart from names, that `create` writes to source files.
    pub(super) fn check_source(&self) -> Result<()> {
        let webhooks = self.webhooks.iter();
        let paths = webhooks.flat_map(|webhooks| [&webhooks.defaulting_path, &webhooks.validation_path]);
        for path in paths.filter(|path| !path.is_empty()) {
            if names::check_webhook_path("", path).is_err() {
                bail!("invalid path `{}` of a webhook in {FILE}", path.escape_debug());
            }
        }
        if let Some(image) = self.image.as_ref().filter(|image| image.check().is_err()) {
            bail!(
                "invalid image `{}`, or command of it, in {FILE}",
                image.name.escape_debug()
            );
        }
        Ok(())
    }

    pub(super) fn is_entry(&self, entry: &Value) -> bool {
        let Resource {
            group,
            domain,
            version,
            kind,
            ..
        } = self;
        [
            ("group", group),
            ("domain", domain),
            ("version", version),
            ("kind", kind),
        ]
        .iter()
        .all(|(key, expected)| entry[key].as_str().unwrap_or_default() == *expected)
    }

    /// Prints the entry for PROJECT. `written` is the existing entry, whose unknown keys are
    /// preserved.
    pub(super) fn print(&self, written: Option<&Value>) -> Value {
        let mut all = written.and_then(Value::as_object).cloned().unwrap_or_default();
        set(&mut all, "group", json!(self.group));
        set(&mut all, "domain", json!(self.domain));
        all.insert("version".into(), json!(self.version));
        all.insert("kind".into(), json!(self.kind));
        set(&mut all, "plural", json!(self.plural));
        set(&mut all, "controller", json!(self.controller));
        let names = self.controllers.iter();
        let names = names.map(|controller| json!({ "name": controller.name }));
        set(&mut all, "controllers", names.collect());
        set(&mut all, "core", json!(self.core));
        set(&mut all, "external", json!(self.external));
        set(&mut all, "path", json!(self.path));
        set(&mut all, "module", json!(self.module));
        set(&mut all, "scope", json!(self.scope));
        let mut api = object_at(&all, "api");
        if let Some(own) = &self.api {
            set(&mut api, "crdVersion", json!(own.crd_version));
            set(&mut api, "namespaced", json!(own.namespaced));
            set(&mut api, "imported", json!(own.imported));
        }
        insert_if(&mut all, "api", self.api.is_some(), api);
        let mut webhooks = object_at(&all, "webhooks");
        if let Some(own) = &self.webhooks {
            set(&mut webhooks, "webhookVersion", json!(own.webhook_version));
            set(&mut webhooks, "defaulting", json!(own.defaulting));
            set(&mut webhooks, "validation", json!(own.validation));
            set(&mut webhooks, "conversion", json!(own.conversion));
            set(&mut webhooks, "spoke", json!(own.spoke));
            set(&mut webhooks, "defaultingPath", json!(own.defaulting_path));
            set(&mut webhooks, "validationPath", json!(own.validation_path));
        }
        insert_if(&mut all, "webhooks", self.webhooks.is_some(), webhooks);
        if let Some(image) = &self.image {
            all.insert("image".into(), image.print());
        }
        Value::Object(all)
    }
}

fn insert_if(all: &mut Map<String, Value>, key: &str, is_there: bool, object: Map<String, Value>) {
    if is_there {
        all.insert(key.to_owned(), Value::Object(object));
    } else {
        all.remove(key);
    }
}

/// Strips the domain from an API group, e.g. `crew` for `crew.example.com`. Empty for the domain
/// itself, and `None` for a different domain such as `fooexample.com`.
pub fn strip_domain<'a>(group: &'a str, domain: &str) -> Option<&'a str> {
    match group.strip_suffix(domain)? {
        own if own.is_empty() || domain.is_empty() => Some(own),
        own => own.strip_suffix('.'),
    }
}

/// Flags that identify a version of a kind in printed commands, e.g. `--group cache --version v1
/// --kind Cup`. `--group` is left out for an empty group, since a shell would drop the empty value.
pub fn naming_flags(group: &str, version: &str, kind: &str) -> String {
    let group = match group {
        "" => String::new(),
        group => format!("--group {group} "),
    };
    format!("{group}--version {version} --kind {kind}")
}

#[cfg(test)]
mod tests {
    use super::strip_domain;

    #[test]
    fn groups_end_in_the_domain() {
        for (group, domain, expected) in [
            ("crew.example.com", "example.com", Some("crew")),
            ("sea.crew.example.com", "example.com", Some("sea.crew")),
            ("example.com", "example.com", Some("")),
            ("crew", "", Some("crew")),
            ("fooexample.com", "example.com", None),
            ("crew.example.org", "example.com", None),
        ] {
            assert_eq!(strip_domain(group, domain), expected, "{group}");
        }
    }
}
