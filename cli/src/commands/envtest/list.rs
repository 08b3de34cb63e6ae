//! `rbuilder envtest list`: lists installed and available versions without duplicates, newest
//! first.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{describe, download_index, includes_platform, open_store};
use crate::flags::{ListFlags, Output};
use crate::shell::Shell;
use rbuilder_control_plane::downloads::download::Downloads;
use rbuilder_control_plane::downloads::selector::Selector;
use rbuilder_control_plane::downloads::store::read_installed;
use rbuilder_control_plane::{Installed, Release, Store};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Installed,
    Incomplete,
    Available,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Installed => "installed",
            State::Incomplete => "incomplete",
            State::Available => "available",
        }
    }
}

pub(super) fn run(dir: &Path, flags: &ListFlags, shell: &mut Shell) -> Result<u8> {
    let store = open_store(dir, &flags.store)?;
    let mut found: BTreeMap<Release, State> = BTreeMap::new();
    if !flags.index.installed_only {
        let index = download_index(&Downloads::new(flags.index.timeout), &flags.index, shell)?;
        found.extend(index.all().map(|release| (release.clone(), State::Available)));
    }
    for Installed { release, is_complete } in read_installed(&store)? {
        found.insert(
            release,
            if is_complete {
                State::Installed
            } else {
                State::Incomplete
            },
        );
    }
    let all = Selector::all();
    let selector = flags.selector.as_ref().unwrap_or(&all);
    found.retain(|release, _| {
        selector.matches(release.version) && includes_platform(&flags.store, &release.platform)
    });
    print(&store, &found, flags.store.output, shell);
    Ok(0)
}

fn print(store: &Store, found: &BTreeMap<Release, State>, output: Output, shell: &mut Shell) {
    let mut rows: Vec<(&Release, State)> = found
        .iter()
        .rev()
        .map(|(release, state)| (release, *state))
        .collect();
    rows.sort_by_key(|(_, state)| *state == State::Available);
    if output == Output::Json {
        let versions: Vec<_> = rows
            .iter()
            .map(|(release, state)| {
                let mut version = describe(store, release);
                if *state != State::Installed {
                    version["installed"] = json!(false);
                    version["path"] = json!(null);
                }
                version
            })
            .collect();
        return shell.out(&format!("{:#}\n", json!(versions)));
    }
    for (release, state) in rows {
        let (state, version) = (format!("({})", state.name()), format!("v{}", release.version));
        shell.out(&format!("{state:<12}  {version:<8}  {}\n", release.platform));
    }
}
