//! Checks the tools on this machine: Rust, kubectl, and the test environment's binaries.

use std::path::{Path, PathBuf};
use std::process::Command;

use rbuilder_control_plane::{Platform, has_program};
use rbuilder_generator::Minor;
use serde_json::Value;

use super::Finding;
use super::toolchain::{Toolchain, find_toolchain};
use crate::cluster::ClusterChoice;
use crate::commands::{envtest, find_kubectl};
use crate::programs::{LIMIT, ask, find_program, neutral_folder};

#[derive(Clone, Debug)]
pub(super) struct Needs {
    /// `rust-version` of the package, or of new scaffolds.
    pub(super) rust: String,
    pub(super) kubernetes: Minor,
}

/// Environment variable with the directory of etcd and kube-apiserver.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

pub(super) fn examine_tools(dir: &Path, needs: &Needs) -> Vec<Finding> {
    let mut findings = vec![examine_rust(dir, &needs.rust)];
    findings.extend(examine_kubectl(dir));
    findings.push(examine_test_environment(dir, needs.kubernetes));
    findings
}

/// Checks the toolchain that builds the project, from its toolchain file or the user's default.
/// Only official releases of Rust are run.
fn examine_rust(dir: &Path, needed: &str) -> Finding {
    // The variable overrides the file in rustup.
    let is_set = std::env::var_os("RUSTUP_TOOLCHAIN").is_some_and(|name| !name.is_empty());
    let chosen = if is_set { None } else { find_toolchain(dir) };
    let help =
        format!("install Rust {needed} or newer with rustup (https://rustup.rs), or run `rustup update`");
    let name = match &chosen {
        Some(Toolchain::Released { name, .. }) => Some(name.as_str()),
        Some(Toolchain::Unknown { .. }) | None => None,
    };
    let mut versions = Vec::new();
    for program in ["rustc", "cargo"] {
        match ask_version(program, name) {
            Ok(version) => versions.push(version),
            Err(silence) => return not_run(program, &silence, chosen.as_ref(), help),
        }
    }
    let found = format!("rustc {} and cargo {}", versions[0], versions[1]);
    if let Some(Toolchain::Unknown { reason }) = chosen {
        let message = format!("{reason}, which is not run; outside of the project there are {found}");
        return Finding::warning("rust", message, UNKNOWN_TOOLCHAIN);
    }
    let message = format!("{found}; the project needs {needed}");
    match versions.iter().all(|version| is_at_least(version, needed)) {
        true => Finding::good("rust", message),
        false => Finding::error("rust", message, help),
    }
}

const UNKNOWN_TOOLCHAIN: &str = "if you trust the repository, run `rustc --version` in it";

enum Silence {
    NotFound,
    /// The program failed. Contains the first line of its errors, which is empty if it timed out.
    Failed(String),
}

fn not_run(program: &str, silence: &Silence, chosen: Option<&Toolchain>, help: String) -> Finding {
    let error = match silence {
        Silence::NotFound => return Finding::error("rust", format!("{program} was not found"), help),
        Silence::Failed(error) => error.as_str(),
    };
    match (chosen, find_missing_toolchain(error)) {
        (Some(Toolchain::Released { name, file }), missing)
            if missing.is_some() || ask_version(program, None).is_ok() =>
        {
            Finding::error(
                "rust",
                format!("the toolchain `{name}` of {file} is not installed, or has no {program}"),
                format!("run `rustup toolchain install {name}`"),
            )
        }
        (_, Some(name)) => Finding::error(
            "rust",
            format!("the toolchain `{name}`, which rustup would run, is not installed"),
            format!("run `rustup toolchain install {name}`, or choose another one with `rustup default`"),
        ),
        _ if error.is_empty() => Finding::error("rust", format!("{program} does not run"), help),
        _ => Finding::error("rust", format!("{program} does not run: {error}"), help),
    }
}

/// The toolchain that rustup reports as missing, as in ``toolchain '1.93-x86_64' is not
/// installed``.
fn find_missing_toolchain(error: &str) -> Option<&str> {
    let (_, after) = error.split_once("toolchain '")?;
    let (name, after) = after.split_once('\'')?;
    after.starts_with(" is not installed").then_some(name)
}

/// Version of a program in a toolchain, or in the toolchain used outside of projects.
fn ask_version(program: &str, toolchain: Option<&str>) -> Result<String, Silence> {
    let mut command = outside(&find_program(program).ok_or(Silence::NotFound)?);
    if let Some(name) = toolchain {
        command.env("RUSTUP_TOOLCHAIN", name);
    }
    let no_answer = |_| Silence::Failed(String::new());
    let answer = ask(command.arg("--version"), LIMIT).map_err(no_answer)?;
    let (said, error) = (
        String::from_utf8_lossy(&answer.out),
        String::from_utf8_lossy(&answer.err),
    );
    match said.split_whitespace().nth(1) {
        Some(version) if answer.status.success() => Ok(version.to_owned()),
        _ => {
            let line = error
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            let line = line.trim().strip_prefix("error: ").unwrap_or(line.trim());
            Err(Silence::Failed(
                line.chars().filter(|c| !c.is_control()).collect(),
            ))
        }
    }
}

