//! `cargo xtask examples`: generates the example projects with the real command. The projects are
//! committed.
//!
//! We start with an empty folder, and either follow the steps of a tutorial, or run the commands
//! from the table below and apply a diff from examples/patches. After that, we add the files
//! written by hand and generate the manifests. Finally, the result is compared with the committed
//! files. This means that reviewers can see what effect a change of a template, a tutorial or the
//! generator has.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::committed::{Files, read_tree, unified_diffs, write_file, write_tree};
use crate::page::{Action, Page};
use crate::repo;

/// One of the committed projects.
struct Project {
    /// Name of the project, and of its folder in examples/.
    name: &'static str,
    /// Describes how to create the project.
    recipe: Recipe,
    /// Files written by hand. We copy them from the committed project.
    kept: &'static [&'static str],
}

/// Describes how to create a project in an empty folder.
enum Recipe {
    /// Follow the steps of a page in docs/. This runs its `rbuilder` commands, and writes and
    /// changes files.
    Page(&'static str),
    /// Run these `rbuilder` commands. After that, apply `examples/patches/<name>.diff`.
    Commands(&'static [&'static str]),
}

/// All projects that are committed. See docs/examples.md for a description of each.
const PROJECTS: &[Project] = &[
    Project {
        name: "memcached-operator",
        recipe: Recipe::Page("docs/tutorial.md"),
        kept: &["Cargo.lock", "tests/cluster.rs", "tests/tutorial.rs"],
    },
    Project {
        name: "deploy-image-operator",
        recipe: Recipe::Commands(&[
            "init --domain example.com",
            "create api --group cache --version v1alpha1 --kind Memcached --image memcached:1.6.26-alpine3.19 \
             --image-container-command memcached,--memory-limit=64,-o,modern,-v --image-container-port 11211 \
             --run-as-user 1001",
            "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting",
        ]),
        kept: &[
            "Cargo.lock",
            "src/webhook/v1alpha1/memcached.rs",
            "tests/deploy_image/main.rs",
            "tests/deploy_image/support.rs",
            "tests/deploy_image/webhook.rs",
        ],
    },
    Project {
        name: "foo-operator",
        recipe: Recipe::Commands(&[
            "init --domain k8s.io",
            "create api --group samplecontroller --version v1alpha1 --kind Foo",
        ]),
        kept: &[
            "Cargo.lock",
            "src/api/v1alpha1/foo.rs",
            "src/controller/foo.rs",
            "tests/sample_controller/main.rs",
            "tests/sample_controller/support.rs",
        ],
    },
    Project {
        name: "pod-count-operator",
        recipe: Recipe::Commands(&[
            "init --domain example.com",
            "create api --group apps --version v1 --kind ReplicaSet --controller",
        ]),
        kept: &[
            "Cargo.lock",
            "src/controller/replica_set.rs",
            "tests/pod_count.rs",
        ],
    },
    Project {
        name: "cronjob-operator",
        recipe: Recipe::Page("docs/cronjob.md"),
        kept: &[
            "Cargo.lock",
            "tests/functions/conversion.rs",
            "tests/functions/history.rs",
            "tests/functions/main.rs",
            "tests/functions/schedule.rs",
            "tests/functions/webhook.rs",
            "tests/tutorial/cluster.rs",
            "tests/tutorial/history.rs",
            "tests/tutorial/main.rs",
            "tests/tutorial/rights.rs",
            "tests/tutorial/runs.rs",
            "tests/tutorial/status.rs",
            "tests/tutorial/support.rs",
            "tests/tutorial/webhooks.rs",
            "tests/versions.rs",
        ],
    },
    Project {
        name: "mirror-operator",
        recipe: Recipe::Commands(&[
            "init --domain example.com",
            "create api --group mirror --version v1alpha1 --kind ConfigMirror",
        ]),
        kept: &[
            "Cargo.lock",
            "src/api/v1alpha1/config_mirror.rs",
            "src/controller/config_mirror.rs",
            "tests/config_mirror.rs",
        ],
    },
    Project {
        name: "plain-kube-rs",
        // This one is an existing project. Only its manifests are generated.
        recipe: Recipe::Commands(&[]),
        kept: &[
            "Cargo.lock",
            "Cargo.toml",
            "README.md",
            "config/sample.yaml",
            "src/api.rs",
            "src/main.rs",
        ],
    },
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail and print the differences if a committed project is stale
    #[arg(long)]
    check: bool,
}

