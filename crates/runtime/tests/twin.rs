//! Compares the CRDs of the two front ends of the schema builder, compiled kinds (`Kind::crd()`)
//! and `rbuilder manifests`, for the same source.

// Part of a library that no program uses.
#![allow(dead_code, missing_docs, unreachable_pub)]
// Both front ends must parse this, because users may write such code.
#![allow(clippy::duplicated_attributes, clippy::empty_docs, clippy::vec_box)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use rbuilder::testing::crd_differences;
use rbuilder_generator::{Options, Severity, SourceSet, generate};
use rbuilder_schema::Key;
use rbuilder_syntax::marker::markers;
use rbuilder_syntax::{CRD_KEYS, KUBE_KEYS};

#[path = "twin/files.rs"]
mod files;
#[path = "twin/kinds.rs"]
mod kinds;
#[path = "twin/objects.rs"]
mod objects;
#[path = "twin/oracle.rs"]
mod oracle;
#[path = "twin/patterns.rs"]
mod patterns;
#[path = "twin/pipeline.rs"]
mod pipeline;
#[path = "twin/plurals.rs"]
mod plurals;
#[path = "../../cel/src/recorded.rs"]
mod recorded;

const CARGO_TOML: &str = r#"
[package]
name = "twin"
edition = "2024"

[dependencies]
k8s-openapi = { version = "0.29", features = ["v1_37"] }
jiff = "0.2"
kube = "5"
rbuilder = "0.1"
serde = "1"
serde_json = "1"
"#;

const SOURCES: [(&str, &str); 10] = [
    ("src/lib.rs", include_str!("twin/kinds.rs")),
    ("src/docs.rs", include_str!("twin/docs.rs")),
    ("src/kubernetes.rs", include_str!("twin/kubernetes.rs")),
    ("src/filled_in.rs", include_str!("twin/filled_in.rs")),
    ("src/forms.rs", include_str!("twin/forms.rs")),
    ("src/leaves.rs", include_str!("twin/leaves.rs")),
    ("src/markers.rs", include_str!("twin/markers.rs")),
    ("src/names.rs", include_str!("twin/names.rs")),
    ("src/presence.rs", include_str!("twin/presence.rs")),
    ("src/shapes.rs", include_str!("twin/shapes.rs")),
];

/// Returns the CRDs of all compiled kinds by name, with all of their versions merged.
fn compiled() -> BTreeMap<String, CustomResourceDefinition> {
    let mut merged = BTreeMap::<String, CustomResourceDefinition>::new();
    for crd in compiled_kinds().into_iter().chain(oracle::compiled()) {
        let name = crd.metadata.name.clone().expect("a name");
        match merged.get_mut(&name) {
            Some(first) => first.spec.versions.extend(crd.spec.versions),
            None => drop(merged.insert(name, crd)),
        }
    }
    merged
}

fn compiled_kinds() -> Vec<CustomResourceDefinition> {
    vec![
        kinds::KeyedObject::crd(),
        kinds::Flat::crd(),
        kinds::Policy::crd(),
        kinds::docs::Documented::crd(),
        kinds::kubernetes::Workload::crd(),
        kinds::filled_in::FilledIn::crd(),
        kinds::forms::Form::crd(),
        kinds::leaves::Leaf::crd(),
        kinds::markers::Marked::crd(),
        kinds::markers::Published::crd(),
        kinds::names::Naming::crd(),
        kinds::presence::Absence::crd(),
        kinds::shapes::Shape::crd(),
        kinds::shapes::roots::Sum::crd(),
        kinds::shapes::roots::Thin::crd(),
        kinds::shapes::roots::Open::crd(),
    ]
}

/// Returns all generated manifests by the name of their CRD.
fn generated() -> BTreeMap<String, String> {
    let mut kinds = SourceSet::default();
    kinds.insert("Cargo.toml", CARGO_TOML);
    SOURCES.iter().for_each(|(path, text)| kinds.insert(*path, *text));
    let mut manifests = generated_from(&kinds);
    manifests.extend(generated_from(&oracle::sources()));
    manifests
}

fn generated_from(sources: &SourceSet) -> BTreeMap<String, String> {
    let generated = generate(sources, &Options::default());
    let errors: Vec<_> = generated
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| {
            let before = &sources.get(&said.place.path).unwrap_or_default()[..said.place.range.start];
            let line = before.matches('\n').count() + 1;
            format!("{}:{line}: {}", said.place.path, said.message)
        })
        .collect();
    assert!(errors.is_empty(), "the generator refuses:\n{}", errors.join("\n"));
    generated
        .files
        .into_iter()
        .filter(|file| file.path.starts_with("crd/"))
        .map(|file| {
            let manifest: serde_json::Value = serde_saphyr::from_str(&file.text).expect("YAML");
            let name = manifest["metadata"]["name"].as_str().expect("a name").to_owned();
            (name, file.text)
        })
        .collect()
}

#[test]
fn both_front_ends_agree_on_every_kind() {
    let generated = generated();
    let compiled = compiled();
    assert_eq!(
        compiled.keys().collect::<Vec<_>>(),
        generated.keys().collect::<Vec<_>>()
    );
    let mut found = Vec::new();
    for (name, crd) in &compiled {
        let manifest = &generated[name];
        let differences = crd_differences(crd, manifest);
        found.extend(
            differences
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
        assert_eq!(versions(&serde_json::to_value(crd).expect("JSON")), {
            versions(&serde_saphyr::from_str(manifest).expect("YAML"))
        });
    }
    assert!(
        found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// [`crd_differences`] ignores a version that only exists on one side, since the left side may be
/// just one of many versions. So versions are compared separately.
fn versions(crd: &serde_json::Value) -> BTreeSet<String> {
    let versions = crd["spec"]["versions"].as_array().expect("versions");
    versions
        .iter()
        .map(|version| version["name"].to_string())
        .collect()
}

/// Boolean markers must also be used with `false`.
#[test]
fn kinds_use_every_marker() {
    let words: BTreeSet<&str> = SOURCES
        .iter()
        .flat_map(|(_, text)| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .collect();
    let keys = KUBE_KEYS.iter().chain(CRD_KEYS).map(|key| key.name);
    let constraints = Key::arguments().map(|key| key.argument);
    let missing: Vec<&str> = markers()
        .map(|marker| marker.name)
        .chain(keys)
        .chain(constraints)
        .filter(|name| !words.contains(name))
        .collect();
    assert!(missing.is_empty(), "no kind has {missing:?}");
    let forms = markers().flat_map(|marker| marker.form.split(", "));
    let unused: Vec<&str> = forms
        .filter(|form| form.ends_with(" = false"))
        .filter(|form| !SOURCES.iter().any(|(_, text)| text.contains(form)))
        .collect();
    assert!(unused.is_empty(), "no kind has {unused:?}");
}

#[cfg(feature = "envtest")]
#[path = "twin/defaults.rs"]
mod defaults;

#[cfg(feature = "envtest")]
#[path = "twin/server.rs"]
mod server;

#[cfg(feature = "envtest")]
#[path = "twin/rules.rs"]
mod rules;
