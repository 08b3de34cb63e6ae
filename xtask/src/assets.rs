//! `cargo xtask assets`: prints a folder that can be used as `KUBEBUILDER_ASSETS`. It contains etcd
//! and kube-apiserver, as well as the programs for test environments with controllers and nodes.
//!
//! We build kube-apiserver, kube-controller-manager and kube-scheduler from the Go module in
//! tools/kube-apiserver, and kwok from tools/kwok. The binaries go to the user's cache folder. For
//! etcd we just install the package of the distribution. Nothing but the folder path is printed to
//! stdout, so you can use it in `$(…)`.
//!
//! The packaged etcd might be years older than what is used in clusters. Benchmarks should use
//! [`current_etcd`], which builds a current version from tools/etcd.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::repo;
use crate::sh::Cmd;
use crate::value::read_json;

/// Prints the path of the folder, after building or installing missing programs.
pub(crate) fn print_folder() -> Result<()> {
    println!("{}", ensure_controllers()?.display());
    Ok(())
}

/// Returns the folder with etcd and kube-apiserver, and builds or installs them first if they're
/// missing.
pub(crate) fn ensure_assets() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
        ensure!(
            is_complete(&folder),
            "KUBEBUILDER_ASSETS names {}, which lacks etcd or kube-apiserver: unset it",
            folder.display()
        );
        return Ok(folder);
    }
    let version = required_version("kube-apiserver", "k8s.io/kubernetes")?;
    let folder = cache_folder()?.join(format!("rbuilder/envtest/{version}-{}", platform()));
    fs_err::create_dir_all(&folder)?;
    if !folder.join("kube-apiserver").is_file() {
        require_go(
            ", or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver \
             (`setup-envtest use -p path` makes one)",
        )?;
        eprintln!("building kube-apiserver {version}; this takes some minutes, once");
        build_kubernetes(".", &folder.join("kube-apiserver"))?;
    }
    if !folder.join("etcd").is_file() {
        link_etcd(&folder)?;
    }
    Ok(folder)
}

/// The programs for controllers and nodes. The first two are built together with kube-apiserver.
const CONTROLLERS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];

/// Like [`ensure_assets`], but also adds the programs for controllers and nodes to the folder.
pub(crate) fn ensure_controllers() -> Result<PathBuf> {
    let folder = ensure_assets()?;
    let is_given = std::env::var_os("KUBEBUILDER_ASSETS").is_some();
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
        eprintln!("building {name}; this takes some minutes, once");
        match name {
            "kwok" => go_build("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w", &binary)?,
            name => build_kubernetes(&format!("./{name}"), &binary)?,
        }
    }
    Ok(folder)
}

/// Returns true if this is the version of kwok that tools/kwok requires. We cannot tell from the
/// folder's name, because it only contains the Kubernetes version.
fn is_required_kwok(binary: &Path) -> Result<bool> {
    let version = required_version("kwok", "sigs.k8s.io/kwok")?;
    let printed = Cmd::program(binary).arg("--version").read()?;
    let mut words = printed.split_whitespace();
    Ok(words.any(|word| word.strip_prefix('v') == Some(&*version)))
}

fn is_complete(folder: &Path) -> bool {
    let names = ["etcd", "kube-apiserver"];
    names.iter().all(|name| folder.join(name).is_file())
}

struct Program {
    name: &'static str,
    /// The dependency that determines the version.
    required: &'static str,
    package: &'static str,
    variable: Option<&'static str>,
}

impl Program {
    const fn new(name: &'static str, required: &'static str) -> Self {
        Program {
            name,
            required,
            package: ".",
            variable: None,
        }
    }

    /// Returns the path of the binary, which is built first if necessary.
    fn ensure(&self) -> Result<PathBuf> {
        let Program { name, package, .. } = self;
        let version = required_version(name, self.required)?;
        let folder = cache_folder()?.join(format!("rbuilder/{name}/{version}-{}", platform()));
        let binary = folder.join(name);
        if !binary.is_file() {
            fs_err::create_dir_all(&folder)?;
            eprintln!("building {name} {version}; this takes a minute or two, once");
            let set = |variable| format!("-s -w -X {variable}=v{version}");
            let flags = self.variable.map_or("-s -w".to_owned(), set);
            go_build(name, package, &flags, &binary)?;
        }
        Ok(binary)
    }
}

