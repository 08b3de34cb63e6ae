//! `rbuilder envtest`: manages the binaries for test environments.

mod install;
mod list;
mod remove;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::kubernetes::find_project_minor;
use crate::flags::{Envtest, IndexFlags, Output, PathFlags, StoreFlags};
use crate::posix::{quote, quote_word};
use crate::shell::Shell;
use crate::tree::Tree;
use rbuilder_control_plane::downloads::download::{Downloads, Request};
use rbuilder_control_plane::downloads::index::{self, Index, mirrored};
use rbuilder_control_plane::downloads::selector::{Search, Selector};
use rbuilder_control_plane::downloads::store::{locate, read_installed};
use rbuilder_control_plane::{Installed, Platform, Release, Store, is_word};

pub(super) fn run(dir: &Path, command: &Envtest, shell: &mut Shell) -> Result<u8> {
    match command {
        Envtest::Install(flags) => install::run(dir, flags, shell),
        Envtest::List(flags) => list::run(dir, flags, shell),
        Envtest::Path(flags) => print_path(dir, flags, shell),
        Envtest::Remove(flags) => remove::run(dir, flags, shell),
    }
}

fn print_path(dir: &Path, flags: &PathFlags, shell: &mut Shell) -> Result<u8> {
    let store = open_store(dir, &flags.store)?;
    let platform = single_platform(&flags.store)?;
    let selector = choose_selector(dir, flags.selector.as_ref());
    let release = newest_installed(&store, &selector, &platform)?
        .with_context(|| describe_not_installed(&store, &selector, &platform))?;
    print_installation(&store, &release, flags.env, flags.store.output, shell);
    Ok(0)
}

/// Directory of the newest installed binaries for the project's Kubernetes minor version.
pub(super) fn find_installed(dir: &Path) -> Option<PathBuf> {
    let store = locate(None).ok()?;
    let release = newest_installed(&store, &choose_selector(dir, None), &Platform::current()).ok()??;
    Some(store.path(&release))
}

/// Opens the store named by the flags. Relative paths start at the project directory.
fn open_store(dir: &Path, flags: &StoreFlags) -> Result<Store> {
    locate(flags.bin_dir.as_ref().map(|folder| dir.join(folder)))
}

/// The selector on the command line. Defaults to the project's Kubernetes minor version.
fn choose_selector(dir: &Path, selector: Option<&Selector>) -> Selector {
    selector
        .cloned()
        .unwrap_or_else(|| Selector::minor(find_project_minor(&Tree::new(dir)).number().into()))
}

/// The platform, for a command that only supports one.
fn single_platform(flags: &StoreFlags) -> Result<Platform> {
    let current = Platform::current();
    let platform = Platform {
        os: flags.os.clone().unwrap_or(current.os),
        arch: flags.arch.clone().unwrap_or(current.arch),
    };
    for (flag, word) in [("--os", &platform.os), ("--arch", &platform.arch)] {
        if !is_word(word) {
            bail!("expected a name such as `linux` or `amd64` for `{flag}`, found `{word}`");
        }
    }
    Ok(platform)
}

/// Whether the flags include a platform. Defaults to the current one.
fn includes_platform(flags: &StoreFlags, platform: &Platform) -> bool {
    let current = Platform::current();
    let includes = |flag: &Option<String>, default: &str, part: &str| match flag.as_deref() {
        Some("*") => true,
        flag => flag.unwrap_or(default) == part,
    };
    includes(&flags.os, &current.os, &platform.os) && includes(&flags.arch, &current.arch, &platform.arch)
}

fn newest_installed(store: &Store, selector: &Selector, platform: &Platform) -> Result<Option<Release>> {
    let mut installed = read_installed(store)?.into_iter();
    let found = installed.find(|Installed { release, is_complete }| {
        *is_complete && release.platform == *platform && selector.matches(release.version)
    });
    Ok(found.map(|installed| installed.release))
}

fn describe_not_installed(store: &Store, selector: &Selector, platform: &Platform) -> String {
    let installed = read_installed(store).unwrap_or_default().into_iter();
    let here = installed.filter(|installed| installed.is_complete && installed.release.platform == *platform);
    let here: Vec<String> = here
        .map(|installed| installed.release.version.to_string())
        .collect();
    let here = if here.is_empty() {
        "nothing".to_owned()
    } else {
        here.join(", ")
    };
    format!(
        "Kubernetes {selector} is not installed for `{platform}` (installed: {here}): run `{}`",
        install_command(selector, platform)
    )
}

fn install_command(selector: &Selector, platform: &Platform) -> String {
    // A selector for the store can't be installed from an index.
    let version = match selector.search {
        Search::Store => "latest".to_owned(),
        _ => quote_word(&selector.to_string()),
    };
    let Platform { os, arch } = platform;
    match *platform == Platform::current() {
        true => format!("rbuilder envtest install {version}"),
        false => format!("rbuilder envtest install {version} --os {os} --arch {arch}"),
    }
}

fn download_index(downloads: &Downloads, flags: &IndexFlags, shell: &mut Shell) -> Result<Index> {
    let url = match (&flags.index, &flags.mirror) {
        (Some(index), _) => index.clone(),
        (None, Some(mirror)) => mirrored(index::DEFAULT_URL, mirror)?,
        (None, None) => index::DEFAULT_URL.to_owned(),
    };
    let request = Request {
        url: &url,
        largest: index::LARGEST,
    };
    let text = downloads
        .text(&request, &mut |note| shell.note(&format!("{note}\n")))
        .map_err(|error| {
            anyhow!(
                "cannot download the index of available versions: {error:#}\n  = help: to use installed versions only, pass `--installed-only`"
            )
        })?;
    Index::parse(&text).with_context(|| format!("cannot read the index {url}"))
}

fn print_installation(store: &Store, release: &Release, as_command: bool, output: Output, shell: &mut Shell) {
    let json = describe(store, release);
    print_directory(&store.path(release), as_command, &json, output, shell);
}

fn print_directory(folder: &Path, as_command: bool, json: &Value, output: Output, shell: &mut Shell) {
    let shown = folder.display().to_string();
    match (output, as_command) {
        (Output::Json, _) => shell.out(&format!("{json:#}\n")),
        (Output::Text, true) => shell.out(&format!("export KUBEBUILDER_ASSETS={}\n", quote(&shown))),
        (Output::Text, false) => shell.out(&format!("{shown}\n")),
    }
}

fn describe(store: &Store, release: &Release) -> Value {
    let path: PathBuf = store.path(release);
    json!({
        "version": release.version.to_string(),
        "os": release.platform.os,
        "arch": release.platform.arch,
        "installed": true,
        "path": path.display().to_string(),
    })
}
