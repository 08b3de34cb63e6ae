//! `config/webhook` of a project: the generated configurations, and the list that names them.

use anyhow::Result;
use serde_json::Value;

use crate::edit::{Unrecognised, kustomization};
use crate::plan::Plan;
use crate::project::FILE;
use crate::tree::Tree;

const MANIFESTS: &str = "manifests.yaml";

/// Lists the webhook manifests in the kustomization beside them, where there is one; removes both when no marker
/// asks for them any more. Without PROJECT the file may be somebody else's, and stays.
pub(super) fn keep_in_step(plan: &mut Plan, tree: &Tree, config: &str, is_made: bool) -> Result<()> {
    let path = format!("{config}/webhook/{MANIFESTS}");
    if !is_made {
        let Some(text) = plan.read(tree, &path)? else {
            return Ok(());
        };
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
        kustomization::add(&text, MANIFESTS)
    } else {
        kustomization::remove(&text, MANIFESTS)
    };
    let edited = edited.map_err(|reason| Unrecognised {
        path: list.clone(),
        reason,
        deed: if is_made {
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

/// Whether the file holds webhook configurations, as the generator prints them, and nothing else. What somebody wrote in
/// another form, or added a comment to, is theirs.
fn is_generated(text: &str) -> bool {
    let Ok(documents) = serde_saphyr::from_multiple::<Value>(text) else {
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
    !documents.is_empty() && documents.iter().all(is_configuration) && printed == text
}
