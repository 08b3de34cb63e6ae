//! Places in an adopted package that `create` adds to and only the user can provide: dependencies,
//! the library, the registering functions, and the start of the manager.

use anyhow::{Result, anyhow, bail};
use rbuilder_generator::Sources;
use toml_edit::Document;

use super::edits::check_module_place;
use crate::edit::{dependency, rust};
use crate::library::choose::choose_library;
use crate::project::{AdoptedPackage, Project};
use crate::render;
use crate::tree::Tree;
use rbuilder_project::library::LibrarySource;

const MANIFEST: &str = "Cargo.toml";
const LIBRARY: &str = "src/lib.rs";

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) types: bool,
    pub(super) controller: bool,
    pub(super) webhooks: bool,
}

impl Parts {
    fn crates(self) -> Vec<&'static str> {
        let mut crates = vec!["k8s-openapi", "kube", "rbuilder"];
        if self.types {
            crates.extend(["schemars", "serde"]);
        }
        if self.controller || self.webhooks {
            crates.extend(["serde_json", "tokio", "tracing"]);
        }
        crates
    }
}

struct Missing {
    /// File and place in it.
    place: String,
    lines: String,
}

/// Checks that an adopted package has the places that a command adds to. The error lists all
/// missing lines by file.
pub(super) fn check_places(tree: &Tree, project: &Project, parts: Parts) -> Result<()> {
    // Scaffolded packages always have these places.
    let Some(package) = &project.known.rbuilder.package else {
        return Ok(());
    };
    let scaffold = Example::of(project, tree)?;
    let runs = parts.controller || parts.webhooks;
    let start = match runs {
        true => find_missing_start(tree, package, project, &scaffold)?,
        false => None,
    };
    let mut crates = parts.crates();
    if start
        .as_ref()
        .is_some_and(|start| start.lines.contains("use clap::"))
    {
        crates.insert(0, "clap");
    }
    let mut missing = find_missing_crates(tree, &scaffold, &crates)?;
    missing.extend(find_missing_modules(tree, package, &scaffold, parts)?);
    missing.extend(start);
    let is_unknown = runs && !package.manager;
    if missing.is_empty() {
        if is_unknown {
            bail!(
                "package `{}` runs rbuilder's manager, but was adopted without it: run `rbuilder init --in-package` first to add probes, metrics and permissions",
                package.name
            );
        }
        return Ok(());
    }
    let list: String = missing.iter().map(Missing::print).collect();
    let again = match is_unknown {
        true => "run `rbuilder init --in-package` and then the command again",
        false => "run the command again",
    };
    Err(anyhow!(
        "package `{}` lacks code that the command has to extend; no files were written\nwrite these lines by hand and {again}:\n{}",
        package.name,
        list.trim_end()
    ))
}

impl Missing {
    fn print(&self) -> String {
        let lines = self.lines.trim_end().lines();
        let indented: String = lines
            .map(|line| match line {
                "" => "\n".to_owned(),
                line => format!("    {line}\n"),
            })
            .collect();
        format!("  {}:\n{indented}", self.place)
    }
}

struct Example(Vec<rbuilder_templates::Rendered>);

impl Example {
    fn of(project: &Project, tree: &Tree) -> Result<Example> {
        let mut project = project.clone();
        if project.known.rbuilder.library.is_none() {
            let choice = choose_library(&LibrarySource::default(), tree.root())?;
            project.known.rbuilder.library = Some(choice.library);
        }
        render::render_stand_ins(&project).map(Example)
    }

    fn text(&self, path: &str) -> &str {
        let file = self.0.iter().find(|file| file.path == path);
        file.map_or("", |file| file.text.as_str())
    }
}

/// Finds dependencies that the manifest lacks, as a new package would declare them.
fn find_missing_crates(tree: &Tree, scaffold: &Example, crates: &[&str]) -> Result<Vec<Missing>> {
    let manifest = match tree.read(MANIFEST) {
        Ok(text) => text.unwrap_or_default(),
        // Cargo.toml may be a symlink, which only `sources` follows.
        Err(error) => match tree.sources([]).text(MANIFEST) {
            Ok(Some(text)) => text.to_string(),
            _ => return Err(error),
        },
    };
    let example = Document::parse(scaffold.text(MANIFEST))?;
    let find_missing = |table: &str, crates: &[&str]| {
        let known = dependency::crate_names(&manifest, &[table]);
        let absent = crates
            .iter()
            .filter(|name| !known.contains(&name.replace('-', "_")));
        let lines: String = absent
            .filter_map(|name| Some((name, example.get(table)?.get(name)?)))
            .map(|(name, source)| format!("{name} = {}\n", source.to_string().trim()))
            .collect();
        (!lines.is_empty()).then(|| Missing {
            place: format!("{MANIFEST}, in `[{table}]`"),
            lines,
        })
    };
    let found = [
        find_missing("dependencies", crates),
        // The feature enables the test kit.
        find_missing("dev-dependencies", &["rbuilder"]),
    ];
    Ok(found.into_iter().flatten().collect())
}

fn find_missing_modules(
    tree: &Tree,
    package: &AdoptedPackage,
    scaffold: &Example,
    parts: Parts,
) -> Result<Vec<Missing>> {
    let library = tree.read(LIBRARY)?;
    if library.is_none() && !package.library.is_empty() {
        bail!(
            "the root of the library of package `{}` is not {LIBRARY}, to which the command adds modules: move it there",
            package.name
        );
    }
    // Webhooks are registered before controllers.
    let main = tree.read(&package.main)?.unwrap_or_default();
    let has_webhooks = rust::calls_register(&main, "webhook");
    let registers = parts.controller || (parts.webhooks && !has_webhooks);
    let modules: Vec<&str> = [("api", parts.types), ("controller", registers)]
        .into_iter()
        .filter_map(|(name, is_wanted)| is_wanted.then_some(name))
        .collect();
    // Ignore parse errors; the library's edit reports them.
    let is_declared = |name: &str| {
        library
            .as_deref()
            .is_some_and(|text| rust::add_module(text, name, true).map_or(true, |edited| edited == text))
    };
    let undeclared = modules.iter().filter(|name| !is_declared(name));
    let lines: String = undeclared.map(|name| format!("pub mod {name};\n")).collect();
    let mut missing = Vec::new();
    if !lines.is_empty() {
        missing.push(Missing {
            place: LIBRARY.to_owned(),
            lines,
        });
    }
    for name in modules {
        let path = format!("src/{name}/mod.rs");
        check_module_place(tree, &path)?;
        if tree.read(&path)?.is_none() {
            missing.push(Missing {
                lines: scaffold.text(&path).to_owned(),
                place: path,
            });
        }
    }
    Ok(missing)
}

fn find_missing_start(
    tree: &Tree,
    package: &AdoptedPackage,
    project: &Project,
    scaffold: &Example,
) -> Result<Option<Missing>> {
    let main = &package.main;
    let text = tree.read(main)?.unwrap_or_default();
    if ["controller", "webhook"]
        .iter()
        .any(|module| rust::calls_register(&text, module))
    {
        return Ok(None);
    }
    let call = format!(
        "let manager = {}::controller::register(manager);",
        render::crate_ident(project)
    );
    Ok(Some(match rust::mentions(&text, "ManagerArgs") {
        true => Missing {
            place: format!("{main}, before the manager is started"),
            lines: call,
        },
        false => Missing {
            place: format!("{main}, to start the manager besides what it does now"),
            lines: scaffold.text(main).to_owned(),
        },
    }))
}
