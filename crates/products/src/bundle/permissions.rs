//! Permissions in a ClusterServiceVersion, i.e. the rules that bindings grant to each of the
//! project's service accounts.
//!
//! The lifecycle manager creates service accounts, roles and bindings in the namespace chosen by
//! the user, whereas a binding in the manifests would stay in the namespace of config/default. A
//! ClusterServiceVersion contains rules rather than references, so roles from outside of `config/`
//! can't be used.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Deployed;
use super::base::items;

/// Built-in roles whose rules are the same in all versions of Kubernetes.
fn builtin_rules(name: &str) -> Option<Value> {
    Some(match name {
        "system:auth-delegator" => json!([
            { "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"] },
            { "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"] },
        ]),
        "cluster-admin" => json!([
            { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
            { "nonResourceURLs": ["*"], "verbs": ["*"] },
        ]),
        _ => return None,
    })
}

/// Rules granted to each service account by bindings, either cluster-wide or in the manager's
/// namespace. The manager's account comes first.
pub(super) fn list_permissions(
    deployed: &Deployed,
    is_cluster_wide: bool,
    warnings: &mut Vec<(String, String)>,
) -> Vec<Value> {
    let manager = deployed.manager_account();
    let mut granted: BTreeMap<(bool, &str), Vec<Value>> = BTreeMap::new();
    for binding in deployed
        .objects
        .iter()
        .filter(|object| deployed.is_binding(object, is_cluster_wide))
    {
        let mut accounts = items(&binding["subjects"])
            .filter(|subject| deployed.is_own_account(subject))
            .filter_map(|subject| subject["name"].as_str())
            .peekable();
        if accounts.peek().is_none() {
            continue;
        }
        let rules = bound_rules(deployed, binding, warnings);
        // The lifecycle manager can't create roles in other namespaces, so their rules must be
        // cluster-wide.
        if let Some(namespace) = deployed.kept_namespace(binding).filter(|_| !rules.is_empty()) {
            let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
            warnings.push((
                format!(
                    "the bundle grants the rules of Role `{name}` in all namespaces, not only in `{namespace}`: the Operator Lifecycle Manager creates roles in the namespace of the manager alone"
                ),
                "if that is too much, remove `namespace` and the rules from the `#[rbac(…)]` markers, and ask your users to create the role"
                    .to_owned(),
            ));
        }
        for account in accounts {
            let known = granted.entry((account != manager, account)).or_default();
            known.extend(rules.iter().cloned());
        }
    }
    granted.retain(|_, rules| !rules.is_empty());
    let entry = |((_, account), rules): ((bool, &str), Vec<Value>)| json!({ "serviceAccountName": account, "rules": rules });
    granted.into_iter().map(entry).collect()
}

fn bound_rules(deployed: &Deployed, binding: &Value, warnings: &mut Vec<(String, String)>) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reference = &binding["roleRef"];
    let (kind, name) = (text(&binding["kind"]), text(&binding["metadata"]["name"]));
    let (role_kind, role_name) = (text(&reference["kind"]), text(&reference["name"]));
    let role = deployed
        .objects
        .iter()
        .find(|object| deployed.is_referred(object, binding));
    match role {
        Some(role) if role["aggregationRule"].is_object() => {
            warnings.push((
                format!(
                    "{kind} `{name}` refers to {role_kind} `{role_name}`, which aggregates others: the bundle has the rules of those in config/"
                ),
                "add the rules of other roles with `#[rbac(…)]` markers, if the manager needs them".to_owned(),
            ));
            let aggregated = deployed
                .objects
                .iter()
                .filter(|object| is_aggregated(object, role));
            let all = std::iter::once(role).chain(aggregated);
            all.flat_map(|role| items(&role["rules"]).cloned()).collect()
        }
        Some(role) => items(&role["rules"]).cloned().collect(),
        None if role_kind == "ClusterRole" && builtin_rules(&role_name).is_some() => {
            builtin_rules(&role_name)
                .iter()
                .flat_map(items)
                .cloned()
                .collect()
        }
        None => {
            warnings.push((
                format!(
                    "{kind} `{name}` is not part of the bundle: {role_kind} `{role_name}` is not in config/, and the Operator Lifecycle Manager grants rules, not roles"
                ),
                "add the rules that the manager needs with `#[rbac(…)]` markers, or ask your users to create the binding"
                    .to_owned(),
            ));
            Vec::new()
        }
    }
}

/// Whether `role` aggregates `object`, which must be another ClusterRole.
fn is_aggregated(object: &Value, role: &Value) -> bool {
    let empty = Map::new();
    let labels = &object["metadata"]["labels"];
    let mut selectors = items(&role["aggregationRule"]["clusterRoleSelectors"]);
    object["kind"] == "ClusterRole"
        && object["metadata"]["name"] != role["metadata"]["name"]
        && selectors.any(|selector| {
            let wanted = selector["matchLabels"].as_object().unwrap_or(&empty);
            !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value)
        })
}

impl Deployed {
    pub(super) fn is_referred(&self, role: &Value, binding: &Value) -> bool {
        role["kind"] == binding["roleRef"]["kind"]
            && role["metadata"]["name"] == binding["roleRef"]["name"]
            && (role["kind"] == "ClusterRole" || self.kept_namespace(role) == self.kept_namespace(binding))
    }

    pub(super) fn kept_namespace<'v>(&self, object: &'v Value) -> Option<&'v str> {
        let namespace = object["metadata"]["namespace"].as_str()?;
        self.kept_namespaces.contains(namespace).then_some(namespace)
    }

    fn is_binding(&self, object: &Value, is_cluster_wide: bool) -> bool {
        match object["kind"].as_str() {
            Some("ClusterRoleBinding") => is_cluster_wide,
            Some("RoleBinding") => is_cluster_wide == self.kept_namespace(object).is_some(),
            _ => false,
        }
    }

    fn manager_account(&self) -> &str {
        let account = &self.manager["spec"]["template"]["spec"]["serviceAccountName"];
        account.as_str().unwrap_or("default")
    }

    fn is_own_account(&self, subject: &Value) -> bool {
        let is_it = |object: &Value| {
            object["kind"] == "ServiceAccount" && object["metadata"]["name"] == subject["name"]
        };
        subject["kind"] == "ServiceAccount"
            && subject["namespace"] == *self.namespace
            && (subject["name"] == self.manager_account() || self.objects.iter().any(is_it))
    }

    pub(super) fn binds_own_accounts(&self, binding: &Value) -> bool {
        let mut subjects = items(&binding["subjects"]).peekable();
        subjects.peek().is_some() && subjects.all(|subject| self.is_own_account(subject))
    }

    /// Whether a service account has any permissions. The lifecycle manager only creates it if so.
    pub(super) fn has_permissions(&self, account: &Value) -> bool {
        let mut subjects = self
            .objects
            .iter()
            .filter(|object| {
                matches!(
                    object["kind"].as_str(),
                    Some("RoleBinding" | "ClusterRoleBinding")
                )
            })
            .flat_map(|binding| items(&binding["subjects"]));
        *account == self.manager_account()
            || subjects.any(|subject| subject["name"] == *account && self.is_own_account(subject))
    }

    pub(super) fn without_own_accounts(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(Value::Array(subjects)) = object.get_mut("subjects") {
            subjects.retain(|subject| !self.is_own_account(subject));
        }
        object
    }
}
