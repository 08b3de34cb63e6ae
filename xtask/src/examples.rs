//! `cargo xtask examples`: whole projects, made by the real command and committed.
//!
//! A project is made again from nothing in a scratch folder, its hand-written files (the table below) are laid over,
//! its manifests are generated, and the result is compared with the committed tree file by file. So a change of a
//! template or of the generator shows in review as the change of a project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use similar::TextDiff;

use crate::repo;
use crate::sh::Cmd;

/// One committed project.
pub(crate) struct Project {
    /// The folder in examples/, and the project's name.
    pub(crate) name: &'static str,
    /// The commands a user types, in order, without `rbuilder`.
    pub(crate) commands: &'static [&'static str],
    /// Files written by hand after the scaffold: kept from the committed tree.
    pub(crate) kept: &'static [&'static str],
}

/// From an empty folder to the Memcached API, as README.md and the tutorial do it.
pub(crate) const MEMCACHED: &[&str] = &[
    "init --domain example.com",
    "create api --group cache --version v1alpha1 --kind Memcached",
];

/// From an empty folder to two versions of the CronJob API.
const CRON_JOB: &[&str] = &[
    "init --domain tutorial.kubebuilder.io",
    "create api --group batch --version v1 --kind CronJob",
    "create api --group batch --version v2 --kind CronJob",
];

/// The committed projects. The first is the tour's; docs/examples.md says what each shows.
pub(crate) const PROJECTS: &[Project] = &[
    Project {
        name: "memcached-operator",
        commands: MEMCACHED,
        kept: &[
            "Cargo.lock",
            "config/samples/cache_v1alpha1_memcached.yaml",
            "src/api/v1alpha1/memcached.rs",
            "src/controller/memcached.rs",
            "tests/tutorial.rs",
        ],
    },
    Project {
        name: "deploy-image-operator",
        commands: MEMCACHED,
        kept: &[
            "Cargo.lock",
            "README.md",
            "config/default/kustomization.yaml",
            "config/manager/manager.yaml",
            "config/samples/cache_v1alpha1_memcached.yaml",
            "config/webhook/certificate.yaml",
            "config/webhook/kustomization.yaml",
            "config/webhook/kustomizeconfig.yaml",
            "config/webhook/manager_webhook_patch.yaml",
            "config/webhook/service.yaml",
            "src/api/v1alpha1/memcached.rs",
            "src/controller/deployment.rs",
            "src/controller/memcached.rs",
            "src/controller/mod.rs",
            "src/lib.rs",
            "src/main.rs",
            "src/webhook/memcached.rs",
            "src/webhook/mod.rs",
            "tests/deploy_image/main.rs",
            "tests/deploy_image/support.rs",
            "tests/deploy_image/webhook.rs",
            "tests/memcached.rs",
        ],
    },
    Project {
        name: "foo-operator",
        commands: &[
            "init --domain k8s.io",
            "create api --group samplecontroller --version v1alpha1 --kind Foo",
        ],
        kept: &[
            "Cargo.lock",
            "README.md",
            "config/samples/samplecontroller_v1alpha1_foo.yaml",
            "src/api/v1alpha1/foo.rs",
            "src/controller/foo.rs",
            "tests/foo.rs",
            "tests/sample_controller/main.rs",
            "tests/sample_controller/support.rs",
        ],
    },
    Project {
        name: "pod-count-operator",
        // A controller over Kubernetes' own kinds is written by hand: `create api` begins with a kind of the project.
        commands: &["init --domain example.com"],
        kept: &[
            "Cargo.lock",
            "README.md",
            "src/controller/mod.rs",
            "src/controller/replica_set.rs",
            "tests/pod_count.rs",
        ],
    },
    Project {
        name: "cronjob-operator",
        commands: CRON_JOB,
        kept: &[
            "Cargo.lock",
            "Cargo.toml",
            "config/default/kustomization.yaml",
            "config/samples/batch_v1_cronjob.yaml",
            "config/samples/batch_v2_cronjob.yaml",
            "config/webhook/kustomization.yaml",
            "config/webhook/kustomizeconfig.yaml",
            "config/webhook/manager_webhook_patch.yaml",
            "config/webhook/service.yaml",
            "config/webhook/webhook_role_binding.yaml",
            "src/api/v1/cron_job.rs",
            "src/api/v2/conversion.rs",
            "src/api/v2/cron_job.rs",
            "src/api/v2/mod.rs",
            "src/clock.rs",
            "src/controller/cron_job.rs",
            "src/controller/cron_job/history.rs",
            "src/controller/cron_job/report.rs",
            "src/lib.rs",
            "src/main.rs",
            "src/schedule.rs",
            "src/webhook/mod.rs",
            "src/webhook/v1/cron_job.rs",
            "src/webhook/v1/mod.rs",
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
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail, with the differences, when a committed project is stale
    #[arg(long)]
    check: bool,
}

/// Relative paths with `/`, and contents.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Makes every project again; writes the result or compares it.
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

/// Makes what the commands make today, with the hand-written files of `committed` laid over.
fn generate(project: &Project, bin: &Path, committed: &Files) -> Result<Files> {
    // As deep as examples/<name>: the path of the `rbuilder` dependency is relative inside this checkout.
    let folder = repo::root().join("target").join(project.name);
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&folder)?;
    for command in project.commands {
        rbuilder(bin, &folder, command)?;
    }
    for path in project.kept {
        if let Some(content) = committed.get(*path) {
            write_file(&folder.join(path), content)?;
        }
    }
    rbuilder(bin, &folder, "manifests")?;
    let files = read_tree(&folder)?;
    fs_err::remove_dir_all(&folder)?;
    Ok(files)
}

fn rbuilder(bin: &Path, folder: &Path, line: &str) -> Result<()> {
    Cmd::new(&format!("rbuilder {line}"))
        .dir(folder)
        .path_first(bin)?
        .read()
        .map(drop)
}

/// Every file below a folder but build output; none when the folder does not exist.
pub(crate) fn read_tree(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    if !folder.exists() {
        return Ok(files);
    }
    let entries = walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_entry(|entry| entry.depth() != 1 || entry.file_name() != "target");
    for entry in entries {
        let entry = entry?;
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(folder)?;
            let path = path
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect::<Vec<_>>();
            files.insert(path.join("/"), fs_err::read(entry.path())?);
        }
    }
    Ok(files)
}

