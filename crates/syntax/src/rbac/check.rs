//! Checks RBAC rules for what the API server rejects, and for rules that grant nothing.

use rbuilder_reader::Span;

use super::Parts;
use crate::args::Arg;
use crate::{Diagnostic, RbacRule, Session, kubernetes, resources, suggest};
use rbuilder_kubernetes::names;

/// The verbs used by Kubernetes. RBAC accepts any string, but another verb is nearly always a
/// mistake.
pub const RBAC_VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "attest",
    "proxy",
    "*",
    "head",
    "post",
    "put",
    "options",
    "connect",
    "request-serviceaccounts-token-audience",
];

/// The verbs for non-resource URLs, i.e. the HTTP methods.
pub const RBAC_URL_VERBS: &[&str] = &["get", "post", "put", "patch", "delete", "head", "options", "*"];

/// HTTP methods that aren't verbs of resources, and the verbs probably meant by them.
const INSTEAD_OF_METHODS: &[(&str, &str)] = &[
    ("post", "create"),
    ("put", "update"),
    ("head", "get"),
    ("options", "get"),
];

/// Returns the span of an argument's value, or of the marker if there is no such argument.
type At<'a> = &'a dyn Fn(&str) -> Span;

pub(super) fn check_rule(parts: &Parts, args: &[Arg<'_>], session: &mut Session) {
    let rule = &parts.rule;
    let at = |name: &str| {
        args.iter()
            .find(|arg| arg.name == name)
            .map_or(rule.span, Arg::value_span)
    };
    if rule.derived {
        check_derived(args, session);
        return check_role(rule, &at, session);
    }
    check_verbs(parts, &at, session);
    if rule.urls.is_empty() {
        check_resource_verbs(rule, at("verbs"), session);
        check_resources(rule, &at, session);
        check_names(rule, &at, session);
    } else {
        check_urls(rule, at("urls"), session);
        check_url_verbs(parts, at("verbs"), session);
    }
    check_role(rule, &at, session);
}

fn check_derived(args: &[Arg<'_>], session: &mut Session) {
    let is_allowed = |arg: &&Arg<'_>| matches!(arg.name, "derived" | "namespace" | "role_name" | "allow");
    if let Some(arg) = args.iter().find(|arg| !is_allowed(arg)) {
        let message = format!("`derived` and `{}` exclude each other", arg.name);
        let help = "the calls in the source determine derived rules; write another marker for other rules";
        session.error_help(arg.span, message, help);
    }
}

fn check_verbs(parts: &Parts, at: At<'_>, session: &mut Session) {
    let verbs = &parts.rule.verbs;
    if verbs.iter().chain(&parts.custom_verbs).all(String::is_empty) {
        let help = "add `verbs = \"get;list;watch\"`";
        session.error_help(at("verbs"), "the rule has no verbs", help);
    }
    for verb in verbs
        .iter()
        .filter(|verb| !verb.is_empty() && !RBAC_VERBS.contains(&verb.as_str()))
    {
        // For URLs, HTTP methods are valid verbs.
        let is_method = |verb: &&str| INSTEAD_OF_METHODS.iter().any(|(method, _)| method == verb);
        let is_possible = |verb: &&str| !parts.rule.urls.is_empty() || !is_method(verb);
        let help = match suggest::find_nearest(verb, RBAC_VERBS.iter().copied().filter(is_possible)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write `custom_verbs = \"{verb}\"` if an API of your own defines it"),
        };
        session.error_help(at("verbs"), format!("unknown verb `{verb}`"), help);
    }
}

fn check_resources(rule: &RbacRule, at: At<'_>, session: &mut Session) {
    let place = at("resources");
    if rule.resources.iter().all(String::is_empty) {
        let help = "add `resources = \"…\"` with plurals, or `urls = \"…\"`";
        session.error_help(place, "the rule has no resources", help);
    } else if rule.groups.is_empty() {
        let help = "add `groups = \"…\"`; the core group (pods, services, events) is `groups = \"\"`";
        session.error_help(at("groups"), "the rule has no API groups", help);
    }
    for group in &rule.groups {
        check_group(group, at("groups"), session);
    }
    for resource in &rule.resources {
        check_resource(rule, resource, place, session);
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
        Some((group, _)) => format!("write `{group}`: roles apply to all versions"),
        None => "use a lower-case domain, such as `apps` or `batch.example.com`".to_owned(),
    };
    session.error_help(at, format!("invalid API group `{group}`"), help);
}

fn check_resource(rule: &RbacRule, resource: &str, at: Span, session: &mut Session) {
    let (whole, part) = resource
        .split_once('/')
        .map_or((resource, None), |(whole, part)| (whole, Some(part)));
    if resource.chars().any(char::is_uppercase) {
        let help = "use the lower-case plural, as in `deployments`";
        session.error_help(at, format!("invalid resource `{resource}`"), help);
    } else if let Some(help) = resources::explain_path(resource) {
        session.error_help(at, format!("invalid resource `{resource}`"), help);
    } else if part == Some("*") {
        let help =
            "write the subresource, as in `pods/log`; `*` stands for all resources and their subresources";
        session.error_help(at, format!("`{resource}` matches nothing"), help);
    } else if let Some((plural, group)) = whole.split_once('.') {
        let help = format!("write `groups = \"{group}\", resources = \"{plural}\"`");
        session.error_help(at, format!("invalid resource `{resource}`"), help);
    } else if let Some((message, help)) = kubernetes::explain_resource(&rule.groups, resource) {
        session.report(Diagnostic::warning(at, message).help(help));
    } else {
        check_known_resource(rule, (whole, part), at, session);
    }
}

fn check_known_resource(
    rule: &RbacRule,
    (whole, part): (&str, Option<&str>),
    at: Span,
    session: &mut Session,
) {
    let found: Option<Vec<_>> = rule
        .groups
        .iter()
        .map(|group| resources::find_resource(group, whole))
        .collect();
    // With several groups, it's unclear which of them is meant.
    let Some([resource]) = found.as_deref() else {
        return;
    };
    // A Role grants access to its own namespace. The API server authorizes `bind` of a ClusterRole
    // in the namespace of the RoleBinding, but `escalate` in the namespace of the role, which a
    // ClusterRole doesn't have.
    let has_bind = || rule.verbs.iter().any(|verb| verb == "bind" || verb == "*");
    let has_effect = whole == "namespaces" || whole == "clusterroles" && has_bind();
    if rule.namespace.is_some() && !resource.is_namespaced && !has_effect {
        let message = format!("`{whole}` are cluster-scoped, so a Role has no effect on them");
        let help = "remove `namespace`: only a ClusterRole can grant access to them";
        session.error_help(at, message, help);
    } else if let Some((message, help)) = resource.explain_rule(part, &rule.verbs) {
        session.report(Diagnostic::warning(at, message).help(help));
    }
}

fn check_names(rule: &RbacRule, at: At<'_>, session: &mut Session) {
    if rule.resource_names.iter().any(|name| name == "*") {
        let help = "remove `resource_names` to match every object";
        session.error_help(at("resource_names"), "invalid object name `*`", help);
    }
    let has = |verb: &str| rule.verbs.iter().any(|found| found == verb);
    // For a subresource, `resource_names` doesn't refer to the created object.
    if rule.resource_names.is_empty() || rule.resources.iter().any(|resource| resource.contains('/')) {
        return;
    }
    if has("deletecollection") {
        session.error_help(
            at("resource_names"),
            "`deletecollection` cannot be limited by name",
            "move this verb to a separate rule without `resource_names`",
        );
    }
    // Server-side apply of a new object requires both verbs on its name.
    if has("create") && !has("patch") && !has("*") {
        let message =
            "`create` limited by name allows only server-side apply, which requires `patch` as well";
        let help = "add `patch` to the verbs, or move `create` to a separate rule without `resource_names`";
        session.report(Diagnostic::warning(at("resource_names"), message).help(help));
    }
}

fn check_urls(rule: &RbacRule, at: Span, session: &mut Session) {
    if rule.namespace.is_some() {
        let help = "remove `namespace`: only a ClusterRole can grant access to URLs";
        session.error_help(at, "`urls` have no effect in a Role", help);
    }
    if !rule.resources.is_empty() || !rule.groups.is_empty() || !rule.resource_names.is_empty() {
        let help = "write two `#[rbac(…)]`, one for the resources and one for the URLs";
        session.error_help(at, "a rule cannot have both resources and URLs", help);
    }
    for url in rule.urls.iter().filter(|url| !url.is_empty() && *url != "*") {
        if !url.starts_with('/') {
            session.error_help(at, format!("invalid URL path `{url}`"), format!("write `/{url}`"));
        } else if url.contains(['?', '#']) {
            let help = "remove the query: rules match the path only";
            session.error_help(at, format!("`{url}` matches nothing"), help);
        } else if url.find('*').is_some_and(|star| star + 1 < url.len()) {
            let help = "use `*` only at the end of a path, as in `/healthz/*`";
            session.error_help(at, format!("`{url}` matches nothing"), help);
        }
    }
}

/// Reports HTTP methods, which only apply to URLs, in a rule for resources.
fn check_resource_verbs(rule: &RbacRule, at: Span, session: &mut Session) {
    for (method, verb) in INSTEAD_OF_METHODS {
        if rule.verbs.iter().any(|written| written == method) {
            let message = format!("verb `{method}` does not apply to resources");
            session.report(Diagnostic::warning(at, message).help(format!("write `{verb}`")));
        }
    }
}

/// Reports verbs such as `list` and `watch` in a rule for URLs, where only HTTP methods apply.
fn check_url_verbs(parts: &Parts, at: Span, session: &mut Session) {
    let is_known = |verb: &String| RBAC_URL_VERBS.contains(&verb.as_str());
    let verbs = &parts.rule.verbs;
    let Some(unknown) = verbs.iter().find(|verb| !is_known(verb)) else {
        return;
    };
    let methods = RBAC_URL_VERBS.iter().copied().filter(|verb| *verb != "*");
    let help = format!("use one of {}", suggest::list_names(methods));
    let message = format!("verb `{unknown}` does not apply to URLs");
    if parts.custom_verbs.is_empty() && !verbs.iter().any(is_known) {
        session.error_help(at, message, help);
    } else {
        session.report(Diagnostic::warning(at, message).help(help));
    }
}

fn check_role(rule: &RbacRule, at: At<'_>, session: &mut Session) {
    if let Some(name) = &rule.namespace
        && !names::is_label(name)
    {
        let message = format!("invalid namespace name `{name}`");
        session.error_help(at("namespace"), message, "use lower-case letters, digits and `-`");
    }
    if let Some(name) = &rule.role_name
        && (name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']))
    {
        let message = format!("invalid role name `{name}`");
        session.error_help(at("role_name"), message, "use letters, digits, `-`, `.` and `:`");
    }
}
