//! `rbuilder types`: generates Rust types from CRDs, from which `rbuilder manifests` generates the
//! same CRDs again.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use rbuilder_importer::{Definitions, Diagnostic, Imported, ModuleFolder};
use rbuilder_kubernetes::crd::is_crd;
use rbuilder_yaml::{describe_cause, describe_failure, list_items};
use serde_json::{Value, json};

use super::edits::edit_file;
use super::{Outcome, execute, kubernetes};
use crate::edit::rust;
use crate::edit::selection::has_only;
use crate::flags::{Output, TypesFlags};
use crate::plan::Plan;
use crate::project::Project;
use crate::render::project_context;
use crate::shell::Shell;
use crate::tree::{Tree, check_relative, read_inputs, typed_path};

pub(super) fn run(dir: &Path, flags: &TypesFlags, shell: &mut Shell) -> Result<u8> {
    let mut warnings = Vec::new();
    let mut definitions = Definitions::default();
    for_each_definition(dir, &flags.files, &mut warnings, &mut |document| {
        definitions.add(document);
    })?;
    if flags.stdout {
        let imported = import(&definitions, &Tree::new(dir), flags)?;
        print(&imported, &warnings, flags.plan.output, shell);
        return Ok(0);
    }
    execute("types", dir, flags.plan.mode(), shell, &mut |tree| {
        plan_types(tree, flags, &definitions, &warnings)
    })
}

fn plan_types(
    tree: &Tree,
    flags: &TypesFlags,
    definitions: &Definitions,
    warnings: &[String],
) -> Result<Outcome> {
    let imported = import(definitions, tree, flags)?;
    let folder = typed_path(&flags.into.to_string_lossy());
    let folder = folder.trim_end_matches('/');
    check_relative(folder)?;
    let mut plan = Plan::default();
    for file in &imported.files {
        plan.put_owned(tree, &format!("{folder}/{}", file.path), &file.text, flags.force)?;
    }
    for modules in &imported.folders {
        add_modules(&mut plan, tree, folder, modules)?;
    }
    let mut outcome = Outcome {
        plan,
        ..Outcome::default()
    };
    for warning in warnings {
        outcome.warn(warning, "pass the files with definitions only");
    }
    for diagnostic in &imported.diagnostics {
        outcome.warn(&message(diagnostic), help(diagnostic));
    }
    Ok(outcome.with_next(&next_steps(tree, folder)?))
}

/// Declares modules in the `mod.rs` of their directory, which may also declare others.
fn add_modules(plan: &mut Plan, tree: &Tree, folder: &str, modules: &ModuleFolder) -> Result<()> {
    let path = match modules.path.as_str() {
        "" => format!("{folder}/mod.rs"),
        below => format!("{folder}/{below}/mod.rs"),
    };
    if plan.read(tree, &path)?.is_none() {
        return plan.replace(tree, &path, &modules.text);
    }
    for name in &modules.modules {
        edit_file(plan, tree, &path, &format!("pub mod {name};"), |text| {
            rust::add_module(text, name, true)
        })?;
    }
    Ok(())
}

fn import(definitions: &Definitions, tree: &Tree, flags: &TypesFlags) -> Result<Imported> {
    let minor = flags
        .kubernetes
        .unwrap_or_else(|| kubernetes::find_project_minor(tree));
    let imported = definitions.import(minor, flags.share);
    let errors: Vec<String> = imported
        .diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(message)
        .collect();
    match errors.as_slice() {
        [] => add_header(imported, tree),
        errors => Err(anyhow!(
            "cannot import the definitions:\n  {}",
            errors.join("\n  ")
        )),
    }
}

fn add_header(mut imported: Imported, tree: &Tree) -> Result<Imported> {
    let Some(project) = Project::read(tree)? else {
        return Ok(imported);
    };
    let header = project_context(&project).rust_header;
    let files = imported.files.iter_mut().map(|file| &mut file.text);
    let modules = imported.folders.iter_mut().map(|folder| &mut folder.text);
    files.chain(modules).for_each(|text| text.insert_str(0, &header));
    Ok(imported)
}

pub(super) fn read_definitions(
    dir: &Path,
    files: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for_each_definition(dir, files, warnings, &mut |document| definitions.push(document))?;
    Ok(definitions)
}

/// Calls a function with each definition in the files, in file order. Only one file's documents are
/// in memory.
fn for_each_definition(
    dir: &Path,
    files: &[PathBuf],
    warnings: &mut Vec<String>,
    take: &mut dyn FnMut(Value),
) -> Result<()> {
    let mut is_any = false;
    for typed in files {
        for file in read_inputs(dir, typed)? {
            if !file.text.contains("CustomResourceDefinition") {
                continue;
            }
            match rbuilder_yaml::parse_values(&file.text) {
                Ok(documents) => {
                    let items = documents.into_iter().flat_map(list_items);
                    for definition in items.filter(is_crd) {
                        is_any = true;
                        take(definition);
                    }
                }
                Err(error) if file.is_named => return Err(describe_failure(&file.path, &file.text, &error)),
                // A directory may contain chart templates next to definitions.
                Err(error) => warnings.push(format!("skipping {}: {}", file.path, describe_cause(&error))),
            }
        }
    }
    if !is_any {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        bail!("no CustomResourceDefinition in {}", names.join(", "));
    }
    Ok(())
}

fn print(imported: &Imported, warnings: &[String], output: Output, shell: &mut Shell) {
    if output == Output::Json {
        let files: Vec<Value> = imported
            .files
            .iter()
            .map(|file| json!({ "path": file.path, "content": file.text }))
            .collect();
        let found: Vec<String> = warnings
            .iter()
            .cloned()
            .chain(imported.diagnostics.iter().map(message))
            .collect();
        let answer = json!({ "command": "types", "files": files, "diagnostics": found });
        return shell.out(&format!("{answer:#}\n"));
    }
    for warning in warnings {
        shell.warning(warning);
    }
    for diagnostic in &imported.diagnostics {
        shell.warning(&message(diagnostic));
    }
    for file in &imported.files {
        if imported.files.len() > 1 {
            shell.out(&format!("// {}\n", file.path));
        }
        shell.out(&file.text);
    }
}

pub(super) fn message(diagnostic: &Diagnostic) -> String {
    format!("{}: {}", diagnostic.place, diagnostic.message)
}

pub(super) fn help(diagnostic: &Diagnostic) -> &str {
    diagnostic
        .help
        .as_deref()
        .unwrap_or("compare the definition with the one that `rbuilder manifests` generates")
}

fn next_steps(tree: &Tree, folder: &str) -> Result<String> {
    let (above, module) = folder.rsplit_once('/').unwrap_or(("", folder));
    let mut is_declared = false;
    for name in ["lib.rs", "main.rs", "mod.rs"] {
        let text = tree.read(&format!("{above}/{name}"))?.unwrap_or_default();
        is_declared |= text.contains(&format!("mod {module};"));
    }
    let declare = match is_declared {
        true => String::new(),
        false => format!("declare `pub mod {module};` beside {folder}, then "),
    };
    let lists_kinds = tree.read("Cargo.toml")?.is_some_and(|text| has_only(&text));
    let choice = match lists_kinds {
        true => "To generate their CRDs as well, add the kinds to `only` in `[package.metadata.rbuilder]`.",
        false => {
            "`rbuilder manifests` generates their CRDs as well; list kinds that other projects install in `skip` of \
             `[package.metadata.rbuilder]`."
        }
    };
    Ok(format!("Next: {declare}run:\n  cargo check\n{choice}\n"))
}
