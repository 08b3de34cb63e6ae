//! Runs random sequences of commands, and edits files by hand in between. This is a journey of
//! `cargo xtask scaffold`, so the result must compile. Everything else (and many more sequences) is
//! tested by `cli/tests/sequences.rs`, which doesn't compile anything.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::committed::list_files;
use crate::project::share_lockfile;
use crate::scaffold::{lint, make_folder};
use crate::{random, repo};
use random::Random;

#[path = "../../cli/tests/support/sequence.rs"]
mod sequence;

pub(crate) const NAME: &str = "sequences-operator";

/// Number of sequences to run. All of them share a single project, since compiling takes a long
/// time.
const SEQUENCES: u64 = 4;

/// Environment variable for the seed of the first sequence. Set it if you want to test other
/// sequences.
const FIRST_SEED: &str = "RBUILDER_FUZZ_SEED";

/// Runs the commands, with edits in between, and finally compiles the result.
pub(crate) fn walk_sequences(bin: &Path, fresh: bool) -> Result<()> {
    let (_parent, folder) = make_folder(NAME)?;
    let first: u64 = match std::env::var(FIRST_SEED) {
        Ok(seed) => seed.parse().context(FIRST_SEED)?,
        Err(_) => 0,
    };
    for seed in first..first + SEQUENCES {
        walk_sequence(bin, &folder, &mut Random::new(seed))?;
    }
    if !fresh {
        share_lockfile(&folder)?;
    }
    repo::rbuilder_command(bin, &folder, "manifests --check")?
        .echo()
        .run()?;
    lint(&folder)
}

fn walk_sequence(bin: &Path, folder: &Path, random: &mut Random) -> Result<()> {
    for command in sequence::sequence(random) {
        let is_first = !folder.join("PROJECT").exists();
        if command.starts_with("init") != is_first {
            continue;
        }
        let merges = command == "update" || command.starts_with("edit");
        let option = match merges && !command.ends_with(sequence::NO_CONFLICTS) {
            true => sequence::NO_CONFLICTS,
            false => "",
        };
        // Not every command is possible in the current state. If it's rejected, nothing must have
        // changed.
        let is_done = repo::rbuilder_command(bin, folder, &command)?
            .words(option)
            .succeeds();
        println!("{} rbuilder {command}", if is_done { "$" } else { "refused:" });
        if is_done && random.once_in(3) {
            edit_by_hand(folder, random)?;
            repo::rbuilder_command(bin, folder, "manifests")?.run()?;
        }
    }
    Ok(())
}

/// Changes one of the source files, like users do.
fn edit_by_hand(folder: &Path, random: &mut Random) -> Result<()> {
    let files = list_files(&folder.join("src"), "rs")?;
    let path = random.one_of(&files);
    println!("edits {}", path.strip_prefix(folder)?.display());
    let text = fs_err::read_to_string(path)?;
    fs_err::write(path, sequence::edit_rust(&text, random))?;
    Ok(())
}
