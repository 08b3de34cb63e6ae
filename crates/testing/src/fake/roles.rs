//! Roles: the requests that the operator's client may make, and those that it made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::{ResourceId, string_at};
use super::request::{Request, Verb, write_target};
use crate::manifests::{read_documents, service_account};

/// Scaffolds use the namespace `system`, which kustomize replaces.
const PLACEHOLDER: &str = "system";

/// The default namespace of clients, treated as the operator's own.
pub(super) const OWN_NAMESPACE: &str = "default";

/// A permission required by a client's request, in RBAC terms.
///
/// Formatted as a single line, e.g. `update memos.example.com/status default/note`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Permission {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The subresource, such as `status`.
    pub subresource: Option<String>,
    /// The namespace; `None` for cluster-scoped kinds and for requests across all namespaces.
    pub namespace: Option<String>,
    /// The name of the object; `None` for lists, watches, collections and creates.
    pub name: Option<String>,
}

impl Permission {
    pub(super) fn of(request: &Request) -> Self {
        // RBAC treats a list or watch of a single object as a request by name, e.g. with
        // `fieldSelector=metadata.name=settings`.
        let selected = || {
            let selector = request.parameter("fieldSelector");
            let name = selector.strip_prefix("metadata.name=")?;
            Some(name.trim_start_matches('=').to_owned()).filter(|name| !name.contains(','))
        };
        // For requests about a namespace, the authorizer sees its name as the namespace as well.
        let is_namespace = request.group.is_empty() && request.resource == "namespaces";
        Self {
            verb: request.verb,
            group: request.group.clone(),
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            namespace: match is_namespace {
                true => request.name.clone(),
                false => request.namespace.clone(),
            },
            name: match request.verb {
                Verb::List | Verb::Watch | Verb::DeleteCollection => selected(),
                _ => request.name.clone(),
            },
        }
    }

    /// Returns the permission that an access review asks about, or `None` for a non-resource URL.
    fn of_review(attributes: &Value) -> Option<Self> {
        let text = |name: &str| Some(attributes[name].as_str()?.to_owned()).filter(|text| !text.is_empty());
        Some(Self {
            verb: Verb::parse(&text("verb")?)?,
            group: text("group").unwrap_or_default(),
            resource: text("resource")?,
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        })
    }

    // Every cluster permits self reviews through the role `system:basic-user`.
    fn is_basic(&self) -> bool {
        let is_review_group = matches!(&*self.group, "authentication.k8s.io" | "authorization.k8s.io");
        self.verb == Verb::Create && is_review_group && self.resource.starts_with("selfsubject")
    }

    /// The marker that grants this permission.
    #[must_use]
    pub fn marker(&self) -> String {
        format!(
            "#[rbac(groups = \"{}\", resources = \"{}\", verbs = [\"{}\"])]",
            self.group,
            self.resource(),
            self.verb
        )
    }

