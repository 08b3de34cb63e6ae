//! Reads a kubebuilder project in Go, i.e. PROJECT, the manifests in config/, and the source.
//!
//! The input is untrusted: symlinks aren't followed, sizes and counts are limited, and an
//! unreadable file is reported rather than fatal.

mod builder;
mod expression;
mod file;
mod format_2;
mod layout;
mod lexer;
mod packages;
mod patches;
mod program;

use anyhow::{Result, bail};
use rbuilder_importer::convert_definition;
use rbuilder_yaml::{describe_cause, describe_failure, is_yaml, parse_documents};
use serde_json::Value;

use rbuilder_project::overlay::Kustomization;
use rbuilder_project::project::{FILE, Project};
use rbuilder_project::tree::Tree;
use rbuilder_project::{overlay, paths, project, tree};

pub use builder::{Builder, GoWatch, OtherCall};
pub use expression::TypeRef;
pub use file::{Function, GoFile, Setting};
pub use layout::FoundDefinition;
pub use patches::Unfollowed;
pub use program::Program;

/// Maximum file size in bytes, and maximum number of files. Some projects have all CRDs in one file
/// of 5 MB.
const MAX_FILE: usize = 16 << 20;
const MAX_FILES: usize = 5_000;

/// A kubebuilder project in Go.
#[derive(Debug)]
pub struct GoProject {
    /// PROJECT, in format 3.
    pub project: Project,
    /// Go module path from `go.mod`, or else from `repo` in PROJECT.
    pub repo: String,
    /// YAML files in config/, by path.
    pub manifests: Vec<Manifests>,
    /// Source files, without tests and generated files.
    pub files: Vec<GoFile>,
    /// Generated source, of which only imports are read.
    generated_files: Vec<GoFile>,
    /// Unreadable files, with reasons.
    pub unread: Vec<(String, String)>,
    /// Parts of kustomizations that weren't applied to `manifests`.
    pub unfollowed: Vec<Unfollowed>,
}

/// A file of manifests.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// Path in the project.
    pub path: String,
    /// Where kubebuilder would have scaffolded the file. Same as `path` in most projects.
    pub place: String,
    /// Text of the file, without patches.
    pub text: String,
    /// Documents, with the patches of the kustomizations that list them.
    pub documents: Vec<Value>,
}

impl GoProject {
    /// Reads the project in a directory.
    ///
    /// # Errors
    /// Fails if PROJECT is missing, isn't version 2 or 3, or belongs to rbuilder, or if there are
    /// too many files.
    pub fn read(tree: &Tree) -> Result<GoProject> {
        let Some(text) = tree.read(FILE)? else {
            bail!(
                "no {FILE} file in {}: expected the directory of a kubebuilder project",
                tree.shown()
            );
        };
        let text = match format_2::to_format_3(&text, tree)? {
            Some(text) => text,
            None => text,
        };
        let project = Project::parse(&text)?;
        match project.foreign_layout() {
            None => bail!(
                "{} is a project of rbuilder: expected one of kubebuilder",
                tree.shown()
            ),
            Some(layout) if !layout.contains("go.kubebuilder.io") => bail!(
                "unsupported layout `{layout}` of the project in {}: expected `go.kubebuilder.io/…`",
                tree.shown()
            ),
            Some(_) => {}
        }
        let mut found = GoProject {
            repo: read_repo(tree, &text)?,
            project,
            manifests: Vec::new(),
            files: Vec::new(),
            generated_files: Vec::new(),
            unread: Vec::new(),
            unfollowed: Vec::new(),
        };
        let paths = tree.find_files(|path| is_yaml(path) || path.ends_with(".go"))?;
        if paths.len() > MAX_FILES {
            bail!(
                "{} has more than {MAX_FILES} files of Go and YAML: pass the directory of the project alone",
                tree.shown()
            );
        }
        for path in &paths {
            found.read_file(tree, path);
        }
        // The order matters: most steps rely on corrections made by earlier ones.
        found.find_domain();
        found.set_places();
        found.read_definitions_elsewhere(tree, &paths);
        found.settle_groups();
        found.settle_domains();
        found.list_kinds_of_other_domains();
        found.apply_patches();
        Ok(found)
    }

