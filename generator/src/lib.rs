//! Source text to Kubernetes manifests: `generate` is the whole journey on one screen.
//!
//! This crate reads no file, no clock and no environment: text comes in as a [`SourceSet`], text goes out as
//! [`OutputFile`]s. Broken user code is ordinary input: it makes diagnostics, never a panic.

mod cargo;
mod collect;
mod crd;
mod kubernetes;
mod lexer;
mod package;
pub mod rbac;
mod report;
mod resolve;
mod schemas;
mod webhook;
pub mod yaml;

use std::collections::BTreeMap;
use std::ops::Range;

pub use rbuilder_syntax::Severity;

use report::Report;

/// The text of a Cargo package: its `Cargo.toml` and every `.rs` file, by path relative to the package,
/// with `/` between folders.
#[derive(Clone, Debug, Default)]
pub struct SourceSet {
    files: BTreeMap<String, String>,
}

impl SourceSet {
    /// Adds one file.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.insert(path.into(), text.into());
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The text of one file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }
}

/// What can be chosen about the output.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the ClusterRole, and of Roles whose marker names none.
    pub role_name: String,
    /// Cargo features that count as on when `cfg(feature = "…")` is evaluated, beside the default ones.
    pub features: Vec<String>,
    /// Value of the version annotation on CRDs; nothing leaves the annotation out.
    pub version: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            role_name: "manager-role".into(),
            features: Vec::new(),
            version: None,
        }
    }
}

/// One manifest: path relative to the project's `config` folder, and its final bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// `crd/bases/<group>_<plural>.yaml`, `rbac/role.yaml`, `webhook/manifests.yaml`.
    pub path: String,
    /// What the file holds.
    pub text: String,
}

/// A complaint about a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as named in the [`SourceSet`].
    pub path: String,
    /// The bytes it is about.
    pub range: Range<usize>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, a phrase.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// What `generate` found and made. With an error among the diagnostics there are no files.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The manifests, by path.
    pub files: Vec<OutputFile>,
    /// Everything to be said, sorted by place, without duplicates.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the kinds and markers of a package and writes its manifests.
pub fn generate(sources: &SourceSet, options: &Options) -> Generated {
    let mut report = Report::default();
    let files = manifests(sources, options, &mut report);
    let files = if report.has_errors() { Vec::new() } else { files };
    Generated {
        files,
        diagnostics: report.into_sorted(),
    }
}

/// Errors are collected within a stage; a stage that cannot go on hands nothing to the next.
fn manifests(sources: &SourceSet, options: &Options, report: &mut Report) -> Vec<OutputFile> {
    let manifest = match cargo::read(sources, &options.features) {
        Ok(manifest) => manifest,
        Err(problem) => {
            report.push(problem);
            return Vec::new();
        }
    };
    let package = collect::collect(sources, manifest, report);
    let mut files = crd::crd_files(&package, options, report);
    files.extend(rbac::roles_file(&package.rules, &options.role_name));
    files.extend(webhook::manifests_file(&package, report));
    files
}
