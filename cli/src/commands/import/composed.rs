//! The Rust project in memory, completed by the steps of `import`.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{Kind, Leftover};
use crate::bundle::EntryMarkers;
use crate::project::{Project, Resource};
use crate::render::ApiPlaces;
use rbuilder_go_project::GoFile;

pub(super) struct Composed<'a> {
    pub(super) files: BTreeMap<String, String>,
    pub(super) project: Project,
    pub(super) kinds: Vec<Kind<'a>>,
    pub(super) ported: Vec<Ported<'a>>,
    /// The webhook file of each version of a kind, by [`webhook_key`].
    pub(super) webhook_files: BTreeMap<String, String>,
    /// The path served by each handler, by `mutating` or `validating` and the key of its file.
    pub(super) served_paths: BTreeMap<(&'static str, String), String>,
    pub(super) webhook_paths: BTreeSet<String>,
    pub(super) left: Vec<Leftover>,
    pub(super) better: Vec<Leftover>,
    /// Entries of the ClusterServiceVersion base whose kinds have types, each with the descriptors
    /// that no field can have.
    pub(super) entries: Vec<(EntryMarkers<'a>, Unplaced)>,
}

pub(super) struct Ported<'a> {
    pub(super) kind: String,
    pub(super) rust_file: String,
    pub(super) go_file: Option<&'a GoFile>,
    /// Ported calls, e.g. `owns Deployment`.
    pub(super) taken: Vec<String>,
    /// Map functions that the user has to port, with the name of the Rust function.
    pub(super) maps: Vec<(String, String)>,
}

/// Descriptors that no field of the types can have, as `spec` or `status` and a path.
pub(super) type Unplaced = BTreeSet<(&'static str, String)>;

impl Composed<'_> {
    /// First entry of a kind, which is for the storage version.
    pub(super) fn stored_resource(&self, resource: &Resource) -> Option<Resource> {
        let mut known = self.project.known.resources.iter();
        known.find(|known| known.same_kind(resource)).cloned()
    }

    pub(super) fn places<'b>(&'b self, resource: &'b Resource) -> ApiPlaces<'b> {
        let mut known = self.project.known.resources.iter();
        let known = known.find(|known| known.same_kind(resource) && known.version == resource.version);
        ApiPlaces::of(&self.project, known.unwrap_or(resource))
    }
}

pub(super) fn webhook_key(version: &Resource) -> String {
    format!(
        "{}/{}/{}",
        version.kind,
        version.version,
        version.qualified_group()
    )
}
