//! `cargo xtask templates`: updates the archive with the templates of all releases.
//! `rbuilder update` needs it to render scaffolds of older versions.
//!
//! A version counts as released if it has a date in CHANGELOG.md. Then its templates are recorded
//! from the working tree, and must stay as they are. If somebody changes a template after that
//! without changing the version, `--check` fails.

use anyhow::{Result, bail, ensure};
use rbuilder_catalogue::versions;
use rbuilder_templates::{Archive, Release, TemplateSet, Versions};

use crate::committed::update_file;
use crate::former::{FORMER, FORMER_PROJECTS, read_former_projects, read_former_templates};
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "templates/data/releases.bin";

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if the archive lacks a release or the templates of a release have changed
    #[arg(long)]
    pub(crate) check: bool,
    /// Make the archive of the templates from before projects recorded their scaffolds, up to a commit of this repository
    #[arg(long, value_name = "COMMIT", conflicts_with = "check")]
    pub(crate) former: Option<String>,
}

/// Records the templates of the current version if it is released. With `--check`, this only checks
/// whether they are recorded.
pub(crate) fn record_templates(args: &Args) -> Result<()> {
    if let Some(last) = &args.former {
        let archive = read_former_templates(last)?;
        update_file(FORMER, &archive.encode(), false, "templates")?;
        return update_file(FORMER_PROJECTS, &read_former_projects(last)?, false, "templates");
    }
    let old = Archive::decode(&fs_err::read(repo::root().join(RECORDED))?)?;
    let changelog = fs_err::read_to_string(repo::root().join("CHANGELOG.md"))?;
    let released = released_versions(&changelog);
    let current = Release {
        versions: current_versions(),
        templates: TemplateSet::current().clone(),
    };
    let is_tagged = Cmd::new("git show-ref --verify --quiet")
        .arg(format!("refs/tags/v{VERSION}"))
        .dir(repo::root())
        .succeeds();
    let new = update_archive(old, current, &released, is_tagged)?;
    for version in &released {
        ensure!(
            new.find(version).is_some(),
            "{RECORDED} has no templates of {version}: run `cargo xtask templates` on the commit of that release"
        );
    }
    update_file(RECORDED, &new.encode(), args.check, "templates")
}

/// Adds the current templates to the archive. If their version is not released, they are removed
/// instead.
fn update_archive(
    mut archive: Archive,
    current: Release,
    released: &[&str],
    is_tagged: bool,
) -> Result<Archive> {
    let version = current.versions.rbuilder.clone();
    if !released.contains(&version.as_str()) {
        archive.remove(&version);
        return Ok(archive);
    }
    match archive.find(&version) {
        Some(recorded) if *recorded == current => {}
        Some(_) if is_tagged => bail!(
            "the templates have changed since {version} was released: set the next version in Cargo.toml"
        ),
        _ => archive.record(current),
    }
    Ok(archive)
}

fn released_versions(changelog: &str) -> Vec<&str> {
    let headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let versions = headings.filter_map(|heading| heading.split_once(" - "));
    versions.map(|(version, _)| version).collect()
}

pub(crate) fn current_versions() -> Versions {
    Versions {
        rbuilder: VERSION.into(),
        rust: versions::RUST.into(),
        kube: versions::KUBE.into(),
        k8s_openapi: versions::K8S_OPENAPI.into(),
        kubernetes: versions::KUBERNETES.to_string(),
        k8s_openapi_feature: versions::k8s_openapi_feature(versions::KUBERNETES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(version: &str, templates: usize) -> Release {
        let rows = TemplateSet::current().rows()[..templates].to_vec();
        let versions = Versions {
            rbuilder: version.into(),
            ..current_versions()
        };
        Release {
            versions,
            templates: TemplateSet::new(rows),
        }
    }

    #[test]
    fn tagged_release_cannot_change() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- New.\n";
        let dated = "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n- New.\n";
        assert_eq!(released_versions(changelog), [""; 0]);
        assert_eq!(released_versions(dated), ["0.1.0"]);
        let update = |archive: &Archive, current, released: &[&str], is_tagged| {
            update_archive(archive.clone(), current, released, is_tagged)
        };

        let empty = Archive::default();
        let unreleased = update(&empty, release("0.1.0", 3), &[], false).expect("nothing to record");
        assert_eq!(unreleased, empty);
        let first = update(&empty, release("0.1.0", 3), &["0.1.0"], false).expect("it is recorded");
        assert_eq!(first.releases(), [release("0.1.0", 3)]);
        let again = update(&first, release("0.1.0", 3), &["0.1.0"], true).expect("nothing has changed");
        assert_eq!(again, first);
        // There is no tag yet, so it's still possible to correct the release.
        let other = update(&first, release("0.1.0", 4), &["0.1.0"], false).expect("it is recorded again");
        assert_eq!(other.releases(), [release("0.1.0", 4)]);
        let error = update(&first, release("0.1.0", 4), &["0.1.0"], true).expect_err("it is released");
        assert!(error.to_string().contains("set the next version"), "{error}");
        let next = update(&first, release("0.2.0", 4), &["0.1.0"], false).expect("it is not released");
        assert_eq!(next, first);
    }
}
