//! `rbuilder undeploy` and `rbuilder uninstall`: delete the objects applied by `deploy` and
//! `install`, and nothing else.
//!
//! Custom resources are deleted first, while the manager is running and can handle their
//! finalizers. Then comes everything else, and namespaces last. If a step fails, the manager keeps
//! running, so that the command can be repeated.

mod custom_resources;
mod namespaces;
mod sharers;

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use self::sharers::Sharers;
use super::conversions::find_converted_by;
use super::find_kubectl;
use super::install::{ALL, render_crds};
use crate::cluster::{Kubectl, describe, parse_documents, to_list};
use crate::flags::{RemovalFlags, UndeployFlags};
use crate::shell::Shell;

pub(super) use namespaces::apply as apply_namespaces;

/// Webhook configurations must go first: a webhook without its Service rejects every request.
const FIRST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

const NAMED: usize = 4;

pub(super) fn uninstall(dir: &Path, flags: &RemovalFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster.choice())?;
    let crds = render_crds(&kubectl)?;
    if crds.is_empty() {
        shell.note("nothing to delete\n");
        return Ok(0);
    }
    custom_resources::delete_all(&kubectl, &crds, flags.timeout, shell)?;
    delete(&kubectl, &crds, flags, shell)?;
    Ok(0)
}

pub(super) fn undeploy(dir: &Path, flags: &UndeployFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.removal.cluster.choice())?;
    let rendered = Rendered::split(parse_documents(&kubectl.render(ALL)?)?);
    if rendered.is_empty() {
        shell.note("nothing to delete\n");
        return Ok(0);
    }
    let Rendered {
        namespaces,
        crds,
        mut others,
    } = rendered;
    let sharers = Sharers::find(&kubectl, &others)?;
    if sharers.is_empty() {
        custom_resources::delete_all(&kubectl, &crds, flags.removal.timeout, shell)?;
        others.extend(crds);
    } else {
        let (ours, shared) = sharers.keep_shared(&kubectl, others)?;
        others = ours;
        let stay: Vec<String> = crds.iter().chain(&shared).map(describe).collect();
        if !stay.is_empty() {
            let (stay, sharers) = (join_first(&stay, NAMED), sharers.describe());
            shell.note(&format!("{stay} stay, because {sharers} uses them\n"));
        }
        warn_about_conversions(&find_converted_by(&kubectl, &crds, &others)?, &sharers, shell);
    }
    delete(&kubectl, &others, &flags.removal, shell)?;
    for namespace in &namespaces {
        namespaces::remove(&kubectl, namespace, &others, flags.delete_namespace, shell)?;
    }
    Ok(0)
}

fn warn_about_conversions(crds: &[String], sharers: &Sharers, shell: &mut Shell) {
    if !crds.is_empty() {
        shell.message(&format!(
            "warning: the Service that converts {} is deleted with this deployment, so their objects cannot be read in all versions\n  \
             = help: deploy {} again, which makes its Service convert them\n",
            join_first(crds, NAMED),
            sharers.describe(),
        ));
    }
}

fn delete(kubectl: &Kubectl, objects: &[Value], flags: &RemovalFlags, shell: &mut Shell) -> Result<()> {
    let ignore = format!("--ignore-not-found={}", flags.ignore_not_found);
    kubectl.run(&["delete", &ignore, "-f", "-"], &to_list(objects), shell)
}

#[derive(Debug, Default, PartialEq)]
struct Rendered {
    namespaces: Vec<Value>,
    crds: Vec<Value>,
    /// All other objects, in deletion order.
    others: Vec<Value>,
}

impl Rendered {
    fn split(objects: Vec<Value>) -> Rendered {
        let mut rendered = Rendered::default();
        for object in objects {
            match object["kind"].as_str() {
                Some("Namespace") => rendered.namespaces.push(object),
                Some("CustomResourceDefinition") => rendered.crds.push(object),
                _ => rendered.others.push(object),
            }
        }
        let comes_first = |object: &Value| FIRST.iter().any(|kind| object["kind"] == *kind);
        rendered.others.sort_by_key(|object| !comes_first(object));
        rendered
    }

    fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.crds.is_empty() && self.others.is_empty()
    }
}

fn join_first(words: &[String], most: usize) -> String {
    let shown = words.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    match words.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deletes_webhooks_before_their_service() {
        let object = |kind: &str| json!({ "kind": kind });
        let kinds = [
            "Namespace",
            "Service",
            "CustomResourceDefinition",
            "Deployment",
            "ValidatingWebhookConfiguration",
        ];
        let rendered = Rendered::split(Vec::from(kinds.map(object)));
        let expected = Rendered {
            namespaces: vec![object("Namespace")],
            crds: vec![object("CustomResourceDefinition")],
            others: ["ValidatingWebhookConfiguration", "Service", "Deployment"]
                .map(object)
                .to_vec(),
        };
        assert_eq!(rendered, expected);
    }

    #[test]
    fn truncates_long_lists() {
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(join_first(&words, 3), "a, b, c");
        assert_eq!(join_first(&words, 1), "a and 2 more");
    }
}
