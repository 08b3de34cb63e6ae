//! The generated configurations in `config/webhook`, and the kustomization that lists them.

use anyhow::Result;
use serde_json::Value;

use crate::edit::{Unrecognised, kustomization};
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::FILE;
use crate::tree::Tree;

pub(super) const MANIFESTS: &str = "manifests.yaml";

/// Lists the webhook manifests in the kustomization next to them, if any. Without webhook markers,
/// removes the file and its entry.
pub(super) fn update_kustomization(plan: &mut Plan, tree: &Tree, config: &str, is_made: bool) -> Result<()> {
    let path = format!("{config}/webhook/{MANIFESTS}");
    if !is_made {
        let Some(text) = plan.read(tree, &path)? else {
            return Ok(());
        };
        // Without PROJECT, the file may not be ours.
        if !is_generated(&text) || plan.read(tree, FILE)?.is_none() {
            return Ok(());
        }
        plan.delete(tree, &path)?;
    }
    let list = format!("{config}/webhook/kustomization.yaml");
    let Some(text) = plan.read(tree, &list)? else {
        return Ok(());
    };
    let edited = if is_made {
        kustomization::add_resource(&text, MANIFESTS)
    } else {
        kustomization::remove_resource(&text, MANIFESTS)
    };
    let edited = edited.map_err(|reason| Unrecognised {
        path: list.clone(),
        reason,
        instruction: if is_made {
            "add these lines"
        } else {
            "remove this entry"
        },
        lines: format!("  resources:\n  - {MANIFESTS}"),
    })?;
    if edited != text {
        plan.edit(tree, &list, &edited)?;
    }
    Ok(())
}

/// Whether the file is exactly the generator's output for webhook configurations. Otherwise, e.g.
/// with a comment in it, it belongs to the user.
fn is_generated(text: &str) -> bool {
    let Ok(documents) = rbuilder_yaml::parse_values(text) else {
        return false;
    };
    let is_configuration = |document: &Value| {
        matches!(
            document["kind"].as_str(),
            Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration")
        )
    };
    let print = |document| format!("---\n{}", rbuilder_generator::yaml::to_string(document));
    let printed: String = documents.iter().map(print).collect();
    !documents.is_empty() && documents.iter().all(is_configuration) && is_same_text(&printed, text)
}
