//! Files and modules: a folder for each version, in a folder for each group where there are several.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Diagnostic;
use crate::definition::{Definition, is_definition};
use crate::file::Module;
use crate::recognize::KubernetesTypes;
use crate::words::{folder_name, module_name};
use rbuilder_catalogue::Minor;

/// A file of Rust source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path below the folder of the types: `v1/certificate.rs`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// A folder of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFolder {
    /// Its path below the folder of the types; empty for that folder itself.
    pub path: String,
    /// The modules in it, sorted.
    pub modules: Vec<String>,
    /// The text of its `mod.rs`, where there is none yet.
    pub text: String,
}

/// The types of definitions. With an error among the diagnostics there are no files.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The files of types, by path: one for each version of a kind.
    pub files: Vec<SourceFile>,
    /// The folders that declare them as modules, by path.
    pub folders: Vec<ModuleFolder>,
    /// Errors, and a warning for each thing that could not be kept.
    pub diagnostics: Vec<Diagnostic>,
}

pub(crate) fn import(documents: &[Value], minor: Minor) -> Imported {
    let mut diagnostics = Vec::new();
    let mut definitions: Vec<Definition> = Vec::new();
    for document in documents.iter().filter(|document| is_definition(document)) {
        match Definition::read(document, &mut diagnostics) {
            Ok(definition) => definitions.push(definition),
            Err(error) => diagnostics.push(error),
        }
    }
    definitions.sort_by(|a, b| (&a.group, &a.names.kind).cmp(&(&b.group, &b.names.kind)));
    check_twice(&definitions, &mut diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Imported {
            diagnostics,
            ..Imported::default()
        };
    }
    let kubernetes = KubernetesTypes::new(minor);
    let groups: BTreeSet<&str> = definitions
        .iter()
        .map(|definition| definition.group.as_str())
        .collect();
    let mut files = BTreeMap::new();
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    for definition in &definitions {
        for version in &definition.versions {
            let module = Module::new(definition, version, &kubernetes);
            let group = (groups.len() > 1).then(|| folder_name(&definition.group));
            let name = module_name(&definition.names.kind);
            let steps: Vec<String> = group.into_iter().chain([folder_name(&version.name)]).collect();
            register(&steps, definition, &version.name, &mut folders);
            let folder = steps.join("/");
            diagnostics.extend(module.warnings());
            folders
                .entry(folder.clone())
                .or_default()
                .modules
                .insert(name.clone());
            files.insert(format!("{folder}/{name}.rs"), module.print());
        }
    }
    let files = files.into_iter().map(|(path, text)| SourceFile { path, text });
    let folders = folders.into_iter().map(|(path, folder)| ModuleFolder {
        path,
        text: folder.print(),
        modules: folder.modules.into_iter().collect(),
    });
    Imported {
        files: files.collect(),
        folders: folders.collect(),
        diagnostics,
    }
}

fn check_twice(definitions: &[Definition], diagnostics: &mut Vec<Diagnostic>) {
    for pair in definitions.windows(2) {
        if let [a, b] = pair
            && (&a.group, &a.names.kind) == (&b.group, &b.names.kind)
        {
            let at = format!("{}.{}", b.names.plural, b.group);
            let error = Diagnostic::error(at, format!("duplicate definition of the kind `{}`", b.names.kind));
            diagnostics.push(error.help("pass one definition for each kind"));
        }
    }
}

/// A folder of modules.
#[derive(Default)]
struct Folder {
    doc: String,
    /// The modules in it, by name.
    modules: BTreeSet<String>,
}

/// Notes the folders on the way to a version.
fn register(
    steps: &[String],
    definition: &Definition,
    version: &str,
    folders: &mut BTreeMap<String, Folder>,
) {
    let mut path = String::new();
    for (depth, step) in steps.iter().enumerate() {
        let folder = folders.entry(path.clone()).or_default();
        folder.modules.insert(step.clone());
        if folder.doc.is_empty() {
            folder.doc = match depth {
                0 => "API types of custom resources, generated from their definitions by `rbuilder types`."
                    .to_owned(),
                _ => format!("The {} API group.", definition.group),
            };
        }
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(step);
    }
    let doc = format!("Version {version} of the {} API group.", definition.group);
    folders.entry(path).or_default().doc = doc;
}

impl Folder {
    fn print(&self) -> String {
        let mut text = format!("//! {}\n\n", self.doc);
        for module in &self.modules {
            text += &format!("pub mod {};\n", crate::words::identifier(module));
        }
        text
    }
}
