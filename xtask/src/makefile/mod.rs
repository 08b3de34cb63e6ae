//! `cargo xtask makefile`: checks that the targets in the Makefile of a scaffold do what is
//! described in their help.
//!
//! Everything that needs a cluster, a registry or a compiler is replaced with a stand-in, which
//! just records its calls. There is one exception, since kubectl still renders. Apart from that,
//! `PATH` only contains POSIX programs. In particular, there's no bash. See `makefile/cases.yaml`
//! for the runs of make, and `makefile/setup.sh` for the programs.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::committed::read_tree;
use crate::project::make_project;
use crate::repo;
use crate::run::capture;
use crate::sh::Cmd;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    claim: String,
    /// A function of setup.sh.
    #[serde(default)]
    before: String,
    make: String,
    #[serde(default)]
    prints: Vec<String>,
    fails: Option<String>,
}

const COMMANDS: [&str; 2] = [
    "init --domain example.com --project-name made-operator --library path",
    "create api --group cache --version v1alpha1 --kind Memcached",
];

/// A run that fails must not get as far as one of these.
const REACHED: [&str; 5] = [
    "rbuilder deploy",
    "rbuilder undeploy",
    "kubectl apply",
    "docker push",
    "kind delete",
];

/// Runs each case in a separate copy of the scaffold.
pub(crate) fn check_makefile() -> Result<()> {
    let original = tempfile::Builder::new().prefix("rbuilder-makefile-").tempdir()?;
    let project = original.path().join("project");
    make_project(&repo::build_rbuilder()?, &project, &COMMANDS)?;
    fs_err::write(project.join("Cargo.lock"), "")?;
    set_up(&project, "programs")?;
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases.yaml"))?;
    for case in cases {
        let copy = tempfile::Builder::new().prefix("rbuilder-makefile-").tempdir()?;
        let parts = ["project", "programs"].map(|name| original.path().join(name));
        Cmd::new("cp -R").args(parts).arg(copy.path()).run()?;
        check_case(&case, copy.path()).with_context(|| format!("{}: make {}", case.claim, case.make))?;
        println!("{}: make {}", case.claim, case.make);
    }
    Ok(())
}

fn set_up(project: &Path, function: &str) -> Result<()> {
    let script = format!("{}\n{function}", include_str!("setup.sh"));
    Cmd::new("sh -c").arg(script).dir(project).run()
}

fn check_case(case: &Case, folder: &Path) -> Result<()> {
    let project = folder.join("project");
    set_up(&project, &case.before)?;
    let config = read_tree(&project.join("config"))?;
    let (made, printed, calls) = make(folder, &case.make)?;
    let seen = format!("{printed}--- called\n{calls}");
    if let Some(part) = &case.fails {
        ensure!(made.is_err(), "it did not fail:\n{seen}");
        ensure!(printed.contains(part), "it does not print `{part}`:\n{seen}");
        let reached = REACHED.iter().find(|call| calls.contains(**call));
        ensure!(reached.is_none(), "it went on:\n{seen}");
    } else {
        ensure!(made.is_ok(), "it failed:\n{seen}");
        ensure!(!case.prints.is_empty(), "nothing is expected");
        for part in &case.prints {
            ensure!(seen.contains(part), "it gives no `{part}`:\n{seen}");
        }
    }
    let is_unchanged = read_tree(&project.join("config"))? == config;
    ensure!(is_unchanged, "config/ was changed");
    let installer = project.join("dist/install.yaml").exists();
    let is_wanted = made.is_ok() && case.make.starts_with("build-installer");
    ensure!(installer == is_wanted, "dist/install.yaml is there: {installer}");
    Ok(())
}

/// Runs make. Only the stand-ins and the POSIX programs are on `PATH`. Returns the result, the
/// output, and all calls to stand-ins (including their input).
fn make(folder: &Path, arguments: &str) -> Result<(Result<()>, String, String)> {
    let calls = folder.join("calls");
    fs_err::write(&calls, "")?;
    let make = Cmd::new("make")
        .words(arguments)
        .dir(&folder.join("project"))
        .env("PATH", folder.join("programs"))
        .env("CALLS", &calls)
        .without("MAKEFLAGS")
        // This is set by cargo for child processes. We must remove it, since the Makefile would use
        // it.
        .without("CARGO");
    let (made, printed) = capture(make)?;
    Ok((made, printed, fs_err::read_to_string(calls)?))
}
