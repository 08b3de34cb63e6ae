//! `cargo xtask catalogue`: generates the schemas of all built-in types (in `rbuilder-catalogue`)
//! and the table of all built-in kinds and resources (in `rbuilder-syntax`).
//!
//! The types are in the OpenAPI v3 documents which are published together with the source of
//! kube-apiserver. This means that we don't need a server. We need the Go source, too: the line
//! breaks of descriptions are only there, and it tells us which defaults and constraints are meant
//! for users of a type. (For the latter, controller-gen does the same.)

mod cycle;
mod go;
mod openapi;
mod resources;
mod rust;
mod topology;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use rbuilder_catalogue::versions::RELEASES;
use rbuilder_catalogue::write::Types;
use rbuilder_catalogue::{Catalogue, Minor, write};

use crate::assets::download_module;
use crate::committed::{Check, update_file};

const DATA: &str = "crates/catalogue/data/kubernetes.bin";
/// The table of kinds and resources. It can be used without the catalogue.
const RESOURCES: &str = "crates/syntax/src/kubernetes/table.rs";
const README: &str = "crates/catalogue/data/README.md";

/// Generates the catalogue. The result is either written or compared with the existing files.
pub(crate) fn make_catalogue(args: &Check) -> Result<()> {
    let mut minors = BTreeMap::new();
    let mut resources = resources::Resources::new();
    for &(minor, release) in RELEASES {
        let types = types(minor, release).with_context(|| format!("Kubernetes 1.{release}"))?;
        minors.insert(minor, types);
        let api = module("kubernetes", &format!("v1.{release}"))?.join("api");
        resources::add_resources(&api, &mut resources).with_context(|| format!("Kubernetes 1.{release}"))?;
    }
    ensure!(
        minors.keys().copied().eq(Minor::all()),
        "a minor of the catalogue has no release here"
    );
    let archive = write::write_archive(&minors).map_err(|problem| anyhow!(problem))?;
    for (minor, types) in &minors {
        verify(&Catalogue::of(&archive, *minor), types)?;
    }
    let readme = readme(&minors, archive.len())?;
    let table = resources::print_table(&resources)?;
    let files = [
        (DATA, archive.as_slice()),
        (RESOURCES, table.as_bytes()),
        (README, readme.as_bytes()),
    ];
    files
        .into_iter()
        .try_for_each(|(path, bytes)| update_file(path, bytes, args.check, "catalogue"))
}

/// Returns the types that are in k8s-openapi for a minor version of Kubernetes.
fn types(minor: Minor, release: &str) -> Result<Types> {
    let documents = module("kubernetes", &format!("v1.{release}"))?.join("api/openapi-spec/v3");
    let folder = |name: &&'static str| Ok((*name, module(name, &format!("v0.{release}"))?));
    let modules: Vec<_> = go::MODULES.iter().map(folder).collect::<Result<_>>()?;
    let comments = go::Comments::read(&modules)?;
    let mut found = openapi::read_documents(&documents, &comments)?;
    found.notes.extend(cycle::cut_cycles(&mut found.types));
    found.notes.extend(topology::relax_list_keys(&mut found.types));
    for note in &found.notes {
        println!("1.{release}: {note}");
    }
    rust::select_types(minor, found.types)
}

/// Returns the folder of one of the Go modules in `k8s.io`.
fn module(name: &str, version: &str) -> Result<PathBuf> {
    download_module(&format!("k8s.io/{name}@{version}"), &std::env::temp_dir())
}

/// Makes sure that all types can be decoded, and that their first level is the same as in the
/// original.
fn verify(catalogue: &Catalogue<'_>, types: &Types) -> Result<()> {
    for (path, node) in types {
        let schema = catalogue
            .schema(&format!("k8s_openapi::{path}"))
            .with_context(|| format!("`{path}` cannot be read back"))?;
        let properties: Vec<&str> = schema.properties.keys().map(AsRef::as_ref).collect();
        ensure!(
            properties == node.properties.keys().collect::<Vec<_>>()
                && schema.required.len() == node.required.len()
                && schema.description == node.own.description
                && schema.map_type == node.own.map_type,
            "`{path}` is read back as something else"
        );
    }
    Ok(())
}

fn readme(minors: &BTreeMap<Minor, Types>, size: usize) -> Result<String> {
    let mut text = String::from(INTRODUCTION);
    text.push_str("\n| Kubernetes | types | from the Go modules |\n|---|---|---|\n");
    for ((minor, types), (_, release)) in minors.iter().zip(RELEASES) {
        writeln!(
            text,
            "| {minor} | {} | `k8s.io/kubernetes@v1.{release}`, `k8s.io/{{{}}}@v0.{release}` |",
            types.len(),
            go::MODULES.join(",")
        )?;
    }
    writeln!(text, "\n`kubernetes.bin` has {size} bytes.")?;
    Ok(text)
}

const INTRODUCTION: &str = include_str!("README.md.in");
