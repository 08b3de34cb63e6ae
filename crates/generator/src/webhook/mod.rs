//! Generates webhook configurations from `#[webhook(…)]` markers.
//!
//! `rbuilder-syntax` parses and checks each marker on its own. This module fills in omitted
//! arguments from the type of the handler, and checks the webhooks of all packages together.

mod check;
mod manifest;
mod reach;
mod subject;

use std::collections::BTreeSet;

use rbuilder_diagnostic::suggest;
use rbuilder_reader::Span;
use rbuilder_syntax::{Webhook, WebhookKind};

use crate::package::{Handler, Package};
use crate::place::Place;
use crate::report::Report;
use crate::{Options, OutputFile};
use rbuilder_syntax::kubernetes::Kind;
use subject::{Subject, find_subject};

pub use manifest::MANAGER_NAMESPACE;

struct Entry<'a> {
    handler: &'a Handler,
    webhook: &'a Webhook,
    configuration: &'a str,
    name: String,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    kind: Option<Kind>,
    /// `None` if the webhook has a URL.
    path: Option<String>,
}

impl Entry<'_> {
    fn at(&self, span: Span) -> Place {
        Place {
            file: self.handler.file,
            span,
        }
    }
}

pub(crate) fn manifests_file(
    package: &Package,
    options: &Options,
    report: &mut Report,
) -> Option<OutputFile> {
    let mut entries: Vec<Entry<'_>> = package
        .handlers
        .iter()
        .filter_map(|handler| complete(package, handler, report))
        .collect();
    // Like controller-gen, sort by name so that moving a handler doesn't change the output.
    entries.sort_by(|a, b| key(a).cmp(&key(b)));
    check::drop_second_readings(&mut entries);
    check::check_webhooks(package, &entries, report);
    (!entries.is_empty()).then(|| manifest::print_file(&entries, options.webhook_service()))
}

fn key<'e>(entry: &'e Entry<'_>) -> (WebhookKind, &'e str, &'e str) {
    (entry.webhook.kind, entry.configuration, &entry.name)
}

fn complete<'a>(package: &Package, handler: &'a Handler, report: &mut Report) -> Option<Entry<'a>> {
    let webhook = &handler.webhook;
    let missing: Vec<&str> = [
        ("groups", webhook.groups.is_none()),
        ("versions", webhook.versions.is_none()),
        ("resources", webhook.resources.is_none()),
        ("name", webhook.name.is_none()),
        ("path", webhook.path.is_none() && webhook.url.is_none()),
    ]
    .into_iter()
    .filter_map(|(name, is_missing)| is_missing.then_some(name))
    .collect();
    let kind = match find_subject(package, handler) {
        Subject::Found(kind) => Some(kind),
        // The marker is complete, so the kind isn't needed.
        _ if missing.is_empty() => None,
        Subject::Hidden(gap) => {
            let gap = package.gap(gap);
            report.add_all(gap.file, [gap.reason.clone()]);
            return None;
        }
        Subject::Unknown(name, span) => {
            let suggestion = suggest_kind(package, &name);
            let help = format!(
                "{suggestion}{} or add {} to the marker",
                if suggestion.ends_with('?') { "" } else { "," },
                suggest::list_names(missing)
            );
            let at = Place {
                file: handler.file,
                span,
            };
            report.error(at, format!("cannot find type `{name}`"), &help);
            return None;
        }
        Subject::Missing => {
            let place = Place {
                file: handler.file,
                span: handler.function,
            };
            let help = format!(
                "take the object as a parameter, as in `foo: &Foo`, or add {} to the marker",
                suggest::list_names(missing)
            );
            let message = "no parameter of this handler is a known kind";
            report.error(place, message, &help);
            return None;
        }
    };
    let from = |written: &Option<Vec<String>>, of: fn(&Kind) -> &String| match (written, &kind) {
        (Some(list), _) => list.clone(),
        (None, Some(kind)) => vec![of(kind).clone()],
        (None, None) => Vec::new(),
    };
    Some(Entry {
        handler,
        webhook,
        configuration: configuration(webhook),
        name: webhook
            .name
            .clone()
            .or_else(|| kind.as_ref().map(|kind| name(webhook.kind, kind)))?,
        groups: groups(from(&webhook.groups, |kind| &kind.group)),
        versions: from(&webhook.versions, |kind| &kind.version),
        resources: from(&webhook.resources, |kind| &kind.plural),
        path: match (&webhook.url, &webhook.path, &kind) {
            (Some(_), _, _) => None,
            (None, Some(path), _) => Some(path.clone()),
            (None, None, kind) => kind.as_ref().map(|kind| path(webhook.kind, kind)),
        },
        kind,
    })
}

fn suggest_kind(package: &Package, name: &str) -> String {
    let models = package.types.iter().filter_map(|item| item.model.as_ref());
    let kinds: BTreeSet<&str> = models
        .filter_map(|model| Some(model.custom_resource.as_ref()?.kind.as_str()))
        .collect();
    if kinds.contains(name) {
        return "import it from the module that declares it, or re-export it there with `pub use`".to_owned();
    }
    match kinds.is_empty() {
        true => "define or import it".to_owned(),
        false => suggest::describe_candidates(name, kinds),
    }
}

fn configuration(webhook: &Webhook) -> &str {
    match (&webhook.configuration, webhook.kind) {
        (Some(name), _) => name,
        (None, WebhookKind::Mutating) => "mutating-webhook-configuration",
        (None, WebhookKind::Validating) => "validating-webhook-configuration",
    }
}

/// kubebuilder uses the same names, e.g. `mfoo-v1.kb.io` and `vfoo-v1.kb.io`.
fn name(what: WebhookKind, kind: &Kind) -> String {
    let letter = match what {
        WebhookKind::Mutating => 'm',
        WebhookKind::Validating => 'v',
    };
    format!("{letter}{}-{}.kb.io", kind.kind.to_lowercase(), kind.version)
}

/// The path at which controller-runtime and rbuilder's runtime serve the kind.
fn path(what: WebhookKind, kind: &Kind) -> String {
    let verb = match what {
        WebhookKind::Mutating => "mutate",
        WebhookKind::Validating => "validate",
    };
    let group = kind.group.replace('.', "-");
    format!("/{verb}-{group}-{}-{}", kind.version, kind.kind.to_lowercase())
}

/// Replaces `core` with the empty group, keeping the order.
fn groups(written: Vec<String>) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for group in written {
        let group = if group == "core" { String::new() } else { group };
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}
