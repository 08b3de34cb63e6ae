//! `rbuilder envtest install`: finds an installed version, or downloads it.

#![allow(clippy::disallowed_methods)] // this module writes to the store, which is outside of projects

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{
    choose_selector, describe_not_installed, download_index, newest_installed, open_store, print_directory,
    print_installation, single_platform,
};
use crate::flags::InstallFlags;
use crate::shell::Shell;
use crate::tree::open_given_file;
use rbuilder_control_plane::downloads::archive::{self, unpack};
use rbuilder_control_plane::downloads::download::{Downloads, Hashed, Request, format_size};
use rbuilder_control_plane::downloads::index::{Archive, is_sha512, mirrored};
use rbuilder_control_plane::downloads::selector::{Search, Selector};
use rbuilder_control_plane::downloads::store::{LockedStore, lock};
use rbuilder_control_plane::{Platform, Release, Store, has_programs};

/// Published archives have about 80 MB.
const LARGEST: u64 = 1 << 30;

pub(super) fn run(dir: &Path, flags: &InstallFlags, shell: &mut Shell) -> Result<u8> {
    if let Some(folder) = flags.use_env.then(folder_in_environment).flatten() {
        let json = json!({ "installed": true, "path": folder.display().to_string() });
        print_directory(&folder, flags.env, &json, flags.store.output, shell);
        return Ok(0);
    }
    let store = open_store(dir, &flags.store)?;
    let platform = single_platform(&flags.store)?;
    let selector = choose_selector(dir, flags.selector.as_ref());
    let release = match &flags.from {
        Some(file) => sideload(
            &store,
            &selector,
            platform,
            &from_project(dir, file),
            flags,
            shell,
        )?,
        None => match find_or_download(&store, &selector, &platform, flags, shell)? {
            Some(release) => release,
            None => return Ok(0),
        },
    };
    print_installation(&store, &release, flags.env, flags.store.output, shell);
    Ok(0)
}

fn folder_in_environment() -> Option<PathBuf> {
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)?;
    has_programs(&folder, &Platform::current()).then_some(folder)
}

/// Resolves a path relative to the project directory. `-` is the standard input.
fn from_project(dir: &Path, file: &Path) -> PathBuf {
    if file.as_os_str() == "-" {
        file.to_owned()
    } else {
        dir.join(file)
    }
}

/// Finds an installed release, or else downloads it. Returns `None` in a dry run that would
/// download it.
fn find_or_download(
    store: &Store,
    selector: &Selector,
    platform: &Platform,
    flags: &InstallFlags,
    shell: &mut Shell,
) -> Result<Option<Release>> {
    let is_offline = flags.index.installed_only || selector.search == Search::Store;
    if is_offline && flags.force {
        bail!(
            "`--force` downloads the version again, so it cannot be used with `--installed-only` or `latest-on-disk`"
        );
    }
    let installed = newest_installed(store, selector, platform)?;
    if is_offline {
        return Ok(Some(
            installed.with_context(|| describe_not_installed(store, selector, platform))?,
        ));
    }
    if let (Some(installed), Search::StoreFirst, false) = (&installed, selector.search, flags.force) {
        return Ok(Some(installed.clone()));
    }
    let downloads = Downloads::new(flags.index.timeout);
    let index = download_index(&downloads, &flags.index, shell)?;
    let available = match (index.find(selector, platform), installed) {
        (Ok(available), Some(installed)) if !flags.force && installed >= *available => {
            return Ok(Some(installed));
        }
        (Err(_), Some(installed)) if !flags.force => return Ok(Some(installed)),
        (available, _) => available?,
    };
    let archive = index.archive(available).with_context(|| {
        let Release { version, platform } = available;
        format!("the index has no archive of Kubernetes {version} for `{platform}`")
    })?;
    let archive = match &flags.index.mirror {
        Some(mirror) => Archive {
            url: mirrored(&archive.url, mirror)?,
            ..archive.clone()
        },
        None => archive.clone(),
    };
    if flags.dry_run {
        let folder = store.path(available);
        shell.out(&format!(
            "would download {} to {}\n",
            archive.url,
            folder.display()
        ));
        return Ok(None);
    }
    download(store, available, &archive, &downloads, flags.force, shell)?;
    Ok(Some(available.clone()))
}

