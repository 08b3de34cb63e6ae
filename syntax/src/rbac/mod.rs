//! `#[rbac(…)]`: the permissions a function needs, beside the function.

mod check;
#[cfg(test)]
mod tests;

use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Span};

use crate::args::{self, Arg, ReadArg as _};
use crate::words::words;
use crate::{RbacRule, Session, suggest};

/// The name of the attribute; its last segment where it is written with a path.
pub const RBAC: &str = "rbac";

/// One argument of `#[rbac(…)]`: a row of the reference page and what "did you mean" chooses from.
pub struct RbacArg {
    /// Its name.
    pub name: &'static str,
    /// What it says, one line.
    pub doc: &'static str,
    read: fn(&Arg, &mut Draft, &mut Session),
}

/// A rule while its arguments are read.
#[derive(Default)]
struct Draft {
    rule: RbacRule,
    /// Verbs that are taken as they are.
    custom_verbs: Vec<String>,
}

/// Every argument of `#[rbac(…)]`.
pub const RBAC_ARGS: &[RbacArg] = &[
    RbacArg {
        name: "groups",
        doc: "API groups of the resources; `\"\"` is the core group.",
        read: |arg, draft, session| {
            draft.rule.groups = words(arg, session).unwrap_or_default();
            draft.rule.groups_span = arg.value_span();
        },
    },
    RbacArg {
        name: "resources",
        doc: "Resources in plural form, `pods/status` for a subresource.",
        read: |arg, draft, session| {
            draft.rule.resources = words(arg, session).unwrap_or_default();
            draft.rule.resources_span = arg.value_span();
        },
    },
    RbacArg {
        name: "resource_names",
        doc: "Names of individual objects [default: all objects].",
        read: |arg, draft, session| draft.rule.resource_names = words(arg, session).unwrap_or_default(),
    },
    RbacArg {
        name: "verbs",
        doc: "Verbs: `get;list;watch;create;update;patch;delete;…`, or `*`.",
        read: |arg, draft, session| draft.rule.verbs = words(arg, session).unwrap_or_default(),
    },
    RbacArg {
        name: "custom_verbs",
        doc: "Additional verbs of your own APIs, which are not validated.",
        read: |arg, draft, session| draft.custom_verbs = words(arg, session).unwrap_or_default(),
    },
    RbacArg {
        name: "urls",
        doc: "Non-resource URLs, such as `/metrics`; only in a ClusterRole.",
        read: |arg, draft, session| draft.rule.urls = words(arg, session).unwrap_or_default(),
    },
    RbacArg {
        name: "namespace",
        doc: "Namespace of the Role for the rule [default: the rule is part of the ClusterRole].",
        read: |arg, draft, session| draft.rule.namespace = arg.text(session),
    },
    RbacArg {
        name: "role_name",
        doc: "Name of the role [default: that of the project].",
        read: |arg, draft, session| draft.rule.role_name = arg.text(session),
    },
];

/// The `#[rbac(…)]` attributes among these, however their path is written.
pub fn rbac_attributes<'t, 'a>(attrs: &'t [Attribute<'a>]) -> impl Iterator<Item = &'t Attribute<'a>> {
    attrs.iter().filter(|attr| attr.last_segment() == RBAC)
}

/// Reads one `#[rbac(…)]` attribute.
pub fn parse_rbac_attribute(attr: &Attribute<'_>, session: &mut Session) -> Option<RbacRule> {
    let args = args::of_attribute(attr, session);
    rule(&args, attr.span(), session)
}

/// Reads what stands between the parentheses of `#[rbac(…)]`. Nothing comes back when the rule is wrong; the
/// session then holds the reasons. Complaints about the whole are placed where the macro was called.
pub fn parse_rbac(arguments: Cursor<'_>, session: &mut Session) -> Option<RbacRule> {
    let args = args::parse(arguments, session);
    rule(&args, Span::OUTSIDE, session)
}

fn rule(args: &[Arg<'_>], span: Span, session: &mut Session) -> Option<RbacRule> {
    let mut draft = Draft::default();
    draft.rule.span = span;
    let errors = session.diagnostics.error_count();
    for (position, arg) in args.iter().enumerate() {
        let Some(row) = RBAC_ARGS.iter().find(|row| row.name == arg.name) else {
            let help = suggest::help(arg.name, RBAC_ARGS.iter().map(|row| row.name));
            session.error_help(arg.span, format!("unknown rbac argument `{}`", arg.name), help);
            continue;
        };
        if args[..position].iter().any(|earlier| earlier.name == arg.name) {
            session.error(arg.span, format!("`{}` is written twice", arg.name));
            continue;
        }
        (row.read)(arg, &mut draft, session);
    }
    if session.diagnostics.error_count() == errors {
        check::check(&draft, args, session);
    }
    let Draft {
        mut rule,
        custom_verbs,
    } = draft;
    rule.verbs.extend(custom_verbs);
    (session.diagnostics.error_count() == errors).then_some(rule)
}
