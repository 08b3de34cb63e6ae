//! Checks webhooks for what the API server rejects, and for webhooks that are never called.

use rbuilder_reader::Span;

use super::{Webhook, WebhookKind, choice};
use crate::args::{Arg, ReadArg as _};
use crate::client_config::{check_service_path, check_webhook_url};
use crate::{Diagnostic, Session, kubernetes, resources};
use rbuilder_kubernetes::names;

/// Returns the span of an argument's value, or of the marker if there is no such argument.
type At<'a> = &'a dyn Fn(&str) -> Span;

pub(super) fn check_webhook(webhook: &Webhook, args: &[Arg], session: &mut Session) {
    let has = |name: &str| args.iter().any(|arg| arg.name == name);
    let at = |name: &str| {
        args.iter()
            .find(|arg| arg.name == name)
            .map_or(webhook.span, Arg::value_span)
    };
    match (has("mutating"), has("validating")) {
        (false, false) => session.error_help(
            webhook.span,
            "missing `mutating` or `validating`",
            "write `#[webhook(mutating)]` for a handler that changes objects, or `#[webhook(validating)]` for one that accepts or rejects them",
        ),
        (true, true) => session.error_help(
            at("validating"),
            "`mutating` and `validating` are mutually exclusive",
            "write two handlers, each with its `#[webhook(…)]`",
        ),
        _ => {}
    }
    check_rule(webhook, &at, session);
    check_client(webhook, args, &at, session);
    check_names(webhook, &at, session);
    check_review_versions(webhook, &at, session);
    check_conditions(webhook, &at, session);
    if has("reinvocation_policy") && webhook.kind == WebhookKind::Validating {
        session.error_help(
            at("reinvocation_policy"),
            "`reinvocation_policy` applies to mutating webhooks",
            "remove `reinvocation_policy`",
        );
    }
}

fn check_rule(webhook: &Webhook, at: At<'_>, session: &mut Session) {
    if webhook.operations.is_empty() {
        let help = "write `operations = \"create;update\"`";
        session.error_help(at("operations"), "the webhook has no operations", help);
    }
    if webhook.operations.len() > 1 && webhook.operations.contains(&"*") {
        let help = "remove the other operations";
        session.error_help(at("operations"), "`*` already matches every operation", help);
    }
    for (position, operation) in webhook.operations.iter().enumerate() {
        if webhook.operations[..position].contains(operation) {
            let message = format!("duplicate operation `{operation}`");
            session.error(at("operations"), message);
        }
    }
    let lists = [
        ("groups", &webhook.groups, "groups = \"apps\""),
        ("versions", &webhook.versions, "versions = \"v1\""),
        ("resources", &webhook.resources, "resources = \"deployments\""),
    ];
    for (name, list, sample) in lists {
        let Some(list) = list else { continue };
        let repeated = (1..list.len()).find(|position| list[..*position].contains(&list[*position]));
        if let Some(position) = repeated {
            session.error(at(name), format!("duplicate `{}` in `{name}`", list[position]));
        }
        // `check_resource` deals with `*` among resources, which doesn't match subresources.
        if list.is_empty() {
            session.error_help(
                at(name),
                format!("`{name}` must not be empty"),
                format!("write `{sample}`, or remove it"),
            );
        } else if name != "resources" && list.len() > 1 && list.iter().any(|word| word == "*") {
            session.error_help(
                at(name),
                format!("`*` already matches all {name}"),
                "remove the others",
            );
        }
    }
    for group in webhook.groups.iter().flatten() {
        check_group(group, at("groups"), session);
    }
    for resource in webhook.resources.iter().flatten() {
        check_resource(resource, webhook, at("resources"), session);
        check_known_resource(resource, webhook, at("resources"), session);
    }
}

fn check_known_resource(resource: &str, webhook: &Webhook, at: Span, session: &mut Session) {
    let groups = webhook.groups.as_deref().unwrap_or_default();
    let (whole, part) = match resource.split_once('/') {
        Some((whole, part)) => (whole, Some(part).filter(|part| *part != "*")),
        None => (resource, None),
    };
    // With several groups, it's unclear which one the resource belongs to.
    let known = match groups {
        [group] => resources::find_resource(group, whole),
        _ => None,
    };
    let said = match (known, part) {
        (Some(known), Some(part)) => known.explain_subresource(part),
        _ => kubernetes::explain_resource(groups, resource),
    };
    if let Some((message, help)) = said {
        session.report(Diagnostic::warning(at, message).help(help));
    }
}

fn check_group(group: &str, at: Span, session: &mut Session) {
    if group.is_empty() || group == "*" {
        return;
    }
    if names::is_subdomain(group) {
        if let Some((message, help)) = resources::explain_group(group) {
            session.report(Diagnostic::warning(at, message).help(help));
        }
        return;
    }
    let help = match group.split_once('/') {
        Some((group, version)) => format!("write `groups = \"{group}\"` and `versions = \"{version}\"`"),
        None => "use a lower-case domain, such as `apps` or `batch.example.com`".to_owned(),
    };
    session.error_help(at, format!("invalid API group `{group}`"), help);
}

