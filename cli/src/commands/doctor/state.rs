//! Checks the state of the project: versions, manifests, and scaffolded files.

use std::cmp::Ordering;
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum as _;
use rbuilder_diagnostic::suggest::list_names;
use rbuilder_generator::{Code, Diagnostic, versions};
use rbuilder_templates::Archive;
use serde_json::Value;
use toml_edit::{Document, Item};

use super::Finding;
use super::config::examine_config;
use super::files::{examine_conflicts, examine_files, find_deleted_module, list_paths};
use super::shards::examine_replicas;
use super::tools::Needs;
use crate::commands::cli_version::{VERSION, advise_installation, compare_versions};
use crate::commands::generated_merge::{CHART, DASHBOARDS, Product};
use crate::commands::kubernetes::find_project_minor;
use crate::commands::manifests::{self, SourceErrors};
use crate::commands::scaffold_merge::Written;
use crate::commands::update::{compare_scaffold, describe_name_change};
use crate::commands::{Outcome, grafana, helm, library, scaffold};
use crate::engine::{Mode, Output};
use crate::flags::License;
use crate::plan::Plan;
use crate::project::{FILE, Project, RECORD};
use crate::render::{Scaffold, render};
use crate::request::{ProductMergeRequest, ProductRequest};
use crate::tree::Tree;

const MANIFEST: &str = "Cargo.toml";

/// Determines which tool versions the project needs, and problems with its files.
pub(super) fn examine_project(tree: &Tree) -> (Needs, Vec<Finding>) {
    let needs = Needs {
        rust: read_rust_version(tree).unwrap_or_else(|| versions::RUST.to_owned()),
        kubernetes: find_project_minor(tree),
    };
    let project = match scaffold::require_project(tree) {
        Ok(project) => project,
        Err(error) => {
            let help = match tree.read(FILE) {
                // Commands write this record together with PROJECT, so PROJECT must have been
                // deleted.
                Ok(None) if matches!(tree.read(RECORD), Ok(Some(_))) => {
                    "restore it: `git checkout HEAD -- PROJECT`"
                }
                Ok(None) => "without PROJECT, run `rbuilder manifests --check`",
                Ok(Some(text)) if matches!(Project::parse_own(&text), Ok(None)) => {
                    "without a PROJECT file of rbuilder, run `rbuilder manifests --check`"
                }
                _ => "correct PROJECT, or restore it: `git checkout HEAD -- PROJECT`",
            };
            return (needs, vec![Finding::error("project", format!("{error:#}"), help)]);
        }
    };
    let examine = |check, findings: Result<Vec<Finding>>| {
        findings.unwrap_or_else(|error| {
            let is_system = error.chain().any(|cause| cause.is::<std::io::Error>());
            let help = match is_system {
                true => "check the type and the permissions of the file",
                false => "",
            };
            vec![Finding::error(check, format!("{error:#}"), help)]
        })
    };
    let (scaffold, examined) = match render(&project, None) {
        Ok(scaffold) => (Some(scaffold), examine_version(tree, &project)),
        Err(error) => {
            let message = format!("`rbuilder update` cannot use PROJECT: {error:#}");
            let help = "correct PROJECT; `git diff PROJECT` shows what was changed by hand";
            (None, vec![Finding::warning("project", message, help)])
        }
    };
    let scaffold = scaffold.as_ref();
    let written = Written::find(tree, &project, Archive::embedded()).ok();
    let mut findings = examine_keys(&project);
    findings.extend(examined);
    if let Ok(Some(change)) = describe_name_change(tree, &project) {
        findings.push(Finding::error("project", change, ""));
    }
    // Don't report consequences of a missing Cargo.toml.
    let is_package = !matches!(tree.read(MANIFEST), Ok(None));
    if is_package {
        findings.extend(examine("library", examine_library(tree, &project)));
    } else {
        let command = scaffold.and_then(|scaffold| scaffold.restore_command(MANIFEST));
        let help = match command {
            Some(command) => format!("restore it with {command}"),
            None => format!("restore it: `git checkout HEAD -- {MANIFEST}`"),
        };
        findings.push(Finding::error(
            "library",
            format!("{MANIFEST} does not exist"),
            help,
        ));
    }
    findings.extend(examine(
        "scaffold",
        examine_files(tree, &project, written.as_ref()),
    ));
    findings.extend(examine("conflicts", examine_conflicts(tree, &project)));
    findings.extend(examine("config", examine_config(tree, &project, scaffold)));
    findings.extend(examine_replicas(tree));
    if is_package {
        findings.push(examine_manifests(tree, scaffold));
    }
    findings.extend(examine("samples", examine_samples(tree)));
    findings.extend(examine("roles", examine_roles(tree, &project)));
    findings.extend(examine_products(tree));
    (needs, findings)
}

fn read_rust_version(tree: &Tree) -> Option<String> {
    let text = tree.read("Cargo.toml").ok()??;
    let manifest = Document::parse(text).ok()?;
    let key = |table: Option<&Item>| Some(table?.get("package")?.get("rust-version")?.as_str()?.to_owned());
    // `rust-version.workspace = true` inherits the value.
    key(Some(manifest.as_item())).or_else(|| key(manifest.get("workspace")))
}

