//! Compares our file-based catalogs with operator-registry, which is what `opm validate` uses.
//!
//! Its verdicts on a few hundred channels are in crates/products/src/bundle/catalog/verdicts.txt.
//! With this file the command's tests can check their results even if Go isn't installed. We also
//! check here that there is no (random) sequence of releases for which we produce a catalog that
//! operator-registry would reject.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::committed::update_file;
use crate::project::{make_project, run_again};
use crate::random::Random;
use crate::sh::Cmd;
use crate::{assets, repo};

const VERDICTS: &str = "crates/products/src/bundle/catalog/verdicts.txt";

pub(crate) struct CatalogJudge(PathBuf);

impl CatalogJudge {
    /// Returns the validator. It's built first if necessary.
    pub(crate) fn new() -> Result<Self> {
        assets::ensure_catalog_judge().map(CatalogJudge)
    }

    /// Validates the catalog in each folder. Returns `ok` for a valid catalog, otherwise the error.
    fn judge(&self, folders: &[PathBuf]) -> Result<Vec<String>> {
        let lines = Cmd::program(&self.0).shown_as("catalog").args(folders).read()?;
        let verdicts: Vec<String> = lines.lines().map(str::to_owned).collect();
        ensure!(
            verdicts.len() == folders.len(),
            "{} verdicts on {} catalogs",
            verdicts.len(),
            folders.len()
        );
        Ok(verdicts)
    }

    pub(crate) fn accept(&self, folder: &Path) -> Result<()> {
        let verdict = self.judge(&[folder.to_owned()])?.concat();
        ensure!(verdict == "ok", "{} is refused: {verdict}", folder.display());
        Ok(())
    }
}

/// Validates the channels in the record, e.g. `0.2.0 > 0.1.0 ~ 0.1.1 | 0.1.0`. For each version this
/// says which version it replaces and which ones it skips. The channels were made at random. To add
/// another one, add a line with any verdict.
pub(crate) fn record_verdicts(judge: &CatalogJudge, record: bool) -> Result<()> {
    let recorded = fs_err::read_to_string(repo::root().join(VERDICTS))?;
    let channels = recorded.lines().filter_map(|line| line.split_once(": "));
    let channels: BTreeSet<&str> = channels.map(|(_, channel)| channel).collect();
    let folder = tempfile::Builder::new().prefix("rbuilder-channels-").tempdir()?;
    let mut folders = Vec::new();
    for (number, channel) in channels.iter().enumerate() {
        let path = folder.path().join(number.to_string());
        fs_err::create_dir(&path)?;
        fs_err::write(path.join("catalog.yaml"), print_catalog(channel))?;
        folders.push(path);
    }
    let mut text = String::new();
    for (channel, verdict) in channels.iter().zip(judge.judge(&folders)?) {
        let verdict = if verdict == "ok" { "ok" } else { "refused" };
        text.push_str(&format!("{verdict}: {channel}\n"));
    }
    update_file(VERDICTS, text.as_bytes(), !record, "bundle --record")
}

fn print_catalog(channel: &str) -> String {
    let name = |version: &str| format!("shop.v{version}");
    let (mut entries, mut bundles) = (Vec::new(), Vec::new());
    for entry in channel.split(" | ") {
        let (entry, skips) = entry.split_once(" ~ ").unwrap_or((entry, ""));
        let (version, replaces) = entry.split_once(" > ").unwrap_or((entry, ""));
        let mut entry = json!({ "name": name(version) });
        if !replaces.is_empty() {
            entry["replaces"] = name(replaces).into();
        }
        if !skips.is_empty() {
            entry["skips"] = skips.split(',').map(name).collect();
        }
        entries.push(entry);
        let package = json!({ "packageName": "shop", "version": version });
        bundles.push(json!({
            "schema": "olm.bundle",
            "package": "shop",
            "name": name(version),
            "image": "shop",
            "properties": [{ "type": "olm.package", "value": package }],
        }));
    }
    let package = json!({ "schema": "olm.package", "name": "shop", "defaultChannel": "stable" });
    let channel = json!({
        "schema": "olm.channel",
        "package": "shop",
        "name": "stable",
        "entries": entries,
    });
    let documents = [package, channel].into_iter().chain(bundles);
    documents.map(|document| format!("---\n{document}\n")).collect()
}

const SEQUENCES: u64 = 24;

/// Creates releases in random order and with random flags. Checks that operator-registry accepts
/// all catalogs.
pub(crate) fn check_sequences(judge: &CatalogJudge, bin: &Path, folder: &Path) -> Result<()> {
    let base = folder.join("base");
    let commands = [
        "init --domain example.com --project-name shop",
        "create api --group cache --version v1 --kind Cup --controller=false",
    ];
    make_project(bin, &base, &commands)?;
    let mut released = Vec::new();
    for seed in 0..SEQUENCES {
        let project = folder.join(format!("sequence-{seed}"));
        Cmd::new("cp -r").arg(&base).arg(&project).run()?;
        make_releases(bin, &project, seed, &mut released).with_context(|| format!("sequence {seed}"))?;
    }
    let folders: Vec<PathBuf> = released.iter().map(|(folder, _)| folder.clone()).collect();
    for ((_, lines), verdict) in released.iter().zip(judge.judge(&folders)?) {
        ensure!(
            verdict == "ok",
            "the catalog after these is refused: {verdict}\n{}",
            lines.join("\n")
        );
    }
    ensure!(
        released.len() as u64 > 2 * SEQUENCES,
        "only {} releases were made",
        released.len()
    );
    Ok(())
}

/// Creates the releases for a seed. A copy of each catalog is added to `released`, together with
/// the commands that we have run so far.
fn make_releases(
    bin: &Path,
    project: &Path,
    seed: u64,
    released: &mut Vec<(PathBuf, Vec<String>)>,
) -> Result<()> {
    const CHANNELS: [&str; 5] = [
        "stable",
        "candidate",
        "stable,candidate",
        "candidate,fast",
        "fast,stable",
    ];
    const VERSIONS: &str = "0.1.0 0.1.1 0.2.0-rc.1 0.2.0 0.2.1 0.3.0-rc.1 0.3.0 0.4.0";
    let mut random = Random::new(seed);
    let mut versions: Vec<&str> = VERSIONS.split(' ').collect();
    let in_order = random.once_in(2);
    let mut done: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    while !versions.is_empty() {
        let version = versions.remove(if in_order { 0 } else { random.below(versions.len()) });
        let mut line = format!("bundle --manifests=false --version {version}");
        if random.once_in(2) {
            line += &format!(" --channels {}", random.text(&CHANNELS));
        }
        if !done.is_empty() && random.once_in(3) {
            line += &format!(" --skips {},{}", random.text(&done), random.text(&done));
        }
        if !done.is_empty() && random.once_in(5) {
            line += &format!(" --replaces {}", random.text(&done));
        }
        if !repo::rbuilder_command(bin, project, &line)?.succeeds() {
            continue;
        }
        run_again(bin, project, &line)?;
        done.push(version);
        lines.push(line);
        let copy = project.with_extension(done.len().to_string());
        Cmd::new("cp -r").arg(project.join("catalog")).arg(&copy).run()?;
        released.push((copy, lines.clone()));
    }
    Ok(())
}