/// Returns the path of an etcd in the version used in clusters.
///
/// This is for benchmarks. Starting with etcd 3.5, the API server can list the current state from
/// memory.
pub(crate) fn current_etcd() -> Result<PathBuf> {
    Program::new("etcd", "go.etcd.io/etcd/server/v3").ensure()
}

/// Makes sure that there is a kubectl. If it's not on `PATH`, this builds one and returns the
/// folder to add to `PATH`.
pub(crate) fn ensure_kubectl() -> Result<Option<PathBuf>> {
    if Cmd::new("kubectl version --client").succeeds() {
        return Ok(None);
    }
    let kubectl = Program::new("kubectl", "k8s.io/kubectl").ensure()?;
    Ok(kubectl.parent().map(Path::to_owned))
}

pub(crate) fn ensure_helm() -> Result<PathBuf> {
    let helm = Program {
        package: "helm.sh/helm/v3/cmd/helm",
        // Otherwise, Helm would claim to be the oldest release of its major version, and would
        // reject charts that require a newer one.
        variable: Some("helm.sh/helm/v3/internal/version.version"),
        ..Program::new("helm", "helm.sh/helm/v3")
    };
    helm.ensure()
}

const OPERATOR_API: &str = "github.com/operator-framework/api";

pub(crate) fn ensure_bundle_validators() -> Result<PathBuf> {
    Program::new("bundle", OPERATOR_API).ensure()
}

/// Returns the path of the CRD for ClusterServiceVersions. It is from the same version as the bundle
/// validators.
pub(crate) fn ensure_csv_crd() -> Result<PathBuf> {
    let module = format!("{OPERATOR_API}@v{}", required_version("bundle", OPERATOR_API)?);
    let folder = download_module(&module, &module_folder("bundle"))?;
    Ok(folder.join("crds/operators.coreos.com_clusterserviceversions.yaml"))
}

pub(crate) fn download_module(module: &str, from: &Path) -> Result<PathBuf> {
    let about = read_json(Cmd::new("go mod download -json").arg(module).dir(from))?;
    let folder = about["Dir"].as_str().context("go says no folder of the module")?;
    Ok(folder.into())
}

pub(crate) fn ensure_catalog_judge() -> Result<PathBuf> {
    Program::new("catalog", "github.com/operator-framework/operator-registry").ensure()
}

fn module_folder(module: &str) -> PathBuf {
    repo::root().join("tools").join(module)
}

/// Returns the version of a dependency, without the leading `v`, as required by a module in tools/.
fn required_version(module: &str, required: &str) -> Result<String> {
    let go_mod = fs_err::read_to_string(module_folder(module).join("go.mod"))?;
    version_in(&go_mod, required)
        .with_context(|| format!("tools/{module}/go.mod does not require {required}"))
}

/// Returns the version of a dependency in go.mod, without the leading `v`. This supports both
/// `require` blocks and single lines.
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

/// Builds a Kubernetes program. The linker flags set its version. They are the same for all of them,
/// otherwise Go would compile the packages once for each.
fn build_kubernetes(package: &str, binary: &Path) -> Result<()> {
    let version = required_version("kube-apiserver", "k8s.io/kubernetes")?;
    let mut numbers = version.split('.');
    let mut number = || numbers.next().unwrap_or_default();
    let (major, minor) = (number(), number());
    let set = "-X k8s.io/component-base/version";
    let flags = format!("-s -w {set}.gitVersion=v{version} {set}.gitMajor={major} {set}.gitMinor={minor}");
    go_build("kube-apiserver", package, &flags, binary)
}

pub(crate) fn has_go() -> bool {
    Cmd::new("go version").succeeds()
}

