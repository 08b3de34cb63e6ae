//! Checks the names of a kind: group, version, kind, plural, singular and short names.

use rbuilder_kubernetes::names;
use rbuilder_reader::Span;
use rbuilder_reader::token::Ident;

use crate::{CustomResource, Diagnostic, Session};

pub(super) fn check_derived_plural(resource: &CustomResource, at: Span, session: &mut Session) {
    let singular = resource.singular_name();
    // An invalid singular has already been reported.
    if resource.plural.is_some() || !names::is_dns_1035_label(&singular) {
        return;
    }
    let plural = resource.plural_name();
    // kube-derive panics for `y`, and doesn't validate any other plural it derives.
    if singular == "y" || !names::is_dns_1035_label(&plural) {
        let help = format!("add `plural = \"…\"` next to `kind = \"{}\"`", resource.kind);
        session.error_help(
            at,
            format!("kube cannot derive a valid plural from `{singular}`"),
            help,
        );
    }
}

pub(super) fn check_group(group: &str, at: Span, session: &mut Session) {
    if !is_crd_group(group) {
        let help = "use a domain with a dot, such as `cache.example.com`";
        session.error_help(at, format!("invalid API group `{group}`"), help);
    }
}

fn is_crd_group(group: &str) -> bool {
    group.contains('.') && names::is_subdomain(group)
}

/// A CRD is named after the plural and the group, e.g. `cups.example.com`.
pub(crate) fn is_crd_name(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(plural, group)| names::is_dns_1035_label(plural) && is_crd_group(group))
}

pub(crate) fn check_version(version: &str, at: Span, session: &mut Session) {
    let help = "a version such as `v1`, `v1alpha1` or `v2beta3`";
    check_label("version", version, help, at, session);
}

/// Returns false after an error. `most` is the maximum length.
pub(crate) fn check_kind_name(kind: &str, most: usize, at: Span, session: &mut Session) -> bool {
    let is_right = is_kind_name(kind, most);
    if !is_right {
        let help = "use UpperCamelCase, as in `CronJob`";
        session.error_help(at, format!("invalid kind `{kind}`"), help);
    }
    is_right
}

fn is_upper_case(kind: &str) -> bool {
    kind.starts_with(|first: char| first.is_ascii_uppercase())
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn is_kind_name(kind: &str, most: usize) -> bool {
    let is_letter_first = kind.starts_with(|first: char| first.is_ascii_alphabetic());
    is_letter_first && kind.len() <= most && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(super) fn check_label(what: &str, value: &str, help: &str, at: Span, session: &mut Session) {
    if !names::is_dns_1035_label(value) {
        session.error_help(at, format!("invalid {what} `{value}`"), format!("write {help}"));
    }
}

pub(super) fn check_kind(
    kind: &str,
    made: &CustomResource,
    ident: Ident<'_>,
    at: Span,
    session: &mut Session,
) {
    // The API server's limit of 63 also applies to the list kind, which has the suffix `List`.
    const MOST: usize = 59;
    let is_right = check_kind_name(kind, MOST, at, session);
    // The API server accepts such a kind, and objects may already exist. An explicit `root` shows
    // that the name is intentional.
    if is_right && !is_upper_case(kind) && made.root.is_none() {
        let message = format!("the kind `{kind}` does not begin with a capital letter");
        let help = format!(
            "use UpperCamelCase, as in `CronJob`; if the kind is in use, keep it and name its struct: `root = \"{}\"`",
            capitalize(kind)
        );
        session.report(Diagnostic::warning(at, message).help(help));
    }
    if ident.text == made.root.as_deref().unwrap_or(kind) {
        let help = format!("rename this struct to `{kind}Spec`: kube generates the struct `{kind}`");
        session.error_help(made.span, "the struct has the same name as the kind", help);
    }
}