/// Generates all projects. The results are either written or compared with the existing ones.
pub(crate) fn update_projects(args: &Args) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let mut stale = Vec::new();
    for project in PROJECTS {
        let committed = repo::root().join("examples").join(project.name);
        let old = read_tree(&committed)?;
        let new = generate(project, &bin, &old)?;
        let differences = unified_diffs(&old, &new);
        if differences.is_empty() {
            println!("examples/{} is up to date", project.name);
            continue;
        }
        if args.check {
            print!("{differences}");
            stale.push(project.name);
        } else {
            write_tree(&committed, &old, &new)?;
            println!("examples/{} was brought up to date", project.name);
        }
    }
    if !stale.is_empty() {
        bail!(
            "stale: examples/{}; run `cargo xtask examples` and read the diff",
            stale.join(", examples/")
        );
    }
    Ok(())
}

/// Generates a project. The files written by hand are copied from `committed`.
fn generate(project: &Project, bin: &Path, committed: &Files) -> Result<Files> {
    // The folder must be as deep as examples/<name>, because the project has a dependency on
    // `rbuilder` with a relative path to this checkout.
    let folder = repo::root().join("target").join(project.name);
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    // If the project was not a repository, its workflows and its workspace would belong to the
    // repository that contains the folder.
    let repository = folder.join(".git");
    fs_err::create_dir_all(&repository)?;
    follow_recipe(project, bin, &folder)?;
    for path in project.kept {
        if let Some(content) = committed.get(*path) {
            write_file(&folder.join(path), content)?;
        }
    }
    rbuilder(bin, &folder, "manifests")?;
    fs_err::remove_dir(&repository)?;
    let files = read_tree(&folder)?;
    fs_err::remove_dir_all(&folder)?;
    Ok(files)
}

fn follow_recipe(project: &Project, bin: &Path, folder: &Path) -> Result<()> {
    match project.recipe {
        Recipe::Page(path) => {
            for step in Page::read(path)?.steps {
                for command in step.action.rbuilder_commands() {
                    rbuilder(bin, folder, command)?;
                }
                let edited = step.action.edit_file(folder);
                edited.with_context(|| format!("{path}:{}", step.line))?;
            }
        }
        Recipe::Commands(commands) => {
            for command in commands {
                rbuilder(bin, folder, command)?;
            }
            let patch = format!("examples/patches/{}.diff", project.name);
            let text = fs_err::read_to_string(repo::root().join(&patch)).unwrap_or_default();
            for (path, diff) in split_patch(&text) {
                let change = Action::Change { path, diff };
                change.edit_file(folder).with_context(|| patch.clone())?;
            }
        }
    }
    Ok(())
}

/// Splits a diff of several files into the paths and diffs of individual files. Each of them starts
/// with a line `+++ path`.
fn split_patch(text: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            parts.push((path.to_owned(), String::new()));
        } else if let Some((_, diff)) = parts.last_mut() {
            diff.push_str(line);
            diff.push('\n');
        }
    }
    parts
}

fn rbuilder(bin: &Path, folder: &Path, line: &str) -> Result<()> {
    repo::rbuilder_command(bin, folder, line)?.read().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_patch_by_file() {
        let text = "A comment.\n+++ a/b\n x\n+y\n+++ c\n-z\n";
        let expected = [("a/b", " x\n+y\n"), ("c", "-z\n")];
        assert_eq!(
            split_patch(text),
            expected.map(|(path, diff)| (path.to_owned(), diff.to_owned()))
        );
    }
}