    fn read_file(&mut self, tree: &Tree, path: &str) {
        let is_manifest = is_yaml(path) && path.starts_with("config/");
        let is_source = path.ends_with(".go") && !is_generated_or_test(path);
        if !is_manifest && !is_source {
            return;
        }
        let text = match tree.read(path) {
            Ok(Some(text)) if text.len() > MAX_FILE => {
                return self.unread.push((
                    path.to_owned(),
                    format!("it is larger than {} MiB", MAX_FILE >> 20),
                ));
            }
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) => return self.unread.push((path.to_owned(), error.to_string())),
        };
        if is_source && is_marked_generated(&text) {
            return self.generated_files.push(GoFile::parse_imports(path, &text));
        }
        if is_source {
            return self.files.push(GoFile::parse(path, &text));
        }
        match parse_manifests(&text) {
            Ok(documents) => self.manifests.push(Manifests {
                path: path.to_owned(),
                place: path.to_owned(),
                text,
                documents,
            }),
            Err(error) => {
                self.unread.push((path.to_owned(), describe_cause(&error)));
            }
        }
    }

    /// Manifests for a place in kubebuilder's layout.
    pub fn manifest(&self, place: &str) -> Option<&Manifests> {
        self.manifests.iter().find(|file| file.place == place)
    }

    /// Text of the manifests at a path.
    pub fn file_text(&self, path: &str) -> Option<String> {
        let mut files = self.manifests.iter();
        files.find(|file| file.path == path).map(|file| file.text.clone())
    }

    /// The kustomization at a place.
    pub fn kustomization(&self, place: &str) -> Option<Kustomization> {
        let file = self.manifest(place)?;
        Some(Kustomization::of(&file.path, file.documents.first()?))
    }

    /// Documents of a kind with their paths, from all files whose place starts with a prefix.
    pub fn documents<'a>(
        &'a self,
        place: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let files = self
            .manifests
            .iter()
            .filter(move |file| file.place.starts_with(place));
        let documents = files.flat_map(|file| {
            file.documents
                .iter()
                .map(|document| (file.path.as_str(), document))
        });
        documents.filter(move |(_, document)| document["kind"] == kind)
    }
}

/// Parses the documents of a file. `v1beta1` CRDs, which Kubernetes accepted before 1.22, are
/// converted to `v1`.
fn parse_manifests(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let mut documents = parse_documents(text)?;
    for document in &mut documents {
        if let Some(converted) = convert_definition(document) {
            *document = converted;
        }
    }
    Ok(documents)
}

/// Whether the file has Go's standard comment for generated code.
fn is_marked_generated(text: &str) -> bool {
    let mut lines = text.lines().take_while(|line| !line.starts_with("package "));
    lines.any(|line| line.starts_with("// Code generated ") && line.ends_with(" DO NOT EDIT."))
}

fn is_generated_or_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_apart = ["e2e", "test", "testdata", "tests", "hack", "tools"]
        .iter()
        .any(|folder| path.starts_with(&format!("{folder}/")) || path.contains(&format!("/{folder}/")));
    name.ends_with("_test.go") || name.starts_with("zz_generated") || is_apart
}

fn read_repo(tree: &Tree, text: &str) -> Result<String> {
    let all: Value = rbuilder_yaml::parse(text).map_err(|error| describe_failure(FILE, text, &error))?;
    let module = tree.read("go.mod").ok().flatten().unwrap_or_default();
    let module = module.lines().find_map(|line| line.strip_prefix("module "));
    // Strip a comment, e.g. a deprecation.
    let module = module.map(|line| line.split("//").next().unwrap_or_default().trim());
    let module = module
        .map(|module| module.trim_matches('"'))
        .filter(|module| !module.is_empty());
    // `go.mod` takes precedence: imports have to agree with it, whereas PROJECT is rarely updated
    // when a project moves.
    Ok(module.or(all["repo"].as_str()).unwrap_or_default().to_owned())
}
