//! Compares our file-based catalogs with operator-registry, which is what `opm validate` uses.
//!
//! Its verdicts on a few hundred channels are in crates/products/src/bundle/catalog/verdicts.txt.
//! With this file the command's tests can check their results even if Go isn't installed. We also
//! check here that there is no (random) sequence of releases for which we produce a catalog that
//! operator-registry would reject.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::committed::update_file;
use crate::sh::Cmd;
use crate::{assets, repo};

const VERDICTS: &str = "crates/products/src/bundle/catalog/verdicts.txt";

/// The validator for catalogs from operator-registry.
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

    /// Returns an error if the catalog is rejected.
    pub(crate) fn accept(&self, folder: &Path) -> Result<()> {
        let verdict = self.judge(&[folder.to_owned()])?.concat();
        ensure!(verdict == "ok", "{} is refused: {verdict}", folder.display());
        Ok(())
    }
}

/// Pseudorandom number generator (xorshift by Marsaglia).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number that is less than `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn choose<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len())]
    }
}

const CHANNELS: usize = 600;

/// Validates random channels. The verdicts are either recorded or compared with what we have
/// recorded before.
pub(crate) fn record_verdicts(judge: &CatalogJudge, record: bool) -> Result<()> {
    let channels: BTreeSet<String> = (0..CHANNELS as u64).map(random_channel).collect();
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

/// Returns a random channel such as `0.2.0 > 0.1.0 ~ 0.1.1 | 0.1.0`. For each version this says
/// which version it replaces and which ones it skips. If all of it was random, hardly any channel
/// would be valid, so half of the channels start from a linear sequence of upgrades with a few
/// changes.
fn random_channel(seed: u64) -> String {
    const VERSIONS: [&str; 6] = ["0.6.0", "0.5.0", "0.4.0", "0.3.0", "0.2.0", "0.1.0"];
    let mut random = Random::new(seed);
    let versions = &VERSIONS[random.below(4)..];
    let is_line = random.below(2) == 0;
    let entry = |(at, version): (usize, &&str)| {
        let mut entry = (*version).to_owned();
        let below = versions.get(at + 1).filter(|_| is_line && random.below(8) > 0);
        match below {
            Some(below) => entry.push_str(&format!(" > {below}")),
            None if random.below(3) > 0 => entry.push_str(&format!(" > {}", random.choose(&VERSIONS))),
            None => {}
        }
        let skips: BTreeSet<&str> = (0..random.below(5).saturating_sub(2))
            .map(|_| random.choose(&VERSIONS))
            .collect();
        if !skips.is_empty() {
            entry.push_str(&format!(" ~ {}", skips.into_iter().collect::<Vec<_>>().join(",")));
        }
        entry
    };
    let entries: Vec<String> = versions.iter().enumerate().map(entry).collect();
    entries.join(" | ")
}

/// Returns a catalog with just this channel.
fn print_catalog(channel: &str) -> String {
    let mut entries = String::new();
    let mut bundles = String::new();
    for entry in channel.split(" | ") {
        let (entry, skips) = entry.split_once(" ~ ").unwrap_or((entry, ""));
        let (version, replaces) = entry.split_once(" > ").unwrap_or((entry, ""));
        entries.push_str(&format!("- name: shop.v{version}\n"));
        if !replaces.is_empty() {
            entries.push_str(&format!("  replaces: shop.v{replaces}\n"));
        }
        if !skips.is_empty() {
            let skips: Vec<String> = skips
                .split(',')
                .map(|version| format!("shop.v{version}"))
                .collect();
            entries.push_str(&format!("  skips: [{}]\n", skips.join(", ")));
        }
        bundles.push_str(&format!(
            "---\nschema: olm.bundle\npackage: shop\nname: shop.v{version}\nimage: shop\nproperties:\n- type: olm.package\n  value: {{ packageName: shop, version: {version} }}\n"
        ));
    }
    format!(
        "---\nschema: olm.package\nname: shop\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: shop\nname: stable\nentries:\n{entries}{bundles}"
    )
}

const SEQUENCES: u64 = 24;

/// Creates releases in random order and with random flags. Checks that operator-registry accepts
/// all catalogs.
pub(crate) fn check_sequences(judge: &CatalogJudge, bin: &Path, folder: &Path) -> Result<()> {
    let base = folder.join("base");
    fs_err::create_dir(&base)?;
    for line in [
        "init --domain example.com --project-name shop",
        "create api --group cache --version v1 --kind Cup --controller=false",
    ] {
        repo::rbuilder_command(bin, &base, line)?.read()?;
    }
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
    let mut random = Random::new(seed + 1);
    let mut versions = vec![
        "0.1.0",
        "0.1.1",
        "0.2.0-rc.1",
        "0.2.0",
        "0.2.1",
        "0.3.0-rc.1",
        "0.3.0",
        "0.4.0",
    ];
    let in_order = random.below(2) == 0;
    let mut done = Vec::new();
    let mut lines = Vec::new();
    while !versions.is_empty() {
        let version = versions.remove(if in_order { 0 } else { random.below(versions.len()) });
        let mut line = format!("bundle --manifests=false --version {version}");
        if random.below(2) == 0 {
            line.push_str(&format!(" --channels {}", random.choose(&CHANNELS)));
        }
        if !done.is_empty() && random.below(3) == 0 {
            line.push_str(&format!(
                " --skips {},{}",
                random.choose(&done),
                random.choose(&done)
            ));
        }
        if !done.is_empty() && random.below(5) == 0 {
            line.push_str(&format!(" --replaces {}", random.choose(&done)));
        }
        if !repo::rbuilder_command(bin, project, &line)?.succeeds() {
            continue;
        }
        let again = repo::rbuilder_command(bin, project, &line)?.read()?;
        ensure!(
            again.starts_with("unchanged"),
            "a second `rbuilder {line}` changes files"
        );
        done.push(version);
        lines.push(line);
        let copy = project.with_extension(done.len().to_string());
        Cmd::new("cp -r").arg(project.join("catalog")).arg(&copy).run()?;
        released.push((copy, lines.clone()));
    }
    Ok(())
}
