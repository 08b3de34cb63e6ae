//! Reads the resources of Kubernetes from the discovery documents, which are published with its
//! source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::openapi::rust_path;
use crate::committed::list_folder;
use crate::value::{items, text};

/// A resource. This is the union of all minor versions.
#[derive(Default)]
pub(crate) struct Resource {
    kind: String,
    /// Path of the module in k8s-openapi that contains the versions.
    module: String,
    is_namespaced: bool,
    verbs: BTreeSet<String>,
    short_names: BTreeSet<String>,
    subresources: BTreeMap<String, BTreeSet<String>>,
}

/// All resources, by their group and their plural name. The name of the core group is empty, so it
/// comes first.
pub(crate) type Resources = BTreeMap<(String, String), Resource>;

/// The verbs of `status`, `scale`, and in fact most subresources. To keep the table small, they're
/// not listed there.
const STATUS_VERBS: &str = "get,patch,update";

/// Adds all resources of a minor version. If a resource has been added before, this overrides it.
pub(crate) fn add_resources(api: &Path, resources: &mut Resources) -> Result<()> {
    let modules = kind_modules(&api.join("openapi-spec/v3"))?;
    for path in list_folder(&api.join("discovery"))? {
        let document: Value = serde_json::from_slice(&fs_err::read(path)?)?;
        if document["kind"] != "APIResourceList" {
            continue;
        }
        let served = text(&document, "/groupVersion");
        let (group, version) = served.split_once('/').unwrap_or(("", served));
        for listed in items(&document, "/resources") {
            let listed: Listed = serde_json::from_value(listed.clone())?;
            add_resource((group, version), listed, &modules, resources).context(served.to_owned())?;
        }
    }
    Ok(())
}

/// An entry of a discovery document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: BTreeSet<String>,
    #[serde(default)]
    short_names: BTreeSet<String>,
}

fn add_resource(
    (group, version): (&str, &str),
    listed: Listed,
    modules: &KindModules,
    resources: &mut Resources,
) -> Result<()> {
    let (plural, subresource) = listed.name.split_once('/').unwrap_or((&listed.name, ""));
    let resource = resources
        .entry((group.to_owned(), plural.to_owned()))
        .or_default();
    if !subresource.is_empty() {
        resource.subresources.insert(subresource.to_owned(), listed.verbs);
        return Ok(());
    }
    let module = modules.get(&(group.to_owned(), version.to_owned(), listed.kind.clone()));
    let module = module.with_context(|| format!("no document defines the kind {}", listed.kind))?;
    resource.module.clone_from(module);
    resource.kind = listed.kind;
    resource.is_namespaced = listed.namespaced;
    resource.short_names.extend(listed.short_names);
    resource.verbs = listed.verbs;
    Ok(())
}

/// Modules in k8s-openapi, by group, version and kind.
type KindModules = BTreeMap<(String, String, String), String>;

fn kind_modules(documents: &Path) -> Result<KindModules> {
    let mut modules = KindModules::new();
    for path in list_folder(documents)? {
        let document: Value = serde_json::from_slice(&fs_err::read(path)?)?;
        let schemas = document["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten() {
            let path = rust_path(name).with_context(|| format!("`{name}` is not Kubernetes'"))?;
            for meant in items(schema, "/x-kubernetes-group-version-kind") {
                let [group, version, kind] =
                    ["/group", "/version", "/kind"].map(|pointer| text(meant, pointer).to_owned());
                // Some kinds (e.g. `DeleteOptions`) are listed for every group, but the module
                // doesn't belong to a group.
                if let Some(module) = path.strip_suffix(&format!("::{version}::{kind}")) {
                    modules.insert((group, version, kind), module.to_owned());
                }
            }
        }
    }
    Ok(modules)
}

pub(crate) fn print_table(resources: &Resources) -> Result<String> {
    let mut table = String::from(INTRODUCTION);
    for ((group, plural), resource) in resources {
        ensure!(
            !resource.kind.is_empty(),
            "`{group}/{plural}` has subresources only"
        );
        let short_names: Vec<&str> = resource.short_names.iter().map(String::as_str).collect();
        let limited_verbs = match resource.verbs.contains("watch") {
            true => String::new(),
            false => join_verbs(&resource.verbs),
        };
        let subresources: Vec<String> = resource.subresources.iter().map(print_subresource).collect();
        writeln!(
            table,
            "    row({group:?}, {:?}, {:?}, {plural:?}, {:?}, {}, {limited_verbs:?}, {:?}),",
            resource.module,
            resource.kind,
            short_names.join(" "),
            resource.is_namespaced,
            subresources.join(" "),
        )?;
    }
    table.push_str("];\n");
    Ok(table)
}

fn print_subresource((name, verbs): (&String, &BTreeSet<String>)) -> String {
    let verbs = join_verbs(verbs);
    match verbs.as_str() {
        STATUS_VERBS => name.clone(),
        _ => format!("{name}:{verbs}"),
    }
}

fn join_verbs(verbs: &BTreeSet<String>) -> String {
    verbs.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

const INTRODUCTION: &str = include_str!("table.rs.in");