fn download(
    store: &Store,
    release: &Release,
    archive: &Archive,
    downloads: &Downloads,
    is_forced: bool,
    shell: &mut Shell,
) -> Result<()> {
    let locked = lock(store, &mut |note| shell.note(&format!("{note}\n")))?;
    if !is_forced && store.is_complete(release) {
        // Another command installed the release while this one waited for the lock.
        return Ok(());
    }
    shell.note(&format!("downloading {}\n", archive.url));
    let url = &archive.url;
    install(&locked, release, |file| {
        let request = Request {
            url,
            largest: LARGEST,
        };
        let sha512 = downloads.file(&request, file, &mut |note| shell.note(&format!("{note}\n")))?;
        check_sum(&sha512, &archive.sha512).with_context(|| format!("cannot use {url}"))
    })
}

/// Installs a release from an archive, which `fill` writes to a file.
fn install(
    locked: &LockedStore<'_>,
    release: &Release,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let stage = locked.stage(release)?;
    let installed = fill_and_unpack(&stage, release, fill).and_then(|()| locked.install(&stage, release));
    if installed.is_err() {
        // Report the original error. If this fails as well, the next command removes leftovers.
        let _ = locked.remove_leftovers();
    }
    installed
}

fn fill_and_unpack(
    stage: &Path,
    release: &Release,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let path = stage.join(".archive");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fill(&mut file)?;
    file.rewind()?;
    unpack(&file, stage, &release.platform, archive::LARGEST)?;
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(())
}

fn check_sum(found: &str, expected: &str) -> Result<()> {
    if found != expected {
        bail!("the checksum of the archive does not match: expected sha512 {expected}, found {found}");
    }
    Ok(())
}

fn sideload(
    store: &Store,
    selector: &Selector,
    platform: Platform,
    path: &Path,
    flags: &InstallFlags,
    shell: &mut Shell,
) -> Result<Release> {
    let version = selector.version().with_context(|| {
        format!("expected one version with `--from`, such as `1.35.2`, found `{selector}`")
    })?;
    let expected = flags.sha512.as_deref().map(str::to_ascii_lowercase);
    if let Some(expected) = expected.as_deref().filter(|expected| !is_sha512(expected)) {
        bail!("expected 128 hexadecimal digits for `--sha512`, found `{expected}`");
    }
    let release = Release { version, platform };
    let mut archive = open_archive(path)?;
    let locked = lock(store, &mut |note| shell.note(&format!("{note}\n")))?;
    if store.is_complete(&release) && !flags.force {
        bail!(
            "{} is installed: pass `--force` to replace it",
            store.path(&release).display()
        );
    }
    let mut sha512 = String::new();
    install(&locked, &release, |file| {
        let mut hashed = Hashed::new(&mut *file);
        // One more byte, to detect an archive that is too large.
        let size = io::copy(&mut archive.as_mut().take(LARGEST + 1), &mut hashed)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if size > LARGEST {
            bail!("{} has more than {}", path.display(), format_size(LARGEST));
        }
        sha512 = hashed.finish();
        match &expected {
            Some(expected) => {
                check_sum(&sha512, expected).with_context(|| format!("cannot use {}", path.display()))
            }
            None => Ok(()),
        }
    })?;
    if expected.is_none() {
        shell.warning(&format!(
            "the archive was not verified: its sha512 checksum is {sha512}"
        ));
    }
    Ok(release)
}

fn open_archive(path: &Path) -> Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    open_given_file(path)
}
