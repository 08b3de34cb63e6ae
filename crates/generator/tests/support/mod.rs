//! Small packages for tests, and the generator's results for them.

// Each test uses only part of this module.
#![allow(dead_code)]

use rbuilder_generator::{Generated, Options, Severity, SourceSet, generate};
use serde_json::Value;

pub(crate) const CARGO_TOML: &str = r#"
[package]
name = "shapes"
edition = "2024"

[features]
default = ["on"]
on = []
off = []

[dependencies]
indexmap = "2"
k8s-openapi = "0.29"
kube = "5"
rbuilder = "0.1"
serde = "1"
serde_json = "1"
"#;

/// Imports for the sources in tests.
pub(crate) const PRELUDE: &str = "use std::borrow::Cow; use std::collections::*; use std::marker::PhantomData; \
                           use std::num::*; use std::rc::Rc; use std::sync::Arc; use std::time::Duration; \
                           use kube::CustomResource; use rbuilder::CrdSchema; \
                           use serde::{Deserialize, Serialize}; use serde_json::Map;\n";

/// Runs the generator on a package with these files and [`CARGO_TOML`].
pub(crate) fn run(files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    generate(&sources, &Options::default())
}

/// Returns the source of a kind with these fields and items.
pub(crate) fn kind(fields: &str, items: &str) -> String {
    format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\n\
         pub struct TestSpec {{ {fields} }}\n{items}"
    )
}

/// The message and the help of an error.
pub(crate) type Said = (String, String);

/// Returns the schema of `spec` in the only kind, or the errors.
pub(crate) fn spec_of(files: &[(&str, &str)]) -> Result<Value, Vec<Said>> {
    whole_of(files).map(|schema| schema["properties"]["spec"].clone())
}

/// Returns the schema of the only kind, or the errors.
pub(crate) fn whole_of(files: &[(&str, &str)]) -> Result<Value, Vec<Said>> {
    let generated = run(files);
    let errors: Vec<_> = generated
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| (said.message.clone(), said.help.clone().unwrap_or_default()))
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let crds: Vec<_> = generated
        .files
        .iter()
        .filter(|file| file.path.starts_with("crd/"))
        .collect();
    let [crd] = crds.as_slice() else {
        return Err(vec![(format!("{} kinds were found", crds.len()), String::new())]);
    };
    let crd: Value = serde_saphyr::from_str(&crd.text).expect("YAML");
    Ok(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone())
}

/// Returns the schema of `spec` in a kind with these fields, or the errors.
pub(crate) fn spec(fields: &str, items: &str) -> Result<Value, Vec<Said>> {
    spec_of(&[("src/lib.rs", &kind(fields, items))])
}

/// Returns the warnings for these files.
pub(crate) fn warnings(files: &[(&str, &str)]) -> Vec<String> {
    let said = run(files).diagnostics;
    let warnings = said.into_iter().filter(|said| said.severity == Severity::Warning);
    warnings.map(|said| said.message).collect()
}
