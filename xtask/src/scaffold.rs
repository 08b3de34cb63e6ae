//! `cargo xtask scaffold`: runs a number of commands to create a project, and checks it after each
//! of them. The project must compile without clippy warnings, be formatted, and its tests must
//! pass.
//!
//! The projects are not in the checkout, because they mustn't depend on our workspace. They share a
//! build folder so that their dependencies are only compiled once. We also use the Cargo.lock of
//! the workspace, since a new release of a dependency should not make this task fail on the same
//! day. Use `--fresh` if you do want to resolve the dependencies again.
//!
//! While the tests of a project are running, we already create the next one. This is because tests
//! spend most of the time waiting for servers. Note that cargo locks the target folder during a
//! build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::{Context as _, Result, anyhow, bail};
use rbuilder_templates::{Command, TEMPLATES, Template, USED_NAMES};
use serde::Deserialize;

use crate::committed::list_folder;
use crate::project::share_lockfile;
use crate::run::capture;
use crate::sh::Cmd;
use crate::{imported, repo, sequences, tools};

/// A row of journeys.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Journey {
    name: String,
    commands: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    tests_at_end: bool,
}

struct Finished {
    name: String,
    folder: PathBuf,
    /// The folder that contains the project. It is removed on drop.
    _parent: tempfile::TempDir,
}

/// This project has kinds that are called like other items in their files.
const NAMES: &str = "names-operator";

/// Additional kinds for this project. In contrast to the others, these names are not from
/// templates, but from Rust's prelude, or the names of crates and versions.
const OTHER_NAMES: &[&str] = &["Into", "Kube", "None", "Rbac", "Send", "Union", "V1"];

/// These are used in templates, but can't be kinds since `create api` returns an error.
const REFUSED_NAMES: &[&str] = &["Default", "Option", "Self", "String", "Vec"];

/// These are used by the template for conversions. In order to test them, such a kind gets a second
/// version.
const CONVERSION_NAMES: &[&str] = &["Hub", "Ok", "Spoke"];

fn words(chosen: impl Fn(&Template) -> bool) -> impl Iterator<Item = &'static str> {
    TEMPLATES
        .iter()
        .filter(move |template| chosen(template))
        .flat_map(|template| template.text.split(|c: char| !c.is_alphanumeric()))
}

/// Returns all kinds of the project. The boolean says if there is a second version.
fn named_kinds() -> impl Iterator<Item = (&'static str, bool)> {
    let conversions: BTreeSet<&str> = words(|template| template.command == Command::CreateSpoke)
        .chain(CONVERSION_NAMES.iter().copied())
        .collect();
    // Names that only occur in controllers for images are covered by the journey `image-operator`.
    let plain: BTreeSet<&str> = words(|template| !template.name.starts_with("image/")).collect();
    USED_NAMES
        .iter()
        .filter(move |name| plain.contains(*name) && !REFUSED_NAMES.contains(name))
        .chain(OTHER_NAMES)
        .map(move |name| (*name, conversions.contains(name)))
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the journeys whose name contains this
    filter: Option<String>,
    /// Take the newest dependencies instead of those of this workspace's Cargo.lock
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn walk_journeys(args: &Args) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let mut journeys: Vec<Journey> = serde_saphyr::from_str(include_str!("journeys.yaml"))?;
    let others = [NAMES, sequences::NAME, imported::NAME];
    let names = journeys.iter().map(|journey| journey.name.as_str()).chain(others);
    let known = names.collect::<Vec<_>>().join(", ");
    let asks = |name: &str| args.filter.as_ref().is_none_or(|filter| name.contains(filter));
    journeys.retain(|journey| asks(&journey.name));
    if journeys.is_empty() && !others.into_iter().any(asks) {
        bail!("no journey matches; there are {known}");
    }
    if asks(NAMES) {
        walk_names(&bin, args.fresh)?;
    }
    if asks(sequences::NAME) {
        sequences::walk_sequences(&bin, args.fresh)?;
    }
    std::thread::scope(|scope| {
        let (sender, finished) = mpsc::channel::<Finished>();
        let end = scope.spawn(move || finished.iter().try_for_each(|project| project.test()));
        let mut checked = BTreeSet::new();
        let imported = asks(imported::NAME).then(|| walk_imported(&bin, args.fresh));
        let others = journeys
            .iter()
            .map(|journey| walk(journey, &mut checked, &bin, args.fresh));
        let walked = imported.into_iter().chain(others).try_for_each(|project| {
            // If this fails, there was an error in the other thread. We will report it below.
            sender.send(project?).context("an earlier project failed")
        });
        drop(sender);
        let tested = end.join().unwrap_or_else(|_| Err(anyhow!("the tests panicked")));
        tested.and(walked)
    })
}

