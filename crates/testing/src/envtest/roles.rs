//! Users restricted to the permissions of generated roles.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use rbuilder_kubernetes::rbac::service_account;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Environment, Error, FIELD_MANAGER, POLL_INTERVAL, User};
use crate::manifests::read_documents;

// Scaffolds use the namespace `system`, which kustomize replaces.
const PLACEHOLDER: &str = "system";

const GRANTED_TIMEOUT: Duration = Duration::from_secs(30);

struct Grant<'a> {
    role: &'a Value,
    /// `None` for ClusterRoleBindings.
    namespace: Option<String>,
}

impl Environment {
    /// Returns an operator's service account in the given namespace, with the permissions granted
    /// by the roles in a directory such as `config/rbac`. Only roles bound to a service account
    /// count, or all roles if there are no such bindings.
    ///
    /// The roles are installed under names that include the namespace, so that tests don't share
    /// them. `system`, kustomize's placeholder for the operator's namespace, is replaced with
    /// `namespace`. Run the manager with [`User::client`] and use [`Environment::client`] in the
    /// test itself. A missing permission marker then fails the test, just as it would fail in a
    /// cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifests can't be read or contain no role, if a bound role doesn't
    /// exist, or if the API server rejects a role or doesn't grant it within 30 seconds.
    pub async fn role_from(&self, folder: impl AsRef<Path>, namespace: &str) -> Result<User, Error> {
        let folder = folder.as_ref();
        let documents = read_documents(folder).map_err(Error::read)?;
        let documents: Vec<Value> = documents.into_iter().map(|(_, document)| document).collect();
        let account = documents.iter().find_map(service_account);
        let account = account.unwrap_or("controller-manager");
        let name = format!("system:serviceaccount:{namespace}:{account}");
        let groups = [
            "system:serviceaccounts",
            &format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ];
        for grant in find_grants(&documents, folder, namespace)? {
            self.grant(&grant, &name, namespace).await?;
        }
        self.user(&name, &groups)
    }

    async fn grant(&self, grant: &Grant<'_>, user: &str, namespace: &str) -> Result<(), Error> {
        let mut role = grant.role.clone();
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        // Keeps the roles of parallel tests apart, as each test has its own namespace.
        let name = format!("{name}-{namespace}");
        role["metadata"] = json!({ "name": name });
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        if let Some(other) = grant.namespace.as_deref().filter(|other| *other != namespace) {
            self.create_namespace(other).await?;
        }
        let place = grant.namespace.as_deref();
        match role["kind"] == "ClusterRole" {
            true => self.put::<ClusterRole>(role, None).await?,
            false => self.put::<Role>(role, place).await?,
        }
        match place {
            None => self.put::<ClusterRoleBinding>(binding, None).await?,
            Some(_) => self.put::<RoleBinding>(binding, place).await?,
        }
        self.wait_until_granted(grant, user).await
    }

    /// Creates a namespace if it doesn't exist yet. Also used by simulations.
    ///
    /// # Errors
    ///
    /// Returns an error if the API server rejects the name.
    #[doc(hidden)]
    pub async fn create_namespace(&self, name: &str) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        self.installed
            .note_if_absent::<Namespace>(&self.client(), name)
            .await;
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(err) => Err(Error::request(
                format!("cannot create the namespace {name}"),
                &err,
            )),
            Ok(_) => Ok(()),
        }
    }

    async fn put<K: Resource<DynamicType = ()>>(
        &self,
        mut object: Value,
        namespace: Option<&str>,
    ) -> Result<(), Error> {
        let resource = ApiResource::erase::<K>(&());
        object["apiVersion"] = resource.api_version.clone().into();
        object["kind"] = resource.kind.clone().into();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, &resource),
            None => {
                self.installed.note_if_absent::<K>(&self.client(), &name).await;
                Api::all_with(self.client(), &resource)
            }
        };
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
        applied
            .map(drop)
            .map_err(|err| Error::request(format!("cannot install the {} {name}", resource.kind), &err))
    }

    async fn wait_until_granted(&self, grant: &Grant<'_>, user: &str) -> Result<(), Error> {
        let Some(attributes) = grant.first_permission() else {
            return Ok(());
        };
        // The API server authorizes from a cache that lags behind. Poll until it has observed the
        // binding.
        let review = json!({ "metadata": {}, "spec": { "user": user, "resourceAttributes": attributes } });
        let review: SubjectAccessReview =
            serde_json::from_value(review).map_err(|err| Error::new(err.to_string()))?;
        let reviews: Api<SubjectAccessReview> = Api::all(self.client());
        let deadline = Instant::now() + GRANTED_TIMEOUT;
        loop {
            let reviewed = reviews.create(&PostParams::default(), &review).await;
            let reviewed = reviewed.map_err(|err| Error::request("cannot review the access", &err))?;
            if reviewed.status.is_some_and(|status| status.allowed) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let role = grant.role["metadata"]["name"].as_str().unwrap_or_default();
                return Err(Error::new(format!(
                    "the API server does not grant the role {role} to {user} after {GRANTED_TIMEOUT:?}"
                )));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Grant<'_> {
    fn first_permission(&self) -> Option<Value> {
        let mut rules = self.role["rules"].as_array()?.iter();
        // Skip rules with only `nonResourceURLs`, which an access review for resources can't test.
        let rule = rules.find(|rule| rule["resources"][0].is_string())?;
        let resource = rule["resources"][0].as_str()?;
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Some(json!({
            "verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource,
            "subresource": subresource, "name": rule["resourceNames"][0], "namespace": self.namespace,
        }))
    }
}

fn find_grants<'a>(documents: &'a [Value], folder: &Path, namespace: &str) -> Result<Vec<Grant<'a>>, Error> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let roles: BTreeMap<(&str, &str), &Value> = documents
        .iter()
        .filter(|document| matches!(text(&document["kind"]), "ClusterRole" | "Role"))
        .map(|role| ((text(&role["kind"]), text(&role["metadata"]["name"])), role))
        .collect();
    if roles.is_empty() {
        let advice = "run `rbuilder manifests`";
        return Err(Error::file("no Role or ClusterRole in", folder, advice));
    }
    let place = |object: &Value| match object["metadata"]["namespace"].as_str() {
        None | Some("" | PLACEHOLDER) => namespace.to_owned(),
        Some(other) => other.to_owned(),
    };
    let bindings = documents
        .iter()
        .filter(|document| service_account(document).is_some());
    let mut grants = Vec::new();
    for binding in bindings {
        let key = (
            text(&binding["roleRef"]["kind"]),
            text(&binding["roleRef"]["name"]),
        );
        let Some(role) = roles.get(&key) else {
            let message = format!(
                "{} binds the {} {}, which is not in {}",
                text(&binding["metadata"]["name"]),
                key.0,
                key.1,
                folder.display()
            );
            return Err(Error::new(message));
        };
        grants.push(Grant {
            role,
            namespace: (binding["kind"] == "RoleBinding").then(|| place(binding)),
        });
    }
    if grants.is_empty() {
        // Without any bindings, this is probably a selection of roles. Grant them all.
        grants.extend(roles.into_values().map(|role| Grant {
            role,
            namespace: (role["kind"] == "Role").then(|| place(role)),
        }));
    }
    Ok(grants)
}
