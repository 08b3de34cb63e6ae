//! Small packages for tests, and what the generator makes of them.

// No test uses all of this.
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

/// The sources in tests need these imports.
pub(crate) const PRELUDE: &str = "use std::borrow::Cow; use std::collections::*; use std::marker::PhantomData; \
                           use std::num::*; use std::rc::Rc; use std::sync::Arc; use std::time::Duration; \
                           use kube::CustomResource; use rbuilder::CrdSchema; \
                           use serde::{Deserialize, Serialize}; use serde_json::Map;\n";

/// The package also has [`CARGO_TOML`].
pub(crate) fn run(files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    generate(&sources, &Options::default())
}

/// `items` are added after the kind.
pub(crate) fn kind(fields: &str, items: &str) -> String {
    format!(
        "{PRELUDE}#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\n\
         pub struct TestSpec {{ {fields} }}\n{items}"
    )
}

/// The message of an error, and its help.
pub(crate) type Said = (String, String);

/// Returns the schema of `spec`. There must be a single kind.
pub(crate) fn spec_of(files: &[(&str, &str)]) -> Result<Value, Vec<Said>> {
    whole_of(files).map(|schema| schema["properties"]["spec"].clone())
}

/// There must be a single kind.
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

/// Same as [`spec_of`], but for a kind with these fields.
pub(crate) fn spec(fields: &str, items: &str) -> Result<Value, Vec<Said>> {
    spec_of(&[("src/lib.rs", &kind(fields, items))])
}

pub(crate) fn warnings(files: &[(&str, &str)]) -> Vec<String> {
    let said = run(files).diagnostics;
    let warnings = said.into_iter().filter(|said| said.severity == Severity::Warning);
    warnings.map(|said| said.message).collect()
}