/// Creates an empty folder for a project. The first value has to be kept, since the folder (and its
/// parent) is removed when it's dropped.
pub(crate) fn make_folder(name: &str) -> Result<(tempfile::TempDir, PathBuf)> {
    let parent = tempfile::Builder::new().prefix("rbuilder-scaffold-").tempdir()?;
    let folder = parent.path().join(name);
    fs_err::create_dir(&folder)?;
    Ok((parent, folder))
}

/// Runs the commands of a journey. If a project in `checked` is the same except for its name, there
/// is no need to check it again.
fn walk<'j>(
    journey: &'j Journey,
    checked: &mut BTreeSet<(&'j [String], bool)>,
    bin: &Path,
    fresh: bool,
) -> Result<Finished> {
    let (parent, folder) = make_folder(&journey.name)?;
    let last = journey.commands.len() - 1;
    for (done, command) in journey.commands.iter().enumerate() {
        println!();
        repo::rbuilder_command(bin, &folder, command)?.echo().run()?;
        if done == 0 && !fresh {
            share_lockfile(&folder)?;
        }
        if done == 1 {
            for (path, text) in &journey.files {
                fs_err::write(folder.join(path), text)?;
            }
        }
        let has_files = done > 0 && !journey.files.is_empty();
        if !checked.insert((&journey.commands[..=done], has_files)) && done < last {
            println!("a journey before this one has made and checked the same project");
            continue;
        }
        check(&folder, bin)?;
        if done < last && !journey.tests_at_end {
            test_without_server(&folder)?;
        }
    }
    Ok(Finished {
        name: journey.name.clone(),
        folder,
        _parent: parent,
    })
}

impl Finished {
    /// Runs the tests, with an API server if there is one. Also makes sure that this doesn't
    /// compile any dependencies again.
    fn test(&self) -> Result<()> {
        match std::env::var_os("KUBEBUILDER_ASSETS") {
            Some(_) => run_every_test(repo::project_command(&self.folder, "cargo test --quiet").echo())?,
            None => test_without_server(&self.folder)?,
        }
        check_shared_features(&self.folder, &self.name)
    }
}

/// Scaffolds everything for each of the kinds. This is just one project, which is compiled once and
/// whose tests aren't built.
fn walk_names(bin: &Path, fresh: bool) -> Result<()> {
    let (_parent, folder) = make_folder(NAMES)?;
    let rbuilder = |line: &str| repo::rbuilder_command(bin, &folder, line)?.echo().run();
    rbuilder("init --domain example.com")?;
    if !fresh {
        share_lockfile(&folder)?;
    }
    for (kind, has_two_versions) in named_kinds() {
        let of = |version: &str| format!("--group zoo --version {version} --kind {kind}");
        rbuilder(&format!("create api {}", of("v1")))?;
        let mut webhooks = format!("create webhook {} --defaulting --validation", of("v1"));
        if has_two_versions {
            rbuilder(&format!("create api {}", of("v2")))?;
            webhooks.push_str(" --conversion --spoke v2");
        }
        rbuilder(&webhooks)?;
    }
    rbuilder("manifests --check")?;
    repo::project_command(&folder, "cargo fmt --check").echo().run()?;
    join_tests(&folder)?;
    lint(&folder)
}

/// Creates a project from CRDs that were generated by another tool.
fn walk_imported(bin: &Path, fresh: bool) -> Result<Finished> {
    let (parent, folder) = make_folder(imported::NAME)?;
    imported::import_definitions(bin, &folder, fresh)?;
    join_tests(&folder)?;
    check(&folder, bin)?;
    Ok(Finished {
        name: imported::NAME.to_owned(),
        folder,
        _parent: parent,
    })
}

