//! Generates roles from `#[rbac(…)]` markers.
//!
//! `rbuilder-syntax` parses and checks each marker on its own. This module combines the markers of
//! all packages into one ClusterRole, and a Role for each namespace named in a marker.

mod check;
mod derived;
mod draft;
mod fit;
mod marker;
mod normalize;

use std::borrow::Cow;
use std::collections::BTreeMap;

use rbuilder_syntax::{RbacRule, Session, parse_rbac};
use serde_json::{Map, Value, json};

use crate::package::Package;
use crate::permissions;
use crate::report::Report;
use crate::{Options, OutputFile, yaml};

pub use draft::{DraftedCall, DraftedMarker, DraftedRole, NeededPermission, Unfollowed, draft_role};
pub use normalize::{PolicyRule, normalize, rule_of};

/// The role that a rule belongs to. Sorted as in the output: ClusterRoles first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RoleKey<'a> {
    namespace: Option<&'a str>,
    name: Cow<'a, str>,
}

impl<'a> RoleKey<'a> {
    fn of(rule: &'a RbacRule, options: &'a Options) -> Self {
        let namespace = rule.namespace.as_deref();
        let is_elsewhere = |namespace: &&str| {
            let own = options.own_namespaces.as_deref();
            own.is_some_and(|own| own.iter().all(|own| own != namespace))
        };
        let name = match (&rule.role_name, namespace.filter(is_elsewhere)) {
            (Some(name), _) => Cow::Borrowed(&**name),
            (None, Some(namespace)) => Cow::Owned(format!("{}-{namespace}", options.role_name)),
            (None, None) => Cow::Borrowed(&*options.role_name),
        };
        RoleKey { namespace, name }
    }
}

/// Validates the arguments of a marker before it's written into source.
///
/// # Errors
///
/// Returns the first error that the marker would cause.
pub fn check_marker(arguments: &str) -> Result<(), String> {
    let source = rbuilder_reader::token::lex(arguments).map_err(|error| error.message)?;
    let mut session = Session::default();
    parse_rbac(source.cursor(), &mut session);
    let found = session.diagnostics.into_vec();
    match found.into_iter().find(|found| found.is_error()) {
        Some(error) => Err(error.message),
        None => Ok(()),
    }
}

pub(crate) fn roles_file(package: &Package, options: &Options, report: &mut Report) -> Option<OutputFile> {
    check::check_rules(package, report);
    // Without rules, there's nothing to compare the calls with.
    let needs = match package.rules.is_empty() {
        true => permissions::Needs::default(),
        false => permissions::find_needs(package),
    };
    fit::compare(package, &needs, report);
    let derived = derived::derive_rules(package, &needs, report);
    let mut roles: BTreeMap<RoleKey<'_>, Vec<&RbacRule>> = BTreeMap::new();
    let written = package.rules.iter().map(|placed| &placed.rule);
    for rule in written.filter(|rule| !rule.derived).chain(&derived) {
        roles.entry(RoleKey::of(rule, options)).or_default().push(rule);
    }
    let documents: Vec<String> = roles
        .iter()
        .map(|(key, rules)| format!("---\n{}", yaml::to_string(&role(key, rules))))
        .collect();
    (!documents.is_empty()).then(|| OutputFile {
        path: "rbac/role.yaml".into(),
        text: documents.concat(),
    })
}

fn role(key: &RoleKey<'_>, rules: &[&RbacRule]) -> Value {
    let mut metadata = json!({ "name": key.name });
    if let Some(namespace) = key.namespace {
        metadata["namespace"] = namespace.into();
    }
    let rules: Vec<Value> = normalize(rules.iter().copied()).iter().map(policy_rule).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if key.namespace.is_some() { "Role" } else { "ClusterRole" },
        "metadata": metadata,
        "rules": rules,
    })
}

fn policy_rule(rule: &PolicyRule) -> Value {
    let lists = [
        ("apiGroups", &rule.groups),
        ("nonResourceURLs", &rule.urls),
        ("resourceNames", &rule.resource_names),
        ("resources", &rule.resources),
        ("verbs", &rule.verbs),
    ];
    let written = lists.into_iter().filter(|(_, list)| !list.is_empty());
    Value::Object(
        written
            .map(|(key, list)| (key.to_owned(), json!(list)))
            .collect::<Map<_, _>>(),
    )
}
