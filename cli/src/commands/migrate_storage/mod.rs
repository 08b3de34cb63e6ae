//! `rbuilder migrate-storage`: rewrites all objects of a CRD so that they are stored in the storage
//! version, and then removes all other versions from `status.storedVersions`.
//!
//! The stored versions are only modified if all objects were written after the CRD got its storage
//! version, and its spec hasn't changed since. If a run is killed, the next one resumes where it
//! left off. See [`definition`] for details.

mod by_cluster;
mod definition;
mod keys;
mod permissions;
mod progress;
mod project;
mod report;
mod requests;
mod rewrite;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use self::by_cluster::End;
use self::definition::Definition;
use self::progress::Progress;
use self::project::{Wanted, find_wanted};
use self::requests::Requests;
use self::rewrite::{Pace, Rewrite, Tally};
use super::find_kubectl;
use crate::cluster::{Interrupt, Proxy};
use crate::count::counted;
use crate::engine::Output;
use crate::flags::{MigrateStorageFlags, Migrator};
use crate::shell::Shell;

/// Default value of `--qps`. By comparison, client-go sends up to 5 requests per second, and
/// kubectl 50 on average.
const WRITES_PER_SECOND: u32 = 100;
/// Time for all API servers of a cluster to pick up the new storage version. A watch notifies them,
/// so it actually takes less than a second.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Debug)]
enum State {
    /// In the project, but not in the cluster.
    Absent,
    /// All objects were already stored in the storage version.
    Unneeded,
    /// The API server would accept all writes.
    Accepted,
    Migrated,
    /// The stored versions weren't modified, with the reason.
    Incomplete(String),
}

#[derive(Debug)]
struct Outcome {
    name: String,
    storage: Option<String>,
    before: Vec<String>,
    after: Vec<String>,
    by_cluster: bool,
    /// Total number of objects, and how many of them earlier runs had written.
    objects: usize,
    earlier: usize,
    tally: Tally,
    state: State,
}

impl Outcome {
    fn new(name: &str) -> Outcome {
        Outcome {
            name: name.to_owned(),
            storage: None,
            before: Vec::new(),
            after: Vec::new(),
            by_cluster: false,
            objects: 0,
            earlier: 0,
            tally: Tally::default(),
            state: State::Absent,
        }
    }

    fn is_incomplete(&self) -> bool {
        matches!(self.state, State::Incomplete(_))
    }
}

/// Runs the command. The exit code is 1 if at least one CRD wasn't migrated.
pub(super) fn run(dir: &Path, flags: &MigrateStorageFlags, shell: &mut Shell) -> Result<u8> {
    if flags.migrator == Migrator::Cluster && flags.qps.is_some() {
        bail!("expected `--qps` or `--migrator cluster`, found both: the cluster writes at its own rate");
    }
    let wanted = find_wanted(dir, flags, shell)?;
    let kubectl = find_kubectl(dir, &flags.cluster.choice())?;
    let interrupt = Interrupt::install()?;
    let server = Proxy::start(&kubectl)?;
    let job = Job {
        requests: Requests {
            server: &server,
            interrupt: &interrupt,
        },
        flags,
    };
    let mut outcomes = Vec::new();
    for wanted in &wanted {
        outcomes.push(job.migrate(wanted, shell));
        if interrupt.is_asked() {
            break;
        }
    }
    match flags.output {
        Output::Text => shell.report(&report::render(&outcomes)),
        Output::Json => shell.out(&format!("{:#}\n", report::to_json(&outcomes, flags.dry_run))),
    }
    Ok(u8::from(
        outcomes.iter().any(Outcome::is_incomplete) || interrupt.is_asked(),
    ))
}

struct Job<'a> {
    requests: Requests<'a>,
    flags: &'a MigrateStorageFlags,
}

