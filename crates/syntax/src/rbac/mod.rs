//! `#[rbac(…)]`: declares the permissions that a function needs.

mod check;
#[cfg(test)]
mod tests;

pub use check::{RBAC_URL_VERBS, RBAC_VERBS};
use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Span};

use crate::allow::read_allow;
use crate::args::{self, Arg, ReadArg as _};
use crate::table::{ArgRow, Draft};
use crate::words::read_words;
use crate::{RbacRule, Session};

/// The name of the attribute, or the last segment of its path.
pub const RBAC: &str = "rbac";

/// An argument of `#[rbac(…)]`.
pub type RbacArg = ArgRow<Parts>;

/// A partially read rule.
#[derive(Default)]
pub struct Parts {
    rule: RbacRule,
    /// Verbs exempt from checks.
    custom_verbs: Vec<String>,
}

/// The arguments of `#[rbac(…)]`.
pub const RBAC_ARGS: &[RbacArg] = &[
    ArgRow::once(
        "groups",
        "API groups of the resources; `\"\"` is the core group.",
        |arg, parts, session| {
            parts.rule.groups = read_words(arg, session).unwrap_or_default();
            parts.rule.groups_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "resources",
        "Resources in plural form, `pods/status` for a subresource.",
        |arg, parts, session| {
            parts.rule.resources = read_words(arg, session).unwrap_or_default();
            parts.rule.resources_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "resource_names",
        "Names of individual objects [default: all objects].",
        |arg, parts, session| parts.rule.resource_names = read_words(arg, session).unwrap_or_default(),
    ),
    ArgRow::once(
        "verbs",
        "Verbs: `get;list;watch;create;update;patch;delete;…`, or `*`.",
        |arg, parts, session| parts.rule.verbs = read_words(arg, session).unwrap_or_default(),
    ),
    ArgRow::once(
        "custom_verbs",
        "Additional verbs of your own APIs, which are not validated.",
        |arg, parts, session| parts.custom_verbs = read_words(arg, session).unwrap_or_default(),
    ),
    ArgRow::once(
        "urls",
        "Non-resource URLs, such as `/metrics`; only in a ClusterRole.",
        |arg, parts, session| parts.rule.urls = read_words(arg, session).unwrap_or_default(),
    ),
    ArgRow::once(
        "namespace",
        "Namespace of the Role for the rule. In a scaffolded project, `rbuilder manifests` binds Roles for other namespaces than the manager's [default: the rule is part of the ClusterRole].",
        |arg, parts, session| parts.rule.namespace = arg.text(session),
    ),
    ArgRow::once(
        "role_name",
        "Name of the role [default: that of the project].",
        |arg, parts, session| parts.rule.role_name = arg.text(session),
    ),
    ArgRow::once(
        "derived",
        "Rules for the calls in the source, in place of the arguments above except `namespace`, which then applies to namespaced resources, and `role_name`.",
        |arg, parts, session| parts.rule.derived = arg.flag(session),
    ),
    ArgRow::repeatable(
        "allow",
        "Codes of warnings and notes to leave out in the whole item: `allow(RB0601, reason = \"…\")`. Also without a rule.",
        |arg, _, session| read_allow(arg, session.scope, session),
    ),
];

/// Returns the `#[rbac(…)]` attributes, including paths such as `#[rbuilder::rbac(…)]`.
pub fn rbac_attributes<'t, 'a>(attrs: &'t [Attribute<'a>]) -> impl Iterator<Item = &'t Attribute<'a>> {
    attrs.iter().filter(|attr| attr.last_segment() == RBAC)
}

/// Parses an `#[rbac(…)]` attribute. Returns `None` if it contains nothing but `allow(…)`, or after
/// an error.
pub fn parse_rbac_attribute(attr: &Attribute<'_>, session: &mut Session) -> Option<RbacRule> {
    let args = args::check_args(attr, session);
    rule(args, attr.span(), session)
}

/// Parses the arguments of `#[rbac(…)]`. Returns `None` if there is nothing but `allow(…)`, or
/// after errors, which are added to the session. Errors about the rule as a whole are reported at
/// the macro call.
pub fn parse_rbac(arguments: Cursor<'_>, session: &mut Session) -> Option<RbacRule> {
    let args = args::parse_args(arguments, session);
    rule(&args, Span::OUTSIDE, session)
}

fn rule(args: &[Arg<'_>], span: Span, session: &mut Session) -> Option<RbacRule> {
    let mut draft = Draft::<Parts>::default();
    draft.value.rule.span = span;
    let errors = session.diagnostics.error_count();
    draft.read(RBAC, args, RBAC_ARGS, &[], session);
    let parts = draft.value;
    if !args.is_empty() && args.iter().all(|arg| arg.name == "allow") {
        return None;
    }
    if session.diagnostics.error_count() == errors {
        check::check_rule(&parts, args, session);
    }
    let Parts {
        mut rule,
        custom_verbs,
    } = parts;
    rule.verbs.extend(custom_verbs);
    (session.diagnostics.error_count() == errors).then_some(rule)
}