/// Whether a version is equal to or newer than another. Missing parts count as zero.
fn is_at_least(version: &str, needed: &str) -> bool {
    let parts = |text: &str| -> [u64; 3] {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(|part| part.parse().unwrap_or(0));
        std::array::from_fn(|_| numbers.next().unwrap_or(0))
    };
    parts(version) >= parts(needed)
}

fn examine_kubectl(dir: &Path) -> Vec<Finding> {
    let help = "install kubectl (https://kubernetes.io/docs/tasks/tools), or run `rbuilder envtest install`, which includes it";
    let missing = |reason: String| {
        vec![Finding::warning(
            "kubectl",
            format!("{reason}: nothing can be installed into a cluster"),
            help,
        )]
    };
    let kubectl = match find_kubectl(dir, &ClusterChoice::default()) {
        Ok(kubectl) => kubectl,
        Err(_) => return missing("kubectl was not found".to_owned()),
    };
    let said = kubectl.read_version();
    let versions: Value = match said.map(|said| serde_json::from_str(&said)) {
        Ok(Ok(versions)) => versions,
        Ok(Err(_)) => return missing("cannot determine the version of kubectl".to_owned()),
        Err(error) => return missing(error.to_string()),
    };
    let version = versions["clientVersion"]["gitVersion"]
        .as_str()
        .unwrap_or_default();
    let kustomize = match versions["kustomizeVersion"].as_str() {
        Some(version) => Finding::good("kustomize", format!("{version}, built into kubectl")),
        None => Finding::warning(
            "kustomize",
            "this kubectl does not include kustomize, which renders config/",
            "install a newer kubectl, or set KUSTOMIZE=\"kustomize build\" for make",
        ),
    };
    vec![Finding::good("kubectl", version), kustomize]
}

fn examine_test_environment(dir: &Path, minor: Minor) -> Finding {
    let help = "run `rbuilder envtest install`";
    let assets = std::env::var_os(ASSETS).filter(|folder| !folder.is_empty());
    let (folder, source) = match assets.map(PathBuf::from) {
        Some(folder) => (folder, format!(" (`{ASSETS}`)")),
        None => match envtest::find_installed(dir) {
            Some(folder) => (folder, String::new()),
            None => {
                let message = format!(
                    "etcd and kube-apiserver of Kubernetes {minor} are not installed: tests against a real API server are skipped"
                );
                return Finding::warning("envtest", message, help);
            }
        },
    };
    let shown = folder.display();
    let platform = Platform::current();
    for name in ["etcd", "kube-apiserver"] {
        if !has_program(&folder, &platform, name) {
            let message = format!("{shown}{source} has no {name}");
            return Finding::error("envtest", message, format!("{help}, and unset `{ASSETS}`"));
        }
    }
    // Don't run a program that may belong to the repository.
    let said = is_outside(&folder, dir)
        .then(|| read(outside(&folder.join(platform.file_name("kube-apiserver"))).arg("--version")))
        .flatten();
    let version = said
        .as_deref()
        .and_then(|said| said.trim().strip_prefix("Kubernetes v"));
    match version {
        None => Finding::good("envtest", format!("{shown}{source}")),
        Some(version) if is_of_minor(version, minor) => {
            Finding::good("envtest", format!("Kubernetes {version} in {shown}{source}"))
        }
        Some(version) => Finding::warning(
            "envtest",
            format!("{shown}{source} has Kubernetes {version}, but k8s-openapi is compiled for {minor}"),
            format!("{help}, and unset `{ASSETS}`"),
        ),
    }
}

fn is_of_minor(version: &str, minor: Minor) -> bool {
    version.starts_with(&format!("{minor}."))
}

fn is_outside(folder: &Path, dir: &Path) -> bool {
    match (std::fs::canonicalize(folder), std::fs::canonicalize(dir)) {
        (Ok(folder), Ok(dir)) => !folder.starts_with(dir),
        _ => false,
    }
}

/// Prepares a call outside of the project that doesn't download a toolchain.
fn outside(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(neutral_folder(program))
        .env("RUSTUP_AUTO_INSTALL", "0");
    command
}

fn read(command: &mut Command) -> Option<String> {
    let answer = ask(command, LIMIT).ok()?;
    let text = String::from_utf8(answer.out).ok()?;
    answer.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (version, needed, expected) in [
            ("1.94.0", "1.89", true),
            ("1.89.0", "1.89", true),
            ("1.100.0-nightly", "1.89.1", true),
            ("1.88.9", "1.89", false),
            ("1.89.0", "1.89.1", false),
        ] {
            assert_eq!(is_at_least(version, needed), expected, "{version} {needed}");
        }
    }

    #[test]
    fn a_server_is_of_the_minor_that_it_names() {
        let minor = rbuilder_generator::versions::KUBERNETES;
        for (version, expected) in [
            (format!("{minor}.3"), true),
            (format!("{minor}.0-rc.1"), true),
            (format!("{minor}0.1"), false),
            ("1.2.3".to_owned(), false),
        ] {
            assert_eq!(is_of_minor(&version, minor), expected, "{version}");
        }
    }
}
