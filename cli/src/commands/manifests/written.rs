//! The manifests of a project as `manifests` would write them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_yaml::is_yaml;

use super::layout::Layout;
use super::{Request, add_to_plan};
use crate::flags::SourceFlags;
use crate::plan::Plan;
use crate::tree::Tree;

pub(in crate::commands) struct Written {
    /// Files and directories, relative to the project.
    pub(in crate::commands) places: BTreeSet<String>,
    pub(in crate::commands) files: BTreeMap<String, String>,
}

/// Generates the manifests in memory, and reads the other files in the same directories.
pub(in crate::commands) fn read_written(tree: &Tree, source: &SourceFlags) -> Result<Written> {
    // `manifests` keeps these by default, but they aren't part of the source.
    let mut request = Request {
        prunes_standing: true,
        removes_tracked: true,
        writes: false,
        ..Request::default()
    };
    request.select(source);
    let mut plan = Plan::default();
    add_to_plan(&mut plan, tree, &request)?;
    let places = request.with_settings(tree)?.layout.places();
    let mut paths: BTreeSet<String> = plan.changes().keys().cloned().collect();
    for place in &places {
        match is_yaml(place) {
            true => drop(paths.insert(place.clone())),
            false => paths.extend(tree.list(place)?),
        }
    }
    let is_within = |path: &String| {
        places
            .iter()
            .any(|place| path == place || folder_of(path) == place)
    };
    let mut files = BTreeMap::new();
    for path in paths.into_iter().filter(|path| is_yaml(path) && is_within(path)) {
        if let Some(text) = plan.read(tree, &path)? {
            files.insert(path, text);
        }
    }
    Ok(Written { places, files })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Layout {
    fn places(&self) -> BTreeSet<String> {
        let mut places = self.shared_files();
        for place in self.crd_places() {
            places.extend(place.folder.clone());
            places.extend(place.files.values().cloned());
        }
        places.extend([self.roles.clone(), self.webhooks.clone()]);
        places
    }
}
