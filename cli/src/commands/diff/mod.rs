//! `rbuilder diff`: compares manifests with an older state, or a CRD's versions with each other.

mod cluster;
mod example;
mod json;
mod markdown;
mod revision;
mod round_trips;
mod sides;
mod text;

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_compatibility::{Budget, Change, Level, compare, find_losses};

use self::cluster::Stored;
use self::round_trips::RoundTrips;
use self::sides::{Newer, Sides};
use crate::flags::{DiffFlags, DiffFormat, FailLevel};
use crate::shell::Shell;
use crate::tree::Tree;

/// Most important first.
const LEVELS: [Level; 3] = [Level::Breaking, Level::Risky, Level::Compatible];

enum Subject {
    /// An older state, e.g. `main (1a2b3c4)`.
    Base(String),
    Versions {
        pairs: usize,
        converted_by_webhook: Vec<Converted>,
    },
}

struct Converted {
    name: String,
    /// Versions whose conversion isn't covered by the project's tests. `None` without a project.
    untested: Option<Vec<String>>,
}

struct Report {
    subject: Subject,
    changes: Vec<Change>,
    /// Objects in the cluster affected by the new CRDs. `None` without a cluster.
    stored: Option<Stored>,
}

impl Report {
    fn of_level(&self, level: Level) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.level == level)
    }

    /// Counts changes by level, e.g. `1 breaking, 0 risky, 2 compatible`.
    fn summary(&self) -> String {
        let counts = LEVELS.map(|level| format!("{} {}", self.of_level(level).count(), level.as_str()));
        counts.join(", ")
    }

    fn has_untested(&self) -> bool {
        let Subject::Versions {
            converted_by_webhook, ..
        } = &self.subject
        else {
            return false;
        };
        let mut untested = converted_by_webhook
            .iter()
            .filter_map(|crd| crd.untested.as_ref());
        untested.any(|versions| !versions.is_empty())
    }

    fn fails(&self, level: FailLevel) -> bool {
        let least = match level {
            FailLevel::Breaking => Level::Breaking,
            FailLevel::Risky => Level::Risky,
            FailLevel::Never => return false,
        };
        let is_hurt = self
            .stored
            .as_ref()
            .is_some_and(|stored| !stored.affected.is_empty());
        is_hurt
            || least == Level::Risky && self.has_untested()
            || self.changes.iter().any(|change| change.is_at_least(least))
    }
}

/// Runs the command. The exit code is 1 if a change has the level of `--fail-on`.
pub(super) fn run(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<u8> {
    let report = match flags.versions {
        true => compare_versions(dir, typed_in, flags, shell)?,
        false => compare_states(dir, typed_in, flags, shell)?,
    };
    match flags.output {
        DiffFormat::Text => shell.report(&text::render(&report)),
        DiffFormat::Json => shell.out(&format!("{:#}\n", json::render(&report))),
        DiffFormat::Markdown => shell.out(&markdown::render(&report)),
    }
    Ok(u8::from(report.fails(flags.fail_on)))
}

fn compare_states(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<Report> {
    let Sides {
        base,
        old,
        new,
        cluster,
    } = sides::read_sides(dir, typed_in, flags, shell)?;
    let changes = compare(&old, &new).map_err(|reason| anyhow!(reason))?;
    let stored = match cluster {
        Some(kubectl) => Some(cluster::judge_objects(&kubectl, &old, &new)?),
        None => None,
    };
    Ok(Report {
        subject: Subject::Base(base),
        changes,
        stored,
    })
}

fn compare_versions(dir: &Path, typed_in: &Path, flags: &DiffFlags, shell: &mut Shell) -> Result<Report> {
    let Newer { objects, .. } = sides::read_newer(dir, typed_in, flags, shell)?;
    let losses = find_losses(&objects, &Budget::default()).map_err(|reason| anyhow!(reason))?;
    let is_empty = losses.pairs == 0 && losses.converted_by_webhook.is_empty();
    if is_empty && !flags.allow_empty {
        bail!(
            "expected a CustomResourceDefinition with several versions, found none to compare; pass `--allow-empty` if \
             that is intended"
        );
    }
    let tests = match flags.files.is_empty() && !losses.converted_by_webhook.is_empty() {
        true => Some(RoundTrips::read(&Tree::new(dir))?),
        false => None,
    };
    let examine = |name: String| {
        let crd = objects
            .iter()
            .find(|crd| crd["metadata"]["name"] == name.as_str());
        Converted {
            untested: tests
                .as_ref()
                .zip(crd)
                .map(|(tests, crd)| tests.find_untested(crd)),
            name,
        }
    };
    Ok(Report {
        subject: Subject::Versions {
            pairs: losses.pairs,
            converted_by_webhook: losses.converted_by_webhook.into_iter().map(examine).collect(),
        },
        changes: losses.changes,
        stored: None,
    })
}
