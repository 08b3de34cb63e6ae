//! `cargo xtask assets`: a folder with etcd and kube-apiserver, as `KUBEBUILDER_ASSETS` wants it, and with the programs
//! for environments that have controllers and nodes.
//!
//! kube-apiserver, kube-controller-manager and kube-scheduler are built once from the Go module in tools/kube-apiserver,
//! kwok from that in tools/kwok, and kept in the user's cache folder; etcd comes from the machine's packages. Only the
//! folder goes to standard output, so that a shell can capture it.
//!
//! What is measured rather than tested wants the etcd that clusters run, which packages may be years behind of: that is
//! [`current_etcd`], built from tools/etcd.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::sh::Cmd;

/// Prints the folder, after finding or making what belongs in it.
pub(crate) fn print_folder() -> Result<()> {
    println!("{}", ensure_controllers()?.display());
    Ok(())
}

/// The folder that holds both binaries; finds or makes them.
///
/// # Errors
///
/// Go or etcd is missing and could not be installed, or the build failed.
pub(crate) fn ensure_assets() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
        if !is_complete(&folder) {
            bail!(
                "KUBEBUILDER_ASSETS names {}, which lacks etcd or kube-apiserver: unset it",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let version = required_version("kube-apiserver", "k8s.io/kubernetes")?;
    let folder = cache_folder()?.join(format!("rbuilder/envtest/{version}-{}-{}", go_os(), go_arch()));
    fs_err::create_dir_all(&folder)?;
    if !folder.join("kube-apiserver").is_file() {
        build_kube_apiserver(&version, &folder.join("kube-apiserver"))?;
    }
    if !folder.join("etcd").is_file() {
        link_etcd(&folder)?;
    }
    Ok(folder)
}

/// The programs that make objects move: those of the module of kube-apiserver, and kwok.
const CONTROLLERS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];

/// The folder of [`ensure_assets`], with the programs for controllers and nodes; finds or makes them.
///
/// # Errors
///
/// Those of [`ensure_assets`]; Go is missing, or a build failed.
pub(crate) fn ensure_controllers() -> Result<PathBuf> {
    let folder = ensure_assets()?;
    let is_given = std::env::var_os("KUBEBUILDER_ASSETS").is_some();
    let version = required_version("kube-apiserver", "k8s.io/kubernetes")?;
    for name in CONTROLLERS {
        let binary = folder.join(name);
        if binary.is_file() && (is_given || name != "kwok" || is_required_kwok(&binary)?) {
            continue;
        }
        if is_given {
            bail!(
                "KUBEBUILDER_ASSETS names {}, which lacks {name}: unset it",
                folder.display()
            );
        }
        if !has_go() {
            bail!(
                "{name} is built from its Go module, and `go` is not on the path: install Go 1.26 or newer"
            );
        }
        eprintln!("building {name}; this takes some minutes, once");
        match name {
            "kwok" => go_build_package("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w", &binary)?,
            name => {
                let flags = kubernetes_linker_flags(&version)?;
                go_build_package("kube-apiserver", &format!("./{name}"), &flags, &binary)?;
            }
        }
    }
    Ok(folder)
}

/// Returns true for the version of kwok that tools/kwok requires: the folder is named for that of Kubernetes only.
fn is_required_kwok(binary: &Path) -> Result<bool> {
    let version = required_version("kwok", "sigs.k8s.io/kwok")?;
    let printed = Cmd::program(binary).arg("--version").read()?;
    Ok(printed
        .split_whitespace()
        .any(|word| word.strip_prefix('v') == Some(&*version)))
}

fn is_complete(folder: &Path) -> bool {
    ["etcd", "kube-apiserver"]
        .iter()
        .all(|name| folder.join(name).is_file())
}

/// An etcd as clusters run it, which since 3.5 lets the API server answer lists of the present state from memory; finds
/// or builds it.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn current_etcd() -> Result<PathBuf> {
    let version = required_version("etcd", "go.etcd.io/etcd/server/v3")?;
    let folder = cache_folder()?.join(format!("rbuilder/etcd/{version}-{}-{}", go_os(), go_arch()));
    let binary = folder.join("etcd");
    if !binary.is_file() {
        fs_err::create_dir_all(&folder)?;
        eprintln!("building etcd {version}; this takes a minute or two, once");
        go_build("etcd", "-s -w", &binary)?;
    }
    Ok(binary)
}

