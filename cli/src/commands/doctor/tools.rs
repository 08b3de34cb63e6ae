//! The tools on this machine: Rust, kubectl, and the binaries of the test environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rbuilder_control_plane::{Platform, has_program};
use rbuilder_generator::Minor;
use serde_json::Value;

use super::Finding;
use crate::commands::{envtest, find_kubectl};
use crate::flags::ClusterFlags;

/// The versions that the project needs.
#[derive(Clone, Debug)]
pub(super) struct Needs {
    /// `rust-version` of its package, or of a scaffold.
    pub(super) rust: String,
    /// Kubernetes minor of its tests.
    pub(super) kubernetes: Minor,
}

/// Environment variable with the directory of etcd and kube-apiserver.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Examines the tools that the project needs.
pub(super) fn examine_tools(dir: &Path, needs: &Needs) -> Vec<Finding> {
    let mut findings = vec![examine_rust(dir, &needs.rust)];
    findings.extend(examine_kubectl(dir));
    findings.push(examine_test_environment(dir, needs.kubernetes));
    findings
}

fn examine_rust(dir: &Path, needed: &str) -> Finding {
    let help =
        format!("install Rust {needed} or newer with rustup (https://rustup.rs), or run `rustup update`");
    let mut versions = Vec::new();
    for program in ["rustc", "cargo"] {
        let said = ask(Path::new(program), &["--version"], dir);
        let Some(version) = said.as_deref().and_then(|said| said.split_whitespace().nth(1)) else {
            return Finding::error("rust", format!("{program} was not found or does not run"), help);
        };
        versions.push(version.to_owned());
    }
    let message = format!(
        "rustc {} and cargo {}; the project needs {needed}",
        versions[0], versions[1]
    );
    match versions.iter().all(|version| is_at_least(version, needed)) {
        true => Finding::good("rust", message),
        false => Finding::error("rust", message, help),
    }
}

/// Returns whether a version is another one or newer; parts that are missing count as zero.
fn is_at_least(version: &str, needed: &str) -> bool {
    let parts = |text: &str| -> [u64; 3] {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(|part| part.parse().unwrap_or(0));
        std::array::from_fn(|_| numbers.next().unwrap_or(0))
    };
    parts(version) >= parts(needed)
}

/// Examines kubectl and the kustomize in it.
fn examine_kubectl(dir: &Path) -> Vec<Finding> {
    let help = "install kubectl (https://kubernetes.io/docs/tasks/tools), or run `rbuilder envtest install`, which includes it";
    let missing = |reason: String| {
        vec![Finding::warning(
            "kubectl",
            format!("{reason}: nothing can be installed into a cluster"),
            help,
        )]
    };
    let kubectl = match find_kubectl(dir, &ClusterFlags::default()) {
        Ok(kubectl) => kubectl,
        Err(_) => return missing("kubectl was not found".to_owned()),
    };
    let said = kubectl.read(&["version", "--client", "--output=json"], "");
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
    // A path that could be the repository's own is not run.
    let server = folder.join(platform.file_name("kube-apiserver"));
    let said = folder
        .is_absolute()
        .then(|| ask(&server, &["--version"], dir))
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

/// Returns whether a version of Kubernetes, such as that of kube-apiserver, is of a minor.
fn is_of_minor(version: &str, minor: Minor) -> bool {
    version.starts_with(&format!("{minor}."))
}

/// Returns what a program prints; `None` if it cannot be run or fails. No toolchain is downloaded for that.
fn ask(program: &Path, arguments: &[&str], dir: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    let output = command.env("RUSTUP_AUTO_INSTALL", "0").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
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
