//! Prevents manifests from accidentally losing something that is still defined in the source.
//!
//! A kind is removed silently if its file was deleted. But if just the `mod` item is missing, a
//! feature is disabled, or a package isn't read, removal requires `--prune`.

use std::collections::BTreeSet;

use rbuilder_generator::rbac::normalize;
use rbuilder_generator::{
    Diagnostic, FileRange, LeftOut, MarkKind, Options, Sources, Standing, StandingMarker, Webhook,
    WebhookKind, find_standing_markers,
};
use serde::Deserialize;

use super::layout::Layout;
use super::permissions::{Granted, Permission, lost_permissions};
use crate::crd_file::without_template;
use crate::plan::{Change, Plan};

/// Reports each marker in the source whose output would be removed from the manifests.
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
                found.push(loss_error(&standing, loss));
            }
        }
    }
    found
}

struct Lost {
    path: String,
    what: LostPart,
}

enum LostPart {
    /// A version of a CRD, or the entire CRD if `whole` is set.
    Version {
        group: String,
        plural: String,
        kind: String,
        version: String,
        whole: bool,
        with_file: bool,
    },
    Permissions(Vec<Permission>),
    Webhook {
        kind: WebhookKind,
        name: String,
    },
}

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
    let lost: Vec<LostPart> = if layout.holds_crd(path) {
        lost_versions(before, after)
    } else if layout.is_role(path) {
        let permissions = lost_permissions(before, after);
        (!permissions.is_empty())
            .then_some(LostPart::Permissions(permissions))
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

/// Parses the documents in a manifest. Empty on failure, since the manifest can't be ours.
fn documents(text: &str) -> Vec<Document> {
    rbuilder_yaml::parse_all(&without_template(text)).unwrap_or_default()
}

fn lost_versions(before: &str, after: &str) -> Vec<LostPart> {
    let kept: Vec<CrdSpec> = documents(after).into_iter().map(|crd| crd.spec).collect();
    let mut lost = Vec::new();
    for CrdSpec {
        group,
        names,
        versions,
    } in documents(before).into_iter().map(|crd| crd.spec)
    {
        let same = kept
            .iter()
            .find(|crd| crd.group == group && crd.names.plural == names.plural);
        let kept_versions = same.map_or(&[][..], |crd| &crd.versions);
        for version in versions
            .into_iter()
            .filter(|version| kept_versions.iter().all(|kept| kept.name != version.name))
        {
            lost.push(LostPart::Version {
                group: group.clone(),
                plural: names.plural.clone(),
                kind: names.kind.clone(),
                version: version.name,
                whole: same.is_none(),
                with_file: after.is_empty(),
            });
        }
    }
    lost
}

fn lost_webhooks(before: &str, after: &str) -> Vec<LostPart> {
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
        .map(|(mutates, name)| LostPart::Webhook {
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
    fn is_of(&self, marker: &StandingMarker) -> bool {
        match (&self.what, marker) {
            (
                LostPart::Version {
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
            (LostPart::Permissions(permissions), StandingMarker::Rule(rule)) => {
                let granted: Vec<Granted> = normalize([rule])
                    .into_iter()
                    .map(|policy| Granted::of(rule.namespace.as_deref(), policy))
                    .collect();
                permissions
                    .iter()
                    .any(|permission| granted.iter().any(|granted| granted.covers(permission)))
            }
            (LostPart::Webhook { kind, name }, StandingMarker::Webhook(webhook, types)) => {
                *kind == webhook.kind && is_named(webhook, types, name)
            }
            // If a marker can't be parsed, look for the names in its text.
            (LostPart::Version { group, kind, .. }, StandingMarker::Hidden(MarkKind::Kind, text)) => {
                text.contains(group.as_str()) && text.contains(kind.as_str())
            }
            (LostPart::Permissions(permissions), StandingMarker::Hidden(MarkKind::Rbac, text)) => permissions
                .iter()
                .any(|permission| text.contains(permission.subject())),
            (LostPart::Webhook { .. }, StandingMarker::Hidden(MarkKind::Webhook, _)) => true,
            _ => false,
        }
    }

    fn text(&self) -> String {
        let path = &self.path;
        match &self.what {
            LostPart::Version {
                group,
                plural,
                whole: true,
                with_file: false,
                ..
            } => {
                format!(
                    "`{plural}.{group}` in `{path}` would be deleted, but the source still defines the kind"
                )
            }
            LostPart::Version { whole: true, .. } => {
                format!("`{path}` would be deleted, but the source still defines the kind")
            }
            LostPart::Version { version, .. } => {
                format!("`{path}` would lose version `{version}`, which the source still defines")
            }
            LostPart::Permissions(_) => {
                format!("`{path}` would lose permissions that this marker requests")
            }
            LostPart::Webhook { name, .. } => {
                format!("`{path}` would lose the webhook `{name}`, which the source still defines")
            }
        }
    }
}

/// Whether the marker of a webhook results in `name`, either explicitly or derived from the kind in
/// the handler's signature.
fn is_named(webhook: &Webhook, types: &[String], name: &str) -> bool {
    match &webhook.name {
        Some(written) => written == name,
        None => types.iter().any(|ty| {
            // A derived name starts with `m` or `v`, e.g. `vcup-v1.kb.io`.
            let (kind, name) = (ty.to_lowercase(), name.get(1..).unwrap_or_default());
            name.strip_prefix(kind.as_str())
                .is_some_and(|rest| rest.starts_with('-'))
        }),
    }
}

fn loss_error(standing: &Standing, loss: &Lost) -> Diagnostic {
    let (reason, help) = match standing.reason {
        LeftOut::NoModule => (
            "no `mod` declares the file",
            "add the `mod` declaration, or delete the file",
        ),
        LeftOut::Cfg => (
            "a `cfg` excludes it",
            "activate it with `--features`, or delete it",
        ),
        LeftOut::Skipped => (
            "the kind is not selected",
            "add it to `only` in `[package.metadata.rbuilder]` of Cargo.toml, or pass `--kind`",
        ),
        LeftOut::NotRead => (
            "the file is not part of this run",
            "include its package with `--package`, or delete the file",
        ),
    };
    Diagnostic::error(
        FileRange::new(standing.path.clone(), standing.range.clone()),
        format!("{}: {reason}", loss.text()),
    )
    .help(format!(
        "{help}; to remove it anyway, run `rbuilder manifests --prune`"
    ))
}

/// Adds errors about losses. They replace less specific warnings about the same files.
pub(super) fn add_losses(diagnostics: &mut Vec<Diagnostic>, losses: Vec<Diagnostic>) {
    diagnostics.retain(|said| {
        let is_same_file = |loss: &Diagnostic| loss.place.path == said.place.path && !said.is_error();
        !losses.iter().any(is_same_file)
    });
    diagnostics.extend(losses);
}