/// Finds kubectl on the path, or builds it; returns the folder to add to the path, if it was built.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn ensure_kubectl() -> Result<Option<PathBuf>> {
    if Cmd::new("kubectl version --client").succeeds() {
        return Ok(None);
    }
    let version = required_version("kubectl", "k8s.io/kubectl")?;
    let folder = cache_folder()?.join(format!("rbuilder/kubectl/{version}-{}-{}", go_os(), go_arch()));
    if !folder.join("kubectl").is_file() {
        fs_err::create_dir_all(&folder)?;
        eprintln!("building kubectl {version}; this takes a minute or two, once");
        go_build("kubectl", "-s -w", &folder.join("kubectl"))?;
    }
    Ok(Some(folder))
}

/// Finds or builds Helm, in the version of tools/helm; returns the program.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn ensure_helm() -> Result<PathBuf> {
    let version = required_version("helm", "helm.sh/helm/v3")?;
    let folder = cache_folder()?.join(format!("rbuilder/helm/{version}-{}-{}", go_os(), go_arch()));
    let binary = folder.join("helm");
    if !binary.is_file() {
        fs_err::create_dir_all(&folder)?;
        eprintln!("building Helm {version}; this takes a minute or two, once");
        // Without its version Helm takes itself for the oldest of its major version, and refuses charts that need a newer one.
        let flags = format!("-s -w -X helm.sh/helm/v3/internal/version.version=v{version}");
        go_build_package("helm", "helm.sh/helm/v3/cmd/helm", &flags, &binary)?;
    }
    Ok(binary)
}

/// Finds or builds the validators of bundles, in the version of tools/bundle; returns the program.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn ensure_bundle_validators() -> Result<PathBuf> {
    let version = required_version("bundle", "github.com/operator-framework/api")?;
    let folder = cache_folder()?.join(format!("rbuilder/bundle/{version}-{}-{}", go_os(), go_arch()));
    let binary = folder.join("bundle");
    if !binary.is_file() {
        fs_err::create_dir_all(&folder)?;
        eprintln!("building the validators of bundles {version}; this takes a minute or two, once");
        go_build("bundle", "-s -w", &binary)?;
    }
    Ok(binary)
}

/// Downloads the CRD of ClusterServiceVersions, in the version of the validators; returns its file.
///
/// # Errors
///
/// Go is missing, or the module cannot be downloaded.
pub(crate) fn ensure_csv_crd() -> Result<PathBuf> {
    const MODULE: &str = "github.com/operator-framework/api";
    let version = required_version("bundle", MODULE)?;
    let module = Cmd::new("go mod download -json")
        .arg(format!("{MODULE}@v{version}"))
        .dir(&module_folder("bundle"))
        .read()?;
    let module: serde_json::Value = serde_json::from_str(&module)?;
    let folder = module["Dir"].as_str().context("a folder of the module")?;
    Ok(Path::new(folder).join("crds/operators.coreos.com_clusterserviceversions.yaml"))
}

/// Finds or builds the judge of catalogs, in the version of tools/catalog; returns the program.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn ensure_catalog_judge() -> Result<PathBuf> {
    let version = required_version("catalog", "github.com/operator-framework/operator-registry")?;
    let folder = cache_folder()?.join(format!("rbuilder/catalog/{version}-{}-{}", go_os(), go_arch()));
    let binary = folder.join("catalog");
    if !binary.is_file() {
        fs_err::create_dir_all(&folder)?;
        eprintln!("building the judge of catalogs {version}; this takes a minute, once");
        go_build("catalog", "-s -w", &binary)?;
    }
    Ok(binary)
}

/// The folder of a module that says in its go.mod what to build.
fn module_folder(module: &str) -> PathBuf {
    repo::root().join("tools").join(module)
}

/// The version, without the leading `v`, in which a module of tools/ requires another.
fn required_version(module: &str, required: &str) -> Result<String> {
    let go_mod = fs_err::read_to_string(module_folder(module).join("go.mod"))?;
    version_in(&go_mod, required)
        .with_context(|| format!("tools/{module}/go.mod does not require {required}"))
}

/// The version, without the leading `v`, in which a go.mod requires a module, be it in a block or on a line of its own.
fn version_in(go_mod: &str, required: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|&word| word == "require");
        let version = words
            .next()
            .filter(|&path| path == required)
            .and_then(|_| words.next())?;
        version.strip_prefix('v').map(str::to_owned)
    })
}

fn build_kube_apiserver(version: &str, binary: &Path) -> Result<()> {
    if !has_go() {
        bail!(
            "kube-apiserver is built from its Go module, and `go` is not on the path: install Go 1.26 or newer, or set \
             KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` makes one)"
        );
    }
    eprintln!("building kube-apiserver {version}; this takes some minutes, once");
    go_build("kube-apiserver", &kubernetes_linker_flags(version)?, binary)
}

