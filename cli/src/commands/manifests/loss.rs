//! What manifests are about to lose although the source still has it: that is a slip until somebody says otherwise.
//!
//! A kind whose file was deleted goes without a word. A kind whose `mod` line went missing, whose feature is off or
//! whose package is not read goes only with `--prune`.

use std::collections::BTreeSet;

use rbuilder_generator::rbac::normalize;
use rbuilder_generator::{
    Diagnostic, LeftOut, MarkKind, Options, Severity, Sources, Standing, StandingMarker, Webhook,
    WebhookKind, find_standing_markers,
};
use serde::Deserialize;

use super::layout::Layout;
use super::permissions::{Granted, Permission, lost_permissions};
use crate::plan::{Change, Plan};

/// An error for each marker in the source that stands for something a plan would take out of the manifests.
pub(super) fn find_losses(
    plan: &Plan,
    layout: &Layout,
    sources: &dyn Sources,
    options: &Options,
) -> Vec<Diagnostic> {
    let lost: Vec<Lost> = plan
        .changes()
        .iter()
        .flat_map(|(path, change)| lost_from(path, change, layout))
        .collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let mut said = BTreeSet::new();
    let mut found = Vec::new();
    for standing in find_standing_markers(sources, options) {
        for loss in lost.iter().filter(|loss| loss.is_of(&standing.marker)) {
            if said.insert((standing.path.clone(), standing.range.start, loss.text())) {
                found.push(complaint(&standing, loss));
            }
        }
    }
    found
}

/// Something that a manifest holds and would hold no more.
struct Lost {
    /// The manifest.
    path: String,
    what: What,
}

enum What {
    /// A version of a CRD; all of the CRD goes when `whole`.
    Version {
        group: String,
        plural: String,
        kind: String,
        version: String,
        whole: bool,
    },
    Permissions(Vec<Permission>),
    Webhook {
        kind: WebhookKind,
        name: String,
    },
}

