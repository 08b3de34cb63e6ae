//! Rights to give rights: nobody may grant permissions that they lack.
//!
//! A client that writes roles needs their rules, or the verb `escalate` on the role. A client that
//! writes bindings needs the rules of the bound role, or the verb `bind` on it. Follows
//! `pkg/registry/rbac` of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_judge::go;
use rbuilder_kubernetes::rbac::{Permission, Rule, Target};
use serde_json::Value;

use super::failure::Failure;
use super::identity::groups_of;
use super::kinds::{ResourceId, string_at};
use super::roles::{Grant, Roles};
use super::store::State;
use super::write::Writer;

pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// Rights that the operator tried to grant although it lacks them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Escalation {
    /// E.g. `create roles.rbac.authorization.k8s.io default/reader`.
    request: String,
    /// The resource and the verb that would permit it.
    resource: &'static str,
    verb: &'static str,
    rights: Vec<String>,
}

impl Escalation {
    /// The rights, and the marker that permits to grant any.
    pub(super) fn describe(&self) -> String {
        let Self {
            request,
            resource,
            verb,
            rights,
        } = self;
        let rights: Vec<String> = rights.iter().map(|rule| format!("\n    {rule}")).collect();
        format!(
            "\n  {request} grants rights that the operator itself lacks:{}\n    \
             #[rbac(groups = \"{RBAC}\", resources = \"{resource}\", verbs = [\"{verb}\"])]",
            rights.concat()
        )
    }
}

impl State {
    /// Fails if the operator grants rights that it doesn't have.
    pub(super) fn check_escalation(
        &mut self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<(), Failure> {
        let definition = writer.definition;
        if definition.id.group != RBAC || definition.custom || writer.request.by_admin {
            return Ok(());
        }
        if old.is_some_and(|old| changes_only_ownership(old, object)) {
            return Ok(());
        }
        if let Some(user) = &writer.request.user {
            return self.check_rights(&mut self.roles_of(user), writer, object);
        }
        let mut roles = std::mem::take(&mut self.roles);
        let checked = self.check_rights(&mut roles, writer, object);
        self.roles = roles;
        checked
    }

    fn check_rights(&self, roles: &mut Roles, writer: Writer<'_>, object: &Value) -> Result<(), Failure> {
        let definition = writer.definition;
        let Some(user) = roles.user().map(str::to_owned) else {
            return Ok(());
        };
        let namespace = writer.request.namespace.as_deref();
        let name = string_at(object, "/metadata/name");
        let is_binding = definition.kind.ends_with("Binding");
        let kind = match is_binding {
            true => string_at(object, "/roleRef/kind"),
            false => &definition.kind,
        };
        let resource = if kind == "Role" { "roles" } else { "clusterroles" };
        let (verb, role) = match is_binding {
            true => ("bind", Some(string_at(object, "/roleRef/name"))),
            // A request to create a role has no name.
            false => ("escalate", writer.request.name.as_deref()),
        };
        if roles.may_raise(verb, resource, namespace, role) {
            return Ok(());
        }
        let rules = match is_binding {
            true => self.rules_of(writer, resource, string_at(object, "/roleRef/name"))?,
            false => Rule::list(object),
        };
        let missing = missing_rights(&rules, roles.grants_in(namespace));
        if missing.is_empty() {
            return Ok(());
        }
        let groups: Vec<String> = groups_of(&user).iter().map(|group| go::quote(group)).collect();
        let why = format!(
            "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            go::quote(&user),
            groups.join(" "),
            missing.join("\n")
        );
        let mut request = writer.request.clone();
        request.name = Some(name.to_owned());
        roles.escalations.insert(Escalation {
            request: request.to_string(),
            resource,
            verb,
            rights: missing,
        });
        Err(Failure::forbidden(writer.id(), name, &why, None))
    }

    fn rules_of(&self, writer: Writer<'_>, resource: &str, name: &str) -> Result<Vec<Rule>, Failure> {
        let namespace = writer.request.namespace.as_deref();
        let namespace = namespace.filter(|_| resource == "roles").unwrap_or_default();
        let role = self.get(
            &ResourceId::new(RBAC, resource),
            &(namespace.to_owned(), name.to_owned()),
        );
        // The message names the resource of the request.
        let role = role.ok_or_else(|| Failure::not_found(writer.id(), name))?;
        Ok(Rule::list(role))
    }
}

/// The garbage collector and owners may always change these.
fn changes_only_ownership(old: &Value, new: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for name in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
                metadata.remove(name);
            }
        }
        object
    };
    rest(old) == rest(new)
}

/// Returns the rights that no grant covers, in the server's format.
fn missing_rights<'g>(rules: &[Rule], grants: impl Iterator<Item = &'g Grant> + Clone) -> Vec<String> {
    let mut missing: BTreeMap<Target, Vec<String>> = BTreeMap::new();
    for Permission { target, verb, .. } in rules.iter().flat_map(|rule| rule.permissions(None)) {
        if !grants.clone().any(|grant| grant.rule.grants(&verb, &target)) {
            missing.entry(target).or_default().push(verb);
        }
    }
    let shown: BTreeSet<String> = missing
        .iter()
        .flat_map(|(target, verbs)| show(target, verbs))
        .collect();
    shown.into_iter().collect()
}

/// Formats rights like Go's `CompactString`. Verbs of a path aren't combined.
fn show(target: &Target, verbs: &[String]) -> Vec<String> {
    let list = |items: &[&str]| {
        let items: Vec<String> = items.iter().map(|item| go::quote(item)).collect();
        format!("[{}]", items.join(" "))
    };
    let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    match target {
        Target::Resource {
            group,
            resource,
            name,
        } => {
            let names = name
                .as_ref()
                .map(|name| format!(", ResourceNames:{}", list(&[name])));
            vec![format!(
                "{{APIGroups:{}, Resources:{}{}, Verbs:{}}}",
                list(&[group]),
                list(&[resource]),
                names.unwrap_or_default(),
                list(&verbs)
            )]
        }
        Target::Url(path) => verbs
            .iter()
            .map(|verb| format!("{{NonResourceURLs:{}, Verbs:{}}}", list(&[path]), list(&[verb])))
            .collect(),
    }
}
