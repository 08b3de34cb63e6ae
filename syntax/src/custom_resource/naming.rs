//! The names of a kind: group, version, kind, plural, singular, short names.

use rbuilder_reader::Span;
use rbuilder_reader::token::Ident;

use crate::{CustomResource, Session};

/// kube-derive panics over a singular of the letter `y`, and does not look whether its plural can be one.
pub(super) fn check_derived_plural(resource: &CustomResource, at: Span, session: &mut Session) {
    let singular = resource.singular_name();
    // A wrong singular has been reported, and a kind of these lengths is one that fits.
    if resource.plural.is_some() || !is_label(&singular, true) {
        return;
    }
    let plural = resource.plural_name();
    if singular == "y" || !is_label(&plural, true) {
        let help = format!("add `plural = \"…\"` next to `kind = \"{}\"`", resource.kind);
        session.error_help(
            at,
            format!("kube cannot derive a valid plural from `{singular}`"),
            help,
        );
    }
}

pub(super) fn check_group(group: &str, at: Span, session: &mut Session) {
    let labels = group.split('.').collect::<Vec<_>>();
    // The API server counts the letters of the whole name, not those of a label.
    let is_part = |label: &&str| is_label_of_any_length(label, false);
    if labels.len() < 2 || group.len() > 253 || !labels.iter().all(is_part) {
        let help = "use a domain with a dot, such as `cache.example.com`";
        session.error_help(at, format!("invalid API group `{group}`"), help);
    }
}

pub(super) fn check_label(what: &str, value: &str, help: &str, at: Span, session: &mut Session) {
    if !is_label(value, true) {
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
    let upper = kind
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_uppercase());
    if !upper || !kind.chars().all(|letter| letter.is_ascii_alphanumeric()) || kind.len() > 59 {
        let help = "use UpperCamelCase, as in `CronJob`";
        session.error_help(at, format!("invalid kind `{kind}`"), help);
    }
    if ident.text == made.root.as_deref().unwrap_or(kind) {
        let help = format!("rename this struct to `{kind}Spec`: kube generates the struct `{kind}`");
        session.error_help(made.span, "the struct has the same name as the kind", help);
    }
}

/// A DNS label; with `letter_first` as RFC 1035 has it, else as RFC 1123.
fn is_label(text: &str, letter_first: bool) -> bool {
    text.len() <= 63 && is_label_of_any_length(text, letter_first)
}

fn is_label_of_any_length(text: &str, letter_first: bool) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    bytes.iter().all(inner)
        && *first != b'-'
        && *last != b'-'
        && (!letter_first || first.is_ascii_lowercase())
}
