//! Finds the feature without which a package has no kinds.

use anyhow::Result;
use toml_edit::{Document, Item};

use super::MANIFEST;
use crate::commands::manifests::{self, Request};
use crate::plan::Plan;
use crate::tree::Tree;

const MOST_TRIED: usize = 64;

pub(super) fn find_feature_with_kinds(plan: &Plan, tree: &Tree, request: &Request) -> Result<Option<String>> {
    let text = tree.read(MANIFEST)?.unwrap_or_default();
    for feature in list_features(&text).into_iter().take(MOST_TRIED) {
        let mut request = request.clone();
        request.options.features = vec![feature.clone()];
        let (_, found) = manifests::generate_in_memory(plan, tree, &request, &mut drop)?;
        if !found.kinds.is_empty() {
            return Ok(Some(feature));
        }
    }
    Ok(None)
}

fn list_features(text: &str) -> Vec<String> {
    let Ok(document) = Document::parse(text) else {
        return Vec::new();
    };
    let features = document.get("features").and_then(Item::as_table_like);
    let names = features.into_iter().flat_map(|features| features.iter());
    names
        .map(|(name, _)| name.to_owned())
        .filter(|name| name != "default" && document.contains_key("package"))
        .collect()
}