fn examine_version(tree: &Tree, project: &Project) -> Vec<Finding> {
    let known = project.cli_version().unwrap_or_default();
    let finding = match compare_versions(known, VERSION) {
        Some(Ordering::Equal | Ordering::Less) => return examine_age(tree, known),
        Some(Ordering::Greater) => Finding::error(
            "project",
            format!("scaffolded by rbuilder {known}, which is newer than this command ({VERSION})"),
            advise_installation(project, known),
        ),
        None => Finding::error(
            "project",
            format!(
                "`cliVersion` in {FILE} is `{}`, not a version",
                known.escape_debug()
            ),
            format!("set it to the version that scaffolded the project, for example `{VERSION}`"),
        ),
    };
    vec![finding]
}

/// Compares the project's scaffold with the current one. Comparing versions isn't enough, because
/// builds of the same version may differ.
fn examine_age(tree: &Tree, known: &str) -> Vec<Finding> {
    // Fails, e.g., after an earlier update left conflicts, which another check reports.
    let Ok(comparison) = compare_scaffold(tree, Archive::embedded()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let version = match known == VERSION {
        true => format!("scaffolded by rbuilder {known}, the version of this command"),
        false => format!("scaffolded by rbuilder {known}; this command has version {VERSION}"),
    };
    if !comparison.outdated.is_empty() {
        findings.push(Finding::warning(
            "project",
            format!(
                "{version}, which scaffolds other text: {}",
                list_paths(&comparison.outdated)
            ),
            "run `rbuilder update` to bring the scaffold up to date",
        ));
    }
    if !comparison.unknown.is_empty() {
        findings.push(Finding::warning(
            "project",
            format!(
                "`rbuilder update` cannot bring files up to date that were edited, because the project does not record as what they were scaffolded: {}",
                list_paths(&comparison.unknown)
            ),
            "run `rbuilder update` to see what to do",
        ));
    }
    if findings.is_empty() {
        findings.push(match known == VERSION {
            true => Finding::good("project", format!("{version}, and as it scaffolds today")),
            false => Finding::warning(
                "project",
                version,
                "run `rbuilder update` to bring the scaffold up to date",
            ),
        });
    }
    findings
}

fn examine_keys(project: &Project) -> Vec<Finding> {
    let keys = project.misspelled_keys().into_iter();
    let mut findings: Vec<Finding> = keys
        .map(|key| {
            let message = format!("unknown key `{}` in {FILE}", key.path.escape_debug());
            Finding {
                code: Code::of_message(&message).map(|code| code.id),
                ..Finding::warning("project", message, format!("did you mean `{}`?", key.meant))
            }
        })
        .collect();
    let license = &project.known.rbuilder.license;
    let known: Vec<&str> = License::value_variants()
        .iter()
        .map(|known| known.name())
        .collect();
    if !license.is_empty() && !known.contains(&license.as_str()) {
        let message = format!("unknown license `{}` in {FILE}", license.escape_debug());
        let help = format!("choose one with `rbuilder edit --license`: {}", list_names(known));
        findings.push(Finding::warning("project", message, help));
    }
    findings
}

fn examine_library(tree: &Tree, project: &Project) -> Result<Vec<Finding>> {
    let known = &project.known.rbuilder;
    if known.package.is_some() && known.library.is_none() {
        let message =
            "the adopted package does not depend on it, so it has no markers for roles and webhooks";
        return Ok(vec![Finding::good("library", message)]);
    }
    let (source, outcome) = library::describe(tree)?;
    let key = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut findings: Vec<Finding> = outcome
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let part = |name: &str| diagnostic[name].as_str().unwrap_or_default();
            Finding::warning("library", part("message"), part("help"))
        })
        .collect();
    findings.push(match key("form") {
        "path" => {
            let path = key("path");
            match tree.root().join(Path::new(path)).join("Cargo.toml").is_file() {
                true => Finding::good(
                    "library",
                    format!("from {path}, so the project builds on this machine only"),
                ),
                false => Finding::error(
                    "library",
                    format!("{path} does not contain the library"),
                    "choose another source with `rbuilder library --set <version|git|path>`",
                ),
            }
        }
        "version" if key("version") != VERSION => Finding::warning(
            "library",
            format!("version {}; this command has version {VERSION}", key("version")),
            "run `rbuilder update` or `rbuilder library --set version`",
        ),
        "version" => Finding::good(
            "library",
            format!("version {VERSION}, the version of this command"),
        ),
        _ => Finding::good(
            "library",
            format!("from {} at `{}`, not checked", key("git"), key("rev")),
        ),
    });
    Ok(findings)
}

