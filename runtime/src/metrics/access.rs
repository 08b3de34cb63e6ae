//! Who may read the metrics: Kubernetes knows the bearer token's user, and says what the user may do.
//!
//! A scrape costs no request to the API server as long as its answers are fresh enough; the times are
//! controller-runtime's.

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

/// How long the API server may take for both answers together.
const TIMEOUT: Duration = Duration::from_secs(10);
const USER_KEPT: Duration = Duration::from_secs(60);
const ALLOWED_KEPT: Duration = Duration::from_secs(300);
const DENIED_KEPT: Duration = Duration::from_secs(30);
/// Answers kept at a time. Few clients scrape; more would be somebody's attempt to fill the memory.
const MOST_KEPT: usize = 1024;

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// Nobody the cluster knows.
    Unknown,
    /// Somebody who may not, by this name.
    Denied(String),
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("failed to create TokenReview (needs `create` on `tokenreviews`): {0}")]
    TokenReview(kube::Error),
    #[error("failed to create SubjectAccessReview (needs `create` on `subjectaccessreviews`): {0}")]
    AccessReview(kube::Error),
    #[error("no response from the API server within {} s", TIMEOUT.as_secs())]
    Timeout,
}

/// Asks the API server, and remembers.
pub(super) struct Access {
    client: Client,
    /// Users by their token. Tokens that nobody has are not kept: there is no end of them.
    users: Kept<String, UserInfo>,
    verdicts: Kept<String, bool>,
}

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            users: Kept::default(),
            verdicts: Kept::default(),
        }
    }

    /// Whether the request's user may do `verb` (a method in lower case) on the non-resource URL `path`.
    pub(super) async fn check(
        &self,
        headers: &HeaderMap,
        verb: &str,
        path: &str,
    ) -> Result<Verdict, AccessError> {
        let Some(token) = bearer_token(headers) else {
            return Ok(Verdict::Unknown);
        };
        let verdict = async {
            let Some(user) = self.user(token).await? else {
                return Ok(Verdict::Unknown);
            };
            let name = user.username.clone().unwrap_or_default();
            let allowed = self.allowed(user, verb, path).await?;
            Ok(if allowed {
                Verdict::Allowed
            } else {
                Verdict::Denied(name)
            })
        };
        tokio::time::timeout(TIMEOUT, verdict)
            .await
            .unwrap_or(Err(AccessError::Timeout))
    }

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, AccessError> {
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
        let made = Api::all(self.client.clone())
            .create(&PostParams::default(), &review)
            .await;
        let status = made.map_err(AccessError::TokenReview)?.status.unwrap_or_default();
        if let Some(error) = status.error {
            tracing::debug!(%error, "bearer token not authenticated");
        }
        let user = status.user.filter(|_| status.authenticated == Some(true));
        if let Some(user) = &user {
            self.users.keep(token, user.clone(), USER_KEPT);
        }
        Ok(user)
    }

    async fn allowed(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, AccessError> {
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
        // Everything that the answer may depend on, and so all that it is kept by.
        let question = format!("{verb} {path} {username:?} {uid:?} {groups:?} {extra:?}");
        if let Some(allowed) = self.verdicts.get(&question) {
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
        let made = Api::all(self.client.clone())
            .create(&PostParams::default(), &review)
            .await;
        let allowed = made
            .map_err(AccessError::AccessReview)?
            .status
            .is_some_and(|status| status.allowed);
        self.verdicts.keep(
            question,
            allowed,
            if allowed { ALLOWED_KEPT } else { DENIED_KEPT },
        );
        Ok(allowed)
    }
}

/// The token of `Authorization: Bearer …`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Answers that are good for a while.
struct Kept<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key)
            .filter(|(_, until)| Instant::now() < *until)
            .map(|(value, _)| value.clone())
    }

    fn keep(&self, key: K, value: V, time: Duration) {
        let now = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, until)| now < *until);
        if kept.len() < MOST_KEPT {
            kept.insert(key, (value, now + time));
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

    /// An API server that knows two users by their tokens, lets one of them read, and remembers what it was asked.
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

        /// What was asked since the last call.
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

    async fn check(access: &Access, authorization: &str) -> Result<Verdict, AccessError> {
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
        let (cluster, denied) = (Cluster::default(), Verdict::Denied("stranger".to_owned()));
        let access = cluster.access();
        for (authorization, verdict, asked) in [
            ("", Verdict::Unknown, &[][..]),
            ("Bearer ", Verdict::Unknown, &[]),
            ("Basic cHJvbWV0aGV1cw==", Verdict::Unknown, &[]),
            ("prometheus", Verdict::Unknown, &[]),
            ("Bearer nobody", Verdict::Unknown, &["who is nobody"]),
            (
                "Bearer stranger",
                denied,
                &["who is stranger", "may stranger get"],
            ),
            (
                "Bearer prometheus",
                Verdict::Allowed,
                &["who is prometheus", "may prometheus get"],
            ),
            ("bearer prometheus", Verdict::Allowed, &[]),
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
    async fn answers_are_kept_as_long_as_controller_runtime_keeps_them() {
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

    /// Time since the first call, on the paused clock.
    fn access_age(_: &Access) -> Duration {
        thread_local!(static START: Instant = Instant::now());
        START.with(Instant::elapsed)
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_answer_nobody_is_allowed() {
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
    async fn what_is_kept_has_a_bound_and_gives_way_when_it_is_old() {
        let kept = Kept::default();
        for number in 0..=MOST_KEPT {
            kept.keep(number, (), Duration::from_secs(1));
        }
        assert_eq!((kept.get(&0), kept.get(&MOST_KEPT)), (Some(()), None));
        tokio::time::advance(Duration::from_secs(1)).await;
        kept.keep(MOST_KEPT, (), Duration::from_secs(1));
        assert_eq!((kept.get(&0), kept.get(&MOST_KEPT)), (None, Some(())));
        assert_eq!(kept.0.lock().unwrap().len(), 1);
    }
}
