//! Authentication and authorization of metrics requests, using TokenReview and SubjectAccessReview.
//!
//! Responses of the API server are cached for as long as in controller-runtime, so most scrapes
//! take no request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::causes::describe_causes;

/// Timeout for both requests together.
const TIMEOUT: Duration = Duration::from_secs(10);
const USER_TTL: Duration = Duration::from_secs(60);
const ALLOWED_TTL: Duration = Duration::from_secs(300);
const DENIED_TTL: Duration = Duration::from_secs(30);
/// Maximum number of cached responses. Only few clients scrape metrics, so a larger number is
/// probably an attempt to exhaust our memory.
const MAX_CACHED: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccessDecision {
    Allowed,
    /// The token is missing, or not known to the cluster.
    Unauthenticated,
    /// The user is known, but not authorized.
    Denied(String),
}

/// Access could not be determined.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("failed to create TokenReview (needs `create` on `tokenreviews`): {}", describe_causes(.0))]
    TokenReview(kube::Error),
    #[error("failed to create SubjectAccessReview (needs `create` on `subjectaccessreviews`): {}", describe_causes(.0))]
    AccessReview(kube::Error),
    #[error("no response from the API server within {} s", TIMEOUT.as_secs())]
    Timeout,
}

pub(super) struct Access {
    client: Client,
    /// Users by token. Invalid tokens aren't cached, since their number is unlimited.
    users: TtlCache<String, UserInfo>,
    allowed: TtlCache<String, bool>,
}

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            users: TtlCache::default(),
            allowed: TtlCache::default(),
        }
    }

    /// Decides whether to permit a request. `verb` is the method in lower case, and `path` is the
    /// non-resource URL.
    pub(super) async fn check(
        &self,
        headers: &HeaderMap,
        verb: &str,
        path: &str,
    ) -> Result<AccessDecision, AccessError> {
        let Some(token) = bearer_token(headers) else {
            return Ok(AccessDecision::Unauthenticated);
        };
        let decision = async {
            let Some(user) = self.authenticate(token).await? else {
                return Ok(AccessDecision::Unauthenticated);
            };
            let name = user.username.clone().unwrap_or_default();
            let allowed = self.authorize(user, verb, path).await?;
            Ok(if allowed {
                AccessDecision::Allowed
            } else {
                AccessDecision::Denied(name)
            })
        };
        tokio::time::timeout(TIMEOUT, decision)
            .await
            .unwrap_or(Err(AccessError::Timeout))
    }

    async fn authenticate(&self, token: &str) -> Result<Option<UserInfo>, AccessError> {
        let token = token.to_owned();
        if let Some(user) = self.users.get(&token) {
            return Ok(Some(user));
        }
        let spec = TokenReviewSpec {
            token: token.clone(),
            ..Default::default()
        };
        let review = TokenReview {
            spec,
            ..Default::default()
        };
        let created = Api::all(self.client.clone())
            .create(&PostParams::default(), &review)
            .await;
        let status = created
            .map_err(AccessError::TokenReview)?
            .status
            .unwrap_or_default();
        if let Some(error) = status.error {
            tracing::debug!(%error, "bearer token not authenticated");
        }
        let user = status.user.filter(|_| status.authenticated == Some(true));
        if let Some(user) = &user {
            self.users.insert(token, user.clone(), USER_TTL);
        }
        Ok(user)
    }

    async fn authorize(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, AccessError> {
        let attributes = NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some(verb.to_owned()),
        };
        let UserInfo {
            extra,
            groups,
            uid,
            username,
        } = user;
        // The key contains everything that may affect the response.
        let key = format!("{verb} {path} {username:?} {uid:?} {groups:?} {extra:?}");
        if let Some(allowed) = self.allowed.get(&key) {
            return Ok(allowed);
        }
        let spec = SubjectAccessReviewSpec {
            extra,
            groups,
            uid,
            user: username,
            non_resource_attributes: Some(attributes),
            ..Default::default()
        };
        let review = SubjectAccessReview {
            spec,
            ..Default::default()
        };
        let created = Api::all(self.client.clone())
            .create(&PostParams::default(), &review)
            .await;
        let allowed = created
            .map_err(AccessError::AccessReview)?
            .status
            .is_some_and(|status| status.allowed);
        self.allowed
            .insert(key, allowed, if allowed { ALLOWED_TTL } else { DENIED_TTL });
        Ok(allowed)
    }
}

/// Parses `Authorization: Bearer …`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