impl Job<'_> {
    fn migrate(&self, wanted: &Wanted, shell: &mut Shell) -> Outcome {
        let mut outcome = Outcome::new(&wanted.name);
        if let Err(error) = self.try_migrate(wanted, &mut outcome, shell) {
            outcome.state = State::Incomplete(format!("{error:#}"));
        }
        outcome
    }

    fn try_migrate(&self, wanted: &Wanted, outcome: &mut Outcome, shell: &mut Shell) -> Result<()> {
        let Some(definition) = Definition::read(&self.requests, &wanted.name)? else {
            return match wanted.storage {
                // The project isn't installed yet, which is fine: the state stays `Absent`.
                Some(_) => Ok(()),
                None => bail!("the cluster has no such CRD"),
            };
        };
        outcome.storage = Some(definition.storage.clone());
        outcome.before.clone_from(&definition.stored);
        outcome.after.clone_from(&definition.stored);
        warn_of_other_version(wanted, &definition, shell);
        if definition.is_migrated() {
            if !self.flags.dry_run {
                definition.forget(&self.requests)?;
            }
            outcome.state = State::Unneeded;
            return Ok(());
        }
        if !definition.is_storage_served() {
            bail!(
                "the API server does not serve the storage version {}, and writes in another version could lose fields: serve it",
                definition.storage
            );
        }
        if self.may_use_cluster() && self.migrate_by_cluster(&definition, outcome, shell)? {
            return Ok(());
        }
        self.migrate_by_rbuilder(&definition, outcome, shell)
    }

    /// Whether to try a migration by the cluster first. Not for a dry run or a rate limit.
    fn may_use_cluster(&self) -> bool {
        let flags = self.flags;
        !flags.dry_run && flags.qps.is_none() && flags.migrator != Migrator::Rbuilder
    }

    /// Makes the cluster write the objects. Returns false if we have to do it ourselves.
    fn migrate_by_cluster(
        &self,
        definition: &Definition,
        outcome: &mut Outcome,
        shell: &mut Shell,
    ) -> Result<bool> {
        let mut progress = Progress::new(&definition.name);
        let end = by_cluster::migrate(&self.requests, definition, &mut |message| {
            progress.show_message(message, shell);
        });
        let reason = match end? {
            End::Migrated => {
                outcome.by_cluster = true;
                outcome.after = definition.trim(&self.requests)?.stored;
                outcome.state = State::Migrated;
                return Ok(true);
            }
            End::Unavailable(reason) => format!("the cluster does not migrate: {reason}"),
            End::Failed(reason) => format!("the migration by the cluster failed: {reason}"),
        };
        if self.flags.migrator == Migrator::Cluster {
            bail!(reason);
        }
        shell.note(&format!(
            "{}: {reason}; rbuilder writes the objects\n",
            definition.name
        ));
        Ok(false)
    }

    fn migrate_by_rbuilder(
        &self,
        definition: &Definition,
        outcome: &mut Outcome,
        shell: &mut Shell,
    ) -> Result<()> {
        let is_dry_run = self.flags.dry_run;
        permissions::check(&self.requests, definition, is_dry_run)?;
        let mut progress = Progress::new(&definition.name);
        let recorded = definition.recorded();
        if recorded.is_none() && !is_dry_run {
            progress.show_message(&settling(definition), shell);
            // Until an API server observes the changed CRD, it still writes in the old version.
            self.requests.wait(SETTLE)?;
        }
        let listing = keys::list(&self.requests, definition, recorded)?;
        if recorded.is_none() && !is_dry_run {
            // From now on, writes use the storage version, so the next run can skip these objects.
            definition.record(&self.requests, &listing.resource_version)?;
        }
        outcome.earlier = listing.done;
        outcome.objects = listing.done + listing.keys.len();
        let rewrite = Rewrite {
            requests: &self.requests,
            definition,
            pace: Pace::per_second(self.flags.qps.unwrap_or(WRITES_PER_SECOND)),
            is_dry_run,
        };
        outcome.tally = rewrite.run(&listing.keys, &mut |tally, rate| {
            progress.show_count(tally, listing.keys.len(), rate, shell);
        });
        outcome.state = match (outcome.tally.stopped, outcome.tally.failures.len()) {
            (Some(reason), _) => State::Incomplete(reason.to_owned()),
            (None, 0) if is_dry_run => State::Accepted,
            (None, 0) => {
                outcome.after = definition.trim(&self.requests)?.stored;
                State::Migrated
            }
            (None, count) => State::Incomplete(format!("{} could not be written", counted(count, "object"))),
        };
        Ok(())
    }
}

fn settling(definition: &Definition) -> String {
    format!("waiting until all API servers store {}", definition.storage)
}

fn warn_of_other_version(wanted: &Wanted, definition: &Definition, shell: &mut Shell) {
    if let Some(storage) = wanted
        .storage
        .as_ref()
        .filter(|storage| **storage != definition.storage)
    {
        shell.warning(&format!(
            "{}: the cluster stores {}, the CRD of the project stores {storage}: apply it first to migrate to {storage}",
            definition.name, definition.storage
        ));
    }
}
