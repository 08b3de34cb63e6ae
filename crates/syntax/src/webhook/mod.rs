//! `#[webhook(…)]`: the requests for which the API server calls a handler function.
//!
//! Group, version, resource, path and name default to those of the handler's type. Finding that
//! type would require a second item, so the generator fills them in.

mod check;
mod selector;
#[cfg(test)]
mod tests;

use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Span};

use crate::allow::read_allow;
use crate::args::{self, Arg, ReadArg as _};
use crate::table::{ArgRow, Draft};
use crate::words::read_words;
use crate::{Session, suggest};

pub use selector::{LabelSelector, MatchCondition, Requirement};
pub(crate) use selector::{describe_condition_args, describe_requirement_args, describe_selector_args};

/// The name of the attribute, or the last segment of its path.
pub const WEBHOOK: &str = "webhook";

/// One of the two kinds of admission webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookKind {
    /// Changes objects, before any webhook validates them.
    #[default]
    Mutating,
    /// Accepts or rejects requests.
    Validating,
}

/// A `#[webhook(…)]` marker. Words are spelled as in the API. `None` is the default, of either the
/// API server or the handler's type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the marker's arguments of the same names
pub struct Webhook {
    pub span: Span,
    pub kind: WebhookKind,
    pub configuration: Option<String>,
    pub name: Option<String>,
    /// The span of the name, or of the marker if it has no name.
    pub name_span: Span,
    /// Defaults to the group of the handler's type, as do `versions`, `resources` and `path`.
    pub groups: Option<Vec<String>>,
    /// The span of the groups, or of the marker if it has none. Likewise for the other spans.
    pub groups_span: Span,
    pub versions: Option<Vec<String>>,
    pub versions_span: Span,
    pub resources: Option<Vec<String>>,
    pub resources_span: Span,
    pub operations: Vec<&'static str>,
    pub operations_span: Span,
    pub scope: Option<&'static str>,
    pub scope_span: Span,
    pub path: Option<String>,
    /// The span of the path, or of the marker if it has no path.
    pub path_span: Span,
    pub url: Option<String>,
    pub service_name: Option<String>,
    pub service_namespace: Option<String>,
    pub service_port: Option<u16>,
    pub failure_policy: &'static str,
    pub match_policy: Option<&'static str>,
    pub side_effects: &'static str,
    pub timeout_seconds: Option<u8>,
    pub admission_review_versions: Vec<String>,
    pub reinvocation_policy: Option<&'static str>,
    pub match_conditions: Vec<MatchCondition>,
    pub namespace_selector: Option<LabelSelector>,
    pub object_selector: Option<LabelSelector>,
}

impl Webhook {
    /// The defaults of kubebuilder's scaffold: create and update, fail closed, no side effects,
    /// `v1` reviews.
    fn at(span: Span) -> Webhook {
        Webhook {
            span,
            kind: WebhookKind::default(),
            configuration: None,
            name: None,
            name_span: span,
            groups: None,
            groups_span: span,
            versions: None,
            versions_span: span,
            resources: None,
            resources_span: span,
            operations: vec!["CREATE", "UPDATE"],
            operations_span: span,
            scope: None,
            scope_span: span,
            path: None,
            path_span: span,
            url: None,
            service_name: None,
            service_namespace: None,
            service_port: None,
            failure_policy: "Fail",
            match_policy: None,
            side_effects: "None",
            timeout_seconds: None,
            admission_review_versions: vec!["v1".into()],
            reinvocation_policy: None,
            match_conditions: Vec::new(),
            namespace_selector: None,
            object_selector: None,
        }
    }
}

/// An argument of `#[webhook(…)]`.
pub type WebhookArg = ArgRow<Webhook>;

