//! Reviews of users, tokens and access, and the tokens of service accounts.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::HMAC;
use rbuilder_kubernetes::rbac::{Permission, Target};
use serde_json::{Value, json};

use super::failure::Failure;
use super::kinds::{ResourceId, string_at};
use super::request::Request;
use super::roles::Roles;
use super::store::State;
use super::write::Writer;

/// Start of the tokens that this server issues.
const TOKEN: &str = "fake-token";
const HOUR: i64 = 3600;

pub(super) const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Members may do everything.
pub(super) const ADMINS: &str = "system:masters";

/// Who sends a request to a server that is open to several users.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

impl User {
    pub(super) fn is_admin(&self) -> bool {
        self.groups.iter().any(|group| group == ADMINS)
    }
}

/// Signs the tokens of service accounts. Servers inside a test need none: their tokens are readable
/// and the same in each run.
#[derive(Clone)]
#[cfg_attr(not(feature = "serve"), allow(dead_code))]
pub(super) struct TokenKey([u8; 32]);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    #[cfg(feature = "serve")]
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    fn sign(&self, claims: &Value) -> String {
        let claims = claims.to_string();
        let signature = HMAC::mac(&claims, self.0);
        format!(
            "{TOKEN}.{}.{}",
            URL_SAFE_NO_PAD.encode(claims),
            URL_SAFE_NO_PAD.encode(signature)
        )
    }

    /// The claims of a token that was signed with this key.
    fn verify(&self, token: &str) -> Option<Value> {
        let (claims, signature) = token.strip_prefix(TOKEN)?.strip_prefix('.')?.rsplit_once('.')?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let expected = HMAC::mac(&claims, self.0);
        // Compare hashes, so that the time of the comparison tells nothing about the signature.
        let is_valid = hmac_sha256::Hash::hash(&signature) == hmac_sha256::Hash::hash(&expected);
        is_valid.then(|| serde_json::from_slice(&claims).ok())?
    }
}

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
        let user = writer.request.user.as_deref();
        object["status"] = match (writer.definition.kind.as_str(), user) {
            ("SelfSubjectReview", Some(user)) => {
                json!({ "userInfo": { "username": user.name, "groups": user.groups } })
            }
            ("SelfSubjectAccessReview", Some(user)) => self.review_access(user, &object["spec"]),
            ("SubjectAccessReview" | "LocalSubjectAccessReview", Some(_)) => {
                self.review_access(&reviewed_user(&object["spec"]), &object["spec"])
            }
            ("SelfSubjectReview", None) => json!({ "userInfo": user_info(roles, is_operator) }),
            ("TokenReview", _) => self.review_token(&object["spec"])?,
            ("SelfSubjectAccessReview", None) if is_operator => roles.review(&object["spec"]),
            ("SubjectAccessReview" | "LocalSubjectAccessReview", None) if asks_about_operator() => {
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
        let Some(account) = self.account_of(token) else {
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

    fn review_access(&self, user: &User, spec: &Value) -> Value {
        if user.is_admin() {
            return json!({ "allowed": true });
        }
        let roles = self.roles_of(user);
        let path = &spec["nonResourceAttributes"];
        if path.is_null() {
            return roles.review(spec);
        }
        let access = Permission {
            namespace: None,
            target: Target::Url(string_at(path, "/path").to_owned()),
            verb: string_at(path, "/verb").to_owned(),
        };
        json!({ "allowed": roles.allow(&access) })
    }

    /// Fails unless the roles in the store permit a user's request.
    pub(super) fn authorize(&self, user: &User, request: &Request) -> Result<(), Failure> {
        match user.is_admin() {
            true => Ok(()),
            false => self.roles_of(user).check(super::roles::Permission::of(request)),
        }
    }

    /// The existing service account to which a valid token was issued.
    pub(super) fn account_of(&self, token: &str) -> Option<&Value> {
        let Some(key) = &self.token_key else {
            let mut parts = token.split('.');
            return match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(TOKEN), Some(namespace), Some(name), None) => self.account(namespace, name),
                _ => None,
            };
        };
        let claims = key.verify(token)?;
        let account = self.account(string_at(&claims, "/namespace"), string_at(&claims, "/name"))?;
        let is_valid =
            claims["expires"].as_i64()? > self.seconds() && claims["uid"] == account["metadata"]["uid"];
        is_valid.then_some(account)
    }

    fn account(&self, namespace: &str, name: &str) -> Option<&Value> {
        let id = ResourceId::new("", "serviceaccounts");
        let found = self.get(&id, &(namespace.to_owned(), name.to_owned()))?;
        Some(found)
    }

    /// Issues a token for a service account. Only this server accepts it.
    pub(super) fn request_token(&self, writer: Writer<'_>) -> Result<Value, Failure> {
        let account = self.named(writer.request)?;
        let metadata = &account["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str());
        let spec = &writer.request.body["spec"];
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let token = match &self.token_key {
            Some(key) => key.sign(&json!({
                "namespace": namespace, "name": name, "uid": metadata["uid"],
                "expires": self.seconds().saturating_add(seconds),
            })),
            None => format!(
                "{TOKEN}.{}.{}",
                namespace.unwrap_or_default(),
                name.unwrap_or_default()
            ),
        };
        let mut issued = json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "name": name, "namespace": namespace, "creationTimestamp": self.now() },
            "spec": { "audiences": spec["audiences"], "expirationSeconds": seconds, "boundObjectRef": spec["boundObjectRef"] },
            "status": {
                "token": token,
                "expirationTimestamp": self.now_after(seconds),
            },
        });
        if issued["spec"]["audiences"].is_null() {
            issued["spec"]["audiences"] = json!(["https://kubernetes.default.svc"]);
        }
        Ok(issued)
    }
}

/// The user that an access review is about.
fn reviewed_user(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten();
    User {
        name: string_at(spec, "/user").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn user_info(roles: &Roles, is_operator: bool) -> Value {
    match roles.user().filter(|_| is_operator) {
        Some(user) => json!({ "username": user, "groups": groups_of(user) }),
        None => json!({ "username": "system:admin", "groups": ["system:masters", "system:authenticated"] }),
    }
}
