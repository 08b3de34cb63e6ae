//! `cargo xtask release`: makes sure that we can publish a version.
//!
//! During development, you should use `--dry-run`. Note that the task never publishes anything. It
//! just prints the commands from RELEASE.md when everything is fine.

mod registry;

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use self::registry::Registry;
use crate::library::{Project, remove_downloads_after};
use crate::packages::{name_of, published_packages};
use crate::repo;
use crate::sh::Cmd;
use crate::templates::{self, record_templates};
use crate::value::{items, text};

const REGISTRY: &str = "packaged";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Allow what is settled last: a changelog without a date, changes that are not committed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn check_release(args: &Args) -> Result<()> {
    let packages = published_packages()?;
    let version = check_versions(&packages)?;
    let changelog = fs_err::read_to_string(repo::root().join("CHANGELOG.md"))?;
    check_changelog(&changelog, &version, args.dry_run)?;
    // This makes sure that the version is in the archive, provided that it has a date in the
    // changelog.
    record_templates(&templates::Args {
        check: true,
        former: None,
    })?;
    check_tag(&version)?;
    check_names(&packages)?;
    let names: Vec<&str> = packages.iter().map(name_of).collect::<Result<_>>()?;
    package_all(&names, args.dry_run)?;
    build_scaffold(&names, &version)?;
    let list: String = names.iter().map(|name| format!(" --package {name}")).collect();
    println!(
        "\nversion {version} can be published{}:\n\
         git tag --sign v{version} --message \"rbuilder {version}\"\n\
         git push origin v{version}\n\
         cargo publish{list}",
        if args.dry_run {
            " when its changelog has a date and `cargo xtask release` has passed"
        } else {
            ""
        }
    );
    Ok(())
}

/// Checks that all packages have the same version, and that they also use it for the dependencies
/// on each other. Returns the version.
fn check_versions(packages: &[Value]) -> Result<String> {
    let version = packages.first().and_then(|package| package["version"].as_str());
    let version = version.context("there is no package to publish")?;
    let names: Vec<&str> = packages.iter().map(name_of).collect::<Result<_>>()?;
    for package in packages {
        let name = name_of(package)?;
        ensure!(
            package["version"] == version,
            "{name} has version {}, not {version}",
            package["version"]
        );
        for dependency in items(package, "/dependencies") {
            check_requirement(name, dependency, &names, version)?;
        }
    }
    println!("{} packages have version {version}", names.len());
    Ok(version.to_owned())
}

fn check_requirement(package: &str, dependency: &Value, ours: &[&str], version: &str) -> Result<()> {
    let name = name_of(dependency)?;
    if !ours.contains(&name) {
        ensure!(
            dependency["path"].is_null() || dependency["kind"] == "dev",
            "{package} depends on {name}, which is not published"
        );
        return Ok(());
    }
    let wanted = text(dependency, "/req");
    // When cargo packages a crate, it drops all dev-dependencies which don't have a version. We
    // need that since they can be cyclic.
    let is_dropped = wanted == "*" && dependency["kind"] == "dev";
    ensure!(
        is_dropped || wanted == format!("^{version}"),
        "{package} wants {name} in version `{wanted}`, not `^{version}`: change Cargo.toml"
    );
    Ok(())
}

/// Checks that there is a section for the version in CHANGELOG.md, and that it has a date. During a
/// dry run, an unreleased section is fine as well.
fn check_changelog(changelog: &str, version: &str, is_dry: bool) -> Result<()> {
    let mut sections = changelog.split("\n## ").skip(1);
    let released = sections.clone().find(|section| {
        let heading = section.lines().next().unwrap_or_default();
        heading
            .strip_prefix(version)
            .is_some_and(|rest| is_date(rest.trim_start_matches(" - ")))
    });
    let unreleased = sections.find(|section| section.lines().next() == Some("Unreleased"));
    let section = released.or(unreleased.filter(|_| is_dry));
    let Some(section) = section else {
        bail!("CHANGELOG.md has no section `## {version} - YYYY-MM-DD`: make it of `## Unreleased`");
    };
    let has_entries = section.lines().any(|line| line.starts_with("- "));
    ensure!(
        has_entries,
        "the section of {version} in CHANGELOG.md has no entry"
    );
    println!("CHANGELOG.md says what {version} brings");
    Ok(())
}

fn is_date(text: &str) -> bool {
    let shape = text.replace(|letter: char| letter.is_ascii_digit(), "0");
    shape == "0000-00-00"
}