/// Generates the manifests and compares them, like `rbuilder manifests --check`.
fn examine_manifests(tree: &Tree, scaffold: Option<&Scaffold>) -> Finding {
    let mut plan = Plan::default();
    let request = manifests::Request::default();
    let help = "run `rbuilder manifests` to see all errors";
    match manifests::add_to_plan(&mut plan, tree, &request) {
        Ok(found) if found.failure().is_some() => {
            let first = found.first_error();
            let message = first.map(describe_diagnostic).unwrap_or_default();
            Finding::error("manifests", message, help).with_code(first)
        }
        Ok(found) if plan.is_empty() => match found.warnings().as_slice() {
            [] => Finding::good("manifests", "up to date"),
            [first, rest @ ..] => Finding::warning(
                "manifests",
                match rest.len() {
                    0 => format!("up to date, with a warning: {}", describe_diagnostic(first)),
                    more => format!(
                        "up to date, with {} warnings, the first: {}",
                        more + 1,
                        describe_diagnostic(first)
                    ),
                },
                "run `rbuilder manifests` for details",
            )
            .with_code(Some(first)),
        },
        Ok(_) => {
            let paths: Vec<String> = plan.changes().keys().cloned().collect();
            Finding::warning(
                "manifests",
                format!("not up to date: {}", list_paths(&paths)),
                "run `rbuilder manifests`",
            )
        }
        Err(error) => {
            let source = error.downcast_ref::<SourceErrors>();
            let first = source.and_then(|source| {
                source
                    .diagnostics
                    .iter()
                    .find(|diagnostic| diagnostic["severity"] == "error")
            });
            let message = match first {
                Some(first) => describe_diagnostic(first),
                None => format!("{error:#}"),
            };
            let module = first.and_then(|first| find_missing_module(&first["message"]));
            let restore = module
                .zip(scaffold)
                .and_then(|(module, scaffold)| find_deleted_module(tree, scaffold, module).ok().flatten());
            Finding::error("manifests", message, restore.unwrap_or_else(|| help.to_owned())).with_code(first)
        }
    }
}

fn find_missing_module(message: &Value) -> Option<&str> {
    let name = message.as_str()?.strip_prefix("file not found for module `")?;
    name.strip_suffix('`')
}

fn examine_samples(tree: &Tree) -> Result<Vec<Finding>> {
    let refused = manifests::find_refused_before(&Plan::default(), tree)?;
    Ok(to_findings("samples", &refused))
}

/// Checks that resources in scaffolded roles exist, and that generated roles are bound.
fn examine_roles(tree: &Tree, project: &Project) -> Result<Vec<Finding>> {
    let mut found = manifests::find_stale_roles(tree, project)?;
    found.extend(manifests::find_unbound_roles(tree)?);
    Ok(to_findings("roles", &found))
}

/// Compares the chart and the dashboards, if any, with the current output of their commands. If one
/// can't be generated, other checks or the command itself report why.
fn examine_products(tree: &Tree) -> Vec<Finding> {
    let merge = ProductMergeRequest {
        check: true,
        no_conflicts: false,
        force: false,
        mode: Mode {
            dry_run: true,
            output: Output::Text,
        },
    };
    let requested = ProductRequest {
        merge,
        manifests: false,
    };
    // The bundle can't be compared, because it depends on options that aren't recorded.
    let chart = examine_product(tree, CHART, "chart", || helm::plan_helm(tree, &requested));
    let dashboards = examine_product(tree, DASHBOARDS, "dashboards", || {
        grafana::plan_grafana(tree, &merge)
    });
    chart.into_iter().chain(dashboards).collect()
}

fn examine_product(
    tree: &Tree,
    product: Product,
    check: &'static str,
    make: impl FnOnce() -> Result<Outcome>,
) -> Option<Finding> {
    let is_there = matches!(tree.read(product.base), Ok(Some(_)));
    let outcome = is_there.then(make)?.ok()?;
    if outcome.plan.is_empty() {
        return Some(Finding::good(check, "up to date"));
    }
    let paths: Vec<String> = outcome.plan.changes().keys().cloned().collect();
    let message = format!("not up to date: {}", list_paths(&paths));
    let help = format!("run `rbuilder {}`", product.command);
    Some(Finding::warning(check, message, help))
}

fn to_findings(check: &'static str, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let describe = |said: &Diagnostic| {
        let help = said.help.clone().unwrap_or_default();
        Finding {
            code: Code::of_message(&said.message).map(|code| code.id),
            ..Finding::warning(check, format!("{}: {}", said.place.path, said.message), help)
        }
    };
    diagnostics.iter().map(describe).collect()
}

impl Finding {
    /// Sets the code of the diagnostic that the message repeats.
    fn with_code(self, diagnostic: Option<&Value>) -> Finding {
        let id = diagnostic.and_then(|diagnostic| diagnostic["code"].as_str());
        Finding {
            code: id.and_then(Code::of_id).map(|code| code.id),
            ..self
        }
    }
}

fn describe_diagnostic(diagnostic: &Value) -> String {
    format!(
        "{}:{}: {}",
        diagnostic["path"].as_str().unwrap_or_default(),
        diagnostic["start"]["line"],
        diagnostic["message"].as_str().unwrap_or_default()
    )
}