/// What is read of a manifest.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    kind: String,
    spec: CrdSpec,
    webhooks: Vec<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CrdSpec {
    group: String,
    names: CrdNames,
    versions: Vec<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CrdNames {
    kind: String,
    plural: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

fn lost_from(path: &str, change: &Change, layout: &Layout) -> Vec<Lost> {
    let (before, after) = match change {
        Change::Create { .. } => return Vec::new(),
        Change::Edit { before, after } | Change::Replace { before, after } => (before, after.as_str()),
        Change::Delete { before } => (before, ""),
    };
    let lost: Vec<What> = if layout.holds_crd(path) {
        lost_versions(before, after)
    } else if layout.is_role(path) {
        let permissions = lost_permissions(before, after);
        (!permissions.is_empty())
            .then_some(What::Permissions(permissions))
            .into_iter()
            .collect()
    } else if layout.is_webhooks(path) {
        lost_webhooks(before, after)
    } else {
        Vec::new()
    };
    let path = path.to_owned();
    lost.into_iter()
        .map(|what| Lost {
            path: path.clone(),
            what,
        })
        .collect()
}

/// The documents of a manifest; none where it is not one that rbuilder could have written.
fn documents(text: &str) -> Vec<Document> {
    serde_saphyr::from_multiple(text).unwrap_or_default()
}

fn lost_versions(before: &str, after: &str) -> Vec<What> {
    let kept: Vec<String> = documents(after)
        .into_iter()
        .flat_map(|crd| crd.spec.versions)
        .map(|version| version.name)
        .collect();
    let mut lost = Vec::new();
    for CrdSpec {
        group,
        names,
        versions,
    } in documents(before).into_iter().map(|crd| crd.spec)
    {
        for version in versions
            .into_iter()
            .filter(|version| !kept.contains(&version.name))
        {
            lost.push(What::Version {
                group: group.clone(),
                plural: names.plural.clone(),
                kind: names.kind.clone(),
                version: version.name,
                whole: after.is_empty(),
            });
        }
    }
    lost
}

fn lost_webhooks(before: &str, after: &str) -> Vec<What> {
    let named = |text: &str| -> BTreeSet<(bool, String)> {
        documents(text)
            .into_iter()
            .flat_map(|document| {
                let mutates = document.kind == "MutatingWebhookConfiguration";
                document
                    .webhooks
                    .into_iter()
                    .map(move |webhook| (mutates, webhook.name))
            })
            .collect()
    };
    let kept = named(after);
    named(before)
        .into_iter()
        .filter(|webhook| !kept.contains(webhook))
        .map(|(mutates, name)| What::Webhook {
            kind: if mutates {
                WebhookKind::Mutating
            } else {
                WebhookKind::Validating
            },
            name,
        })
        .collect()
}

impl Lost {
    /// Whether a marker in the source stands for it.
    fn is_of(&self, marker: &StandingMarker) -> bool {
        match (&self.what, marker) {
            (
                What::Version {
                    group,
                    plural,
                    version,
                    ..
                },
                StandingMarker::Kind {
                    group: its_group,
                    plural: its_plural,
                    version: its_version,
                    ..
                },
            ) => (group, plural, version) == (its_group, its_plural, its_version),
            (What::Permissions(permissions), StandingMarker::Rule(rule)) => {
                let granted: Vec<Granted> = normalize([rule])
                    .into_iter()
                    .map(|policy| Granted::of(rule.namespace.as_deref(), policy))
                    .collect();
                permissions
                    .iter()
                    .any(|permission| granted.iter().any(|granted| granted.covers(permission)))
            }
            (What::Webhook { kind, name }, StandingMarker::Webhook(webhook, types)) => {
                *kind == webhook.kind && is_named(webhook, types, name)
            }
            // Of what cannot be read, the words have to do.
            (What::Version { group, kind, .. }, StandingMarker::Hidden(MarkKind::Kind, text)) => {
                text.contains(group.as_str()) && text.contains(kind.as_str())
            }
            (What::Permissions(permissions), StandingMarker::Hidden(MarkKind::Rbac, text)) => permissions
                .iter()
                .any(|permission| text.contains(permission.subject())),
            (What::Webhook { .. }, StandingMarker::Hidden(MarkKind::Webhook, _)) => true,
            _ => false,
        }
    }

    fn text(&self) -> String {
        let path = &self.path;
        match &self.what {
            What::Version { whole: true, .. } => {
                format!("`{path}` would be deleted, and the kind is still in the source")
            }
            What::Version { version, .. } => {
                format!("`{path}` would lose the version `{version}`, which is still in the source")
            }
            What::Permissions(_) => {
                format!("`{path}` would lose permissions that this marker asks for")
            }
            What::Webhook { name, .. } => {
                format!("`{path}` would lose the webhook `{name}`, which is still in the source")
            }
        }
    }
}

/// Whether a webhook's marker could have given it this name: its own, or one made of the kind that the handler takes.
fn is_named(webhook: &Webhook, types: &[String], name: &str) -> bool {
    match &webhook.name {
        Some(written) => written == name,
        None => types.iter().any(|ty| {
            let (kind, name) = (ty.to_lowercase(), name.get(1..).unwrap_or_default());
            name.strip_prefix(kind.as_str())
                .is_some_and(|rest| rest.starts_with('-'))
        }),
    }
}

fn complaint(standing: &Standing, loss: &Lost) -> Diagnostic {
    let (reason, help) = match standing.reason {
        LeftOut::NoModule => (
            "no `mod` leads to the file",
            "add the `mod` line, or delete the file",
        ),
        LeftOut::Cfg => (
            "a `cfg` leaves it out",
            "turn it on with `--features`, or delete it",
        ),
        LeftOut::Skipped => (
            "it is not among the kinds to write",
            "list it under `only` in `[package.metadata.rbuilder]` of Cargo.toml, or pass `--kind`",
        ),
        LeftOut::NotRead => (
            "this run does not read the file",
            "read its package as well, or delete the file",
        ),
    };
    Diagnostic {
        path: standing.path.clone(),
        range: standing.range.clone(),
        severity: Severity::Error,
        message: format!("{}: {reason}", loss.text()),
        help: Some(format!(
            "{help}; `rbuilder manifests --prune` drops it all the same"
        )),
    }
}
