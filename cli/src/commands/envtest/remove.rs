//! `rbuilder envtest remove`.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{describe, includes_platform, open_store};
use crate::flags::{Output, RemoveFlags};
use crate::shell::Shell;
use rbuilder_control_plane::downloads::selector::Selector;
use rbuilder_control_plane::downloads::store::{lock, read_installed};
use rbuilder_control_plane::{Installed, Release, Store};

pub(super) fn run(dir: &Path, flags: &RemoveFlags, shell: &mut Shell) -> Result<u8> {
    let store = open_store(dir, &flags.store)?;
    let releases = choose(&store, flags)?;
    if !releases.is_empty() && !flags.dry_run {
        let locked = lock(&store, &mut |note| shell.note(&format!("{note}\n")))?;
        for release in &releases {
            locked.remove(release)?;
        }
    }
    print(&store, &releases, flags, shell);
    Ok(0)
}

fn choose(store: &Store, flags: &RemoveFlags) -> Result<Vec<Release>> {
    let all = Selector::all();
    let selector = flags.selector.as_ref().unwrap_or(&all);
    let installed = read_installed(store)?.into_iter();
    Ok(installed
        .map(|Installed { release, .. }| release)
        .filter(|release| selector.matches(release.version))
        .filter(|release| includes_platform(&flags.store, &release.platform))
        .collect())
}

fn print(store: &Store, releases: &[Release], flags: &RemoveFlags, shell: &mut Shell) {
    if flags.store.output == Output::Json {
        let removed: Vec<_> = releases
            .iter()
            .map(|release| {
                let mut removed = describe(store, release);
                removed["installed"] = json!(flags.dry_run);
                removed
            })
            .collect();
        return shell.out(&format!("{:#}\n", json!(removed)));
    }
    let verb = if flags.dry_run { "would remove" } else { "removed" };
    for release in releases {
        shell.out(&format!("{verb} {} ({})\n", release.version, release.platform));
    }
    if releases.is_empty() {
        shell.note("no such version is installed\n");
    }
}
