//! Finds the doc comments and markers of the Kubernetes API types in their Go source. The program
//! comments.go parses it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repo;
use crate::sh::Cmd;

/// The Go modules in `k8s.io` with types that are also in k8s-openapi.
pub(crate) const MODULES: &[&str] = &[
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "kube-aggregator",
];

/// A package (e.g. `k8s.io/api/core/v1`) and the name of a type.
type Name = (String, String);

pub(crate) struct Comments(BTreeMap<Name, GoType>);

#[derive(Deserialize)]
struct GoType {
    name: Name,
    #[serde(flatten)]
    comment: Comment,
    #[serde(default)]
    fields: Vec<Field>,
    /// Types whose fields also belong to this type, either because they are embedded or because
    /// this is an alias.
    #[serde(default)]
    embedded: Vec<Name>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    #[serde(flatten)]
    comment: Comment,
    /// Type of the items of a list, or of the values of a map.
    items: Option<Name>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    #[serde(default)]
    markers: Vec<String>,
}

impl Comments {
    /// Reads the Go files of modules, which have a name and a folder.
    pub(crate) fn read(modules: &[(&str, PathBuf)]) -> Result<Self> {
        let program = repo::root().join("xtask/src/catalogue/comments.go");
        let modules = modules.iter();
        let arguments = modules.map(|(name, folder)| format!("{name}={}", folder.display()));
        let printed = Cmd::new("go run").arg(program).args(arguments).read()?;
        let types: Vec<GoType> = serde_json::from_str(&printed)?;
        Ok(Comments(
            types.into_iter().map(|it| (it.name.clone(), it)).collect(),
        ))
    }

    pub(crate) fn of_type(&self, package: &str, name: &str) -> Option<&Comment> {
        self.get(package, name).map(|it| &it.comment)
    }

    /// Returns the comment of a field by its JSON name. The field may also belong to an embedded
    /// struct.
    pub(crate) fn of_field(&self, package: &str, name: &str, field: &str) -> Option<&Comment> {
        self.field(package, name, field).map(|field| &field.comment)
    }

    /// Returns the comment of the type used for the items of a list or the values of a map.
    pub(crate) fn of_items(&self, package: &str, name: &str, field: &str) -> Option<&Comment> {
        let (package, name) = self.field(package, name, field)?.items.as_ref()?;
        self.of_type(package, name)
    }

    fn field(&self, package: &str, name: &str, field: &str) -> Option<&Field> {
        let it = self.get(package, name)?;
        let own = it.fields.iter().find(|own| own.name == field);
        let mut embedded = it.embedded.iter();
        own.or_else(|| embedded.find_map(|(package, name)| self.field(package, name, field)))
    }

    fn get(&self, package: &str, name: &str) -> Option<&GoType> {
        self.0.get(&(package.to_owned(), name.to_owned()))
    }
}

impl Comment {
    /// Returns the value of a marker (`name=value`).
    pub(crate) fn marker(&self, name: &str) -> Option<&str> {
        let mut values = self.markers.iter().rev();
        values.find_map(|marker| marker.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the names and values of all markers that start with `prefix`.
    pub(crate) fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self
            .markers
            .iter()
            .filter_map(move |marker| marker.strip_prefix(prefix));
        named.map(|marker| marker.split_once('=').unwrap_or((marker, "")))
    }
}

/// Returns the Go package and the name of a type. The argument is a name in OpenAPI, e.g.
/// `io.k8s.api.core.v1.Pod`.
pub(crate) fn package_of(openapi: &str) -> Result<(String, &str)> {
    let (module, name) = openapi.rsplit_once('.').context("a name has a module")?;
    let module = module
        .strip_prefix("io.k8s.")
        .context("the name is not Kubernetes'")?;
    ensure!(!name.is_empty(), "the name is empty");
    Ok((format!("k8s.io/{}", module.replace('.', "/")), name))
}
