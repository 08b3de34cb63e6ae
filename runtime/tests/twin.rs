//! The two doors of the schema builder give the same answer: kinds as compiled (`Kind::crd()`) against their
//! manifests as `rbuilder manifests` writes them, from the same source.

// The kinds are written as a user's library has them, and no program uses them.
#![allow(dead_code, missing_docs, unreachable_pub)]
// What they hold is odd on purpose: both doors must read what people write, not what lints would have them write.
#![allow(clippy::empty_docs)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use rbuilder::testing::crd_differences;
use rbuilder_generator::{Options, Severity, SourceSet, generate};
use rbuilder_syntax::marker::{CONSTRAINTS, markers};
use rbuilder_syntax::{CRD_KEYS, KUBE_KEYS};

#[path = "twin/kinds.rs"]
mod kinds;

const CARGO_TOML: &str = r#"
[package]
name = "twin"
edition = "2024"

[dependencies]
k8s-openapi = "0.29"
kube = "5"
rbuilder = "0.1"
serde = "1"
serde_json = "1"
"#;

const SOURCES: [(&str, &str); 6] = [
    ("src/lib.rs", include_str!("twin/kinds.rs")),
    ("src/docs.rs", include_str!("twin/docs.rs")),
    ("src/leaves.rs", include_str!("twin/leaves.rs")),
    ("src/markers.rs", include_str!("twin/markers.rs")),
    ("src/names.rs", include_str!("twin/names.rs")),
    ("src/shapes.rs", include_str!("twin/shapes.rs")),
];

fn compiled() -> Vec<CustomResourceDefinition> {
    vec![
        kinds::KeyedObject::crd(),
        kinds::Flat::crd(),
        kinds::Policy::crd(),
        kinds::docs::Documented::crd(),
        kinds::leaves::Leaf::crd(),
        kinds::markers::Marked::crd(),
        kinds::names::Naming::crd(),
        kinds::shapes::Shape::crd(),
        kinds::shapes::roots::Sum::crd(),
        kinds::shapes::roots::Thin::crd(),
        kinds::shapes::roots::Open::crd(),
    ]
}

/// The manifests by the name of their CRD.
fn generated() -> BTreeMap<String, String> {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    SOURCES
        .iter()
        .for_each(|(path, text)| sources.insert(*path, *text));
    let generated = generate(&sources, &Options::default());
    let errors: Vec<_> = generated
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| {
            let before = &sources.get(&said.path).unwrap_or_default()[..said.range.start];
            let line = before.matches('\n').count() + 1;
            format!("{}:{line}: {}", said.path, said.message)
        })
        .collect();
    assert!(errors.is_empty(), "the generator refuses:\n{}", errors.join("\n"));
    generated
        .files
        .into_iter()
        .map(|file| {
            let manifest: serde_json::Value = serde_saphyr::from_str(&file.text).expect("YAML");
            let name = manifest["metadata"]["name"].as_str().expect("a name").to_owned();
            (name, file.text)
        })
        .collect()
}

#[test]
fn both_doors_say_the_same_of_every_kind() {
    let generated = generated();
    let compiled = compiled();
    let name_of = |crd: &CustomResourceDefinition| crd.metadata.name.clone().expect("a name");
    let mut names: Vec<String> = compiled.iter().map(name_of).collect();
    names.sort();
    assert_eq!(names, generated.keys().cloned().collect::<Vec<_>>());
    let mut found = Vec::new();
    for crd in &compiled {
        let name = name_of(crd);
        let differences = crd_differences(crd, &generated[&name]);
        found.extend(
            differences
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
    }
    assert!(
        found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// A new marker needs its twin in the kinds.
#[test]
fn every_marker_is_among_the_kinds() {
    let words: BTreeSet<&str> = SOURCES
        .iter()
        .flat_map(|(_, text)| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .collect();
    let keys = KUBE_KEYS.iter().chain(CRD_KEYS).map(|key| key.name);
    let constraints = CONSTRAINTS.iter().map(|constraint| constraint.name);
    let missing: Vec<&str> = markers()
        .map(|marker| marker.name)
        .chain(keys)
        .chain(constraints)
        .filter(|name| !words.contains(name))
        .collect();
    assert!(missing.is_empty(), "no kind has {missing:?}");
}

#[cfg(feature = "envtest")]
#[path = "twin/server.rs"]
mod server;