/// The end-to-end test. It must stay a target of its own, as it is declared in Cargo.toml.
const E2E_TEST: &str = "e2e.rs";

/// Moves all of the other tests to a single target. This saves a lot of time, because linking a
/// test takes as long as linking the library.
fn join_tests(folder: &Path) -> Result<()> {
    let (tests, joined) = (folder.join("tests"), folder.join("tests/all"));
    let mut entries = list_folder(&tests)?;
    entries.retain(|path| !path.ends_with(E2E_TEST));
    fs_err::create_dir(&joined)?;
    let mut modules = String::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default();
        fs_err::rename(&path, joined.join(name))?;
        modules += &format!("mod {};\n", name.to_string_lossy().trim_end_matches(".rs"));
    }
    fs_err::write(joined.join("main.rs"), modules)?;
    Ok(())
}

/// Checks everything in a scaffolded project, but does not run the tests.
fn check(folder: &Path, bin: &Path) -> Result<()> {
    repo::rbuilder_command(bin, folder, "manifests --check")?
        .echo()
        .run()?;
    repo::project_command(folder, "cargo fmt --check").echo().run()?;
    lint(folder)?;
    render(folder)
}

pub(crate) fn lint(folder: &Path) -> Result<()> {
    lint_command(folder, "--quiet").echo().run()
}

fn lint_command(folder: &Path, options: &str) -> Cmd {
    let line = format!("cargo clippy {options} --all-targets --all-features -- --deny warnings");
    repo::project_command(folder, &line)
}

/// Runs only the tests that don't need an API server. It would take longer to start a server than
/// to run the other tests. We can do this because those tests are still part of the project after
/// the last command.
fn test_without_server(folder: &Path) -> Result<()> {
    let tests = repo::project_command(folder, "cargo test --quiet").echo();
    tests.without("KUBEBUILDER_ASSETS").run()
}

/// Checks that no feature is enabled by the tests but not by `cargo build`. With such a feature, a
/// package is compiled twice, and if it is a feature of one of kube's dependencies, that also
/// applies to kube. The exceptions are the library (because its test kit is a feature) and
/// [`TEST_FEATURES`].
///
/// We use `cargo check` and clippy here, since they resolve the same features and don't have to do
/// much after the other checks.
fn check_shared_features(folder: &Path, project: &str) -> Result<()> {
    let own = [project, "rbuilder-runtime"];
    let messages = "--quiet --message-format=json";
    let build = repo::project_command(folder, "cargo check").words(messages);
    let built = find_features(build, &own)?;
    let tested = find_features(lint_command(folder, messages), &own)?;
    let again: Vec<String> = built
        .difference(&tested)
        .map(|(package, features)| format!("{package} ({})", features.join(", ")))
        .collect();
    if !again.is_empty() {
        bail!(
            "`cargo build` compiles these packages with features that `cargo test` does not compile them with: {}",
            again.join(", ")
        );
    }
    println!(
        "`cargo build` and `cargo test` of {project} share {} dependencies",
        built.len()
    );
    Ok(())
}

/// The features of dependencies that tests may add. Simulations need the first one because tokio has
/// to pause the clock. It should not be in a release build, since operators don't need it. The other
/// one comes from tempfile, and costs nothing as long as the first one makes kube compile a second
/// time anyway.
const TEST_FEATURES: [(&str, &str); 2] = [("tokio", "test-util"), ("fastrand", "default")];

/// Runs a cargo command. Returns all packages and their features, except for the packages in `but`
/// and [`TEST_FEATURES`].
fn find_features(command: Cmd, but: &[&str]) -> Result<BTreeSet<(String, Vec<String>)>> {
    let messages = command.echo().read()?;
    let mut compiled = BTreeSet::new();
    for message in messages.lines() {
        let message: Artifact = serde_json::from_str(message)?;
        if message.reason != "compiler-artifact" {
            continue;
        }
        let package = package_name(&message.package_id);
        let package = package.with_context(|| format!("`{}` names no package", message.package_id))?;
        if but.contains(&package) {
            continue;
        }
        let features = message.features.into_iter();
        let features = features.filter(|feature| !TEST_FEATURES.contains(&(package, feature.as_str())));
        compiled.insert((package.to_owned(), features.collect()));
    }
    Ok(compiled)
}