/// Ensures that the tag doesn't exist yet, or already points to this commit.
fn check_tag(version: &str) -> Result<()> {
    let git = |line: &str| Cmd::new(&format!("git {line}")).dir(repo::root());
    let tag = format!("refs/tags/v{version}");
    if git("show-ref --verify --quiet").arg(&tag).succeeds() {
        let commit = git("rev-parse --verify --quiet")
            .arg(format!("{tag}^{{commit}}"))
            .read()?;
        let is_here = commit == git("rev-parse HEAD").read()?;
        ensure!(
            is_here,
            "tag v{version} is on another commit: choose the next version"
        );
    }
    println!("tag v{version} is free or on this commit");
    Ok(())
}

/// Checks that nobody else uses the names of our packages on crates.io. We tell whether a package
/// is ours by comparing the descriptions.
fn check_names(packages: &[Value]) -> Result<()> {
    // We know that this package exists. If we can't find it, there must be a problem with the
    // registry.
    if ask_registry("serde")?.is_none() {
        println!("the public registry cannot be reached from here: no name was looked up");
        return Ok(());
    }
    for package in packages {
        let (name, ours) = (name_of(package)?, text(package, "/description"));
        let found = ask_registry(name)?;
        let is_ours = found.as_ref().is_none_or(|found| found.contains(ours));
        ensure!(
            is_ours,
            "the name {name} belongs to somebody else:\n{}",
            found.unwrap_or_default()
        );
    }
    println!("the names of the packages are free or ours");
    Ok(())
}

/// Returns the description of a package on crates.io. Returns `None` if there is no such package.
fn ask_registry(name: &str) -> Result<Option<String>> {
    // Use an empty folder here. In the workspace, cargo would prefer the workspace's packages.
    let folder = tempfile::tempdir()?;
    let ask = || {
        Cmd::new("cargo info --quiet --registry crates-io")
            .arg(name)
            .dir(folder.path())
    };
    match ask().succeeds() {
        true => ask().read().map(Some),
        false => Ok(None),
    }
}

/// Packages all crates and compiles the packages in the same form as users would download them.
fn package_all(names: &[&str], is_dry: bool) -> Result<()> {
    println!();
    let names = names.iter().flat_map(|name| ["--package", name]);
    // Profiles of the workspace are not inherited by packages. We need the same debug information
    // though, or else all dependencies would be compiled again.
    let debug = std::env::var("CARGO_PROFILE_DEV_DEBUG").unwrap_or("none".to_owned());
    let command = Cmd::new("cargo package --quiet")
        .args(names)
        .dir(repo::root())
        .env("CARGO_PROFILE_DEV_DEBUG", debug);
    command.args(is_dry.then_some("--allow-dirty")).echo().run()
}

/// Builds a project that gets its library from a registry. The registry contains our packages.
fn build_scaffold(names: &[&str], version: &str) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let packages = repo::target_folder().join("package/tmp-registry");
    let registry = Registry::serve(Path::new(&packages), names, version)?;
    let flags = ["--library", "version", "--library-version", version];
    let folders = ["registry/index", "registry/cache", "registry/src"];
    remove_downloads_after(&folders, "127.0.0.1-", || {
        Project::init(&bin, &flags)?
            .use_registry(REGISTRY, &registry.index)?
            .check()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changelog_must_contain_version() {
        let check = |text: &str, is_dry: bool, expected: bool| {
            assert_eq!(check_changelog(text, "0.2.0", is_dry).is_ok(), expected, "{text}");
        };
        let released =
            "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-22\n\n- New.\n\n## 0.1.0 - 2026-01-01\n";
        check(released, false, true);
        check(released, true, true);
        let unreleased = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n";
        check(unreleased, false, false);
        check(unreleased, true, true);
        check(&unreleased.replace("- New.", ""), true, false);
        check(&released.replace("2026-11-22", "soon"), false, false);
    }

    #[test]
    fn packages_must_require_own_version() {
        let check = |name: &str, req: &str, kind: Value, is_local: bool, expected: bool| {
            let path = is_local.then_some("/x");
            let dependency = json!({ "name": name, "req": req, "kind": kind, "path": path });
            let result = check_requirement("rbuilder-cli", &dependency, &["rbuilder-cel"], "0.2.0");
            assert_eq!(result.is_ok(), expected, "{dependency}");
        };
        check("rbuilder-cel", "^0.2.0", Value::Null, true, true);
        check("rbuilder-cel", "^0.1.0", Value::Null, true, false);
        check("rbuilder-cel", "*", json!("dev"), true, true);
        check("rbuilder-cel", "*", Value::Null, true, false);
        check("xtask", "*", Value::Null, true, false);
        check("serde", "^1", Value::Null, false, true);
    }
}