/// Flags with the version that a program of Kubernetes reports. One set of flags for all of them, since packages are
/// compiled again for other ones.
fn kubernetes_linker_flags(version: &str) -> Result<String> {
    let (major, minor) = version
        .split_once('.')
        .context("a Kubernetes version is major.minor.patch")?;
    let minor = minor.split('.').next().unwrap_or_default();
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}

/// Returns true where there is a Go to build with.
pub(crate) fn has_go() -> bool {
    Cmd::new("go version").succeeds()
}

/// Builds the program of a module of tools/, without C. It appears under its own name only when it is whole.
fn go_build(module: &str, linker_flags: &str, binary: &Path) -> Result<()> {
    go_build_package(module, ".", linker_flags, binary)
}

/// Builds a program of a module of tools/ by the name of its package.
fn go_build_package(module: &str, package: &str, linker_flags: &str, binary: &Path) -> Result<()> {
    let partial = binary.with_file_name(format!(".{module}-{}", std::process::id()));
    // Debuggers are not used on these programs, and a seventh of the compiler's time goes into what they need.
    let built = Cmd::new("go build -trimpath -gcflags=all=-dwarf=false -ldflags")
        .arg(linker_flags)
        .arg("-o")
        .arg(&partial)
        .arg(package)
        .dir(&module_folder(module))
        .env("CGO_ENABLED", "0")
        .run();
    if let Err(error) = built {
        let _ = fs_err::remove_file(&partial);
        return Err(error);
    }
    fs_err::rename(&partial, binary)?;
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
    link_file(&etcd, &link)
}

#[cfg(unix)]
fn link_file(original: &Path, link: &Path) -> Result<()> {
    fs_err::os::unix::fs::symlink(original, link)?;
    Ok(())
}

#[cfg(not(unix))]
fn link_file(original: &Path, copy: &Path) -> Result<()> {
    fs_err::copy(original, copy)?;
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
    if !Cmd::new("apt-get --version").succeeds() {
        bail!("etcd is not on the path: {advice}");
    }
    eprintln!("installing etcd-server");
    let apt = |line: &str| {
        // apt writes its progress to standard output, which belongs to the answer.
        Cmd::new(line)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .read()
            .map(drop)
    };
    let install = "apt-get install --yes --no-install-recommends etcd-server";
    apt(install)
        .or_else(|_| apt("apt-get update").and_then(|()| apt(install)))
        .with_context(|| format!("etcd is not on the path and could not be installed: {advice}"))
}

/// Returns the user's cache folder.
///
/// # Errors
///
/// The environment names none.
pub(crate) fn cache_folder() -> Result<PathBuf> {
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
            let found = version_in(go_mod, "k8s.io/kubernetes");
            assert_eq!(found.as_deref(), expected, "{go_mod}");
        };
        check(
            "require (\n\tk8s.io/component-base v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)",
            Some("1.36.3"),
        );
        check("\tk8s.io/kubernetes v1.37.0 // pinned\n", Some("1.37.0"));
        check("require k8s.io/kubernetes v1.37.0\n", Some("1.37.0"));
        check("\tk8s.io/kubernetes/x v1.37.0\n", None);
        check("replace k8s.io/kubernetes => ../kubernetes\n", None);
        check("", None);
    }

    /// Packages with the same dependencies are compiled once for all programs.
    #[test]
    fn modules_share_what_kube_apiserver_is_built_with() {
        let shared = ["api", "apimachinery", "client-go"].map(|name| format!("k8s.io/{name}"));
        for folder in ["bundle", "catalog", "cel", "helm", "kubectl"].map(module_folder) {
            let go_mod = fs_err::read_to_string(folder.join("go.mod")).unwrap();
            for module in &shared {
                let expected = required_version("kube-apiserver", module).unwrap();
                let found = version_in(&go_mod, module).unwrap();
                assert_eq!(found, expected, "{module} in {}", folder.display());
            }
        }
    }

    #[test]
    fn the_committed_modules_name_versions() {
        let check = |module: &str, required: &str| {
            let version = required_version(module, required).unwrap();
            assert_eq!(version.split('.').count(), 3, "{module}: {version}");
        };
        check("kube-apiserver", "k8s.io/kubernetes");
        check("kwok", "sigs.k8s.io/kwok");
        check("etcd", "go.etcd.io/etcd/server/v3");
        check("kubectl", "k8s.io/kubectl");
        check("helm", "helm.sh/helm/v3");
        check("bundle", "github.com/operator-framework/api");
        check("catalog", "github.com/operator-framework/operator-registry");
    }
}