/// A message from cargo. There are more fields, but [`find_features`] doesn't need them.
#[derive(Deserialize)]
struct Artifact {
    reason: String,
    #[serde(default)]
    package_id: String,
    #[serde(default)]
    features: Vec<String>,
}

/// Returns the name of a package. In cargo, its ID ends in `#name@version` or in `/name#version`.
fn package_name(id: &str) -> Option<&str> {
    let (place, package) = id.rsplit_once('#')?;
    match package.split_once('@') {
        Some((name, _)) => Some(name),
        None => place.rsplit('/').next(),
    }
}

fn run_every_test(tests: Cmd) -> Result<()> {
    let (result, text) = capture(tests)?;
    print!("{text}");
    result?;
    if let Some(line) = find_ignored(&text) {
        bail!("tests were ignored although an API server is there: {line}");
    }
    Ok(())
}

/// Returns the first summary from libtest which says that tests were ignored.
fn find_ignored(output: &str) -> Option<&str> {
    let mut summaries = output.lines().filter(|line| line.starts_with("test result: "));
    summaries.find(|line| line.contains(" ignored") && !line.contains(" 0 ignored"))
}

/// Renders every folder that is applied by a target in the Makefile.
fn render(folder: &Path) -> Result<()> {
    for target in ["config/default", "config/crd", "config/samples"] {
        let text = kustomize_command()?.arg(target).dir(folder).echo().read()?;
        if target == "config/default" {
            check_default(&text)?;
        }
    }
    Ok(())
}

/// Returns a command to render folders with kubectl or kustomize. If neither of them is available,
/// this installs kustomize.
fn kustomize_command() -> Result<Cmd> {
    if Cmd::new("kubectl version --client").succeeds() {
        return Ok(Cmd::new("kubectl kustomize"));
    }
    if Cmd::new("kustomize version").succeeds() {
        return Ok(Cmd::new("kustomize build"));
    }
    Ok(Cmd::program(tools::ensure_tool("kustomize")?).arg("build"))
}

/// Checks that some names are still the same, because users of kubebuilder have deployments,
/// dashboards and NetworkPolicies that refer to them.
fn check_default(text: &str) -> Result<()> {
    let expected = [
        "kind: Namespace",
        "control-plane: controller-manager",
        "controller-manager-metrics-service",
        "image: controller:latest",
        "--leader-elect",
        "- name: METRICS_BIND_ADDRESS\n          value: :8443",
        "--health-probe-bind-address=:8081",
        "runAsNonRoot: true",
        "readOnlyRootFilesystem: true",
        "leader-election-rolebinding",
    ];
    let missing: Vec<_> = expected.into_iter().filter(|part| !text.contains(part)).collect();
    if !missing.is_empty() {
        bail!("config/default renders without {}", missing.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_package_name_from_id() {
        for (id, expected) in [
            (
                "registry+https://github.com/rust-lang/crates.io-index#kube@5.0.0",
                Some("kube"),
            ),
            ("path+file:///tmp/plain-operator#0.1.0", Some("plain-operator")),
            (
                "path+file:///work/runtime#rbuilder-runtime@0.1.0",
                Some("rbuilder-runtime"),
            ),
            ("kube 5.0.0", None),
        ] {
            assert_eq!(package_name(id), expected, "{id}");
        }
    }

    #[test]
    fn finds_summary_with_ignored_tests() {
        let check = |output: &str, expected: Option<&str>| assert_eq!(find_ignored(output), expected);
        check(
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n",
            None,
        );
        let ignored = "test result: ok. 3 passed; 0 failed; 10 ignored; 0 measured";
        check(&format!("running 13 tests\n{ignored}\n"), Some(ignored));
        check("13 ignored\n", None);
    }
}