/// Returns an error which tells the user what to do if Go is not installed.
pub(crate) fn require_go(otherwise: &str) -> Result<()> {
    ensure!(
        has_go(),
        "`go` is not on the path: install Go 1.26 or newer{otherwise}"
    );
    Ok(())
}

/// Builds a program in one of the modules in tools/, without cgo. We rename the file at the very
/// end, so an incomplete binary never gets its final name.
fn go_build(module: &str, package: &str, linker_flags: &str, binary: &Path) -> Result<()> {
    require_go("")?;
    let partial = binary.with_file_name(format!(".{module}-{}", std::process::id()));
    // We don't need debug information here, and leaving it out saves a seventh of the compile time.
    let built = Cmd::new("go build -trimpath -gcflags=all=-dwarf=false -ldflags")
        .args([linker_flags, "-o"])
        .arg(&partial)
        .arg(package)
        .dir(&module_folder(module))
        .env("CGO_ENABLED", "0")
        .run();
    if built.is_err() {
        let _ = fs_err::remove_file(&partial);
        return built;
    }
    Ok(fs_err::rename(&partial, binary)?)
}

fn link_etcd(folder: &Path) -> Result<()> {
    if find_etcd().is_none() {
        install_package("etcd-server", "etcd", "install etcd 3.4 or newer")?;
    }
    let etcd = find_etcd().context("etcd-server was installed, but no `etcd` is on the path")?;
    let link = folder.join("etcd");
    if link.is_symlink() {
        // The link exists but its target doesn't.
        fs_err::remove_file(&link)?;
    }
    make_link(&etcd, &link)
}

#[cfg(unix)]
pub(crate) fn make_link(original: &Path, link: &Path) -> Result<()> {
    Ok(fs_err::os::unix::fs::symlink(original, link)?)
}

#[cfg(not(unix))]
pub(crate) fn make_link(original: &Path, copy: &Path) -> Result<()> {
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

/// Installs a package on Debian or Ubuntu, provided that we're allowed to. Otherwise returns an
/// error that says that `program` is missing, with `advice` for other systems.
pub(crate) fn install_package(package: &str, program: &str, advice: &str) -> Result<()> {
    let advice = format!("{advice} (Debian and Ubuntu: `apt-get install {package}`)");
    if !Cmd::new("apt-get --version").succeeds() {
        bail!("{program} is not on the path: {advice}");
    }
    eprintln!("installing {package}");
    let apt = |line: &str| {
        // The output of apt must not end up in our stdout, because it is captured by callers.
        Cmd::new(line)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .read()
            .map(drop)
    };
    let install = format!("apt-get install --yes --no-install-recommends {package}");
    apt(&install)
        .or_else(|_| apt("apt-get update").and_then(|()| apt(&install)))
        .with_context(|| format!("{program} is not on the path and could not be installed: {advice}"))
}

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

/// Returns the operating system and the processor architecture of this machine, with Go's names.
/// setup-envtest uses them in folder names.
fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    };
    format!("{os}-{}", architecture())
}

/// Returns the processor architecture of this machine, with Go's name. Images use the same one.
pub(crate) fn architecture() -> &'static str {
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
    fn parses_required_version_in_go_mod() {
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

    /// If the versions are equal, the packages are compiled just once for all programs.
    #[test]
    fn modules_use_dependency_versions_of_kube_apiserver() {
        let shared = ["api", "apimachinery", "client-go"].map(|name| format!("k8s.io/{name}"));
        for folder in ["bundle", "catalog", "cel", "helm", "kubectl", "protobuf"].map(module_folder) {
            let go_mod = fs_err::read_to_string(folder.join("go.mod")).unwrap();
            for module in &shared {
                let expected = required_version("kube-apiserver", module).unwrap();
                let found = version_in(&go_mod, module).unwrap();
                assert_eq!(found, expected, "{module} in {}", folder.display());
            }
        }
    }

    #[test]
    fn committed_modules_require_full_versions() {
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
