//! `#[rbac(…)]`: the permissions a function needs, beside the function.

use crate::args::{self, Arg};
use crate::attribute::Attribute;
use crate::token::Cursor;
use crate::{RbacRule, Session, Span, SpanId, suggest};

/// The name of the attribute; its last segment where it is written with a path.
pub const RBAC: &str = "rbac";

/// One argument of `#[rbac(…)]`: a row of the reference page and what "did you mean" chooses from.
pub struct RbacArg {
    /// Its name.
    pub name: &'static str,
    /// What it says, one line.
    pub doc: &'static str,
    read: fn(&Arg, &mut RbacRule, &mut Session),
}

/// Every argument of `#[rbac(…)]`.
pub const RBAC_ARGS: &[RbacArg] = &[
    RbacArg {
        name: "groups",
        doc: "API groups of the resources; `\"\"` is the core group.",
        read: |arg, rule, session| rule.groups = words(arg, session),
    },
    RbacArg {
        name: "resources",
        doc: "Resources by plural, `pods/status` for a subresource.",
        read: |arg, rule, session| rule.resources = words(arg, session),
    },
    RbacArg {
        name: "resource_names",
        doc: "Names of single objects; all objects without it.",
        read: |arg, rule, session| rule.resource_names = words(arg, session),
    },
    RbacArg {
        name: "verbs",
        doc: "What may be done: `get;list;watch;create;update;patch;delete;…`, or `*`.",
        read: |arg, rule, session| rule.verbs = words(arg, session),
    },
    RbacArg {
        name: "urls",
        doc: "URL paths outside the resources, such as `/metrics`; only in a ClusterRole.",
        read: |arg, rule, session| rule.urls = words(arg, session),
    },
    RbacArg {
        name: "namespace",
        doc: "Namespace of the Role to put the rule in; without it the rule goes into the ClusterRole.",
        read: |arg, rule, session| rule.namespace = arg.text(session),
    },
    RbacArg {
        name: "role_name",
        doc: "Name of the role, in place of the project's.",
        read: |arg, rule, session| rule.role_name = arg.text(session),
    },
];

