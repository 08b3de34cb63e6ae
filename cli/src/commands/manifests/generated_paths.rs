//! Paths of generated files, in which the next command would overwrite corrections.

use rbuilder_products::bundle;

use super::Request;
use super::layout::Layout;
use crate::project::FILE;
use crate::tree::Tree;

const RENDERED: [&str; 2] = ["dist", bundle::FOLDER];

pub(in crate::commands) struct GeneratedPaths {
    /// `None` outside of packages, or with invalid settings.
    layout: Option<Layout>,
    is_project: bool,
}

impl GeneratedPaths {
    pub(in crate::commands) fn read(tree: &Tree) -> GeneratedPaths {
        let exists = |path: &str| matches!(tree.read(path), Ok(Some(_)));
        let request = exists("Cargo.toml").then(|| Request::default().with_settings(tree).ok());
        GeneratedPaths {
            layout: request.flatten().map(|request| request.layout),
            is_project: exists(FILE),
        }
    }

    /// Whether a file is generated from the source, or rendered from the project's manifests.
    pub(in crate::commands) fn contain(&self, path: &str) -> bool {
        let is_below = |folder: &&str| {
            let rest = path.strip_prefix(*folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if self.is_project && RENDERED.iter().any(is_below) {
            return true;
        }
        let layout = self.layout.as_ref();
        layout
            .is_some_and(|layout| layout.holds_crd(path) || layout.is_role(path) || layout.is_webhooks(path))
    }
}