/// Unified diffs from `old` to `new`; empty when they are the same.
pub(crate) fn unified_diffs(old: &Files, new: &Files) -> String {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |files: &Files, path: &String| {
        files
            .get(path)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    };
    let name = |files: &Files, path: &String| {
        if files.contains_key(path) {
            path.clone()
        } else {
            "/dev/null".to_owned()
        }
    };
    paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| {
            let (before, after) = (text(old, path), text(new, path));
            let header = format!("--- {}\n+++ {}\n", name(old, path), name(new, path));
            let diff = TextDiff::from_lines(&before, &after);
            header + &diff.unified_diff().context_radius(3).to_string()
        })
        .collect()
}

/// Writes what differs from `old`, and removes what `new` lacks.
pub(crate) fn write_tree(folder: &Path, old: &Files, new: &Files) -> Result<()> {
    for (path, content) in new
        .iter()
        .filter(|(path, content)| old.get(*path) != Some(content))
    {
        write_file(&folder.join(path), content)?;
    }
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        fs_err::remove_file(folder.join(path))?;
    }
    Ok(())
}

fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(path, content)?;
    Ok(())
}

/// The committed copies of a project's hand-written files: where they go in the project, and where they are here.
pub(crate) fn kept_files(project: &Project) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let folder = repo::root().join("examples").join(project.name);
    project
        .kept
        .iter()
        .map(move |path| (*path, folder.join(path)))
        .filter(|(_, source)| source.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn differences_name_each_changed_file() {
        let check = |old: &[(&str, &str)], new: &[(&str, &str)], expected: &str| {
            assert_eq!(unified_diffs(&files(old), &files(new)), expected);
        };
        check(&[("a", "1\n")], &[("a", "1\n")], "");
        check(
            &[("a", "1\n")],
            &[("a", "2\n")],
            "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n",
        );
        check(&[], &[("a", "1\n")], "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+1\n");
        check(&[("a", "1\n")], &[], "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    }

    #[test]
    fn an_empty_file_that_appears_is_a_difference() {
        assert_eq!(
            unified_diffs(&files(&[]), &files(&[("a", "")])),
            "--- /dev/null\n+++ a\n"
        );
    }

    #[test]
    fn a_written_tree_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let old = files(&[("gone", "x"), ("same", "y")]);
        write_tree(folder.path(), &Files::new(), &old).unwrap();
        let new = files(&[("same", "y"), ("deep/er/new", "z")]);
        write_tree(folder.path(), &old, &new).unwrap();
        fs_err::create_dir(folder.path().join("target")).unwrap();
        fs_err::write(folder.path().join("target/ignored"), "").unwrap();
        assert_eq!(read_tree(folder.path()).unwrap(), new);
    }
}