struct TtlCache<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .get(key)
            .filter(|(_, expires)| Instant::now() < *expires)
            .map(|(value, _)| value.clone())
    }

    fn insert(&self, key: K, value: V, ttl: Duration) {
        let now = Instant::now();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop expired entries first, or they would keep new ones out.
        entries.retain(|_, (_, expires)| now < *expires);
        // When full of valid entries, don't cache the response at all.
        if entries.len() < MAX_CACHED {
            entries.insert(key, (value, now + ttl));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{HeaderValue, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A cluster with two users, one of them authorized. Records all requests.
    #[derive(Clone, Default)]
    struct Cluster {
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Cluster {
        fn access(&self) -> Access {
            let cluster = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let cluster = cluster.clone();
                async move { cluster.answer(request).await }
            });
            Access::new(Client::new(service, "default"))
        }

        async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.expect("a body");
            let mut review: Value = serde_json::from_slice(&body).expect("JSON");
            let spec = review["spec"].clone();
            let (asked, status) = match path.as_str() {
                "/apis/authentication.k8s.io/v1/tokenreviews" => {
                    let token = spec["token"].as_str().expect("a token").to_owned();
                    let status = match token.as_str() {
                        "slow" => std::future::pending().await,
                        "broken" => return Ok(failure()),
                        "prometheus" | "stranger" => json!({
                            "authenticated": true,
                            "user": {"username": token, "groups": ["system:authenticated"], "extra": {"pod": ["a"]}},
                        }),
                        _ => json!({"authenticated": false, "error": "no such token"}),
                    };
                    (format!("who is {token}"), status)
                }
                "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                    assert_eq!(spec["groups"], json!(["system:authenticated"]));
                    assert_eq!(spec["extra"], json!({"pod": ["a"]}));
                    let attributes = &spec["nonResourceAttributes"];
                    let (user, verb) = (
                        spec["user"].as_str().unwrap(),
                        attributes["verb"].as_str().unwrap(),
                    );
                    let allowed = user == "prometheus" && verb == "get" && attributes["path"] == "/metrics";
                    (format!("may {user} {verb}"), json!({"allowed": allowed}))
                }
                other => panic!("unexpected request for {other}"),
            };
            self.asked.lock().unwrap().push(asked);
            review["status"] = status;
            Ok(Response::new(Body::from(review.to_string().into_bytes())))
        }

        fn asked(&self) -> Vec<String> {
            std::mem::take(&mut self.asked.lock().unwrap())
        }
    }

    fn failure() -> Response<Body> {
        let status = json!({
            "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": "tokenreviews.authentication.k8s.io is forbidden",
        });
        Response::builder()
            .status(403)
            .body(Body::from(status.to_string().into_bytes()))
            .unwrap()
    }

    async fn check(access: &Access, authorization: &str) -> Result<AccessDecision, AccessError> {
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert(
                header::AUTHORIZATION,
                HeaderValue::from_str(authorization).unwrap(),
            );
        }
        access.check(&headers, "get", "/metrics").await
    }

    #[tokio::test]
    async fn only_a_known_user_who_may_get_the_path_is_allowed() {
        let (cluster, denied) = (Cluster::default(), AccessDecision::Denied("stranger".to_owned()));
        let access = cluster.access();
        for (authorization, verdict, asked) in [
            ("", AccessDecision::Unauthenticated, &[][..]),
            ("Bearer ", AccessDecision::Unauthenticated, &[]),
            ("Basic cHJvbWV0aGV1cw==", AccessDecision::Unauthenticated, &[]),
            ("prometheus", AccessDecision::Unauthenticated, &[]),
            (
                "Bearer nobody",
                AccessDecision::Unauthenticated,
                &["who is nobody"],
            ),
            (
                "Bearer stranger",
                denied,
                &["who is stranger", "may stranger get"],
            ),
            (
                "Bearer prometheus",
                AccessDecision::Allowed,
                &["who is prometheus", "may prometheus get"],
            ),
            ("bearer prometheus", AccessDecision::Allowed, &[]),
        ] {
            assert_eq!(
                check(&access, authorization).await.unwrap(),
                verdict,
                "{authorization}"
            );
            assert_eq!(cluster.asked(), asked, "{authorization}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn responses_are_cached_as_long_as_in_controller_runtime() {
        let cluster = Cluster::default();
        let access = cluster.access();
        for (second, token, asked) in [
            (0, "prometheus", &["who is prometheus", "may prometheus get"][..]),
            (59, "prometheus", &[]),
            (60, "prometheus", &["who is prometheus"]),
            (299, "prometheus", &["who is prometheus"]),
            (300, "prometheus", &["may prometheus get"]),
            (1000, "stranger", &["who is stranger", "may stranger get"]),
            (1029, "stranger", &[]),
            (1030, "stranger", &["may stranger get"]),
            (1031, "nobody", &["who is nobody"]),
            (1032, "nobody", &["who is nobody"]),
        ] {
            let now = access_age(&access);
            tokio::time::advance(Duration::from_secs(second) - now).await;
            let _ = check(&access, &format!("Bearer {token}")).await.unwrap();
            assert_eq!(cluster.asked(), asked, "{token} after {second} s");
        }
    }

    /// Time since the first call, according to the paused clock.
    fn access_age(_: &Access) -> Duration {
        thread_local!(static START: Instant = Instant::now());
        START.with(Instant::elapsed)
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_allowed_without_a_response() {
        let access = Cluster::default().access();
        let error = check(&access, "Bearer broken").await.unwrap_err().to_string();
        assert!(
            error.starts_with("failed to create TokenReview (needs `create`"),
            "{error}"
        );
        let error = check(&access, "Bearer slow").await.unwrap_err().to_string();
        assert_eq!(error, "no response from the API server within 10 s");
    }

    #[tokio::test(start_paused = true)]
    async fn cache_is_bounded_and_drops_expired_entries() {
        let cache = TtlCache::default();
        for number in 0..=MAX_CACHED {
            cache.insert(number, (), Duration::from_secs(1));
        }
        assert_eq!((cache.get(&0), cache.get(&MAX_CACHED)), (Some(()), None));
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.insert(MAX_CACHED, (), Duration::from_secs(1));
        assert_eq!((cache.get(&0), cache.get(&MAX_CACHED)), (None, Some(())));
        assert_eq!(cache.0.lock().unwrap().len(), 1);
    }
}
