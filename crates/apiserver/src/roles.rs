//! Roles: the requests that the operator's client may make, and those that it made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use rbuilder_kubernetes::names;
use rbuilder_kubernetes::rbac::{Permission as Access, Rule, Target, service_account};
use rbuilder_kubernetes::selector::FieldSelector;
use serde_json::{Value, json};

use super::escalation::{Escalation, RBAC};
use super::failure::Failure;
use super::identity::{SERVICE_ACCOUNT, User};
use super::kinds::{ResourceId, string_at};
use super::request::{Request, Verb, write_target};
use super::store::State;

/// Scaffolds use the namespace `system`, which kustomize replaces.
const PLACEHOLDER: &str = "system";

/// The default namespace of clients, treated as the operator's own.
pub const OWN_NAMESPACE: &str = "default";

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
            let selector = FieldSelector::parse(request.parameter("fieldSelector")).ok()?;
            let name = selector
                .required("metadata.name")
                .filter(|name| !name.is_empty())?;
            names::check_path_segment(name)
                .is_empty()
                .then(|| name.to_owned())
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
                Verb::List | Verb::Watch => selected(),
                _ => request.name.clone(),
            },
        }
    }

    fn access(&self) -> Access {
        Access {
            namespace: self.namespace.clone(),
            target: Target::Resource {
                group: self.group.clone(),
                resource: self.resource(),
                name: self.name.clone(),
            },
            verb: self.verb.as_str().to_owned(),
        }
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
        with_subresource(&self.resource, self.subresource.as_deref())
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

/// Reads the attributes of an access review.
fn access_of_review(attributes: &Value) -> Access {
    let text = |name: &str| attributes[name].as_str().filter(|text| !text.is_empty());
    let resource = text("resource").unwrap_or_default();
    Access {
        namespace: text("namespace").map(str::to_owned),
        target: Target::Resource {
            group: text("group").unwrap_or_default().to_owned(),
            resource: with_subresource(resource, text("subresource")),
            name: text("name").map(str::to_owned),
        },
        verb: text("verb").unwrap_or_default().to_owned(),
    }
}

fn with_subresource(resource: &str, subresource: Option<&str>) -> String {
    match subresource {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource.to_owned(),
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    /// E.g. `system:serviceaccount:default:controller-manager`.
    user: String,
    /// `None` permits everything.
    grants: Option<Vec<Grant>>,
    pub(super) asked: BTreeSet<Permission>,
    /// Refused attempts to grant rights to others.
    pub(super) escalations: BTreeSet<Escalation>,
    /// Resources with the verbs `bind` and `escalate` that were needed.
    raised: BTreeSet<(String, String)>,
    /// Whether missing permissions were already reported.
    pub(super) is_reported: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// Kind and name of the role, for messages.
    role: String,
    /// `None` applies to all namespaces.
    namespace: Option<String>,
    pub(super) rule: Rule,
}

/// What `system:basic-user`, `system:discovery` and `system:public-info-viewer` grant to everybody.
static BASIC: LazyLock<Vec<Grant>> = LazyLock::new(|| {
    let rules = json!([
        {
            "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        },
        { "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"] },
        {
            "verbs": ["get"],
            "nonResourceURLs": [
                "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
                "/version", "/version/",
            ],
        },
    ]);
    grants_of(
        &json!({ "kind": "ClusterRole", "metadata": { "name": "system:basic-user" }, "rules": rules }),
        None,
    )
});

impl Roles {
    /// Reads roles and bindings from manifests. `origin` is their path, for messages.
    pub(super) fn read(documents: &[Value], origin: &str) -> Result<Self, String> {
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
            return Err(format!(
                "no Role or ClusterRole in {origin}: run `rbuilder manifests`"
            ));
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
                return Err(format!(
                    "{binding} binds the {kind} {name}, which is not in {origin}"
                ));
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
            ..Self::default()
        })
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.grants.as_ref().map(|_| self.user.as_str())
    }

    fn permits(&self, permission: &Permission) -> bool {
        self.grants.is_none() || self.allow(&permission.access())
    }

    /// Unlike a [`Permission`], it may have a verb of which no request consists.
    pub(super) fn allow(&self, access: &Access) -> bool {
        self.grants_in(access.namespace.as_deref())
            .any(|grant| grant.rule.grants(&access.verb, &access.target))
    }

    /// The grants that apply in a namespace, or in the whole cluster without one.
    pub(super) fn grants_in<'r>(
        &'r self,
        namespace: Option<&'r str>,
    ) -> impl Iterator<Item = &'r Grant> + Clone {
        let grants = self.grants.iter().flatten().chain(BASIC.iter());
        grants.filter(move |grant| grant.namespace.is_none() || grant.namespace.as_deref() == namespace)
    }

    /// Whether the operator may write any role, with the verb `escalate`, or bind one, with `bind`.
    pub(super) fn may_raise(
        &mut self,
        verb: &str,
        resource: &str,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> bool {
        let allowed = self.allow(&Access {
            namespace: namespace.map(str::to_owned),
            target: Target::Resource {
                group: RBAC.to_owned(),
                resource: resource.to_owned(),
                name: name.map(str::to_owned),
            },
            verb: verb.to_owned(),
        });
        if allowed {
            self.raised.insert((verb.to_owned(), resource.to_owned()));
        }
        allowed
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
        let attributes = &spec["resourceAttributes"];
        // Paths that aren't resources aren't restricted here.
        json!({ "allowed": attributes.is_null() || self.allow(&access_of_review(attributes)) })
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
        let escalations = self.escalations.iter().map(Escalation::describe);
        let lines: Vec<String> = lines.into_iter().chain(escalations).collect();
        let said = "the roles lack permissions that the operator used:";
        (!lines.is_empty()).then(|| format!("{said}{}", lines.concat()))
    }

    pub(super) fn unused(&self) -> Vec<String> {
        let grants = self.grants.iter().flatten();
        let mut unused: Vec<String> = grants.flat_map(|grant| self.unused_of(grant)).collect();
        unused.dedup();
        unused
    }

    // Split the rule into individual permissions, since whole rules are rarely unused.
    fn unused_of(&self, grant: &Grant) -> Vec<String> {
        let Grant {
            role,
            namespace,
            rule,
        } = grant;
        let in_place = |permission: &&Permission| namespace.is_none() || *namespace == permission.namespace;
        let mut unused = Vec::new();
        for group in &rule.groups {
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    let single = Rule {
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        verbs: vec![verb.clone()],
                        ..rule.clone()
                    };
                    let is_needed = |permission: &Permission| {
                        let access = permission.access();
                        single.grants(&access.verb, &access.target)
                    };
                    let mut asked = self.asked.iter().filter(in_place);
                    let is_raised = group == RBAC && self.raised.contains(&(verb.clone(), resource.clone()));
                    if !is_raised && !asked.any(is_needed) {
                        let resource = match group.as_str() {
                            "" => resource.clone(),
                            group => format!("{resource} in {group}"),
                        };
                        unused.push(format!("{role}: {verb} {resource}"));
                    }
                }
            }
        }
        unused
    }
}

