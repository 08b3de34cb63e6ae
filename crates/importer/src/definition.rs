//! Reads a published CustomResourceDefinition, and reports everything in it that Rust source can't
//! express.

use std::collections::BTreeMap;

use rbuilder_diagnostic::Diagnostic;
use rbuilder_kubernetes::crd;
use rbuilder_kubernetes::names::{is_dns_1035_label, is_subdomain};
use rbuilder_schema::{Schema, remove_idle_keys};
use serde::Deserialize;
use serde_json::Value;

use crate::clean::clean;
use crate::v1beta1::convert_definition;

#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) is_namespaced: bool,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) conversion: Option<Conversion>,
    pub(crate) versions: Vec<Version>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Names {
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) is_served: bool,
    pub(crate) is_stored: bool,
    /// Set for a deprecated version. The inner value is the warning, or `None` for the API server's
    /// default.
    pub(crate) deprecated: Option<Option<String>>,
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable: Vec<String>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) schema: Schema,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) column_type: String,
    pub(crate) json_path: String,
    pub(crate) description: String,
    pub(crate) format: String,
    pub(crate) priority: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Conversion {
    pub(crate) service: Option<Service>,
    pub(crate) url: Option<String>,
    pub(crate) ca_bundle: Option<String>,
    pub(crate) review_versions: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) path: Option<String>,
    pub(crate) port: Option<u16>,
}

impl Definition {
    /// Reads a definition, with a warning for everything that Rust source can't express.
    ///
    /// Fails if the document isn't a definition of `apiextensions.k8s.io`, if names are missing, or
    /// if a version has an invalid schema.
    pub(crate) fn read(
        document: Value,
        diagnostics: &mut Vec<Diagnostic<String>>,
    ) -> Result<Definition, Diagnostic<String>> {
        let at = document["metadata"]["name"]
            .as_str()
            .unwrap_or("the definition")
            .to_owned();
        let error = |message: &str| Diagnostic::error(at.clone(), message);
        let mut document = convert_definition(&document).unwrap_or(document);
        if document["apiVersion"] != "apiextensions.k8s.io/v1" {
            let found = document["apiVersion"].as_str().unwrap_or("none");
            return Err(error(&format!(
                "expected the API version `apiextensions.k8s.io/v1`, found `{found}`"
            )));
        }
        // Take the versions out, since cloning their schemas would be expensive.
        let mut versions: Vec<Value> = crd::versions_mut(&mut document).map(Value::take).collect();
        let spec = &document["spec"];
        let names: Names =
            read(&spec["names"]).map_err(|reason| error(&format!("invalid names: {reason}")))?;
        let group = spec["group"].as_str().unwrap_or_default().to_owned();
        if group.is_empty() || names.kind.is_empty() || names.plural.is_empty() {
            return Err(error(
                "expected `group`, `names.kind` and `names.plural` in `spec`",
            ));
        }
        check_name("group", &group, is_subdomain)
            .and_then(|()| check_name("plural", &names.plural, is_dns_1035_label))
            .and_then(|()| check_name("kind", &names.kind, is_type_name))
            .map_err(|message| error(&message).help(REFUSED))?;
        let mut definition = Definition {
            is_namespaced: spec["scope"] != "Cluster",
            annotations: own_annotations(read(&document["metadata"]["annotations"]).unwrap_or_default()),
            labels: read(&document["metadata"]["labels"]).unwrap_or_default(),
            conversion: conversion(&spec["conversion"]),
            group,
            names,
            versions: Vec::new(),
        };
        for version in &mut versions {
            let version = Version::read(version, &at, diagnostics)?;
            definition.versions.push(version);
        }
        if definition.versions.is_empty() {
            return Err(error("expected at least one version"));
        }
        for list in [
            &mut definition.names.short_names,
            &mut definition.names.categories,
        ] {
            let mut seen = Vec::new();
            list.retain(|name| {
                !seen.contains(name) && {
                    seen.push(name.clone());
                    true
                }
            });
        }
        definition.versions.sort_by(|a, b| a.name.cmp(&b.name));
        if spec["preserveUnknownFields"] == true {
            diagnostics.push(Diagnostic::warning(at.clone(), UNKNOWN_FIELDS.to_owned()));
        }
        let expected = format!("{}List", definition.names.kind);
        let list_kind = &definition.names.list_kind;
        if !list_kind.is_empty() && *list_kind != expected {
            diagnostics.push(Diagnostic::warning(
                at,
                format!("the list kind `{list_kind}` becomes `{expected}`"),
            ));
        }
        Ok(definition)
    }
}

