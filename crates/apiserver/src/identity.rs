//! Reviews of users, tokens and access, and the tokens of service accounts.

use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::ResourceId;
use super::roles::Roles;
use super::store::State;
use super::write::Writer;

/// Start of the tokens that this server issues. Real tokens are signed.
const TOKEN: &str = "fake-token";
const HOUR: i64 = 3600;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The groups of an authenticated user.
pub(super) fn groups_of(user: &str) -> Vec<String> {
    let mut groups = Vec::new();
    if let Some((namespace, _)) = user
        .strip_prefix(SERVICE_ACCOUNT)
        .and_then(|rest| rest.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups.push("system:authenticated".to_owned());
    groups
}

impl State {
    // Every client is authenticated, and all but the operator's are unrestricted.
    pub(super) fn review(&self, writer: Writer<'_>) -> Result<Value, Failure> {
        let mut object = writer.sent()?;
        let roles = &self.roles;
        let is_operator = roles.user().is_some() && !writer.request.by_admin;
        let asks_about_operator = || roles.user().is_some_and(|user| object["spec"]["user"] == user);
        object["status"] = match writer.definition.kind.as_str() {
            "SelfSubjectReview" => json!({ "userInfo": user_info(roles, is_operator) }),
            "TokenReview" => self.review_token(&object["spec"])?,
            "SelfSubjectAccessReview" if is_operator => roles.review(&object["spec"]),
            "SubjectAccessReview" | "LocalSubjectAccessReview" if asks_about_operator() => {
                roles.review(&object["spec"])
            }
            _ => json!({ "allowed": true }),
        };
        Ok(object)
    }

    fn review_token(&self, spec: &Value) -> Result<Value, Failure> {
        let token = spec["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            let message = "token is required for TokenReview in authentication";
            return Err(Failure::bad_request(message));
        }
        let mut parts = token.split('.');
        let account = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(TOKEN), Some(namespace), Some(name), None) => self.account(namespace, name),
            _ => None,
        };
        let Some(account) = account else {
            return Ok(json!({ "user": {}, "error": "invalid bearer token" }));
        };
        let metadata = &account["metadata"];
        let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
        let user = format!(
            "{SERVICE_ACCOUNT}{}:{}",
            namespace.as_str().unwrap_or_default(),
            name.as_str().unwrap_or_default()
        );
        Ok(json!({
            "authenticated": true,
            "user": { "username": user, "uid": metadata["uid"], "groups": groups_of(&user) },
        }))
    }

    fn account(&self, namespace: &str, name: &str) -> Option<&Value> {
        let id = ResourceId::new("", "serviceaccounts");
        let found = self.get(&id, &(namespace.to_owned(), name.to_owned()))?;
        Some(found)
    }

    /// Issues a token for a service account. Only reviews of this server accept it.
    pub(super) fn request_token(&self, writer: Writer<'_>) -> Result<Value, Failure> {
        let account = self.named(writer.request)?;
        let metadata = &account["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
        let spec = &writer.request.body["spec"];
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let mut issued = json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "name": name, "namespace": namespace, "creationTimestamp": self.now() },
            "spec": { "audiences": spec["audiences"], "expirationSeconds": seconds, "boundObjectRef": spec["boundObjectRef"] },
            "status": {
                "token": format!("{TOKEN}.{}.{}", namespace.unwrap_or_default(), name.unwrap_or_default()),
                "expirationTimestamp": self.now_after(seconds),
            },
        });
        if issued["spec"]["audiences"].is_null() {
            issued["spec"]["audiences"] = json!(["https://kubernetes.default.svc"]);
        }
        Ok(issued)
    }
}

fn user_info(roles: &Roles, is_operator: bool) -> Value {
    match roles.user().filter(|_| is_operator) {
        Some(user) => json!({ "username": user, "groups": groups_of(user) }),
        None => json!({ "username": "system:admin", "groups": ["system:masters", "system:authenticated"] }),
    }
}