/// Checks a resource of the webhook. The API server rejects a wildcard alongside a resource that
/// the wildcard already matches.
fn check_resource(resource: &str, webhook: &Webhook, at: Span, session: &mut Session) {
    if resource.chars().any(char::is_uppercase) {
        let help = "use the lower-case plural, as in `deployments`";
        session.error_help(at, format!("invalid resource `{resource}`"), help);
    }
    if let Some(help) = resources::explain_path(resource) {
        session.error_help(at, format!("invalid resource `{resource}`"), help);
    }
    let others = || {
        webhook
            .resources
            .iter()
            .flatten()
            .filter(|other| *other != resource)
    };
    let covered = match resource.split_once('/') {
        Some(("*", "*")) => others().next(),
        Some((whole, "*")) => others().find(|other| other.starts_with(&format!("{whole}/"))),
        Some(("*", part)) => others().find(|other| other.ends_with(&format!("/{part}"))),
        None if resource == "*" => others().find(|other| !other.contains('/')),
        _ => None,
    };
    if let Some(other) = covered {
        session.error_help(
            at,
            format!("`{resource}` already matches `{other}`"),
            format!("remove `{other}`"),
        );
    }
}

fn check_client(webhook: &Webhook, args: &[Arg], at: At<'_>, session: &mut Session) {
    if let Some(url) = &webhook.url {
        for arg in args {
            if arg.name == "path" || arg.name.starts_with("service_") {
                let message = format!("`{}` and `url` are mutually exclusive", arg.name);
                let help = "use `url` for a server outside of the cluster, `path` for a Service";
                session.error_help(arg.span, message, help);
            }
        }
        check_webhook_url(url, at("url"), session);
    }
    if let Some(path) = &webhook.path {
        check_service_path(path, at("path"), session);
    }
    if let Some(name) = &webhook.service_name
        && !names::is_dns_1035_label(name)
    {
        let help = "use lower-case letters, digits and `-`, beginning with a letter";
        session.error_help(at("service_name"), format!("invalid Service name `{name}`"), help);
    }
    if let Some(name) = &webhook.service_namespace
        && !names::is_label(name)
    {
        let help = "use lower-case letters, digits and `-`";
        session.error_help(
            at("service_namespace"),
            format!("invalid namespace name `{name}`"),
            help,
        );
    }
}

fn check_names(webhook: &Webhook, at: At<'_>, session: &mut Session) {
    if let Some(name) = &webhook.name
        && (!names::is_subdomain(name) || name.split('.').count() < 3)
    {
        let help = "use a domain with at least three parts, such as `mfoo-v1.example.com`";
        session.error_help(at("name"), format!("invalid webhook name `{name}`"), help);
    }
    if let Some(name) = &webhook.configuration
        && !names::is_subdomain(name)
    {
        let help = "use lower-case letters, digits, `-` and `.`";
        session.error_help(
            at("configuration"),
            format!("invalid configuration name `{name}`"),
            help,
        );
    }
}

fn check_review_versions(webhook: &Webhook, at: At<'_>, session: &mut Session) {
    let versions = &webhook.admission_review_versions;
    let place = at("admission_review_versions");
    for (position, version) in versions.iter().enumerate() {
        if !matches!(version.as_str(), "v1" | "v1beta1") {
            let message = format!("unknown AdmissionReview version `{version}`");
            session.error_help(place, message, "write `v1`");
        } else if versions[..position].contains(version) {
            session.error(place, format!("duplicate version `{version}`"));
        }
    }
    if versions.first().is_none_or(|first| first == "v1beta1") {
        let help = "put `v1` first: the API server sends the first version that it supports";
        session.error_help(place, "the handler supports AdmissionReview v1 only", help);
    }
}

/// The API server's limit.
const MOST_CONDITIONS: usize = 64;

fn check_conditions(webhook: &Webhook, at: At<'_>, session: &mut Session) {
    let conditions = &webhook.match_conditions;
    for (position, condition) in conditions.iter().enumerate() {
        if conditions[..position]
            .iter()
            .any(|earlier| earlier.name == condition.name)
        {
            let message = format!("duplicate match condition name `{}`", condition.name);
            session.error_help(at("match_condition"), message, "rename one of them");
        }
    }
    if conditions.len() > MOST_CONDITIONS {
        let message = format!("a webhook can have at most {MOST_CONDITIONS} match conditions");
        session.error_help(at("match_condition"), message, "combine some of them with `&&`");
    }
}

pub(super) fn read_port(arg: &Arg, session: &mut Session) -> Option<u16> {
    let number = arg.number(session)?;
    let port = number
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0);
    if port.is_none() {
        let help = "write a port from 1 to 65535";
        session.error_help(
            arg.value_span(),
            format!("expected a port number, found {number}"),
            help,
        );
    }
    port
}

/// The API server only accepts timeouts from 1 to 30 seconds.
pub(super) fn read_timeout(arg: &Arg, session: &mut Session) -> Option<u8> {
    let number = arg.number(session)?;
    let seconds = number
        .as_u64()
        .and_then(|seconds| u8::try_from(seconds).ok())
        .filter(|seconds| (1..=30).contains(seconds));
    if seconds.is_none() {
        let message = format!("expected a timeout from 1 to 30 seconds, found {number}");
        session.error_help(arg.value_span(), message, "write a number from 1 to 30");
    }
    seconds
}

/// The API server rejects `Some` and `Unknown` in `v1`.
pub(super) fn side_effects(arg: &Arg, session: &mut Session) -> &'static str {
    let refused = arg
        .literal()
        .and_then(|literal| literal.value.as_str())
        .filter(|text| ["some", "unknown"].contains(&text.to_lowercase().as_str()));
    if let Some(text) = refused {
        let message = format!("the API server rejects a webhook with `side_effects = \"{text}\"`");
        let help = "write `NoneOnDryRun`, and skip side effects in the handler when `dry_run` is set";
        session.error_help(arg.value_span(), message, help);
        // Continue with a valid value, so that this remains the only error.
        return "None";
    }
    choice(arg, &["None", "NoneOnDryRun"], session).unwrap_or("None")
}
