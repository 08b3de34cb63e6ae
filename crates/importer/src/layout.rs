//! Files and modules. Each version has a folder, inside a folder for its group if there are several
//! groups.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::crd::is_crd;
use serde_json::Value;

use crate::Diagnostic;
use crate::classes::{Classes, Use};
use crate::definition::Definition;
use crate::file::Module;
use crate::recognize::KubernetesTypes;
use crate::repeated::merge_repeated;
use crate::shared_file::{SharedFile, module_path};
use crate::sharing::{SharedType, find_shared};
use crate::words::{folder_name, module_name};
use rbuilder_catalogue::Minor;

/// A Rust source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path in the folder of the types, e.g. `v1/certificate.rs`.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// A folder of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFolder {
    /// Path in the folder of the types. Empty for that folder itself.
    pub path: String,
    /// Names of the modules, sorted.
    pub modules: Vec<String>,
    /// Content of `mod.rs` if there is none yet.
    pub text: String,
}

/// The types for several definitions. There are no files if the diagnostics contain an error.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Source files sorted by path, one per version of a kind.
    pub files: Vec<SourceFile>,
    /// Folders that declare them as modules, sorted by path.
    pub folders: Vec<ModuleFolder>,
    /// Errors, and warnings for everything that could not be preserved.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parsed definitions. They take less memory than the original documents.
#[derive(Debug, Default)]
pub struct Definitions {
    read: Vec<Definition>,
    diagnostics: Vec<Diagnostic>,
}

impl Definitions {
    /// Reads a document if it is a definition, and ignores it otherwise.
    pub fn add(&mut self, document: Value) {
        if !is_crd(&document) {
            return;
        }
        match Definition::read(document, &mut self.diagnostics) {
            Ok(definition) => self.read.push(definition),
            Err(error) => self.diagnostics.push(error),
        }
    }

    /// Whether none of the documents was a definition.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.diagnostics.is_empty()
    }

    /// Writes the types of all versions. For the parameters, see
    /// [`import_definitions`](crate::import_definitions).
    pub fn import(&self, minor: Minor, shares: bool) -> Imported {
        import(self, minor, shares)
    }
}

fn import(read: &Definitions, minor: Minor, shares: bool) -> Imported {
    let mut diagnostics = read.diagnostics.clone();
    let mut definitions: Vec<&Definition> = read.read.iter().collect();
    definitions.sort_by(|a, b| (&a.group, &a.names.kind).cmp(&(&b.group, &b.names.kind)));
    check_duplicates(&definitions, &mut diagnostics);
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
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    let mut modules = Vec::new();
    let mut places = Vec::new();
    for definition in definitions {
        for version in &definition.versions {
            modules.push(Module::new(definition, version, &kubernetes));
            let group = (groups.len() > 1).then(|| folder_name(&definition.group));
            let steps: Vec<String> = group.into_iter().chain([folder_name(&version.name)]).collect();
            register(&steps, definition, &version.name, &mut folders);
            places.push((steps.join("/"), module_name(&definition.names.kind)));
        }
    }
    let shared = if shares {
        share(&mut modules, &places)
    } else {
        Vec::new()
    };
    let mut files = BTreeMap::new();
    for (module, (folder, name)) in modules.iter_mut().zip(&places) {
        module.finish();
        diagnostics.extend(module.warnings());
        declare(&mut folders, folder, name);
        files.insert(format!("{folder}/{name}.rs"), module.print());
    }
    let shared_folders: BTreeSet<&str> = shared.iter().map(|shared| shared.folder.as_str()).collect();
    for folder in shared_folders {
        declare(&mut folders, folder, SHARED);
        let path = format!("{folder}/{SHARED}.rs");
        let text = SharedFile::new(folder, &modules, &shared).print();
        files.insert(path.trim_start_matches('/').to_owned(), text);
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
        diagnostics: merge_repeated(diagnostics),
    }
}

const SHARED: &str = "shared";

fn share(modules: &mut [Module<'_>], places: &[(String, String)]) -> Vec<SharedType> {
    let files: Vec<(&str, &Classes<'_>)> = modules
        .iter()
        .zip(places)
        .map(|(module, (folder, _))| (folder.as_str(), &module.classes))
        .collect();
    let found = find_shared(&files);
    for shared in &found {
        // The description of a type depends on all of its uses, including those in other files.
        let uses = shared.uses().iter();
        let uses: Vec<Use> = uses
            .flat_map(|(file, id)| modules[*file].classes.list[*id].uses.clone())
            .collect();
        for (file, id) in shared.uses() {
            let path = module_path(&places[*file].0, &shared.folder);
            modules[*file].classes.list[*id].uses.clone_from(&uses);
            modules[*file].share(*id, &path);
        }
    }
    found
}

fn declare(folders: &mut BTreeMap<String, Folder>, folder: &str, module: &str) {
    let folder = folders.entry(folder.to_owned()).or_default();
    folder.modules.insert(module.to_owned());
}

fn check_duplicates(definitions: &[&Definition], diagnostics: &mut Vec<Diagnostic>) {
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

#[derive(Default)]
struct Folder {
    doc: String,
    modules: BTreeSet<String>,
}

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
