//! The table of commands, with the name, location and entry function of each.

use std::path::Path;

use anyhow::Result;
use rbuilder_templates::Archive;

#[cfg(not(feature = "control-plane"))]
use super::without_control_plane::{dev, envtest};
use super::{
    adopt, bundle, completion, create_api, create_webhook, delete, deploy, diff, docs, doctor, edit, explain,
    grafana, helm, import, init, install, library, man, manifests, migrate_storage, reference, removal, run,
    run_update, scaffold, simulate, types, validate, version,
};
#[cfg(feature = "control-plane")]
use super::{dev, envtest};
use crate::flags::{Command, Create, Delete, Output};
use crate::shell::Shell;
use crate::tree::{Search, Tree, Viewpoint, find_project_above};

type Entry = dyn FnOnce(Place<'_>, &mut Shell) -> Result<u8>;

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) output: Output,
    home: Home,
    run: Box<Entry>,
}

struct Home {
    /// How to search for the project, starting at the given directory.
    search: Search,
    /// Whether the command changes a project, a cluster or manifests based on PROJECT, which must
    /// then be valid. `init` and `import` may do so in another directory and check PROJECT
    /// themselves.
    is_checked: bool,
}

/// The enclosing project, from any of its directories.
const PROJECT: Home = Home::new(Search::PastPackages, true);
/// The nearest package's project, or the package itself.
const PACKAGE: Home = Home::new(Search::UpToPackage, true);
/// The enclosing project, even if it is invalid.
const EXAMINED: Home = Home::new(Search::PastPackages, false);
/// The nearest package's project for settings, if any.
const BELOW: Home = Home::new(Search::UpToPackage, false);
const HERE: Home = Home::new(Search::Nowhere, false);

impl Home {
    const fn new(search: Search, is_checked: bool) -> Home {
        Home { search, is_checked }
    }
}

struct Place<'a> {
    dir: &'a Path,
    /// Base directory of paths on the command line.
    typed_in: &'a Path,
}