/// The arguments of `#[webhook(…)]`.
pub const WEBHOOK_ARGS: &[WebhookArg] = &[
    ArgRow::once(
        "mutating",
        "The handler is a mutating webhook.",
        |arg, webhook, session| {
            if arg.flag(session) {
                webhook.kind = WebhookKind::Mutating;
            }
        },
    ),
    ArgRow::once(
        "validating",
        "The handler is a validating webhook.",
        |arg, webhook, session| {
            if arg.flag(session) {
                webhook.kind = WebhookKind::Validating;
            }
        },
    ),
    ArgRow::once(
        "operations",
        "Operations that the webhook is called for: `create;update;delete;connect`, or `*` [default: `create;update`].",
        |arg, webhook, session| {
            webhook.operations = choices(arg, OPERATIONS, session);
            webhook.operations_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "groups",
        "API groups of the objects [default: from the handler's type]; `core` or `\"\"` is the core group.",
        |arg, webhook, session| {
            webhook.groups = read_words(arg, session);
            webhook.groups_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "versions",
        "API versions of the objects [default: from the handler's type].",
        |arg, webhook, session| {
            webhook.versions = read_words(arg, session);
            webhook.versions_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "resources",
        "Resources in plural form, `pods/status` for a subresource [default: from the handler's type].",
        |arg, webhook, session| {
            webhook.resources = read_words(arg, session);
            webhook.resources_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "scope",
        "`Namespaced` or `Cluster`: restricts the webhook to such objects [default: both].",
        |arg, webhook, session| {
            webhook.scope = choice(arg, SCOPES, session);
            webhook.scope_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "name",
        "Name of the webhook, a DNS name with at least three segments [default: `mfoo-v1.kb.io` or `vfoo-v1.kb.io` for the kind Foo].",
        |arg, webhook, session| {
            webhook.name = arg.text(session);
            webhook.name_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "configuration",
        "Name of the webhook configuration [default: `mutating-webhook-configuration` or `validating-webhook-configuration`].",
        |arg, webhook, session| webhook.configuration = arg.text(session),
    ),
    ArgRow::once(
        "path",
        "URL path of the handler [default: `/mutate-<group>-<version>-<kind>` or `/validate-…`].",
        |arg, webhook, session| {
            webhook.path = arg.text(session);
            webhook.path_span = arg.value_span();
        },
    ),
    ArgRow::once(
        "service_name",
        "Name of the Service to call [default: `webhook-service`].",
        |arg, webhook, session| webhook.service_name = arg.text(session),
    ),
    ArgRow::once(
        "service_namespace",
        "Namespace of the Service [default: `system`, which kustomize replaces].",
        |arg, webhook, session| webhook.service_namespace = arg.text(session),
    ),
    ArgRow::once(
        "service_port",
        "Port of the Service [default: 443].",
        |arg, webhook, session| webhook.service_port = check::read_port(arg, session),
    ),
    ArgRow::once(
        "url",
        "URL to call instead of a Service, `https://…`.",
        |arg, webhook, session| webhook.url = arg.text(session),
    ),
    ArgRow::once(
        "failure_policy",
        "Behavior if the webhook cannot be called: `fail` rejects the request, `ignore` admits it [default: `fail`].",
        |arg, webhook, session| {
            webhook.failure_policy = choice(arg, &["Fail", "Ignore"], session).unwrap_or("Fail");
        },
    ),
    ArgRow::once(
        "match_policy",
        "`Exact` matches only `groups`, `versions` and `resources`; `Equivalent` also matches the same objects in other groups and versions [default: `Equivalent`].",
        |arg, webhook, session| webhook.match_policy = choice(arg, &["Exact", "Equivalent"], session),
    ),
    ArgRow::once(
        "side_effects",
        "`None`, or `NoneOnDryRun` if the handler has no side effects for dry runs [default: `None`].",
        |arg, webhook, session| webhook.side_effects = check::side_effects(arg, session),
    ),
    ArgRow::once(
        "timeout_seconds",
        "Timeout in seconds, 1 to 30 [default: 10].",
        |arg, webhook, session| webhook.timeout_seconds = check::read_timeout(arg, session),
    ),
    ArgRow::once(
        "admission_review_versions",
        "Supported versions of AdmissionReview, in order of preference [default: `v1`].",
        |arg, webhook, session| {
            webhook.admission_review_versions = read_words(arg, session).unwrap_or_default();
        },
    ),
    ArgRow::once(
        "reinvocation_policy",
        "`IfNeeded` calls a mutating webhook again if a later one changes the object [default: `Never`].",
        |arg, webhook, session| webhook.reinvocation_policy = choice(arg, &["Never", "IfNeeded"], session),
    ),
    ArgRow::repeatable(
        "match_condition",
        "`match_condition(name = \"…\", expression = \"…\")`: calls the webhook only if the CEL expression is true.",
        |arg, webhook, session| {
            webhook
                .match_conditions
                .extend(selector::read_condition(arg, session))
        },
    ),
    ArgRow::once(
        "namespace_selector",
        "`namespace_selector(match_labels = { \"a\": \"b\" }, match_expression(key = \"…\", operator = \"In\", values = [\"…\"]))`: restricts the webhook to objects in matching namespaces.",
        |arg, webhook, session| webhook.namespace_selector = selector::read_selector(arg, session),
    ),
    ArgRow::once(
        "object_selector",
        "Restricts the webhook to objects with matching labels; same form as `namespace_selector`.",
        |arg, webhook, session| webhook.object_selector = selector::read_selector(arg, session),
    ),
    ArgRow::repeatable(
        "allow",
        "Codes of warnings and notes to leave out in the whole function: `allow(RB0702, reason = \"…\")`.",
        |arg, _, session| read_allow(arg, session.scope, session),
    ),
];

const OPERATIONS: &[&str] = &["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];
const SCOPES: &[&str] = &["Namespaced", "Cluster", "*"];

/// Arguments of controller-gen that have another name here or don't exist, with help.
const FOREIGN: &[(&str, &str)] = &[
    ("verbs", "write `operations = …`"),
    (
        "patch",
        "write `namespace_selector(…)`, `object_selector(…)` or `match_condition(…)`",
    ),
    (
        "webhook_versions",
        "remove it: webhooks are always written as `admissionregistration.k8s.io/v1`",
    ),
    (
        "webhookVersions",
        "remove it: webhooks are always written as `admissionregistration.k8s.io/v1`",
    ),
    (
        "rules",
        "write `groups`, `versions`, `resources` and `operations`; use a second `#[webhook(…)]` for a second rule",
    ),
];

/// Returns the `#[webhook(…)]` attributes, including paths such as `#[rbuilder::webhook(…)]`.
pub fn webhook_attributes<'t, 'a>(attrs: &'t [Attribute<'a>]) -> impl Iterator<Item = &'t Attribute<'a>> {
    attrs.iter().filter(|attr| attr.last_segment() == WEBHOOK)
}

/// Parses a `#[webhook(…)]` attribute.
pub fn parse_webhook_attribute(attr: &Attribute<'_>, session: &mut Session) -> Option<Webhook> {
    let args = args::check_args(attr, session);
    read(args, attr.span(), session)
}

/// Parses the arguments of `#[webhook(…)]`. Returns `None` after errors, which are added to the
/// session. Errors about the marker as a whole are reported at the macro call.
pub fn parse_webhook(arguments: Cursor<'_>, session: &mut Session) -> Option<Webhook> {
    let args = args::parse_args(arguments, session);
    read(&args, Span::OUTSIDE, session)
}

/// Reports a marker on an item that isn't a function.
pub fn misplaced_webhook(span: Span, session: &mut Session) {
    session.error_help(
        span,
        "expected `webhook` on the function that handles the request",
        "move it to the handler",
    );
}

fn read(args: &[Arg<'_>], span: Span, session: &mut Session) -> Option<Webhook> {
    let errors = session.diagnostics.error_count();
    let mut draft = Draft::new(Webhook::at(span));
    draft.read(WEBHOOK, args, WEBHOOK_ARGS, FOREIGN, session);
    let webhook = draft.value;
    // Check arguments against each other only if each of them is valid, so that one mistake causes
    // one error.
    if session.diagnostics.error_count() == errors {
        check::check_webhook(&webhook, args, session);
    }
    (session.diagnostics.error_count() == errors).then_some(webhook)
}

fn choice(arg: &Arg, known: &[&'static str], session: &mut Session) -> Option<&'static str> {
    // As in kubebuilder's markers, case doesn't matter.
    let text = arg.text(session)?;
    chosen(&text, arg, known, session)
}

fn choices(arg: &Arg, known: &[&'static str], session: &mut Session) -> Vec<&'static str> {
    let words = read_words(arg, session).unwrap_or_default();
    words
        .iter()
        .filter_map(|word| chosen(word, arg, known, session))
        .collect()
}

fn chosen(text: &str, arg: &Arg, known: &[&'static str], session: &mut Session) -> Option<&'static str> {
    let found = known.iter().copied().find(|word| word.eq_ignore_ascii_case(text));
    if found.is_none() {
        let help = suggest::describe_candidates(text, known.iter().copied());
        session.error_help(
            arg.value_span(),
            format!("unknown value `{text}` of `{}`", arg.name),
            help,
        );
    }
    found
}
