//! Tests `.ci/keep-builds`. Each test is a function of kept_builds.sh.

use crate::repo;
use crate::run::{BASH, run_script};
use crate::sh::Cmd;

#[test]
fn only_changes_are_compiled_in_new_clones() {
    for function in [
        "new_clone_compiles_only_changes",
        "older_clone_is_compiled",
        "changes_are_compiled_after_run_without_build",
        "clone_in_other_folder_is_compiled",
        "files_without_git_are_compiled",
        "reused_clone_keeps_modification_times",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bash = Cmd::new(BASH).dir(folder.path());
        let bash = bash.env("KEEP_BUILDS", repo::root().join(".ci/keep-builds"));
        let script = format!("{}\n{function}", include_str!("kept_builds.sh"));
        let tested = run_script(bash, &script, &[]);
        tested.unwrap_or_else(|error| panic!("{function}: {error:#}"));
    }
}