impl Version {
    fn read(
        version: &mut Value,
        definition: &str,
        diagnostics: &mut Vec<Diagnostic<String>>,
    ) -> Result<Version, Diagnostic<String>> {
        let name = version["name"].as_str().unwrap_or_default().to_owned();
        let at = format!("{definition}, version {name}");
        let error = |message: String| Diagnostic::error(at.clone(), message);
        check_name("version", &name, is_dns_1035_label).map_err(|message| error(message).help(REFUSED))?;
        let schema = version.pointer_mut("/schema/openAPIV3Schema");
        let Some(mut schema) = schema.map(Value::take) else {
            return Err(error("expected a schema at `schema.openAPIV3Schema`".into()));
        };
        let lost = clean(&mut schema);
        let mut schema =
            Schema::deserialize(schema).map_err(|reason| error(format!("invalid schema: {reason}")))?;
        let idle = remove_idle_keys(&mut schema);
        let idle = idle.into_iter().map(|key| (key.path, key.message));
        let warnings = lost
            .into_iter()
            .chain(idle)
            .map(|(path, what)| Diagnostic::warning(format!("{at}: {path}"), what));
        diagnostics.extend(warnings);
        let version = crd::Version::of(version);
        let columns = version.columns().iter().map(Column::deserialize);
        let columns = columns.collect::<Result<_, _>>();
        Ok(Version {
            is_served: version.is_served,
            is_stored: version.is_storage,
            deprecated: version
                .is_deprecated()
                .then(|| version.deprecation_warning().map(str::to_owned)),
            columns: columns.map_err(|reason| error(format!("invalid column: {reason}")))?,
            selectable: version.selectable_fields().map(str::to_owned).collect(),
            has_status: version.has_status(),
            scale: read(version.scale()).ok().flatten(),
            schema,
            name,
        })
    }
}

const UNKNOWN_FIELDS: &str = "`preserveUnknownFields: true` is left out: `v1` does not accept it, so the API server drops fields that the schema does not have";

const REFUSED: &str =
    "correct it: the API server refuses such a definition, or no Rust type can have the name";

/// Checks a name that becomes part of the source, where an arbitrary one could inject code.
fn check_name(what: &str, name: &str, is_valid: fn(&str) -> bool) -> Result<(), String> {
    match is_valid(name) {
        true => Ok(()),
        false => Err(format!("`{}` is not a valid {what}", name.escape_debug())),
    }
}

/// The API server accepts hyphens too, but a Rust type name can't contain any.
fn is_type_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn conversion(value: &Value) -> Option<Conversion> {
    if value["strategy"] != "Webhook" {
        return None;
    }
    let webhook = &value["webhook"];
    let client = &webhook["clientConfig"];
    let text = |key: &str| {
        client[key]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    Some(Conversion {
        service: read(&client["service"]).ok().flatten(),
        url: text("url"),
        ca_bundle: text("caBundle"),
        review_versions: read_list(&webhook["conversionReviewVersions"]).unwrap_or_default(),
    })
}

fn own_annotations(annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const OF_TOOLS: &[&str] = &[
        "controller-gen.kubebuilder.io/version",
        "kubectl.kubernetes.io/last-applied-configuration",
        "rbuilder.dev/version",
    ];
    let mut annotations = annotations;
    annotations.retain(|key, _| !OF_TOOLS.contains(&key.as_str()));
    annotations
}

/// Deserializes a value. Unlike in serde, `null` is the default.
fn read<T: Default + for<'de> Deserialize<'de>>(value: &Value) -> Result<T, serde_json::Error> {
    if value.is_null() {
        Ok(T::default())
    } else {
        T::deserialize(value)
    }
}

fn read_list<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<Vec<T>, serde_json::Error> {
    read(value)
}
