//! The users of a server that is open to other processes: who they are and what they may do.

use rbuilder_kubernetes::rbac::{Permission, Target};
use serde_json::{Value, json};

use crate::escalation::RBAC;
use crate::failure::Failure;
use crate::identity::{ADMINS, SERVICE_ACCOUNT, TokenKey, User, groups_of};
use crate::kinds::ResourceId;
use crate::store::State;

impl User {
    pub(super) fn admin() -> Self {
        Self {
            name: "system:admin".to_owned(),
            groups: vec![ADMINS.to_owned(), "system:authenticated".to_owned()],
        }
    }

    pub(super) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }

    /// A user with these groups, and those that follow from the name.
    pub(super) fn new(name: &str, mut groups: Vec<String>) -> Self {
        for group in groups_of(name) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        Self {
            name: name.to_owned(),
            groups,
        }
    }
}

impl State {
    /// Authorizes requests by the roles in the store from now on, signs tokens, and limits the
    /// history.
    pub(super) fn open_to_users(&mut self, key: TokenKey, most_changes: usize) {
        // A second address of the same server must not end the tokens of the first.
        self.token_key.get_or_insert(key);
        self.most_changes = Some(most_changes);
        let name = "cluster-admin";
        let everything = json!([
            { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
            { "nonResourceURLs": ["*"], "verbs": ["*"] },
        ]);
        self.put_new(
            "clusterroles",
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name },
                "rules": everything,
            }),
        );
        self.put_new("clusterrolebindings", json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": ADMINS }],
        }));
    }

    /// Stores one of the objects that every cluster has, unless a former run did.
    fn put_new(&mut self, plural: &str, mut object: Value) {
        let id = ResourceId::new(RBAC, plural);
        let key = (
            String::new(),
            object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        );
        if self.get(&id, &key).is_none() {
            object["metadata"]["uid"] = self.uid().into();
            object["metadata"]["creationTimestamp"] = self.now().into();
            self.put(&id, key, object);
        }
    }

    /// The service account to which a token was issued.
    pub(super) fn authenticate(&self, token: &str) -> Option<User> {
        let metadata = &self.account_of(token)?["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
        Some(User::new(
            &format!("{SERVICE_ACCOUNT}{namespace}:{name}"),
            Vec::new(),
        ))
    }

    /// Fails unless a user may act as another user with all of its groups.
    pub(super) fn check_impersonation(&self, user: &User, wanted: &User) -> Result<(), Failure> {
        if user.is_admin() {
            return Ok(());
        }
        let roles = self.roles_of(user);
        let account = wanted
            .name
            .strip_prefix(SERVICE_ACCOUNT)
            .and_then(|rest| rest.split_once(':'));
        let implied = groups_of(&wanted.name);
        let who = match account {
            Some((namespace, name)) => ("serviceaccounts", Some(namespace), name),
            None => ("users", None, wanted.name.as_str()),
        };
        let groups = wanted.groups.iter().filter(|group| !implied.contains(group));
        let groups = groups.map(|group| ("groups", None, group.as_str()));
        for (resource, namespace, name) in [who].into_iter().chain(groups) {
            let access = Permission {
                namespace: namespace.map(str::to_owned),
                target: Target::Resource {
                    group: String::new(),
                    resource: resource.to_owned(),
                    name: Some(name.to_owned()),
                },
                verb: "impersonate".to_owned(),
            };
            if !roles.allow(&access) {
                let place = namespace.map_or_else(
                    || "at the cluster scope".to_owned(),
                    |namespace| format!("in the namespace \"{namespace}\""),
                );
                let why = format!(
                    "User \"{}\" cannot impersonate resource \"{resource}\" in API group \"\" {place}",
                    user.name
                );
                return Err(Failure::denied(&ResourceId::new("", resource), name, &why));
            }
        }
        Ok(())
    }
}
