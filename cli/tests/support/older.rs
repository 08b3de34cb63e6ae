//! Invents an older version of rbuilder, with the current templates. Some of them have an earlier
//! form.
#![allow(dead_code, clippy::disallowed_methods)] // the tests change files on disk

use std::path::Path;
use std::sync::LazyLock;

use clap::Parser;
use rbuilder_cli::commands::{rebuild_files, run_update};
use rbuilder_cli::flags::{Cli, Command};
use rbuilder_cli::shell::Shell;
use rbuilder_project::project::{BASE, RECORD, ScaffoldBase};
use rbuilder_project::tree::Tree;
use rbuilder_templates::{Archive, OnExists, Release, Template, TemplateSet, Versions};

use crate::support::{Folder, Ran, Sink};

pub(crate) const OLDER: &str = "0.0.8";
/// Between the older version and today's. Its Makefile differs from both.
pub(crate) const BETWEEN: &str = "0.0.9";

/// Parts of templates, with their current text and their older text.
const CHANGES: &[(&str, &str, &str)] = &[
    (
        "init/Makefile.tera",
        "# Container tool: docker or podman.\n",
        "# Container tool.\n",
    ),
    ("init/Makefile.tera", "KIND ?= kind\n", "KIND ?= kind\nOLD ?= 1\n"),
    ("init/Cargo.toml.tera", "lto = \"thin\"\n", ""),
    (
        "init/src/main.rs.tera",
        "/// Name of the Lease for leader election.\n",
        "/// Name of the Lease.\n",
    ),
    (
        "init/src/controller/mod.rs.tera",
        "/// Registers all controllers. The manager itself needs to create events.\n",
        "/// Registers all controllers.\n",
    ),
    (
        "init/config/default/kustomization.yaml.tera",
        "# Optional components. `rbuilder edit --enable` and `--disable` turn them on and off, and so does uncommenting or\n# commenting a line.\n",
        "# Optional components.\n",
    ),
    (
        "init/config/default/kustomization.yaml.tera",
        "# A ServiceMonitor; requires the Prometheus Operator.\n",
        "# A ServiceMonitor.\n",
    ),
    (
        "init/config/default/kustomization.yaml.tera",
        "# NetworkPolicies that allow access to metrics only from namespaces with the label `metrics: enabled`.\n",
        "# NetworkPolicies.\n",
    ),
    (
        "api/types.rs.tera",
        "    // Add the fields of the desired state here, then run `make manifests` to update the CRD.\n",
        "    // Add fields here.\n",
    ),
    (
        "webhook/src/webhook.rs.tera",
        "/// Returns the webhooks for the manager.\n",
        "/// Returns the webhooks.\n",
    ),
];

/// The older version didn't have this template.
pub(crate) const ADDED: &str = ".github/workflows/lint.yml";
/// Only the older version has this file.
pub(crate) const REMOVED: &str = "config/manager/obsolete.yaml";

pub(crate) static ARCHIVE: LazyLock<Archive> = LazyLock::new(|| {
    let (name, today, _) = CHANGES[0];
    let between = change_row(current(), &(name, today, "# Container tool: docker.\n"));
    Archive::new(vec![release(OLDER, older_rows()), release(BETWEEN, between)])
});

fn release(version: &str, rows: Vec<Template>) -> Release {
    Release {
        versions: Versions {
            rbuilder: version.into(),
            rust: "1.85".into(),
            kube: "4.0".into(),
            k8s_openapi: "0.28".into(),
            kubernetes: "1.35".into(),
            k8s_openapi_feature: "v1_35".into(),
        },
        templates: TemplateSet::new(rows),
    }
}

fn current() -> Vec<Template> {
    TemplateSet::current().rows().to_vec()
}

fn change_row(mut rows: Vec<Template>, (name, today, before): &(&str, &str, &str)) -> Vec<Template> {
    let row = rows.iter_mut().find(|row| row.name == *name);
    let row = row.unwrap_or_else(|| panic!("{name} is gone: change another template"));
    assert!(
        row.text.contains(today),
        "{name} has changed: change another part"
    );
    row.text = row.text.replacen(today, before, 1).into();
    rows
}

fn older_rows() -> Vec<Template> {
    let mut rows = CHANGES.iter().fold(current(), change_row);
    rows.retain(|row| row.destination != ADDED);
    let obsolete = rows.iter().find(|row| row.destination == "Dockerfile");
    rows.push(Template {
        name: "init/obsolete.yaml.tera".into(),
        destination: REMOVED.into(),
        text: "# Of {{ project.name }}.\nkind: Obsolete\n".into(),
        on_exists: OnExists::Owned,
        ..obsolete.expect("a template of `init`").clone()
    });
    rows
}

/// The project becomes what the older version would have created.
pub(crate) fn age(folder: &Folder) {
    age_in(folder.path());
}

/// Same as [`age`], but for a project in a directory.
pub(crate) fn age_in(dir: &Path) {
    let tree = Tree::new(dir);
    let new = rebuild_files(&tree, None).expect("it can be rebuilt");
    let release = ARCHIVE.find(OLDER).expect("it is in the archive");
    let old = rebuild_files(&tree, Some(release)).expect("it can be rebuilt");
    for path in new.keys().filter(|path| !old.contains_key(*path)) {
        std::fs::remove_file(dir.join(path)).expect("a file to remove");
    }
    let mut base = ScaffoldBase::default();
    for (path, text) in old.iter().filter(|(path, _)| *path != RECORD) {
        base.set(path, text);
    }
    std::fs::write(dir.join(BASE), base.print()).expect("a file");
    for (path, text) in old {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("in the project")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let today = format!("cliVersion: {}\n", env!("CARGO_PKG_VERSION"));
    let project = std::fs::read_to_string(dir.join("PROJECT")).expect("a project");
    let project = project.replace(&today, &format!("cliVersion: {OLDER}\n"));
    std::fs::write(dir.join("PROJECT"), project).expect("a file");
}

pub(crate) fn update_flags(line: &str) -> rbuilder_cli::flags::UpdateFlags {
    let words = ["rbuilder"].into_iter().chain(line.split_whitespace());
    match Cli::parse_from(words).command {
        Command::Update(flags) => flags,
        command => unreachable!("{command:?}"),
    }
}

/// Uses the archive with the older version.
pub(crate) fn update(folder: &Folder, line: &str) -> Ran {
    update_in(folder.path(), line)
}

/// Same as [`update`], but for a directory.
pub(crate) fn update_in(dir: &Path, line: &str) -> Ran {
    let (out, err) = (Sink::default(), Sink::default());
    let mut shell = Shell::to(Box::new(out.clone()), Box::new(err.clone()));
    let flags = update_flags(line);
    let code = run_update(dir, flags.plan.mode(), &flags.into(), &ARCHIVE, &mut shell);
    let code = code.unwrap_or_else(|error| {
        shell.error(&error);
        1
    });
    Ran {
        code,
        out: out.text(),
        err: err.text(),
    }
}