    fn resource(&self) -> String {
        match &self.subresource {
            None => self.resource.clone(),
            Some(subresource) => format!("{}/{subresource}", self.resource),
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permission {
            subresource,
            namespace,
            name,
            ..
        } = self;
        let id = ResourceId::new(&*self.group, &*self.resource);
        write_target(f, self.verb, &id, subresource, namespace, name)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    /// E.g. `system:serviceaccount:default:controller-manager`.
    user: String,
    /// `None` permits everything.
    grants: Option<Vec<Grant>>,
    pub(super) asked: BTreeSet<Permission>,
    /// Whether missing permissions were already reported.
    pub(super) is_reported: bool,
}

#[derive(Clone, Debug)]
struct Grant {
    /// Kind and name of the role, for messages.
    role: String,
    /// `None` applies to all namespaces.
    namespace: Option<String>,
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
}

impl Roles {
    /// Reads roles and bindings from the manifests in a directory.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let documents: Vec<Value> = read_documents(path)?
            .into_iter()
            .map(|(_, document)| document)
            .collect();
        let is = |document: &&Value, kinds: [&str; 2]| kinds.iter().any(|kind| document["kind"] == **kind);
        let roles: BTreeMap<(&str, &str), &Value> = documents
            .iter()
            .filter(|document| is(document, ["ClusterRole", "Role"]))
            .map(|role| {
                (
                    (string_at(role, "/kind"), string_at(role, "/metadata/name")),
                    role,
                )
            })
            .collect();
        if roles.is_empty() {
            let message = format!(
                "no Role or ClusterRole in {}: run `rbuilder manifests`",
                path.display()
            );
            return Err(io::Error::other(message));
        }
        let bindings: Vec<&Value> = documents
            .iter()
            .filter(|document| service_account(document).is_some())
            .collect();
        let mut grants = Vec::new();
        for binding in &bindings {
            let key = (
                string_at(binding, "/roleRef/kind"),
                string_at(binding, "/roleRef/name"),
            );
            let Some(role) = roles.get(&key) else {
                let (binding, (kind, name)) = (string_at(binding, "/metadata/name"), key);
                return Err(io::Error::other(format!(
                    "{binding} binds the {kind} {name}, which is not in {}",
                    path.display()
                )));
            };
            grants.extend(grants_of(
                role,
                (binding["kind"] == "RoleBinding").then_some(*binding),
            ));
        }
        // Without any bindings, this is probably a selection of roles. Grant them all.
        if bindings.is_empty() {
            for role in roles.values() {
                grants.extend(grants_of(role, (role["kind"] == "Role").then_some(*role)));
            }
        }
        let account = bindings.iter().find_map(|binding| service_account(binding));
        let account = account.unwrap_or("controller-manager");
        Ok(Self {
            user: format!("system:serviceaccount:{OWN_NAMESPACE}:{account}"),
            grants: Some(grants),
            asked: BTreeSet::new(),
            is_reported: false,
        })
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.grants.as_ref().map(|_| self.user.as_str())
    }

    fn permits(&self, permission: &Permission) -> bool {
        let Some(grants) = &self.grants else { return true };
        grants.iter().any(|grant| grant.permits(permission))
    }

    /// Records a required permission, and fails like the API server if it isn't granted.
    pub(super) fn check(&mut self, permission: Permission) -> Result<(), Failure> {
        if permission.is_basic() {
            return Ok(());
        }
        let is_permitted = self.permits(&permission);
        let failure = (!is_permitted).then(|| self.refuse(&permission));
        self.asked.insert(permission);
        failure.map_or(Ok(()), Err)
    }

    fn refuse(&self, permission: &Permission) -> Failure {
        let place = match &permission.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let why = format!(
            "User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
            self.user,
            permission.verb,
            permission.resource(),
            permission.group,
        );
        let id = ResourceId::new(&*permission.group, &*permission.resource);
        Failure::denied(&id, permission.name.as_deref().unwrap_or_default(), &why)
    }

    pub(super) fn review(&self, spec: &Value) -> Value {
        let permission = Permission::of_review(&spec["resourceAttributes"]);
        json!({ "allowed": permission.is_none_or(|permission| self.permits(&permission)) })
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &Permission> {
        self.asked.iter().filter(|permission| !self.permits(permission))
    }

    /// Describes missing permissions along with the markers that grant them. `None` if there are
    /// none.
    pub(super) fn describe_missing(&self) -> Option<String> {
        let lines: Vec<String> = self
            .missing()
            .map(|permission| format!("\n  {permission}\n    {}", permission.marker()))
            .collect();
        let said = "the roles lack permissions that the operator used:";
        (!lines.is_empty()).then(|| format!("{said}{}", lines.concat()))
    }

    pub(super) fn unused(&self) -> Vec<String> {
        let grants = self.grants.iter().flatten();
        let mut unused: Vec<String> = grants.flat_map(|grant| grant.unused(&self.asked)).collect();
        unused.dedup();
        unused
    }
}

impl Grant {
    fn permits(&self, permission: &Permission) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let any_of = permission
            .subresource
            .as_ref()
            .map(|subresource| format!("*/{subresource}"));
        // Rules with `resourceNames` never match requests without a name, e.g. `create`.
        let is_named = match &permission.name {
            _ if self.names.is_empty() => true,
            Some(name) => self.names.contains(name),
            None => false,
        };
        is_named
            && (self.namespace.is_none() || self.namespace == permission.namespace)
            && has(&self.verbs, permission.verb.as_str())
            && has(&self.groups, &permission.group)
            && (has(&self.resources, &permission.resource())
                || any_of.is_some_and(|any| self.resources.contains(&any)))
    }

    // Split the rule into individual permissions, since whole rules are rarely unused.
    fn unused(&self, asked: &BTreeSet<Permission>) -> Vec<String> {
        let mut unused = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let single = Grant {
                        role: self.role.clone(),
                        namespace: self.namespace.clone(),
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: self.names.clone(),
                    };
                    if !asked.iter().any(|permission| single.permits(permission)) {
                        let resource = match group.as_str() {
                            "" => resource.clone(),
                            group => format!("{resource} in {group}"),
                        };
                        unused.push(format!("{}: {verb} {resource}", self.role));
                    }
                }
            }
        }
        unused
    }
}

// `place` is `None` for ClusterRoleBindings, which have no namespace.
fn grants_of(role: &Value, place: Option<&Value>) -> Vec<Grant> {
    let namespace = place.map(|place| match string_at(place, "/metadata/namespace") {
        "" | PLACEHOLDER => OWN_NAMESPACE.to_owned(),
        namespace => namespace.to_owned(),
    });
    let texts = |value: &Value| {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
    };
    let rules = role["rules"].as_array().into_iter().flatten();
    let rules = rules.map(|rule| Grant {
        role: format!(
            "{} {}",
            string_at(role, "/kind"),
            string_at(role, "/metadata/name")
        ),
        namespace: namespace.clone(),
        verbs: texts(&rule["verbs"]),
        groups: texts(&rule["apiGroups"]),
        resources: texts(&rule["resources"]),
        names: texts(&rule["resourceNames"]),
    });
    rules.collect()
}