impl State {
    /// What the roles and bindings in the store grant to a user.
    pub(super) fn roles_of(&self, user: &User) -> Roles {
        let mut grants = Vec::new();
        for plural in ["clusterrolebindings", "rolebindings"] {
            for ((namespace, _), binding) in self.objects(&ResourceId::new(RBAC, plural)) {
                if !binds(binding, user, namespace) {
                    continue;
                }
                let (plural, place) = match string_at(binding, "/roleRef/kind") {
                    "Role" => ("roles", namespace.clone()),
                    _ => ("clusterroles", String::new()),
                };
                let key = (place, string_at(binding, "/roleRef/name").to_owned());
                let role = self.get(&ResourceId::new(RBAC, plural), &key);
                let rules = role.map(|role| Rule::list(role)).unwrap_or_default();
                grants.extend(rules.into_iter().map(|rule| Grant {
                    role: key.1.clone(),
                    namespace: (!namespace.is_empty()).then(|| namespace.clone()),
                    rule,
                }));
            }
        }
        Roles {
            user: user.name.clone(),
            grants: Some(grants),
            ..Roles::default()
        }
    }
}

/// Whether a binding has a user among its subjects.
fn binds(binding: &Value, user: &User, namespace: &str) -> bool {
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.any(|subject| {
        let name = string_at(subject, "/name");
        match string_at(subject, "/kind") {
            "User" => name == user.name,
            "Group" => user.groups.iter().any(|group| group == name),
            "ServiceAccount" => {
                let own = string_at(subject, "/namespace");
                let own = if own.is_empty() { namespace } else { own };
                user.name == format!("{SERVICE_ACCOUNT}{own}:{name}")
            }
            _ => false,
        }
    })
}

// `place` is `None` for ClusterRoleBindings, which have no namespace.
fn grants_of(role: &Value, place: Option<&Value>) -> Vec<Grant> {
    let namespace = place.map(|place| match string_at(place, "/metadata/namespace") {
        "" | PLACEHOLDER => OWN_NAMESPACE.to_owned(),
        namespace => namespace.to_owned(),
    });
    let rules = Rule::list(role).into_iter().map(|rule| Grant {
        role: format!(
            "{} {}",
            string_at(role, "/kind"),
            string_at(role, "/metadata/name")
        ),
        namespace: namespace.clone(),
        rule,
    });
    rules.collect()
}
