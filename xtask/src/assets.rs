//! `cargo xtask assets`: a folder with etcd and kube-apiserver, as `KUBEBUILDER_ASSETS` wants it.
//!
//! kube-apiserver is built once from the Go module in tools/kube-apiserver and kept in the user's cache folder; etcd
//! comes from the machine's packages. Only the folder goes to standard output, so that a shell can capture it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::sh::Cmd;

/// Prints the folder, after finding or making what belongs in it.
pub(crate) fn run() -> Result<()> {
    println!("{}", ensure()?.display());
    Ok(())
}

/// The folder that holds both binaries; finds or makes them.
///
/// # Errors
///
/// Go or etcd is missing and could not be installed, or the build failed.
pub(crate) fn ensure() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
        if !is_complete(&folder) {
            bail!(
                "KUBEBUILDER_ASSETS names {}, which lacks etcd or kube-apiserver: unset it",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let module = repo::root().join("tools/kube-apiserver");
    let version = kubernetes_version(&fs_err::read_to_string(module.join("go.mod"))?)?;
    let folder = cache()?.join(format!("rbuilder/envtest/{version}-{}-{}", go_os(), go_arch()));
    fs_err::create_dir_all(&folder)?;
    if !folder.join("kube-apiserver").is_file() {
        build_kube_apiserver(&module, &version, &folder)?;
    }
    if !folder.join("etcd").is_file() {
        link_etcd(&folder)?;
    }
    Ok(folder)
}

fn is_complete(folder: &Path) -> bool {
    ["etcd", "kube-apiserver"]
        .iter()
        .all(|name| folder.join(name).is_file())
}

/// The version of Kubernetes, without the leading `v`, that a go.mod requires.
fn kubernetes_version(go_mod: &str) -> Result<String> {
    go_mod
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"))
        .map(|version| version.split_whitespace().next().unwrap_or_default().to_owned())
        .context("tools/kube-apiserver/go.mod does not require k8s.io/kubernetes")
}

fn build_kube_apiserver(module: &Path, version: &str, folder: &Path) -> Result<()> {
    if !Cmd::new("go").arg("version").succeeds() {
        bail!(
            "kube-apiserver is built from its Go module, and `go` is not on the path: install Go 1.26 or newer, or set \
             KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` makes one)"
        );
    }
    eprintln!("building kube-apiserver {version}; this takes some minutes, once");
    // The binary appears under its own name only when it is whole.
    let partial = folder.join(format!(".kube-apiserver-{}", std::process::id()));
    let (major, minor) = version
        .split_once('.')
        .context("a Kubernetes version is major.minor.patch")?;
    let minor = minor.split('.').next().unwrap_or_default();
    let package = "k8s.io/component-base/version";
    let flags = format!(
        "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    );
    let built = Cmd::new("go")
        .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
        .arg(&partial)
        .arg(".")
        .dir(module)
        .env("CGO_ENABLED", "0")
        .run();
    if let Err(error) = built {
        let _ = fs_err::remove_file(&partial);
        return Err(error);
    }
    fs_err::rename(&partial, folder.join("kube-apiserver"))?;
    Ok(())
}

fn link_etcd(folder: &Path) -> Result<()> {
    let etcd = match find_etcd() {
        Some(etcd) => etcd,
        None => {
            install_etcd()?;
            find_etcd().context("etcd-server was installed, but no `etcd` is on the path")?
        }
    };
    let link = folder.join("etcd");
    if link.is_symlink() {
        // It pointed at an etcd that is gone.
        fs_err::remove_file(&link)?;
    }
    fs_err::os::unix::fs::symlink(etcd, link)?;
    Ok(())
}

fn find_etcd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/bin", "/usr/local/bin", "/usr/sbin"].map(PathBuf::from))
        .map(|folder| folder.join("etcd"))
        .find(|etcd| etcd.is_file())
}

/// Installs Debian's and Ubuntu's package, where this process may.
fn install_etcd() -> Result<()> {
    let advice = "install etcd 3.4 or newer (Debian and Ubuntu: `apt-get install etcd-server`)";
    if !Cmd::new("apt-get").arg("--version").succeeds() {
        bail!("etcd is not on the path: {advice}");
    }
    eprintln!("installing etcd-server");
    let apt = |words: &[&str]| {
        // apt writes its progress to standard output, which belongs to the answer.
        Cmd::new("apt-get")
            .args(words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .read()
            .map(drop)
    };
    let install = ["install", "--yes", "--no-install-recommends", "etcd-server"];
    apt(&install)
        .or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
        .with_context(|| format!("etcd is not on the path and could not be installed: {advice}"))
}

/// The user's cache folder.
///
/// # Errors
///
/// The environment names none.
pub(crate) fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME names a folder")
}

/// Go's name of this operating system, as setup-envtest uses it in its folders.
fn go_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    }
}

/// Go's name of this processor.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        arch => arch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_that_go_mod_requires() {
        let check = |go_mod: &str, expected: Option<&str>| {
            assert_eq!(kubernetes_version(go_mod).ok().as_deref(), expected, "{go_mod}");
        };
        check(
            "require (\n\tk8s.io/component-base v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)",
            Some("1.36.3"),
        );
        check("\tk8s.io/kubernetes v1.37.0 // pinned\n", Some("1.37.0"));
        check("replace k8s.io/kubernetes => ../kubernetes\n", None);
        check("", None);
    }

    #[test]
    fn the_committed_module_names_a_version() {
        let go_mod = fs_err::read_to_string(repo::root().join("tools/kube-apiserver/go.mod")).unwrap();
        let version = kubernetes_version(&go_mod).unwrap();
        assert_eq!(version.split('.').count(), 3, "{version}");
    }
}