impl Row {
    fn new(
        name: &'static str,
        home: Home,
        output: Output,
        run: impl FnOnce(Place<'_>, &mut Shell) -> Result<u8> + 'static,
    ) -> Row {
        Row {
            name,
            output,
            home,
            run: Box::new(run),
        }
    }

    #[rustfmt::skip]
    pub(crate) fn of(command: Command) -> Row {
        match command {
            Command::Init(flags) => Row::new("init", HERE, flags.plan.output, move |at, shell| init::run(at.dir, &flags, shell)),
            Command::Create(Create::Api(flags)) => Row::new("create api", PROJECT, flags.plan.output, move |at, shell| create_api::run((at.dir, at.typed_in), flags.plan.mode(), flags.into(), shell)),
            Command::Create(Create::Webhook(flags)) => Row::new("create webhook", PROJECT, flags.plan.output, move |at, shell| create_webhook::run(at.dir, flags.plan.mode(), &flags.into(), shell)),
            Command::Import(flags) => Row::new("import", HERE, flags.plan.output, move |at, shell| import::run(at.dir, &flags, shell)),
            Command::Types(flags) => Row::new("types", HERE, flags.plan.output, move |at, shell| types::run(at.dir, &flags, shell)),
            Command::Delete(Delete::Api(flags)) => Row::new("delete api", PROJECT, flags.kind.plan.output, move |at, shell| delete::run_api(at.dir, flags.kind.plan.mode(), &flags.kind.into(), shell)),
            Command::Delete(Delete::Controller(flags)) => Row::new("delete controller", PROJECT, flags.kind.plan.output, move |at, shell| delete::run_controller(at.dir, flags.kind.plan.mode(), &flags.into(), shell)),
            Command::Delete(Delete::Webhook(flags)) => Row::new("delete webhook", PROJECT, flags.kind.plan.output, move |at, shell| delete::run_webhook(at.dir, flags.kind.plan.mode(), &flags.into(), shell)),
            Command::Edit(flags) => Row::new("edit", PROJECT, flags.plan.output, move |at, shell| edit::run(at.dir, &flags, shell)),
            Command::Library(flags) => Row::new("library", PROJECT, flags.plan.output, move |at, shell| library::run(at.dir, &flags, shell)),
            Command::Update(flags) => Row::new("update", PROJECT, flags.plan.output, move |at, shell| run_update(at.dir, flags.plan.mode(), &flags.into(), Archive::embedded(), shell)),
            Command::Doctor(flags) => Row::new("doctor", EXAMINED, flags.output, move |at, shell| doctor::run(at.dir, &flags, shell)),
            Command::Explain(flags) => Row::new("explain", HERE, flags.output, move |_, shell| explain::run(&flags, shell)),
            Command::Validate(flags) => Row::new("validate", EXAMINED, flags.messages(), move |at, shell| validate::run(at.dir, at.typed_in, &flags, shell)),
            Command::Diff(flags) => Row::new("diff", EXAMINED, flags.messages(), move |at, shell| diff::run(at.dir, at.typed_in, &flags, shell)),
            Command::Manifests(flags) => Row::new("manifests", PACKAGE, flags.plan.output, move |at, shell| manifests::run(at.dir, &flags, shell)),
            Command::Helm(flags) => Row::new("helm", PROJECT, flags.merge.plan.output, move |at, shell| helm::run(at.dir, &flags.into(), shell)),
            // Paths on the command line are relative to the current directory.
            Command::Docs(flags) => Row::new("docs", if flags.files.is_empty() { BELOW } else { HERE }, flags.plan.output, move |at, shell| docs::run(at.dir, &flags, shell)),
            Command::Adopt(flags) => Row::new("adopt", PACKAGE, flags.plan.output, move |at, shell| adopt::run(at.dir, &flags, shell)),
            Command::Bundle(flags) => Row::new("bundle", PROJECT, flags.product.merge.plan.output, move |at, shell| bundle::run(at.dir, &flags.into(), shell)),
            Command::Grafana(flags) => Row::new("grafana", PROJECT, flags.plan.output, move |at, shell| grafana::run(at.dir, &flags.into(), shell)),
            Command::Install(flags) => Row::new("install", PACKAGE, Output::Text, move |at, shell| install::install(at.dir, &flags, shell)),
            Command::Uninstall(flags) => Row::new("uninstall", PACKAGE, Output::Text, move |at, shell| removal::uninstall(at.dir, &flags, shell)),
            Command::Deploy(flags) => Row::new("deploy", PACKAGE, Output::Text, move |at, shell| deploy::deploy(at.dir, &flags, shell)),
            Command::Undeploy(flags) => Row::new("undeploy", PACKAGE, Output::Text, move |at, shell| removal::undeploy(at.dir, &flags, shell)),
            Command::MigrateStorage(flags) => Row::new("migrate-storage", PACKAGE, flags.output, move |at, shell| migrate_storage::run(at.dir, &flags, shell)),
            Command::Run(flags) => Row::new("run", PACKAGE, Output::Text, move |at, shell| run::run(at.dir, &flags, shell)),
            Command::Dev(flags) => Row::new("dev", PACKAGE, Output::Text, move |at, shell| dev::run(at.dir, &flags, shell)),
            Command::Simulate(flags) => Row::new("simulate", PACKAGE, Output::Text, move |at, shell| simulate::run(at.dir, at.typed_in, &flags, shell)),
            Command::Envtest(command) => Row::new(command.name(), BELOW, command.output(), move |at, shell| envtest::run(at.dir, &command, shell)),
            Command::Completion { shell: kind } => Row::new("completion", HERE, Output::Text, move |_, shell| completion::run(kind, shell)),
            Command::Version => Row::new("version", HERE, Output::Text, move |_, shell| version::run(shell)),
            Command::Man { command } => Row::new("man", HERE, Output::Text, move |_, shell| man::run(&command, shell)),
            Command::Reference { page } => Row::new("reference", HERE, Output::Text, move |_, shell| reference::run(page, shell)),
        }
    }

    /// Runs the command in the project that encloses a directory, and returns its exit code. Paths
    /// in text messages are relative to the directory. On error, no files were written.
    pub(crate) fn run(self, typed_in: &Path, shell: &mut Shell) -> Result<u8> {
        let found = find_project_above(typed_in, self.home.search);
        let dir = found.as_deref().unwrap_or(typed_in);
        if found.is_some() && self.output == Output::Text {
            shell.set_viewpoint(Viewpoint::new(dir, typed_in));
        }
        if self.home.is_checked {
            scaffold::check_project(&Tree::new(dir))?;
        }
        (self.run)(Place { dir, typed_in }, shell)
    }
}
