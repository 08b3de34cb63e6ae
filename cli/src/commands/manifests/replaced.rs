//! Protection of files that have the path of a manifest but other content: they are not overwritten.

use anyhow::{Result, bail};
use serde_json::Value;

use super::layout::is_ours;
use crate::plan::{Change, Plan};

/// Checks that a manifest does not overwrite a file with other objects than those it defines.
///
/// The same CRD, role or webhook configuration by another generator, or reformatted, is replaced.
///
/// # Errors
/// Fails with the file and the object in it.
pub(super) fn check_replaced(plan: &Plan, path: &str, manifest: &str) -> Result<()> {
    let Some(Change::Replace { before, .. }) = plan.changes().get(path) else {
        return Ok(());
    };
    if manifest.starts_with("crd/") && is_ours(before) {
        return Ok(());
    }
    if let Some(other) = find_other(before, manifest) {
        bail!(
            "{path} is an output file of `rbuilder manifests`, but contains {other}; no files were written: move it to another file"
        );
    }
    Ok(())
}

/// Finds content of a file that its manifest would not have.
fn find_other(text: &str, manifest: &str) -> Option<String> {
    let Ok(documents) = serde_saphyr::from_multiple::<Value>(text) else {
        return Some("something other than YAML".into());
    };
    let file = manifest.rsplit('/').next().unwrap_or(manifest);
    let crd = file
        .strip_suffix(".yaml")
        .and_then(|name| name.split_once('_'))
        .map(|(group, plural)| format!("{plural}.{group}"));
    let is_expected = |document: &&Value| {
        let name = document["metadata"]["name"].as_str();
        match document["kind"].as_str() {
            _ if document.is_null() => true,
            Some("CustomResourceDefinition") => manifest.starts_with("crd/") && name == crd.as_deref(),
            Some("Role" | "ClusterRole") => manifest.starts_with("rbac/"),
            Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
                manifest.starts_with("webhook/")
            }
            _ => false,
        }
    };
    let other = documents.iter().find(|document| !is_expected(document))?;
    let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
    Some(match (word(&other["kind"]), word(&other["metadata"]["name"])) {
        (kind, _) if kind.is_empty() => "an object without a kind".into(),
        (kind, name) if name.is_empty() => format!("a `{kind}`"),
        (kind, name) => format!("the `{kind}` `{name}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_no_run_wrote_are_found() {
        let crd = "kind: CustomResourceDefinition\nmetadata:\n  name: cups.x.io\n";
        for (manifest, text, other) in [
            ("crd/bases/x.io_cups.yaml", crd.to_owned(), None),
            ("crd/bases/x.io_cups.yaml", format!("# Ours.\n---\n{crd}"), None),
            ("crd/bases/x.io_mugs.yaml", crd.to_owned(), Some("`cups.x.io`")),
            (
                "crd/bases/x.io_cups.yaml",
                format!("{crd}---\nkind: Cup\n"),
                Some("a `Cup`"),
            ),
            ("crd/bases/x.io_cups.yaml", "a: [".into(), Some("than YAML")),
            (
                "rbac/role.yaml",
                "kind: ClusterRole\n---\nkind: Role\n".into(),
                None,
            ),
            (
                "rbac/role.yaml",
                "kind: Role\n---\nkind: RoleBinding\n".into(),
                Some("a `RoleBinding`"),
            ),
            ("rbac/role.yaml", "- a\n".into(), Some("without a kind")),
            ("rbac/role.yaml", String::new(), None),
            ("webhook/manifests.yaml", crd.to_owned(), Some("`cups.x.io`")),
            (
                "webhook/manifests.yaml",
                "kind: ValidatingWebhookConfiguration\n".into(),
                None,
            ),
        ] {
            let found = find_other(&text, manifest);
            match other {
                Some(other) => assert!(
                    found.as_ref().is_some_and(|found| found.contains(other)),
                    "{found:?}"
                ),
                None => assert_eq!(found, None, "{text}"),
            }
        }
    }
}