/// The verbs Kubernetes knows. RBAC itself takes any word; another one is nearly always a mistake.
const VERBS: &[&str] = &[
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

fn rule(args: &[Arg<'_>], span: SpanId, session: &mut Session) -> Option<RbacRule> {
    let mut rule = RbacRule {
        span,
        ..RbacRule::default()
    };
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
        (row.read)(arg, &mut rule, session);
    }
    if session.diagnostics.error_count() == errors {
        check(&rule, args, session);
    }
    (session.diagnostics.error_count() == errors).then_some(rule)
}

/// A list as `"a;b"` or `["a", "b"]`.
fn words(arg: &Arg, session: &mut Session) -> Vec<String> {
    let texts = arg.texts(session).unwrap_or_default();
    texts
        .iter()
        .flat_map(|text| text.split(';'))
        .map(|word| word.trim().to_owned())
        .collect()
}

fn check(rule: &RbacRule, args: &[Arg<'_>], session: &mut Session) {
    let at = |name: &str| {
        args.iter()
            .find(|arg| arg.name == name)
            .map_or(rule.span, Arg::value_span)
    };
    if rule.verbs.iter().all(String::is_empty) {
        let help = "add `verbs = \"get;list;watch\"`";
        session.error_help(at("verbs"), "the rule has no verbs, so it allows nothing", help);
    }
    for verb in rule
        .verbs
        .iter()
        .filter(|verb| !verb.is_empty() && !VERBS.contains(&verb.as_str()))
    {
        let help = suggest::help(verb, VERBS.iter().copied());
        session.error_help(at("verbs"), format!("unknown verb `{verb}`"), help);
    }
    if rule.urls.is_empty() {
        check_resources(rule, at("resources"), at("groups"), session);
    } else {
        check_urls(rule, at("urls"), session);
    }
    if rule
        .verbs
        .iter()
        .any(|verb| verb == "create" || verb == "deletecollection")
        && !rule.resource_names.is_empty()
        && !rule.resources.iter().any(|resource| resource.contains('/'))
    {
        session.error_help(
            at("resource_names"),
            "`create` and `deletecollection` cannot be limited by name: the request has none",
            "put these verbs into a rule of their own without `resource_names`",
        );
    }
}

fn check_resources(rule: &RbacRule, resources: SpanId, groups: SpanId, session: &mut Session) {
    if rule.resources.iter().all(String::is_empty) {
        let help = "add `resources = \"…\"` with plurals, or `urls = \"…\"`";
        session.error_help(resources, "the rule names no resources", help);
    } else if rule.groups.is_empty() {
        let help = "add `groups = \"…\"`; the core group (pods, services, events) is `groups = \"\"`";
        session.error_help(groups, "the rule names no API group", help);
    }
    for resource in rule
        .resources
        .iter()
        .filter(|resource| resource.chars().any(char::is_uppercase))
    {
        let help = "resources are named by their plural in lower case, as in `deployments`";
        session.error_help(
            resources,
            format!("`{resource}` is not the name of a resource"),
            help,
        );
    }
}

fn check_urls(rule: &RbacRule, urls: SpanId, session: &mut Session) {
    if rule.namespace.is_some() {
        let help = "remove `namespace`: only a ClusterRole can allow URLs";
        session.error_help(urls, "`urls` in a Role of one namespace have no effect", help);
    }
    if !rule.resources.is_empty() || !rule.groups.is_empty() || !rule.resource_names.is_empty() {
        let help = "write two `#[rbac(…)]`, one for the resources and one for the URLs";
        session.error_help(
            urls,
            "the API server refuses a rule with both resources and URLs",
            help,
        );
    }
    for url in rule
        .urls
        .iter()
        .filter(|url| !url.starts_with('/') && *url != "*")
    {
        session.error_help(
            urls,
            format!("`{url}` is not a URL path"),
            format!("write `/{url}`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tokens: &str, expected: Result<&str, &str>) {
        let mut session = Session::default();
        let source = crate::token::lex(tokens).expect("tokens");
        let rule = parse_rbac(source.cursor(), &mut session);
        let complaints: Vec<_> = session
            .diagnostics
            .into_vec()
            .iter()
            .map(crate::Diagnostic::text)
            .collect();
        match expected {
            Ok(verbs) => assert_eq!(
                rule.map(|rule| rule.verbs.join(",")).as_deref(),
                Some(verbs),
                "{complaints:?}"
            ),
            Err(text) => {
                assert_eq!(complaints, [text], "{tokens}");
                assert_eq!(rule, None);
            }
        }
    }

    #[test]
    fn rules() {
        check(
            r#"groups = "apps", resources = "deployments", verbs = "get;list""#,
            Ok("get,list"),
        );
        check(
            r#"groups = ["apps", "batch"], resources = ["jobs"], verbs = ["get", "*"]"#,
            Ok("get,*"),
        );
        check(
            r#"groups = "", resources = "events", verbs = "create;patch", namespace = "n""#,
            Ok("create,patch"),
        );
        check(r#"urls = "/metrics", verbs = "get""#, Ok("get"));
    }

    #[test]
    fn mistakes() {
        check(
            r#"groups = "apps", resources = "deployments", verb = "get""#,
            Err("unknown rbac argument `verb`\nhelp: did you mean `verbs`?"),
        );
        check(
            r#"groups = "apps", resources = "deployments", verbs = "get;wacth""#,
            Err("unknown verb `wacth`\nhelp: did you mean `watch`?"),
        );
        check(
            r#"groups = "apps", resources = "deployments""#,
            Err("the rule has no verbs, so it allows nothing\nhelp: add `verbs = \"get;list;watch\"`"),
        );
        check(
            r#"resources = "pods", verbs = "get""#,
            Err(
                "the rule names no API group\nhelp: add `groups = \"…\"`; the core group (pods, services, events) is `groups = \"\"`",
            ),
        );
        check(
            r#"urls = "/metrics", verbs = "get", namespace = "n""#,
            Err(
                "`urls` in a Role of one namespace have no effect\nhelp: remove `namespace`: only a ClusterRole can allow URLs",
            ),
        );
        check(
            r#"groups = "", resources = "pods", verbs = "get", verbs = "list""#,
            Err("`verbs` is written twice"),
        );
    }
}
