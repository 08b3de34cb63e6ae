//! Commands, one file or directory each. `table.rs` lists them; `crate::engine` runs their plans.

mod adopt;
mod adopted;
mod attributes;
mod bundle;
mod check;
mod cli_version;
mod completion;
mod conversions;
mod create_api;
mod create_webhook;
mod delete;
mod deploy;
mod deployment;
#[cfg(feature = "control-plane")]
mod dev;
mod diff;
mod docs;
mod doctor;
mod edit;
mod edits;
#[cfg(feature = "control-plane")]
mod envtest;
mod explain;
mod features;
mod foreign_kind;
mod generated_merge;
mod grafana;
mod helm;
mod import;
mod init;
mod install;
mod kubernetes;
mod library;
mod local;
mod man;
mod manifests;
mod migrate_storage;
mod owners;
mod permissions;
mod reference;
mod removal;
mod run;
mod scaffold;
mod scaffold_merge;
mod sharding;
mod simulate;
mod table;
mod types;
mod update;
mod validate;
mod verdicts;
mod version;
mod webhooks;
#[cfg(not(feature = "control-plane"))]
mod without_control_plane;
mod written_roles;

use std::path::Path;

use anyhow::Result;

use self::generated_merge::remind_of_products;
use crate::cluster::{ClusterChoice, Kubectl};
pub use crate::engine::{Mode, Outcome};
use crate::engine::{decide, decide_and_apply, preview, show_outcome};
use crate::project::{BINARY, ObjectNames, Project};
use crate::shell::Shell;
use crate::tree::Tree;

#[cfg(not(feature = "control-plane"))]
use without_control_plane::envtest;

pub use bundle::plan_bundle;
pub use create_api::{plan_create_api, plan_create_api_from_crd};
pub use create_webhook::plan_create_webhook;
pub use delete::{plan_delete_api, plan_delete_controller, plan_delete_webhook};
pub use edit::plan_edit;
pub use grafana::plan_grafana;
pub use helm::plan_helm;
pub use init::plan_init;
pub use library::plan_library;
pub(crate) use manifests::SourceErrors;
pub use scaffold_merge::rebuild_files;
use scaffold_merge::record_scaffold;
pub(crate) use table::Row;
pub use update::{plan_update, run_update};
#[cfg(test)]
pub(crate) use verdicts::judge_by;

fn find_kubectl(dir: &Path, cluster: &ClusterChoice) -> Result<Kubectl> {
    Kubectl::find(dir, cluster, || envtest::find_installed(dir))
}

/// Name of the manager's binary. Without PROJECT, the name in a scaffolded package.
fn find_binary(dir: &Path) -> String {
    let project = Project::read(&Tree::new(dir)).ok().flatten();
    project.map_or_else(|| BINARY.to_owned(), |project| project.binary().to_owned())
}

/// Names of the manager's objects. Without PROJECT, the names in a scaffold.
fn read_names(dir: &Path) -> ObjectNames {
    let project = Project::read(&Tree::new(dir)).ok().flatten();
    project
        .map(|project| project.known.rbuilder.names)
        .unwrap_or_default()
}

/// Runs a command that changes files. With `--dry-run`, its plan is only shown.
fn execute(
    command: &str,
    dir: &Path,
    mode: Mode,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<u8> {
    let make: &mut dyn FnMut(&Tree) -> Result<Outcome> = &mut |tree| {
        let mut outcome = make(tree)?;
        record_scaffold(&mut outcome.plan, tree)?;
        Ok(outcome)
    };
    let outcome = if mode.dry_run {
        preview(dir, shell, make)?
    } else {
        let mut outcome = decide_and_apply(dir, shell, make)?;
        // Conflicts must be resolved first.
        if outcome.exit_code == 0 {
            let reminder = remind_of_products(command, &outcome.plan, &Tree::new(dir));
            outcome.next.push_str(&reminder);
        }
        outcome
    };
    show_outcome(command, &outcome, mode, shell);
    Ok(outcome.exit_code)
}
