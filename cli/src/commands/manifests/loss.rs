//! Prevents manifests from accidentally losing something that is still defined in the source.
//!
//! A kind is removed silently if its file was deleted. But if just the `mod` item is missing, a
//! feature is disabled, or a package isn't read, removal requires `--prune`.

use std::collections::BTreeSet;

use rbuilder_generator::rbac::rule_of;
use rbuilder_generator::{
    Diagnostic, FileRange, LeftOut, MarkKind, Options, Sources, Standing, StandingMarker, Webhook,
    WebhookKind, find_standing_markers,
};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::rbac::{Permission, is_granted, permissions_of};

use super::definition::{ChangedFile, list_crds, names_of, read_objects};
use super::layout::Layout;
use crate::plan::{Change, Plan};

/// Reports each marker in the source whose output would be removed from the manifests.
pub(super) fn find_losses(
    plan: &Plan,
    changed: &[ChangedFile],
    layout: &Layout,
    sources: &dyn Sources,
    options: &Options,
) -> Vec<Diagnostic> {
    // A CRD can move to another file, e.g. from one that a user has named.
    let written: Vec<Crd<'_>> = changed.iter().flat_map(|file| list_crds(&file.after)).collect();
    let of_crds = changed.iter().flat_map(|file| {
        let versions = lost_versions(file, &written).into_iter();
        versions.map(|what| Lost::new(&file.path, what))
    });
    let others = plan.changes().iter();
    let of_others = others.flat_map(|(path, change)| lost_from(path, change, layout));
    let lost: Vec<Lost> = of_crds.chain(of_others).collect();
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

fn lost_from(path: &str, change: &Change, layout: &Layout) -> Vec<Lost> {
    let (before, after) = (change.before(), change.after().unwrap_or_default());
    if before.is_empty() {
        return Vec::new();
    }
    let lost: Vec<LostPart> = if layout.is_role(path) {
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
    lost.into_iter().map(|what| Lost::new(path, what)).collect()
}

/// `written` are the CRDs in all files after the change.
fn lost_versions(file: &ChangedFile, written: &[Crd<'_>]) -> Vec<LostPart> {
    let mut lost = Vec::new();
    for crd in list_crds(&file.before) {
        let same = written.iter().find(|new| names_of(**new) == names_of(crd));
        let is_kept = |name: &str| same.is_some_and(|crd| crd.version(name).is_some());
        for version in crd.versions().filter(|version| !is_kept(version.name)) {
            lost.push(LostPart::Version {
                group: crd.group().to_owned(),
                plural: crd.plural().to_owned(),
                kind: crd.kind().to_owned(),
                version: version.name.to_owned(),
                whole: same.is_none(),
                with_file: file.is_deleted,
            });
        }
    }
    lost
}

fn lost_permissions(before: &str, after: &str) -> Vec<Permission> {
    let granted = |text: &str| -> BTreeSet<Permission> {
        let roles = read_objects(text).into_iter();
        roles.flat_map(|role| permissions_of(&role)).collect()
    };
    let kept = granted(after);
    let before = granted(before).into_iter();
    before
        .filter(|permission| !is_granted(permission, &kept))
        .collect()
}

fn lost_webhooks(before: &str, after: &str) -> Vec<LostPart> {
    let named = |text: &str| -> BTreeSet<(bool, String)> {
        let configurations = read_objects(text).into_iter();
        configurations
            .flat_map(|configuration| {
                let mutates = configuration["kind"] == "MutatingWebhookConfiguration";
                let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
                let names = webhooks.filter_map(|webhook| webhook["name"].as_str());
                names.map(|name| (mutates, name.to_owned())).collect::<Vec<_>>()
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
    fn new(path: &str, what: LostPart) -> Lost {
        let path = path.to_owned();
        Lost { path, what }
    }

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
                let granted = rule_of(rule).permissions(rule.namespace.as_deref());
                let granted: BTreeSet<Permission> = granted.into_iter().collect();
                permissions
                    .iter()
                    .any(|permission| is_granted(permission, &granted))
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
                .any(|permission| text.contains(permission.target.as_str())),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &str) -> String {
        format!("kind: ClusterRole\nmetadata:\n  name: a\nrules:\n{rules}")
    }

    fn check(before: &str, after: &str, expected: &[&str]) {
        let lost: Vec<String> = lost_permissions(&role(before), &role(after))
            .into_iter()
            .map(|lost| format!("{} {}", lost.verb, lost.target.as_str()))
            .collect();
        assert_eq!(lost, expected, "{before} -> {after}");
    }

    #[test]
    fn reports_lost_permissions() {
        let pods = "- {apiGroups: [''], resources: [pods], verbs: [get, list]}\n";
        check(pods, pods, &[]);
        check(pods, "", &["get pods", "list pods"]);
        check(
            pods,
            "- {apiGroups: [''], resources: [pods], verbs: [list]}",
            &["get pods"],
        );
        check(pods, "- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}", &[]);
        check(
            pods,
            "- {apiGroups: [''], resources: [pods], resourceNames: [a], verbs: [get, list]}",
            &["get pods", "list pods"],
        );
        check(
            "- {nonResourceURLs: [/metrics/x], verbs: [get]}",
            "- {nonResourceURLs: [/metrics/*], verbs: [get]}",
            &[],
        );
        assert!(lost_permissions("rules: [", "").is_empty());
    }
}
